"""The live page's view of a running program: readings of its workers, and the rates between them.

While something asks, the program is read once in `READ_EVERY_S` at most. Of each reading only
totals are kept, so that a page opened later has a history, and memory is bounded. Where workers no
longer answer the last view stays, and says so.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from pointstamp.errors import CommunicationError
from pointstamp.observability.page_view import READ_EVERY_S, across_borders, exchanges, histogram
from pointstamp.observability.sampled_path import (
    SHORTEST_S,
    SampledEpoch,
    sampled_path,
    slowest,
)
from pointstamp.runtime.watched_program import ReadWorkers
from pointstamp.runtime.watched_samples import BURST_S, EVERY_S, PARKED, PROGRAM, PROGRESS

HISTORY = 600
"""So many readings of totals are kept."""
WINDOW_S = 60.0
"""The timeline and the latencies are of the last minute."""
N_LATENCIES = 20_000

Read = Callable[[ReadWorkers], list[dict[str, Any]] | None]
"""Asks all processes of a program; None or nothing if none answers."""


class LiveView:
    """What the page shows of a program that runs.

    Parameters
    ----------
    read : callable
        Asks its workers.
    title : str
        What the program is called.
    """

    def __init__(self, read: Read, title: str) -> None:
        self._read = read
        self._title = title
        self._lock = threading.Lock()
        self._structure: dict[str, Any] = {"operators": [], "streams": []}
        self._view: dict[str, Any] | None = None
        self._read_s = 0.0
        self._since_s = 0.0
        self._former: dict[str, Any] = {}
        self._former_samples: dict[int, Counter[str]] = {}
        self._segments: dict[int, deque[Any]] = {}
        self._latencies: deque[Any] = deque(maxlen=N_LATENCIES)
        self._series: deque[tuple[float, float, float]] = deque(maxlen=HISTORY)
        self._memory: dict[int, int] = {}

    def structure(self) -> dict[str, Any]:
        """See `PageSource`; of dataflows that are complete it keeps what was there."""
        answers = self._read(ReadWorkers("structure")) or []
        workers = [worker for each in answers for worker in each["workers"]]
        with self._lock:
            if workers:
                self._take_structure(workers)
            elif not self._structure["operators"]:
                raise CommunicationError(
                    "no worker of the program answers: it begins, has ended, or is busy"
                )
            return self._structure

    def view(self) -> dict[str, Any]:
        """See `PageSource`."""
        with self._lock:
            now = time.monotonic()
            if self._view is None or now - self._read_s >= READ_EVERY_S:
                self._read_s = now
                answers = self._read(ReadWorkers("figures", self._since_s)) or []
                if any(each["workers"] for each in answers):
                    self._view = self._drawn(answers)
                elif self._view is not None:
                    self._view = {**self._view, "is_over": True}
                else:
                    raise CommunicationError(
                        "no worker of the program answers: it begins, has ended, or is busy"
                    )
            return self._view

    def explain(self, address: str) -> dict[str, Any]:
        """See `PageSource`."""
        answers = self._read(ReadWorkers("explain", address=address)) or []
        return {
            "operator": address,
            "at": time.time(),
            "workers": [worker for each in answers for worker in each["workers"]],
        }

    def _take_structure(self, workers: list[dict[str, Any]]) -> None:
        known = {each["address"] for each in self._structure["operators"]}
        first = max(workers, key=lambda each: len(each["operators"]))
        new = [each for each in first["operators"] if each["address"] not in known]
        if new:
            names = {each["stream"] for each in self._structure["streams"]}
            streams = [each for each in first["streams"] if each["stream"] not in names]
            self._structure = {
                "operators": [*self._structure["operators"], *new],
                "streams": [*self._structure["streams"], *streams],
            }

    def _drawn(self, answers: list[dict[str, Any]]) -> dict[str, Any]:
        """A view of one reading of all processes."""
        at = max(each["at_s"] for each in answers)
        workers = sorted(
            (worker for each in answers for worker in each["workers"]),
            key=lambda each: int(each["worker"]),
        )
        self._since_s = min(each["at_s"] for each in answers)
        streams, sums = self._streams(workers, at)
        shares = {each["worker"]: self._shares(each) for each in workers}
        operators = _operators(workers, shares)
        for each in workers:
            self._latencies.extend((*latency, each["worker"]) for latency in each["latencies"])
            kept = self._segments.setdefault(each["worker"], deque(maxlen=8192))
            kept.extend(each["segments"])
        n_ended = max((each["n_ended"] for each in workers), default=0)
        epochs_per_s = self._rate("epochs", n_ended, at)
        self._series.append((at, sums["rate"], epochs_per_s))
        self._former_at = at
        return {
            "mode": "live",
            "title": self._title,
            "at": at,
            "is_over": False,
            "notes": [],
            "operators": operators,
            "streams": streams,
            "series": {
                "t": [each[0] for each in self._series],
                "records": [each[1] for each in self._series],
                "epochs": [each[2] for each in self._series],
            },
            "timeline": self._timeline(at),
            "critical": self._critical(at),
            "critical_note": "no epoch of the last minute took the "
            f"{SHORTEST_S * 1e3:.0f} ms that samples need to show its critical path; exact paths "
            "are in a log: run with log=ps.Log(folder), and `pointstamp watch` the folder",
            "latencies": self._latency_view(at, epochs_per_s, workers),
            "workers": [self._worker_view(each, answers, shares) for each in workers],
            "exchanges": self._exchanges(workers),
            "dataflows": workers[0]["dataflows"] if workers else [],
            "loops": _loops(workers),
            "arrangements": _arrangements(workers),
            "checkpoints": _checkpoints(workers, at),
            "sampled_every": EVERY_S,
        }

    def _rate(self, key: str, total: float, at: float) -> float:
        """How much more a second since the last reading; 0 for the first, or after a new start."""
        before = self._former.get(key)
        self._former[key] = total, at
        if before is None or at <= before[1] or total < before[0]:
            return 0.0
        return float((total - before[0]) / (at - before[1]))

    def _streams(
        self, workers: list[dict[str, Any]], at: float
    ) -> tuple[dict[str, Any], dict[str, float]]:
        counts: dict[str, float | None] = {}
        frontiers: dict[str, list[str]] = {}
        for worker in workers:
            for name, each in worker["streams"].items():
                if each["sent"] is None:
                    counts.setdefault(name, None)
                else:
                    counts[name] = (counts.get(name) or 0) + each["sent"]
                frontiers.setdefault(name, each["frontier"])
        known = [each for each in self._structure["streams"] if each["stream"] in counts]
        if len(known) < len(counts):  # a dataflow was built since
            self._take_structure_again()
            known = [each for each in self._structure["streams"] if each["stream"] in counts]
        totals = across_borders(known, counts)
        found: dict[str, dict[str, Any]] = {}
        for name, total in totals.items():
            found[name] = {
                "records": total,
                "rate": self._rate(f"stream {name}", total, at),
                "frontier": frontiers[name],
            }
        own = [
            found[each["stream"]]["rate"] for each in known if counts[each["stream"]] is not None
        ]
        return found, {"rate": sum(own)}

    def _take_structure_again(self) -> None:
        answers = self._read(ReadWorkers("structure")) or []
        workers = [worker for each in answers for worker in each["workers"]]
        if workers:
            self._take_structure(workers)

    def _shares(self, worker: dict[str, Any]) -> dict[str, float]:
        """What a worker was seen at since the last reading, as parts of 1."""
        samples = Counter(worker["samples"])
        before = self._former_samples.get(worker["worker"], Counter())
        self._former_samples[worker["worker"]] = samples
        new = samples - before if samples.total() >= before.total() else samples
        new = new or samples
        total = new.total()
        return {what: n / total for what, n in new.items()} if total else {}

    def _timeline(self, at: float) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for worker, segments in sorted(self._segments.items()):
            while segments and segments[0][1] < at - WINDOW_S:
                segments.popleft()
            rows.append({"worker": worker, "segments": list(segments)})
        first = min((row["segments"][0][0] for row in rows if row["segments"]), default=at)
        return {"from": max(first, at - WINDOW_S), "to": at, "rows": rows, "is_sampled": True}

    def _critical(self, at: float) -> dict[str, Any] | None:
        """The critical path of the slowest epoch of the last minute, as the samples have it."""
        recent = [each for each in self._latencies if each[0] - each[1] > at - WINDOW_S]
        # The worker that saw its end last saw it take as long, at least: most epochs are so short
        # that there is nothing to be compared.
        long = {(each[3], each[4]) for each in recent if each[1] >= SHORTEST_S}
        epoch = slowest(
            SampledEpoch(dataflow, epoch, ended - took, ended, worker)
            for ended, took, _, dataflow, epoch, worker in recent
            if (dataflow, epoch) in long
        )
        if epoch is None:
            return None
        names = {each["address"]: each["name"] for each in self._structure["operators"]}
        rows = {worker: list(segments) for worker, segments in self._segments.items()}
        return sampled_path(epoch, rows, names)

    def _latency_view(
        self, at: float, epochs_per_s: float, workers: list[dict[str, Any]]
    ) -> dict[str, Any]:
        recent = [each for each in self._latencies if each[0] > at - WINDOW_S]
        return {
            **histogram([each[1] for each in recent], [each[2] for each in recent]),
            "rate": epochs_per_s,
            "note": "of the last minute, estimated from samples: epochs that are integers, from "
            "the inputs to the probes of the same worker; short ones are looked at in each step "
            f"for {BURST_S * 1e3:.0f} ms in a second, longer ones each "
            f"{EVERY_S * 1e3:.0f} ms",
        }

    def _worker_view(
        self,
        worker: dict[str, Any],
        answers: list[dict[str, Any]],
        shares: dict[int, dict[str, float]],
    ) -> dict[str, Any]:
        home = next(each for each in answers if worker in each["workers"])
        own = shares[worker["worker"]]
        taken = sum(sum(each["taken"]) for each in worker["operators"].values())
        return {
            "worker": worker["worker"],
            "machine": home["machine"],
            "process": home["process"],
            "doing": worker["doing"],
            "memory": home.get("memory_bytes"),
            "peak": home["peak_bytes"],
            "taken": taken,
            "taken_rate": self._rate(f"taken by {worker['worker']}", taken, home["at_s"]),
            "parked": own.get(PARKED, 0.0),
            "program": own.get(PROGRAM, 0.0),
            "progress": own.get(PROGRESS, 0.0),
            "operators": sum(
                share for what, share in own.items() if what not in (PARKED, PROGRAM, PROGRESS)
            ),
        }

    def _exchanges(self, workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What each worker took of the streams that spread records over workers."""
        found = []
        for stream in self._structure["streams"]:
            if stream["pact"] in ("pipeline", "enter", "leave") or len(workers) < 2:
                continue
            taken = []
            for worker in workers:
                each = worker["operators"].get(stream["target"], {"taken": []})["taken"]
                taken.append(
                    each[stream["target_port"]] if len(each) > stream["target_port"] else 0
                )
            found.append((stream, taken))
        return exchanges(self._structure, found)


