"""Workers of two machines that share one connection."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.communication import tcp
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.interpreters import start_interpreter
from pointstamp.communication.launch import run_threads
from pointstamp.communication.processes import run_processes
from pointstamp.communication.relayed_link import addressed, read_address
from pointstamp.communication.routes import Routes
from pointstamp.communication.segment_sharing import ALONE
from pointstamp.communication.target import run_target
from pointstamp.dataflow.spillable import WorkerMemory
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    FileFormatError,
    PeerFailedError,
    PeerLostError,
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
    n_machines = len({*machines})
    several = [m for m in sorted({*machines}) if machines.count(m) > 1 and n_machines > 1]
    firsts = sorted(machines.index(machine) for machine in {*machines})
    relays = [len(machines) + firsts.index(machines.index(machine)) for machine in several]
    views = {number: Routes(number, machines) for number in [*range(len(machines)), *relays]}
    assert sorted({view.relay for view in views.values()} - {None}) == relays
    place = {number: views[number].machines[views[number].first_of(number)] for number in views}
    between = [
        {place[number], place[other]}
        for number, view in views.items()
        for other in view.neighbours
        if place[number] != place[other]
    ]
    assert len(between) == n_machines * (n_machines - 1)  # each is counted at both ends
    assert len({frozenset(pair) for pair in between}) == len(between) // 2
    to_come = {(number, peer): 0 for number, view in views.items() for peer in view.neighbours}
    for source, target in itertools.permutations(range(len(machines)), 2):
        path = views[0].path(source, target)
        assert (path[0], path[-1]) == (source, target)
        assert path == views[0].path(target, source)[::-1]
        assert not {*path[1:-1]} & {*range(len(machines))} or n_machines > len(several)
        for one, other in itertools.pairwise(path):
            assert views[one].via(target) == other
            assert other in views[one].neighbours
            assert one in views[other].neighbours
            to_come[other, one] += 2 * (len(path) > 2)
    assert to_come == {(number, p): n for number, v in views.items() for p, n in v.to_come.items()}
    assert to_come == {(p, number): n for number, v in views.items() for p, n in v.to_go.items()}


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


def established(address):
    """How many connections to an address of this machine there are.

    Its port alone would not tell them: what others open has the same port at another address.
    """
    host, port = address
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    # The system lists one twice if others open and close connections meanwhile.
    ends = {tuple(line.split()[1:4]) for line in lines}
    return sum(own == f"{number:08X}:{port:04X}" and state == "01" for own, _, state in ends)


def test_two_machines_have_one_connection():
    secret = new_secret()

    def main(started):
        listener = tcp.listen(f"127.0.0.{1 + started.index % 2}")
        addresses = all_gather(started, listener.address)
        options = {"listener": listener, "connections": "machine"}
        with contextlib.closing(tcp.connect(started.index, addresses, secret, **options)):
            all_gather(started, None)
            held = [established(addresses[worker]) for worker in range(2)]
            all_gather(started, None)
            return held

    # At the place of a first worker its relay is called: by its four workers, and one relay.
    assert run_threads(main, 8) == [[4, 5]] * 8


def test_what_one_does_not_read_holds_up_nothing_for_others():
    """The relay reads on, and keeps what the slow worker does not take."""
    n_messages, n_bytes = 256, 1 << 20  # more than the memory that they share has room for
    is_through = threading.Event()

    def target(mesh):
        channel = mesh.channel()
        if mesh.index == 0:
            for _ in range(n_messages):
                channel.send(1, None, pa.record_batch({"value": np.zeros(n_bytes, np.int8)}))
            channel.send(3, None, ["behind it all"])
        elif mesh.index == 3:
            assert pull(mesh, channel) == ["behind it all"]
            is_through.set()
        elif mesh.index == 1:
            assert is_through.wait(60)  # and reads nothing until then
            return sum(len(pull(mesh, channel)) for _ in range(n_messages))
        return None

    assert Routes(0, [0, 1, 0, 1]).path(0, 1) == [0, 4, 5, 1]
    _, n_read, _, _ = run_tcp(run_threads, target, 4, n_machines=2, n_hosts=2)
    assert n_read == n_messages * n_bytes


@pytest.mark.parametrize("n_machines", [0, 2])
def test_a_relay_keeps_to_the_limit_of_memory(n_machines, tmp_path):
    """What a worker does not take is on the disk of its relay, and comes whole and in order."""
    n_messages, n_values = 160, 1 << 17
    is_through = threading.Event()

    def target(mesh):
        channel = mesh.channel()
        with WorkerMemory(1 << 22, str(tmp_path)) as memory:
            mesh.hold_unsent_in(memory.unsent)
            if mesh.index == 0:
                for number in range(n_messages):
                    values = np.full(n_values, number)
                    channel.send(1, number, pa.record_batch({"value": values}))
                channel.send(3, None, ["behind it all"])
            elif mesh.index == 3:
                assert pull(mesh, channel) == ["behind it all"]
                is_through.set()
            elif mesh.index == 1:
                assert is_through.wait(60)
                n_spilled = spilled_bytes(mesh._relay.process.pid, tmp_path)
                for number in range(n_messages):
                    assert (pull(mesh, channel)["value"].to_numpy() == number).all()
                return n_spilled
            mesh.close()  # what waits to be sent may be in the files of the budget
        return None

    _, n_spilled, _, _ = run_tcp(run_threads, target, 4, n_machines=n_machines, n_hosts=2)
    # The rest is in shared memory, and in the buffers of sockets.
    assert n_spilled > 8 * n_values * n_messages // 4
    assert not list(tmp_path.iterdir())


def spilled_bytes(pid, folder):
    """How much a process has in files of a folder, which have no names any more."""
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if str(entry.readlink()).startswith(f"{folder}/"):
                found += entry.stat().st_size
    return found


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


def test_a_relay_that_is_killed_ends_all():
    def target(mesh):
        all_gather(mesh, None)  # or some may not have met yet
        if mesh.index == 1:
            mesh._relay.process.kill()
        with pytest.raises(PeerLostError, match="lost the relay of worker 1's machine") as caught:
            pull(mesh, mesh.channel())
        assert caught.value.peer == 1
        raise caught.value

    with pytest.raises(WorkerError, match="lost the relay of worker 1's machine"):
        run_tcp(run_threads, target, 4, n_machines=2, n_hosts=2)


def test_a_relay_that_cannot_go_on_says_why(tmp_path):
    def target(mesh):
        if mesh.index == 1:
            mesh._relay.hold_unsent_in(functools.partial(Path.rmdir, tmp_path / "missing"))
        pull(mesh, mesh.channel())

    with pytest.raises(WorkerError, match="its relay failed: FileNotFoundError"):
        run_tcp(run_threads, target, 4, n_machines=2, n_hosts=2)


def test_a_relay_that_cannot_be_started_is_an_error_of_the_meeting(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    secret = new_secret()

    def main(started):
        listener = tcp.listen(f"127.0.0.{1 + started.index % 2}")
        addresses = all_gather(started, listener.address)
        options = {"listener": listener, "connections": "machine", "timeout_s": 1}
        with pytest.raises(RendezvousError) as caught:
            tcp.connect(started.index, addresses, secret, **options)
        return str(caught.value)

    said = run_threads(main, 4)
    for first in range(2):
        assert f"worker {first} cannot start the relay of its machine: " in said[first]
        assert f"worker {first}'s machine" in said[first + 2]


@pytest.mark.xdist_group("waiting")
@pytest.mark.parametrize("n_machines", [0, 2])
@pytest.mark.parametrize("stranger", ["a machine", "a worker", "the first worker"])
def test_another_secret_is_refused(stranger, n_machines):
    secrets = [new_secret(), new_secret()]
    strange = {"a machine": (1, 3), "a worker": (3,), "the first worker": (1,)}[stranger]

    def main(started):
        listener = tcp.listen(f"127.0.0.{1 + started.index % 2}")
        addresses = all_gather(started, listener.address)
        try:
            mesh = tcp.connect(
                started.index,
                addresses,
                secrets[started.index in strange],
                listener=listener,
                timeout_s=8 if stranger == "a machine" else 4,
                machine=b"%016d" % (started.index % 2) if n_machines else ALONE,
                connections="machine",
            )
            run_target(
                mesh, lambda mesh: all_gather(mesh, None)
            )  # which lets go of one that is lost
        except CommunicationError as error:
            return error

    # What the first process of a test has to wait for is none of the time in which they meet.
    start_interpreter("", []).wait()
    found = run_threads(main, 4)
    # The other machine is complete once the relays have met: where a worker is strange they may do
    # so before that is seen, and what its workers send is then lost by name.
    refused = AuthenticationError | RendezvousError
    assert all(isinstance(error, refused) for error in found[1::2]), found
    assert all(isinstance(error, refused | PeerLostError) for error in found[::2]), found
    if stranger == "a machine":
        assert [type(error) for error in found] == [AuthenticationError] * 4, found
        assert "relay of worker 0's machine called the relay of worker 1's" in str(found[0])
        assert str(found[2]) == str(found[0])
    # Where not all of a machine are strange, the one that calls the other there is refused.
    assert any("does not know the secret" in str(error) for error in found), found


@pytest.mark.xdist_group("waiting")
def test_machines_that_do_not_take_each_others_certificates_say_so(
    certificates, other_certificates
):
    secret = new_secret()

    def main(started):
        listener = tcp.listen(f"127.0.0.{1 + started.index % 2}")
        addresses = all_gather(started, listener.address)
        with pytest.raises(RendezvousError) as caught:
            tcp.connect(
                started.index,
                addresses,
                secret,
                listener=listener,
                timeout_s=8,
                certificates=(certificates, other_certificates)[started.index % 2],
                connections="machine",
            )
        return str(caught.value)

    for said in run_threads(main, 4):
        assert "do not take each other's certificates" in said


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
                timeout_s=3,
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
