"""The mesh, several ends in one thread: what is written when, and how streams end."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import threading

import numpy as np
import pytest

from pointstamp.communication import mesh, segment
from pointstamp.communication.framing import FrameKind, frame
from pointstamp.communication.mesh import MeshCommunicator
from pointstamp.communication.segment import Segment
from pointstamp.containers.arrays import Arrays
from pointstamp.errors import CommunicationError, PeerFailedError, PeerLostError

LARGE = bytes(8 << 20)


@pytest.fixture(params=["streams", "shared memory"])
def plane(request):
    """What carries the messages."""
    if request.param == "shared memory" and not hasattr(os, "memfd_create"):
        pytest.skip("this system has no memory without a name")
    return request.param


@pytest.fixture
def ends(request, plane):
    """The communicators of as many workers as the test asks for (two), aborted in the end."""
    made = meshed(getattr(request, "param", 2), plane)
    yield made
    for end in made:
        end.abort()


@pytest.fixture(autouse=True)
def no_lingering(monkeypatch):
    """The other ends are in the same thread, so that waiting for them is for nothing."""
    monkeypatch.setattr(mesh, "LINGER_S", 0.0)


def meshed(workers, plane):
    sockets = [{} for _ in range(workers)]
    for one, other in itertools.combinations(range(workers), 2):
        sockets[one][other], sockets[other][one] = socket.socketpair()
    with shared(workers, plane) as segments:
        return [
            MeshCommunicator(index, workers, sockets[index], segments[index])
            for index in range(workers)
        ]


@contextlib.contextmanager
def shared(workers, plane):
    """A mapping of shared memory for each worker; None for each where there is none."""
    if plane == "streams":
        yield [None] * workers
        return
    fd = segment.create(workers)
    yield [Segment(fd, workers) for _ in range(workers)]
    os.close(fd)


@pytest.fixture
def bare():
    """A communicator, and the bare socket of its only peer."""
    ours, theirs = socket.socketpair()
    end = MeshCommunicator(0, 2, {1: ours})
    with theirs:
        yield end, theirs
    end.abort()


def close_all(ends):
    """Close in a thread each, as each waits for the others."""
    threads = [threading.Thread(target=end.close) for end in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_nothing_is_written_before_a_flush_and_then_all_in_one_piece(bare):
    end, theirs = bare
    channel = end.channel()
    for number in range(3):
        channel.send(1, number, [number])
    assert select.select([theirs], [], [], 0)[0] == []
    end.flush()
    one_read = theirs.recv(1 << 16)
    assert one_read.count(b"ptRw") == 3  # the codec's mark


def test_a_send_to_a_peer_that_does_not_read_returns(ends, plane):
    zero, one = ends
    channel = zero.channel()
    for number in range(4):
        channel.send(1, number, [LARGE])
    zero.flush()
    assert zero._links[1].n_unsent > 0 or plane == "shared memory"
    other, got = one.channel(), []
    while len(got) < 4:
        zero.receive()  # which goes on writing what was left over
        one.receive()
        while (message := other.pull()) is not None:
            got.append(message.tag)
            assert message.batch == [LARGE]
    assert got == [0, 1, 2, 3]


def test_park_goes_on_writing(ends):
    zero, one = ends
    zero.channel().send(1, None, [LARGE])
    thread = threading.Thread(target=zero.park)
    thread.start()
    channel = one.channel()
    while channel.pull() is None:
        one.receive()
    zero.unpark()
    thread.join()
    assert zero._links[1].n_unsent == 0


@pytest.mark.parametrize("plane", ["streams"], indirect=True)
def test_what_the_queue_holds_is_counted_right(ends):
    zero, _ = ends
    channel = zero.channel()
    for size in (10, 1 << 14, 1 << 20, 10):
        channel.send(1, None, [bytes(size)])
        link = zero._links[1]
        assert link.n_unsent == sum(map(len, link.unsent))
    assert link.n_unsent > 0
    assert link.is_blocked


@pytest.mark.parametrize(
    ("batch", "n_bytes"),
    [
        ([1, 2, 3], 1),
        ([bytes(50_000)], 50_000),
        ([LARGE], len(LARGE)),
        (Arrays(n=np.arange(10)), 80),
        (Arrays(n=np.arange(100_000)), 800_000),
    ],
)
def test_the_bytes_of_messages_to_peers_are_counted(ends, batch, n_bytes):
    zero, one = ends
    channel = zero.channel()
    assert zero.n_sent_bytes == 0
    channel.send(1, 7, batch)
    assert n_bytes <= zero.n_sent_bytes < n_bytes + 500  # what describes them is little
    once = zero.n_sent_bytes
    channel.send(1, 7, batch)
    assert zero.n_sent_bytes == 2 * once
    channel.send(0, 7, batch)  # to itself
    assert (zero.n_sent_bytes, one.n_sent_bytes) == (2 * once, 0)


def test_a_message_to_oneself_is_not_encoded(ends):
    zero, _ = ends
    channel, batch = zero.channel(), [object()]
    channel.send(0, None, batch)
    assert zero.receive() == [0]
    assert channel.pull().batch is batch


@pytest.mark.parametrize("call", ["receive", "park", "close"])
def test_a_stream_that_ends_without_a_goodbye_is_a_lost_peer(bare, call):
    end, theirs = bare
    theirs.close()
    with pytest.raises(PeerLostError, match="worker 0 lost worker 1: its connection ended") as lost:
        getattr(end, call)()
    assert lost.value.peer == 1


@pytest.mark.parametrize("call", ["receive", "park", "close"])
@pytest.mark.parametrize("ends", [3], indirect=True)
def test_an_abort_is_raised_by_the_peers_with_its_cause(ends, call):
    ends[1].abort(LookupError("boom"))
    for end in (ends[0], ends[2]):
        with pytest.raises(PeerFailedError, match="worker 1 failed: LookupError: boom") as failed:
            getattr(end, call)()
        assert failed.value.peer == 1


@pytest.mark.parametrize("ends", [3], indirect=True)
def test_an_abort_that_is_passed_on_still_names_who_was_first(ends):
    zero, one, two = ends
    one.abort(LookupError("boom"))
    with pytest.raises(PeerFailedError) as failed:
        zero.receive()
    zero.abort(failed.value)
    two._by_fd.pop(two._links[1].fd)  # as if what worker 1 said were still under way
    with pytest.raises(PeerFailedError, match="worker 1 failed: LookupError: boom"):
        two.receive()


def test_the_word_of_a_peer_counts_more_than_the_silence_of_another(ends):
    zero, _ = ends
    zero._fail(mesh.Notice(1, True, "lost"))
    zero._fail(mesh.Notice(1, False, "failed"))
    zero._fail(mesh.Notice(1, True, "lost again"))
    with pytest.raises(PeerFailedError, match="failed"):
        zero.receive()


def test_an_abort_comes_behind_what_was_queued(ends):
    zero, one = ends
    zero.channel().send(1, "before", [])
    zero.abort(LookupError("boom"))
    with pytest.raises(PeerFailedError):
        one.receive()
    assert one.channel().pull().tag == "before"


def test_a_peer_that_dies_while_it_is_written_to_is_lost(bare):
    end, theirs = bare
    channel = end.channel()
    channel.send(1, None, [LARGE])
    theirs.close()
    channel.send(1, None, [LARGE])
    end.flush()
    channel.send(1, None, [LARGE])
    with pytest.raises(PeerLostError):
        end.park()


def test_what_a_peer_said_before_it_died_is_still_heard(bare):
    end, theirs = bare
    channel = end.channel()
    channel.send(1, None, [LARGE])
    theirs.sendall(b"".join(frame(FrameKind.ABORT, 0, [mesh.pickle.dumps((1, False, "why"))])))
    theirs.close()
    channel.send(1, None, [LARGE])  # finds the stream broken
    with pytest.raises(PeerFailedError, match="why"):
        end.receive()


def test_bytes_that_are_no_frames_end_the_connection(bare):
    end, theirs = bare
    theirs.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(PeerLostError, match="it sent what cannot be read"):
        end.receive()


def test_a_frame_that_is_not_for_workers_ends_the_connection(bare):
    end, theirs = bare
    theirs.sendall(b"".join(frame(FrameKind.RESULT, 0, [])))
    with pytest.raises(PeerLostError, match="a frame of kind RESULT"):
        end.receive()


@pytest.mark.parametrize("ends", [2, 3], indirect=True)
def test_after_close_everything_has_arrived(ends):
    channels = [end.channel() for end in ends]
    for end, channel in zip(ends, channels, strict=True):
        for peer in range(end.peers):
            channel.send(peer, end.index, [LARGE])
    close_all(ends)
    for channel in channels:
        assert sorted(channel.pull().sender for _ in ends) == list(range(len(ends)))


def test_close_does_not_take_a_goodbye_for_an_answer_to_its_own(bare):
    end, theirs = bare
    theirs.sendall(b"".join(frame(FrameKind.GOODBYE, 0, [])))
    theirs.shutdown(socket.SHUT_WR)  # it said goodbye, and died before it had read ours
    with pytest.raises(PeerLostError):
        end.close()


def test_unparks_from_other_threads_are_never_lost(ends):
    zero, _ = ends
    rounds = 300
    parked, woken = threading.Semaphore(0), []

    def wake():
        for _ in range(rounds):
            parked.acquire()
            zero.unpark()

    thread = threading.Thread(target=wake)
    thread.start()
    for number in range(rounds):
        parked.release()
        zero.park()
        woken.append(number)
    thread.join()
    assert len(woken) == rounds


def test_an_unpark_that_came_late_does_not_keep_it_awake(ends):
    zero, _ = ends
    zero.unpark()
    zero._is_woken = False  # the byte is under way and the flag is gone: a race, staged
    zero.park()
    looks = []
    zero._serve = looks.append
    zero.park(0)
    assert looks == [0]


def test_unpark_after_close_does_nothing(ends):
    close_all(ends)
    ends[0].unpark()


def test_a_connection_to_each_peer_is_needed():
    with pytest.raises(CommunicationError, match=r"worker 0 of 3 needs .* has them to \[\]"):
        MeshCommunicator(0, 3, {})
