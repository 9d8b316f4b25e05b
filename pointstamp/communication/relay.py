"""What the relay of a machine does, from its first import to its end; see `relay_process`.

It was given two descriptors and nothing else: one end of a pair of sockets, over which its task
comes, and a listening socket. Where its parent is gone, so is its link to it, which
is the loss of a worker as any. If it did not end by that, it does so `ORPHAN_S` later.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication.listening import Listener
from pointstamp.communication.parent_death import ORPHANED_STATUS
from pointstamp.communication.relay_process import N_MESSAGE, RelayTask, received
from pointstamp.communication.tcp import connect_relay
from pointstamp.errors import (
    CommunicationError,
    PeerFailedError,
    PeerLostError,
    PointstampError,
)

ORPHAN_S = 1.0
"""How long a relay without its parent may take to let the others know."""

LOOK_S = 1.0
"""How often it looks whether it has one still, where the end of the sockets does not show it."""


class _Parent:
    """What comes from the parent, and its end; a thread reads it."""

    def __init__(self, stream: socket.socket, process: int) -> None:
        self.stream = stream
        self.messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.wake: Callable[[], None] = lambda: None
        """Called from the thread when there is a message."""
        self._process = process
        threading.Thread(target=self._read, name="pointstamp-relay-parent", daemon=True).start()

    def _read(self) -> None:
        waiting = select.poll()
        waiting.register(self.stream, select.POLLIN)
        while os.getppid() == self._process:
            if not waiting.poll(LOOK_S * 1e3):
                continue
            message = received(self.stream)
            if message is None:
                break
            self.messages.put(message)
            self.wake()
        time.sleep(ORPHAN_S)
        os._exit(ORPHANED_STATUS)


def main(parent_fd: int, listener_fd: int, process: int) -> None:
    """Be the relay that `process` starts, until all its workers have ended."""
    # Ctrl-C goes to the workers as well, whose end is ours.
    signal.signal(signal.SIGINT, lambda *_: None)
    status = 1
    try:
        for fd in (parent_fd, listener_fd):
            os.set_inheritable(fd, False)
        parent = _Parent(socket.socket(fileno=parent_fd), process)
        task: RelayTask = pickle.loads(parent.messages.get())
        _relay(task, parent, socket.socket(fileno=listener_fd))
        status = 0
    except PointstampError:
        pass  # the workers raise it
    except BaseException:  # noqa: BLE001  (the workers learn of it, and of where it was only here)
        traceback.print_exc()
    finally:
        os._exit(status)


def _relay(task: RelayTask, parent: _Parent, listener: socket.socket) -> None:
    host = task.addresses[task.index][0]
    try:
        mesh = connect_relay(task, Listener(listener, host))
    except PointstampError as error:
        said = pickle.dumps(error)
        with contextlib.suppress(OSError):  # the worker is gone, or has raised it already
            parent.stream.sendall(N_MESSAGE.pack(len(said)) + said)
        raise

    def heed() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                mesh.hold_unsent_in(cloudpickle.loads(parent.messages.get_nowait()))

    parent.wake = mesh.unpark
    try:
        heed()
        mesh.pass_on_for_others(heed)
    except (PeerFailedError, PeerLostError) as error:
        mesh.abort(error)
        raise
    except BaseException as error:
        mesh.abort(CommunicationError(f"its relay failed: {type(error).__name__}: {error}"))
        raise
