# cython: boundscheck=False, wraparound=False
"""Signed counts of items, the unit in which all progress is reported.

An operator says "two records consumed at t, one capability dropped" as change
batches; scopes add such batches up and pass them on. Nothing here knows what
an item is: a time, or a (location, time) pair.

Most batches hold one item or two, and are emptied again at once. Those are in two lists
side by side, which keep their places when they are emptied: a dict would be made anew each
time. Of more than a few items there is a dict, until they are read.

Source: timely-dataflow `progress/change_batch.rs`, which appends and compacts
lazily. Here what cancels goes on the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_FEW = 8
"""How many items are looked through one by one."""


class ChangeBatch:
    """Accumulates `(item, change)` updates; items whose changes cancel vanish.

    >>> batch = ChangeBatch([("t0", +1), ("t1", +1)])
    >>> batch.update("t0", -1)
    >>> batch.drain()
    [('t1', 1)]
    >>> batch.is_empty()
    True
    """

    __slots__ = ("_many", "_n", "changes", "items")

    def __init__(self, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self.items: list[Any] = []
        """What has not cancelled: after a call of `gather`, which says how many."""
        self.changes: list[int] = []
        """Beside them, the change of each."""
        self._n = 0
        self._many: dict[Any, int] | None = None
        """All of them, if there are many; then none is in the lists."""
        for item, change in changes:
            self.update(item, change)

    def update(self, item: Any, change: int) -> None:
        """Add `change` to the count of `item`."""
        if self._many is not None:
            self._update_many(item, change)
            return
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
        return self._n

    def clear(self) -> None:
        """Forget all changes."""
        self._many = None
        self._n = 0
        if len(self.items) > _FEW:
            self.items, self.changes = [], []

    def drain(self) -> list[tuple[Any, int]]:
        """Give up all changes, in the order of their first mention."""
        changes = self._pairs()
        self.clear()
        return changes

    def is_empty(self) -> bool:
        """Whether all changes cancelled."""
        return not self._n and not self._many

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
        return [(self.items[place], self.changes[place]) for place in range(self._n)]

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
        self.items, self.changes = [], []

    def _update_many(self, item: Any, change: int) -> None:
        assert self._many is not None
        total = self._many.get(item, 0) + change
        if total:
            self._many[item] = total
        else:
            self._many.pop(item, None)
