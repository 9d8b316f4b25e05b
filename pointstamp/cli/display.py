"""What people see: progress while it works, then a summary, both on stderr.

On a terminal, a table that is drawn over and over, with the seconds that have passed,
and then vanishes; elsewhere, a line when counts have changed, every few seconds at most, so
that a log stays readable, and now and then one that says that they have not: some steps
take long, and have nothing to count meanwhile.
Answers go to stdout, so that they can be piped; nothing else does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pointstamp.cli.outcome import Outcome, Request, Wanted
from pointstamp.cli.progress_reporter import Report
from pointstamp.cli.progress_server import ProgressServer

LINE_EVERY_S = 2.0
SIGN_OF_LIFE_EVERY_S = 10.0
FRAMES_PER_S = 8

_COLUMNS = ("edges", "prefixes", "found")
_HEADINGS = {"edges": "edges read", "prefixes": "prefixes extended", "found": "found"}


def console_for(file: IO[str]) -> Console:
    """A console that shows text as it is.

    Names of files and patterns have brackets and colons in them, which are no markup.
    """
    return Console(file=file, highlight=False, markup=False, emoji=False)


class Display:
    """Shows what is going on."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._status = ""
        self._title = title
        self._console = console or console_for(sys.stderr)
        self._began = time.monotonic()
        self._n_read = 0
        self._reports: list[Report] = []
        self._last_line = self._began
        self._last_counts = ""

    @contextmanager
    def working(self, status: str) -> Iterator[Display]:
        """Show progress meanwhile."""
        self.now(status)
        if not self._console.is_terminal:
            yield self
            return
        with Live(
            get_renderable=self._drawn,
            console=self._console,
            refresh_per_second=FRAMES_PER_S,
            transient=True,
        ):
            yield self

    def now(self, status: str) -> None:
        """Say what is being done from here on."""
        self._status = status
        if not self._console.is_terminal:
            self.print_line(status)

    def print_line(self, what: str) -> None:
        """Print a line that stays."""
        self._last_line = time.monotonic()
        elapsed = self._last_line - self._began
        self._console.print(f"{self._title} {elapsed:6.1f} s  {what}", soft_wrap=True)

    def update(self, server: ProgressServer) -> None:
        """Take the latest from the workers; called often."""
        self._reports = server.reports()
        self._maybe_print_line()

    def reading(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches; shows how many edges have been read, here."""
        for batch in batches:
            self._n_read += batch.num_rows
            self._maybe_print_line()
            yield batch

    def _counts(self) -> str:
        """All counts in a line."""
        counts = {_HEADINGS["edges"]: self._n_read}
        for name in _COLUMNS:
            heading = _HEADINGS[name]
            reported = sum(getattr(report, name) for report in self._reports)
            counts[heading] = max(counts.get(heading, 0), reported)
        return ", ".join(f"{heading} {n:,}" for heading, n in counts.items() if n)

    # Not on a terminal.

    def _maybe_print_line(self) -> None:
        since = time.monotonic() - self._last_line
        if self._console.is_terminal or since < LINE_EVERY_S:
            return
        counts = self._counts()
        if counts and counts != self._last_counts:
            self._last_counts = counts
            self.print_line(f"{self._status}: {counts}{self._found_per_worker()}")
        elif since >= SIGN_OF_LIFE_EVERY_S:
            self.print_line(f"{self._status}: still at it, {counts or 'nothing to count yet'}")

    def _found_per_worker(self) -> str:
        found = [f"{report.found:,}" for report in self._reports]
        return f" ({' + '.join(found)})" if len(found) > 1 and any(map(_is_busy, found)) else ""

    # On a terminal.

    def _drawn(self) -> Group:
        elapsed = time.monotonic() - self._began
        head = Spinner("dots", Text(f"{self._title}: {self._status}, {elapsed:.1f} s"))
        if not any(report.edges or report.prefixes or report.found for report in self._reports):
            return Group(head, Text(f"  {self._counts()}"))
        return Group(head, _table_of(self._reports))


def _is_busy(found: str) -> bool:
    return found != "0"


def _table_of(reports: list[Report]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("  worker", justify="right")
    shown = [name for name in _COLUMNS if any(getattr(report, name) for report in reports)]
    for name in shown:
        table.add_column(_HEADINGS[name], justify="right")
    table.add_column("peak memory", justify="right")
    for report in reports:
        counts = [f"{getattr(report, name):,}" for name in shown]
        table.add_row(str(report.worker), *counts, megabytes(report.peak_bytes))
    return table


def megabytes(n_bytes: int) -> str:
    """Bytes for people.

    >>> megabytes(123_456_789)
    '123 MB'
    """
    return f"{n_bytes / 1e6:,.0f} MB"


# When it is done.


def print_summary(request: Request, outcome: Outcome, console: Console | None = None) -> None:
    """The summary, for people."""
    console = console or console_for(sys.stderr)
    facts = outcome.facts
    where = "on Spark" if request.on == "spark" else "on this machine"
    workers = f"{request.workers} worker{'s' if request.workers > 1 else ''}"
    console.print(
        f"{request.query.title} in {request.source.title}, {workers} {where}", soft_wrap=True
    )
    rows = [
        ("vertices", f"{facts.vertices:,}", ""),
        ("edges", f"{facts.edges:,}", ""),
        ("matches", f"{outcome.matches:,}", f"in {request.out}" if request.out else ""),
        *((phase, f"{seconds:,.2f} s", "") for phase, seconds in outcome.seconds.items()),
    ]
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for name, value, note in rows:
        table.add_row(f"  {name}", Text(value), Text(note))
    console.print(table)
    if outcome.reports:
        console.print(_table_of(outcome.reports))
    for note in facts.notes:
        console.print(f"  note: {note}", soft_wrap=True)


def print_answer(request: Request, outcome: Outcome) -> None:
    """The answer, on stdout: the number, or the first matches."""
    if request.wanted is Wanted.COUNT:
        print(outcome.matches)
    elif request.wanted is Wanted.FIRST:
        _print_matches(request.query.columns, outcome)


def _print_matches(columns: tuple[str, ...], outcome: Outcome) -> None:
    rows = [list(columns), *([str(cell) for cell in row] for row in outcome.first_named())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        if sys.stdout.isatty():
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            print("  ".join(padded).rstrip())
        else:
            print("\t".join(row))
    if sys.stdout.isatty() and outcome.matches > len(outcome.first):
        print(f"... and {outcome.matches - len(outcome.first):,} more (--out FILE writes all)")
