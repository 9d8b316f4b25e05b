"""Checks of the laws that every communicator keeps, for ours and for anyone else's.

`check_communicator(run)` runs small programs on 1, 2 and 3 workers. What starts
the workers is given, as is what connects them: `run(target, workers)` calls
`target(communicator)` for each worker and returns the results by index, raising
`WorkerError` for the first worker that fails, as `run_threads` and
`run_processes` do. Each program ends with an assertion that says which law did
not hold; a communicator that loses a message fails after `PATIENCE_S`, it does
not hang.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pointstamp.communication.communicator import Channel, Communicator, Message
from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import PeerFailedError, PeerLostError, WorkerError

Run = Callable[[Callable[[Communicator], Any], int], list[Any]]
Program = Callable[[Communicator], Any]

PATIENCE_S = 60.0
"""How long a message is waited for before it counts as lost."""

STOP_S = 20.0
"""How long a computation may take to stop after a failure: the second that is
promised, with room for a slow machine that has other things to do."""

N_BIG_BYTES = 50_000_000
N_PARKS = 15
N_SMALL = 5_000


def check_communicator(run: Run, batches: Sequence[Any] = ()) -> None:
    """Check that the communicators that `run` passes to its workers satisfy the protocol's laws.

    Parameters
    ----------
    run : callable
        `run(target, workers) -> results`, see above.
    batches : sequence, optional
        Containers that should travel too, beside rows and arrays.

    Raises
    ------
    AssertionError
        Naming the law that did not hold, and with how many workers.

    Examples
    --------
    >>> from pointstamp.communication.launch import run_threads
    >>> check_communicator(run_threads)
    """
    carries = _carries([*_samples(), *batches])
    for workers in (1, 2, 3):
        _run(run, _one_after_the_other(*_PROGRAMS, carries), workers)
    for workers in (2, 3):
        _run(run, _closes, workers)
        _check_closing(run, workers)
    for wait in (_waits_in_receive, _waits_in_park, _waits_in_close):
        _check_failure(run, wait)
    _check_notice(run)


def _one_after_the_other(*programs: Program) -> Program:
    """Several programs as one, so that what starts slowly is started once."""

    def all_of_them(communicator: Communicator) -> None:
        for program in programs:
            program(communicator)

    return all_of_them


def _run(run: Run, program: Program, workers: int) -> list[Any]:
    """Run a program; an assertion that failed in a worker fails here, with its name."""
    try:
        return run(program, workers)
    except WorkerError as error:
        if isinstance(error.__cause__, AssertionError):
            raise AssertionError(
                f"with {workers} workers, worker {error.worker}: {error.__cause__}"
            ) from error
        raise


def _require(condition: object, law: str) -> None:
    if not condition:
        raise AssertionError(law)


def _next(communicator: Communicator, channel: Channel, law: str) -> Message:
    """The next message of a channel, waiting for it as a worker does."""
    until = time.monotonic() + PATIENCE_S
    while True:
        communicator.receive()
        message = channel.pull()
        if message is not None:
            return message
        _require(time.monotonic() < until, f"{law}: a message did not come in {PATIENCE_S:g} s")
        communicator.flush()
        communicator.park(PATIENCE_S)


def _keeps_order(communicator: Communicator) -> None:
    """Many small messages on three channels between all, to oneself too."""
    law = "per channel and sender, messages arrive in the order of sending, each once"
    channels = [communicator.channel() for _ in range(3)]
    n_each = N_SMALL // len(channels)
    for number in range(n_each):
        for channel in channels:
            for peer in range(communicator.peers):
                channel.send(peer, number, [communicator.index])
    for channel in channels:
        seen = [0] * communicator.peers
        for _ in range(n_each * communicator.peers):
            sender, tag, batch = _next(communicator, channel, law)
            _require(
                tag == seen[sender] and batch == [sender],
                f"{law}: from worker {sender}, message {seen[sender]} was due on channel "
                f"{channel.id}, and {tag} came with {batch}",
            )
            seen[sender] += 1
    communicator.receive()
    _require(all(channel.pull() is None for channel in channels), f"{law}: more came than sent")


def _numbers_channels(communicator: Communicator) -> None:
    """The k-th channel is the k-th everywhere, and is reported by that number."""
    law = "the k-th call of channel() makes channel k"
    channels = {id: communicator.channel() for id in range(4)}
    _require([channel.id for channel in channels.values()] == [0, 1, 2, 3], law)
    for channel in reversed(channels.values()):
        channel.send(communicator.index, channel.id, [])
        channel.send(communicator.index, channel.id, [])
    reported: list[int] = []
    until = time.monotonic() + PATIENCE_S
    n_pulled = 0
    while n_pulled < 8:
        _require(time.monotonic() < until, "a message to oneself arrives, and receive() says so")
        named = communicator.receive()
        _require(
            named == sorted(set(named)),
            f"receive() gives the channels that got messages, each once, in order; got {named}",
        )
        reported += named
        for channel in [channels[id] for id in named]:
            while (message := channel.pull()) is not None:
                _require(message.tag == channel.id, f"{law}: {message} came on {channel.id}")
                n_pulled += 1
        if n_pulled < 8:
            communicator.park(PATIENCE_S)
    _require(set(reported) == {0, 1, 2, 3}, f"receive() names every channel; got {reported}")


def _keeps_for_later(communicator: Communicator) -> None:
    """Worker 0 uses channels that the others make when they know that it has."""
    law = "messages for a channel that was not made yet are kept for it"
    first = communicator.channel()
    if communicator.index == 0:
        early = communicator.channel()
        for peer in range(communicator.peers):
            early.send(peer, "early", [peer])
        for peer in range(communicator.peers):
            first.send(peer, "go", [])
    _next(communicator, first, law)
    if communicator.index > 0:
        early = communicator.channel()
    message = _next(communicator, early, law)
    _require(message == (0, "early", [communicator.index]), f"{law}; got {message}")


def _carries_much(communicator: Communicator) -> None:
    """Large messages in both directions at once: neither waits for room at the other."""
    if communicator.peers > 2:
        return  # more of the same, and a lot of memory
    law = "large messages in all directions at once do not stand in each other's way"
    channel = communicator.channel()
    for peer in range(communicator.peers):
        channel.send(peer, peer, [bytes([peer]) * N_BIG_BYTES])
    for _ in range(communicator.peers):
        message = _next(communicator, channel, law)
        _require(
            message.batch == [bytes([communicator.index]) * N_BIG_BYTES],
            f"{law}: other bytes came than were sent",
        )


def _parks(communicator: Communicator) -> None:
    """`park` ends by itself, by a message and by an `unpark`, and sleeps meanwhile."""
    channel = communicator.channel()
    communicator.park(0)  # a wake-up that is left over from before may end this one
    used_s = _least_used_s(communicator)
    _require(used_s < 0.005, f"park uses no processor while it waits, but used {used_s:.3f} s")
    communicator.unpark()
    _require(_parked_s(communicator) < STOP_S, "park returns at once after an unpark")
    communicator.park(0)
    other = threading.Thread(target=communicator.unpark)
    other.start()
    _require(_parked_s(communicator) < STOP_S, "an unpark from another thread ends a park")
    other.join()
    channel.send(communicator.index, "self", [])
    communicator.flush()
    _require(_parked_s(communicator) < STOP_S, "park returns if there is something to receive")
    right = (communicator.index + 1) % communicator.peers
    channel.send(right, "right", [])
    for _ in range(2):
        _next(communicator, channel, "a message ends a park")


def _throws_away(communicator: Communicator) -> None:
    """What comes on a channel that its receiver has closed, before that and after."""
    law = "what comes on a channel end that is closed is thrown away"
    closed, other = communicator.channel(), communicator.channel()
    for peer in range(communicator.peers):
        closed.send(peer, "early", [1])
    closed.close()
    for peer in range(communicator.peers):
        other.send(peer, None, [])
    for _ in range(communicator.peers):
        _next(communicator, other, law)
    _require(closed.pull() is None, law)
    _require(closed.id not in communicator.receive(), f"{law}, and is not named")


def _least_used_s(communicator: Communicator) -> float:
    """How long the processor is used in a park of 0.2 s; the least of a few.

    At first there may be work to do: that of simulated peers, which run in the same thread,
    and what was sent before, which takes a while to decrypt.
    """
    used_s = []
    for _ in range(N_PARKS):
        began = time.thread_time()
        communicator.park(0.2)
        used_s.append(time.thread_time() - began)
        if used_s[-1] < 0.005:
            break
    return min(used_s)


def _parked_s(communicator: Communicator) -> float:
    began = time.monotonic()
    communicator.park(PATIENCE_S)
    return time.monotonic() - began


def _closes(communicator: Communicator) -> None:
    """Worker 0 closes right after sending; what it sent arrives all the same."""
    law = "what was sent before close arrives"
    channel = communicator.channel()
    if communicator.index == 0:
        for number in range(N_SMALL):
            for peer in range(1, communicator.peers):
                channel.send(peer, number, [number])
        communicator.close()
        return
    for number in range(N_SMALL):
        message = _next(communicator, channel, law)
        _require(message == (0, number, [number]), f"{law}: {number} was due, got {message}")
    communicator.close()


def _check_closing(run: Run, workers: int) -> None:
    """No `close` returns before the last one is called."""
    moments = _run(run, _closes_at, workers)
    _require(
        max(began for began, _ in moments) <= min(ended for _, ended in moments),
        f"close returns when all peers have closed too; with {workers} workers it was called and "
        f"returned at {moments}",
    )


def _closes_at(communicator: Communicator) -> tuple[float, float]:
    """When `close` was called and when it returned; worker 0 calls it last."""
    channel = communicator.channel()
    if communicator.index == 0:
        for _ in range(communicator.peers - 1):
            _next(communicator, channel, "a message arrives while its sender closes")
    else:
        channel.send(0, "closing", [])
    began = time.monotonic()
    communicator.close()
    ended = time.monotonic()
    communicator.close()  # by what runs the worker: the second time does nothing
    return began, ended


def _check_failure(run: Run, wait: Program) -> None:
    """Worker 1 raises while two others wait, and `run` says which and what."""
    law = f"a worker that raises stops the others, where each {wait.__doc__}"

    def program(communicator: Communicator) -> None:
        _meet_at_worker_1(communicator)
        if communicator.index == 1:
            raise ZeroDivisionError(f"planted at {time.monotonic()} s")
        wait(communicator)

    try:
        run(program, 3)
    except WorkerError as error:
        _require(
            error.worker == 1 and "planted" in str(error),
            f"{law}: the first cause is worker 1 and what it raised, not {error}",
        )
        # From that moment: to start the workers may take long on a busy machine.
        planted = re.search(r"planted at ([\d.e+]+) s", str(error))
        assert planted is not None
        took_s = time.monotonic() - float(planted[1])
        _require(took_s < STOP_S, f"{law}: it took {took_s:.1f} s")
        return
    raise AssertionError(f"{law}: nothing was raised")


def _check_notice(run: Run) -> None:
    """Worker 1 aborts, and the others learn which one it was; `close` is nothing after that."""
    law = "peers of a worker that aborts raise an error that names it"

    def program(communicator: Communicator) -> int | None:
        _meet_at_worker_1(communicator)
        if communicator.index == 1:
            communicator.abort(ZeroDivisionError("planted"))
            return 1
        try:
            _waits_in_park(communicator)
        except (PeerFailedError, PeerLostError) as error:
            communicator.abort(error)
            return error.peer
        return None

    named = _run(run, program, 3)
    _require(named == [1, 1, 1], f"{law}: worker 1 did, and they name {named}")


def _meet_at_worker_1(communicator: Communicator) -> None:
    """Let worker 1 go on when the others have come this far."""
    channel = communicator.channel()
    if communicator.index == 1:
        for _ in range(communicator.peers - 1):
            _next(communicator, channel, "a message arrives")
    else:
        channel.send(1, "ready", [])
        communicator.flush()


def _waits_in_receive(communicator: Communicator) -> None:
    """Calls receive over and over."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        communicator.receive()
        communicator.park(0.001)


