"""A loop with a condition: all records go round together, until it holds.

Inside, in a scope whose times are (time, round):

    stream --> concat --+--> Measure ==broadcast==> Decide --+--> body --> feedback
                 ^      +------------------------------^     |                |
                 |                                           +--> leave       |
                 +------------------------------------------------------------+

`Measure` reduces the records of a round that its worker has to one small value, and
sends it to all workers. `Decide` keeps the records until the round is complete, so that it
has all values; then it lets the records go round once more, or leave. Every
worker puts the same values together in the same order, so that all decide alike, and
there is no coordinator. A worker without records sees each round too.

Rounds of one time are one after the other; loops of different times do not wait for
each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Pipeline
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.transform import is_of_columns, kept
from pointstamp.operators.user_code import check_function, refuse_deferred_of
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

AGAIN, LEAVE = 0, 1
"""The outputs of `Decide`."""

_MASK = (1 << 64) - 1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Round(NamedTuple):
    """What all workers together had in one round of a loop."""

    time: Any
    """Of the records that entered."""
    round: int
    """How often the body was applied: 0 for the records as they entered."""
    n_records: int
    value: Any
    """What the records were measured to be; None where nothing is measured."""
    is_last: bool
    """Whether these records leave."""


class Rule(Protocol):
    """When a loop stops: what is measured of its records, and what of that ends it."""

    def measure(self, batch: Any) -> Any:
        """The value of a batch, which is not empty."""

    def combine(self, a: Any, b: Any) -> Any:
        """The value of two batches together."""

    def holds(self, now: tuple[int, Any], before: tuple[int, Any] | None) -> bool:
        """Whether a round is the last, by its (number of records, value) and the one before."""

    def reported(self, value: Any) -> Any:
        """What is reported of a value."""


class Unchanged:
    """Holds for a round that has the records of the one before, each as often.

    Compared are sums of stable hashes, which do not depend on the order of records or on
    which worker has them. Two rounds that differ are taken for equal with a probability
    of about 2^-64 for each record that changed.
    """

    def measure(self, batch: Any) -> tuple[int, int]:
        """Two sums, of which the second mixes each hash once more."""
        hashes = kind_of(batch).hashes(batch, None)
        mixed = (hashes ^ (hashes >> _SHIFT)) * _FACTOR
        return int(hashes.sum(dtype=np.uint64)), int((mixed ^ (mixed >> _SHIFT)).sum())

    def combine(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        """Both sums, modulo 2^64."""
        return ((a[0] + b[0]) & _MASK, (a[1] + b[1]) & _MASK)

    def holds(self, now: tuple[int, Any], before: tuple[int, Any] | None) -> bool:
        """As many records, with the same sums."""
        return now == before

    def reported(self, value: Any) -> None:
        """Nothing: sums of hashes say nothing to anybody."""
        return


class Every:
    """Holds for a round in which a predicate is true of every record."""

    def __init__(self, predicate: Any, name: str) -> None:
        self._predicate = predicate
        self._name = name
        self._is_of_columns = is_of_columns(predicate)

    def measure(self, batch: Any) -> bool:
        """Whether it is true of every record of the batch."""
        kind = kind_of(batch)
        if self._is_of_columns:
            true = kept(batch, self._predicate, self._name)
            return kind.length(true) == kind.length(batch)
        return all(map(self._predicate, kind.records(batch)))

    def combine(self, a: bool, b: bool) -> bool:
        """Of both."""
        return a and b

    def holds(self, now: tuple[int, Any], before: tuple[int, Any] | None) -> bool:
        """As measured."""
        return bool(now[1])

    def reported(self, value: Any) -> Any:
        """Whether it held."""
        return value


class Measured:
    """Holds for a round whose value, which the user's functions measure, satisfies theirs."""

    def __init__(
        self,
        measure: Callable[[Any], Any],
        combine: Callable[[Any, Any], Any],
        until: Callable[[Any], Any],
    ) -> None:
        self.measure = measure
        self.combine = combine
        self._until = until

    def holds(self, now: tuple[int, Any], before: tuple[int, Any] | None) -> bool:
        """As `until` says of the value."""
        return bool(self._until(now[1]))

    def reported(self, value: Any) -> Any:
        """The value."""
        return value


