"""Control connections: messages and requests both ways, strangers, losses, TLS."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace

import pytest

from pointstamp.communication import control_loop, explanations, local_door
from pointstamp.communication.authentication import Handshake, new_secret
from pointstamp.communication.control import ControlClient, ControlServer, WorkerConfig
from pointstamp.communication.control_loop import Introduction, pickled
from pointstamp.communication.explanations import ExplainProgram, ExplainWorkers
from pointstamp.communication.framing import FrameKind, frame
from pointstamp.communication.local_door import enter
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    InternalError,
    PeerLostError,
    RendezvousError,
    UsageError,
)
from tests.free_ports import free_port

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="there is a door on Linux only")

SECRET = new_secret()
SOON_S = 60.0
"""How long what should happen at once may take on a busy machine."""


@dataclass(frozen=True)
class Say:
    """A message of the tests."""

    text: str | bytes


@dataclass(frozen=True)
class Ask:
    """A request of the tests."""

    n: int


def config(server: ControlServer, **changes) -> WorkerConfig:
    return replace(WorkerConfig(server.address, SECRET), **changes)


@contextlib.contextmanager
def connected(n_clients=1, *, certificates=None, handlers=None, client_handlers=None):
    """A server, as many clients, and what the server's events say, in a queue."""
    events: queue.Queue = queue.Queue()
    server = ControlServer(
        SECRET,
        handlers={Say: lambda one, said: events.put((one.worker, said.text)), **(handlers or {})},
        on_open=lambda one: events.put((one.worker, "open")),
        on_close=lambda one, reason: events.put((one.worker, "closed", reason)),
        certificates=certificates,
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(server)
        clients = [
            stack.enter_context(
                ControlClient.connect(
                    config(server, certificates=certificates),
                    worker,
                    client_handlers,
                    lambda _, reason: events.put(("client", reason)),
                )
            )
            for worker in range(n_clients)
        ]
        for _ in clients:
            assert events.get(timeout=SOON_S)[1] == "open"
        yield server, clients, events


def test_messages_arrive_in_order_from_both_ends():
    arrived: queue.Queue = queue.Queue()
    handlers = {Say: lambda _, said: arrived.put(said.text)}
    with connected(3, client_handlers=handlers) as (server, clients, events):
        for n in range(100):
            clients[1].send(Say(f"{n}"))
            server.connections()[2].send(Say(f"{n}"))
        assert [events.get(timeout=SOON_S) for _ in range(100)] == [(1, f"{n}") for n in range(100)]
        assert [arrived.get(timeout=SOON_S) for _ in range(100)] == [f"{n}" for n in range(100)]


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_large_messages_travel_both_ways_at_once(is_encrypted, request):
    certificates = request.getfixturevalue("certificates") if is_encrypted else None
    large = os.urandom(1 << 20) * 20
    arrived: queue.Queue = queue.Queue()
    handlers = {Say: lambda _, said: arrived.put(said.text)}
    with connected(1, certificates=certificates, client_handlers=handlers) as found:
        server, [client], events = found
        server.connections()[0].send(Say(large))
        client.send(Say(large))
        assert events.get(timeout=SOON_S) == (0, large)
        assert arrived.get(timeout=SOON_S) == large


def test_either_end_answers_requests():
    answer = {Ask: lambda _, ask: ask.n + 1}
    with connected(2, handlers=answer, client_handlers=answer) as (server, clients, _):
        assert [client.ask(Ask(n), SOON_S) for n, client in enumerate(clients)] == [1, 2]
        assert server.connections()[1].ask(Ask(7), SOON_S) == 8


def test_an_answer_may_come_later_and_others_overtake_it():
    later: Future = Future()
    with connected(handlers={Ask: lambda _, ask: later if ask.n == 0 else ask.n}) as (
        _,
        [client],
        _events,
    ):
        waiting = client.request(Ask(0))
        assert client.ask(Ask(5), SOON_S) == 5
        assert not waiting.done()
        later.set_result("at last")
        assert waiting.result(SOON_S) == "at last"


def test_what_a_handler_raises_is_raised_where_the_answer_is_waited_for():
    def refuse(_, ask):
        raise LookupError(f"no {ask.n}")

    with connected(handlers={Ask: refuse}) as (_, [client], _events):
        with pytest.raises(LookupError, match="no 3"):
            client.ask(Ask(3), SOON_S)
        with pytest.raises(UsageError, match=r"type float; the types that are taken: Ask, Say"):
            client.ask(1.5, SOON_S)


def test_an_exception_that_cannot_be_carried_is_told_in_words():
    class Odd(Exception):
        def __reduce__(self):
            raise TypeError

    def refuse(*_):
        raise Odd("in words")

    with (
        connected(handlers={Ask: refuse}) as (_, [client], _events),
        pytest.raises(CommunicationError, match="Odd: in words"),
    ):
        client.ask(Ask(3), SOON_S)


def test_a_handler_of_a_message_that_raises_ends_nothing(caplog):
    def fail(*_):
        raise ValueError("in a handler")

    with connected(handlers={float: fail}) as (_, [client], events):
        client.send(1.5)
        client.send(Say("next"))
        assert events.get(timeout=SOON_S) == (0, "next")
    assert "in a handler" in caplog.text


def test_a_handler_that_would_wait_for_its_own_thread_is_refused():
    def wait(connection, _):
        connection.ask(Say("?"))

    with (
        connected(handlers={Ask: wait}) as (_, [client], _events),
        pytest.raises(InternalError, match="return a future"),
    ):
        client.ask(Ask(1), SOON_S)


def test_a_request_that_is_not_answered_in_time_is_named():
    with (
        connected(handlers={Ask: lambda *_: Future()}) as (_, [client], _events),
        pytest.raises(RendezvousError, match=r"did not answer Ask in 0\.05 s"),
    ):
        client.ask(Ask(1), 0.05)


def test_a_goodbye_is_no_loss():
    with connected(2) as (server, clients, events):
        clients[0].end()
        assert events.get(timeout=SOON_S) == (0, "closed", None)
        clients[1].request(Ask(1))
        server.close()
        assert events.get(timeout=SOON_S) == ("client", None)


def test_a_connection_that_is_cut_is_lost_and_its_requests_fail():
    never = {Ask: lambda *_: Future()}
    with connected(2, client_handlers=never) as (server, clients, events):
        waiting = server.connections()[1].request(Ask(1))
        clients[1].stream.shutdown(socket.SHUT_RDWR)
        lost = [events.get(timeout=SOON_S) for _ in range(2)]
        reason = "the connection ended without a goodbye"
        assert sorted(lost, key=str) == [("client", reason), (1, "closed", reason)]
        with pytest.raises(PeerLostError, match="worker 1 is gone"):
            waiting.result(SOON_S)
        with pytest.raises(PeerLostError):
            clients[1].ask(Ask(1), SOON_S)
        clients[1].send(Say("to nobody"))
        clients[0].send(Say("here"))
        assert events.get(timeout=SOON_S) == (0, "here")


def test_idle_strangers_keep_no_worker_out(monkeypatch):
    monkeypatch.setattr(control_loop, "MAX_PENDING", 4)
    with contextlib.ExitStack() as stack, ControlServer(SECRET) as server:
        strangers = [
            stack.enter_context(socket.create_connection(server.address)) for _ in range(8)
        ]
        with ControlClient.connect(config(server), 0) as client:
            with pytest.raises(UsageError):
                client.ask(Ask(1), SOON_S)
            # The eldest had to go.
            strangers[0].settimeout(SOON_S)
            while strangers[0].recv(100):
                pass
            assert list(server.connections()) == [0]


def test_a_stranger_has_only_so_long(monkeypatch):
    monkeypatch.setattr(control_loop, "HANDSHAKE_S", 0.1)
    with ControlServer(SECRET) as server, socket.create_connection(server.address) as stranger:
        stranger.settimeout(SOON_S)
        data = b"?"
        while data:  # its greeting, and then the end
            data = stranger.recv(100)


def test_another_secret_is_refused_at_both_ends():
    with ControlServer(SECRET) as server:
        with pytest.raises(AuthenticationError):
            ControlClient.connect(config(server, secret=new_secret()), 0)
        assert server.connections() == {}


def test_nothing_is_unpickled_of_a_client_that_speaks_before_its_proof():
    with ControlServer(SECRET) as server, socket.create_connection(server.address) as stranger:
        stranger.settimeout(SOON_S)
        stranger.sendall(b"GET / HTTP/1.0\r\n" * 5)
        with contextlib.suppress(ConnectionError):
            while stranger.recv(100):
                pass
        assert server.connections() == {}


def test_a_server_that_is_not_there_is_named():
    address = ("127.0.0.1", free_port())
    with pytest.raises(RendezvousError, match=rf"worker 3 cannot reach .* port {address[1]}"):
        ControlClient.connect(WorkerConfig(address, SECRET), 3, timeout_s=0.2)


@pytest.mark.parametrize("has_other", [False, True], ids=["none", "of another authority"])
def test_with_certificates_who_has_none_of_them_is_refused(certificates, request, has_other):
    other = request.getfixturevalue("other_certificates") if has_other else None
    with ControlServer(SECRET, certificates=certificates) as server:
        with pytest.raises((RendezvousError, AuthenticationError)):
            ControlClient.connect(config(server, certificates=other), 0, timeout_s=1.0)
        assert server.workers() == []


def test_with_certificates_what_travels_is_encrypted(certificates, monkeypatch):
    seen = bytearray()
    relay = socket.create_server(("127.0.0.1", 0))
    with connected(1, certificates=certificates) as (server, _, events), relay:

        def carry(source, target):
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    seen.extend(data)
                    target.sendall(data)

        def run():
            client, _ = relay.accept()
            with client, socket.create_connection(server.address) as behind:
                back = threading.Thread(target=carry, args=(behind, client))
                back.start()
                carry(client, behind)
                behind.shutdown(socket.SHUT_WR)
                back.join()

        thread = threading.Thread(target=run)
        thread.start()
        through = config(server, control=relay.getsockname(), certificates=certificates)
        with ControlClient.connect(through, 1) as client:
            assert events.get(timeout=SOON_S) == (1, "open")
            client.send(Say("a word that nobody else may read"))
            assert events.get(timeout=SOON_S) == (1, "a word that nobody else may read")
        thread.join()
    assert b"nobody else" not in seen
    assert b"PtStamp" not in seen


def test_a_forked_child_has_no_control_connection():
    with connected() as (_, [client], events):
        child = os.fork()
        if child == 0:
            client.send(Say("from a child"))
            client.flush(0.2)
            os._exit(0)
        os.waitpid(child, 0)
        client.send(Say("from the worker"))
        assert events.get(timeout=SOON_S) == (0, "from the worker")


def test_groups_are_apart_and_of_two_connections_the_newer_counts():
    with ControlServer(SECRET) as server:
        with (
            ControlClient.connect(config(server, group="a"), 0) as one,
            ControlClient.connect(config(server, group="b"), 0) as two,
            ControlClient.connect(config(server, group="b"), 0) as three,
        ):
            for each in (one, two, three):
                with pytest.raises(UsageError):
                    each.ask(Ask(0), SOON_S)
            assert list(server.connections("a")) == [0]
            newer = server.connections("b")[0]
            assert newer.stream.getpeername() == three.stream.getsockname()
        assert server.connections("c") == {}


def test_a_server_need_not_listen():
    said: queue.Queue = queue.Queue()
    ours, theirs = socket.socketpair()
    with ControlServer(host=None, handlers={Say: lambda one, m: said.put((one, m))}) as server:
        adopted = server.adopt(ours, 5)
        with ControlClient(theirs, 5) as client:
            client.send(Say("hello"))
            assert said.get(timeout=SOON_S) == (adopted, Say("hello"))


def test_a_short_secret_is_refused():
    with pytest.raises(UsageError, match="at least 16 bytes"):
        ControlServer(b"short")


def test_it_waits_without_using_the_processor():
    with connected():
        before = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - before < 0.25


def test_what_does_not_know_the_secret_gets_no_explanation():
    """Neither before its proof nor instead of it."""
    with ControlServer(SECRET) as server, socket.create_connection(server.address) as stranger:
        stranger.settimeout(SOON_S)
        for piece in frame(FrameKind.REQUEST, 1, [pickled(ExplainProgram(1.0))]):
            with contextlib.suppress(ConnectionError):
                stranger.sendall(piece)
        got = b""
        with contextlib.suppress(ConnectionError):
            while data := stranger.recv(1 << 16):
                got += data
        assert b"PtStamp" in got[:8]  # its greeting, and nothing behind it
        assert len(got) == len(Handshake(SECRET, 0, 2, initiated=False).greeting)


@pytest.fixture
def explained():
    """What this process says of its workers."""
    before = explanations._describe
    explanations.set_describer(lambda: "all is well")
    yield
    explanations._describe = before


@on_linux
@pytest.mark.usefixtures("explained")
def test_a_process_of_this_user_may_ask_for_explanations_and_for_nothing_else():
    with connected(2, handlers={Ask: lambda _, ask: ask.n}) as (server, _clients, events):
        here = enter(os.getpid(), SOON_S)
        assert here is not None
        with ControlClient(here, -1) as asker:
            (found,) = asker.ask(ExplainProgram(SOON_S), SOON_S)  # one for each process
            assert (found.process, found.text) == (os.getpid(), "all is well")
            with pytest.raises(UsageError, match="may ask what a program does, and send no Ask"):
                asker.ask(Ask(1), SOON_S)
            assert len(server.connections()) == 2
            asker.send(Introduction(0))
            with pytest.raises(PeerLostError):
                asker.ask(ExplainProgram(SOON_S), SOON_S)
        assert server.connections()[0].ask(ExplainWorkers(), SOON_S) == "all is well"
        assert events.empty()


@on_linux
def test_another_user_is_refused_at_the_door(monkeypatch):
    with ControlServer(SECRET) as server:
        here = enter(os.getpid(), SOON_S)
        assert here is not None
        here.close()
        own = os.geteuid()
        with monkeypatch.context() as patch:
            patch.setattr(local_door.os, "geteuid", lambda: own + 1)
            # Neither does this end take what listens there for a process of that user, ...
            assert enter(os.getpid(), SOON_S) is None
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.settimeout(SOON_S)
                stranger.connect(next(local_door._addresses(os.getpid())))
                # ... nor the server one that calls.
                with contextlib.suppress(ConnectionError):
                    assert stranger.recv(1) == b""
        assert server.workers() == []


@on_linux
def test_where_another_process_has_the_name_of_a_door_it_is_not_entered():
    """The system says which process listens."""
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(f"\0{local_door.PREFIX}1-0")
        squatter.listen()
        assert local_door.has_door(1)
        assert enter(1, SOON_S) is None


def test_a_worker_that_does_not_answer_in_time_is_named_and_the_others_are_not():
    held = threading.Event()

    def wait(*_):
        held.wait(SOON_S)

    handlers = {Say: wait}
    with connected(3, client_handlers=handlers) as (server, _, _events):
        server.connections()[1].send(Say("its thread is held up"))
        try:
            for connection in server.workers():
                connection.process += connection.worker  # or they would count as one
            found = explanations.explain_program(2.0)  # in which the others do
        finally:
            held.set()
    silent = [each.workers for each in found if each.text is None]
    assert silent == ["worker 1"]
    assert len(found) == 3
