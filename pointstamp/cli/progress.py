"""What a worker has done so far, reported to the command line now and then.

A worker counts as it works, and a few times a second publishes its counts over its control
connection. This is for the eyes only: where nothing takes them, the worker goes on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pointstamp.communication.publishing import publish
from pointstamp.observability.peak_memory import peak_bytes

INTERVAL_S = 0.2


@dataclass
class Report:
    """What one worker has done.

    Attributes
    ----------
    edges : edges that it has taken from the source
    prefixes : partial matches that it has extended
    found : matches that it has found; not known before the end when they are only counted
    peak_bytes : the most memory that its process had
    done : whether it has finished
    """

    worker: int
    edges: int = 0
    prefixes: int = 0
    found: int = 0
    peak_bytes: int = 0
    done: bool = False


class ProgressReporter:
    """Counts for one worker, and reports."""

    def __init__(self, worker: int) -> None:
        self.report = Report(worker)
        self._reported_at = time.monotonic()

    def note(self, what: str, n: int) -> None:
        """Add `n` to the count of `what`, an attribute of `Report`."""
        setattr(self.report, what, getattr(self.report, what) + n)
        if time.monotonic() - self._reported_at > INTERVAL_S:
            self._publish()

    def finish(self) -> None:
        """Report the last counts."""
        self.report.done = True
        self._publish()

    def _publish(self) -> None:
        self._reported_at = time.monotonic()
        self.report.peak_bytes = peak_bytes()
        publish(replace(self.report))
