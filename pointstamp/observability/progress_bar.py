"""How far a run is, shown while it goes on: epochs, records, their rate, and what may remain.

A thread asks the workers for their counts, over their control connections, as the live page does.
Rich draws them: on a terminal two lines that are drawn over and over, in a notebook an output of
the cell that is replaced. Elsewhere a line is printed now and then, and one at the end.

What remains is estimated where every source that has not ended knows how much it has to read: the
source that is the furthest behind decides, and its pace over the last half minute. When all is
read, what remains of loops and joins is not known, and nothing is said of it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from importlib import import_module
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pointstamp.errors import PointstampError
from pointstamp.runtime.watched_program import ReadWorkers, read_program

EVERY_S = 0.25
LINE_EVERY_S = 10.0
FRAMES_PER_S = 8
RATE_WINDOW_S = 3.0
"""Rates are over about so long."""
PACE_WINDOW_S = 30.0
PATIENCE_S = 1.0
BAR_WIDTH = 32

Counts = dict[str, Any]
"""What `dataflow.source_counts.SourceCounts.read` gives."""


def part_read(counts: Iterable[Counts]) -> float | None:
    """Which part of what there is to read was read, of the source furthest behind.

    None if a source does not know how much it has, and if all have ended.

    >>> part_read([{"sources": {"0/1": (30, 40)}}, {"sources": {"0/1": (20, 60)}}])
    0.5
    >>> part_read([{"sources": {"0/1": (30, 40), "0/2": (7, None)}}]) is None
    True
    """
    totals: dict[str, list[int]] = {}
    for each in counts:
        for place, (n_read, n_total) in each["sources"].items():
            if n_total is None:
                return None
            total = totals.setdefault(place, [0, 0])
            total[0] += min(n_read, n_total)
            total[1] += n_total
    if all(n_read == n_total for n_read, n_total in totals.values()):
        return None
    return min(n_read / n_total for n_read, n_total in totals.values() if n_total)


class RunFigures:
    """What is shown of one run, of the counts of its workers.

    Parameters
    ----------
    workers : int
        How many it has.
    clock : callable
        Gives seconds.

    >>> figures = RunFigures(1, clock=iter([0.0, 10.0]).__next__)
    >>> figures.take(0, {"records": 50, "sent": 50, "epochs": 2, "sources": {"0/1": (50, 200)}})
    >>> figures.note()
    >>> str(figures), figures.part, figures.remaining_s
    ('2 epochs, 50 records, 5/s', 0.25, 30.0)
    """

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: list[Counts | None] = [None] * workers
        self._ended: set[int] = set()
        self._lock = threading.Lock()
        self._began_s = clock()
        self._counted: deque[tuple[float, int]] = deque([(self._began_s, 0)])
        """(when, records) of the last seconds."""
        self._moved: deque[tuple[float, int]] = deque([(self._began_s, 0)])
        """The same of records that operators have sent."""
        self._parts: deque[tuple[float, float]] = deque([(self._began_s, 0.0)])
        self.elapsed_s = 0.0
        self.n_records = self.n_sent = self.n_epochs = 0
        self.part: float | None = None
        self.is_all_read = False
        """Whether the sources have ended, and the run goes on."""

    def take(self, worker: int, counts: Counts, *, is_last: bool = False) -> None:
        """Take the counts of a worker; after its last ones no others count."""
        with self._lock:
            if worker < len(self._counts) and worker not in self._ended:
                self._counts[worker] = counts
                if is_last:
                    self._ended.add(worker)

    def note(self) -> None:
        """Sum up what was taken, as of now."""
        now = self._clock()
        with self._lock:
            counts = [each for each in self._counts if each is not None]
            is_complete = len(counts) == len(self._counts)
        self.elapsed_s = now - self._began_s
        self.n_records = sum(each["records"] for each in counts)
        self.n_sent = sum(each["sent"] for each in counts)
        self.n_epochs = min((each["epochs"] for each in counts), default=0)
        self.part = part_read(counts) if is_complete else None
        is_open = any(
            n_total is None or n_read < n_total
            for each in counts
            for n_read, n_total in each["sources"].values()
        )
        self.is_all_read = self.n_records > 0 and not is_open
        _keep(self._counted, (now, self.n_records), RATE_WINDOW_S)
        _keep(self._moved, (now, self.n_sent), RATE_WINDOW_S)
        if self.part is not None:
            _keep(self._parts, (now, self.part), PACE_WINDOW_S)

    def end(self) -> None:
        """The run is over: from now on rates are those of all of it."""
        self.note()
        self._counted = deque([(self._began_s, 0), self._counted[-1]])
        self.is_all_read, self.part = False, 1.0

    @property
    def remaining_s(self) -> float | None:
        """About how long reading the rest takes, at the pace of the last half minute."""
        pace = _slope(self._parts)
        return None if self.part is None or pace <= 0 else (1.0 - self.part) / pace

    def __str__(self) -> str:
        said = [f"{self.n_epochs:,} epochs"] if self.n_epochs else []
        said.append(f"{self.n_records:,} records")
        if self.is_all_read:
            said += ["all read", f"{self.n_sent:,} sent", f"{_slope(self._moved):,.0f}/s"]
        else:
            said.append(f"{_slope(self._counted):,.0f}/s")
        return ", ".join(said)


def _keep(found: deque[Any], new: tuple[float, float], window_s: float) -> None:
    """Append to a series, of which what is older than the window goes, but for one."""
    found.append(new)
    while len(found) > 2 and found[1][0] <= new[0] - window_s:
        found.popleft()


def _slope(series: deque[Any]) -> float:
    """How much a second, from the first to the last."""
    (began, before), (now, after) = series[0], series[-1]
    return float((after - before) / (now - began)) if now > began else 0.0


def in_minutes(seconds: float) -> str:
    """A duration as on a clock.

    >>> in_minutes(4.6), in_minutes(75), in_minutes(7384)
    ('0:05', '1:15', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich sends what the program prints to /dev/null from here on, and raises SystemExit.
        raise BrokenPipeError


class RunProgressBar(JupyterMixin):
    """Shows how far a run is, during a `with` block.

    Parameters
    ----------
    run : str
        The name by which its workers are asked.
    workers : int
        How many it has.
    console : rich.console.Console, optional
        Where; the default is standard error.
    """

    def __init__(self, run: str, workers: int, console: Console | None = None) -> None:
        self._run = run
        self._figures = RunFigures(workers)
        self._console = console or _Console(stderr=True, highlight=False)
        self._is_ended = threading.Event()
        self._ending = ""
        """How it has ended, in a word."""
        self._last_line_s = 0.0
        self._live: Live | None = None
        self._cell: Any = None
        """What replaces the output in a notebook."""
        # In the context of the caller: a notebook knows by that which cell an output is of.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._look,),
            name="pointstamp-progress",
            daemon=True,
        )

    def take(self, worker: int, counts: Counts) -> None:
        """Take the last counts of a worker, which it publishes."""
        self._figures.take(worker, counts, is_last=True)

    def __enter__(self) -> Self:
        if self._console.is_jupyter:
            self._cell = import_module("IPython.display").display(self, display_id=True)
        elif self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self.__rich__,
                console=self._console,
                refresh_per_second=FRAMES_PER_S,
                # What is printed goes above the bar, unless it goes to a file.
                redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            )
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._is_ended.set()
        self._thread.join()
        if kind is None:
            self._figures.end()
        else:
            self._ending = "stopped" if issubclass(kind, KeyboardInterrupt) else "failed"
        if self._live is not None:
            self._live.stop()
        elif self._cell is not None:
            self._cell.update(self)
        else:
            self._print_line(self._ending or "done")

    def _look(self) -> None:
        """Ask, and show, until the end."""
        while not self._is_ended.wait(EVERY_S):
            with suppress(PointstampError):  # a worker that is busy is asked again
                for process in read_program(ReadWorkers("counts", run=self._run), PATIENCE_S):
                    for worker in process["workers"]:
                        self._figures.take(worker["worker"], worker)
            self._figures.note()
            if self._cell is not None:
                self._cell.update(self)
            elif self._live is None:
                elapsed_s = self._figures.elapsed_s
                if elapsed_s - self._last_line_s >= LINE_EVERY_S:
                    self._last_line_s = elapsed_s
                    self._print_line()

    def _print_line(self, ending: str = "") -> None:
        said = ", ".join(filter(None, [str(self._figures), self._part(), self._remaining()]))
        how = f", {ending}" if ending else ""
        line = f"pointstamp: {self._figures.elapsed_s:.1f} s{how}: {said}"
        # A run has its results all the same where this cannot be written.
        with suppress(OSError, ValueError):
            self._console.print(line, soft_wrap=True, markup=False)

    def _part(self) -> str:
        part = self._figures.part
        return "" if part is None else f"{int(100 * part)} % read"

    def _remaining(self) -> str:
        seconds = self._figures.remaining_s
        return "" if seconds is None or self._figures.part == 1 else f"{in_minutes(seconds)} left"

    def __rich__(self) -> RenderableType:
        figures = self._figures
        row = Table.grid(padding=(0, 1))
        is_unknown = figures.part is None and not self._ending
        bar = ProgressBar(
            total=None if is_unknown else 1.0,
            completed=figures.part or 0.0,
            width=BAR_WIDTH,
            pulse=is_unknown,
        )
        said = [in_minutes(figures.elapsed_s), self._remaining(), self._ending]
        row.add_row(bar, self._part(), ", ".join(filter(None, said)))
        return Group(row, Text(str(figures), no_wrap=True, overflow="ellipsis"))
