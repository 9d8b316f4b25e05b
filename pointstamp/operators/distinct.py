"""Distinct: of equal records one passes, of each time or over all rounds of a loop.

Records are exchanged by themselves, so that equal ones meet on one worker. Of each time the
first passes at once, and what has passed is forgotten when the time is complete. Over the
rounds of a loop a record passes at the least round at which it comes: so the records of a
round wait until none of an earlier one can come, and the answer does not depend on timing.

Source: timely-dataflow `examples/distinct.rs`; over the rounds of a loop it is what
differential's `distinct` gives in an `iterate` that only adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.generic import operator
from pointstamp.operators.names_elsewhere import of_other_words
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Product, Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class DistinctMethods(StreamCore[T]):
    """Distinct records. Methods of `Stream`."""

    @of_other_words(
        "streams",
        dict.fromkeys(
            ("key", "subset"), "over_rounds= (reduce(function, key=) keeps one of a key)"
        ),
    )
    def distinct(self, *, over_rounds: bool = False, name: str = "Distinct") -> Stream[T]:
        """Drop duplicate records of each time; in a loop, of all rounds of an outer time.

        Records are exchanged by themselves, rows (which can be hashed) or columns. Nulls
        are equal here, and so are NaNs.

        Parameters
        ----------
        over_rounds : bool
            In a scope for loops, whose times are (outer time, round): a record passes at
            the least round at which it comes, and not again at that outer time. Those of
            a round wait until none of an earlier round can come.

        Raises
        ------
        BuildError
            With `over_rounds` in a scope whose times have no rounds.

        Notes
        -----
        Keeps the distinct records of each time, or outer time, that is not complete.

        Examples
        --------
        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abca").distinct(), workers=2)
        [(0, 'a'), (0, 'b'), (0, 'c')]

        What can be reached from 1, by a loop that ends when nothing new comes:

        >>> after = {1: [2, 3], 2: [4], 3: [4], 4: [1]}
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         loop, again = inner.feedback(1)
        ...         start = scope.to_stream([1] if scope.index == 0 else []).enter(inner)
        ...         reached = start.concat(again).distinct(over_rounds=True)
        ...         loop.connect(reached.flat_map(after.get))
        ...         return reached.leave()
        >>> ps.testing.collect(build, workers=2)
        [(0, 1), (0, 2), (0, 3), (0, 4)]
        """
        timestamp = self.scope.timestamp
        if over_rounds and not isinstance(timestamp, Product):
            raise BuildError(
                f"operator {name!r} is to be distinct over rounds, and the times of "
                f"{self.scope.path} are {timestamp.name}, which have none; make it in "
                "scope.iterative()"
            )

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
            capability.drop()
            info.keeps_nothing()
            return _over_rounds(info) if over_rounds else _of_each_time(info)

        interest = Interest.ALWAYS if over_rounds else Interest.IF_CAPABILITY
        return operator([self], [Exchange()], name, build, interest)


class _Passed(set[Any]):
    """The records that have passed, as canonical keys."""


def _of_each_time(info: OperatorInfo) -> Callable[[Input, Output], None]:
    stash: Stash[_Passed] = Stash(info, _Passed)

    def logic(input_: Input, output: Output) -> None:
        for time, batch in input_:
            new = kind_of(batch).unseen(batch, stash.at(time))
            if new is not None:
                output.session(time).give_batch(new)
        for _ in stash:
            pass  # what has passed at a complete time is forgotten

    return logic


def _over_rounds(info: OperatorInfo) -> Callable[[Input, Output], None]:
    waiting: Stash[list[Any]] = Stash(info, early=True)
    passed: dict[Any, _Passed] = {}
    outer = info.timestamp.outer  # type: ignore[attr-defined]  # it is a product

    def logic(input_: Input, output: Output) -> None:
        for time, batch in input_:
            waiting.add(time, batch)
        for capability, batches in waiting:
            records = passed.setdefault(capability.time[0], _Passed())
            session = output.session(capability)
            for batch in batches:
                new = kind_of(batch).unseen(batch, records)
                if new is not None:
                    session.give_batch(new)
        for time in _complete(passed, outer, input_.frontier):
            del passed[time]

    return logic


def _complete(times: dict[Any, Any], outer: Timestamp, frontier: Frontier) -> list[Any]:
    """Which of the outer times no round can come of any more."""
    elements = frontier.elements if times else []
    return [time for time in times if not any(outer.less_equal(now, time) for now, _ in elements)]
