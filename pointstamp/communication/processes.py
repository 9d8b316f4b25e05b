"""Workers as processes of this machine, which the caller's process starts and watches.

Each is a fresh interpreter (a fork would copy locks that other threads hold) with
this one's module search path, flags, environment and directory. The target
travels by cloudpickle, so that functions of `__main__` (in a process that multiprocessing
started, of `__mp_main__`), closures and lambdas need no guard and no module. Workers are
connected to each other, and to this process (see `control`), by socket pairs made here
and inherited, and share memory that has no name (see `segment`), where the system has
such: nothing else can reach either.

What holds when something goes wrong:

- A worker that raises reports it and stops its peers through the mesh. One that dies
  is noticed by the end of its sockets, by its peers and by us.
- From the first failure on, workers that do not stop by themselves have
  `GRACE_S`; then they are terminated, and killed `KILL_S` later.
- If this process dies, its workers stop (see `worker_process`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication import segment
from pointstamp.communication.control import ControlConnection, ControlServer, Handler
from pointstamp.communication.failure import Failure, death, first_cause, load
from pointstamp.communication.interpreters import start_interpreter
from pointstamp.communication.log_forwarding import levels
from pointstamp.communication.target import Result, Target, check_workers
from pointstamp.communication.worker_process import (
    RunTarget,
    TargetFailure,
    TargetResult,
    check_not_loading,
)
from pointstamp.errors import CommunicationError, SerializationError

GRACE_S = 0.4
KILL_S = 0.2
EXIT_S = 5.0
"""How long a worker that gave its result may take to end, before it is terminated."""

TICK_S = 0.2
"""How often to look for processes that ended while others hold their sockets open."""

SOCKET_BUFFER_BYTES = 1 << 22
"""What we ask for; the system gives what it allows."""


def run_processes(
    target: Target[Result], workers: int, handlers: Mapping[type, Handler] | None = None
) -> list[Result]:
    """Run `target(communicator)` in each of `workers` new processes; the results by index.

    Parameters
    ----------
    handlers : mapping of type to callable, optional
        Of what the workers send over their control connections besides; see `ControlServer`.

    Raises
    ------
    WorkerError
        When a worker raises, exits or is killed: the first cause.
    SerializationError
        When the target or a result cannot be pickled.
    UsageError
        When such a process is just importing what it is to run.

    Examples
    --------
    >>> run_processes(lambda communicator: communicator.index * 10, 2)
    [0, 10]
    """
    check_workers(workers)
    check_not_loading()
    pickled = _pickled(target)
    children: list[_Child] = []
    events: _Events = queue.SimpleQueue()
    server = _control_server(children, events, handlers or {})
    try:
        _start(children, workers, server)
        server.broadcast(RunTarget(pickled, levels()))
        _watch(children, events)
    finally:
        _stop(children, events)
        server.close()
    failures = [child.failure for child in children if child.failure is not None]
    if failures:
        found = first_cause(failures)
        raise found.as_error() from found.cause
    return [_loaded(child) for child in children]


_Events = queue.SimpleQueue[Callable[[], None]]
"""What happened to workers, for the thread that watches them to take note of."""


@dataclass(eq=False)
class _Child:
    """A worker's process, and what it has answered."""

    index: int
    process: subprocess.Popen[bytes]
    connection: ControlConnection
    result: bytes | None = None
    failure: Failure | None = None
    has_ended: bool = False

    @property
    def has_answered(self) -> bool:
        return self.result is not None or self.failure is not None

    def take_result(self, message: TargetResult) -> None:
        self.result = message.result

    def take_failure(self, message: TargetFailure) -> None:
        self.failure = load(message.failure)

    def reap(self, events: _Events, *, patience_s: float = 0.0, is_cause: bool = True) -> None:
        """See whether the process ended; if so without an answer, that is a failure."""
        if patience_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience_s)
        status = self.process.poll()
        if status is None:
            return
        # What it sent before it ended is at hand, but need not have been read yet.
        self.connection.drain()
        _take_note(events)
        self.has_ended = True
        if not self.has_answered and is_cause:
            self.failure = death(self.index, status, time.monotonic())


def _control_server(
    children: list[_Child], events: _Events, handlers: Mapping[type, Handler]
) -> ControlServer:
    """The control server of `children`, which hands over what happens to `events`."""

    def note(take: Callable[[_Child, Any], None]) -> Callable[[ControlConnection, Any], None]:
        return lambda connection, message: events.put(
            lambda: take(children[connection.worker], message)
        )

    return ControlServer(
        host=None,
        handlers={
            **handlers,
            TargetResult: note(_Child.take_result),
            TargetFailure: note(_Child.take_failure),
        },
        # The process has ended, or will at once.
        on_close=note(lambda child, _: child.reap(events, patience_s=TICK_S)),
    )


def _pickled(target: Target[Result]) -> bytes:
    # What multiprocessing calls the program's main module in processes that it starts: as of
    # `__main__`, what is defined there travels by value, for nothing can import it elsewhere.
    main = sys.modules.get("__mp_main__")
    if main is not None:
        cloudpickle.register_pickle_by_value(main)
    try:
        pickled: bytes = cloudpickle.dumps(target)
    except Exception as error:
        name = getattr(target, "__qualname__", repr(target))
        raise SerializationError(
            f"{name} cannot be pickled and so not be carried to worker processes: {error}; "
            f"make what it refers to inside of it, or use threads"
        ) from error
    return pickled


