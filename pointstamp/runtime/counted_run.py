"""The part of a worker in showing how far a run is: it counts, and publishes the last counts.

While it runs it is asked, as for a live page (`watched_program`). What a worker has counted at its
end nothing can ask for later, so it publishes that.
"""

from __future__ import annotations

import os
from _socket import gethostname
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from pointstamp.communication import publishing
from pointstamp.dataflow.source_counts import SourceCounts

Result = TypeVar("Result")
Args = TypeVarTuple("Args")

takers: dict[str, Callable[[int, dict[str, Any]], object]] = {}
"""By run that this process shows: what takes the last counts of its workers."""


def run_name(number: int) -> str:
    """What a run is called that this process shows: unlike those of other machines, too."""
    return f"{_this_process()}-{number}"


def _this_process() -> str:
    # Processes of two machines may have one number.
    return f"{os.getpid()}@{gethostname()}"


@dataclass(frozen=True)
class LastCounts:
    """A worker's counts at its end; see `SourceCounts.read`."""

    run: str
    worker: int
    counts: dict[str, Any]


class CountedRun:
    """One worker of a run that is shown.

    Parameters
    ----------
    run : str
        Its name, by `run_name` of the process that shows it.
    worker : int
    """

    def __init__(self, run: str, worker: int) -> None:
        self._run = run
        self._worker = worker
        self._counts = SourceCounts(run)

    def counting(self, main: Callable[[Any, *Args], Result]) -> Callable[[Any, *Args], Result]:
        """The same program, whose worker counts what its dataflows read and send."""

        @wraps(main)
        def counting(worker: Any, *args: *Args) -> Result:
            worker.environment.source_counts = self._counts
            return main(worker, *args)

        return counting

    def publish(self) -> None:
        """Send the counts, which are the last, to the process that shows them."""
        last = LastCounts(self._run, self._worker, self._counts.read())
        # It may be this one, which may be a worker of another program, too: a control connection
        # leads elsewhere then.
        if self._run.rpartition("-")[0] == _this_process():
            _take(None, last)
        else:
            publishing.publish(last)


def _take(connection: object, last: LastCounts) -> None:
    take = takers.get(last.run)
    if take is not None:
        take(last.worker, last.counts)


publishing.handlers[LastCounts] = _take
