"""Calls whose connection is cut at any point: all of that is of the transport, by one name."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from pointstamp.errors import AuthenticationError, EpochError
from pointstamp.service import protocol
from pointstamp.service.flight_client import RemoteWorker, Unanswered
from pointstamp.service.protocol import GetPosition, ReadEpochs, StageBatches, StagingHandle

BATCH = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})

RESET = struct.pack("ii", 1, 0)
"""Of `SO_LINGER`: closing sends a reset, as the kernel does for a process that was killed."""


class Answering(fl.FlightServerBase):  # type: ignore[misc]  # it is Any
    """A worker that answers each kind of call."""

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        yield protocol.encode({"epoch": 7})

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        n_rows = reader.read_all().num_rows
        writer.write(protocol.encode(StagingHandle("n", 0, "a", 0, n_rows)))

    def do_get(self, context: Any, ticket: Any) -> Any:
        return fl.GeneratorStream(BATCH.schema, iter([(BATCH, pa.py_buffer(b'{"epoch": 3}'))] * 2))


class Cut:
    """Stands before a server, for one connection; cuts it after so many bytes of one side."""

    def __init__(self, port: int, of_server: bool, n_bytes: int, resets: bool) -> None:
        self.n_passed = {True: 0, False: 0}
        """By whether it is of the server."""
        self._of_server = of_server
        self._n_bytes = n_bytes
        self._resets = resets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = port
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Cut:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        with self._listener:
            client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._server))
        with client, server, contextlib.suppress(OSError):
            self._pass(client, server)
            if self._resets:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        selector = selectors.DefaultSelector()
        selector.register(client, selectors.EVENT_READ, (False, server))
        selector.register(server, selectors.EVENT_READ, (True, client))
        with selector:
            while True:
                for key, _ in selector.select():
                    is_of_server, to = key.data
                    data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]  # it is a socket
                    if is_of_server is self._of_server:
                        data = data[: self._n_bytes - self.n_passed[is_of_server]]
                    if not data:
                        return
                    to.sendall(data)
                    self.n_passed[is_of_server] += len(data)
                    if self.n_passed[self._of_server] == self._n_bytes:
                        return


@pytest.fixture(scope="module")
def server() -> Iterator[Answering]:
    with Answering("grpc://127.0.0.1:0") as running:
        yield running


CALLS: dict[str, tuple[Callable[[RemoteWorker], Any], Any]] = {
    "ask": (lambda worker: worker.ask(GetPosition("n")), 7),
    "stage": (lambda worker: worker.stage(StageBatches("n", 0, "a"), [BATCH] * 2).rows, 6),
    "read": (lambda worker: worker.read(ReadEpochs("n")), [(3, BATCH)] * 2),
}


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("of_server", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_cut_is_answered_or_lost(
    server: Answering, call: str, of_server: bool, resets: bool
) -> None:
    use, answer = CALLS[call]

    def found(n_bytes: int) -> Any:
        with Cut(server.port, of_server, n_bytes, resets) as cut:
            try:
                with RemoteWorker(cut.address, "a token") as worker:
                    return use(worker)
            except Unanswered:
                return None

    whole = Cut(server.port, of_server, 1 << 30, resets)
    with whole, RemoteWorker(whole.address, "a token") as worker:
        assert use(worker) == answer
    n_all = whole.n_passed[of_server]
    assert found(0) is None
    for n_bytes in range(9, n_all, n_all // 6):
        assert found(n_bytes) in (answer, None)


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowException("Unknown error: Stream removed"),
        fl.FlightServerError("Unknown", b""),
        fl.FlightInternalError("Received RST_STREAM with error code 2"),
        fl.FlightTimedOutError("Deadline Exceeded"),
        fl.FlightCancelledError("CANCELLED"),
        OSError("Server never sent a data message"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_connection_can_end_of_is_of_the_transport(error: Exception) -> None:
    with (
        RemoteWorker("grpc://127.0.0.1:1", "a token") as worker,
        pytest.raises(Unanswered, match=r"grpc://127\.0\.0\.1:1 does not answer"),
        worker._translated(),
    ):
        raise error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (fl.FlightServerError("", b'{"error": "EpochError", "message": "so"}'), EpochError),
        (fl.FlightUnauthenticatedError("no"), AuthenticationError),
        (pa.ArrowInvalid("Tried to write record batch with different schema"), pa.ArrowInvalid),
        (ValueError("of what is sent"), ValueError),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_what_a_worker_or_its_caller_raised_is_not(error: Exception, kind: type) -> None:
    with RemoteWorker("grpc://127.0.0.1:1", "a token") as worker:
        with pytest.raises(kind) as caught, worker._translated():
            raise error
        assert not isinstance(caught.value, Unanswered)


def test_what_fails_in_the_batches_that_are_staged_is_raised_as_it_is(server: Answering) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise OSError("a disk of the client's own")

    with RemoteWorker(f"grpc://127.0.0.1:{server.port}", "a token") as worker:
        with pytest.raises(OSError, match="a disk of the client's own"):
            worker.stage(StageBatches("n", 0, "a"), batches())
        with pytest.raises(pa.ArrowInvalid, match="schema"):
            worker.stage(StageBatches("n", 0, "a"), [BATCH, pa.RecordBatch.from_pydict({"m": [1]})])
