"""The critical path of an epoch of a running program, estimated from samples.

The exact one (`path`) follows messages, which only a log has. A running program is looked at now
and then: what each worker is in, and which epochs have ended. From that the path is found
backwards, from the worker that saw the end last. As long as that worker was in an operator, or in
the program's own code, that is the path. Where it waited, something of another worker was missing:
the path goes on to the worker that was at work last until then. Where none was, it is a wait.

So what was waited for is known as exactly as the samples are close, and only of epochs that are
longer than a few of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pointstamp.runtime.watched_samples import EVERY_S, PARKED, PROGRAM, PROGRESS, Segment

SHORTEST_S = 3 * EVERY_S
"""Epochs that took less have no path: they were looked at twice at most."""

_WAITS = (PARKED, PROGRESS)


@dataclass(frozen=True)
class SampledEpoch:
    """An epoch as one worker has seen it; moments are seconds since 1970."""

    dataflow: str
    epoch: int
    began: float
    ended: float
    worker: int


def slowest(epochs: Iterable[SampledEpoch]) -> SampledEpoch | None:
    """The epoch that took longest, from when the last worker left it until the last saw its end.

    Returns
    -------
    SampledEpoch, optional
        With the worker that saw its end last; None if none took `SHORTEST_S`.

    >>> found = slowest([SampledEpoch("d", 1, 0.0, 3.0, 0), SampledEpoch("d", 1, 0.5, 2.9, 1)])
    >>> found.began, found.ended, found.worker
    (0.5, 3.0, 0)
    """
    whole: dict[tuple[str, int], SampledEpoch] = {}
    for each in epochs:
        key = each.dataflow, each.epoch
        known = whole.get(key, each)
        last = max(known, each, key=lambda one: one.ended)
        began = max(known.began, each.began)
        whole[key] = SampledEpoch(each.dataflow, each.epoch, began, last.ended, last.worker)
    found = max(whole.values(), key=lambda one: one.ended - one.began, default=None)
    return None if found is None or found.ended - found.began < SHORTEST_S else found


def sampled_path(
    epoch: SampledEpoch, rows: Mapping[int, Sequence[Segment]], names: Mapping[str, str]
) -> dict[str, Any]:
    """The path of an epoch, as the page draws it.

    Parameters
    ----------
    rows : mapping
        By worker: what it was seen in, one after the other.
    names : mapping
        Of operators, by their addresses.
    """
    parts = _SampledWalk(rows, names, epoch.began).back(epoch.worker, epoch.ended)
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for part in parts:
        key = part["kind"], part["name"]
        n, seconds = sums.get(key, (0, 0.0))
        sums[key] = n + 1, seconds + part["to"] - part["from"]
    longest = sorted(sums.items(), key=lambda each: -each[1][1])
    return {
        "epoch": str(epoch.epoch),
        "dataflow": epoch.dataflow,
        "latency": epoch.ended - epoch.began,
        "from": epoch.began,
        "to": epoch.ended,
        "parts": parts,
        "sums": [
            {"kind": kind, "name": name, "n": n, "seconds": seconds}
            for (kind, name), (n, seconds) in longest
        ],
        "note": f"Estimated from what workers were seen in each {EVERY_S * 1e3:g} ms; with "
        "log=ps.Log(folder) it is exact.",
    }


class _SampledWalk:
    """Goes back along the path, to the beginning of the epoch."""

    def __init__(
        self, rows: Mapping[int, Sequence[Segment]], names: Mapping[str, str], began: float
    ) -> None:
        self._rows = rows
        self._ends = {worker: [each[1] for each in row] for worker, row in rows.items()}
        self._names = names
        self._began = began
        self._parts: list[dict[str, Any]] = []

    def back(self, worker: int, moment: float) -> list[dict[str, Any]]:
        """The parts, in the order of time."""
        while moment > self._began:
            since, what = self._at(worker, moment)
            since = max(since, self._began)
            if what not in _WAITS:
                self._add(what, worker, since, moment)
                moment = since
                continue
            other = self._last_at_work(worker, since, moment)
            if other is None:
                self._add(what, worker, since, moment)
                moment = since
            else:
                worker, until = other
                self._add("", worker, until, moment)
                moment = until
        self._parts.reverse()
        return self._parts

    def _at(self, worker: int, moment: float) -> tuple[float, str]:
        """Since when, and in what, a worker was just before a moment; parked where not known."""
        row, i = self._rows.get(worker, ()), bisect_left(self._ends.get(worker, []), moment)
        if i < len(row) and row[i][0] < moment:
            return row[i][0], row[i][2]
        return (row[i - 1][1] if i else self._began), PARKED

    def _last_at_work(self, worker: int, since: float, moment: float) -> tuple[int, float] | None:
        """Which other worker was at work last in this time, and until when; in operators first."""
        found: list[tuple[float, bool, int]] = []
        for other, row in self._rows.items():
            i = bisect_left(self._ends[other], moment)
            for began, ended, what in reversed(row[: i + 1]):
                if ended <= since:
                    break
                if began < moment and what not in _WAITS and other != worker:
                    found.append((min(ended, moment), what != PROGRAM, other))
                    break
        if not found:
            return None
        last = max(ended for ended, _, _ in found)
        # What was seen in the same look happened at the same time.
        close = [each for each in found if each[0] > last - EVERY_S]
        ended, _, other = max(close, key=lambda each: (each[1], each[0], -each[2]))
        return other, ended

    def _add(self, what: str, worker: int, began: float, ended: float) -> None:
        if ended <= began:
            return
        kind, name = "operator", self._names.get(what, what)
        if what in (PARKED, PROGRESS, PROGRAM):
            kind, name = "worker", what
        elif not what:
            kind, name = "message", ""
        self._parts.append(
            {"kind": kind, "name": name, "worker": worker, "from": began, "to": ended}
        )
