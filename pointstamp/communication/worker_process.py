"""What a process that `run_processes` started does, from its first import to its end.

It was given file descriptors and nothing else: a control socket, over which the
target comes and the result goes, one stream to each peer, and memory that it
shares with them. The parent made all of these and gave them no name, so only the
parent and its children can hold the other ends: that is the authentication.

A daemon thread waits for the control socket to end. That it does means that the
parent is gone, however it went, and then this process goes too.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication.failure import UncarriedResult, dump, failure
from pointstamp.communication.framing import Frame, FrameKind, FrameReader, frame
from pointstamp.communication.mesh import MeshCommunicator
from pointstamp.communication.segment import Segment

ORPHANED_STATUS = 70
"""With what a process exits whose parent is gone; nobody is there to read it."""


def main(
    index: int,
    peers: int,
    control_fd: int,
    peer_fds: Mapping[int, int],
    shared_fd: int | None,
) -> None:
    """Run the target that comes over `control_fd` as worker `index` of `peers`."""
    # Ctrl-C goes to the parent as well, which stops us. A handler, rather than
    # ignoring the signal, so that programs we start do not inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    control = _adopt(control_fd)
    communicator = MeshCommunicator(
        index,
        peers,
        {peer: _adopt(fd) for peer, fd in peer_fds.items()},
        _mapped(shared_fd, peers),
    )
    asked = _read_target(control)
    threading.Thread(
        target=_exit_with_parent, args=(control_fd,), name="pointstamp-parent", daemon=True
    ).start()
    try:
        result = cloudpickle.loads(asked.body)(communicator)
        pickled = _pickled(index, result)
        communicator.close()
        _send(control, FrameKind.RESULT, pickled)
    except BaseException as cause:  # noqa: BLE001  (the parent raises it)
        # The parent first: telling the peers may take a moment.
        _send(control, FrameKind.FAILURE, dump(failure(index, cause, time.monotonic())))
        communicator.abort(cause)
    # Not closed, as the thread above still reads it; it ends with the process.
    control.detach()


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


def _read_target(control: socket.socket) -> Frame:
    """The first frame of the parent; it sends no other."""
    reader = FrameReader()
    while n_bytes := control.recv_into(reader.space()):
        for found in reader.advance(n_bytes):
            return found
    os._exit(ORPHANED_STATUS)


def _exit_with_parent(control_fd: int) -> None:
    while os.read(control_fd, 1):
        pass
    os._exit(ORPHANED_STATUS)


def _pickled(index: int, result: Any) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(result)
    except Exception as error:
        raise UncarriedResult(
            f"the result of worker {index}, of type {type(result).__name__}, cannot be pickled "
            f"and so not be carried to the process that asked for it: {error}"
        ) from error
    return pickled


def _send(control: socket.socket, kind: FrameKind, body: bytes) -> None:
    """Tell the parent; without one there is nobody to tell anything."""
    try:
        for piece in frame(kind, 0, [body]):
            control.sendall(piece)
    except OSError:
        os._exit(ORPHANED_STATUS)