def _loaded(child: _Child) -> Any:
    assert child.result is not None
    try:
        return cloudpickle.loads(child.result)
    except Exception as error:
        raise SerializationError(
            f"the result of worker {child.index} was pickled there and cannot be read here: {error}"
        ) from error


def _start(children: list[_Child], workers: int, server: ControlServer) -> None:
    """Start the processes one after the other, in `children` from the moment they exist."""
    # ends[i][j] is worker i's end of its stream to j, until i is started.
    ends: list[dict[int, socket.socket]] = [{} for _ in range(workers)]
    with _descriptors(workers), contextlib.ExitStack() as stack:
        shared_fd = segment.create(workers) if workers > 1 else None
        if shared_fd is not None:
            stack.callback(os.close, shared_fd)
        for index in range(workers):
            for peer in range(index + 1, workers):
                ends[index][peer], ends[peer][index] = map(stack.enter_context, _pair())
            ours, theirs = map(stack.enter_context, _pair())
            process = _spawn(index, workers, theirs, ends[index], shared_fd)
            connection = server.adopt(ours.dup(), index, process.pid)
            children.append(_Child(index, process, connection))
            for end in (ours, theirs, *ends[index].values()):
                end.close()


@contextlib.contextmanager
def _descriptors(workers: int) -> Iterator[None]:
    """Room for the open descriptors that it takes to start workers, if the system grants it.

    While they are started a quarter of all pairs of workers have both their ends here at most.
    """
    needed = workers * (workers + 8) // 2
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and needed > soft // 2:
        wanted = soft + needed if hard == resource.RLIM_INFINITY else min(hard, soft + needed)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise CommunicationError(
            f"to start {workers} worker processes takes up to {needed} open files, and this "
            f"process may have {limit}: raise the hard limit (ulimit -Hn), or start fewer workers, "
            "or threads"
        ) from error


def _pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair()
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
    return pair


def _spawn(
    index: int,
    workers: int,
    control: socket.socket,
    ends: dict[int, socket.socket],
    shared_fd: int | None,
) -> subprocess.Popen[bytes]:
    peer_fds = {peer: end.fileno() for peer, end in ends.items()}
    program = (
        f"from pointstamp.communication.worker_process import main\n"
        f"main({index}, {workers}, {control.fileno()}, {peer_fds!r}, {shared_fd}, "
        f"{os.getpid()})"
    )
    shared = [] if shared_fd is None else [shared_fd]
    return start_interpreter(program, [control.fileno(), *peer_fds.values(), *shared])


def _watch(children: list[_Child], events: _Events) -> None:
    """Take note of answers and of ends; return when every process has ended."""
    stopping = _Stopping()
    while not all(child.has_ended for child in children):
        with contextlib.suppress(queue.Empty):
            events.get(timeout=stopping.wait_s(children))()
        _take_note(events)
        for child in children:
            if not child.has_ended:
                child.reap(events, is_cause=not stopping.has_terminated)


def _take_note(events: _Events) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            events.get_nowait()()


@dataclass
class _Stopping:
    """When to lose patience with workers that should have ended."""

    since: float | None = None
    has_terminated: bool = False
    has_killed: bool = False

    def wait_s(self, children: list[_Child]) -> float:
        """Terminate or kill what is due; how long to wait until the next look."""
        now = time.monotonic()
        patience_s = self._patience_s(children)
        if patience_s is None:
            return TICK_S
        self.since = self.since or now
        due_s = self.since + patience_s - now
        if due_s <= 0 and not self.has_terminated:
            self.has_terminated = True
            _signal(children, kill=False)
        due_s += KILL_S if self.has_terminated else 0
        if due_s <= 0 and not self.has_killed:
            self.has_killed = True
            _signal(children, kill=True)
        return min(TICK_S, max(due_s, 0.01))

    def _patience_s(self, children: list[_Child]) -> float | None:
        """How long workers may go on: None while nothing is wrong and one is at work."""
        if any(child.failure is not None for child in children):
            return GRACE_S
        if all(child.has_answered for child in children):
            return EXIT_S
        return None


def _signal(children: list[_Child], *, kill: bool) -> None:
    for child in children:
        if not child.has_ended:
            if kill:
                child.process.kill()
            else:
                child.process.terminate()


def _stop(children: list[_Child], events: _Events) -> None:
    """Leave no process, whatever happened; quick when all have ended already."""
    for child in children:
        # What has happened may be a signal whose handler raised while `Popen` looked whether
        # the process lives, between taking its lock and the `try` that gives it back; then we
        # would wait for that lock for ever. Nothing else holds it: this is the only thread.
        child.process._waitpid_lock = threading.Lock()  # type: ignore[attr-defined]  # its own
    _signal(children, kill=False)
    until = time.monotonic() + KILL_S
    for child in children:
        if not child.has_ended:
            child.reap(events, patience_s=max(0.0, until - time.monotonic()), is_cause=False)
    _signal(children, kill=True)
    for child in children:
        child.process.wait()
