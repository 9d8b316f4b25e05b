"""Workers of tests as forks of one process that has imported what each of them needs.

A worker that `run_processes` starts is a new interpreter, which takes 0.3 s of a processor until
it has imported NumPy, us, pytest and Hypothesis: of the tests that start worker processes that
was three quarters. Here a server beside the tests imports all that once and forks for each
worker, which takes some milliseconds. All else is as with a new interpreter: the arguments,
descriptors, directory, environment, and that the worker is a child of the process that asked for
it, dies with it and is waited for by it.

Not what a new interpreter alone has: a seed of hashes, limits and memory of its own. Tests of these
and of the processes themselves say so by a mark, `new_interpreters`; so does an environment that
has another variable of Python's or ours than the server was started with.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pointstamp.communication import processes
from pointstamp.communication.interpreters import start_interpreter

PR_SET_CHILD_SUBREAPER = 36
LARGEST_REQUEST = 1 << 16
LARGEST_ANSWER = 64
PREFIXES = ("POINTSTAMP_", "PYTHON", "OMP_", "OPENBLAS_", "MALLOC_", "LD_")
"""Of the variables that count when something is imported, or before."""

IMPORTS = (
    "pyarrow.compute",
    "pointstamp.collections",
    "pointstamp.communication.mesh",
    "pointstamp.communication.worker_process",
    "pointstamp.runtime.run_worker",
    "pointstamp.service.service_worker",
    "tests.conftest",  # and with it pytest and Hypothesis
)

START_NEW = processes._spawn
"""How workers are started otherwise."""


class ForkServer:
    """The process that forks, from its first use on.

    Attributes
    ----------
    is_on : bool
        Whether workers are forks; else each is a new interpreter.
    """

    def __init__(self) -> None:
        self.is_on = True
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._conditions: object = None

    @property
    def pid(self) -> int | None:
        """None before the first use."""
        return None if self._process is None else self._process.pid

    @property
    def descriptor(self) -> int | None:
        """That of the connection to it; None before the first use."""
        return None if self._requests is None else self._requests.fileno()

    def start(
        self,
        index: int,
        workers: int,
        control: socket.socket,
        ends: dict[int, socket.socket],
        shared_fd: int | None,
    ) -> subprocess.Popen[bytes]:
        """Start a worker; the arguments are those of `processes._spawn`."""
        with self._lock:
            if self.is_on and self._process is None:
                self._begin()
            if not self.is_on or self._conditions != _conditions():
                return START_NEW(index, workers, control, ends, shared_fd)
            given = [1, 2, control.fileno(), *(end.fileno() for end in ends.values())]
            given += [] if shared_fd is None else [shared_fd]
            request = (
                (index, workers, [*ends], shared_fd is not None, os.getpid()),
                sys.path,
                str(Path.cwd()),
                dict(os.environ),
            )
            return _process_of(self._forked(pickle.dumps(request), given))

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST_REQUEST)
        self._conditions = _conditions()
        self._process = start_interpreter(
            f"from tests.forked_workers import serve\nserve({theirs.fileno()})()",
            [theirs.fileno()],
            # Threads of a library would not be in the forks.
            {**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        theirs.close()
        self._requests = ours

    def _forked(self, request: bytes, descriptors: list[int]) -> int:
        assert self._requests is not None
        try:
            with _adopting_orphans():
                socket.send_fds(self._requests, [request], descriptors)
                answer = self._requests.recv(LARGEST_ANSWER)
        except BaseException:
            self.close()  # what it answers later would be taken for that to another request
            raise
        if not answer:
            raise RuntimeError("the process that forks workers of tests has ended")
        return int(answer)

    def close(self) -> None:
        """End the server; workers that it has forked are not its own."""
        if self._process is not None and self._requests is not None:
            self._requests.close()
            self._process.wait()
        self._process = self._requests = None


def _conditions() -> object:
    """What a worker has from the process that starts it, and a fork of the server from that."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    return (
        variables,
        resource.getrlimit(resource.RLIMIT_NOFILE),
        resource.getrlimit(resource.RLIMIT_AS),
    )


def _process_of(pid: int) -> subprocess.Popen[bytes]:
    """A child of ours that `Popen` has not started, in its class."""
    found: subprocess.Popen[bytes] = object.__new__(subprocess.Popen)
    vars(found).update(
        pid=pid,
        args=["a forked worker"],
        returncode=None,
        stdin=None,
        stdout=None,
        stderr=None,
        _child_created=True,
        _sigint_wait_secs=0.25,
        _waitpid_lock=threading.Lock(),
    )
    return found


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Have children of children of ours, when their parent ends, be ours."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def serve(requests_fd: int) -> Callable[[], None]:
    """Fork for each request; in a fork return what it is to run, in the server when none comes."""
    for module in IMPORTS:
        import_module(module)
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=requests_fd)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 253)
        if not request:
            return lambda: None
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)  # so that its child is adopted
            return _worker(requests, *pickle.loads(request), descriptors)
        os.waitpid(between, 0)
        for descriptor in descriptors:
            os.close(descriptor)


def _worker(
    requests: socket.socket,
    arguments: tuple[int, int, list[int], bool, int],
    path: list[str],
    directory: str,
    environment: Mapping[str, str],
    descriptors: list[int],
) -> Callable[[], None]:
    """What a worker runs, in a process that is as it asks for."""
    index, workers, peers, is_sharing, parent = arguments
    while os.getppid() != parent:
        time.sleep(0.0002)
    out, err, control, *others = descriptors
    for descriptor, standard in ((out, 1), (err, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    shared = others.pop() if is_sharing else None
    sys.path[:] = path
    sys.argv[:] = ["-c"]
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    requests.send(str(os.getpid()).encode())
    requests.close()
    return lambda: _main(
        index, workers, control, dict(zip(peers, others, strict=True)), shared, parent
    )


def _main(*arguments: Any) -> None:
    from pointstamp.communication.worker_process import main

    main(*arguments)
