"""The server as its page documents it, by a client that knows Arrow Flight and nothing of ours."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import typing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import pointstamp as ps
from pointstamp.communication import tls
from pointstamp.communication.control import ControlClient, ControlServer, WorkerConfig
from pointstamp.errors import (
    AuthenticationError,
    EpochError,
    RendezvousError,
    SchemaError,
    ServiceError,
    StoppedError,
    UsageError,
    WorkerError,
)
from pointstamp.service import flight_client, flight_server
from pointstamp.service.coordinator import Coordinator
from pointstamp.service.flight_client import RemoteWorker
from pointstamp.service.protocol import (
    PROTOCOL,
    VERBS,
    GetPosition,
    GetStatus,
    ReadEpochs,
    StageBatches,
)
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import FlightConfig, service_spec
from pointstamp.service.worker_pools import AwaitAbort, WorkerPool, WorkerReady
from tests.formats.misaligned import is_aligned, misaligned
from tests.free_ports import free_port
from tests.slowness import slowdown

NUMBER = pa.schema({"n": pa.int64()})

SOON_S = 60.0
"""How long what should happen at once may take on a busy machine."""


def doubled(scope, numbers):
    def twice(batch):
        if batch.num_rows and batch.column("n")[0].as_py() == -1:
            os.kill(os.getpid(), signal.SIGKILL)
        if batch.num_rows and batch.column("n")[0].as_py() == -2:
            raise ValueError("the very cause")
        return pa.RecordBatch.from_pydict({"n": pa.array([2 * n for n in batch["n"].to_pylist()])})

    return numbers.exchange("n").map_batches(twice)


def serve(workers=2, **options):
    return ps.serve(
        doubled, workers, inputs={"numbers": NUMBER}, outputs={"twice": NUMBER}, **options
    )


class Bare:
    """A client after docs/service.md."""

    def __init__(self, address, token, **options):
        self.client = fl.FlightClient(address, **options)
        header = (b"authorization", f"Bearer {token}".encode())
        self.options = fl.FlightCallOptions(headers=[header])

    def act(self, name, **told):
        action = fl.Action(name, json.dumps(told).encode())
        (answer,) = self.client.do_action(action, self.options)
        return json.loads(answer.body.to_pybytes())

    def wait(self, epoch):
        """Ask again and again, for a worker may have a kernel to compile."""
        until = time.monotonic() + SOON_S
        while not self.act("probe", epoch=epoch, wait_s=5)["complete"]:
            assert time.monotonic() < until

    def put(self, numbers, **told):
        command = json.dumps({"input": "numbers"} | told).encode()
        batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})
        writer, reader = self.client.do_put(
            fl.FlightDescriptor.for_command(command), batch.schema, self.options
        )
        with writer:
            writer.write_batch(batch)
            writer.done_writing()
            return json.loads(reader.read().to_pybytes())

    def get(self, **told):
        ticket = fl.Ticket(json.dumps({"output": "twice"} | told).encode())
        return [
            (json.loads(chunk.app_metadata.to_pybytes())["epoch"], n)
            for chunk in self.client.do_get(ticket, self.options)
            for n in chunk.data.column("n").to_pylist()
        ]

    def close(self):
        self.client.close()


@pytest.fixture(scope="module")
def service():
    with serve() as running:
        running.output("twice").collect()  # a link connects with the first call, and stays so
        yield running


@pytest.fixture
def endpoints(service):
    clients = [Bare(address, service.token) for address in service.endpoints]
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def epoch(service):
    """The epoch that the service, which the tests share, is at."""
    return service.input("numbers").time


def test_a_bare_client_stages_commits_waits_and_reads(endpoints, service, epoch):
    zero, one = endpoints
    lost = one.put([9], epoch=epoch, attempt="a")
    handles = [
        zero.put([1, 2], epoch=epoch, attempt="b"),
        one.put([3], epoch=epoch, attempt="c"),
    ]
    assert (lost["epoch"], lost["worker"], lost["rows"]) == (epoch, 1, 1)
    asked = {"input": "numbers", "epoch": epoch, "attempts": handles}
    assert zero.act("commit", **asked) == {"committed": True}
    assert zero.act("commit", **asked) == {"committed": False}
    zero.wait(epoch)
    assert zero.act("probe", epoch=epoch, output="twice") == {"complete": True}
    found = [
        pair for server in endpoints for pair in server.get(after=epoch - 1, upto=epoch, wait_s=5)
    ]
    assert sorted(found) == [(epoch, 2), (epoch, 4), (epoch, 6)]
    status = zero.act("status")
    assert (status["inputs"], status["outputs"]) == ({"numbers": epoch + 1}, {"twice": epoch + 1})
    assert zero.act("discard", output="twice", upto=epoch) == {}
    assert zero.get(upto=epoch) == []


def test_a_bare_client_finds_all_endpoints_by_one(endpoints, service):
    told = endpoints[1].act("describe")
    assert told == {
        "protocol": PROTOCOL,
        "worker": 1,
        "endpoints": service.endpoints,
        "inputs": {"numbers": {"n": "int64"}},
        "outputs": {"twice": {"n": "int64"}},
    }
    descriptor = fl.FlightDescriptor.for_command(json.dumps({"output": "twice"}).encode())
    info = endpoints[0].client.get_flight_info(descriptor, endpoints[0].options)
    assert info.schema == NUMBER
    assert [end.locations[0].uri.decode() for end in info.endpoints] == service.endpoints
    assert json.loads(info.endpoints[1].ticket.ticket) == {"output": "twice"}
    names = {action.type for action in endpoints[0].client.list_actions(endpoints[0].options)}
    assert names >= {"commit", "advance", "abort", "probe", "discard", "snapshot", "stop"}


def test_a_bare_client_aborts_and_advances(endpoints, epoch):
    zero, one = endpoints
    handle = one.put([5], epoch=epoch, attempt="x")
    assert zero.act("abort", attempts=[handle]) == {}
    assert zero.act("advance", input="numbers", epoch=epoch + 3) == {"committed": True}
    assert zero.act("advance", input="numbers", epoch=epoch + 3) == {"committed": False}
    assert zero.act("position", input="numbers") == {"epoch": epoch + 3}
    assert zero.act("await_completion", epoch=epoch + 2, wait_s=5) == {"complete": True}
    assert one.get(after=epoch - 1, upto=epoch + 2, wait_s=5) == []


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda server: server.act("dance"),
            "UsageError: the service has no action 'dance'; it has 'describe',",
        ),
        (
            lambda server: server.act("commit", input="numbers"),
            "'epoch' should be a whole number, and",
        ),
        (lambda server: server.act("commit", input="x", epoch=0), "no input 'x'; it has 'numbers'"),
        (lambda server: server.act("probe", epoch=0, wait_s="a"), "'wait_s' should be a number of"),
        (lambda server: server.act("abort", attempts=[{"a": 1}]), "is no staging handle"),
        (
            lambda server: server.act("abort", attempts=7),
            "'attempts' should be a list of staging handles",
        ),
        (lambda server: server.act("snapshot"), "ServiceError: this service makes no snapshots"),
        (lambda server: server.put([1], epoch=0), "'attempt' should be a text, and is missing"),
        (lambda server: server.put([1], epoch=0, attempt="a", input="x"), "has no input 'x'"),
        (lambda server: server.get(upto=1 << 40), "EpochError: epoch 1099511627776 of output"),
        (lambda server: server.get(output="x"), "has no output 'x'"),
    ],
)
def test_what_cannot_be_is_said_by_name(endpoints, ask, said):
    with pytest.raises(fl.FlightServerError) as caught:
        ask(endpoints[0])
    assert said in str(caught.value)
    assert set(json.loads(caught.value.extra_info)) == {"error", "message"}


@pytest.mark.parametrize("token", ["", "wrong", None])
def test_nobody_gets_in_without_the_token(service, token):
    client = Bare(service.endpoints[0], token)
    if token is None:
        client.options = fl.FlightCallOptions()
    for ask in (
        lambda: client.act("status"),
        lambda: client.put([1], epoch=0, attempt="a"),
        lambda: client.get(),
    ):
        with pytest.raises((fl.FlightUnauthenticatedError, fl.FlightUnavailableError)):
            ask()
    client.close()


def test_of_a_client_that_goes_away_before_it_is_done_nothing_is_staged(endpoints, service, epoch):
    told = {"input": "numbers", "epoch": epoch, "attempt": "cut off"}
    descriptor = fl.FlightDescriptor.for_command(json.dumps(told).encode())
    headers = [(b"authorization", f"Bearer {service.token}".encode())]
    options = fl.FlightCallOptions(timeout=2.0, headers=headers)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2]})
    writer, reader = endpoints[0].client.do_put(descriptor, batch.schema, options)
    writer.write_batch(batch)
    assert reader.read() is None  # there is no handle
    with pytest.raises(fl.FlightTimedOutError):
        writer.close()
    assert endpoints[0].put([3], epoch=epoch, attempt="cut off")["rows"] == 1


@pytest.mark.parametrize("beyond", [-1, 1 << 62, 1 << 80])
def test_nothing_is_staged_for_an_epoch_that_cannot_be(endpoints, beyond):
    with pytest.raises(fl.FlightServerError, match="UsageError: nothing can be staged for epoch"):
        endpoints[0].put([1], epoch=beyond, attempt="x")


def test_a_remote_worker_raises_what_the_worker_raised(service):
    with RemoteWorker(service.endpoints[0], service.token) as link:
        request = StageBatches("numbers", 0, "a")
        with pytest.raises(SchemaError, match="the records sent to 'numbers' have columns x"):
            link.stage(request, [pa.RecordBatch.from_pydict({"x": [1]})])
        with pytest.raises(EpochError, match="is not complete"):
            link.read(ReadEpochs("twice", upto=1 << 40))
        with pytest.raises(UsageError, match="no input 'x'"):
            link.ask(GetPosition("x"))
    with RemoteWorker(service.endpoints[0], "wrong") as link, pytest.raises(AuthenticationError):
        link.ask(GetStatus())
    with (
        RemoteWorker("grpc://127.0.0.1:1", "x") as link,
        pytest.raises(StoppedError, match="answer"),
    ):
        link.ask(GetStatus())


def test_a_bug_of_a_worker_is_no_loss_of_it(encrypted, certificates, monkeypatch):
    def fails(self, request):
        raise ZeroDivisionError("in a handler")

    monkeypatch.setattr(ServiceWorker, "status", fails)
    with (
        RemoteWorker(encrypted.endpoints[0], encrypted.token, certificates) as link,
        pytest.raises(ServiceError, match="ZeroDivisionError: in a handler") as caught,
    ):
        link.ask(GetStatus())
    assert type(caught.value) is ServiceError


def test_what_is_no_name_is_no_input_of_a_service(service):
    for given in ([], "x", None):
        with pytest.raises(UsageError, match=re.escape(f"the service has no input {given!r}; it ")):
            service.input(given)


def test_the_service_is_driven_by_its_object_through_the_endpoints(service, epoch):
    numbers = service.input("numbers")
    numbers.send(pa.table({"n": range(20_000)}))
    numbers.send([{"n": 7}])
    numbers.advance_to(epoch + 1)
    found = service.output("twice").collect(upto=epoch, after=epoch - 1)
    assert sorted(found["n"].to_pylist()) == sorted([*range(0, 40_000, 2), 14])
    service.output("twice").discard(epoch)


def test_a_server_encrypts_when_it_is_given_certificates(certificates):
    with serve(1, certificates=certificates) as service:
        assert service.endpoints[0].startswith("grpc+tls://")
        service.input("numbers").send([{"n": 1}])
        service.input("numbers").advance_to(1)
        assert service.output("twice").collect(upto=0)["n"].to_pylist() == [2]
        client = Bare(service.endpoints[0], service.token, **shown(certificates))
        assert client.get(upto=0) == [(0, 2)]
        client.close()


def shown(certificates):
    """The options of a client of Flight that presents a certificate."""
    return {
        "tls_root_certs": certificates.roots,
        "cert_chain": certificates.chain,
        "private_key": certificates.key,
    }


@pytest.fixture(scope="module")
def encrypted(certificates):
    with serve(1, certificates=certificates) as running:
        yield running


def test_a_client_without_a_certificate_of_the_roots_is_refused_whatever_its_token(
    encrypted, certificates, other_certificates
):
    (address,) = encrypted.endpoints
    knows_roots = {"tls_root_certs": certificates.roots}
    for options in ({}, knows_roots, shown(other_certificates) | knows_roots):
        with contextlib.closing(Bare(address, encrypted.token, **options)) as stranger:
            asked = (Bare.act, ("status",)), (Bare.get, ()), (Bare.put, ([1],))
            for ask, told in asked:
                with pytest.raises(fl.FlightUnavailableError):
                    ask(stranger, *told)
    with contextlib.closing(Bare(address, encrypted.token, **shown(certificates))) as client:
        assert client.act("position", input="numbers") == {"epoch": 0}


def test_a_client_with_a_certificate_still_needs_the_token(encrypted, certificates):
    (address,) = encrypted.endpoints
    with (
        contextlib.closing(Bare(address, "wrong", **shown(certificates))) as client,
        pytest.raises(fl.FlightUnauthenticatedError, match="authorization: Bearer TOKEN"),
    ):
        client.act("status")
    with (
        RemoteWorker(address, "wrong", certificates) as link,
        pytest.raises(AuthenticationError, match="does not take this token"),
    ):
        link.ask(GetStatus())


def test_a_remote_worker_says_that_it_is_refused_for_its_certificate(
    encrypted, certificates, other_certificates
):
    (address,) = encrypted.endpoints
    of_another_authority = replace(other_certificates, roots=certificates.roots)
    for presented, said in [
        (None, "certificates: .*self-signed.*, and this client presents none"),
        (other_certificates, "each other's certificates: .*self-signed"),
        (of_another_authority, "each other's certificates: it closes the connection"),
    ]:
        with (
            RemoteWorker(address, encrypted.token, presented) as link,
            pytest.raises(AuthenticationError, match=said),
        ):
            link.ask(GetStatus())
    with RemoteWorker(address, encrypted.token, certificates) as link:
        assert link.ask(GetStatus()).inputs == {"numbers": 0}


def test_a_server_that_encrypts_and_is_gone_is_no_matter_of_certificates(certificates):
    with (
        RemoteWorker(f"grpc+tls://127.0.0.1:{free_port()}", "x", certificates) as link,
        pytest.raises(StoppedError, match="does not answer"),
    ):
        link.ask(GetStatus())


@pytest.mark.parametrize("n_taken", [1, 2])
def test_a_server_that_ends_while_it_is_asked_has_not_refused_a_certificate(certificates, n_taken):
    """It takes a connection, and not a second one, as the one that refuses does."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(SOON_S)
    address = f"grpc+tls://127.0.0.1:{listener.getsockname()[1]}"
    context = tls.context(certificates, initiated=False)

    def end():
        for taken in range(1, n_taken + 1):
            connection, _ = listener.accept()
            with context.wrap_socket(connection, server_side=True):
                if taken == n_taken:
                    listener.close()

    thread = threading.Thread(target=end)
    thread.start()
    refused = pytest.raises(AuthenticationError, match="it closes the connection")
    with refused if n_taken == 2 else contextlib.nullcontext():
        flight_client._check_tls(address, certificates)
    thread.join()


