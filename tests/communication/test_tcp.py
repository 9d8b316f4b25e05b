"""The rendezvous: peers find each other, in any order, and strangers do no harm."""

from __future__ import annotations

import contextlib
import itertools
import queue
import re
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from pointstamp.communication import tcp
from pointstamp.communication.authentication import MAGIC, Handshake
from pointstamp.communication.launch import run_threads
from pointstamp.communication.target import run_target
from pointstamp.communication.tcp import connect, listen
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    RendezvousError,
    UsageError,
    VersionError,
    WorkerError,
)
from tests.communication.runners import all_gather
from tests.free_ports import free_port

SECRET = b"the secret of this test"

SOON_S = 60.0
"""How long what should happen at once may take on a busy machine."""


def exchange(communicator):
    return all_gather(communicator, communicator.index)


def free_addresses(number, host="127.0.0.1"):
    """Addresses at which nobody listens."""
    with listen(host) as listener:
        known_as = listener.address[0]
    return [(known_as, free_port(known_as)) for _ in range(number)]


def in_a_thread(function):
    """Start `function`; the list that it gives will hold its result or error."""
    ended = []

    def run():
        try:
            ended.append(function())
        except CommunicationError as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended


@pytest.fixture
def too_late(monkeypatch):
    """`too_late(address)`: the time in which workers meet is over now, for the one that is there.

    A meeting that is to fail lasts as long as it has to, however slow the machine, and no longer.
    """
    late_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late_s[0])
    monkeypatch.setattr(tcp, "time", clock)

    def end(*addresses):
        late_s[0] += 2 * SOON_S
        for address in addresses:
            # It waits for the sockets that it has, and looks at the clock when one has something.
            with contextlib.suppress(OSError):
                socket.create_connection(address).close()

    return end


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_meet_by_a_list_of_addresses(workers):
    addresses = free_addresses(workers)

    def target(started):
        return run_target(connect(started.index, addresses, SECRET, timeout_s=SOON_S), exchange)

    assert run_threads(target, workers) == [list(range(workers))] * workers


def test_each_worker_is_sent_what_it_asked_for():
    addresses = free_addresses(3)
    asked = ["zstd", None, "lz4"]
    zeros = bytes(1 << 20)

    def target(started):
        with connect_as(started.index) as mesh:
            channel = mesh.channel()
            packed = {peer: link.compression for peer, link in mesh._links.items()}
            for peer in range(3):
                channel.send(peer, None, [zeros])
            got = []
            while len(got) < 3:
                mesh.receive()
                while (message := channel.pull()) is not None:
                    got.append(message.batch == [zeros])
                mesh.flush()
            return packed, got

    @contextlib.contextmanager
    def connect_as(index):
        # Each on a machine of its own: those of one machine share memory, and pack nothing.
        machine = bytes([index]) * 16
        mesh = connect(
            index, addresses, SECRET, timeout_s=SOON_S, compression=asked[index], machine=machine
        )
        yield mesh
        mesh.close()

    for index, (packed, got) in enumerate(run_threads(target, 3)):
        assert packed == {peer: asked[peer] for peer in range(3) if peer != index}
        assert got == [True] * 3


def test_a_compression_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="cannot compress by 'rar'"):
        connect(0, free_addresses(2), SECRET, compression="rar")


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_order_in_which_they_come_does_not_matter(first):
    addresses = free_addresses(3)
    others = threading.Barrier(3)

    def target(started):
        if started.index != first:
            # Until the first has called in vain, or is at least waiting for a call.
            others.wait()
        else:
            threading.Timer(0.05, others.wait).start()
        return run_target(connect(started.index, addresses, SECRET, timeout_s=SOON_S), exchange)

    assert run_threads(target, 3) == [[0, 1, 2]] * 3


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_host_names_and_ipv6(host):
    try:
        addresses = free_addresses(2, host)
    except RendezvousError as error:
        pytest.skip(f"this machine has no {host}: {error}")

    def target(started):
        return run_target(connect(started.index, addresses, SECRET, timeout_s=SOON_S), exchange)

    assert run_threads(target, 2) == [[0, 1], [0, 1]]


