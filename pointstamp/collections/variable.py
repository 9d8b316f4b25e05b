"""Variables: collections of a loop that are said later what they are.

At each round a variable is what it was set to one round before, and at the first nothing. So
collections may depend on each other.

Source: differential-dataflow `operators/iterate.rs`, its `Variable`.
"""

from __future__ import annotations

from typing import Any

from pointstamp.collections.collection import Collection
from pointstamp.collections.fixpoint import admits_epochs, brought_into, connect, of_schema
from pointstamp.collections.lattice import TimeEncoding
from pointstamp.collections.records import RecordCollection, record_schema
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.errors import BuildError
from pointstamp.operators.feedback import Loop


class SetLater(Collection):
    """What a variable has beside what it has as a collection; see `Scope.variable`."""

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
            Of the same scope, or of one around it, with the variable's columns; for one without a
            schema a `RecordCollection`.
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
        connect(self._loop, found, self._expect, consolidate, self._name)


class Variable(SetLater):
    """A collection that is what it is `set` to, one round later; see `Scope.variable`."""


class RecordVariable(SetLater, RecordCollection):
    """The same without a schema, of records that are values of Python."""


def variable(
    scope: Any, schema: Any, name: str, limit: int | None, expect: int | None
) -> Variable | RecordVariable:
    """See `Scope.variable`."""
    if TimeEncoding(scope.timestamp, f"variable {name!r} in {scope.path}").n_rounds == 0:
        raise BuildError(
            f"variable {name!r} is made in {scope.path}, whose times have no rounds: make it in "
            "a loop, `with scope.iterative() as inner`"
        )
    if expect is not None and (type(expect) is not int or expect < 1):
        raise BuildError(f"variable {name!r} is given expect={expect!r}, and needs 1 or more")
    records = record_schema(scope, f"variable {name!r}") if schema is None else None
    loop, _ = scope.feedback(1, limit, name)
    admits_epochs(loop)
    loop.remedy = "it is a variable: call set(collection) on it"
    if records is not None:
        return RecordVariable(loop, records, expect, name)
    return Variable(loop, schema_of(schema), expect, name)
