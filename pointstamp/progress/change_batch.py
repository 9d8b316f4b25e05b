# cython: boundscheck=False, wraparound=False
"""Signed counts of items, the unit in which all progress is reported.

An operator says "two records consumed at t, one capability dropped" as change
batches; scopes add such batches up and pass them on. Nothing here knows what
an item is: a time, or a (location, time) pair.

Most batches hold one item or two, and are emptied again at once, and nearly all items are
integers or pairs of them. Those are kept as numbers, inside of the object; a few others in two
lists side by side, which keep their places when they are emptied: a dict would be made anew each
time. Of more than a few items there is a dict, until they are read.

Source: timely-dataflow `progress/change_batch.rs`, which appends and compacts
lazily. Here what cancels goes on the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pointstamp.compiled import build_info

_FEW = 8
"""How many items are looked through one by one."""

_FEW_NUMBERS = 4
"""How many are kept as numbers: a dataflow has five batches for each operator, mostly empty."""

_BEYOND = 2**61
"""Numbers from here on, or as far below zero, are kept as objects."""

NOTHING, INTEGERS, PAIRS, OBJECTS = range(4)
"""What the items of a batch are; many are objects."""

_NO_LIST: list[Any] = []
"""Stays empty, and is that of all batches whose items are few numbers."""

# Compiled, numbers of C.
_NOTHING, _INTEGERS, _PAIRS, _OBJECTS = NOTHING, INTEGERS, PAIRS, OBJECTS

_IS_COMPILED = build_info() == "compiled"


def as_number(item: int) -> int:
    """An integer, or 2**61 in place of each that is kept as an object.

    >>> as_number(-7), as_number(-(2**61)) == as_number(2**80) == 2**61
    (-7, True)
    """
    if _IS_COMPILED:
        # A name of the .pxd alone, which does not raise where 64 bits are too few.
        return _number_in_c(item)  # type: ignore[name-defined,no-any-return]  # noqa: F821
    return item if -_BEYOND < item < _BEYOND else _BEYOND


def _joined(outer: int, inner: int, is_pair: bool) -> Any:
    if is_pair:
        return (outer, inner)
    return inner


class ChangeBatch:
    """Accumulates `(item, change)` updates; items whose changes cancel vanish.

    >>> batch = ChangeBatch([("t0", +1), ("t1", +1)])
    >>> batch.update("t0", -1)
    >>> batch.drain()
    [('t1', 1)]
    >>> batch.is_empty()
    True
    """

    __slots__ = ("_many", "_n", "changes", "entries", "items", "kind")

    def __init__(self, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self.items: list[Any] = _NO_LIST
        """What has not cancelled: after a call of `gather`, which says how many."""
        self.changes: list[int] = _NO_LIST
        """Beside them, the change of each."""
        self._n = 0
        self._many: dict[Any, int] | None = None
        """All of them, if there are many; then none is in the lists, or among the numbers, and
        `kind` is of objects."""
        self.kind = _NOTHING
        """What its changes are; `NOTHING` only if there was none since it was cleared."""
        self.entries = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        """Of integers and pairs three numbers each, that follow each other: both numbers of a pair,
        the second of which is the integer, and the change."""
        for item, change in changes:
            self.update(item, change)

    def update(self, item: Any, change: int) -> None:
        """Add `change` to the count of `item`."""
        if type(item) is int:
            inner = as_number(item)
            if inner < _BEYOND:
                self.update_number(0, inner, False, change)
                return
        elif type(item) is tuple and len(item) == 2:
            first, second = item
            if type(first) is int and type(second) is int:
                outer, inner = as_number(first), as_number(second)
                if outer < _BEYOND and inner < _BEYOND:
                    self.update_number(outer, inner, True, change)
                    return
        self._update_object(item, change)

    def update_number(self, outer: int, inner: int, is_pair: bool, change: int) -> None:
        """Do the same for the pair (outer, inner), or for `inner` alone; both less than 2**61."""
        kind = _PAIRS if is_pair else _INTEGERS
        n = self._n
        if self.kind != kind and self.kind != _NOTHING and (n or self._many is not None):
            self._update_object(_joined(outer, inner, is_pair), change)
        else:
            self.kind = kind
            place = 0
            while place < n and (
                self.entries[3 * place + 1] != inner or self.entries[3 * place] != outer
            ):
                place += 1
            if place < n:
                self.entries[3 * place + 2] += change
                if not self.entries[3 * place + 2]:
                    self._close_up(place)
            elif n == _FEW_NUMBERS:
                self._update_object(_joined(outer, inner, is_pair), change)
            elif change:
                self.entries[3 * n] = outer
                self.entries[3 * n + 1] = inner
                self.entries[3 * n + 2] = change
                self._n = n + 1

    def extend(self, changes: Iterable[tuple[Any, int]]) -> None:
        """Add every one of `changes`."""
        for item, change in changes:
            self.update(item, change)

    def gather(self) -> int:
        """How many changes there are, to be read in `items` and `changes` and then cleared.

        They are in the order of their first mention; what comes after them in the lists is
        of before.
        """
        if self._many is not None:
            self.items = list(self._many)
            self.changes = list(self._many.values())
            self._n = len(self.items)
            self._many = None
            self.kind = _OBJECTS
        elif self._n and self.kind != _OBJECTS:
            self._make_objects()
        return self._n

    def n_numbers(self) -> int:
        """How many changes there are, if `entries` has them; else -1.

        In that case `kind` says whether they are of integers or of pairs.
        """
        return -1 if self.kind == _OBJECTS else self._n

    def clear(self) -> None:
        """Forget all changes."""
        if self.kind == _OBJECTS:
            self._many = None
            if len(self.items) > _FEW:
                self.items = self.changes = _NO_LIST
        self._n = 0
        self.kind = _NOTHING

    def drain(self) -> list[tuple[Any, int]]:
        """Give up all changes, in the order of their first mention."""
        changes = self._pairs()
        self.clear()
        return changes

    def is_empty(self) -> bool:
        """Whether all changes cancelled."""
        return not self._n and (self.kind != _OBJECTS or not self._many)

    def __bool__(self) -> bool:
        return not self.is_empty()

    def __len__(self) -> int:
        return self._n if self._many is None else len(self._many)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self._pairs())

    def __repr__(self) -> str:
        return f"ChangeBatch({self._pairs()})"

    def _pairs(self) -> list[tuple[Any, int]]:
        if self._many is not None:
            return list(self._many.items())
        if self.kind == _OBJECTS:
            return [(self.items[place], self.changes[place]) for place in range(self._n)]
        return [(self._item(place), self.entries[3 * place + 2]) for place in range(self._n)]

    def _item(self, place: int) -> Any:
        """What is kept as numbers, as it was given."""
        outer, inner = self.entries[3 * place], self.entries[3 * place + 1]
        return _joined(outer, inner, self.kind == _PAIRS)

    def _close_up(self, place: int) -> None:
        """Give the place of what has cancelled to what comes after it."""
        self._n -= 1
        for to in range(3 * place, 3 * self._n):
            self.entries[to] = self.entries[to + 3]

    def _make_objects(self) -> None:
        """Have the lists hold what was numbers."""
        n = self._n
        if self.items is _NO_LIST:
            self.items, self.changes = [], []
        while len(self.items) < n:
            self.items.append(None)
            self.changes.append(0)
        for place in range(n):
            self.items[place] = self._item(place)
            self.changes[place] = self.entries[3 * place + 2]
        self.kind = _OBJECTS

    def _update_object(self, item: Any, change: int) -> None:
        if self._many is not None:
            self._update_many(item, change)
            return
        if self.kind != _OBJECTS:
            self._make_objects()
        items = self.items
        n = self._n
        for place in range(n):
            known = items[place]
            if known is item or known == item:
                self._add(place, change)
                return
        if not change:
            return
        if n >= _FEW:
            self._make_many()
            self._update_many(item, change)
            return
        if n < len(items):
            items[n] = item
            self.changes[n] = change
        else:
            items.append(item)
            self.changes.append(change)
        self._n = n + 1

    def _add(self, place: int, change: int) -> None:
        total = self.changes[place]
        total += change
        if total:
            self.changes[place] = total
        else:
            del self.items[place]
            del self.changes[place]
            self._n -= 1

    def _make_many(self) -> None:
        self._many = dict(self._pairs())
        self._n = 0
        self.items = self.changes = _NO_LIST

    def _update_many(self, item: Any, change: int) -> None:
        assert self._many is not None
        total = self._many.get(item, 0) + change
        if total:
            self._many[item] = total
        else:
            self._many.pop(item, None)
