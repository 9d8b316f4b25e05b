"""`pointstamp log`: what a run did, from the log that its workers wrote.

The sums are made in `observability/summary.py`, the critical path in `path.py`; here they
become tables for people, or one JSON object.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from pointstamp.cli import streams

if TYPE_CHECKING:
    from rich.console import Console

    from pointstamp.observability.path import Critical
    from pointstamp.observability.summary import RunSummary

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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def log(file: Folder, epoch: EpochTime = None, top: Top = 20, json: Json = False) -> None:
    """Sum up the log of a run: time per operator, records per channel, a critical path."""
    from pointstamp.errors import UsageError
    from pointstamp.observability.reading import read
    from pointstamp.observability.summary import summarize

    try:
        summary = summarize(read(file), epoch)
    except UsageError as error:
        print(f"pointstamp: {error}", file=sys.stderr)
        raise typer.Exit(streams.MISUSED) from None
    for what in summary.missing:
        print(f"pointstamp: {what}", file=sys.stderr)
    try:
        if json:
            print(as_json(file, summary), flush=True)
        else:
            print_summary(file, summary, top, sys.stdout)
            sys.stdout.flush()
    except OSError as error:
        raise typer.Exit(streams.unwritten(error)) from None


def as_json(file: str, summary: RunSummary) -> str:
    """All that is known, on one line."""
    from dataclasses import asdict
    from json import dumps

    workers = [
        {**asdict(each), "rest": each.rest, "idle_share": round(each.idle_share, 4)}
        for each in summary.workers
    ]
    epochs = [{**asdict(each), "latency": each.latency} for each in summary.epochs]
    known = {**asdict(summary), "workers": workers, "epochs": epochs}
    return dumps({"command": "log", "log": file, **known})


def print_summary(file: str, summary: RunSummary, top: int, out: IO[str]) -> None:
    """Tables, for people."""
    console = _console(out)
    _print_workers(console, file, summary)
    _print_operators(console, summary, top)
    _print_channels(console, summary, top)
    _print_epochs(console, summary)
    if summary.critical is not None:
        _print_path(console, summary.critical, summary.unit)
    if summary.texts:
        console.print("\ntexts of the program", soft_wrap=True)
        for worker, text in summary.texts:
            console.print(f"  worker {worker}  {text}", soft_wrap=True)


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


def _console(out: IO[str]) -> Console:
    from pointstamp.cli.display import console_for

    console = console_for(out)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def _print_workers(console: Console, file: str, summary: RunSummary) -> None:
    n = len(summary.workers)
    console.print(f"{file}: {n} worker{'s' if n != 1 else ''}", soft_wrap=True)
    rows = [
        (
            str(each.worker),
            *(
                duration(time, summary.unit)
                for time in (each.elapsed, each.operators, each.scopes, each.parked, each.rest)
            ),
            f"{each.idle_share:.0%}",
            f"{each.parks:,}",
            f"{each.progress_sent:,}",
            f"{each.progress_received:,}",
        )
        for each in summary.workers
    ]
    headings = (
        "worker", "elapsed", "operators", "scopes", "parked", "rest", "idle", "parks",
        "progress sent", "received",
    )  # fmt: skip
    _print_table(console, headings, rows)


def _print_operators(console: Console, summary: RunSummary, top: int) -> None:
    shown = [each for each in summary.operators if each.activations]
    console.print(f"\nself time per operator{_of(top, len(shown))}", soft_wrap=True)
    rows = [
        (
            duration(each.self_time, summary.unit),
            f"{each.share:.1%}",
            f"{each.activations:,}",
            each.name if each.kind == "operator" else f"{each.name} ({each.kind})",
            each.address,
        )
        for each in shown[:top]
    ]
    _print_table(console, ("time", "share", "activations", "operator", "address"), rows, texts=2)


def _print_channels(console: Console, summary: RunSummary, top: int) -> None:
    shown = sorted(summary.channels, key=lambda each: -each.records)
    console.print(f"\nrecords per channel{_of(top, len(shown))}", soft_wrap=True)
    rows = [
        (
            f"{each.records:,}",
            f"{each.batches:,}",
            f"{each.to_others:,}",
            f"{each.records - each.received:,}",
            f"{each.source} -> {each.target}",
            each.pact,
        )
        for each in shown[:top]
    ]
    headings = ("records", "batches", "to other workers", "not taken", "channel", "pact")
    _print_table(console, headings, rows, texts=2)


def _print_epochs(console: Console, summary: RunSummary) -> None:
    if not summary.epochs:
        console.print("\nno epoch was seen from its input to a probe", soft_wrap=True)
        return
    from statistics import median

    latencies = [each.latency for each in summary.epochs]
    console.print(
        f"\n{len(latencies):,} epochs, from input to probe: "
        f"median {duration(median(latencies), summary.unit)}, "
        f"slowest {duration(max(latencies), summary.unit)}",
        soft_wrap=True,
    )


def _print_path(console: Console, critical: Critical, unit: str) -> None:
    epoch = critical.epoch
    console.print(
        f"\ncritical path of epoch {epoch.time} of {epoch.dataflow}, "
        f"{duration(epoch.latency, unit)}",
        soft_wrap=True,
    )
    if len(critical.parts) > MAX_PARTS:
        rows = [
            (duration(time, unit), f"{n:,}", kind, name)
            for kind, name, n, time in critical.by_name()[:MAX_PARTS]
        ]
        _print_table(console, ("time", "parts", "kind", "what"), rows, texts=2)
        return
    parts = [
        (
            duration(part.began - epoch.began, unit),
            duration(part.duration, unit),
            str(part.worker),
            part.kind,
            part.name,
        )
        for part in critical.parts
    ]
    _print_table(console, ("after", "for", "worker", "kind", "what"), parts, texts=2)


def _of(top: int, n: int) -> str:
    return f", the first {top} of {n}" if n > top else ""


def _print_table(
    console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 0
) -> None:
    """A table; all columns are numbers, but for the last `texts`."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, heading in enumerate(headings):
        is_text = i >= len(headings) - texts
        justify: Any = "left" if is_text else "right"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=not is_text)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
