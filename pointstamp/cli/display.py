"""Progress while workers work, for people, on standard error.

On a terminal, a table that is drawn over and over, with the seconds that have passed,
and then vanishes; elsewhere, a line when counts have changed, every few seconds at most, so
that a log stays readable, and now and then one that says that they have not: some steps
take long, and have nothing to count meanwhile.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from pointstamp.cli.progress import Report
from pointstamp.communication.publishing import receiving

if TYPE_CHECKING:
    from pointstamp.formats.edge_files import Edges

LINE_EVERY_S = 2.0
SIGN_OF_LIFE_EVERY_S = 10.0
FRAMES_PER_S = 8
LAST_REPORTS_S = 10.0
"""How long last reports may be under way when the answer is there: those of Spark's tasks."""

_HEADINGS = {"edges": "edges read", "prefixes": "prefixes extended", "found": "found"}


class Display:
    """Shows what is going on.

    Attributes
    ----------
    reports : the latest report of each worker, by index; zeros of one that has not reported
    source : what this process itself reads
    """

    def __init__(self, title: str, workers: int, console: Console | None = None) -> None:
        self.reports = [Report(index) for index in range(workers)]
        self.source: Edges | None = None
        self._all_done = threading.Event()
        self._status = self._last_counts = ""
        self._title = title
        self._spinner = Spinner("dots")
        self._console = console or console_for(sys.stderr)
        self._began = self._last_line = time.monotonic()

    @contextmanager
    def working(self, status: str) -> Iterator[None]:
        """Take what workers report and show progress meanwhile."""
        self.now(status)
        # Rich asks for what to draw from a thread, also where there is no terminal to draw on.
        showing = Live(
            get_renderable=self._drawn if self._console.is_terminal else self.tick,
            console=self._console,
            refresh_per_second=FRAMES_PER_S,
            transient=True,
        )
        with receiving({Report: self.take}), showing:
            yield

    def take(self, report: Report) -> None:
        """Take a worker's report; one of a worker that is not ours is nothing."""
        if report.worker < len(self.reports):
            self.reports[report.worker] = report
            if all(each.done for each in self.reports):
                self._all_done.set()

    def last_reports(self) -> list[Report]:
        """The last reports, waited for a moment; none if a worker's did not reach us."""
        return self.reports if self._all_done.wait(LAST_REPORTS_S) else []

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

    def _counts(self) -> str:
        """All counts in a line."""
        counts = {name: sum(getattr(r, name) for r in self.reports) for name in _HEADINGS}
        if self.source is not None:
            counts["edges"] = max(counts["edges"], self.source.n_edges)
        return ", ".join(f"{_HEADINGS[name]} {n:,}" for name, n in counts.items() if n)

    def tick(self) -> str:
        """Print a line, if it is time for one; called often. There is nothing to draw."""
        silent_s, counts = time.monotonic() - self._last_line, self._counts()
        if silent_s >= LINE_EVERY_S and counts not in ("", self._last_counts):
            self._last_counts = counts
            found = [report.found for report in self.reports]
            each = f" ({' + '.join(f'{n:,}' for n in found)})" if any(found) and found[1:] else ""
            self.print_line(f"{self._status}: {counts}{each}")
        elif silent_s >= SIGN_OF_LIFE_EVERY_S:
            self.print_line(f"{self._status}: still at it, {counts or 'nothing to count yet'}")
        return ""

    def _drawn(self) -> Group:
        """What to draw on a terminal."""
        elapsed = time.monotonic() - self._began
        self._spinner.update(text=Text(f"{self._title}: {self._status}, {elapsed:.1f} s"))
        counts = table_of(self.reports) if _counted(self.reports) else self._counts()
        return Group(self._spinner, counts)


def _counted(reports: list[Report]) -> list[str]:
    """Of what there are counts."""
    return [name for name in _HEADINGS if any(getattr(each, name) for each in reports)]


def table_of(reports: list[Report]) -> Table:
    """What each worker has done, without what none has done."""
    names = _counted(reports)
    rows = [
        [each.worker, *(getattr(each, n) for n in names), f"{each.peak_bytes / 1e6:,.0f} MB"]
        for each in reports
    ]
    return table(["  worker", *(_HEADINGS[name] for name in names), "peak memory"], rows, left=2)


def console_for(file: IO[str]) -> Console:
    """A console that shows text as it is.

    Names of files and patterns have brackets and colons in them, which are no markup.
    """
    return Console(file=file, highlight=False, markup=False, emoji=False)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 0, left: int = 0
) -> Table:
    """A table in which all columns are numbers, but for the last `texts`.

    There are `left` more blanks before each column.
    """
    n_numbers = len(headings) - texts
    columns = [
        *(Column(heading, justify="right", no_wrap=True) for heading in headings[:n_numbers]),
        *(Column(heading, overflow="fold") for heading in headings[n_numbers:]),
    ]
    drawn = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, left))
    for row in rows:
        drawn.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    return drawn
