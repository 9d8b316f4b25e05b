"""Workers of two machines that share one connection."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.communication import tcp
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.launch import run_threads
from pointstamp.communication.processes import run_processes
from pointstamp.communication.relayed_link import addressed, read_address
from pointstamp.communication.routes import Routes
from pointstamp.communication.stream_link import StreamLink
from pointstamp.errors import (
    FileFormatError,
    PeerFailedError,
    RendezvousError,
    UsageError,
    WorkerError,
)
from pointstamp.runtime.run_worker import run_worker
from pointstamp.testing import check_communicator
from tests.communication.runners import all_gather, run_tcp

BATCHES = [pa.record_batch({"key": [1, 2, 3], "name": ["a", None, "c"]}), [1, "two"]]

MESHES = {
    "two of two": (4, {"n_machines": 2, "n_hosts": 2}),
    "three of two": (6, {"n_machines": 3, "n_hosts": 3}),
    "two of two, without memory": (4, {"n_hosts": 2}),
    "one of one, one of two": (3, {"n_machines": 2, "n_hosts": 2}),
}


@pytest.mark.parametrize(
    "machines", [[0], [0, 0], [0, 1], [0, 1, 0], [0, 1, 2] * 3, [0] * 7 + [1, 2, 2]]
)
def test_routes_agree_and_count_every_word(machines):
    views = [Routes(worker, machines) for worker in range(len(machines))]
    between = {
        frozenset((machines[one.index], machines[other]))
        for one in views
        for other in one.neighbours
        if machines[one.index] != machines[other]
    }
    n_between = sum(
        machines[one.index] != machines[other] for one in views for other in one.neighbours
    )
    n_machines = len({*machines})
    assert n_between == 2 * len(between) == n_machines * (n_machines - 1)
    to_come = {(view.index, peer): 0 for view in views for peer in view.neighbours}
    for source, target in itertools.permutations(range(len(machines)), 2):
        path = views[0].path(source, target)
        assert (path[0], path[-1]) == (source, target)
        assert path == views[0].path(target, source)[::-1]
        assert views[source].via(target) == path[1]
        for one, other in itertools.pairwise(path):
            assert other in views[one].neighbours
            to_come[other, one] += 2 * (len(path) > 2)
    assert to_come == {(v.index, peer): n for v in views for peer, n in v.to_come.items()}
    assert to_come == {(peer, v.index): n for v in views for peer, n in v.to_go.items()}


def test_connections_are_spread_over_the_workers():
    machines = [machine for machine in range(4) for _ in range(4)]
    held = [len(Routes(worker, machines).neighbours) - 3 for worker in range(16)]
    assert sum(held) == 12
    assert max(held) == 1


def test_an_address_that_is_cut_off_is_refused():
    with pytest.raises(FileFormatError, match="no address"):
        read_address(b"short")
    kind, source, target, buffers = read_address(b"".join(addressed(1, 2, 3, [b"seven"])))
    assert (kind, source, target, b"".join(buffers)) == (1, 2, 3, b"seven")


@pytest.mark.parametrize("name", MESHES)
def test_it_keeps_the_laws(name):
    _, options = MESHES[name]
    check_communicator(functools.partial(run_tcp, run_threads, **options), BATCHES)


def each_to_each(n_messages, n_values):
    """Send every other worker many messages, and read nothing until all were sent."""

    def target(mesh):
        channel = mesh.channel()
        for number in range(n_messages):
            for peer in range(mesh.peers):
                values = np.full(n_values, mesh.index * n_messages + number)
                channel.send(peer, number, pa.record_batch({"value": values}))
        mesh.flush()
        arrived = [[] for _ in range(mesh.peers)]
        while sum(map(len, arrived)) < mesh.peers * n_messages:
            mesh.receive()
            while (message := channel.pull()) is not None:
                values = message.batch["value"].to_numpy()
                assert len(values) == n_values
                assert (values == message.sender * n_messages + message.tag).all()
                arrived[message.sender].append(message.tag)
            mesh.flush()
            if sum(map(len, arrived)) < mesh.peers * n_messages:
                mesh.park()
        return all(tags == list(range(n_messages)) for tags in arrived)

    return target


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize(("n_messages", "n_values"), [(500, 3), (8, 100_000)])
def test_order_is_kept_where_all_send_more_than_buffers_hold(name, n_messages, n_values):
    workers, options = MESHES[name]
    target = each_to_each(n_messages, n_values)
    assert run_tcp(run_threads, target, workers, **options) == [True] * workers


@pytest.mark.parametrize("options", [{"compression": "lz4"}, {"certificates": True}])
def test_compressed_and_encrypted(options, certificates):
    if "certificates" in options:
        options = {"certificates": certificates}
    mesh = {"n_machines": 2, "n_hosts": 2, **options}
    assert run_tcp(run_threads, each_to_each(3, 50_000), 4, **mesh) == [True] * 4


def test_two_machines_have_one_connection():
    def target(mesh):
        return sum(isinstance(link, StreamLink) for link in mesh._links.values())

    for workers, options, machines in ((4, {}, 2), (6, {}, 3), (8, {}, 2)):
        options = {"n_machines": machines, "n_hosts": machines}
        held = run_tcp(run_threads, target, workers, **options)
        assert sum(held) == machines * (machines - 1)  # each is counted at both ends


def test_what_one_does_not_read_holds_up_nothing_for_others():
    """The relay reads on, and keeps, and counts, what the slow worker does not take."""
    n_messages, n_bytes = 32, 1 << 20
    is_through = threading.Event()

    def target(mesh):
        channel = mesh.channel()
        if mesh.index == 0:
            for _ in range(n_messages):
                channel.send(1, None, pa.record_batch({"value": np.zeros(n_bytes, np.int8)}))
            channel.send(3, None, ["behind it all"])
        elif mesh.index == 3:
            assert pull(mesh, channel) == ["behind it all"]
            kept = mesh._links[1].n_unsent
            is_through.set()
            return kept
        elif mesh.index == 1:
            assert is_through.wait(60)  # and reads nothing until then
            return sum(len(pull(mesh, channel)) for _ in range(n_messages))
        return None

    assert Routes(0, [0, 1, 0, 1]).path(0, 1) == [0, 2, 3, 1]
    _, n_read, _, kept = run_tcp(run_threads, target, 4, n_hosts=2)
    assert n_read == n_messages * n_bytes
    assert n_read // 2 < kept < n_read + 10_000  # the rest is in the buffers of sockets


def pull(mesh, channel):
    """The next batch to come."""
    while True:
        mesh.receive()
        if (message := channel.pull()) is not None:
            return message.batch
        mesh.flush()
        mesh.park()


def totals(worker):
    out = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream([(n % 7, n) for n in range(worker.index, 1000, worker.peers)])
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            entered = numbers.enter(inner).concat(cycle)
            done, rest = entered.exchange(lambda x: x[1]).branch(lambda x: x[1] > 9)
            loop.connect(rest.map(lambda x: (x[0], x[1] // 2)))
            done.leave().inspect_batch(lambda time, batch: out.extend(batch))
    worker.run()
    return out


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", MESHES)
def test_the_answers_are_those_of_the_flat_mesh(name, accumulate):
    workers, options = MESHES[name]

    def target(mesh):
        return run_worker(mesh, totals, accumulate=accumulate)

    flat = run_tcp(run_threads, target, workers)
    relayed = run_tcp(run_threads, target, workers, **options)
    assert sorted(itertools.chain(*relayed)) == sorted(itertools.chain(*flat))


@pytest.mark.once
@pytest.mark.parametrize("victim", range(4))
def test_a_killed_worker_ends_all(victim):
    """Whether it holds the connection or another does."""

    def target(mesh):
        if mesh.index == victim:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        mesh.channel()
        while True:
            mesh.receive()
            mesh.park()

    with pytest.raises(WorkerError, match=f"worker {victim} was killed"):
        run_tcp(run_processes, target, 4, n_machines=2, n_hosts=2)


@pytest.mark.parametrize("victim", range(4))
def test_a_worker_that_fails_ends_all_with_its_cause(victim, tmp_path):
    def target(mesh):
        if mesh.index == victim:
            raise ValueError("seven")
        try:
            while True:
                mesh.receive()
                mesh.park()
        except PeerFailedError as error:
            (tmp_path / str(mesh.index)).write_text(str(error))
            raise

    with pytest.raises(WorkerError, match="seven"):
        run_tcp(run_threads, target, 4, n_machines=2, n_hosts=2)
    heard = [path.read_text() for path in tmp_path.iterdir()]
    assert len(heard) == 3
    assert all("ValueError: seven" in text for text in heard)


def test_workers_that_choose_differently_are_refused():
    """Both learn it: one by what the other said, one as the other does not come in time."""
    secret = new_secret()

    def main(started):
        listener = tcp.listen()
        addresses = all_gather(started, listener.address)
        choice = ("machine", "worker")[started.index]
        try:
            tcp.connect(
                started.index,
                addresses,
                secret,
                listener=listener,
                timeout_s=1,
                connections=choice,
            )
        except RendezvousError as error:
            return str(error)

    said = run_threads(main, 2)
    assert 'worker 1 has connections per "worker", and this one per "machine"' in said[0]
    assert 'worker 0 has connections per "machine", and this one per "worker"' in said[1]


def test_another_word_is_refused():
    with pytest.raises(UsageError, match="'host'"):
        tcp.connect(0, [("127.0.0.1", 1)], new_secret(), connections="host")
