"""Notifications: be told once when a time is complete.

A notificator keeps capabilities until nothing at or before their time can come
at any of the operator's inputs, and then gives them out, least time first.

Source: timely-dataflow `dataflow/operators/generic/notificator.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier
from pointstamp.errors import CapabilityError
from pointstamp.progress.timestamp import Timestamp


class Notificator:
    """Capabilities that wait for their times to be complete.

    Iterating gives the capabilities whose times are complete now, least first,
    each time once; asking for another while iterating is fine.
    """

    __slots__ = (
        "_early",
        "_first",
        "_first_time",
        "_frontiers",
        "_heap",
        "_is_late",
        "_is_line",
        "_key",
        "_total",
        "_waiting",
        "last_time",
    )

    def __init__(
        self, timestamp: Timestamp, frontiers: Sequence[Frontier], *, early: bool = False
    ) -> None:
        self._key = timestamp.key
        self._is_line = bool(timestamp.total and timestamp.natural)
        self._total = bool(timestamp.total)
        self._frontiers = list(frontiers)
        self._early = early
        """Whether to give out a time as soon as all *before* it are complete."""
        self._waiting: dict[Any, Capability] = {}
        self._heap: list[Any] = []
        """(key, time), or times alone where Python's order of them is the total order."""
        self._first: Capability | None = None
        """In that case the least is here, and not in the other two: often it is the only one."""
        self._first_time: Any = None
        self._is_late = False
        """Whether a time was asked for lately that was complete already."""
        self.last_time: Any = None
        """For error messages: of what was given out last, until there is no more to give."""

    def notify_at(self, capability: Capability) -> None:
        """Keep `capability` until its time is complete. Asking twice is asking once."""
        if not isinstance(capability, Capability):
            raise CapabilityError(
                f"notify_at needs a capability to keep, and was given {capability!r} "
                f"({type(capability).__name__}); retain() one from what was received, or have one "
                "delayed()"
            )
        self._keep(capability)

    def _keep(self, capability: Capability) -> None:
        capability.check("ask for a notification")
        time = capability.time
        if self._is_line:
            self._keep_in_line(time, capability)
        else:
            self._put(time, capability)
        # The frontiers stay as they are until the operator returns.
        self._is_late = self._is_late or self._is_complete(time)

    def _keep_in_line(self, time: Any, capability: Capability) -> None:
        first = self._first
        if first is not None:
            if time == self._first_time:
                if first is not capability:
                    capability.drop()
                return
            if time > self._first_time:
                self._put(time, capability)
                return
            self._put(self._first_time, first)
        self._first = capability
        self._first_time = time

    def _put(self, time: Any, capability: Capability) -> None:
        if time not in self._waiting:
            self._waiting[time] = capability
            heappush(self._heap, time if self._is_line else (self._key(time), time))
        elif self._waiting[time] is not capability:
            capability.drop()

    def overlooked(self) -> bool:
        """Whether a time was asked for lately that is complete, and not given out.

        No frontier will move for it, so its operator must be run again for it.
        """
        if not self._is_late:
            return False
        self._is_late = False
        if self._is_line:
            return self._first is not None and self._is_complete(self._first_time)
        if self._total:  # then one tells of all
            return bool(self._heap) and self._is_complete(self._heap[0][1])
        for time in self._waiting:
            if self._is_complete(time):
                return True
        return False

    def __iter__(self) -> Notificator:
        """The capabilities of the complete times."""
        return self

    def __next__(self) -> Capability:
        found = self._take_complete()
        if found is None:
            self.last_time = None
            raise StopIteration
        self.last_time = found.time
        return found

    def __len__(self) -> int:
        """How many times are waited for."""
        return len(self._waiting) + (self._first is not None)

    def _take_complete(self) -> Capability | None:
        """The least complete time's, looking past times that are not.

        In a partial order a later one in the heap may be complete before its
        first, so this scans; with totally ordered times it looks at one.
        """
        heap = self._heap
        if self._is_line:
            first = self._first
            if first is None or not self._is_complete(self._first_time):
                return None
            if heap:
                self._first_time = heappop(heap)
                self._first = self._waiting.pop(self._first_time)
            else:
                self._first = None
            return first
        if self._total:
            if not heap or not self._is_complete(heap[0][1]):
                return None
            return self._waiting.pop(heappop(heap)[1])
        passed = []
        found = None
        while heap:
            entry = heappop(heap)
            if self._is_complete(entry[1]):
                found = self._waiting.pop(entry[1])
                break
            passed.append(entry)
        for entry in passed:
            heappush(heap, entry)
        return found

    def _is_complete(self, time: Any) -> bool:
        for frontier in self._frontiers:
            if frontier.less_than(time) if self._early else frontier.less_equal(time):
                return False
        return True
