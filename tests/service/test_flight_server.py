"""The server as its page documents it, by a client that knows Arrow Flight and nothing of ours."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import typing
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import pointstamp as ps
from pointstamp.communication.control import ControlClient, WorkerConfig
from pointstamp.communication.failure import dump, failure
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
from pointstamp.service.termination import Termination
from pointstamp.service.worker_control import EndpointReady, WorkerControl, WorkerFailed
from tests.slowness import slowdown

NUMBER = pa.schema({"n": pa.int64()})


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
        until = time.monotonic() + 60
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
        (lambda server: server.act("dance"), "UsageError: there is no action 'dance'"),
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
    options = fl.FlightCallOptions(timeout=0.3, headers=headers)
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
        with pytest.raises(SchemaError, match="what is sent to 'numbers' have columns x"):
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
        client = Bare(service.endpoints[0], service.token, tls_root_certs=certificates.roots)
        assert client.get(upto=0) == [(0, 2)]
        client.close()
        stranger = Bare(service.endpoints[0], service.token)
        with pytest.raises(fl.FlightUnavailableError):
            stranger.act("status")
        stranger.close()


def test_a_client_may_stop_the_service_and_all_is_worked_off():
    service = serve(1)
    client = Bare(service.endpoints[0], service.token)
    client.act("stop")
    client.close()
    service._supervisor.join(5)
    with pytest.raises(StoppedError, match="has stopped"):
        service.status()
    service.abort()


@pytest.mark.parametrize(("number", "said"), [(-1, "SIGKILL"), (-2, "the very cause")])
def test_a_worker_process_that_dies_is_what_every_method_raises(number, said):
    service = serve(2)
    service.input("numbers").send([{"n": number}])
    service.input("numbers").advance_to(1)
    began = time.monotonic()
    with pytest.raises(WorkerError, match=said):
        service.output("twice").collect(upto=0)
    assert time.monotonic() - began < 2.5 * slowdown()
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


def test_a_control_server_says_which_worker_did_not_report_and_believes_no_stranger():
    termination = Termination()
    control = WorkerControl(2, b"s" * 32, termination)
    with pytest.raises(AuthenticationError):
        ControlClient.connect(WorkerConfig(control.address, b"x" * 32), 1)
    try:
        with ControlClient.connect(WorkerConfig(control.address, b"s" * 32), 1) as client:
            client.request(EndpointReady("grpc://a:1"))
            with pytest.raises(RendezvousError, match="worker 0 of the service did not report"):
                control.endpoints(0.5)
            failed = failure(1, ValueError("seven"), time.monotonic())
            client.send(WorkerFailed(dump(failed)))
            assert termination.wait(5)
            with pytest.raises(WorkerError, match="worker 1 failed: ValueError: seven"):
                control.endpoints(5)
    finally:
        control.close()


def test_a_worker_whose_program_goes_away_is_told():
    control = WorkerControl(1, b"s" * 32, Termination())
    gone = threading.Event()
    config = WorkerConfig(control.address, b"s" * 32)
    with ControlClient.connect(config, 0, on_close=lambda *_: gone.set()) as client:
        answer = client.request(EndpointReady("grpc://a:1"))
        assert control.endpoints(5) == ["grpc://a:1"]
        assert answer.result(5) == ["grpc://a:1"]
        control.close()
        assert gone.wait(5)


def test_a_worker_that_is_there_already_is_refused_a_second_time():
    """As where Spark runs a stage again whose tasks have died."""
    control = WorkerControl(1, b"s" * 32, Termination())
    config = WorkerConfig(control.address, b"s" * 32)
    try:
        with ControlClient.connect(config, 0) as client:
            client.request(EndpointReady("grpc://a:1"))
            assert control.endpoints(5) == ["grpc://a:1"]
            with (
                ControlClient.connect(config, 0) as late,
                pytest.raises(ServiceError, match="worker 0 of the service is there already"),
            ):
                late.ask(EndpointReady("grpc://a:2"), 5)
    finally:
        control.close()


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