def test_a_name_that_means_several_addresses_is_tried_at_each(monkeypatch):
    listeners = [listen(), listen()]
    dead = free_addresses(1)[0]
    resolve = tcp.resolve
    monkeypatch.setattr(
        tcp,
        "resolve",
        lambda host, port, flags=0: [*resolve(*dead), *resolve(host, port, flags)],
    )

    def target(started):
        mesh = connect(
            started.index,
            [listener.address for listener in listeners],
            SECRET,
            listener=listeners[started.index],
            timeout_s=SOON_S,
        )
        return run_target(mesh, exchange)

    assert run_threads(target, 2) == [[0, 1], [0, 1]]


def test_who_does_not_come_is_named(monkeypatch):
    # Time passes as it is looked at: a machine that stands still uses up none of it.
    ticks = itertools.count(0.0, 0.02)
    monkeypatch.setattr(tcp, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    addresses = free_addresses(4)
    with pytest.raises(RendezvousError) as late:
        connect(1, addresses, SECRET, timeout_s=0.2)
    said = str(late.value)
    assert "worker 1 waited 0.2 s for 3 of 3 peers" in said
    assert f"worker 0 at 127.0.0.1, port {addresses[0][1]} (Connection refused)" in said
    assert f"worker 3 (did not call at 127.0.0.1, port {addresses[1][1]})" in said


def test_a_host_that_does_not_exist_is_named():
    with pytest.raises(RendezvousError, match=r"no-such-host\.invalid, port 1"):
        connect(1, [("no-such-host.invalid", 1), free_addresses(1)[0]], SECRET, timeout_s=0.2)


def test_a_worker_cannot_listen_where_another_does():
    with listen() as taken, pytest.raises(RendezvousError, match=r"cannot listen at 127\.0\.0\.1"):
        connect(0, [taken.address, ("127.0.0.1", 1)], SECRET)


def test_an_index_beyond_the_addresses_is_refused():
    with pytest.raises(UsageError, match="there is no worker 2: 2 addresses"):
        connect(2, [("127.0.0.1", 1)] * 2, SECRET)


def test_a_wrong_secret_is_an_error_at_both_ends(too_late):
    listener = listen()
    addresses = [listener.address, ("127.0.0.1", 0)]
    refused = queue.Queue()
    thread, ended = in_a_thread(
        lambda: connect(0, addresses, SECRET, listener=listener, timeout_s=SOON_S, warn=refused.put)
    )
    with pytest.raises(AuthenticationError, match=r"worker 1 called worker 0 at .* the same one"):
        connect(1, addresses, b"not the secret of this test", timeout_s=SOON_S)
    refused.get(timeout=SOON_S)
    too_late(listener.address)
    thread.join()
    [error] = ended
    assert isinstance(error, AuthenticationError)
    assert "worker 0 refused worker 1" in str(error)


def test_another_version_is_an_error_for_who_calls():
    with listen() as listener:
        listener.socket.setblocking(True)

        def answer():
            with listener.socket.accept()[0] as connection:
                connection.sendall(MAGIC + (99).to_bytes(2, "little") + bytes(40))
                while connection.recv(100):
                    pass

        thread, _ = in_a_thread(answer)
        with pytest.raises(VersionError, match="speaks version 99 of the protocol"):
            connect(1, [listener.address, ("127.0.0.1", 0)], SECRET, timeout_s=SOON_S)
        thread.join()


def test_lists_that_differ_are_an_error(too_late):
    one, two = listen(), listen()
    # Worker 2 has the addresses of the others mixed up.
    thread, _ = in_a_thread(
        lambda: connect(
            1, [("127.0.0.1", 1), *[one.address] * 2], SECRET, listener=one, timeout_s=SOON_S
        )
    )
    with pytest.raises(RendezvousError, match="worker 1 is there: the lists differ"):
        connect(2, [one.address, one.address, two.address], SECRET, listener=two, timeout_s=SOON_S)
    too_late(one.address)
    thread.join()


STRANGERS = {
    "says nothing": b"",
    "speaks HTTP": b"GET / HTTP/1.1\r\nHost: there\r\n\r\n",
    "sends zeros": bytes(1_000_000),
    "says a large number": b"\xff" * 100_000,
    "stops in the middle": MAGIC + b"\x01\x00\x01\x00",
    "guesses the secret": Handshake(b"a guess at the secret", 1, 2, initiated=True).greeting
    + bytes(32),
    "is an old worker": MAGIC + b"\x63\x00" + bytes(40),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_does_not_disturb(stranger):
    listener = listen()
    addresses = [listener.address, ("127.0.0.1", 0)]
    thread, ended = in_a_thread(
        lambda: connect(0, addresses, SECRET, listener=listener, timeout_s=SOON_S)
    )
    with socket.create_connection(listener.address) as connection:
        connection.settimeout(SOON_S)
        with contextlib.suppress(ConnectionError):
            connection.sendall(STRANGERS[stranger])
        # It is there first, and stays; then comes the true peer.
        one = connect(1, addresses, SECRET, timeout_s=SOON_S)
        thread.join()
        with contextlib.suppress(ConnectionError):
            while connection.recv(1 << 16):
                pass  # until it is hung up on
    [zero] = ended
    closing = threading.Thread(target=zero.close)
    closing.start()
    one.close()
    closing.join()


def test_a_stranger_who_says_nothing_is_hung_up_on(monkeypatch, too_late):
    monkeypatch.setattr(tcp, "HANDSHAKE_S", 0.1)
    listener = listen()
    thread, ended = in_a_thread(
        lambda: connect(
            0, [listener.address, ("x", 0)], SECRET, listener=listener, timeout_s=2 * SOON_S
        )
    )
    with socket.create_connection(listener.address) as connection:
        connection.settimeout(SOON_S)  # before the meeting ends
        while connection.recv(1 << 16):
            pass
    too_late(listener.address)
    thread.join()
    assert isinstance(ended[0], RendezvousError)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_while_the_other_end_says_nothing_the_loop_waits(
    is_encrypted, certificates, monkeypatch, too_late
):
    """The socket has room all the time, of which there is no use before an answer."""
    talks = []
    talk = tcp._Rendezvous._talk

    def counted(meeting, pending):
        talks.append(pending)
        talk(meeting, pending)

    monkeypatch.setattr(tcp._Rendezvous, "_talk", counted)
    own = certificates if is_encrypted else None
    # It calls one end that says nothing, and is called by another.
    with socket.create_server(("127.0.0.1", 0)) as silent, listen() as listener:
        addresses = [silent.getsockname(), listener.address, ("127.0.0.1", 0)]
        options = {"listener": listener, "timeout_s": SOON_S, "certificates": own}
        with socket.create_connection(listener.address):
            thread, ended = in_a_thread(lambda: connect(1, addresses, SECRET, **options))
            until = time.monotonic() + SOON_S
            while len({*map(id, talks)}) < 2:
                assert time.monotonic() < until
                time.sleep(0.01)
            time.sleep(0.4)  # in which a loop that does not wait talks thousands of times
            assert len(talks) <= 10
            too_late(listener.address)
            thread.join()
    assert "for 2 of 2 peers" in str(ended[0])


def test_strangers_who_call_in_masses_are_heard_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(tcp, "MAX_CALLERS", 3)
    listener = listen()
    addresses = [listener.address, ("127.0.0.1", 0)]
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(socket.create_connection(listener.address))
        thread, ended = in_a_thread(
            lambda: connect(0, addresses, SECRET, listener=listener, timeout_s=SOON_S)
        )
        one = connect(1, addresses, SECRET, timeout_s=SOON_S)
        thread.join()
    one.abort()
    ended[0].abort()


def test_what_others_said_is_told_when_the_peer_does_not_come(too_late):
    listener = listen()
    thread, ended = in_a_thread(
        lambda: connect(
            0, [listener.address, ("x", 0)], SECRET, listener=listener, timeout_s=SOON_S
        )
    )
    with socket.create_connection(listener.address) as connection:
        connection.settimeout(SOON_S)
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while connection.recv(1 << 16):
                pass  # until it is hung up on
    too_late(listener.address)
    thread.join()
    assert "others called, and were refused: another program" in str(ended[0])


def test_a_peer_who_hangs_up_in_the_middle_is_called_again():
    listener = listen()
    addresses = [listener.address, ("127.0.0.1", 0)]
    listener.socket.setblocking(True)
    thread, ended = in_a_thread(lambda: connect(1, addresses, SECRET, timeout_s=SOON_S))
    listener.socket.accept()[0].close()
    listener.socket.setblocking(False)
    zero = connect(0, addresses, SECRET, listener=listener, timeout_s=SOON_S)
    thread.join()
    zero.abort()
    ended[0].abort()


def test_a_peer_who_calls_twice_is_heard_the_second_time(monkeypatch):
    monkeypatch.setattr(tcp, "LAST_RETRY_S", 0.02)
    zero_listener, two_listener = listen(), listen()
    addresses = [zero_listener.address, *free_addresses(1), two_listener.address]
    thread, ended = in_a_thread(
        lambda: connect(0, addresses, SECRET, listener=zero_listener, timeout_s=SOON_S)
    )
    with pytest.raises(RendezvousError):  # as worker 2 is not there yet, it gives up
        connect(1, addresses, SECRET, timeout_s=0.2)
    # Worker 2 may well call while all that worker 0 has of worker 1 is what was given up.
    again, at_two = in_a_thread(
        lambda: connect(2, addresses, SECRET, listener=two_listener, timeout_s=SOON_S)
    )
    one = connect(1, addresses, SECRET, timeout_s=SOON_S)
    thread.join()
    again.join()
    closing = [in_a_thread(end.close)[0] for end in (ended[0], one, at_two[0])]
    for each in closing:
        each.join()


def test_a_worker_that_fails_stops_the_others():
    addresses = free_addresses(3)

    def fail(mesh):
        if mesh.index == 1:
            raise LookupError("boom")
        while True:
            mesh.park()

    def target(started):
        return run_target(connect(started.index, addresses, SECRET, timeout_s=SOON_S), fail)

    began = time.monotonic()
    with pytest.raises(WorkerError, match="worker 1 failed: LookupError: boom"):
        run_threads(target, 3)
    assert time.monotonic() - began < SOON_S


def test_connections_do_not_hold_small_frames_back():
    listeners = [listen(), listen()]
    addresses = [listener.address for listener in listeners]
    thread, ended = in_a_thread(lambda: connect(0, addresses, SECRET, listener=listeners[0]))
    one = connect(1, addresses, SECRET, listener=listeners[1])
    thread.join()
    connection = one._links[0].connection
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    one.abort()
    ended[0].abort()


def test_a_call_that_reached_its_own_socket_counts_as_not_answered():
    # Calling a free port again and again may take that port for the calling end.
    own = socket.socket()
    own.bind(("127.0.0.1", 0))
    own.connect(own.getsockname())
    with listen() as listener:
        meeting = tcp._Rendezvous(1, [own.getsockname(), listener.address], SECRET, listener)
        call = meeting.calls[0]
        meeting._opened(
            tcp._PendingConnection(
                own, meeting._handshake(initiated=True), time.monotonic() + 1, call, False
            )
        )
        meeting._selector.close()
    assert call.last_error == "nothing listens"
    assert own.fileno() == -1


def test_workers_that_do_not_take_each_others_certificates_say_so(
    certificates, other_certificates, too_late
):
    """Both, once, while they wait, and in the error in the end."""
    addresses = free_addresses(2)
    warnings = [[], []]

    def meet(index):
        own = (certificates, other_certificates)[index]
        warn = warnings[index].append
        return connect(index, addresses, SECRET, timeout_s=SOON_S, certificates=own, warn=warn)

    meetings = [in_a_thread(lambda index=index: meet(index)) for index in range(2)]
    until = time.monotonic() + SOON_S
    while not all(warnings):
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.5)  # in which they call again
    too_late(*addresses)
    for thread, ended in meetings:
        thread.join()
        assert isinstance(ended[0], RendezvousError)
        assert re.search(r"of 1 peers: .* each other's certificates: .*SSL", str(ended[0]))
    for index, said in enumerate(warnings):
        (only,) = said
        assert only.startswith(f"worker {index} and the other end at 127.0.0.1, port ")
        assert only.endswith("; wait on")
