"""Listens to what the workers report of their work, and keeps the latest of each.

A thread with a listening socket, on the loopback interface unless the workers are
on other machines. A line that does not begin with our token is not of a worker of ours:
that connection is closed.
"""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from pointstamp.cli.progress_reporter import Address, Report

LONGEST_LINE = 4096
TICK_S = 0.1
LAST_WORDS_S = 0.5

LOOPBACK = "127.0.0.1"


class ProgressServer:
    """The latest report of each worker; a context manager that listens meanwhile.

    Parameters
    ----------
    workers : int
        How many there are.
    host : str
        By which name the workers reach this machine.
    on_tick : callable
        Called with the server some times a second, by the thread that listens.
    """

    def __init__(
        self,
        workers: int,
        host: str = LOOPBACK,
        on_tick: Callable[[ProgressServer], None] = lambda server: None,
    ) -> None:
        self._reports = {index: Report(index) for index in range(workers)}
        self._reporting: set[int] = set()
        self._on_tick = on_tick
        self._listener = socket.create_server((LOOPBACK if host == LOOPBACK else "", 0))
        self.address = Address(host, self._listener.getsockname()[1], secrets.token_hex(8))
        self._selector = selectors.DefaultSelector()
        self._ended = threading.Event()
        self._all_done = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="pointstamp-server", daemon=True)

    def reports(self) -> list[Report]:
        """The latest report of each worker, by index; zeros of one that has not reported."""
        return [self._reports[index] for index in sorted(self._reports)]

    def is_complete(self) -> bool:
        """Whether every worker could reach the server."""
        return len(self._reporting) == len(self._reports)

    def last_words(self) -> list[Report]:
        """The reports, once the last of every worker is there or has had the time to be."""
        if self._reporting:
            self._all_done.wait(LAST_WORDS_S)
        return self.reports()

    def __enter__(self) -> ProgressServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _listen(self) -> None:
        with self._selector, self._listener:
            self._selector.register(self._listener, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in self._selector.select(TICK_S):
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._hear(key.fileobj, key.data)
                self._on_tick(self)
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, bytearray())

    def _hear(self, connection: Any, unread: bytearray) -> None:
        try:
            arrived = connection.recv(LONGEST_LINE)
            unread += arrived
            *lines, rest = unread.split(b"\n")
            unread[:] = rest
            for line in lines:
                self._take(bytes(line))
            if arrived and len(unread) < LONGEST_LINE:
                return
        except BlockingIOError:
            return
        except (OSError, ValueError, TypeError, KeyError):
            pass  # not one of ours, or gone
        self._selector.unregister(connection)
        connection.close()

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if not hmac.compare_digest(message.pop("token"), self.address.token):
            raise ValueError("a report with another token")
        report = Report(**message)
        if report.worker not in self._reports:
            raise ValueError(f"a report of worker {report.worker}")
        self._reports[report.worker] = report
        self._reporting.add(report.worker)
        if all(each.done for each in self._reports.values()):
            self._all_done.set()
