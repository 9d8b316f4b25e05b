"""The Arrow Flight server of a worker of a service.

`docs/service.md` is its protocol, for clients in any language. Here a call is decoded, handed
to the `ServiceWorker`, and the answer encoded; a client must present the token of the job,
and where the server has certificates, one of the same roots. Arrow's own threads answer the calls.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight

from pointstamp.errors import ServiceError
from pointstamp.formats.aligned_batches import aligned
from pointstamp.service import protocol
from pointstamp.service.connection_guard import ConnectionGuard
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import FlightConfig, known

fl: Any = pyarrow.flight  # whose stubs say str where bytes go

GRACE_S = 5.0
"""So long a server that ends waits for its clients."""


class _TokenCheck(fl.ServerMiddlewareFactory):  # type: ignore[misc]  # it is Any
    """Refuses calls that do not present the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Any) -> None:
        presented = [value for name, value in headers.items() if name.lower() == "authorization"]
        for value in presented[0] if presented else ():
            text = value.encode() if isinstance(value, str) else value
            if hmac.compare_digest(text, self._expected):
                return
        raise fl.FlightUnauthenticatedError(
            "this service wants the header 'authorization: Bearer TOKEN', with its job's token"
        )


class FlightServer(fl.FlightServerBase):  # type: ignore[misc]  # it is Any
    """Serves one worker from the moment that it is made until `close`."""

    def __init__(self, worker: ServiceWorker, config: FlightConfig) -> None:
        certificates = config.certificates
        scheme = "grpc" if certificates is None else "grpc+tls"
        port = config.ports[worker.index] if config.ports else 0
        super().__init__(
            f"{scheme}://{config.host}:{port if _is_free(config.host, port) else 0}",
            middleware={"token": _TokenCheck(protocol.token_of(config.secret))},
            # Mutual TLS: it demands a certificate of the same roots.
            tls_certificates=certificates and [(certificates.chain, certificates.key)],
            root_certificates=certificates and certificates.roots,
            verify_client=certificates is not None,
        )
        self._worker = worker
        self._guard = ConnectionGuard(self.port)
        self.address = f"{scheme}://{config.name or config.host}:{self.port}"

    def close(self) -> None:
        """Answer no more calls; those that are being answered are answered first, for a while."""
        self._guard.close()
        # A client that does not read what it asked for, or does not end what it stages, would be
        # waited for as long as it lives.
        late = threading.Timer(GRACE_S, self._guard.disconnect)
        late.start()
        try:
            self.shutdown()
        finally:
            late.cancel()
            late.join()

    # What Flight calls, with the token.

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """What `do_action` knows."""
        with self._called(context):
            return [
                (verb, (kind.__doc__ or verb).partition("\n")[0])
                for verb, kind in protocol.VERBS.items()
            ]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """One of `list_actions`: JSON in, JSON out."""
        with self._called(context):
            kind = known(protocol.VERBS, action.type, "action")
            request = protocol.decode(kind, action.body.to_pybytes())
            answer = protocol.encode_answer(kind, self._worker.ask(request))
        yield answer

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Stage batches; the staging handle comes back as metadata."""
        with self._called(context):
            request = protocol.decode(protocol.StageBatches, descriptor.command)
            handle = self._worker.stage(request, _received(context, reader))
        writer.write(protocol.encode(handle))

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Complete epochs of an output, of this worker; a batch's metadata has its epoch."""
        with self._called(context):
            request = protocol.decode(protocol.ReadEpochs, ticket.ticket)
            pairs = self._worker.read(request)
            schema = self._worker.spec.outputs[request.output]
        described = (
            (batch, pa.py_buffer(json.dumps({"epoch": epoch}).encode())) for epoch, batch in pairs
        )
        return fl.GeneratorStream(schema, described)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """The schema of an output, and an endpoint for each worker to get a range from."""
        with self._called(context):
            request = protocol.decode(protocol.ReadEpochs, descriptor.command)
            schema = known(self._worker.spec.outputs, request.output, "output")
        command = descriptor.command
        ends = [fl.FlightEndpoint(command, [address]) for address in self._worker.endpoints]
        return fl.FlightInfo(schema, descriptor, ends, -1, -1)

    @contextlib.contextmanager
    def _called(self, context: Any) -> Iterator[None]:
        """Answer a call: errors are errors of Flight, by which a client knows which they are."""
        self._guard.admit(context.peer())
        try:
            yield
        except Exception as error:
            name = type(error).__name__
            extra = json.dumps({"error": name, "message": str(error)}).encode()
            raise fl.FlightServerError(f"{name}: {error}", extra) from error


def _is_free(host: str, port: int) -> bool:
    """Whether nothing listens at a port: gRPC would share it with another server, in silence."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _received(context: Any, reader: Any) -> Iterator[pa.RecordBatch]:
    """What a client brings; an error if it has gone away before it was done."""
    for chunk in reader:
        if chunk.data is not None:
            yield aligned(chunk.data)
    # To the reader this is an end like any other.
    if context.is_cancelled():
        raise ServiceError("the client went away before it was done; nothing of it is staged")
