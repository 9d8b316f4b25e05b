"""What a worker has done so far, reported to the command line now and then.

A worker counts as it works, and a few times a second sends its counts, a line of
JSON, to the server (`server.py`) that the command line listens with. This is for
the eyes only: if the server cannot be reached, from another machine of a cluster
for one, the worker goes on without.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from dataclasses import asdict, dataclass

from pointstamp.cli.memory import peak_bytes

INTERVAL_S = 0.2
CONNECT_S = 1.0
"""How long a worker tries to reach the server: once, when it starts."""


@dataclass(frozen=True)
class Address:
    """Where the server is, and the word by which it knows its own workers."""

    host: str
    port: int
    token: str


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
    """Counts for one worker, and reports.

    Parameters
    ----------
    worker : int
    address : Address, optional
        Of the server; without it, it only counts.
    """

    def __init__(self, worker: int, address: Address | None = None) -> None:
        self.report = Report(worker)
        self._address = address
        self._socket = _connected(address)
        self._sent_at = time.monotonic()

    def note(self, what: str, n: int) -> None:
        """Add `n` to the count of `what`, an attribute of `Report`."""
        setattr(self.report, what, getattr(self.report, what) + n)
        if time.monotonic() - self._sent_at > INTERVAL_S:
            self._send()

    def finish(self) -> Report:
        """Send the last counts, and stop sending; the report."""
        self.report.done = True
        self.report.peak_bytes = peak_bytes()
        self._send()
        self.close()
        return self.report

    def close(self) -> None:
        """Stop sending."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self) -> None:
        self._sent_at = time.monotonic()
        if self._socket is None or self._address is None:
            return
        self.report.peak_bytes = peak_bytes()
        message = {"token": self._address.token, **asdict(self.report)}
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.close()


def _connected(address: Address | None) -> socket.socket | None:
    if address is None:
        return None
    with contextlib.suppress(OSError):
        return socket.create_connection((address.host, address.port), timeout=CONNECT_S)
    return None
