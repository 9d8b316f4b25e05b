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
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pointstamp.cli.progress import Report
from pointstamp.cli.tables import console_for, table
from pointstamp.communication.publishing import receiving

LINE_EVERY_S = 2.0
SIGN_OF_LIFE_EVERY_S = 10.0
FRAMES_PER_S = 8
TICK_S = 0.1
LAST_REPORTS_S = 2.0
"""How long last reports may be under way when the answer is there: those of Spark's tasks."""

_HEADINGS = {"edges": "edges read", "prefixes": "prefixes extended", "found": "found"}


class Display:
    """Shows what is going on.

    Attributes
    ----------
    reports : the latest report of each worker, by index; zeros of one that has not reported
    """

    def __init__(self, title: str, workers: int, console: Console | None = None) -> None:
        self.reports = [Report(index) for index in range(workers)]
        self._all_done = threading.Event()
        self._status = ""
        self._title = title
        self._console = console or console_for(sys.stderr)
        self._began = self._last_line = time.monotonic()
        self._n_read = 0
        self._last_counts = ""

    @contextmanager
    def working(self, status: str) -> Iterator[None]:
        """Take what workers report and show progress meanwhile."""
        self.now(status)
        showing: AbstractContextManager[object] = self._printing_lines()
        if self._console.is_terminal:
            showing = Live(
                get_renderable=self._drawn,
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

    def reading(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches; shows how many edges have been read, here."""
        for batch in batches:
            self._n_read += batch.num_rows
            yield batch

    def _counts(self) -> str:
        """All counts in a line."""
        counts = {name: sum(getattr(r, name) for r in self.reports) for name in _HEADINGS}
        counts["edges"] = max(counts["edges"], self._n_read)
        return ", ".join(f"{_HEADINGS[name]} {n:,}" for name, n in counts.items() if n)

    # Not on a terminal.

    @contextmanager
    def _printing_lines(self) -> Iterator[None]:
        ended = threading.Event()

        def print_lines() -> None:
            while not ended.wait(TICK_S):
                self.tick()

        thread = threading.Thread(target=print_lines, name="pointstamp-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def tick(self) -> None:
        """Print a line, if it is time for one; called often."""
        silent_s = time.monotonic() - self._last_line
        if silent_s < LINE_EVERY_S:
            return
        counts = self._counts()
        if counts and counts != self._last_counts:
            self._last_counts = counts
            found = [report.found for report in self.reports]
            each = f" ({' + '.join(f'{n:,}' for n in found)})" if any(found) and found[1:] else ""
            self.print_line(f"{self._status}: {counts}{each}")
        elif silent_s >= SIGN_OF_LIFE_EVERY_S:
            self.print_line(f"{self._status}: still at it, {counts or 'nothing to count yet'}")

    # On a terminal.

    def _drawn(self) -> Group:
        elapsed = time.monotonic() - self._began
        head = Spinner("dots", Text(f"{self._title}: {self._status}, {elapsed:.1f} s"))
        if any(getattr(report, name) for report in self.reports for name in _HEADINGS):
            return Group(head, table_of(self.reports))
        return Group(head, Text(f"  {self._counts()}"))


def table_of(reports: list[Report]) -> Table:
    """What each worker has done, without what none has done."""
    shown = [name for name in _HEADINGS if any(getattr(each, name) for each in reports)]
    return table(
        ["  worker", *(_HEADINGS[name] for name in shown), "peak memory"],
        [
            [
                each.worker,
                *(getattr(each, name) for name in shown),
                f"{each.peak_bytes / 1e6:,.0f} MB",
            ]
            for each in reports
        ],
        left=2,
    )
