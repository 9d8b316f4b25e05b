"""`GroupedRecords`: groups of records without a schema, by a function, and functions of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.copies import copied
from pointstamp.collections.general_reduce import GroupForm, OfGroups, reduced
from pointstamp.collections.group_answers import is_first
from pointstamp.collections.linear import changed
from pointstamp.collections.order import check_most
from pointstamp.collections.record_schema import RECORDS
from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import Rows
from pointstamp.containers.values import ANY
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.records import RecordCollection

GroupFunction = Callable[[Any, list[Any]], Iterable[Any]]
"""Of a key and the records of its group: records."""

KEYED = Schema((Column("key", ANY), Column("record", ANY)))


class GroupedRecords:
    """The groups of a collection without a schema; see `RecordCollection.group_by`.

    What functions of a group cost is the whole group whenever one of its records changes; `count`
    costs what changes. The records of a group come in an order that is the same in every run, and
    says nothing.
    """

    def __init__(self, keyed: Collection, records: RecordCollection) -> None:
        self._keyed = keyed
        self._records = records

    def count(self) -> RecordCollection:
        """A record (key, n) for each group: how many records it has."""
        counts = records_of_rows(self._keyed.group_by("key").count(), tuple, "Count")
        return self._found(counts)

    def agg(self, **functions: Callable[[list[Any]], Any]) -> RecordCollection:
        """A record for each group: its key, and what each function gives of its records.

        >>> import pointstamp as ps
        >>> def build(scope, sales):
        ...     by_shop = sales.group_by(lambda sale: sale[0])
        ...     return by_shop.agg(n=len, cents=lambda found: sum(cents for _, cents in found))
        >>> view = ps.View(build, sales=None)
        >>> view.insert("sales", [("Rome", 30), ("Rome", 10), ("Oslo", 7)])
        >>> view.advance()
        [(('Oslo', 1, 7), 1), (('Rome', 2, 40), 1)]
        """
        if not functions:
            raise BuildError("agg is given no function of the records of a group, such as n=len")
        for name, function in functions.items():
            if not callable(function):
                raise BuildError(
                    f"agg is given {name}={function!r}: without a schema an aggregate is a "
                    "function of the list of a group's records, such as len"
                )
        parts = list(functions.values())
        return self.reduce(
            lambda key, records: [(key, *(part(records) for part in parts))], name="Aggregate"
        )

    def top_k(
        self,
        k: int,
        by: Callable[[Any], Any],
        *,
        descending: bool = True,
        name: str = "TopK",
    ) -> RecordCollection:
        """The first `k` records of each group: those with the greatest `by(record)`, or the least.

        A record that is there twice counts twice. Of equal ones it is not said which come first,
        but it is the same in every run.
        """
        check_most(k, name)
        if not callable(by):
            raise BuildError(f"operator {name!r} is given by={by!r}, and needs a function")
        return self.reduce(
            lambda key, records: sorted(records, key=by, reverse=descending)[:k], name=name
        )

    def reduce(self, function: GroupFunction, *, name: str = "Reduce") -> RecordCollection:
        """The records of `function(key, records)` for each group that has records.

        It has to give the same for the same records. A function that fails is an error with the
        key.
        """
        form = GroupForm(KEYED, ["key"], RECORDS)
        return self._found(reduced(self._keyed.stream, form, _by_group(function, name), name))

    def _found(self, stream: StreamCore[Any]) -> RecordCollection:
        found: RecordCollection = self._records.of(stream, RECORDS)
        return found


def records_of_rows(
    collection: Collection, function: Callable[[Any], Any], name: str
) -> StreamCore[Any]:
    """Updates of the records that a function makes of the rows of columns."""

    def change(rows: Rows) -> Rows:
        words = ANY.words(list(map(function, collection.schema.to_rows(rows))))
        return np.column_stack([words, rows[:, -1]])

    return changed(collection.stream, f"{name}Records", change, RECORDS.texts)


def _by_group(function: GroupFunction, name: str) -> OfGroups:
    """What the function gives of each group: rows of a key, a record and a diff."""

    def of_groups(rows: Rows) -> Rows:
        begins = is_first(rows, 1)
        order = np.lexsort([TEXTS.hashes(rows[:, 1]), np.cumsum(begins)])
        rows = rows[order]
        records = ANY.values(copied(rows[:, 1], rows[:, 2], "groups"))
        ends = np.cumsum(rows[:, 2])[np.append(np.flatnonzero(begins)[1:], len(rows)) - 1]
        made: list[tuple[int, int, int]] = []
        begin = 0
        for key, end in zip(rows[begins, 0].tolist(), ends.tolist(), strict=True):
            made += ((key, word, 1) for word in _given(function, key, records[begin:end], name))
            begin = end
        return np.array(made, np.int64).reshape(len(made), 3)

    return of_groups


def _given(function: GroupFunction, key: int, records: list[Any], name: str) -> list[int]:
    """The words of what the function gives for a group."""
    value = ANY.to_value(key)
    try:
        return list(map(ANY.to_word, function(value, records)))
    except Exception as error:
        raise DataError(
            f"operator {name!r}, the group of the key {value!r}: {type(error).__name__}: {error}"
        ) from error
