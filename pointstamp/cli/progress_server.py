"""Keeps the latest report of each worker, and shows them now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from pointstamp.cli.progress_reporter import Report
from pointstamp.communication.publishing import receiving

TICK_S = 0.1
LAST_REPORTS_S = 0.5


class ProgressServer:
    """The latest report of each worker; a context manager that receives them meanwhile.

    Parameters
    ----------
    workers : int
        How many there are.
    on_tick : callable
        Called with the server some times a second, by a thread of its own.
    """

    def __init__(
        self, workers: int, on_tick: Callable[[ProgressServer], None] = lambda server: None
    ) -> None:
        self._reports = {index: Report(index) for index in range(workers)}
        self._reported: set[int] = set()
        self._on_tick = on_tick
        self._ended = threading.Event()
        self._all_done = threading.Event()
        self._receiving = receiving({Report: self._take})
        self._thread = threading.Thread(target=self._tick, name="pointstamp-progress", daemon=True)

    def reports(self) -> list[Report]:
        """The latest report of each worker, by index; zeros of one that has not reported."""
        return [self._reports[index] for index in sorted(self._reports)]

    def last_reports(self) -> list[Report]:
        """The last reports, waited for a moment; none if a worker did not reach us."""
        if len(self._reported) < len(self._reports):
            return []
        self._all_done.wait(LAST_REPORTS_S)
        return self.reports()

    def __enter__(self) -> ProgressServer:
        self._receiving.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._receiving.__exit__(kind, value, trace)
        self._ended.set()
        self._thread.join()

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            self._on_tick(self)

    def _take(self, report: Report) -> None:
        if report.worker not in self._reports:
            return
        self._reports[report.worker] = report
        self._reported.add(report.worker)
        if all(each.done for each in self._reports.values()):
            self._all_done.set()