def _rule(until: Any, measure: Any, combine: Any, name: str) -> Rule:
    if measure is not None:
        if not callable(until):
            raise BuildError(
                f"loop {name!r} measures its rounds, and until={until!r} is no function of what "
                "was measured"
            )
        return Measured(measure, combine, until)
    if until is None:
        return Unchanged()
    if not callable(until) and not is_of_columns(until):
        raise BuildError(
            f"loop {name!r} needs a function of a record, a column or an expression as condition; "
            f"found until={until!r}"
        )
    return Every(until, name)


def _checked(result: Any, inner: ScopeCore[Any]) -> Stream[Any]:
    """What the body gave, if that can go round."""
    scope = getattr(result, "scope", None)
    if scope is not inner:
        found = repr(result) if scope is None else f"one of scope {scope.name!r}"
        raise BuildError(
            f"the body of loop {inner.name!r} must give a stream of the loop's own scope, made of "
            f"the stream that it is given; it gave {found}"
        )
    stream: Stream[Any] = result
    return stream


def _measure(records: StreamCore[Any], rule: Rule) -> Stream[Any]:
    """(worker, number, records, value) of what arrived at once of each time."""
    builder = OperatorBuilder(records.scope, "Measure")
    builder.new_input(records, Pipeline(), Interest.NEVER)
    result: Stream[Any] = builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        n_sent = 0

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            nonlocal n_sent
            found: dict[Any, tuple[int, Any]] = {}
            while (item := inputs[0].pull()) is not None:
                time, batch = item
                value = (kind_of(batch).length(batch), rule.measure(batch))
                found[time] = _both(rule, found[time], value) if time in found else value
            for time, value in found.items():
                n_sent += 1
                outputs[0].push(time, [(info.index, n_sent, value)])

        return logic

    builder.build(make_logic)
    return result


def _both(rule: Rule, a: tuple[int, Any], b: tuple[int, Any]) -> tuple[int, Any]:
    return (a[0] + b[0], rule.combine(a[1], b[1]))


def _decide(
    records: StreamCore[Any],
    values: StreamCore[Any],
    rule: Rule,
    limit: int | None,
    report: Callable[[Round], Any] | None,
) -> tuple[Stream[Any], Stream[Any]]:
    """The records that go round again, and those that leave."""
    builder = OperatorBuilder(records.scope, "Decide")
    builder.new_input(records, Pipeline(), Interest.IF_CAPABILITY)
    builder.new_input(values, Broadcast(), Interest.IF_CAPABILITY)
    builder.declare(limit=limit)
    again, leaving = builder.new_output(initial=False), builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        return _Rounds(info.notificator(), rule, limit, report).run

    builder.build(make_logic)
    return again, leaving


class _Rounds:
    """What one worker has of the loops that go round, by their time outside."""

    def __init__(
        self,
        notificator: Notificator,
        rule: Rule,
        limit: int | None,
        report: Callable[[Round], Any] | None,
    ) -> None:
        self._notificator = notificator
        self._rule = rule
        self._limit = limit
        self._report = report
        self._records: dict[Any, list[Any]] = {}
        """By (time, round)."""
        self._values: dict[Any, list[Any]] = {}
        self._leave: dict[Any, Capability] = {}
        """By time: the right to send what is left in the end."""
        self._before: dict[Any, tuple[int, Any]] = {}
        """By time: the number and the value of the round before."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Take in what came, and end the rounds that are complete."""
        for waiting, input_ in zip((self._records, self._values), inputs, strict=True):
            for time, batch in input_:
                if time.time not in waiting:
                    waiting[time.time] = []
                    self._await(time)
                waiting[time.time].append(batch)
        for capability in self._notificator:
            with capability:
                self._end(capability, outputs)

    def _await(self, time: InputCapability) -> None:
        """Ask for a notification when the round is complete."""
        if time.time[0] not in self._leave:
            self._leave[time.time[0]] = time.retain(LEAVE)
        self._notificator.notify_at(time.retain(AGAIN))

    def _end(self, capability: Capability, outputs: list[Output]) -> None:
        """Have the records of a round go round again, or leave."""
        time, number = capability.time
        batches = self._records.pop(capability.time, [])
        if self._is_last(capability.time):
            with self._leave.pop(time) as leave, outputs[LEAVE].session(leave) as session:
                for batch in batches:
                    session.give_batch(batch)
            return
        with outputs[AGAIN].session(capability) as session:
            for batch in batches:
                session.give_batch(batch)
        # To hear of the next round even if no record comes in it, to any worker.
        self._notificator.notify_at(capability.delayed((time, number + 1)))

    def _is_last(self, at: Any) -> bool:
        """Whether the loop stops; the same on all workers."""
        time, number = at
        # By worker and number: all add up in the same order, so that even sums of floats agree.
        values = sorted((v for batch in self._values.pop(at, []) for v in batch), key=_order)
        before = self._before.pop(time, None)
        now = (0, None)
        is_last = True
        if values:
            now = reduce(lambda a, b: _both(self._rule, a, b), (value for _, _, value in values))
            is_last = self._rule.holds(now, before) or number == self._limit
        if not is_last:
            self._before[time] = now
        if self._report is not None:
            value = self._rule.reported(now[1]) if values else None
            self._report(Round(time, number, now[0], value, is_last))
        return is_last


