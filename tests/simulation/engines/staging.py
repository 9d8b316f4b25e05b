"""Random attempts at a service: what is staged, sent on, kept and fetched, against plain lists."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.flight

from pointstamp.errors import EpochError, ServiceError
from pointstamp.service.flight_server import FlightServer
from pointstamp.service.protocol import (
    ReadEpochs,
    StageBatches,
    StagingHandle,
    decode,
    encode,
    token_of,
)
from pointstamp.service.spec import FlightConfig
from pointstamp.service.worker_buffers import InputFeeder, OutputBuffer, StagingArea

fl: Any = pyarrow.flight  # whose stubs say str where bytes go

SECRET = b"a secret of sixteen bytes or more"
NUMBER = pa.schema({"n": pa.int64()})


def _batches(rng: Random) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pydict({"n": [rng.randrange(99) for _ in range(size)]}, NUMBER)
        for size in (rng.choice([0, 1, 4]) for _ in range(rng.choice([0, 1, 3])))
    ]


def _rows(batches: Any) -> list[int]:
    return [n for batch in batches for n in batch["n"].to_pylist()]


def check_staging(seed: int) -> None:
    """An attempt's records are those that it brought first, and are there until it is decided."""
    rng = Random(seed)
    worker = rng.randrange(3)
    area = StagingArea(worker, None, SECRET)
    staged: dict[tuple[str, int, str], tuple[StagingHandle, list[int]]] = {}
    for _ in range(60):
        key = rng.choice("ab"), rng.randrange(4), rng.choice("xyz")
        chance = rng.random()
        if chance < 0.5:
            batches = _batches(rng)
            handle = area.stage(StageBatches(*key), batches, None)
            assert handle.is_genuine(SECRET)
            known = staged.setdefault(key, (handle, _rows(batches)))
            assert known[0] == handle
            assert handle.rows == len(known[1])
        elif chance < 0.6 and key in staged:
            area.drop(staged.pop(key)[0])
        elif chance < 0.7:
            area.drop_upto(key[0], key[1])
            staged = {k: v for k, v in staged.items() if k[0] != key[0] or k[1] > key[1]}
        elif key in staged:
            others = [v for k, v in staged.items() if k[:2] == key[:2]]
            wanted = [rng.choice(others) for _ in range(rng.choice([1, 2, 5]))]
            elsewhere = StagingHandle(*key, worker + 1, 7)
            unique = {handle.attempt: rows for handle, rows in wanted}
            got = _rows(area.take([elsewhere, *(handle for handle, _ in wanted)]))
            assert got == [n for rows in unique.values() for n in rows]
        else:
            try:
                area.take([StagingHandle(*key, worker, 1)])
            except ServiceError:
                pass
            else:
                raise AssertionError(f"{key} is not staged, and was taken")
        assert len(area) == len(staged)


