"""`RecordCollection`: a collection without a schema, whose records are hashable Python values.

A record is one word, the number of the value (`containers/values.py`), so what keeps records,
exchanges and counts them is the same as for columns. Keys and expressions are functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from pointstamp.collections.aggregates import count
from pointstamp.collections.by_record import many_changes
from pointstamp.collections.collection import Collection, How
from pointstamp.collections.grouped_records import KEYED, GroupedRecords, records_of_rows
from pointstamp.collections.linear import Change
from pointstamp.collections.record_schema import RECORDS, RecordSchema
from pointstamp.collections.schema import Column, Schema, schema_of
from pointstamp.containers.updates import Rows
from pointstamp.containers.values import ANY
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.operators.names_elsewhere import of_other_words
from pointstamp.operators.user_code import check_function

KeyFunction = Callable[[Any], Any]

_ALONE = Schema((Column("record", ANY),))
_LEFT = Schema((Column("key", ANY), Column("left", ANY)))
_RIGHT = Schema((Column("key", ANY), Column("right", ANY)))


def _refused(method: str, instead: str) -> Any:
    def refuse(self: Any, *arguments: Any, **named: Any) -> NoReturn:
        raise BuildError(
            f"{method} is for collections with a schema, and this one has records that are values "
            f"of Python: {instead}"
        )

    return refuse


class RecordCollection(Collection):
    """A changing multiset of hashable Python values; made by `new_collection(None)`.

    It has the operators of a `Collection`, with functions of a record where that has columns.
    Records, and keys, are equal by Python's `==`; of equal ones that differ otherwise, as 1, 1.0
    and True, the first that the process saw stands for all. All NaN are one. They have to be of
    types with a hash that is the same in every process: numbers, texts, bytes, dates, None,
    UUIDs, enums, frozen dataclasses, and tuples and frozensets of these.

    >>> import pointstamp as ps
    >>> def words(scope, lines):
    ...     return lines.flat_map(str.split).group_by(lambda word: word).count()
    >>> view = ps.View(words, lines=None)
    >>> view.insert("lines", ["to be or not to be"])
    >>> view.advance()
    [(('be', 2), 1), (('not', 1), 1), (('or', 1), 1), (('to', 2), 1)]
    >>> view.delete("lines", ["to be or not to be"])
    >>> view.snapshot(), len(view.advance())
    ([('be', 2), ('not', 1), ('or', 1), ('to', 2)], 4)
    """

    _by_key: dict[tuple[KeyFunction, Schema], Collection]

    def map(  # type: ignore[override]  # a schema may be given, and need not be
        self, function: Callable[[Any], Any], schema: Any = None, *, name: str = "Map"
    ) -> Any:
        """Each record replaced by `function(record)`: a record, or a row of `schema`.

        The function is called with each update, and has to give the same for the same record.

        Returns
        -------
        RecordCollection, or a Collection of `schema`
        """
        check_function(function, name)
        return self.flat_map(lambda record: (function(record),), schema, name=name)

    def flat_map(  # type: ignore[override]  # as above
        self,
        function: Callable[[Any], Iterable[Any]],
        schema: Any = None,
        *,
        name: str = "FlatMap",
    ) -> Any:
        """Each record replaced by all that `function(record)` gives, as of `map`."""
        check_function(function, name, may_yield=True)
        result = RECORDS if schema is None else schema_of(schema)

        def each(rows: Rows) -> Rows:
            pairs = zip(ANY.values(rows[:, 0]), rows[:, -1].tolist(), strict=True)
            changes = many_changes(function, pairs)
            return result.to_pairs(changes, f"operator {name!r}").rows

        return self.changed_by(name, each, result)

    def filter(  # type: ignore[override]  # functions, and no expressions
        self, *predicates: Callable[[Any], Any], name: str = "Filter"
    ) -> RecordCollection:
        """The records for which each of `predicates`, functions of a record, is true."""
        if not predicates or not all(map(callable, predicates)):
            raise BuildError(f"operator {name!r} is given {predicates}, and needs functions")

        def keep(rows: Rows) -> Rows:
            records = ANY.values(rows[:, 0])
            is_kept = [all(true(record) for true in predicates) for record in records]
            return rows[np.array(is_kept, np.bool_)]

        return self._records(keep, name)

    def group_by(self, *keys: KeyFunction) -> GroupedRecords:  # type: ignore[override]  # as above
        """Groups of records of equal keys: `count`, `agg`, `top_k` or `reduce` follows.

        keys : a function of a record, or several; the key is a tuple then
        """
        if not keys or not all(map(callable, keys)):
            raise BuildError(f"group_by is given {keys}, and needs functions of a record")
        if len(keys) == 1:
            return GroupedRecords(self._keyed(keys[0], KEYED), self)
        return self.group_by(lambda record: tuple(key(record) for key in keys))

    def count(self) -> RecordCollection:
        """One record: how many there are."""
        total = self.of(self.stream, _ALONE).agg(count=count())
        return _of_rows(total, lambda row: row[0], "Count")

    @of_other_words("collections", {"key": "on=", "other_key": "left_on= and right_on="})
    def join(  # type: ignore[override]  # functions, and no columns
        self,
        other: RecordCollection,
        on: KeyFunction | None = None,
        *,
        left_on: KeyFunction | None = None,
        right_on: KeyFunction | None = None,
        how: How = "inner",
        name: str = "Join",
    ) -> RecordCollection:
        """Pairs (left, right) of records of both with equal keys.

        Parameters
        ----------
        on, left_on, right_on : callable
            The key of a record: of both, or of each. None for how="cross". A key that is None is
            equal to None.
        how : {"inner", "left", "right", "full", "semi", "anti", "cross"}
            As of `Collection.join`. With "left", "right" and "full" None is in the place of a
            partner that is not there; "semi" and "anti" give records of this collection.

        >>> import pointstamp as ps
        >>> def build(scope, sales, shops):
        ...     pairs = sales.join(shops, on=lambda record: record[0], how="left")
        ...     return pairs.map(lambda pair: (pair[0][1], pair[1] and pair[1][1]))
        >>> view = ps.View(build, sales=None, shops=None)
        >>> view.insert("sales", [(1, "tea"), (2, "ink")])
        >>> view.insert("shops", [(1, "Rome")])
        >>> view.advance()
        [(('ink', None), 1), (('tea', 'Rome'), 1)]
        """
        if not isinstance(other, RecordCollection):
            raise BuildError(
                f"operator {name!r} is given {other!r}, and joins collections without a schema "
                "with each other; map(function, schema) gives this one columns"
            )
        keys = (left_on, right_on) if on is None else (on, on)
        given = [key for key in (on, left_on, right_on) if key is not None]
        if how == "cross":
            if given:
                raise BuildError(f"operator {name!r}: a cross join has no key")
            keys = (_all_alike, _all_alike)
        elif len(given) != (2 if on is None else 1) or not all(map(callable, given)):
            raise BuildError(
                f"operator {name!r} needs on=, or both left_on= and right_on=: functions of a "
                "record"
            )
        one, two = self._keyed(keys[0], _LEFT), other._keyed(keys[1], _RIGHT)
        found = one.join(two, on="key", how="inner" if how == "cross" else how, name=name)
        if how in ("semi", "anti"):
            return _of_rows(found, lambda row: row[1], name)
        return _of_rows(found, lambda row: row[1:], name)

    def of(self, stream: StreamCore[Any], schema: Schema) -> Any:
        """Of values, or of columns, as the schema says."""
        kind = RecordCollection if isinstance(schema, RecordSchema) else Collection
        return kind(stream, schema)

    select = _refused("select", "use map with a function of a record")
    with_columns = _refused("with_columns", "use map with a function of a record")
    rename = _refused("rename", "its records have no columns")
    drop = _refused("drop", "its records have no columns; use map")
    explode = _refused("explode", "use flat_map with a function of a record")
    agg = _refused("agg", "group_by(lambda record: None).agg(...) is of all records")
    arrange = _refused("arrange", "use map(function, schema) before it")
    temporal_filter = _refused("temporal_filter", "use map(function, schema) before it")
    window = _refused("window", "use map(function, schema) before it")
    enter_at = _refused("enter_at", "use enter, or map(function, schema) before it")

    def _keyed(self, function: Any, schema: Schema) -> Collection:
        """Each record behind its key; made once for a function."""
        made = self.__dict__.setdefault("_by_key", {})
        if (function, schema) not in made:

            def change(rows: Rows) -> Rows:
                keys = ANY.words(list(map(function, ANY.values(rows[:, 0]))))
                return np.column_stack([keys, rows])

            made[function, schema] = self.changed_by("Key", change, schema)
        found: Collection = made[function, schema]
        return found

    def _records(self, change: Change, name: str) -> RecordCollection:
        found: RecordCollection = self.changed_by(name, change, RECORDS)  # type: ignore[assignment]  # so says `of`
        return found


def _of_rows(collection: Collection, function: Callable[[Any], Any], name: str) -> RecordCollection:
    """Records that a function makes of the rows of columns."""
    stream = records_of_rows(collection, function, name)
    return RecordCollection(stream, RECORDS, append_only=collection.append_only)


def record_schema(scope: Any, what: str) -> Schema:
    """Of an input or a variable without a schema.

    Raises
    ------
    BuildError
        If the dataflow is durable: values of Python are not in snapshots.
    """
    if scope.environment.durable_state is not None:
        raise BuildError(
            f"{what} is a collection without a schema, and the dataflow is durable: values "
            "of Python are not in snapshots; give it a schema"
        )
    return RECORDS


def _all_alike(record: Any) -> None:
    """The key of a cross join."""
