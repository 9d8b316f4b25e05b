"""Random messages and requests over control connections, against what was sent."""

from __future__ import annotations

import queue
import socket
from concurrent.futures import Future
from dataclasses import dataclass
from random import Random
from typing import Any

from pointstamp.communication.control import ControlClient, ControlConnection, ControlServer
from pointstamp.errors import PeerLostError

PATIENCE_S = 60.0
"""How long what should happen at once may take on a busy machine."""


@dataclass(frozen=True)
class Note:
    """A message, numbered."""

    number: int
    body: bytes


@dataclass(frozen=True)
class Square:
    """A request; odd ones are answered later, those divisible by five are refused."""

    n: int


class _End:
    """What one end gets, and the answers that it owes."""

    def __init__(self) -> None:
        self.notes: queue.Queue[tuple[int, Note]] = queue.Queue()
        self.closed: queue.Queue[str | None] = queue.Queue()
        self.owed: queue.Queue[tuple[Future[Any], int]] = queue.Queue()

    def handlers(self) -> dict[type, Any]:
        return {Note: lambda one, note: self.notes.put((one.worker, note)), Square: self.answer}

    def answer(self, connection: ControlConnection, asked: Square) -> Any:
        if asked.n % 5 == 0:
            raise ValueError(f"no square of {asked.n}")
        if asked.n % 2 == 0:
            return asked.n**2
        future: Future[Any] = Future()
        self.owed.put((future, asked.n))
        return future

    def pay(self, rng: Random, n_owed: int) -> None:
        """Answer what is owed, in another order."""
        owed = [self.owed.get(timeout=PATIENCE_S) for _ in range(n_owed)]
        rng.shuffle(owed)
        for future, n in owed:
            future.set_result(n**2)


def check_control(seed: int) -> None:
    """Messages arrive in their order, each request gets its own answer, and ends are told apart.

    A connection that is closed is closed at the other end without a reason; one that is cut
    has one, and requests that wait for their answers fail.
    """
    rng = Random(seed)
    here, there = _End(), _End()
    ours, theirs = socket.socketpair()
    worker = rng.randrange(9)
    with ControlServer(
        host=None,
        handlers=here.handlers(),
        on_close=lambda _, reason: here.closed.put(reason),
    ) as server:
        at_server = server.adopt(ours, worker)
        client = ControlClient(theirs, worker, there.handlers(), lambda _, r: there.closed.put(r))
        try:
            for _ in range(rng.choice([1, 4])):
                _exchange(rng, worker, client, here)
                _exchange(rng, worker, at_server, there)
            _end(rng, server, client, theirs, here)
        finally:
            client.end(0.1)


def _exchange(rng: Random, worker: int, sender: ControlConnection, other: _End) -> None:
    notes, asked = [], []
    for number in range(rng.choice([0, 1, 30])):
        size = rng.choice([0, 1, 1000, 1 << 14, 1 << 17])
        notes.append(Note(number, bytes([number % 251]) * size))
        sender.send(notes[-1])
        if rng.random() < 0.5:
            n = rng.randrange(100)
            asked.append((n, sender.request(Square(n))))
    other.pay(rng, sum(n % 5 != 0 and n % 2 != 0 for n, _ in asked))
    for note in notes:
        assert other.notes.get(timeout=PATIENCE_S) == (worker, note)
    for n, future in asked:
        error = future.exception(PATIENCE_S)
        if n % 5:
            assert error is None
            assert future.result() == n**2
        else:
            assert isinstance(error, ValueError)
            assert str(error) == f"no square of {n}"
    assert sender.flush(PATIENCE_S)
    assert other.notes.empty()


def _end(
    rng: Random, server: ControlServer, client: ControlClient, socket_: socket.socket, here: _End
) -> None:
    is_cut = rng.random() < 0.5
    waiting = client.request(Square(1))
    owed, _ = here.owed.get(timeout=PATIENCE_S)
    last = Note(7, bytes(1 << 20))
    if is_cut:
        socket_.shutdown(socket.SHUT_RDWR)
    else:
        client.send(last)
        client.close()
    reason = here.closed.get(timeout=PATIENCE_S)
    assert (reason is not None) == is_cut
    assert isinstance(waiting.exception(PATIENCE_S), PeerLostError)
    if not is_cut:
        assert here.notes.get(timeout=PATIENCE_S)[1] == last
    assert server.connections() == {}
    assert not client.is_open
    owed.set_result(1)
    client.send(last)  # is dropped
    assert isinstance(client.request(Square(2)).exception(PATIENCE_S), PeerLostError)