class _Input:
    """An input's handle that is throttled now and then."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.time = 0
        self.is_closed = False
        self.sent: list[tuple[int, int]] = []
        self.n_sent_at_once = 0

    @property
    def is_throttled(self) -> bool:
        return self.n_sent_at_once >= 2

    def advance_to(self, epoch: int) -> None:
        assert epoch >= self.time
        self.time = epoch

    def send_batch(self, batch: Any) -> None:
        self.n_sent_at_once += 1
        assert self.n_sent_at_once <= 2, "it was sent although the input is throttled"
        self.sent += [(self.time, n) for n in _rows([batch])]

    def close(self) -> None:
        self.is_closed = True


def check_feeding(seed: int) -> None:
    """What was decided is sent in its order, at its epoch, and no more than there is room for."""
    rng = Random(seed)
    handle = _Input(rng)
    feeder = InputFeeder(handle)  # type: ignore[arg-type]  # as much of a handle as it uses
    expected: list[tuple[int, int]] = []
    epoch = 0
    for _ in range(rng.randrange(1, 8)):
        batches = _batches(rng)
        expected += [(epoch, n) for n in _rows(batches)]
        until = epoch + rng.randint(1, 3)
        feeder.admit(epoch, batches, until)
        epoch = until
        for _ in range(rng.choice([0, 1, 2])):
            handle.n_sent_at_once = 0
            feeder.feed()
    feeder.admit(epoch, [], None)
    for _ in range(40):
        handle.n_sent_at_once = 0
        feeder.feed()
    assert handle.sent == expected
    assert handle.is_closed
    assert handle.time == epoch
    assert feeder.time is None


def check_outputs(seed: int) -> None:
    """Complete epochs are read in order, as often as asked, until they are discarded."""
    rng = Random(seed)
    buffer = OutputBuffer("out")
    kept: dict[int, list[int]] = defaultdict(list)
    discarded = -1
    for _ in range(40):
        epoch = rng.randrange(10)
        chance = rng.random()
        if chance < 0.4 and epoch > discarded:
            for batch in _batches(rng):
                buffer.add(epoch, batch)
                kept[epoch] += _rows([batch])
        elif chance < 0.5:
            buffer.discard(epoch)
            discarded = max(discarded, epoch)
        else:
            after = rng.choice([None, rng.randrange(-1, 10)])
            try:
                pairs = buffer.read(after, epoch)
            except EpochError:
                assert after is not None
                assert after < discarded
                continue
            start = discarded if after is None else after
            assert start >= discarded
            assert [(at, n) for at, batch in pairs for n in _rows([batch])] == [
                (at, n) for at in range(start + 1, epoch + 1) for n in kept[at]
            ]


class _Worker:
    """A worker of a service, as its Flight server uses it."""

    def __init__(self) -> None:
        self.index = 0
        self.endpoints = ["grpc://127.0.0.1:1", "grpc://127.0.0.1:2"]
        self.spec = SimpleNamespace(outputs={"out": NUMBER})
        self.staged: list[tuple[StageBatches, list[int]]] = []
        self.kept: list[tuple[int, pa.RecordBatch]] = []

    def stage(self, request: StageBatches, batches: Any) -> StagingHandle:
        rows = _rows(batches)
        self.staged.append((request, rows))
        handle = StagingHandle(request.input, request.epoch, request.attempt, 0, len(rows))
        return handle.signed(SECRET)

    def read(self, request: ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        if request.upto is not None and request.upto < 0:
            raise EpochError("it is discarded")
        return self.kept


def check_flight(seed: int) -> None:
    """Clients bring and fetch what they ask for, with the token, and learn of their errors."""
    rng = Random(seed)
    worker: Any = _Worker()
    server = FlightServer(worker, FlightConfig(SECRET))
    client = fl.FlightClient(server.address)
    options = _presenting(token_of(SECRET))
    try:
        for _ in range(3):
            _stage(rng, worker, client, options)
            _fetch(rng, worker, client, options)
        _refused(rng, client, options)
        for token in ("", token_of(SECRET)[:-1], token_of(b"another secret of some length")):
            try:
                list(client.list_actions(_presenting(token)))
            except fl.FlightUnauthenticatedError:
                continue
            raise AssertionError(f"a client with the token {token!r} was let in")
    finally:
        client.close()
        server.close()


def _presenting(token: str) -> Any:
    return fl.FlightCallOptions(
        headers=[(b"authorization", f"Bearer {token}".encode())], timeout=30.0
    )


def _stage(rng: Random, worker: Any, client: Any, options: Any) -> None:
    batches = _batches(rng)
    request = StageBatches("in", rng.randrange(9), f"attempt {rng.randrange(99)}")
    descriptor = fl.FlightDescriptor.for_command(encode(request))
    writer, reader = client.do_put(descriptor, NUMBER, options)
    for batch in batches:
        writer.write_batch(batch)
    writer.done_writing()
    handle = decode(StagingHandle, reader.read().to_pybytes())
    writer.close()
    assert worker.staged[-1] == (request, _rows(batches))
    assert handle.is_genuine(SECRET)
    assert handle.rows == len(_rows(batches))


def _fetch(rng: Random, worker: Any, client: Any, options: Any) -> None:
    worker.kept = [(epoch, batch) for epoch in range(3) for batch in _batches(rng)]
    request = ReadEpochs("out", None, rng.randrange(9), 0.0)
    info = client.get_flight_info(fl.FlightDescriptor.for_command(encode(request)), options)
    found = [end.locations[0].uri.decode() for end in info.endpoints]
    assert found == worker.endpoints
    assert info.schema == NUMBER
    assert all(decode(ReadEpochs, end.ticket.ticket) == request for end in info.endpoints)
    got = []
    for chunk in client.do_get(info.endpoints[0].ticket, options):
        epoch = int(chunk.app_metadata.to_pybytes().decode().partition(":")[2].strip(" }"))
        got.append((epoch, chunk.data["n"].to_pylist()))
    assert got == [(epoch, batch["n"].to_pylist()) for epoch, batch in worker.kept]


def _refused(rng: Random, client: Any, options: Any) -> None:
    """An error of the worker's arrives with its name."""
    ticket = fl.Ticket(encode(ReadEpochs("out", None, -1 - rng.randrange(9), 0.0)))
    said = b""
    try:
        client.do_get(ticket, options).read_all()
    except fl.FlightServerError as error:
        said = error.extra_info
    assert b"EpochError" in said
