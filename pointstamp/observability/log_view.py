"""The live page's view of a log: the same page after the end, or of a run whose log is written.

Where the log grows it is read again, so far not more often than each `AGAIN_S`, nor for more than
a tenth of the time.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pointstamp.observability.event_types import CROSSINGS
from pointstamp.observability.page_view import across_borders, exchanges, histogram, leads_back
from pointstamp.observability.path import epoch_ends
from pointstamp.observability.reading import (
    LoggedRun,
    WorkerEvents,
    is_written,
    n_bytes_of,
    read,
)
from pointstamp.observability.summary import RunSummary, summarize
from pointstamp.observability.timeline import innermost

AGAIN_S = 2.0
N_BINS = 300
"""The points of a series."""
N_SLOTS = 2_000
"""Of a timeline with more pieces, slots are drawn, each by what took most of it."""
N_ROUNDS = 64

PARKED, PROGRAM, PROGRESS = "parked", "program", "progress"


class LogView:
    """What the page shows of a log.

    Parameters
    ----------
    path : path
        The folder of the log.

    Raises
    ------
    FileFormatError
        If it is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._next_s = 0.0
        self._read()

    def structure(self) -> dict[str, Any]:
        """See `PageSource`."""
        with self._lock:
            return self._drawn.structure

    def view(self) -> dict[str, Any]:
        """See `PageSource`."""
        with self._lock:
            if time.monotonic() >= self._next_s and self._has_changed():
                self._read()
            return self._drawn.view

    def explain(self, address: str) -> dict[str, Any]:
        """See `PageSource`: what the log's last events leave held."""
        with self._lock:
            return self._drawn.explain(address)

    def _has_changed(self) -> bool:
        """Whether it has grown, or the last that wrote to it was killed."""
        is_larger = n_bytes_of(self._path) != self._size
        return is_larger or not (self._drawn.view["is_over"] or is_written(self._path))

    def _read(self) -> None:
        began, self._size = time.monotonic(), n_bytes_of(self._path)
        run = read(self._path)
        self._drawn = DrawnLog(run, summarize(run))
        ended = time.monotonic()
        self._next_s = ended + max(AGAIN_S, 10 * (ended - began))


