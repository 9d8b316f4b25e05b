"""Figures of a worker, read from outside at one moment: counts, frontiers, what is held.

All are plain values, by the addresses of `watched_structure`. Counts are totals since the dataflow
was built: the engine keeps them, and what reads them makes rates of two readings.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.operator import Operator
from pointstamp.metrics.peak_memory import peak_bytes
from pointstamp.metrics.resident_memory import resident_bytes
from pointstamp.runtime.diagnostics import _doing
from pointstamp.runtime.watched_samples import _READING, WorkerSamples
from pointstamp.runtime.watched_structure import WatchedScope

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

N_TIMES = 8
"""So many times of one operator, and rounds of one loop, are written down."""

N_ATTEMPTS = 5


def figures_of(worker: Worker, samples: WorkerSamples, since_s: float) -> dict[str, Any]:
    """What a worker's dataflows have done, and what they wait for.

    Parameters
    ----------
    since_s : float
        Of the segments of its timeline and of latencies, those that ended after that moment.
    """
    samples.forget(worker)
    found: dict[str, Any] = {
        "worker": worker.index,
        "peers": worker.peers,
        "doing": _doing(worker),
        "n_steps": worker.n_steps,
        "samples": dict(samples.n_samples),
        "lines": [[address, line, n] for (address, line), n in samples.lines.most_common(500)],
        "segments": [each for each in list(samples.segments) if each[1] > since_s],
        "latencies": [each for each in list(samples.latencies) if each[0] > since_s],
        "n_ended": samples.n_ended,
        "streams": {},
        "operators": {},
        "dataflows": [],
        "loops": [],
        "arrangements": [],
        "checkpoints": _checkpoints(worker),
    }
    for dataflow in list(worker._dataflows.values()):
        for _ in range(N_ATTEMPTS):  # it may go on meanwhile
            with suppress(*_READING):
                _read_dataflow(worker, dataflow, samples, found)
                break
    return found


def process_figures() -> dict[str, Any]:
    """Of this process: its memory in bytes, now and at most."""
    found = {"process": os.getpid(), "peak_bytes": peak_bytes()}
    if (resident := resident_bytes()) is not None:
        found["memory_bytes"] = resident
    return found


def _read_dataflow(
    worker: Worker, dataflow: Any, samples: WorkerSamples, found: dict[str, Any]
) -> None:
    scopes = samples.scopes(worker, dataflow)
    address = scopes[0].address
    inputs = [
        {"name": each.name, "time": str(each.time)}
        for each in dataflow.inputs
        if not each.is_closed
    ]
    throttle = dataflow.backpressure
    found["dataflows"].append(
        {
            "address": address,
            "name": dataflow.name,
            "inputs": inputs,
            "is_throttled": throttle is not None and throttle.is_throttled,
        }
    )
    for scope in scopes:
        _read_scope(scope, found)
    for beside in list((dataflow.beside or {}).values()):
        figures = getattr(beside, "figures", None)
        if figures is not None:
            for each in figures():
                found["arrangements"].append({"dataflow": address, **each})


def _read_scope(scope: WatchedScope, found: dict[str, Any]) -> None:
    subgraph, topology = scope.subgraph, scope.subgraph.topology
    held: dict[int, Counter[Any]] = {}
    waiting: Counter[int] = Counter()
    rounds: Counter[Any] = Counter()
    for location, time, count in subgraph.pointstamps():
        node, _, is_target = topology.ports[location]
        held.setdefault(node, Counter())[time] += count
        if is_target:
            waiting[node] += count
            rounds[time] += count
    earliest = _earliest(subgraph.timestamp, held, scope)
    for address, node, child in scope.operators():
        times = held.get(node, Counter())
        if isinstance(child, Operator) or times:
            found["operators"][address] = {
                "waiting": max(0, waiting[node]),
                "held": [[str(time), n] for time, n in islice(times.items(), N_TIMES)],
                "n_held": len(times),
                "is_earliest": isinstance(child, Operator) and any(t in earliest for t in times),
                "taken": _taken(child),
                "is_above": _is_above(child),
            }
    for number, edge in enumerate(subgraph.edges):
        node, port = edge.target
        frontier = subgraph.frontier(node, port)
        found["streams"][f"{scope.address}#{number}"] = {
            "sent": _sent(scope, edge.source),
            "frontier": [str(time) for time in islice(frontier, N_TIMES)],
        }
    # A loop may be in the outermost scope, too: what leads back there closes it.
    if "/" in scope.address or any(0 < e.target[0] <= e.source[0] for e in subgraph.edges):
        going = going_round(subgraph.timestamp, rounds)
        found["loops"].append(
            {
                "address": scope.address,
                "name": subgraph.name,
                "under_way": len(going),
                "rounds": [[str(time), n] for time, n in going[:N_TIMES]],
            }
        )


def going_round(timestamp: Any, rounds: Mapping[Any, int]) -> list[tuple[Any, int]]:
    """The times at which there are records, the least first.

    A receipt may overtake its send: what a worker then counts is below zero, and is no record.

    >>> from pointstamp.progress.timestamp import Int
    >>> going_round(Int, {10: 3, 9: 1, 2: -2})
    [(9, 1), (10, 3)]
    """
    times = sorted((time for time, n in rounds.items() if n > 0), key=timestamp.key)
    return [(time, rounds[time]) for time in times]


def _earliest(timestamp: Any, held: dict[int, Counter[Any]], scope: WatchedScope) -> set[Any]:
    """The times of a scope's pointstamps before which there is none."""
    times = {time for node, counts in held.items() if node for time in counts}
    kept: list[Any] = []
    for time in sorted(times, key=timestamp.key):
        if not any(timestamp.less_equal(other, time) for other in kept):
            kept.append(time)
    return set(kept)


def _sent(scope: WatchedScope, source: tuple[int, int]) -> int | None:
    """Records that a worker has sent at an output; None where only the other side counts them."""
    node, port = source
    child = scope.subgraph.children[node - 1] if node else None
    if isinstance(child, Operator) and port < len(child._outputs):
        return int(child._outputs[port]._tee.n_sent)
    return None


def _taken(child: Any) -> list[int]:
    if not isinstance(child, Operator):
        return []
    return [int(each._queue.n_taken) for each in child._inputs]


def _is_above(child: Any) -> bool:
    """Whether so many batches wait at an input that sources are to wait."""
    return isinstance(child, Operator) and any(
        bool(getattr(each._queue, "_is_above_watermark", False)) for each in child._inputs
    )


def _checkpoints(worker: Worker) -> list[dict[str, Any]]:
    """The snapshots of a worker: the last that was written, and those that are under way."""
    return [
        {
            "epoch": each.epoch,
            "is_done": each.done,
            "is_aligned": each.is_aligned,
            "seconds": each.seconds,
            "began_s": each.began_s,
            "ended_s": each.ended_s,
            **_part_figures(each.part),
        }
        for each in worker._snapshots.recent()
    ]


def _part_figures(part: Any) -> dict[str, Any]:
    """Of what a worker wrote: bytes for this snapshot, bytes in all, and rows by key range."""
    rows: Counter[int] = Counter()
    for table in getattr(part, "tables", {}).values():
        for bin, pieces in table.bins.items():
            rows[bin] += sum(piece.rows for piece in pieces)
    files = getattr(part, "files", {})
    return {
        "bytes": getattr(part, "n_bytes", 0),
        "all_bytes": sum(each.n_bytes for each in files.values()),
        "rows": sorted(rows.items()),
    }
