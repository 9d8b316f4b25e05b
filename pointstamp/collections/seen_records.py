"""Distinct records of a collection from which none is ever deleted.

Then a record is there from the first time on at which it comes, whatever comes later. So what
is kept is which records there are, and not how often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pointstamp.collections.durable_rows import StoredPart
from pointstamp.collections.groups import Groups
from pointstamp.containers.updates import Rows


class SeenRecords:
    """The records that have come; in the place of `GroupState`, of no aggregates.

    >>> seen = SeenRecords(1)
    >>> seen.take_in([np.array([[7, 3]]), np.array([[7, 1], [8, 1]])]).tolist()
    [[7, 1], [8, 1]]
    >>> seen.take_in([np.array([[8, 1]])]).tolist(), len(seen)
    ([], 2)
    """

    is_approximate = False

    def __init__(self, n_words: int) -> None:
        self._records = Groups(n_words)

    def __len__(self) -> int:
        return len(self._records)

    def contents(self, texts: tuple[int, ...]) -> list[StoredPart]:
        """The records, each once."""
        return [StoredPart("records", self._once(0), texts)]

    def held_texts(self, texts: tuple[int, ...]) -> list[tuple[Rows, tuple[int, ...]]]:
        """The records, and which of their words are numbers of texts."""
        return [(self._records.all_keys(), texts)]

    def restore(self, parts: dict[Any, Rows]) -> None:
        """Take in what `contents` gave, where there is nothing yet."""
        for rows in parts.values():
            self._records.number(rows)

    def take_in(self, parts: list[Rows]) -> Rows:
        """Take in the insertions of a time; each record that is new, once."""
        n_before = len(self._records)
        for rows in parts:
            self._records.number(rows)
        return self._once(n_before)

    def _once(self, begin: int) -> Rows:
        """The records from a number on, int64[n, w + 1]."""
        records = self._records.keys(np.arange(begin, len(self._records)))
        once = np.ones((len(records), records.shape[1] + 1), np.int64)
        once[:, :-1] = records
        return once
