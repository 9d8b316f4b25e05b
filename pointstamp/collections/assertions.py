"""Assertions: what has to hold of a collection whenever a time is complete.

A collection is empty at all times if nothing changes at any of them. So there is nothing to be
kept: the changes of a time are consolidated when it is complete, and what is left of the first one
is what the error shows.

Source: differential-dataflow `collection.rs`, its `assert_empty` and `assert_eq`, which say nothing
of the time, nor wait for it to be complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pointstamp.collections.beside import beside_of
from pointstamp.collections.fixpoint import brought_together
from pointstamp.containers.updates import Rows, Updates
from pointstamp.errors import BuildError, DataError
from pointstamp.operators.transform import transform

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.schema import Schema

_MOST_SHOWN = 5


class AssertionMethods:
    """What a collection may be held to."""

    def assert_empty(self, message: str, *, name: str = "AssertEmpty") -> Self:
        """Fail with `message` as soon as a time is complete at which there are records.

        The error has the first of these records that a worker has, and the time. What comes and
        goes within a time is no offence. Nothing is kept. A view looks before `advance` returns.

        Returns
        -------
        Collection
            This one.

        Raises
        ------
        BuildError
            If `message` is no text.
        OperatorError
            While it runs, of a `DataError`.

        >>> import pointstamp as ps
        >>> def build(scope, sales):
        ...     sales.filter(ps.col("cents") < 0).assert_empty("a price is not below 0")
        ...     return sales.group_by("shop").count()
        >>> view = ps.View(build, sales="shop long, cents long")
        >>> view.update("sales", [((1, 30), +1), ((1, -5), +1), ((1, -5), -1)])
        >>> view.advance()
        [((1, 1), 1)]
        >>> view.insert("sales", [(1, -7)])
        >>> view.advance()
        Traceback (most recent call last):
        pointstamp.errors.OperatorError: ... a price is not below 0: at epoch 1 there should be ...
        """
        collection: Any = self
        _check_message(message, name)

        def said(rows: Rows, when: str) -> str:
            shown = _shown(collection.schema, rows)
            return f"{message}: {when} there should be no record, and there is {shown}"

        _hold(collection, said, name)
        return self

    def assert_equal(
        self,
        other: Collection,
        message: str = "two collections should be equal",
        *,
        name: str = "AssertEqual",
    ) -> Self:
        """Fail with `message` as soon as a time is complete at which `other` has other records.

        Each record has to be there as often as in the other one; columns match by name. The rest
        is as for `assert_empty`.

        >>> import pointstamp as ps
        >>> def build(scope, edges):
        ...     return edges.distinct().assert_equal(edges, "an edge is there once")
        >>> view = ps.View(build, edges="src long, dst long")
        >>> view.insert("edges", [(1, 2), (1, 2)])
        >>> view.advance()
        Traceback (most recent call last):
        pointstamp.errors.OperatorError: ... at epoch 0 ... in the other one and not here: (1, 2)
        """
        collection: Any = self
        _check_message(message, name)
        if not isinstance(other, AssertionMethods):
            raise BuildError(f"operator {name!r} is given {other!r}, which is no collection")
        here, there = brought_together((self, other))
        difference = here.concat(there.negate(name=f"{name}Negate"), name=name)

        def said(rows: Rows, when: str) -> str:
            parts = [
                f"{where}: {_shown(difference.schema, some)}"
                for where, some in (
                    ("here and not in the other one", rows[rows[:, -1] > 0]),
                    ("in the other one and not here", _negated(rows[rows[:, -1] < 0])),
                )
                if len(some)
            ]
            return f"{message}: {when} there are records {'; '.join(parts)}"

        _hold(difference, said, name)
        return collection  # type: ignore[no-any-return]  # it is this one


def _check_message(message: Any, name: str) -> None:
    if not isinstance(message, str):
        raise BuildError(f"operator {name!r} is given the message {message!r}, which is no text")


def _hold(collection: Collection, said: Any, name: str) -> None:
    """Fail with what `said(rows, when)` gives of the first changes."""
    unit = "epoch" if collection.scope.timestamp.total else "time"

    def look(time: Any, batch: Updates) -> None:
        raise DataError(said(batch.rows, f"at {unit} {time}"))

    looked = transform(
        collection.consolidate(name=f"{name}Changes").stream, name, look, of_updates=True
    )
    beside = beside_of(looked.scope)
    while looked.scope.parent is not None:
        looked = looked.leave()
    beside.checks.append(looked)


def _shown(schema: Schema, rows: Rows) -> str:
    """The first records, each with how often it is there where that is not once."""
    first = rows[:_MOST_SHOWN]
    texts = [
        f"{row}" if n == 1 else f"{row} {n} times"
        for row, n in zip(schema.to_rows(first), first[:, -1].tolist(), strict=True)
    ]
    more = f" and {len(rows) - len(first)} more" if len(rows) > len(first) else ""
    return ", ".join(texts) + more


def _negated(rows: Rows) -> Rows:
    rows[:, -1] *= -1
    return rows