def _waits_in_park(communicator: Communicator) -> None:
    """Parks."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        communicator.park(PATIENCE_S)


def _waits_in_close(communicator: Communicator) -> None:
    """Closes."""
    communicator.close()


def _carries(batches: Sequence[Any]) -> Program:
    """A program that sends each of `batches` around."""

    def carries(communicator: Communicator) -> None:
        law = "a container arrives as it was sent"
        channel = communicator.channel()
        for peer in range(communicator.peers):
            for number, batch in enumerate(batches):
                channel.send(peer, (number, "tag"), batch)
        seen = [0] * communicator.peers
        for _ in range(communicator.peers * len(batches)):
            sender, tag, batch = _next(communicator, channel, law)
            sent = batches[seen[sender]]
            _require(tag == (seen[sender], "tag"), f"{law}: with tag {tag}")
            _require(
                type(batch) is type(sent) and _records(batch) == _records(sent),
                f"{law}: {batch!r} is not {sent!r}",
            )
            seen[sender] += 1

    return carries


def _records(batch: Any) -> list[Any]:
    return list(kind_of(batch).records(batch))


def _samples() -> list[Any]:
    """Containers of our own kinds, full and empty."""
    import numpy as np

    return [
        ["a", ("b", 2), None],
        [],
        Arrays(key=np.arange(1_000), value=np.linspace(0, 1, 1_000)),
        Arrays(key=np.zeros(0, np.int64)),
    ]


# The first one counts on the channels being the first ones.
_PROGRAMS: tuple[Program, ...] = (
    _numbers_channels,
    _keeps_order,
    _keeps_for_later,
    _carries_much,
    _parks,
    _throws_away,
)
