"""What a process that `run_processes` started does, from its first import to its end.

It was given file descriptors and nothing else: a control connection, over which the
target comes and the result goes, one stream to each peer, and memory that it
shares with them. The parent made all of these and gave them no name, so only the
parent and its children can hold the other ends: that is the authentication.

That the control connection ends means that the parent is gone, however it went, and then
this process goes too.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication.control import ControlClient
from pointstamp.communication.failure import UncarriedResult, dump, failure
from pointstamp.communication.kept_memory import keep_freed_memory
from pointstamp.communication.log_forwarding import forward
from pointstamp.communication.parent_death import ORPHANED_STATUS, die_with_parent
from pointstamp.communication.publishing import set_own
from pointstamp.communication.segment import Segment
from pointstamp.communication.target import run_in_process
from pointstamp.errors import UsageError

_THREADS_OF_OPENBLAS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_HAS_AFFINITY = hasattr(os, "sched_getaffinity")


@dataclass(frozen=True)
class RunTarget:
    """To a worker: the function to run, pickled by cloudpickle."""

    target: bytes
    log_levels: Mapping[str, int]
    """Of the loggers of the process that sends this; see `log_forwarding`."""


@dataclass(frozen=True)
class TargetResult:
    """From a worker: what its target returned, pickled by cloudpickle."""

    result: bytes


@dataclass(frozen=True)
class TargetFailure:
    """From a worker: why there is no result, as `failure.dump` writes it."""

    failure: bytes


def main(
    index: int,
    peers: int,
    control_fd: int,
    peer_fds: Mapping[int, int],
    shared_fd: int | None,
    parent: int,
) -> None:
    """Run the target that comes over `control_fd` as worker `index` of `peers`."""
    die_with_parent(parent)
    keep_freed_memory()
    _share_processors(peers)
    # Ctrl-C goes to the parent as well, which stops us. A handler, rather than
    # ignoring the signal, so that programs we start do not inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    # Here: the process that starts workers knows our messages, and carries nothing itself. Before
    # the control connection, whose thread imports what a question needs: of a package that two
    # threads import from both ends, each is given a half.
    from pointstamp.communication.mesh import MeshCommunicator

    arrived: queue.SimpleQueue[RunTarget] = queue.SimpleQueue()
    control = ControlClient(
        _adopt(control_fd),
        index,
        {RunTarget: lambda _, message: arrived.put(message)},
        lambda *_: os._exit(ORPHANED_STATUS),
    )
    set_own(control)
    communicator = MeshCommunicator(
        index,
        peers,
        {peer: _adopt(fd) for peer, fd in peer_fds.items()},
        _mapped(shared_fd, peers),
    )
    order = arrived.get()
    forward(order.log_levels)
    target = order.target
    try:
        result = run_in_process(lambda: _loaded(target)(communicator))
        pickled = _pickled(index, result)
        communicator.close()
        control.send(TargetResult(pickled))
    except BaseException as cause:  # noqa: BLE001  (the parent raises it)
        # The parent first: ending the links to the peers may take a moment.
        control.send(TargetFailure(dump(failure(index, cause, time.monotonic()))))
        communicator.abort(cause)
    control.flush()
    # Not closed: until the process has ended, the end of the parent ends it.


_is_loading = False


def _loaded(target: bytes) -> Any:
    """The function to run; the modules that it is of are imported."""
    global _is_loading
    _is_loading = True
    try:
        return cloudpickle.loads(target)
    finally:
        _is_loading = False


def check_not_loading() -> None:
    """Raise where a worker would start workers that would start workers likewise.

    Raises
    ------
    UsageError
        In a worker's process that is importing what it is to run.
    """
    if _is_loading:
        raise UsageError(
            "a module that workers import starts workers itself, each of which would import it and "
            "start workers again, without end: have it do so in a function, or under "
            "`if __name__ == '__main__':`"
        )


def _share_processors(peers: int) -> None:
    """Have the linear algebra of NumPy use a worker's part of the processors that we may use.

    Before NumPy is imported: it then starts a thread for each processor, and each looks for work
    for a while, which takes longer than the import itself. What the environment says comes first.
    """
    if not any(name in os.environ for name in _THREADS_OF_OPENBLAS):
        usable = len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1
        os.environ[_THREADS_OF_OPENBLAS[0]] = str(max(1, usable // peers))


def _adopt(fd: int) -> socket.socket:
    """A socket of ours, which the programs that the user starts do not get."""
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)


def _mapped(fd: int | None, peers: int) -> Segment | None:
    """The memory that the workers share, without the descriptor that it came by."""
    if fd is None:
        return None
    try:
        return Segment(fd, peers)
    finally:
        os.close(fd)


def _pickled(index: int, result: Any) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(result)
    except Exception as error:
        raise UncarriedResult(
            f"the result of worker {index}, of type {type(result).__name__}, cannot be pickled "
            f"and so not be carried to the process that asked for it: {error}"
        ) from error
    return pickled
