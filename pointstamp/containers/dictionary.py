"""Texts, binaries and other values as numbers: one dictionary for all workers of a process.

Loops see words of 64 bits and nothing else, so the value of a text is a number, the same for
equal texts wherever in the process. Numbers differ between processes: what leaves one is the
text, and what records are exchanged by is the hash of its bytes. The order of numbers is that
in which texts came, and says nothing; 0 is the empty text, which is also the word of a null.

Entries stay as long as the process. Those that are no bytes are values of records without a schema
(`values.py`); they have a table of their own, since hashes of texts and of their bytes are equal.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.key_hashes import stable_hash
from pointstamp.containers.keys import canonical_key

Ints = npt.NDArray[np.int64]


class Dictionary:
    """Numbers for values of bytes, from 1 on, in the order in which they came first.

    >>> dictionary = Dictionary()
    >>> dictionary.numbers([b"a", b"b", b"a", b""]), dictionary.values([2, 1])
    ([1, 2, 1, 0], [b'b', b'a'])
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}
        self._others: dict[Any, int] = {}
        self._values: list[Any] = [b""]
        self._hashes = np.empty(0, np.int64)
        self._n_hashed = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def number(self, value: bytes) -> int:
        """The number of a value, which is entered if it is new."""
        number = self._numbers.get(value)
        return self._enter(value) if number is None else number

    def number_of_known(self, value: Any) -> int | None:
        """The number of a hashable value that is there; None of one that is not."""
        return (self._numbers if type(value) is bytes else self._others).get(value)

    def number_of(self, value: Any) -> int:
        """The number of a hashable value, which is entered if it is new; all NaN are one."""
        number = self.number_of_known(value)
        return self._enter(canonical_key(value)) if number is None else number

    def numbers(self, values: Iterable[Any]) -> list[int]:
        """The number of each value."""
        return [
            self.number(value) if type(value) is bytes else self.number_of(value)
            for value in values
        ]

    def value(self, number: int) -> Any:
        """The value of a number."""
        return self._values[number]

    def values(self, numbers: Iterable[int]) -> list[Any]:
        """The value of each number."""
        return [self._values[number] for number in numbers]

    def hashes(self, numbers: Ints) -> Ints:
        """The hash of the value of each number, the same in every process, int64[n]."""
        if self._n_hashed < len(self._values):
            self._hash_new()
        hashes: Ints = self._hashes[numbers]
        return hashes

    def ranks(self, numbers: Ints) -> Ints:
        """Places of the values among all of `numbers` in the order of their bytes, int64[n]."""
        distinct = np.unique(numbers).tolist()
        by_bytes = sorted(distinct, key=self._values.__getitem__)
        rank = {number: place for place, number in enumerate(by_bytes)}
        return np.array([rank[number] for number in numbers.tolist()], np.int64)

    def _enter(self, value: Any) -> int:
        table: dict[Any, int] = self._numbers if type(value) is bytes else self._others
        with self._lock:
            number = table.get(value)
            if number is None:
                number = len(self._values)
                self._values.append(value)
                table[value] = number
            return number

    def _hash_new(self) -> None:
        with self._lock:
            new: Sequence[Any] = self._values[self._n_hashed :]
            n = self._n_hashed + len(new)
            if n > len(self._hashes):
                # A new array: others may be reading the one that is there.
                larger = np.empty(2 * n, np.int64)
                larger[: self._n_hashed] = self._hashes[: self._n_hashed]
                self._hashes = larger
            hashes = np.array(list(map(stable_hash, new)), np.uint64)
            self._hashes[self._n_hashed : n] = hashes.view(np.int64)
            self._n_hashed = n


TEXTS = Dictionary()
"""That of this process."""


def ranks_of_texts(numbers: Ints) -> Ints:
    """`ranks` of that of this process; an expression that calls it can go to other processes."""
    return TEXTS.ranks(numbers)
