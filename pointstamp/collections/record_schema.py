"""The schema of records without one: a column of Python's values, which are the records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointstamp.collections.schema import (
    Column,
    Schema,
    check_iterable,
    check_pairs,
    nulls_first,
)
from pointstamp.containers.frames import is_table
from pointstamp.containers.updates import Rows, Updates
from pointstamp.containers.values import ANY
from pointstamp.errors import DataError


@dataclass(frozen=True)
class RecordSchema(Schema):
    """Of records that are one value each, and no rows.

    >>> rows = RECORDS.to_updates(["a", ("b", None)], 1, "it").rows
    >>> RECORDS.to_rows(rows), RECORDS.in_order([("a", 1), (2, 1), (1, 1)])
    (['a', ('b', None)], [(1, 1), (2, 1), ('a', 1)])
    """

    def to_updates(self, data: Any, diff: int, where: str) -> Updates:
        """Records as updates of one diff; raises `DataError` for one that is not hashable."""
        if is_table(data):
            raise DataError(
                f"{where} is given a {type(data).__name__}, and has no columns: give it a schema, "
                "or an iterable of records"
            )
        check_iterable(data, where, "records")
        return self._of_pairs(((record, diff) for record in data), where)

    def to_pairs(self, pairs: Iterable[tuple[Any, int]], where: str) -> Updates:
        """Pairs of a record and its diff as updates."""
        check_iterable(pairs, where, "pairs of a record and its diff")
        given = list(pairs)
        check_pairs(given, where)
        return self._of_pairs(given, where)

    def _of_pairs(self, pairs: Iterable[tuple[Any, int]], where: str) -> Updates:
        found = []
        for place, (record, diff) in enumerate(pairs):
            if isinstance(diff, bool) or not isinstance(diff, (int, np.integer)):
                raise DataError(f"the diff of record {place} for {where} is no integer: {diff!r}")
            if not -(1 << 63) <= diff < 1 << 63:
                raise DataError(f"the diff of record {place} for {where} is beyond 64 bits: {diff}")
            try:
                found.append((ANY.to_word(record), diff))
            except DataError as error:
                raise DataError(f"record {place} for {where}: {error}") from None
        return self.updates(np.array(found, np.int64).reshape(len(found), 2))

    def to_rows(self, rows: Rows) -> list[Any]:
        """The records."""
        return ANY.values(rows[:, 0])

    def cells(self, row: Any) -> tuple[Any, ...]:
        """The record alone."""
        return (row,)

    def in_order(self, pairs: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """Sorted by record; where these have no order, by their types and what they print."""
        found = list(pairs)
        try:
            return sorted(found, key=lambda pair: nulls_first(pair[0]))
        except TypeError:
            return sorted(found, key=lambda pair: (type(pair[0]).__name__, repr(pair[0])))


RECORDS = RecordSchema((Column("record", ANY),))
