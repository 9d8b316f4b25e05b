"""Idle clients of a Flight server: bounded, and no trouble to the checkpoint or the end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import socket
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.checkpoint.descriptor_reserve import DescriptorReserve, with_reserve
from pointstamp.errors import CheckpointError
from pointstamp.service import flight_server
from pointstamp.service.connection_guard import ConnectionGuard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are not listed")

NUMBER = {"n": pa.int64()}
LIMIT = 420
"""Of descriptors, for a worker."""


def build(scope, n):
    """In the worker's process, before its Flight server is made."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    return n.exchange("n")


@pytest.fixture
def many_descriptors():
    """This process holds the other ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2000 if hard == resource.RLIM_INFINITY else min(hard, 2000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield max(soft, wanted) - 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_open(connection):
    connection.settimeout(0)
    try:
        return bool(connection.recv(1 << 16))
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_idle_strangers_do_not_use_up_what_the_checkpoint_needs(tmp_path, many_descriptors):
    numbers = {"n": pa.schema(NUMBER)}
    with (
        ps.serve(
            build, 2, inputs=numbers, outputs=numbers, checkpoint=tmp_path, restart=None
        ) as service,
        contextlib.ExitStack() as stack,
    ):
        n = service.input("n")
        addresses = [a.removeprefix("grpc://").split(":") for a in service.endpoints]
        strangers = []
        for number in range(min(many_descriptors, 1000)):
            host, port = addresses[number % 2]
            with contextlib.suppress(OSError):
                connection = socket.create_connection((host, int(port)), 10.0)
                strangers.append(stack.enter_context(connection))
        assert len(strangers) > 2 * LIMIT * 0.8
        for epoch in range(10):
            n.send(pa.table({"n": range(epoch * 9000, (epoch + 1) * 9000)}))
            n.advance_to(epoch + 1)
        assert service.output("n").collect(upto=9).num_rows == 90_000
        until = time.monotonic() + 120
        while sum(map(is_open, strangers)) > LIMIT:
            assert time.monotonic() < until
            time.sleep(0.2)
        # Those that present the token stay.
        assert service.input("n").time == 10


def impatient(scope, t):
    """In the worker's process."""
    flight_server.GRACE_S = 0.2
    return t


@pytest.mark.parametrize("begun", ["read", "staged"])
def test_a_client_that_does_not_go_on_does_not_hold_up_the_end(begun):
    service = ps.serve(impatient, 1, collections={"t": "k long, text string"})
    header = (b"authorization", f"Bearer {service.token}".encode())
    options = fl.FlightCallOptions(headers=[header])
    with service, fl.connect(service.endpoints[0]) as client:
        for _ in range(30):  # more than is under way
            service.input("t").insert(pa.table({"k": range(2000), "text": ["long" * 250] * 2000}))
            epoch = service.advance()
        service.output().probe.wait(epoch)
        if begun == "read":
            ticket = json.dumps({"output": "result", "upto": epoch}).encode()
            reader = client.do_get(fl.Ticket(ticket), options)
            assert reader.read_chunk().data.num_rows
        else:
            staged = json.dumps({"input": "t", "epoch": 0, "attempt": "never ends"}).encode()
            table = pa.table({"k": [7], "text": ["a"], "diff": [1]})
            of_staged = fl.FlightDescriptor.for_command(staged)
            writer, _ = client.do_put(of_staged, table.schema, options)
            writer.write_table(table)
        service.output().discard(epoch)
        service.stop()  # which said that the workers did not end
        with pytest.raises(fl.FlightError):
            (reader.read_all if begun == "read" else writer.close)()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connected(stack, listener, n):
    pairs = []
    for _ in range(n):
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        server, _ = listener.accept()
        pairs.append((client, stack.enter_context(server)))
    return pairs


def test_of_too_many_connections_the_oldest_without_a_token_go(listener):
    with contextlib.ExitStack() as stack:
        guard = ConnectionGuard(listener.getsockname()[1], most=3)
        stack.callback(guard.close)
        pairs = connected(stack, listener, 2)
        host, port = pairs[0][0].getsockname()
        guard.admit(f"ipv4:{host}:{port}")
        assert guard.look() == 2
        guard.look()
        pairs += connected(stack, listener, 2)
        guard.look()
        assert is_open(pairs[0][0])
        assert not is_open(pairs[1][0])


def test_a_connection_that_presents_no_token_goes_after_a_while(listener):
    with contextlib.ExitStack() as stack:
        guard = ConnectionGuard(listener.getsockname()[1], idle_s=0.0)
        stack.callback(guard.close)
        (token, _), (stranger, _) = connected(stack, listener, 2)
        host, port = token.getsockname()
        connections = guard._connections

        def before_the_token():
            guard.admit(f"ipv4:{host}:{port}")
            return {}

        guard._connections = before_the_token
        guard.look()
        guard._connections = connections
        guard.look()
        time.sleep(0.01)
        guard.look()
        assert (is_open(token), is_open(stranger)) == (True, False)


def test_a_commit_finds_a_descriptor_where_all_are_in_use(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    batch = pa.RecordBatch.from_pydict({"n": [1]})
    reserve = DescriptorReserve()
    taken, limits = [], resource.getrlimit(resource.RLIMIT_NOFILE)
    last = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 40, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            os.open(os.devnull, os.O_RDONLY)
        staged = checkpoint.stage("n", 0, "a", [batch])
        assert checkpoint.commit("n", 0, [staged])
        assert [b.to_pydict() for b in checkpoint.read(staged)] == [{"n": [1]}]
    finally:
        for descriptor in taken:
            os.close(descriptor)
        reserve.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_other_errors_are_not_tried_again():
    reserve, n_tries = DescriptorReserve(1), 0

    def fail():
        nonlocal n_tries
        n_tries += 1
        raise CheckpointError("no") from OSError(errno.ENOSPC, "full")

    with pytest.raises(CheckpointError, match="no"):
        with_reserve(fail)
    reserve.close()
    assert n_tries == 1