def test_a_client_may_stop_the_service_and_all_is_worked_off():
    service = serve(1)
    client = Bare(service.endpoints[0], service.token)
    client.act("stop")
    client.close()
    service._supervisor.join(SOON_S)
    with pytest.raises(StoppedError, match="has stopped"):
        service.status()
    service.abort()


@pytest.mark.parametrize(("number", "said"), [(-1, "SIGKILL"), (-2, "the very cause")])
def test_a_worker_process_that_dies_is_what_every_method_raises(number, said):
    service = serve(2)
    service.input("numbers").send([{"n": number}])
    began = time.monotonic()
    with contextlib.suppress(WorkerError):  # the worker may die before this has returned
        service.input("numbers").advance_to(1)
    with pytest.raises(WorkerError, match=said):
        service.output("twice").collect(upto=0)
    assert time.monotonic() - began < 10 * slowdown()
    with pytest.raises(WorkerError, match=said):
        service.input("numbers").send([{"n": 1}])
    with pytest.raises(WorkerError, match=said):
        service.stop()


def test_a_block_that_raises_leaves_no_process():
    service = serve(2)

    def use():
        with service:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    with pytest.raises(StoppedError, match="aborted"):
        service.status()


SECRET = b"s" * 32


class ReportingPool(WorkerPool):
    """Its workers are control clients of a test."""

    def __init__(self, workers):
        spec = service_spec(doubled, {"numbers": NUMBER}, {"twice": NUMBER}, {})
        super().__init__(spec, workers, None, FlightConfig(SECRET))

    def _run(self):
        self.termination.wait(600)


