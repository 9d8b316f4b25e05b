"""What a log says, as headings, lines and tables for people, and as one object for programs.

The sums are made in `summary.py`, the critical path in `path.py`, the timeline in `timeline.py`;
how tables are drawn is the business of what shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pointstamp.observability.path import Critical
from pointstamp.observability.summary import RunSummary
from pointstamp.observability.timeline import OTHER, PARKED, REST, SCOPES, Timeline

MAX_PARTS = 30
"""How many parts of a critical path are shown one by one."""

_MEANINGS = {
    OTHER: "other operators",
    SCOPES: "scopes: progress",
    PARKED: "parked",
    REST: "the rest: the program, communication, logging",
}

Took = Callable[[float], str]
"""A time for people."""


@dataclass(frozen=True)
class ReportTable:
    """Rows of numbers, and of texts in the last `n_texts` columns."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    n_texts: int = 0


def as_values(summary: RunSummary, drawn: Timeline | None) -> dict[str, Any]:
    """All that is known, as JSON has it."""
    return {
        **asdict(summary),
        "workers": [
            {**asdict(each), "rest": each.rest, "idle_share": round(each.idle_share, 4)}
            for each in summary.workers
        ],
        "epochs": [{**asdict(each), "latency": each.latency} for each in summary.epochs],
        "timeline": asdict(drawn) if drawn else None,
    }


def report(
    name: str, summary: RunSummary, drawn: Timeline | None, top: int
) -> Iterator[str | ReportTable]:
    """Lines and tables, in order; of operators and channels the `top` first."""

    def took(n: float) -> str:
        return duration(n, summary.unit)

    workers = summary.workers
    yield f"{name}: {len(workers)} worker{'' if len(workers) == 1 else 's'}"
    times = ("elapsed", "operators", "scopes", "parked", "rest")
    yield ReportTable(
        ["worker", *times, "idle", "parks", "progress sent", "received"],
        [
            [
                each.worker,
                *(took(getattr(each, time)) for time in times),
                f"{each.idle_share:.0%}",
                *(each.parks, each.progress_sent, each.progress_received),
            ]
            for each in workers
        ],
    )
    if drawn is not None:
        yield from _timeline(drawn, took)
    active = [each for each in summary.operators if each.activations]
    yield f"\nself time per operator{_of(top, len(active))}"
    yield ReportTable(
        ["time", "share", "activations", "operator", "address"],
        [
            [took(each.self_time), f"{each.share:.1%}", each.activations, each.title, each.address]
            for each in active[:top]
        ],
        n_texts=2,
    )
    channels = sorted(summary.channels, key=lambda each: -each.records)
    yield f"\nrecords per channel{_of(top, len(channels))}"
    yield ReportTable(
        ["records", "batches", "to other workers", "not taken", "channel", "pact"],
        [
            [each.records, each.batches, each.to_others, each.not_taken, each.title, each.pact]
            for each in channels[:top]
        ],
        n_texts=2,
    )
    latencies = [each.latency for each in summary.epochs]
    yield (
        f"\n{len(latencies):,} epochs, from input to probe: "
        f"median {took(median(latencies))}, slowest {took(max(latencies))}"
        if latencies
        else "\nno epoch was seen from its input to a probe"
    )
    if summary.critical is not None:
        yield from _path(summary.critical, took)
    if summary.texts:
        yield "\ntexts of the program"
        yield from (f"  worker {worker}  {text}" for worker, text in summary.texts)


def duration(n: float, unit: str) -> str:
    """A time for people.

    >>> duration(1_234_567, "ns"), duration(950, "ns"), duration(61e9, "ns")
    ('1.235 ms', '0.9 us', '61.000 s')
    >>> duration(12, "ticks")
    '12 ticks'
    """
    if unit != "ns":
        return f"{n:,.0f} {unit}"
    for least, name in ((1e9, "s"), (1e6, "ms")):
        if n >= least:
            return f"{n / least:,.3f} {name}"
    return f"{n / 1e3:,.1f} us"


def _timeline(drawn: Timeline, took: Took) -> Iterator[str]:
    """A row for each worker, and what its letters mean."""
    n_slots = len(drawn.rows[0].marks)
    slots = f"{n_slots} slot{'' if n_slots == 1 else 's'} of {took(drawn.slot)}"
    yield f"\ntimeline, {slots}, by what took most of each"
    for row in drawn.rows:
        yield f"  worker {row.worker:<3} |{row.marks}|"
    seen = set("".join(row.marks for row in drawn.rows))
    known = {**drawn.letters, **_MEANINGS}
    yield "  " + "   ".join(f"{mark} {name}" for mark, name in known.items() if mark in seen)


def _path(critical: Critical, took: Took) -> Iterator[str | ReportTable]:
    epoch, parts = critical.epoch, critical.parts
    yield f"\ncritical path of epoch {epoch.time} of {epoch.dataflow}, {took(epoch.latency)}"
    if len(parts) > MAX_PARTS:
        alike = critical.by_name()[:MAX_PARTS]
        rows = [[took(time), n, kind, name] for kind, name, n, time in alike]
        yield ReportTable(["time", "parts", "kind", "what"], rows, n_texts=2)
        return
    each = [
        [took(part.began - epoch.began), took(part.duration), part.worker, part.kind, part.name]
        for part in parts
    ]
    yield ReportTable(["after", "for", "worker", "kind", "what"], each, n_texts=2)


def _of(top: int, n: int) -> str:
    return f", the first {top} of {n}" if n > top else ""
