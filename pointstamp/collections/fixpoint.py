"""Loops of collections: variables, and `iterate`.

A variable is a collection that is said later what it is: at each round it is what it was set
to one round before, and at the first nothing. So a loop repairs the rounds that a change
makes differ, and no others; where none differs any more it has ended.

What goes round is consolidated. Otherwise updates that cancel would go round for ever.

Source: differential-dataflow `operators/iterate.rs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from pointstamp.collections.collection import Collection
from pointstamp.collections.loop_methods import brought_into, is_in
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.containers.updates import Rows, Updates
from pointstamp.errors import BuildError, LoopWarning, SchemaError, TimestampError
from pointstamp.operators.feedback import Loop
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest

_MOST_SHOWN = 3

_LOOP: ContextVar[Any] = ContextVar("loop", default=None)
"""The scope of the loop whose body is being built."""


class Variable(Collection):
    """A collection that is what it is `set` to, one round later; see `Scope.variable`."""

    def __init__(self, loop: Loop, schema: Schema, expect: int | None, name: str) -> None:
        super().__init__(loop.stream, schema)
        self._loop = loop
        self._expect = expect
        self._name = name

    def set(self, collection: Collection, *, consolidate: bool = True) -> None:
        """Say what it is.

        Parameters
        ----------
        collection : Collection
            Of the same scope, or of one around it, with the variable's columns.
        consolidate : bool
            Whether what goes round is consolidated. A loop without it may never end.

        Raises
        ------
        FeedbackError
            If it was set before.
        SchemaError
            If the columns are others.
        """
        found = of_schema(brought_into(collection, self.scope), self.schema, self._name)
        if consolidate:
            found = found.consolidate(name=f"{self._name}Consolidate")
        if self._expect is not None:
            found = found.each_batch(_watch(self._expect, self.schema, self._name))
        self._loop.connect(found.stream)


def variable(scope: Any, schema: Any, name: str, limit: int | None, expect: int | None) -> Variable:
    """See `Scope.variable`."""
    if expect is not None and (type(expect) is not int or expect < 1):
        raise BuildError(f"variable {name!r} is given expect={expect!r}, and needs 1 or more")
    try:
        loop, _ = scope.feedback(1, limit, name)
    except TimestampError as error:
        raise BuildError(
            f"variable {name!r} is made in {scope.path}, whose times have no rounds: make it in "
            "a loop, `with scope.iterative() as inner`"
        ) from error
    return Variable(loop, schema_of(schema), expect, name)


def iterate(
    start: Collection,
    body: Callable[[Collection], Collection],
    limit: int | None,
    expect: int | None,
    consolidate: bool,
    name: str,
) -> Collection:
    """See `Collection.iterate`."""
    around = _LOOP.get()
    if around is not None and is_in(around, start.scope):
        # In the body of a loop a loop is one of that loop, whatever it starts from.
        start = brought_into(start, around)
    with start.scope.iterative(name=name) as inner:
        entered = start.enter(inner)
        # At round 0 there is the start; then what the body makes, in place of it.
        again = variable(inner, start.schema, name, limit, expect)
        token = _LOOP.set(inner)
        try:
            made: Any = body(entered.concat(again))
        finally:
            _LOOP.reset(token)
        if not isinstance(made, Collection):
            raise BuildError(
                f"the body of loop {name!r} should return a Collection, and returned {made!r}"
            )
        result = of_schema(brought_into(made, inner), start.schema, name)
        again.set(result.concat(entered.negate()), consolidate=consolidate)
        return result.leave()


def of_schema(collection: Collection, schema: Schema, name: str) -> Collection:
    """With the columns in another order, and nullable where they are there.

    Raises
    ------
    SchemaError
        If they are not the same columns.
    """
    found = {c.name: c for c in collection.schema.columns}
    wanted = {c.name: c for c in schema.columns}
    fits = found.keys() == wanted.keys() and all(
        c.type == found[c.name].type and c.nullable >= found[c.name].nullable
        for c in schema.columns
    )
    if not fits:
        raise SchemaError(
            f"loop {name!r} goes round with ({schema}), and its body makes "
            f"({collection.schema}): the columns should be the same, and null only where they "
            "may be at first"
        )
    return collection.as_schema(schema, name)


def entered_at(
    collection: Collection, inner: Any, round_of: Callable[[Rows], Any], name: str
) -> Collection:
    """See `Collection.enter_at`."""
    entered = collection.enter(inner)
    texts = entered.schema.texts

    def build(capability: Any, info: Any) -> Any:
        capability.drop()

        def logic(input_: Any, output: Any) -> None:
            for held, batch in input_:
                epoch, first = held.time
                rounds = first + np.maximum(round_of(batch.rows), 0)
                for number in np.unique(rounds).tolist():
                    rows = np.ascontiguousarray(batch.rows[rounds == number])
                    with held.delayed((epoch, number)) as later:
                        output.session(later).give_batch(Updates(rows, texts))

        return logic

    stream = operator([entered.stream], [PIPELINE], name, build, Interest.NEVER)
    return Collection(stream, entered.schema)


def _watch(expect: int, schema: Schema, name: str) -> Callable[[Any, Updates], None]:
    """Warn of rounds beyond the expected one, and again each time that they double."""
    far = expect

    def look(time: Any, batch: Updates) -> None:
        nonlocal far
        if time[1] + 1 > far and len(batch):
            shown = ", ".join(map(str, schema.to_rows(batch.rows[:_MOST_SHOWN])))
            more = f" and {len(batch) - _MOST_SHOWN} more" if len(batch) > _MOST_SHOWN else ""
            warnings.warn(
                f"loop {name!r} was expected to go round {expect} times, and of {time[0]} still "
                f"changes after {time[1] + 1}: {shown}{more}; give it a limit, or see why it does "
                "not end",
                LoopWarning,
                stacklevel=2,
            )
            far = 2 * (time[1] + 1)

    return look