def _operators(
    workers: list[dict[str, Any]], shares: dict[int, dict[str, float]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for worker in workers:
        for address, each in worker["operators"].items():
            known = found.setdefault(
                address,
                {
                    "share": 0.0,
                    "shares": {},
                    "waiting": each["waiting"],
                    "held": each["held"],
                    "is_earliest": False,
                    "is_above": False,
                    "taken": 0,
                    "lines": [],
                },
            )
            share = shares[worker["worker"]].get(address, 0.0)
            known["share"] += share / len(workers)
            known["shares"][worker["worker"]] = round(share, 4)
            known["is_earliest"] |= each["is_earliest"]
            known["is_above"] |= each["is_above"]
            known["taken"] += sum(each["taken"])
        lines: dict[str, list[Any]] = {}
        for address, line, n in worker["lines"]:
            lines.setdefault(address, []).append([line, n, worker["worker"]])
        for address, some in lines.items():
            if address in found:
                found[address]["lines"] += some[:3]
    return found


def _loops(workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What goes round in each loop, by time, as the worker that knows most has it."""
    found: dict[str, dict[str, Any]] = {}
    for worker in workers:
        for each in worker["loops"]:
            known = found.get(each["address"])
            if known is None or each["under_way"] > known["under_way"]:
                found[each["address"]] = each
    return list(found.values())


def _arrangements(workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sums over all workers of each arrangement, by its place among those of its worker."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for worker in workers:
        seen: Counter[Any] = Counter()
        for each in worker["arrangements"]:
            what = each["dataflow"], each["columns"], tuple(each["key"])
            seen[what] += 1
            known = found.setdefault(
                (*what, seen[what]),
                {**each, **dict.fromkeys(("updates", "bytes", "batches", "apart", "merging"), 0)},
            )
            for name in ("updates", "bytes", "batches", "apart", "merging"):
                known[name] += each[name]
    return list(found.values())


def _checkpoints(workers: list[dict[str, Any]], at: float) -> list[dict[str, Any]]:
    """Snapshots by epoch: complete when the last worker's part is written."""
    found: dict[int, dict[str, Any]] = {}
    for worker in workers:
        for each in worker["checkpoints"]:
            known = found.setdefault(
                each["epoch"],
                {
                    "epoch": each["epoch"],
                    "parts": 0,
                    "is_done": True,
                    "bytes": 0,
                    "all_bytes": 0,
                    "duration": 0.0,
                    "age": None,
                    "rows": {},
                },
            )
            known["parts"] += each["is_done"]
            known["is_done"] &= each["is_done"]
            known["bytes"] += each["bytes"]
            known["all_bytes"] += each["all_bytes"]
            for bin, rows in each["rows"]:
                known["rows"][bin] = known["rows"].get(bin, 0) + rows
            if each["is_done"]:
                known["duration"] = max(known["duration"], each["ended_s"] - each["began_s"])
                age = at - each["ended_s"]
                known["age"] = age if known["age"] is None else min(known["age"], age)
            else:
                known["duration"] = max(known["duration"], at - each["began_s"])
    for each in found.values():
        each["of"] = len(workers)
        each["is_done"] &= each["parts"] == len(workers)
    return sorted(found.values(), key=lambda each: -each["epoch"])
