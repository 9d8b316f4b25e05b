"""Keeps a worker whose Python daemon Spark starts anew, though nothing has happened to either.

Spark forks its Pythons from a daemon. Where a task is ended just when its Python is to be forked,
as others of its stage have failed, Java takes the interrupt for a lost connection to the daemon,
stops it, which ends all that was forked from it, and starts another one. So a job of anything else
that fails at a bad moment, more often on a busy machine, would end the workers of services and runs
beside it. Here a worker does not go with the daemon if another one follows at once; it goes if none
does, as when a session stops, and when Java itself has ended.

Linux alone has what this needs; elsewhere a worker goes with its daemon.

Source: `PythonWorkerFactory` of Spark 4 ("Lost connection to Python daemon, attempting to
restart"), and how `pyspark.daemon` ends: by SIGHUP to its group.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket, socketpair

from pointstamp.runtime.introspection import stat_fields

FOLLOW_S = 3.0
"""How long after the end of a daemon another one may be started in its place."""

EARLIER_S = 5.0
"""So much earlier it may have been started: the other one ends when its Python gets to it."""

LOOK_S = 0.05


@dataclass(frozen=True)
class _Process:
    """What Linux has of a process: the one that started it, when (seconds from boot), and how."""

    parent: int
    began_s: float
    command: bytes

    @classmethod
    def of(cls, pid: int) -> _Process:
        """Raises OSError where there is none."""
        fields = stat_fields(pid)
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return cls(int(fields[1]), began_s, Path(f"/proc/{pid}/cmdline").read_bytes())


@contextmanager
def outliving_restarts() -> Iterator[None]:
    """Keep this process while inside, in the main thread, if Spark starts its daemon anew."""
    with ExitStack() as stack:
        with suppress(OSError, AttributeError, ValueError, IndexError):
            found = _watch()
            if found is not None:
                stack.enter_context(found)
        yield


def _watch() -> _Guard | None:
    """A watch, where a daemon of Spark's has forked this process, and it is the main thread's."""
    daemon = os.getppid()
    if os.getpgrp() != daemon or threading.current_thread() is not threading.main_thread():
        return None
    of_daemon = _Process.of(daemon)
    return _Guard(daemon, of_daemon, os.pidfd_open(of_daemon.parent))


class _Guard:
    """Ends this process with its daemon, unless another daemon follows, or with Java.

    A thread does so, as the main one may be in a long computation, and gets signals by a
    socket.
    """

    def __init__(self, daemon: int, of_daemon: _Process, java: int) -> None:
        self._daemon = daemon
        self._of_daemon = of_daemon
        self._java = java
        self._receiving: socket
        self._sending: socket
        self._receiving, self._sending = socketpair()
        self._sending.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="pointstamp-daemon", daemon=True)

    def __enter__(self) -> None:
        # A handler of Python's that does nothing: what counts is that the socket has the signal.
        self._otherwise = signal.signal(signal.SIGHUP, lambda number, frame: None)
        self._woken = signal.set_wakeup_fd(self._sending.fileno(), warn_on_full_buffer=False)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._woken)
        signal.signal(signal.SIGHUP, self._otherwise)
        self._sending.close()
        self._thread.join()
        self._receiving.close()
        os.close(self._java)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._java, select.POLLIN)
        poll.register(self._receiving, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._java in ready:
                _end()
            numbers = self._receiving.recv(64)
            if not numbers:
                return  # what was inside has ended
            if signal.SIGHUP in numbers and not self._is_followed():
                _end()

    def _is_followed(self) -> bool:
        """Whether Java has another daemon, or soon has one."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        java = select.poll()
        java.register(self._java, select.POLLIN)
        while time.clock_gettime(time.CLOCK_BOOTTIME) < now_s + FOLLOW_S:
            for entry in os.scandir("/proc"):
                if entry.name.isdigit() and int(entry.name) != self._daemon:
                    with suppress(OSError, IndexError):
                        other = _Process.of(int(entry.name))
                        if (
                            other.parent == self._of_daemon.parent
                            and other.command == self._of_daemon.command
                            and other.began_s > now_s - EARLIER_S
                        ):
                            return True
            if java.poll(1e3 * LOOK_S):
                return False
        return False


def _end() -> None:
    """End as by the signal that was kept away."""
    os.kill(os.getpid(), signal.SIGKILL)
