"""Shared memory between two workers: what goes which way, who is woken, what a crash leaves."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.communication import mesh, segment
from pointstamp.communication.mesh import MeshCommunicator
from pointstamp.communication.processes import run_processes
from pointstamp.communication.ring import MAX_CHANNEL, RING_BYTES
from pointstamp.communication.segment import ARENA_BYTES, Segment
from pointstamp.communication.shared_link import INLINE_BYTES, MAX_RECORDS, VALUES_BYTES
from pointstamp.containers import Arrays
from pointstamp.errors import PeerLostError, SerializationError, WorkerError
from pointstamp.testing import check_communicator
from tests.conftest import once_from
from tests.slowness import slowdown

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")

SIZES = [0, 1, INLINE_BYTES - 200, INLINE_BYTES, INLINE_BYTES + 1, RING_BYTES, 3 * RING_BYTES]


@pytest.fixture
def ends(monkeypatch):
    monkeypatch.setattr(mesh, "LINGER_S", 0.0)
    made = meshed()
    yield made
    for end in made:
        end.abort()


def meshed():
    sockets = socket.socketpair()
    fd = segment.create(2)
    segments = [Segment(fd, 2) for _ in range(2)]
    os.close(fd)
    return [
        MeshCommunicator(index, 2, {1 - index: sockets[index]}, segments[index])
        for index in range(2)
    ]


def pulled(end, channel):
    end.receive()
    while (message := channel.pull()) is not None:
        yield message


def column(number, n_bytes):
    return Arrays(v=np.full(n_bytes // 8 + 1, number))


def is_shared(batch):
    """Whether a column lies in shared memory."""
    address = batch["v"].ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(bound, 16) for bound in line.split()[0].split("-"))
        if start <= address < end:
            return "memfd:pointstamp" in line
    raise AssertionError("a column that lies nowhere")


@pytest.mark.parametrize("has_blocks", [True, False])
@pytest.mark.parametrize("kind", ["rows", "arrays", "columns"])
def test_messages_of_all_sizes_keep_their_order(ends, kind, has_blocks, monkeypatch):
    zero, one = ends
    if not has_blocks:
        monkeypatch.setattr(zero._arena, "take", lambda n_bytes: None)
    make = {
        "rows": lambda n: [bytes(n)],
        "arrays": lambda n: Arrays(v=np.arange(n)),
        "columns": lambda n: pa.record_batch({"v": np.arange(n)}),
    }[kind]
    channel, other = zero.channel(), one.channel()
    for tag, size in enumerate(2 * SIZES):
        channel.send(1, tag, make(size))
    tag = 0
    zero.flush()
    while tag < 2 * len(SIZES):
        zero.receive()  # which goes on writing
        for message in pulled(one, other):
            assert message.tag == tag
            assert message.batch == make(SIZES[tag % len(SIZES)])
            tag += 1


def test_a_large_column_is_read_where_it_was_written_and_a_small_one_is_not(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    channel.send(1, None, column(1, INLINE_BYTES))
    channel.send(1, None, column(2, 100))
    zero.flush()
    large, small = [message.batch for message in pulled(one, other)]
    assert is_shared(large)
    assert not is_shared(small)
    assert large == column(1, INLINE_BYTES)
    assert large["v"].ctypes.data % 64 == 0
    del large


def test_memory_is_used_again(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    places = set()
    for _ in range(50):
        channel.send(1, None, column(1, 1 << 20))
        zero.flush()
        for message in pulled(one, other):
            places.add(message.batch["v"].ctypes.data)
            del message
    assert len(places) <= 2
    assert zero._arena.n_out <= 2


def test_a_receiver_that_keeps_everything_stops_nobody(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    size, kept = 1 << 22, []
    for number in range(ARENA_BYTES // size + 20):
        channel.send(1, number, column(number, size))
        kept += [message.batch for message in pulled(one, other)]
        zero.flush()
    kept += [message.batch for message in pulled(one, other)]
    assert [batch["v"][-1] for batch in kept] == list(range(ARENA_BYTES // size + 20))
    n_shared = sum(map(is_shared, kept))
    assert 0 < n_shared * size <= ARENA_BYTES // 2
    kept.clear()


def test_what_does_not_fit_anywhere_waits_at_the_sender(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    size = 1 << 22
    n_sent = ARENA_BYTES // size + 5
    for number in range(n_sent):
        channel.send(1, number, column(number, size))
    assert zero._links[1].n_unsent > size
    assert zero._links[1].is_blocked
    tags = []
    while len(tags) < n_sent:
        tags += [message.tag for message in pulled(one, other)]
        zero.receive()  # which goes on writing
    assert tags == list(range(n_sent))
    assert not zero._links[1].is_blocked


def test_views_outlive_the_communicator(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    channel.send(1, None, column(5, 1 << 20))
    zero.flush()
    (batch,) = [message.batch for message in pulled(one, other)]
    for end in ends:
        end.abort()
    assert batch == column(5, 1 << 20)


def test_nothing_is_asked_of_the_system_between_workers_that_are_awake(ends, monkeypatch):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    one.receive()  # which asks whether its peers live, and then not for a while
    monkeypatch.setattr(one, "_serve", None)
    monkeypatch.setattr(zero._links[1], "connection", None)
    for number in range(100):
        channel.send(1, number, [number])
        zero.flush()
        one._look_at = float("inf")
        assert [message.tag for message in pulled(one, other)] == [number]
    monkeypatch.undo()


def test_only_a_peer_that_sleeps_is_woken(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    thread = threading.Thread(target=one.park)
    thread.start()
    word = one._segment.layout.parked_word(1)
    while not zero._segment.words[word]:
        time.sleep(0.001)
    channel.send(1, None, ["x"])
    zero.flush()
    thread.join()
    assert [message.batch for message in pulled(one, other)] == [["x"]]
    assert not zero._segment.words[word]


def test_a_sleeping_writer_is_woken_by_room(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    n_sent = 3 * RING_BYTES // 1_000
    for number in range(n_sent):
        channel.send(1, number, [bytes(1_000)])
    thread = threading.Thread(target=zero.park)
    thread.start()
    tags = []
    while len(tags) < n_sent:
        tags += [message.tag for message in pulled(one, other)]
    zero.unpark()
    thread.join()
    assert tags == list(range(n_sent))


def test_wake_ups_are_never_lost():
    """Two workers that pass one message back and forth, and sleep each time."""

    def target(communicator):
        communicator._spin.is_allowed = False
        channel, peer = communicator.channel(), 1 - communicator.index
        for number in range(5_000):
            if communicator.index == number % 2:
                channel.send(peer, number, [number])
            else:
                while (message := channel.pull()) is None:
                    communicator.park(20)
                    communicator.receive()
                assert message.tag == number
        return True

    assert run_processes(target, 2) == [True, True]


def test_what_a_peer_published_before_it_died_is_read(ends):
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    channel.send(1, "last", [1])
    channel.send(1, "large", column(3, 1 << 20))
    zero.flush()
    zero._links[1].connection.close()

    def go_on():
        while True:
            one.park()
            one.receive()

    with pytest.raises(PeerLostError, match="worker 1 lost worker 0"):
        go_on()
    assert [other.pull().tag, other.pull().tag] == ["last", "large"]


def test_a_message_in_pieces_to_a_peer_that_died_parked_is_given_up(ends, monkeypatch):
    """That it is gone is seen when it is woken, in the middle of the message."""
    zero, one = ends
    monkeypatch.setattr(zero._arena, "take", lambda n_bytes: None)
    channel = zero.channel()
    zero._segment.words[zero._segment.layout.parked_word(1)] = 1
    one._shared[0].connection.close()
    channel.send(1, "tag", column(1, 3 * RING_BYTES))

    def go_on():
        while True:
            zero.receive()

    with pytest.raises(PeerLostError, match="worker 0 lost worker 1"):
        go_on()


def test_rows_of_plain_values_and_others_come_as_they_were_and_in_order(ends):
    """Those that are written where they are read, those that are pickled, and what is full."""
    zero, one = ends
    channel, other = zero.channel(), one.channel()
    batches = [
        [1, (2, "three"), None, 4.5, True, b"six"],
        [[1], {"a": 2}],
        list(range(MAX_RECORDS)),
        list(range(MAX_RECORDS + 1)),
        ["x" * VALUES_BYTES],
        [],
        ["x" * (VALUES_BYTES - 30)],
    ]
    sent = []
    while not zero._links[1].n_unsent:
        for batch in batches:
            sent.append(((len(sent), 0), batch))
            channel.send(1, *sent[-1])
    got = []
    while len(got) < len(sent):
        zero.flush()
        got += [(message.tag, message.batch) for message in pulled(one, other)]
        zero.receive()  # which goes on writing
    assert got == sent
    assert [type(value) for value in got[0][1]] == [type(value) for value in sent[0][1]]


def test_a_channel_without_a_number_is_refused(ends):
    with pytest.raises(SerializationError, match="channel 16777216 has no number"):
        ends[0]._links[1].send(MAX_CHANNEL + 1, None, [1])


def everything_everywhere(communicator, seconds):
    """Send batches of all sizes to all, keep some of what comes, until time is up."""
    rng, until = random.Random(communicator.index), time.monotonic() + seconds
    channel, kept = communicator.channel(), []
    while time.monotonic() < until:
        for peer in range(communicator.peers):
            channel.send(peer, None, column(1, rng.choice([8, 1_000, 100_000, 2_000_000])))
            channel.send(peer, None, [rng.random()])
        communicator.flush()
        communicator.receive()
        while (message := channel.pull()) is not None:
            kept.append(message.batch)
        del kept[: -rng.randrange(1, 40)]
        communicator.park(0.001)


def segments() -> set[str]:
    """What shared memory has a name, but for the semaphores and folders of whatever else runs."""
    found = (file for file in Path("/dev/shm").iterdir() if not file.is_dir())
    return {file.name for file in found if not file.name.startswith("sem.")}


def die(died):
    """Kill this process, and say when that was, on the clock that all processes share."""
    died.write_text(str(time.monotonic()))
    os.kill(os.getpid(), signal.SIGKILL)


def seconds_since(died):
    return time.monotonic() - float(died.read_text())


STOP_S = 10.0
"""Within how long all workers have ended after one died: a second, on a machine that is quick and
does nothing else. Those that did not notice would go on for a minute, or for ever."""


@pytest.mark.parametrize("seed", once_from(1, range(4)))
def test_a_worker_killed_at_any_moment_ends_all_and_leaves_nothing(seed, tmp_path):
    """Files are looked after by the check for leaks that every test has."""
    rng, before = random.Random(seed), segments()
    victim, delay_s = rng.randrange(3), rng.uniform(0.0, 0.3)
    died = tmp_path / "died"

    def target(communicator):
        if communicator.index == victim:
            threading.Timer(delay_s, die, (died,)).start()
        everything_everywhere(communicator, 60)

    with pytest.raises(WorkerError, match=f"worker {victim} was killed by SIGKILL"):
        run_processes(target, 3)
    assert seconds_since(died) < STOP_S * slowdown()
    assert segments() <= before


def test_a_worker_that_computes_learns_of_a_death(tmp_path):
    """It looks now and then, without having to park for it."""
    died, learned = tmp_path / "died", tmp_path / "learned"

    def target(communicator):
        if communicator.index == 1:
            die(died)
        with contextlib.suppress(PeerLostError):
            while True:
                communicator.receive()  # and never parks
        learned.write_text(str(seconds_since(died)))

    with pytest.raises(WorkerError, match="worker 1 was killed"):
        run_processes(target, 2)
    # Where this machine is so slow that it was ended before, it has not learned of it late.
    said = learned.read_text() if learned.exists() else ""
    assert not said or float(said) < STOP_S * slowdown()
    assert seconds_since(died) < STOP_S * slowdown()


@pytest.mark.once
def test_without_such_memory_messages_go_through_the_sockets(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert segment.create(2) is None
    check_communicator(run_processes, [pa.record_batch({"key": [1, 2, 3]})])


def test_memory_that_cannot_be_mapped_is_done_without(monkeypatch):
    monkeypatch.setattr(segment, "ARENA_BYTES", 1 << 47)
    assert segment.create(2) is None
    assert run_processes(_n_shared, 2) == [0, 0]


def _n_shared(communicator):
    return len(communicator._shared)


def test_a_signal_that_raises_leaves_no_fence_locked():
    def interrupt(*_):
        raise InterruptedError

    fence = segment.Fence()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(200):
            with contextlib.suppress(InterruptedError):
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                # Not for ever: what is raised in a callback of the garbage collector is lost.
                for _ in range(1_000_000):
                    fence.full()
            assert not fence._lock.locked()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_blocks_of_messages_for_a_closed_channel_go_back(ends):
    """Those that had arrived, and those that come later; the other channel goes on."""
    zero, one = ends
    channels, others = ([end.channel() for _ in range(2)] for end in ends)
    for number in range(3):
        channels[0].send(1, None, column(number, 1 << 20))
        zero.flush()
        one.receive()
        if number == 1:
            others[0].close()
    channels[1].send(1, "kept", [1])
    zero.flush()
    assert one.receive() == [others[1].id]
    assert others[1].pull().tag == "kept"
    assert others[0].pull() is None
    channels[1].send(1, None, [1])
    zero.flush()
    one.receive()  # blocks go back with whatever is read next
    assert one._links[0]._leases.n_leased_bytes == 0
