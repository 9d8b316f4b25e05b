"""Streams of Arrow Flight as a source."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as paf
import pytest

import pointstamp as ps
from pointstamp.errors import PositionError, SourceError, UsageError
from pointstamp.formats.flight_source import FlightSource
from pointstamp.testing import check_source

N_BATCHES = 4


class Numbers(paf.FlightServerBase):
    """Flights of some endpoints, which say where they are, or do not; by path and by command."""

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        here = f"grpc://127.0.0.1:{self.port}"
        reuse = "arrow-flight-reuse-connection://?"
        two = [(b"a", []), (b"\xff", [here])]
        flights: dict[bytes, list[tuple[bytes, list[str]]]] = {
            b"numbers": two,
            b"all": two,
            b"parts": [
                *((b"a", locations) for locations in ([reuse], [], [here], [reuse])),
                (b"\xff", ["https://x", here]),
            ],
            b"elsewhere": [(b"a", ["https://x"])],
        }
        found = flights.get((descriptor.path or [descriptor.command])[0])
        if found is None:
            raise paf.FlightServerError("no such flight")
        endpoints = [paf.FlightEndpoint(*each) for each in found]
        return paf.FlightInfo(pa.schema([("n", pa.int64())]), descriptor, endpoints, -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        first = {b"a": 0, b"\xff": 100}[ticket.ticket]
        batches = [
            pa.RecordBatch.from_pydict({"n": [first + n, first + n + 10]}) for n in range(N_BATCHES)
        ]
        return paf.RecordBatchStream(pa.RecordBatchReader.from_batches(batches[0].schema, batches))


@pytest.fixture(scope="module")
def location() -> Iterator[str]:
    with Numbers("grpc://127.0.0.1:0") as server:
        yield f"grpc://127.0.0.1:{server.port}"


@pytest.mark.parametrize("flight", ["numbers", b"all"])
def test_each_endpoint_is_read_from_every_batch(location: str, flight: str | bytes) -> None:
    source = FlightSource(location, flight, headers={"authorization": "Bearer abc"})
    assert source.partitions() == ["a", "\xff"]
    found = [(each[0]["n"].to_pylist(), each[1]) for each in source.open("\xff", 2) if each]
    assert found == [([102, 112], 3), ([103, 113], 4)]
    check_source(source)
    records = ps.testing.collect(lambda scope: scope.source(source), workers=2)
    assert len(records) == 2 * 2 * N_BATCHES


def test_what_cannot_be_read_is_said(location: str) -> None:
    source = FlightSource(location, "numbers")
    with pytest.raises(PositionError, match="'a' was read up to batch 9, and has 4 now"):
        list(source.open("a", 9))
    with pytest.raises(PositionError, match="a number of batches; found -1"):
        list(source.open("a", -1))
    with pytest.raises(SourceError, match="there is no ticket 'b' any more"):
        list(source.open("b", None))
    with pytest.raises(SourceError, match="no such flight"):
        FlightSource(location, "letters").partitions()
    with pytest.raises(SourceError, match=r"at \['https://x'\], and none of them is a server"):
        list(FlightSource(location, "elsewhere").open("a", None))
    with pytest.raises(UsageError, match="a path, or a command as bytes; found ''"):
        FlightSource(location, "")
    with pytest.raises(UsageError, match=r"location is a text, such as .*; found 5"):
        FlightSource(5, "numbers")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"headers are a mapping, .*; found 5"):
        FlightSource(location, "numbers", headers=5)  # type: ignore[arg-type]


def test_endpoints_of_one_ticket_are_several_and_may_name_the_server_itself(location: str) -> None:
    source = FlightSource(location, "parts")
    reuse = "arrow-flight-reuse-connection://?"
    assert source.partitions() == [
        f"a at {reuse}",
        f"a at {reuse} (again)",
        f"a at {location}",
        "a at the server",
        "\xff",
    ]
    check_source(source)
    records = ps.testing.collect(lambda scope: scope.source(source))
    assert len(records) == 5 * 2 * N_BATCHES


class Stalling(Numbers):
    """Sends a batch, and the next one when it is to."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.goes_on = threading.Event()

    def do_get(self, context: Any, ticket: Any) -> Any:
        def batches() -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"n": [1]})
            self.goes_on.wait(60)
            yield pa.RecordBatch.from_pydict({"n": [2]})

        return paf.GeneratorStream(pa.schema([("n", pa.int64())]), batches())


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_worker_does_not_wait_for_a_server_that_has_nothing_yet(goes_on: bool) -> None:
    with Stalling() as server:
        source = FlightSource(f"grpc://127.0.0.1:{server.port}", "numbers")
        reading = source.open("a", None)
        batch, n = next(each for each in reading if each)
        assert (batch["n"].to_pylist(), n) == ([1], 1)
        assert next(reading) is None  # though there is more to come
        if goes_on:
            server.goes_on.set()
            [(batch, n)] = [each for each in reading if each]
            assert (batch["n"].to_pylist(), n) == ([2], 2)
        reading.close()  # ends the call that waits, and its thread
        server.goes_on.set()


def test_what_a_server_says_when_it_is_read_is_an_error_of_the_source(location: str) -> None:
    class Refusing(Numbers):
        def do_get(self, context: Any, ticket: Any) -> Any:
            raise paf.FlightServerError("not today")

    with Refusing("grpc://127.0.0.1:0") as server:
        source = FlightSource(f"grpc://127.0.0.1:{server.port}", "numbers")
        with pytest.raises(SourceError, match=r"FlightSource\(.*\): not today"):
            list(source.open("a", None))
