"""`pointstamp log --follow`: the log of a run while it is written, and the sums at its end.

The log is read again when it has grown: each `AGAIN_S`, but for no more than a tenth of the time.
A run is over when no worker writes to it any more: all have ended, or were killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pointstamp.observability.event_types import SUFFIX
from pointstamp.observability.reading import LoggedRun, is_written, n_bytes_of, read
from pointstamp.observability.report import duration
from pointstamp.observability.summary import RunSummary, summarize

AGAIN_S = 1.0


def at_its_end(path: str, show: Callable[[str], None]) -> LoggedRun:
    """The log when the run is over; until then a line is shown for what is new in it.

    One that is not there yet is waited for: the command may be quicker than the workers.
    """
    if not _is_there(path):
        show(f"{path}: no worker has written there yet")
    while not _is_there(path):
        time.sleep(AGAIN_S)
    known, before = -1, None
    while True:
        began, n_bytes = time.monotonic(), n_bytes_of(Path(path))
        if n_bytes != known or not is_written(Path(path)):
            known, run = n_bytes, read(path)
            if run.is_over:
                return run
            now = summarize(run)
            show(progress_line(now, before))
            before = now
        time.sleep(max(AGAIN_S, 9 * (time.monotonic() - began)))


def _is_there(path: str) -> bool:
    """Whether there are events; or something else than a log, which reading refuses.

    A worker makes its folder some time before its first events: without files nothing says yet
    that it still runs.
    """
    return any(Path(path).glob(f"worker-*/*{SUFFIX}")) or Path(path).is_file()


def progress_line(now: RunSummary, before: RunSummary | None) -> str:
    """What has happened between two readings, in a line."""
    elapsed = _elapsed(now)
    passed = elapsed - (0 if before is None else _elapsed(before))
    seen = set() if before is None else {(each.dataflow, each.time) for each in before.epochs}
    parts = [f"{duration(elapsed, now.unit)}: {len(now.epochs):,} epochs"]
    if new := [each for each in now.epochs if (each.dataflow, each.time) not in seen]:
        slowest = max(epoch.latency for epoch in new)
        parts[0] += f", {len(new):,} of them new, of which the slowest took "
        parts[0] += duration(slowest, now.unit)
    records = _records(now) - (0 if before is None else _records(before))
    if passed and now.unit == "ns":
        parts.append(f"{records * 1e9 / passed:,.0f} records/s over all streams")
    took = _times(now)
    if before is not None:
        known = _times(before)
        took = {name: time_ - known.get(name, 0) for name, time_ in took.items()}
    if total := sum(took.values()):
        name = max(took, key=lambda name: took[name])
        parts.append(f"{took[name] / total:.0%} of the time of operators in {name}")
    return "; ".join(parts)


def _elapsed(summary: RunSummary) -> int:
    return max((each.elapsed for each in summary.workers), default=0)


def _records(summary: RunSummary) -> int:
    return sum(each.records for each in summary.channels)


def _times(summary: RunSummary) -> dict[str, int]:
    """How long operators took, by name and place."""
    return {
        f"{each.name} [{each.address}]": each.self_time
        for each in summary.operators
        if each.kind == "operator"
    }
