"""From a request to what is printed: the search, its answer, and the summary.

Answers go to standard output, so that they can be piped; nothing else does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from json import dumps

from rich.table import Table
from rich.text import Text

from pointstamp.cli.display import Display, table_of
from pointstamp.cli.outcome import Outcome
from pointstamp.cli.request import Request, RunsOn
from pointstamp.cli.streams import answering
from pointstamp.cli.tables import console_for, counted


def answer(request: Request) -> None:
    """Answer a request: print the answer, and then the summary."""
    display, outcome = Display(request.command, request.workers), Outcome(request)
    if request.on is RunsOn.SPARK:
        from pointstamp.cli.on_spark import search
    else:
        from pointstamp.cli.local import search
    search(display, outcome)
    outcome.seconds["total"] = sum(outcome.seconds.values())
    with answering():
        for line in [dumps(outcome.known())] if request.json else _answer_lines(outcome):
            print(line)
    if not request.json:
        _print_summary(outcome)


def _answer_lines(outcome: Outcome) -> Iterator[str]:
    """The number, or the first matches: aligned on a terminal, with tabs for programs."""
    request = outcome.request
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


def _print_summary(outcome: Outcome) -> None:
    """The summary, for people."""
    console, request, facts = console_for(sys.stderr), outcome.request, outcome.facts
    where = "on Spark" if request.on is RunsOn.SPARK else "on this machine"
    workers = counted(request.workers, "worker")
    console.print(f"{request.query.title} in {request.source}, {workers} {where}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    grid.add_row("  vertices", f"{facts.vertices:,}")
    grid.add_row("  edges", f"{facts.edges:,}")
    place = Text(f"in {request.out}" if request.out else "")
    grid.add_row("  matches", f"{outcome.matches:,}", place)
    for phase, seconds in outcome.seconds.items():
        grid.add_row(f"  {phase}", f"{seconds:,.2f} s")
    console.print(grid)
    if outcome.reports:
        console.print(table_of(outcome.reports))
    for note in facts.notes:
        console.print(f"  note: {note}", soft_wrap=True)
