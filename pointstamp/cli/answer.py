"""From a request to what is printed: the search, what came of it, and the summary.

Answers go to standard output, so that they can be piped; nothing else does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from rich.table import Column, Table

from pointstamp.cli.display import Display, console_for, table_of
from pointstamp.cli.progress import Report
from pointstamp.cli.request import Request
from pointstamp.cli.search import Search, merged_top, total
from pointstamp.cli.streams import answering
from pointstamp.formats.parquet import write_parquet


def answer(asked: Search, request: Request) -> None:
    """Answer a request: print the answer, and then the summary."""
    if request.on == "spark":
        from pointstamp.cli.on_spark import search
    else:
        from pointstamp.cli.local import search
    outcome = Outcome(asked, request)
    search(Display(request.command, request.workers), outcome)
    outcome.seconds["total"] = sum(outcome.seconds.values())
    with answering():
        for line in [dumps(outcome.as_values())] if request.json else _answer_lines(outcome):
            print(line)
    if not request.json:
        _print_summary(outcome)


@dataclass
class Outcome:
    """What came of a request, and how long each phase took, from when this was made.

    Attributes
    ----------
    names : by vertex, where vertices have names
    notes : what was taken to mean something, where it could have meant something else
    reports : of each worker; empty where none could be had
    first : the least matches, as vertices or their names, in the order of the query's columns
    seconds : by phase, in order; the last is the total
    """

    search: Search
    request: Request
    n_vertices: int = 0
    n_edges: int = 0
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    n_matches: int = 0
    first: list[list[int | str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def end(self, phase: str, at: float | None = None) -> None:
        """End a phase, now or `at` a time of the machine's monotonic clock."""
        ended = time.monotonic() if at is None else at
        self.seconds[phase] = ended - self._began - sum(self.seconds.values())

    def take(self, batches: Iterable[Any]) -> None:
        """Take the batches of the result: add up, choose the first, or write the file."""
        columns, names = self.search.columns, self.names
        if self.request.out is not None:
            self.n_matches = write_parquet(self.request.out, batches, columns, names)
            self.end("write")
        elif self.search.wanted == "count":
            self.n_matches = sum(map(total, batches))
        else:
            rows, self.n_matches = merged_top(batches, len(columns))
            self.first = [[names[v] if names else v for v in row] for row in rows.tolist()]

    def as_values(self) -> dict[str, Any]:
        """Everything that is known, for JSON."""
        request = self.request
        values: dict[str, Any] = {
            "command": request.command,
            "query": self.search.title,
            "source": request.source,
            "on": request.on,
            "workers": request.workers,
            "vertices": self.n_vertices,
            "edges": self.n_edges,
            "matches": self.n_matches,
            "seconds": {phase: round(seconds, 6) for phase, seconds in self.seconds.items()},
            "per_worker": [report.as_values() for report in self.reports],
        }
        if self.notes:
            values["notes"] = self.notes
        if self.search.wanted == "first":
            values |= {"columns": list(self.search.columns), "first": self.first}
        if request.out is not None:
            values["out"] = str(request.out)
        return values


def _answer_lines(outcome: Outcome) -> Iterator[str]:
    """The number, or the first matches: aligned on a terminal, with tabs for programs."""
    search = outcome.search
    if search.wanted == "count":
        yield str(outcome.n_matches)
    if search.wanted != "first":
        return
    rows = [search.columns, *(list(map(str, row)) for row in outcome.first)]
    if sys.stdout is None or not sys.stdout.isatty():
        yield from map("\t".join, rows)
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()
    if outcome.n_matches > len(outcome.first):
        yield f"... and {outcome.n_matches - len(outcome.first):,} more (--out FILE writes all)"


def _print_summary(outcome: Outcome) -> None:
    """The summary, for people."""
    console, request = console_for(sys.stderr), outcome.request
    workers = f"{request.workers} worker{'' if request.workers == 1 else 's'}"
    where = "on Spark" if request.on == "spark" else "on this machine"
    console.print(f"{outcome.search.title} in {request.source}, {workers} {where}", soft_wrap=True)
    grid = Table.grid("", Column(justify="right"), Column(overflow="fold"), padding=(0, 2))
    grid.add_row("  vertices", f"{outcome.n_vertices:,}")
    grid.add_row("  edges", f"{outcome.n_edges:,}")
    grid.add_row("  matches", f"{outcome.n_matches:,}", f"in {request.out}" if request.out else "")
    for phase, seconds in outcome.seconds.items():
        grid.add_row(f"  {phase}", f"{seconds:,.2f} s")
    console.print(grid)
    if outcome.reports:
        console.print(table_of(outcome.reports))
    for note in outcome.notes:
        console.print(f"  note: {note}", soft_wrap=True)
