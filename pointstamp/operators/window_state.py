"""Open windows: the records of windows that are not complete; numbers and containers only.

Fixed windows are stored by their end, the records of all keys together. Sessions are stored by
key; a batch is cut into stretches without a gap first, so that what is done one by one is done
per stretch and not per record. What is stored of records, and what is made of them in the end, is
up to a window function (`window_functions.py`).

Nothing here knows a capability, a frontier or a clock: bounds are event times as int64.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import count, pairwise
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from pointstamp.containers import kind_of
from pointstamp.containers.event_times import Ints, group_numbers, keys_of
from pointstamp.containers.keys import canonical_key
from pointstamp.containers.registry import n_records
from pointstamp.operators.window_assigners import Sessions, Sliding, span_number

COMBINE_FROM = 1 << 14
"""How many stored records of a window are worth making fewer of."""

TOGETHER = 1 << 16
"""How many stored records are enough to be taken out at a time."""


class Storing(Protocol):
    """What a window stores of its records; the part of a window function that is needed here."""

    def prepare(self, side: int, batch: Any, times: Ints) -> Any:
        """What is stored of a batch, a container, or None for what is in no window."""

    def combine(self, stored: Any) -> Any:
        """The same in fewer records, where that can be."""


class Pane:
    """The records of one window: of all keys, or of one if it is a session.

    Attributes
    ----------
    key
        Of a session.
    parts : list of list of containers
        What is stored, of each side.
    """

    __slots__ = ("_n_combined", "_n_records", "end", "is_over", "key", "parts", "start")

    def __init__(self, key: Any, start: int, end: int, n_sides: int) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.parts: list[list[Any]] = [[] for _ in range(n_sides)]
        self.is_over = False
        """Whether it became part of another."""
        self._n_records = 0
        self._n_combined = 0

    def add(self, side: int, part: Any, storing: Storing) -> None:
        """Store one more part."""
        parts = self.parts[side]
        parts.append(part)
        self._n_records += n_records(part)
        if self._n_records >= max(COMBINE_FROM, 2 * self._n_combined):
            for own in self.parts:
                if own:
                    own[:] = [storing.combine(kind_of(own[0]).concat(own))]
            self._n_records = sum(n_records(p) for own in self.parts for p in own)
            self._n_combined = self._n_records

    @property
    def n_records(self) -> int:
        """How many records are stored."""
        return self._n_records

    def absorb(self, other: Pane) -> None:
        """Take over what another has, and its time."""
        self.start = min(self.start, other.start)
        self.end = max(self.end, other.end)
        for own, more in zip(self.parts, other.parts, strict=True):
            own += more
        # It may be known where its end was for as long as an earlier window is open.
        other.parts.clear()
        self._n_records += other._n_records
        self._n_combined += other._n_combined
        other.is_over = True


Tagged = tuple[Any, Any]
"""Which window, and a container: what outlasts the program."""


class OpenWindows(Protocol):
    """Windows that are not complete."""

    def add(self, side: int, batch: Any, times: Ints) -> None:
        """Put records that are on time into their windows."""

    def least_end(self) -> int | None:
        """Where the first window ends; None without any."""

    def pop(self, last: int) -> list[Pane]:
        """Those that end by `last`, first those that end first; not all if they are large."""

    def stored(self) -> Iterator[Tagged]:
        """Each window, as a tag and a container."""

    def restore(self, tag: Any, part: Any) -> None:
        """One of those, or a part of it."""


def open_windows(windows: Sliding | Sessions, keys: list[Any], storing: Storing) -> OpenWindows:
    """No windows yet, of records of one or several sides with a key each."""
    make = OpenSessions if isinstance(windows, Sessions) else OpenFixedWindows
    return make(windows, keys, storing)  # type: ignore[arg-type]  # each is made of its own kind


class OpenFixedWindows:
    """Tumbling and sliding windows that are open."""

    def __init__(self, windows: Sliding, keys: list[Any], storing: Storing) -> None:
        self._windows = windows
        self._size = span_number(windows.size)
        self._n_sides = len(keys)
        self._storing = storing
        self._panes: dict[int, Pane] = {}
        self._ends: list[int] = []

    def add(self, side: int, batch: Any, times: Ints) -> None:
        """See `OpenWindows`."""
        records, starts = self._windows.windows_of(times)
        if not len(records):
            return
        order = np.argsort(starts, kind="stable")
        records, starts = records[order], starts[order]
        take = kind_of(batch).take
        cuts = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1, append=starts[-1:] + 1))
        for first, after in pairwise(cuts.tolist()):
            chosen = records[first:after]
            part = self._storing.prepare(side, take(batch, chosen), times[chosen])
            if part is not None:
                self._pane(int(starts[first]) + self._size).add(side, part, self._storing)

    def least_end(self) -> int | None:
        """See `OpenWindows`."""
        return self._ends[0] if self._ends else None

    def pop(self, last: int) -> list[Pane]:
        """See `OpenWindows`."""
        done, n = [], 0
        while self._ends and self._ends[0] <= last and n < TOGETHER:
            done.append(self._panes.pop(heapq.heappop(self._ends)))
            n += done[-1].n_records
        return done

    def stored(self) -> Iterator[Tagged]:
        """See `OpenWindows`."""
        for end, pane in self._panes.items():
            for side, parts in enumerate(pane.parts):
                yield from (((side, end), part) for part in parts)

    def restore(self, tag: tuple[int, int], part: Any) -> None:
        """See `OpenWindows`."""
        side, end = tag
        self._pane(end).add(side, part, self._storing)

    def _pane(self, end: int) -> Pane:
        if end not in self._panes:
            self._panes[end] = Pane(None, end - self._size, end, self._n_sides)
            heapq.heappush(self._ends, end)
        return self._panes[end]


class _SessionsOfKey:
    """The open sessions of one key, in the order of time; no two of them touch.

    Those that are over are the first, and stay for a while: to remove each of many alone would
    move all others.
    """

    __slots__ = ("n_over", "panes")

    def __init__(self) -> None:
        self.panes: list[Any] = []
        """None for those that are over."""
        self.n_over = 0

    def touched(self, start: int, end: int) -> slice:
        """Where those are that touch a stretch of time."""
        first = bisect_right(self.panes, start, self.n_over, key=_END)
        return slice(first, bisect_left(self.panes, end, first, key=_START))

    def drop_first(self) -> bool:
        """The first is over; whether there are others."""
        self.panes[self.n_over] = None
        self.n_over += 1
        if 2 * self.n_over >= len(self.panes):
            del self.panes[: self.n_over]
            self.n_over = 0
        return bool(self.panes)


_START, _END = attrgetter("start"), attrgetter("end")


class OpenSessions:
    """Sessions that are open, by key."""

    def __init__(self, windows: Sessions, keys: list[Any], storing: Storing) -> None:
        self._gap = span_number(windows.gap)
        self._keys = keys
        self._storing = storing
        self._sessions: dict[Any, _SessionsOfKey] = {}
        self._ends: list[tuple[int, int, Pane]] = []
        """A heap of each session, by where it ended when it began: it may end later by now."""
        self._numbers = count()

    def add(self, side: int, batch: Any, times: Ints) -> None:
        """See `OpenWindows`."""
        of = self._keys[side]
        groups = group_numbers(batch, of, "Window")
        order = np.lexsort((times, groups))
        times, groups = times[order], groups[order]
        # As uint64, since from one end of int64 to the other is more than int64 holds.
        gaps = np.diff(times.view(np.uint64))
        is_cut = (np.diff(groups) != 0) | (gaps >= np.uint64(self._gap))
        cuts = [0, *(np.flatnonzero(is_cut) + 1).tolist(), len(times)]
        take = kind_of(batch).take
        keys = keys_of(take(batch, order[cuts[:-1]]), of)
        for key, (first, after) in zip(keys, pairwise(cuts), strict=True):
            # Copies: a slice would keep the whole batch for as long as its session is open.
            stretch = take(batch, order[first:after])
            part = self._storing.prepare(side, stretch, times[first:after])
            if part is not None:
                self._put(key, int(times[first]), int(times[after - 1]) + self._gap, side, part)

    def least_end(self) -> int | None:
        """See `OpenWindows`."""
        while self._ends:
            end, number, pane = self._ends[0]
            if pane.is_over:
                heapq.heappop(self._ends)
            elif pane.end > end:
                heapq.heapreplace(self._ends, (pane.end, number, pane))
            else:
                return end
        return None

    def pop(self, last: int) -> list[Pane]:
        """See `OpenWindows`."""
        done, n = [], 0
        while n < TOGETHER and (end := self.least_end()) is not None and end <= last:
            pane = heapq.heappop(self._ends)[2]
            if not self._sessions[pane.key].drop_first():
                del self._sessions[pane.key]
            done.append(pane)
            n += pane.n_records
        return done

    def stored(self) -> Iterator[Tagged]:
        """See `OpenWindows`."""
        for of_key in self._sessions.values():
            for pane in of_key.panes[of_key.n_over :]:
                for side, parts in enumerate(pane.parts):
                    yield from (((side, pane.start, pane.end, pane.key), part) for part in parts)

    def restore(self, tag: tuple[int, int, int, Any], part: Any) -> None:
        """See `OpenWindows`."""
        side, start, end, key = tag
        # A NaN that was stored is another object than those that come.
        self._put(canonical_key(key), start, end, side, part)

    def _put(self, key: Any, start: int, end: int, side: int, part: Any) -> None:
        """Make one session of a stretch of records and those that it touches."""
        known = self._sessions.get(key)
        if known is None:
            known = self._sessions[key] = _SessionsOfKey()
        places = known.touched(start, end)
        touched = known.panes[places]
        if touched:
            whole = touched[0]
            whole.start = min(whole.start, start)
            whole.end = max(whole.end, end)
            for pane in touched[1:]:
                whole.absorb(pane)
            known.panes[places] = [whole]
        else:
            whole = Pane(key, start, end, len(self._keys))
            known.panes[places] = [whole]
            heapq.heappush(self._ends, (end, next(self._numbers), whole))
        whole.add(side, part, self._storing)
