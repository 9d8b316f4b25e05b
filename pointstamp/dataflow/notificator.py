"""Notifications: be told once when a time is complete.

A notificator keeps capabilities until nothing at or before their time can come
at any of the operator's inputs, and then gives them out, least time first.

Source: timely-dataflow `dataflow/operators/generic/notificator.rs`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier
from pointstamp.progress.timestamp import Timestamp


class Notificator:
    """Capabilities that wait for their times to be complete.

    Iterating gives the capabilities whose times are complete now, least first,
    each time once; asking for another while iterating is fine.
    """

    __slots__ = ("_asked", "_frontiers", "_heap", "_key", "_total", "_waiting")

    def __init__(self, timestamp: Timestamp, frontiers: Sequence[Frontier]) -> None:
        self._key = timestamp.key
        self._total = timestamp.total
        self._frontiers = frontiers
        self._waiting: dict[Any, Capability] = {}
        self._heap: list[tuple[Any, Any]] = []
        self._asked: list[Any] = []

    def notify_at(self, capability: Capability) -> None:
        """Keep `capability` until its time is complete. Asking twice is asking once."""
        capability.check("ask for a notification")
        time = capability.time
        if time in self._waiting:
            if self._waiting[time] is not capability:
                capability.drop()
            return
        self._waiting[time] = capability
        self._asked.append(time)
        heapq.heappush(self._heap, (self._key(time), time))

    def overlooked(self) -> bool:
        """Whether a time was asked for lately that is complete, and not given out.

        No frontier will move for it, so its operator must be run again for it.
        """
        asked, self._asked = self._asked, []
        return any(time in self._waiting and self._is_complete(time) for time in asked)

    def __iter__(self) -> Iterator[Capability]:
        """The capabilities of the complete times."""
        while (found := self._take_complete()) is not None:
            yield found

    def __len__(self) -> int:
        """How many times are waited for."""
        return len(self._waiting)

    def _take_complete(self) -> Capability | None:
        """The least complete time's, looking past times that are not.

        In a partial order a later one in the heap may be complete before its
        first, so this scans; with totally ordered times it looks at one.
        """
        passed = []
        found = None
        while self._heap:
            entry = heapq.heappop(self._heap)
            if self._is_complete(entry[1]):
                found = self._waiting.pop(entry[1])
                break
            passed.append(entry)
            if self._total:
                break
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return found

    def _is_complete(self, time: Any) -> bool:
        return not any(frontier.less_equal(time) for frontier in self._frontiers)
