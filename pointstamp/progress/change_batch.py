"""Signed counts of items, the unit in which all progress is reported.

An operator says "two records consumed at t, one capability dropped" as change
batches; scopes add such batches up and pass them on. Nothing here knows what
an item is: a time, or a (location, time) pair.

Source: timely-dataflow `progress/change_batch.rs`, which appends and compacts
lazily. A dict that drops zeros on the way in is shorter, and quicker here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class ChangeBatch:
    """Accumulates `(item, change)` updates; items whose changes cancel vanish.

    >>> batch = ChangeBatch([("t0", +1), ("t1", +1)])
    >>> batch.update("t0", -1)
    >>> batch.drain()
    [('t1', 1)]
    >>> batch.is_empty()
    True
    """

    __slots__ = ("_changes",)

    def __init__(self, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self._changes: dict[Any, int] = {}
        """What has not cancelled. Whoever reads it in place clears it after."""
        for item, change in changes:
            self.update(item, change)

    def update(self, item: Any, change: int) -> None:
        """Add `change` to the count of `item`."""
        changes = self._changes
        total = changes.get(item, 0) + change
        if total:
            changes[item] = total
        else:
            changes.pop(item, None)

    def extend(self, changes: Iterable[tuple[Any, int]]) -> None:
        """Add every one of `changes`."""
        for item, change in changes:
            self.update(item, change)

    def drain(self) -> list[tuple[Any, int]]:
        """Give up all changes, in the order of their first mention."""
        changes = list(self._changes.items())
        self._changes.clear()
        return changes

    def is_empty(self) -> bool:
        """Whether all changes cancelled."""
        return not self._changes

    def __bool__(self) -> bool:
        return bool(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self._changes.items())

    def __repr__(self) -> str:
        return f"ChangeBatch({list(self._changes.items())})"
