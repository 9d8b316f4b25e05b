"""The log of a run as a trace of Chrome's format, which Perfetto and chrome://tracing show.

Each worker is a process there, with two tracks. On "worker" its operators, scopes and dataflows
are slices, inside each other as they ran, beside the times it was parked. On "messages" each batch
that is sent or taken is a slice as short as can be drawn, and arrows (flow events) lead from a
sending to each taking of what was sent. Frontiers are counters, one for each input at which they
move, of times that are integers or tuples of them; texts of the program are marks.

Source: the "Trace Event Format" of the Chromium project: complete events (X), flows (s, f),
counters (C), instants (i), metadata (M).
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pointstamp.formats.atomic_file import replacing
from pointstamp.observability.path import sent_and_taken
from pointstamp.observability.reading import LoggedRun, WorkerEvents

TraceEvent = dict[str, Any]

_WORKER, _MESSAGES = 0, 1
"""The tracks of a worker."""

_SHORT = 0.001
"""How long the slice of a message is, in us: a nanosecond."""


def write_trace(run: LoggedRun, path: Path) -> int:
    """Write the trace of a run to a file, whole or not at all; how many events it has.

    Raises
    ------
    FileFormatError
        If it cannot be written.
    """
    n_events = 0
    with replacing(path) as place, place.open("wb") as file:
        file.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        for event in trace_events(run):
            file.write(b",\n" if n_events else b"\n")
            file.write(json.dumps(event).encode())
            n_events += 1
        file.write(b"\n]}\n")
    return n_events


def trace_events(run: LoggedRun) -> Iterator[TraceEvent]:
    """All events of the trace; moments are in us since the first event of the run.

    In a simulation each event is of a moment of its own, which stands for a us.
    """
    spans = [worker.span for worker in run.workers if worker.span is not None]
    first = min((begin for begin, _ in spans), default=0)
    scale = 1e-3 if run.unit == "ns" else 1.0
    drawn = _Drawing(run, first, scale)
    for worker in run.workers:
        yield from drawn.metadata(worker)
        yield from drawn.slices(worker)
        yield from drawn.messages(worker)
        yield from drawn.frontiers(worker)
        yield from drawn.texts(worker)
    yield from drawn.flows()


class _Drawing:
    def __init__(self, run: LoggedRun, first: int, scale: float) -> None:
        self._run = run
        self._first = first
        self._scale = scale
        self._operators: dict[int, tuple[str, str, str]] = {}
        self._channels: dict[int, str] = {}
        for worker in run.workers:
            table = worker["operators"]
            for i, number in enumerate(_ints(table["operator"])):
                about = table["kind"][i], table["name"][i], table["address"][i]
                self._operators.setdefault(number, about)
        for worker in run.workers:
            table = worker["channels"]
            pairs = zip(_ints(table["source"]), _ints(table["target"]), strict=True)
            for number, (source, target) in zip(_ints(table["channel"]), pairs, strict=True):
                self._channels[number] = f"{self._name(source)} -> {self._name(target)}"

    def metadata(self, worker: WorkerEvents) -> Iterator[TraceEvent]:
        """What the tracks are called, in the order of the workers."""
        index = worker.index
        of_process = {"ph": "M", "pid": index, "tid": _WORKER}
        yield {**of_process, "name": "process_name", "args": {"name": f"worker {index}"}}
        yield {**of_process, "name": "process_sort_index", "args": {"sort_index": index}}
        for track, name in ((_WORKER, "worker"), (_MESSAGES, "messages")):
            of_track = {"ph": "M", "pid": index, "tid": track}
            yield {**of_track, "name": "thread_name", "args": {"name": name}}
            yield {**of_track, "name": "thread_sort_index", "args": {"sort_index": track}}

    def slices(self, worker: WorkerEvents) -> Iterator[TraceEvent]:
        """Operators that are active, and parks."""
        table = worker["schedules"]
        rows = zip(*(_ints(table[name]) for name in ("began", "at", "operator")), strict=True)
        # What is around something comes first, where both begin at the same moment.
        for began, at, number in sorted(rows, key=lambda row: (row[0], -row[1])):
            kind, name, address = self._operators.get(number, ("operator", "?", "?"))
            args = {"address": address, "operator": number}
            yield self._slice(worker, name, kind, began, at, args)
        parks = worker["parks"]
        for began, at in zip(_ints(parks["began"]), _ints(parks["at"]), strict=True):
            yield self._slice(worker, "parked", "park", began, at, {})

    def messages(self, worker: WorkerEvents) -> Iterator[TraceEvent]:
        """Batches that are sent and taken."""
        table = worker["messages"]
        names = ("at", "channel", "records", "source", "target", "is_send")
        columns = [_ints(table[name]) for name in names]
        for at, channel, records, source, target, is_send, time in zip(
            *columns, table["time"], strict=True
        ):
            what = f"send to worker {target}" if is_send else f"take from worker {source}"
            yield {
                "ph": "X",
                "name": what,
                "cat": "message",
                "pid": worker.index,
                "tid": _MESSAGES,
                "ts": self._ts(at),
                "dur": _SHORT,
                "args": {
                    "stream": self._channels.get(channel, "?"),
                    "channel": channel,
                    "records": records,
                    "time": time,
                },
            }

    def flows(self) -> Iterator[TraceEvent]:
        """From each sending to each taking of what was sent."""
        for id, (channel, sender, sent, receiver, taken) in enumerate(sent_and_taken(self._run)):
            name = self._channels.get(channel, "?")
            flow = {"name": name, "cat": "message", "id": id, "tid": _MESSAGES}
            yield {**flow, "ph": "s", "pid": sender, "ts": self._ts(sent)}
            yield {**flow, "ph": "f", "bp": "e", "pid": receiver, "ts": self._ts(taken)}

    def frontiers(self, worker: WorkerEvents) -> Iterator[TraceEvent]:
        """The least time at each input, when it has moved."""
        table = worker["frontiers"]
        counts: dict[tuple[int, int], Counter[tuple[int, ...]]] = {}
        names = ("at", "operator", "input", "change")
        rows = list(zip(*(_ints(table[name]) for name in names), table["time"], strict=True))
        for i, (at, operator, port, change, text) in enumerate(rows):
            time = _numbers(text)
            if time is None:
                continue
            held = counts.setdefault((operator, port), Counter())
            held[time] += change
            # What went and what came are events of their own: shown is what there is after all.
            is_last = i + 1 == len(rows) or rows[i + 1][:3] != (at, operator, port)
            least = min((each for each, n in held.items() if n > 0), default=None)
            if not is_last or least is None:
                continue
            _, name, address = self._operators.get(operator, ("operator", "?", "?"))
            series = ["time"] if len(least) == 1 else [f"time[{n}]" for n in range(len(least))]
            yield {
                "ph": "C",
                "name": f"frontier of {name} [{address}.{port}]",
                "pid": worker.index,
                "ts": self._ts(at),
                "args": dict(zip(series, least, strict=True)),
            }

    def texts(self, worker: WorkerEvents) -> Iterator[TraceEvent]:
        """Lines of the program's own."""
        table = worker["texts"]
        for at, text in zip(_ints(table["at"]), table["text"], strict=True):
            place = {"pid": worker.index, "tid": _WORKER, "ts": self._ts(at)}
            yield {"ph": "i", "s": "t", "name": text, "cat": "text", **place}

    def _slice(
        self, worker: WorkerEvents, name: str, kind: str, began: int, at: int, args: TraceEvent
    ) -> TraceEvent:
        return {
            "ph": "X",
            "name": name,
            "cat": kind,
            "pid": worker.index,
            "tid": _WORKER,
            "ts": self._ts(began),
            "dur": round((at - began) * self._scale, 3),
            "args": args,
        }

    def _ts(self, moment: int) -> float:
        return round((moment - self._first) * self._scale, 3)

    def _name(self, operator: int) -> str:
        return self._operators.get(operator, ("operator", "?", "?"))[1]


def _ints(column: Any) -> list[int]:
    numbers: list[int] = np.asarray(column).tolist()
    return numbers


def _numbers(text: str) -> tuple[int, ...] | None:
    """A time that is an integer, or a tuple of integers; None for others.

    >>> _numbers("3"), _numbers("(0, 3)"), _numbers("2024-01-01")
    ((3,), (0, 3), None)
    """
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    numbers = found if isinstance(found, tuple) else (found,)
    return numbers if numbers and all(type(each) is int for each in numbers) else None
