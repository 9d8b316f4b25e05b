"""From a request to what is printed.

Answers go to standard output, so that they can be piped; nothing else does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pointstamp.cli.request import Request, RunsOn
from pointstamp.cli.streams import answering

if TYPE_CHECKING:
    from pointstamp.cli.outcome import Outcome


def answer(request: Request) -> None:
    """Answer a request: print the answer, and then the summary."""
    request.check()
    outcome = _outcome(request)
    with answering():
        if request.json:
            from pointstamp.cli.outcome import as_json

            print(json.dumps(as_json(request, outcome)))
            return
        for line in _answer_lines(request, outcome):
            print(line)
    _print_summary(request, outcome)


def _outcome(request: Request) -> Outcome:
    # Rich and Arrow are imported when a request has turned out to make sense.
    from pointstamp.cli.display import Display

    display = Display(request.command, request.workers)
    if request.on is RunsOn.SPARK:
        from pointstamp.cli import on_spark

        return on_spark.answer(request, display)
    from pointstamp.cli import local

    return local.answer(request, display)


def _answer_lines(request: Request, outcome: Outcome) -> Iterator[str]:
    """The number, or the first matches: aligned on a terminal, with tabs for programs."""
    if request.wanted == "count":
        yield str(outcome.matches)
    if request.wanted != "first":
        return
    rows = [[*request.query.columns], *([str(x) for x in row] for row in outcome.first_named())]
    if sys.stdout is None or not sys.stdout.isatty():
        yield from map("\t".join, rows)
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()
    if outcome.matches > len(outcome.first):
        yield f"... and {outcome.matches - len(outcome.first):,} more (--out FILE writes all)"


def _print_summary(request: Request, outcome: Outcome) -> None:
    """The summary, for people."""
    from rich.table import Table
    from rich.text import Text

    from pointstamp.cli.display import table_of
    from pointstamp.cli.tables import console_for, counted

    console, facts = console_for(sys.stderr), outcome.facts
    where = "on Spark" if request.on is RunsOn.SPARK else "on this machine"
    workers = counted(request.workers, "worker")
    console.print(f"{request.query.title} in {request.source}, {workers} {where}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    for name, value, note in (
        ("vertices", f"{facts.vertices:,}", ""),
        ("edges", f"{facts.edges:,}", ""),
        ("matches", f"{outcome.matches:,}", f"in {request.out}" if request.out else ""),
        *((phase, f"{seconds:,.2f} s", "") for phase, seconds in outcome.seconds.items()),
    ):
        grid.add_row(f"  {name}", value, Text(note))
    console.print(grid)
    if outcome.reports:
        console.print(table_of(outcome.reports))
    for note in facts.notes:
        console.print(f"  note: {note}", soft_wrap=True)