def _order(value: tuple[int, int, Any]) -> tuple[int, int]:
    return value[:2]


class IterateMethods(StreamCore[T]):
    """Loops with a condition. Methods of `Stream`."""

    def iterate(
        self,
        body: Callable[[Stream[T]], Stream[T]],
        until: Any = None,
        limit: int | None = None,
        *,
        measure: Callable[[Any], Any] | None = None,
        combine: Callable[[Any, Any], Any] = add,
        expect: int | None = None,
        report: Callable[[Round], Any] | None = None,
        name: str = "Iterate",
    ) -> Stream[T]:
        """Apply `body` to all records in synchronous rounds, until a condition holds.

        The records of a time are round 0, and what the body makes of a round is the next.
        The loop of a time stops at the first round for which the condition holds, round 0
        included: its records, on all workers, are the result, at that time. A round
        without records is the last, too. All workers agree on each round; loops of
        different times do not wait for each other.

        Parameters
        ----------
        body : callable
            Gets a stream, of a scope of its own, and gives one made of it.
        until : callable, str or pyarrow.compute.Expression, optional
            The round is the last if this is true of each of its records: on rows a function of
            the record, on columns the name of a column of booleans, or an expression. With
            `measure`, a function of what all its records were measured to be. Without
            `until`, the loop stops when a round has the same records as the one before, in any
            order (compared by hashes of 64 bits, so records must be hashable as for `exchange`).
        limit : int, optional
            The body is applied at most so many times; what there is then is the result.
        measure : callable, optional
            The value of a batch, as in `measure=sum`.
        combine : callable, optional
            The value of two batches together; their order must not matter. It adds.
        expect : int, optional
            Warn (`LoopWarning`) after twice as many rounds, and each time that they double.
        report : callable, optional
            Called on every worker, for each round, with a `Round`: the `time`, the `round`,
            of all workers the number of records `n_records` and their `value`, and whether
            it `is_last`.
        name : str
            For messages to people.

        Raises
        ------
        BuildError
            If the body gives something else, or there can be no such condition. When built.

        Notes
        -----
        A round costs a small message from each worker with records to each other, beside
        what the body does, and one exchange of progress. Records that are not done wait on
        their worker until the round is complete on all.

        Examples
        --------
        Until nothing changes:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream([6, 40] if scope.index == 0 else [])
        ...     return numbers.iterate(lambda again: again.map(lambda x: x // 2 if x > 3 else x))
        >>> ps.testing.collect(build, workers=2)
        [(0, 2), (0, 3)]

        Until the sum is below 12; it is 46, then 23, then 11:

        >>> def build(scope):
        ...     numbers = scope.to_stream([6, 40] if scope.index == 0 else [])
        ...     half = lambda again: again.exchange().map(lambda x: x // 2)
        ...     return numbers.iterate(half, measure=sum, until=lambda total: total < 12)
        >>> ps.testing.collect(build, workers=2)
        [(0, 1), (0, 10)]
        """
        check_function(body, name)
        refuse_deferred_of(name, until, measure, combine, report)
        rule = _rule(until, measure, combine, name)
        if limit is not None and (type(limit) is not int or limit < 0):
            raise BuildError(
                f"loop {name!r} cannot have a limit of {limit!r} rounds: it is an integer, and 0 "
                "is the least"
            )
        with self.scope.iterative(name=name) as inner:
            loop, again = inner.feedback(1, expect=expect)
            records = concatenate([self.enter(inner), again])
            going, leaving = _decide(records, _measure(records, rule), rule, limit, report)
            loop.connect(_checked(body(going), inner))
            result: Stream[T] = leaving.leave()
            return result