class DrawnLog:
    """A log as structure and view.

    Parameters
    ----------
    run : LoggedRun
    summary : RunSummary
        Of that run.
    """

    def __init__(self, run: LoggedRun, summary: RunSummary) -> None:
        self._run = run
        self._summary = summary
        self._unit = 1e-9 if run.unit == "ns" else 1.0
        spans = [events.span for events in run.workers if events.span is not None]
        self._first = min((span[0] for span in spans), default=0)
        self._last = max((span[1] for span in spans), default=1)
        self._addresses = {
            each.operator: each.address if each.address != "?" else f"? {each.operator}"
            for each in summary.operators
        }
        self._kinds = {each.operator: each.kind for each in summary.operators}
        self.structure = self._structure()
        self.view = self._view()

    @property
    def _elapsed(self) -> float:
        return max(1, self._last - self._first) * self._unit

    def _seconds(self, moments: Any) -> Any:
        """Moments in seconds since the first."""
        return (np.asarray(moments) - self._first) * self._unit

    # Structure.

    def _structure(self) -> dict[str, Any]:
        inputs, probes = epoch_ends(self._run)
        operators: dict[str, dict[str, Any]] = {}
        streams: dict[int, dict[str, Any]] = {}
        for events in self._run.workers:
            table = events["operators"]
            for i, number in enumerate(np.asarray(table["operator"]).tolist()):
                role = "input" if number in inputs else "probe" if number in probes else ""
                address = table["address"][i]
                operators.setdefault(
                    address,
                    {
                        "address": address,
                        "parent": address.rpartition("/")[0],
                        "name": table["name"][i],
                        "kind": table["kind"][i],
                        "role": role if table["kind"][i] == "operator" else "",
                        "inputs": 0,
                        "outputs": 0,
                        "line": "",
                    },
                )
            for i, number in enumerate(np.asarray(events["channels"]["channel"]).tolist()):
                if number not in streams:
                    streams[number] = self._stream(events, i, number)
        for each in streams.values():
            source, target = operators.get(each["source"]), operators.get(each["target"])
            if source is not None and each["source"] != each["scope"]:
                source["outputs"] = max(source["outputs"], each["source_port"] + 1)
            if target is not None and each["target"] != each["scope"]:
                target["inputs"] = max(target["inputs"], each["target_port"] + 1)
        return {"operators": list(operators.values()), "streams": list(streams.values())}

    def _stream(self, events: WorkerEvents, i: int, number: int) -> dict[str, Any]:
        table = events["channels"]
        scope = self._address(int(table["scope"][i]))
        return {
            "stream": f"{scope}#{number}",
            "channel": number,
            "scope": scope,
            "source": self._address(int(table["source"][i])),
            "source_port": int(table["source_port"][i]),
            "target": self._address(int(table["target"][i])),
            "target_port": int(table["target_port"][i]),
            "pact": table["pact"][i],
        }

    def _address(self, number: int) -> str:
        return self._addresses.get(number, f"? {number}")

    # The view.

    def _view(self) -> dict[str, Any]:
        run, summary = self._run, self._summary
        latencies = histogram([each.latency * self._unit for each in summary.epochs])
        return {
            "mode": "log",
            "title": str(run.path),
            "unit": run.unit,
            "at": self._elapsed,
            "began": self._first * self._unit,
            "is_over": run.is_over,
            "notes": run.missing,
            "operators": self._operators(),
            "streams": self._streams(),
            "series": self._series(),
            "timeline": {
                "from": 0.0,
                "to": self._elapsed,
                "rows": [self._row(events) for events in run.workers],
                "is_sampled": False,
            },
            "critical": self._critical(),
            "critical_note": "no epoch was seen from an input to a probe",
            "latencies": {
                **latencies,
                "rate": len(summary.epochs) / self._elapsed,
                "note": "of all epochs of the log, from the last input to the last probe",
            },
            "workers": self._workers(),
            "exchanges": self._exchanges(),
            "dataflows": [],
            "loops": self._loops(),
            "arrangements": None,
            "checkpoints": None,
            "sampled_every": None,
        }

    def _operators(self) -> dict[str, Any]:
        elapsed = sum(each.elapsed for each in self._summary.workers) or 1
        waiting: Counter[str] = Counter()
        targets = {each["channel"]: each["target"] for each in self.structure["streams"]}
        for channel in self._summary.channels:
            waiting[targets.get(channel.channel, "?")] += max(0, channel.not_taken)
        held = self._held()
        return {
            self._address(each.operator): {
                "share": each.self_time / elapsed,
                "shares": {},
                "seconds": each.self_time * self._unit,
                "activations": each.activations,
                "waiting": waiting[self._address(each.operator)],
                "held": [
                    [time, sum(n.values())]
                    for time, n in list(held.get(each.operator, {}).items())[:8]
                ],
                "is_earliest": bool(held.get(each.operator)),
                "is_above": False,
                "taken": 0,
                "lines": [],
            }
            for each in self._summary.operators
        }

    def _held(self) -> dict[int, dict[str, Counter[int]]]:
        """By operator and time: how many capabilities each worker holds at the end of the log."""
        found: dict[int, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        for events in self._run.workers:
            table = events["capabilities"]
            counts: Counter[tuple[int, str]] = Counter()
            for operator, time_, change in zip(
                np.asarray(table["operator"]).tolist(),
                table["time"],
                np.asarray(table["change"]).tolist(),
                strict=True,
            ):
                counts[operator, time_] += change
            for (operator, time_), count in counts.items():
                if count > 0:
                    found[operator][time_][events.index] = count
        return found

    def _streams(self) -> dict[str, Any]:
        records = {each.channel: each.records for each in self._summary.channels}
        streams = self.structure["streams"]
        counts: dict[str, float | None] = {
            each["stream"]: None
            if each["pact"] in CROSSINGS
            else float(records.get(each["channel"], 0))
            for each in streams
        }
        frontiers = self._frontiers()
        # Of what enters a scope the streams behind it know how much it was.
        inner: dict[tuple[str, int], float] = {}
        for each in streams:
            if each["source"] == each["scope"] and each["pact"] not in CROSSINGS:
                key = each["source"], each["source_port"]
                inner[key] = max(inner.get(key, 0.0), counts[each["stream"]] or 0.0)
        outer: dict[tuple[str, int], float] = {}
        for each in streams:
            if each["pact"] not in CROSSINGS and each["source"] != each["scope"]:
                key = each["source"], each["source_port"]
                outer[key] = max(outer.get(key, 0.0), counts[each["stream"]] or 0.0)
        for each in streams:
            if each["pact"] in CROSSINGS:
                key = each["target"], each["target_port"]
                known = inner if each["pact"] == "enter" else outer
                counts[each["stream"]] = known.get(key)
        totals = across_borders(streams, counts)
        return {
            name: {
                "records": total,
                "rate": total / self._elapsed,
                "frontier": frontiers.get(name, []),
            }
            for name, total in totals.items()
        }

    def _frontiers(self) -> dict[str, list[str]]:
        """By stream, the times that could still come at its end, as far as the log goes."""
        counts: Counter[tuple[str, int, str]] = Counter()
        for events in self._run.workers[:1]:
            table = events["frontiers"]
            for operator, port, time_, change in zip(
                np.asarray(table["operator"]).tolist(),
                np.asarray(table["input"]).tolist(),
                table["time"],
                np.asarray(table["change"]).tolist(),
                strict=True,
            ):
                counts[self._address(operator), port, time_] += change
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        for (address, port, time_), count in counts.items():
            if count > 0:
                found[address, port].append(time_)
        return {
            each["stream"]: found[each["target"], each["target_port"]]
            for each in self.structure["streams"]
            if (each["target"], each["target_port"]) in found
        }

    def _series(self) -> dict[str, Any]:
        edges = np.linspace(0, self._elapsed, N_BINS + 1)
        width = edges[1] - edges[0]
        records = np.zeros(N_BINS)
        for events in self._run.workers:
            table = events["messages"]
            is_send = np.asarray(table["is_send"]).astype(np.bool_)
            at = self._seconds(table["at"])[is_send]
            weights = np.asarray(table["records"])[is_send]
            records += np.histogram(at, edges, weights=weights)[0]
        ended = self._seconds([each.ended for each in self._summary.epochs])
        epochs = np.histogram(ended, edges)[0]
        return {
            "t": ((edges[:-1] + edges[1:]) / 2).tolist(),
            "records": (records / width).tolist(),
            "epochs": (epochs / width).tolist(),
        }

    def _row(self, events: WorkerEvents) -> dict[str, Any]:
        schedules, parks = events["schedules"], events["parks"]
        began, ended, numbers = innermost(
            np.asarray(schedules["began"], np.int64),
            np.asarray(schedules["at"], np.int64),
            np.asarray(schedules["operator"], np.int64),
        )
        codes = [self._address(number) for number in sorted(set(numbers.tolist()))]
        code_of = {number: i for i, number in enumerate(sorted(set(numbers.tolist())))}
        for number, i in code_of.items():
            if self._kinds.get(number) != "operator":
                codes[i] = PROGRESS
        what = np.array([code_of[number] for number in numbers.tolist()], np.int64)
        codes.append(PARKED)
        parked = np.full(len(parks["at"]), len(codes) - 1, np.int64)
        starts = np.concatenate([began, np.asarray(parks["began"], np.int64)])
        stops = np.concatenate([ended, np.asarray(parks["at"], np.int64)])
        what = np.concatenate([what, parked])
        order = np.argsort(starts, kind="stable")
        pieces = self._seconds(starts[order]), self._seconds(stops[order]), what[order]
        if len(starts) > N_SLOTS:
            pieces = _in_slots(*pieces, self._elapsed)
        segments = [
            [round(a, 9), round(b, 9), codes[c]]
            for a, b, c in zip(*(each.tolist() for each in pieces), strict=True)
        ]
        return {"worker": events.index, "segments": segments}

    def _critical(self) -> dict[str, Any] | None:
        critical = self._summary.critical
        if critical is None:
            return None
        parts = critical.parts
        longest = sorted(parts, key=lambda part: -part.duration)[:N_SLOTS]
        return {
            "epoch": critical.epoch.time,
            "dataflow": critical.epoch.dataflow,
            "latency": critical.epoch.latency * self._unit,
            "from": float(self._seconds(critical.epoch.began)),
            "to": float(self._seconds(critical.epoch.ended)),
            "parts": [
                {
                    "kind": part.kind,
                    "name": part.name,
                    "worker": part.worker,
                    "from": float(self._seconds(part.began)),
                    "to": float(self._seconds(part.ended)),
                }
                for part in sorted(longest, key=lambda part: part.began)
            ],
            "sums": [
                {"kind": kind, "name": name, "n": n, "seconds": took * self._unit}
                for kind, name, n, took in critical.by_name()[:20]
            ],
        }

    def _workers(self) -> list[dict[str, Any]]:
        found = []
        taken = self._taken()
        for each in self._summary.workers:
            elapsed = each.elapsed or 1
            n_taken = sum(counts[each.worker] for counts in taken.values())
            found.append(
                {
                    "worker": each.worker,
                    "machine": "",
                    "process": None,
                    "doing": "",
                    "memory": None,
                    "peak": None,
                    "taken": n_taken,
                    "taken_rate": n_taken / (elapsed * self._unit),
                    "parked": each.parked / elapsed,
                    "program": each.rest / elapsed,
                    "progress": each.scopes / elapsed,
                    "operators": each.operators / elapsed,
                }
            )
        return found

    def _taken(self) -> dict[int, Counter[int]]:
        """By channel and worker: how many records were taken."""
        found: dict[int, Counter[int]] = defaultdict(Counter)
        for events in self._run.workers:
            table = events["messages"]
            is_taken = ~np.asarray(table["is_send"]).astype(np.bool_)
            channels = np.asarray(table["channel"])[is_taken]
            records = np.asarray(table["records"])[is_taken]
            for channel in np.unique(channels).tolist():
                found[channel][events.index] += int(records[channels == channel].sum())
        return found

    def _exchanges(self) -> list[dict[str, Any]]:
        taken, indexes = self._taken(), [events.index for events in self._run.workers]
        found = []
        for each in self.structure["streams"]:
            if each["pact"] == "pipeline" or each["pact"] in CROSSINGS or len(indexes) < 2:
                continue
            found.append((each, [taken[each["channel"]][index] for index in indexes]))
        return exchanges(self.structure, found)

    def _loops(self) -> list[dict[str, Any]]:
        """Records by round, of what closes each loop: it is where rounds begin."""
        closes = {
            each["channel"]: each["scope"] for each in self.structure["streams"] if leads_back(each)
        }
        rounds: dict[str, Counter[int]] = defaultdict(Counter)
        for events in self._run.workers:
            table = events["messages"]
            for channel, records, is_send, time_ in zip(
                np.asarray(table["channel"]).tolist(),
                np.asarray(table["records"]).tolist(),
                np.asarray(table["is_send"]).tolist(),
                table["time"],
                strict=True,
            ):
                if is_send and channel in closes and (number := _round_of(time_)) is not None:
                    rounds[closes[channel]][number] += records
        return [
            {
                "address": scope,
                "name": self._name(scope),
                "under_way": None,
                "n_rounds": len(counts),
                "rounds": [[str(number), counts[number]] for number in sorted(counts)[:N_ROUNDS]],
            }
            for scope, counts in rounds.items()
        ]

    def _name(self, address: str) -> str:
        return next(
            (each["name"] for each in self.structure["operators"] if each["address"] == address), ""
        )

    # Explanations.

    def explain(self, address: str) -> dict[str, Any]:
        """What was held at the end of the log, from which there is a way to that operator."""
        held = self._held()
        workers = []
        for events in self._run.workers:
            holders = []
            for number, times in held.items():
                path = self._path(self._address(number), address)
                for time_, counts in times.items():
                    if path and (count := counts.get(events.index, 0)):
                        holders.append(
                            {
                                "text": f"worker {events.index} holds {count} at {time_} for "
                                f"{self._name(self._address(number))!r} at the end of the log",
                                "worker": events.index,
                                "is_here": True,
                                "what": "capability",
                                "time": time_,
                                "count": count,
                                "operator": self._address(number),
                                "path": path,
                            }
                        )
            workers.append({"worker": events.index, "holders": holders, "account": ""})
        return {"operator": address, "at": self._elapsed, "workers": workers}

    def _path(self, source: str, target: str) -> list[str]:
        """The operators on a way, which is a shortest; empty if there is none."""
        before: dict[str, str] = {source: ""}
        work = deque([source])
        while work:
            at = work.popleft()
            if at == target:
                found = [at]
                while before[found[-1]]:
                    found.append(before[found[-1]])
                return found[::-1]
            for each in self._steps(at):
                if each not in before:
                    before[each] = at
                    work.append(each)
        return []

    def _steps(self, address: str) -> Iterator[str]:
        for each in self.structure["streams"]:
            if each["source"] == address:
                yield each["target"]


def _round_of(time_: str) -> int | None:
    """The last part of a time such as "(3, 7)"; where rounds have none of their own, all of it.

    >>> _round_of("(3, 7)"), _round_of("3"), _round_of("2024-01-01")
    (7, 3, None)
    """
    last = time_.rpartition(",")[2].strip(" )")
    return int(last) if last.isdecimal() else None


def _in_slots(began: Any, ended: Any, what: Any, elapsed: float) -> tuple[Any, Any, Any]:
    """Pieces put into slots, each of what took most of it; neighbours that are alike are one."""
    slot = elapsed / N_SLOTS
    n_codes = int(what.max()) + 1
    sums = np.zeros((N_SLOTS, n_codes))
    first = np.minimum((began / slot).astype(np.int64), N_SLOTS - 1)
    last = np.minimum((ended / slot).astype(np.int64), N_SLOTS - 1)
    inside = first == last
    np.add.at(sums, (first[inside], what[inside]), (ended - began)[inside])
    for i in np.flatnonzero(~inside).tolist():
        for number in range(int(first[i]), int(last[i]) + 1):
            start, stop = max(began[i], number * slot), min(ended[i], (number + 1) * slot)
            sums[number, what[i]] += max(0.0, stop - start)
    chosen = np.where(sums.sum(axis=1) > slot / 100, sums.argmax(axis=1), -1)
    starts = np.flatnonzero(np.diff(chosen, prepend=-2))
    stops = np.append(starts[1:], N_SLOTS)
    is_there = chosen[starts] >= 0
    return starts[is_there] * slot, stops[is_there] * slot, chosen[starts][is_there]
