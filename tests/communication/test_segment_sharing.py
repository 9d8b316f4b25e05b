"""Memory that is shared by workers that were started apart, and what keeps it from them."""

from __future__ import annotations

import functools
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pointstamp.communication import segment, segment_sharing
from pointstamp.communication.launch import run_threads
from pointstamp.communication.processes import run_processes
from pointstamp.communication.segment_sharing import ALONE, machine_number, share, sharing
from pointstamp.communication.shared_link import SharedLink
from pointstamp.errors import WorkerError
from tests.communication.runners import run_tcp

STOP_S = 60.0
"""The second that is promised, ending four interpreters, and a busy machine."""

needs_memory = pytest.mark.skipif(
    machine_number() == ALONE or segment.create(1) is None, reason="there is no such memory"
)


def links(communicator):
    """By peer, whether its link goes through shared memory."""
    return {peer: isinstance(link, SharedLink) for peer, link in communicator._links.items()}


@needs_memory
def test_workers_of_one_machine_share_memory_and_others_do_not():
    found = run_tcp(run_processes, links, 4, n_machines=2)
    assert found == [
        {1: False, 2: True, 3: False},
        {0: False, 2: False, 3: True},
        {0: True, 1: False, 3: False},
        {0: False, 1: True, 2: False},
    ]


def test_a_worker_that_wants_to_be_alone_shares_with_none():
    assert run_tcp(run_threads, links, 2) == [{1: False}, {0: False}]
    assert sharing(0, ALONE, {1: ALONE}) == []


@needs_memory
@pytest.mark.parametrize("victim", [0, 3])
def test_when_one_of_a_mixed_mesh_is_killed_all_others_stop(victim, tmp_path):
    killed = tmp_path / "killed"

    def target(communicator):
        channel = communicator.channel()
        batch = pa.record_batch({"n": list(range(20_000))})
        while True:
            for peer in range(communicator.peers):
                channel.send(peer, None, batch)
            communicator.flush()
            communicator.receive()
            while channel.pull() is not None:
                if communicator.index == victim:
                    killed.write_text(str(time.monotonic()))
                    os.kill(os.getpid(), signal.SIGKILL)
            communicator.park(0.01)

    with pytest.raises(WorkerError, match=rf"worker {victim} was killed by SIGKILL"):
        run_tcp(run_processes, target, 4, n_machines=2)
    assert time.monotonic() - float(killed.read_text()) < STOP_S


@needs_memory
def test_large_and_small_batches_cross_a_mixed_mesh_unchanged():
    sizes = [1, 1000, 200_000, 3]

    def target(communicator):
        channel = communicator.channel()
        for n in sizes:
            for peer in range(communicator.peers):
                batch = pa.record_batch({"n": range(communicator.index, communicator.index + n)})
                channel.send(peer, n, batch)
        communicator.flush()
        got = {peer: [] for peer in range(communicator.peers)}
        while any(len(each) < len(sizes) for each in got.values()):
            communicator.receive()
            while (message := channel.pull()) is not None:
                numbers = message.batch["n"].to_numpy()
                assert numbers[0] == message.sender
                assert numbers[-1] == message.sender + len(numbers) - 1
                got[message.sender].append(len(numbers))
            communicator.park(0.01)
        return got

    expected = dict.fromkeys(range(4), sizes)
    assert run_tcp(run_processes, target, 4, n_machines=2) == [expected] * 4


def agreed(first=share, second=share, until_s=20.0):
    """What two ends make of a segment, over a socket pair."""
    pair = socket.socketpair()
    found = [None, None]

    def run(index, function):
        pair[index].setblocking(False)
        until = time.monotonic() + until_s
        found[index] = function(index, [0, 1], {1 - index: pair[index]}, until)

    threads = [
        threading.Thread(target=run, args=(index, function))
        for index, function in enumerate((first, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for end in pair:
        end.close()
    return found


@needs_memory
def test_both_ends_have_the_same_memory():
    one, two = agreed()
    one.words[77] = 42
    assert two.words[77] == 42
    one.close()
    two.close()


def test_without_such_memory_all_stay_with_their_connections(monkeypatch):
    monkeypatch.setattr(segment, "create", lambda workers: None)
    assert agreed() == [None, None]


def n_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@needs_memory
@pytest.mark.parametrize("how", ["another process", "another file", "closed"])
def test_a_segment_that_one_cannot_open_is_used_by_none(monkeypatch, how):
    opened = segment_sharing._opened
    changed = {
        "another process": lambda process, fd, *rest: opened(1, fd, *rest),
        "another file": lambda process, fd, *rest: opened(process, 0, *rest),
        "closed": lambda process, fd, *rest: opened(process, 10_000, *rest),
    }[how]
    monkeypatch.setattr(segment_sharing, "_opened", changed)
    before = n_descriptors()
    assert agreed() == [None, None]
    assert n_descriptors() <= before


def test_a_peer_that_goes_or_is_slow_means_no_segment():
    def goes(index, members, connections, until):
        connections[1 - index].shutdown(socket.SHUT_RDWR)

    def waits(index, members, connections, until):
        time.sleep(0.5)

    assert agreed(goes, share) == [None, None]
    assert agreed(share, goes) == [None, None]
    assert agreed(waits, functools.partial(share), until_s=0.1) == [None, None]