@pytest.fixture
def pool():
    """A pool of two workers, and what connects them: `connect(worker)`."""
    running = ReportingPool(2)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ControlServer(SECRET, handlers=running.handlers))

        def connect(worker, secret=SECRET):
            client = ControlClient.connect(WorkerConfig(server.address, secret), worker)
            return stack.enter_context(client)

        yield running, connect
        running.abort()


def test_a_pool_says_which_worker_did_not_report_and_believes_no_stranger(pool):
    running, connect = pool
    with pytest.raises(AuthenticationError):
        connect(1, b"x" * 32)
    answer = connect(1).request(WorkerReady(1, "grpc://a:1"))
    until = time.monotonic() + SOON_S
    while not running._ready:
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(RendezvousError, match=r"worker 0 of the service did not report in 0\.5 s"):
        running.start(0.5)
    with pytest.raises(StoppedError, match="the service was aborted"):
        answer.result(SOON_S)
    with pytest.raises(StoppedError, match="the service was aborted"):
        connect(0).ask(WorkerReady(0, "grpc://a:0"), SOON_S)


def test_workers_learn_the_addresses_of_all_and_that_they_are_to_end(pool):
    running, connect = pool
    clients = [connect(0), connect(1)]
    addresses = ["grpc://a:0", "grpc://a:1"]
    answers = [c.request(WorkerReady(c.worker, addresses[c.worker])) for c in reversed(clients)]
    running.start(SOON_S)
    assert [answer.result(SOON_S) for answer in answers] == [addresses] * 2
    assert [worker.address for worker in running.workers] == addresses
    waiting = [client.request(AwaitAbort()) for client in clients]
    assert not any(answer.done() for answer in waiting)
    running.abort()
    for answer in waiting:
        with pytest.raises(StoppedError, match="the service was aborted"):
            answer.result(SOON_S)
    assert running.join(SOON_S)


