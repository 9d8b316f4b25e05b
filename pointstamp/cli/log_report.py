"""`pointstamp log`: what a run did, from the log that its workers wrote.

The sums are made in `observability/summary.py`, the critical path in `path.py`; here they
become tables for people, or one JSON object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pointstamp.cli.request import Json
from pointstamp.cli.streams import answering

if TYPE_CHECKING:
    from rich.table import Table

    from pointstamp.observability.path import Critical, Epoch
    from pointstamp.observability.summary import RunSummary
    from pointstamp.observability.timeline import Timeline

MAX_PARTS = 30
"""How many parts of a critical path are shown one by one; JSON has all."""

PLAIN_WIDTH = 200
"""Columns where there is no terminal, which would say how many it has."""

Folder = Annotated[
    str, typer.Argument(metavar="FILE", help="The folder that was given as log=ps.Log(...).")
]
EpochTime = Annotated[
    str | None,
    typer.Option(
        "--epoch", metavar="TIME", help="Whose critical path.", show_default="the slowest"
    ),
]
Top = Annotated[int, typer.Option(metavar="N", min=1, help="How many operators and channels.")]
Slots = Annotated[
    int, typer.Option(metavar="N", min=1, max=100_000, help="Into how many slots time is cut.")
]


def log(
    file: Folder,
    epoch: EpochTime = None,
    top: Top = 20,
    slots: Slots = 72,
    json: Json = False,
) -> None:
    """Sum up the log of a run: a timeline, time per operator, records per channel, a path."""
    from pointstamp.observability.reading import read
    from pointstamp.observability.summary import summarize
    from pointstamp.observability.timeline import timeline

    run = read(file)
    summary = summarize(run, epoch)
    drawn = timeline(run, summary.operators, slots)
    for what in summary.missing:
        print(f"pointstamp: {what}", file=sys.stderr)
    with answering():
        if json:
            print(as_json(file, summary, drawn))
        else:
            print_summary(file, summary, drawn, top)


def as_json(file: str, summary: RunSummary, drawn: Timeline | None) -> str:
    """All that is known, on one line."""
    from dataclasses import asdict
    from json import dumps

    workers = [
        {**asdict(each), "rest": each.rest, "idle_share": round(each.idle_share, 4)}
        for each in summary.workers
    ]
    epochs = [{**asdict(each), "latency": each.latency} for each in summary.epochs]
    known = {**asdict(summary), "workers": workers, "epochs": epochs}
    known["timeline"] = asdict(drawn) if drawn else None
    return dumps({"command": "log", "log": file, **known})


def print_summary(file: str, summary: RunSummary, drawn: Timeline | None, top: int) -> None:
    """Tables, for people."""
    from pointstamp.cli.tables import console_for

    console = console_for(sys.stdout)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    for part in _parts(file, summary, drawn, top):
        console.print(part, soft_wrap=isinstance(part, str))


def duration(n: float, unit: str) -> str:
    """A time for people.

    >>> duration(1_234_567, "ns"), duration(950, "ns"), duration(61e9, "ns")
    ('1.235 ms', '0.9 us', '61.000 s')
    >>> duration(12, "ticks")
    '12 ticks'
    """
    if unit != "ns":
        return f"{n:,.0f} {unit}"
    for least, name, digits in ((1e9, "s", 3), (1e6, "ms", 3)):
        if n >= least:
            return f"{n / least:,.{digits}f} {name}"
    return f"{n / 1e3:,.1f} us"


def _parts(
    file: str, summary: RunSummary, drawn: Timeline | None, top: int
) -> Iterator[str | Table]:
    """Headings and tables, in order."""
    from pointstamp.cli.tables import counted, table

    took = partial(duration, unit=summary.unit)
    yield f"{file}: {counted(len(summary.workers), 'worker')}"
    yield table(
        summary.workers,
        {
            "worker": lambda each: each.worker,
            "elapsed": lambda each: took(each.elapsed),
            "operators": lambda each: took(each.operators),
            "scopes": lambda each: took(each.scopes),
            "parked": lambda each: took(each.parked),
            "rest": lambda each: took(each.rest),
            "idle": lambda each: f"{each.idle_share:.0%}",
            "parks": lambda each: each.parks,
            "progress sent": lambda each: each.progress_sent,
            "received": lambda each: each.progress_received,
        },
    )
    if drawn is not None:
        yield from _timeline(drawn, took)
    active = [each for each in summary.operators if each.activations]
    yield f"\nself time per operator{_of(top, len(active))}"
    yield table(
        active[:top],
        {
            "time": lambda each: took(each.self_time),
            "share": lambda each: f"{each.share:.1%}",
            "activations": lambda each: each.activations,
            "operator": lambda each: (
                each.name if each.kind == "operator" else f"{each.name} ({each.kind})"
            ),
            "address": lambda each: each.address,
        },
        texts=2,
    )
    channels = sorted(summary.channels, key=lambda each: -each.records)
    yield f"\nrecords per channel{_of(top, len(channels))}"
    yield table(
        channels[:top],
        {
            "records": lambda each: each.records,
            "batches": lambda each: each.batches,
            "to other workers": lambda each: each.to_others,
            "not taken": lambda each: each.records - each.received,
            "channel": lambda each: f"{each.source} -> {each.target}",
            "pact": lambda each: each.pact,
        },
        texts=2,
    )
    yield _epochs(summary.epochs, took)
    if summary.critical is not None:
        yield from _path(summary.critical, took)
    if summary.texts:
        yield "\ntexts of the program"
        yield from (f"  worker {worker}  {text}" for worker, text in summary.texts)


def _timeline(drawn: Timeline, took: Callable[[float], str]) -> Iterator[str]:
    """A row for each worker, and what its letters mean."""
    from pointstamp.cli.tables import counted
    from pointstamp.observability.timeline import OTHER, PARKED, REST, SCOPES

    n_slots = len(drawn.rows[0].marks)
    yield f"\ntimeline, {counted(n_slots, 'slot')} of {took(drawn.slot)}, by what took most of each"
    for row in drawn.rows:
        yield f"  worker {row.worker:<3} |{row.marks}|"
    seen = set("".join(row.marks for row in drawn.rows))
    known = {
        **drawn.letters,
        OTHER: "other operators",
        SCOPES: "scopes: progress",
        PARKED: "parked",
        REST: "the rest: the program, communication, logging",
    }
    yield "  " + "   ".join(f"{mark} {name}" for mark, name in known.items() if mark in seen)


def _epochs(epochs: Sequence[Epoch], took: Callable[[float], str]) -> str:
    from statistics import median

    latencies = [each.latency for each in epochs]
    if not latencies:
        return "\nno epoch was seen from its input to a probe"
    return (
        f"\n{len(latencies):,} epochs, from input to probe: "
        f"median {took(median(latencies))}, slowest {took(max(latencies))}"
    )


def _path(critical: Critical, took: Callable[[float], str]) -> Iterator[str | Table]:
    from pointstamp.cli.tables import table

    epoch = critical.epoch
    yield f"\ncritical path of epoch {epoch.time} of {epoch.dataflow}, {took(epoch.latency)}"
    if len(critical.parts) > MAX_PARTS:
        yield table(
            critical.by_name()[:MAX_PARTS],
            {
                "time": lambda each: took(each[3]),
                "parts": lambda each: each[2],
                "kind": lambda each: each[0],
                "what": lambda each: each[1],
            },
            texts=2,
        )
        return
    yield table(
        critical.parts,
        {
            "after": lambda part: took(part.began - epoch.began),
            "for": lambda part: took(part.duration),
            "worker": lambda part: part.worker,
            "kind": lambda part: part.kind,
            "what": lambda part: part.name,
        },
        texts=2,
    )


def _of(top: int, n: int) -> str:
    return f", the first {top} of {n}" if n > top else ""
