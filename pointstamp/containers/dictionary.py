"""Texts, binaries and other values as numbers: one dictionary for all workers of a process.

Loops see words of 64 bits and nothing else, so the value of a text is a number, the same for
equal texts wherever in the process. Numbers differ between processes: what leaves one is the
text, and what records are exchanged by is the hash of its bytes. The order of numbers is that
in which texts came, and says nothing; 0 is the empty text, which is also the word of a null.

Those entries that are no bytes are values of records without a schema (`values.py`); they have a
table of their own, since hashes of texts and of their bytes are equal.

Entries stay until a sweep frees those that nothing names (`text_sweep.py`); their numbers are those
of others later. While one goes on, each number that is asked for is *marked*, as it may be
kept where the sweep has looked already. To ask costs nothing more otherwise: then two tables stand
in for those of all entries, in which there is at first nothing, so that all that is asked for is
looked up the slow way, once, where it is marked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.key_hashes import stable_hash
from pointstamp.containers.keys import canonical_key
from pointstamp.errors import InternalError

Ints = npt.NDArray[np.int64]

_FREED = object()
"""Stands where the value of an entry was."""

_FREED_HASH = np.int64(-0x5A3C_96E1_0F87_D24B)
"""Stands where its hash was; a value may have it, too."""


class Dictionary:
    """Numbers for values of bytes, from 1 on, in the order in which they came first.

    >>> dictionary = Dictionary()
    >>> dictionary.numbers([b"a", b"b", b"a", b""]), dictionary.values([2, 1])
    ([1, 2, 1, 0], [b'b', b'a'])
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}
        self._others: dict[Any, int] = {}
        """Those two are asked first; they are the next two, unless numbers are watched."""
        self._all_numbers, self._all_others = self._numbers, self._others
        self._values: list[Any] = [b""]
        self._hashes = np.empty(0, np.int64)
        self._n_hashed = 0
        self._unhashed: list[int] = []
        """Numbers before that whose value is another one by now."""
        self._lock = threading.Lock()
        self._marks: Marks | None = None
        """By number, of those that there were when a sweep began: whether something may name it."""
        self._pins: list[set[int]] = []
        """Each has the numbers that were asked for since it is there."""
        self._reusable: list[int] = []
        self._n_freed = 0
        """Of so many numbers there is no value."""
        self.n_entered = 0
        """So many values were entered, in all."""

    @property
    def n_numbers(self) -> int:
        """All numbers that there are, or were, are below this."""
        return len(self._values)

    def __len__(self) -> int:
        return len(self._all_numbers) + len(self._all_others)

    def number(self, value: bytes) -> int:
        """The number of a value, which is entered if it is new."""
        number = self._numbers.get(value)
        return self._enter(value) if number is None else number

    def number_of_known(self, value: Any) -> int | None:
        """The number of a hashable value that is there; None of one that is not."""
        number = (self._numbers if type(value) is bytes else self._others).get(value)
        if number is not None and type(value) is not tuple and isinstance(value, tuple):
            with self._lock:
                if self._all_others.get(value) == number:  # and not that of another by now
                    self._keep_names(number, value)
        return number

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
        """The value of a number.

        Raises
        ------
        InternalError
            If it was freed, which nothing that is named is.
        """
        value = self._values[number]
        if value is _FREED:
            raise _was_freed(number)
        return value

    def values(self, numbers: Iterable[int]) -> list[Any]:
        """The value of each number; raises as `value` does."""
        if not self._n_freed:
            return [self._values[number] for number in numbers]
        listed = list(numbers)
        values = [self._values[number] for number in listed]
        if any(map(is_, values, repeat(_FREED))):
            raise _was_freed(next(n for n, v in zip(listed, values, strict=True) if v is _FREED))
        return values

    def hashes(self, numbers: Ints) -> Ints:
        """The hash of the value of each number, the same in every process, int64[n].

        Raises as `value` does.
        """
        if self._n_hashed < len(self._values) or self._unhashed:
            self._hash_new()
        hashes: Ints = self._hashes[numbers]
        if self._n_freed and (suspects := hashes == _FREED_HASH).any():
            self.values(np.asarray(numbers)[suspects].tolist())
        return hashes

    def ranks(self, numbers: Ints) -> Ints:
        """Places of the values among all of `numbers` in the order of their bytes, int64[n]."""
        distinct = np.unique(numbers).tolist()
        value_of = dict(zip(distinct, self.values(distinct), strict=True))
        by_bytes = sorted(distinct, key=value_of.__getitem__)
        rank = {number: place for place, number in enumerate(by_bytes)}
        return np.array([rank[number] for number in numbers.tolist()], np.int64)

    # For sweeps.

    @contextmanager
    def pinning(self) -> Iterator[set[int]]:
        """The numbers that are asked for in a block, by whatever thread; all, when it ends."""
        pins: set[int] = set()
        with self._lock:
            self._pins.append(pins)
            self._watch(True)
        try:
            yield pins
        finally:
            with self._lock:
                # Not by what is in it: that of another thread may have the same.
                self._pins = [others for others in self._pins if others is not pins]
                self._watch(bool(self._pins) or self._marks is not None)

    def begin_marking(self) -> Marks:
        """Watch which numbers are asked for; the marks, of which more are to be set."""
        with self._lock:
            marks = self._marks = np.zeros(len(self._values), np.bool_)
            marks[0] = True
            self._watch(True)
            return marks

    def end_marking(self) -> list[dict[Any, int]]:
        """Watch no more; two tables to be taken apart, which may be large."""
        with self._lock:
            self._marks = None
            over: list[dict[Any, int]] = []
            if not self._pins:
                over = [self._numbers, self._others]
                self._watch(False)
            return over

    def unmarked(self) -> Ints:
        """The numbers of entries without a mark, int64[n]."""
        with self._lock:
            assert self._marks is not None
            return np.flatnonzero(~self._marks)

    def free(self, numbers: list[int]) -> tuple[list[int], list[Any]]:
        """Have no entries of these numbers, except of those marked by now; which, and of what."""
        with self._lock:
            marks = self._marks
            assert marks is not None
            freed, values = [], []
            for number in numbers:
                value = self._values[number]
                # Of some there is none, since an earlier sweep.
                if not marks[number] and value is not _FREED:
                    freed.append(number)
                    values.append(value)
                    table: dict[Any, int] = (
                        self._all_numbers if type(value) is bytes else self._all_others
                    )
                    del table[value]
                    self._values[number] = _FREED
            places = np.array(freed, np.int64)
            self._hashes[places[places < self._n_hashed]] = _FREED_HASH
            self._n_freed += len(freed)
            return freed, values

    def reuse(self, numbers: list[int]) -> None:
        """Give these, which are free, to what is entered next."""
        with self._lock:
            self._reusable += numbers

    def _watch(self, is_watched: bool) -> None:
        if is_watched:
            self._numbers, self._others = {}, {}
        else:
            self._numbers, self._others = self._all_numbers, self._all_others

    def _enter(self, value: Any) -> int:
        is_bytes = type(value) is bytes
        with self._lock:
            table: dict[Any, int] = self._all_numbers if is_bytes else self._all_others
            number = table.get(value)
            if number is None:
                number = self._new(value)
                table[value] = number
            elif isinstance(value, tuple):
                self._keep_names(number, value)
            for pins in self._pins:
                pins.add(number)
            if self._marks is not None:
                if number < len(self._marks):
                    self._marks[number] = True
                if not self._pins:
                    asked_first: dict[Any, int] = self._numbers if is_bytes else self._others
                    asked_first[value] = number
            return number

    def _keep_names(self, number: int, value: tuple[Any, ...]) -> None:
        """Have a named tuple stand for the tuple that it equals, which does not know its names."""
        if type(self._values[number]) is tuple:
            self._values[number] = value

    def _new(self, value: Any) -> int:
        """A number for a value, that of none."""
        self.n_entered += 1
        if not self._reusable:
            self._values.append(value)
            return len(self._values) - 1
        number = self._reusable.pop()
        if number < self._n_hashed:
            self._unhashed.append(number)
        self._values[number] = value
        self._n_freed -= 1
        return number

    def _hash_new(self) -> None:
        with self._lock:
            if self._unhashed:
                again = self._unhashed
                self._hashes[again] = _hashes_of([self._values[number] for number in again])
                # Not before: others look at it first, and then into the array.
                self._unhashed = []
            new: Sequence[Any] = self._values[self._n_hashed :]
            n = self._n_hashed + len(new)
            if n > len(self._hashes):
                # A new array: others may be reading the one that is there.
                larger = np.empty(2 * n, np.int64)
                larger[: self._n_hashed] = self._hashes[: self._n_hashed]
                self._hashes = larger
            self._hashes[self._n_hashed : n] = _hashes_of(new)
            self._n_hashed = n


Marks = npt.NDArray[np.bool_]


def _hashes_of(values: Sequence[Any]) -> Ints:
    if any(map(is_, values, repeat(_FREED))):
        found = [_FREED_HASH if each is _FREED else _hashes_of([each])[0] for each in values]
        return np.array(found, np.int64)
    return np.array(list(map(stable_hash, values)), np.uint64).view(np.int64)


def _was_freed(number: int) -> InternalError:
    return InternalError(
        f"the text of the number {number} was freed while something still names it; say which "
        "operators the program has"
    )


TEXTS = Dictionary()
"""That of this process."""


def ranks_of_texts(numbers: Ints) -> Ints:
    """`ranks` of that of this process; an expression that calls it can go to other processes."""
    return TEXTS.ranks(numbers)