def test_a_worker_that_is_there_already_is_refused_a_second_time(pool):
    """As where Spark runs a stage again whose tasks have died."""
    running, connect = pool
    connect(0).request(WorkerReady(0, "grpc://a:0"))
    connect(1).request(WorkerReady(1, "grpc://a:1"))
    running.start(SOON_S)
    with pytest.raises(ServiceError, match="worker 0 of the service is there already"):
        connect(0).ask(WorkerReady(0, "grpc://a:2"), SOON_S)


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are not listed")
def test_a_worker_of_a_service_has_no_control_connection_but_that_of_its_job():
    """So the program listens nowhere for its workers."""

    def listening():
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        inodes = {line.split()[9] for line in lines if line.split()[3] == "0A"}
        found = set()
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # it is closed meanwhile
                found.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
        return inodes & found

    before = listening()
    with serve(2) as service:
        service.status()
        assert listening() == before


def test_every_verb_is_one_dataclass_with_one_handler_and_a_row_of_the_page():
    """So that a new one is a class of `protocol`, and a method."""
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \| `\{", page, re.MULTILINE))
    assert documented == VERBS.keys()
    for verb, kind in VERBS.items():
        handlers = Coordinator if kind.of_leader else ServiceWorker
        hints = typing.get_type_hints(getattr(handlers, verb))
        (answer,) = typing.get_args(kind.__orig_bases__[0])
        assert hints == {"request": kind, "return": answer}


def test_batches_are_aligned_where_they_arrive():
    """Or Arrow would warn of crashes wherever they are grouped."""
    chunks = [SimpleNamespace(data=misaligned(pa.RecordBatch.from_pydict({"n": [1, 2]})))]
    context = SimpleNamespace(is_cancelled=lambda: False)
    [received] = flight_server._received(context, chunks)
    assert is_aligned(received)

    chunks[0].app_metadata = pa.py_buffer(b'{"epoch": 3}')
    client = RemoteWorker.__new__(RemoteWorker)
    client._client = SimpleNamespace(do_get=lambda ticket, options: iter(chunks))
    client._headers = []
    [(at, read)] = client.read(ReadEpochs("twice", None, None, 0.0))
    assert at == 3
    assert is_aligned(read)
