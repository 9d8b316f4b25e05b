"""What a worker has done so far, reported to the command line now and then.

A worker counts as it works, and a few times a second publishes its counts over its control
connection. This is for the eyes only: where nothing takes them, the worker goes on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from pointstamp.communication.publishing import publish
from pointstamp.metrics.peak_memory import peak_bytes

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
    _published_at: float = field(default_factory=time.monotonic, repr=False, compare=False)

    def note(self, what: str, n: int) -> None:
        """Add `n` to the count of `what`, an attribute."""
        setattr(self, what, getattr(self, what) + n)
        if time.monotonic() - self._published_at > INTERVAL_S:
            self._publish()

    def finish(self) -> None:
        """Publish the last counts."""
        self.done = True
        self._publish()

    def as_values(self) -> dict[str, Any]:
        """The counts by name, for JSON."""
        names = ("worker", "edges", "prefixes", "found", "peak_bytes")
        return {name: getattr(self, name) for name in names}

    def _publish(self) -> None:
        self._published_at = time.monotonic()
        self.peak_bytes = peak_bytes()
        publish(replace(self))
