"""Notifications: an operator is called once for each time that is complete.

A notificator keeps capabilities until nothing at or before their time can come
at any of the operator's inputs, and then gives them out, least time first.

Source: timely-dataflow `dataflow/operators/generic/notificator.rs`; the requirement beside
the capability is Naiad's (SOSP 2013, section 2.2: `NotifyAt` with a guarantee time and a
capability time).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier
from pointstamp.errors import CapabilityError
from pointstamp.progress.timestamp import Timestamp


class Notificator:
    """Capabilities that wait for their times to be complete.

    Iterating gives the capabilities whose times are complete now, least first,
    each time once; asking for another while iterating is fine. `counted` also gives how
    often each was asked for.
    """

    __slots__ = (
        "_early",
        "_first",
        "_first_time",
        "_frontiers",
        "_heap",
        "_is_late",
        "_is_line",
        "_is_natural",
        "_key",
        "_repeats",
        "_required",
        "_timestamp",
        "_total",
        "_waiting",
        "last_time",
    )

    def __init__(
        self, timestamp: Timestamp, frontiers: Sequence[Frontier], *, early: bool = False
    ) -> None:
        self._timestamp = timestamp
        self._key = timestamp.key
        self._is_natural = bool(timestamp.natural)
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
        self._repeats: dict[Any, int] = {}
        """How often each time was asked for again while it waited."""
        self._required: dict[Any, list[Capability]] = {}
        """By the time that has to be complete: capabilities for later times than that."""
        self.last_time: Any = None
        """For error messages: of what was given out last, until there is no more to give."""

    def notify_at(self, capability: Capability, requirement: Any = None) -> None:
        """Keep `capability` until its time is complete. Asking twice is asking once.

        Parameters
        ----------
        capability : Capability
            The notificator owns it from now on, until it gives it out.
        requirement : optional
            The time that has to be complete, where that is not the capability's own but one
            before it: an operator that answers for `requirement` at a later time need
            not hold the times in between back. Each such request is given out.

        Raises
        ------
        CapabilityError
            If it is no capability, or was dropped, or if its time is not at or after
            `requirement`.
        """
        if not isinstance(capability, Capability):
            raise CapabilityError(
                f"notify_at needs a capability to keep, and was given {capability!r} "
                f"({type(capability).__name__}); retain() one from what was received, or have one "
                "delayed()"
            )
        if requirement is None:
            self._keep(capability)
        else:
            self._keep_until(self._timestamp.check(requirement), capability)

    def pending(self) -> list[tuple[Any, int]]:
        """(time that has to be complete, how often it was asked for), least first.

        Those whose times are complete and that were not given out yet are among them.

        >>> from pointstamp.dataflow.capability import CapabilityCounts
        >>> from pointstamp.progress.timestamp import Int
        >>> counts = CapabilityCounts("sums", 0, Int, lambda: None)
        >>> notificator = Notificator(Int, [])
        >>> for time in (5, 3, 5):
        ...     notificator.notify_at(counts.add(time))
        >>> notificator.pending()
        [(3, 1), (5, 2)]
        >>> [(capability.time, n) for capability, n in notificator.counted()]
        [(3, 1), (5, 2)]
        """
        waiting = [*self._waiting] if self._first is None else [self._first_time, *self._waiting]
        counts = {time: 1 + self._repeats.get(time, 0) for time in waiting}
        for time, capabilities in self._required.items():
            counts[time] = counts.get(time, 0) + len(capabilities)
        return [(time, counts[time]) for time in sorted(counts, key=self._key)]

    def counted(self) -> Iterator[tuple[Capability, int]]:
        """As iterating, with how often each was asked for."""
        while (found := self._take_next()) is not None:
            self.last_time = found.time
            yield found, 1 + self._taken_repeats(found.time)
        self.last_time = None

    def _keep_until(self, requirement: Any, capability: Capability) -> None:
        capability.check("ask for a notification")
        if not self._timestamp.less_equal(requirement, capability.time):
            raise CapabilityError(
                f"notify_at cannot wait for {requirement} with {capability!r}, which is held until "
                "then: its time must be at or after the one that is waited for"
            )
        if requirement == capability.time:
            self._keep(capability)
            return
        self._required.setdefault(requirement, []).append(capability)
        self._is_late = self._is_late or self._is_complete(requirement)

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
                self._repeat(time, first, capability)
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
            if self._is_line:
                heappush(self._heap, time)
            else:
                heappush(self._heap, (time if self._is_natural else self._key(time), time))
        else:
            self._repeat(time, self._waiting[time], capability)

    def _repeat(self, time: Any, waiting: Capability, capability: Capability) -> None:
        """Count another request for a time that is waited for already."""
        self._repeats[time] = self._repeats.get(time, 0) + 1
        if waiting is not capability:
            capability.drop()

    def overlooked(self) -> bool:
        """Whether a time was asked for lately that is complete, and not given out.

        No frontier will move for it, so its operator must be run again for it.
        """
        if not self._is_late:
            return False
        self._is_late = False
        if self._required and self._least_required() is not None:
            return True
        if self._is_line:
            return self._first is not None and self._is_complete(self._first_time)
        if self._total:  # then the least stands for all
            return bool(self._heap) and self._is_complete(self._heap[0][1])
        for time in self._waiting:
            if self._is_complete(time):
                return True
        return False

    def __iter__(self) -> Notificator:
        """The capabilities of the complete times."""
        return self

    def __next__(self) -> Capability:
        found = self.next_complete()
        if found is None:
            raise StopIteration
        return found

    def next_complete(self) -> Capability | None:
        """The capability of the least complete time, which is the caller's now, or None."""
        found = self._take_next()
        if found is None:
            self.last_time = None
            return None
        self.last_time = found.time
        if self._repeats:
            self._taken_repeats(found.time)
        return found

    def _taken_repeats(self, time: Any) -> int:
        """How often a time that was given out was asked for again."""
        if time in self._waiting or (self._first is not None and time == self._first_time):
            return 0  # it was given out for a requirement, and is itself waited for
        return int(self._repeats.pop(time, 0))

    def __len__(self) -> int:
        """How many times are waited for."""
        own = len(self._waiting) + (self._first is not None)
        return own + sum(map(len, self._required.values()))

    def _take_next(self) -> Capability | None:
        """The least that is complete, be it of a requirement or of a capability's own time."""
        if not self._required:
            return self._take_complete()
        least = self._least_required()
        found = self._take_complete()
        if least is None or (found is not None and self._key(found.time) <= self._key(least)):
            return found
        if found is not None:  # its turn comes later
            if self._is_line:
                self._keep_in_line(found.time, found)
            else:
                self._put(found.time, found)
        capabilities = self._required[least]
        taken = capabilities.pop(0)
        if not capabilities:
            del self._required[least]
        return taken

    def _least_required(self) -> Any:
        """The least requirement that is complete; None if none is."""
        return next(filter(self._is_complete, sorted(self._required, key=self._key)), None)

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
        if not heap:
            return None
        if self._is_complete(heap[0][1]):
            return self._waiting.pop(heappop(heap)[1])
        if self._total or len(heap) == 1:
            return None
        passed = [heappop(heap)]
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
