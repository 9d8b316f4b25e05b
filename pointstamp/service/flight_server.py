"""The Arrow Flight server of a worker of a service.

`docs/service.md` is its protocol, for clients in any language. Here a call is decoded, handed
to the `ServiceWorker`, and the answer encoded; a client must present the token of the job.
Arrow's own threads answer the calls.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight

from pointstamp.communication.tls import Certificates
from pointstamp.errors import PointstampError, ServiceError, UsageError
from pointstamp.service.connection_guard import ConnectionGuard
from pointstamp.service.protocol import (
    VERBS,
    ReadEpochs,
    StageBatches,
    decode,
    encode,
    encode_answer,
)
from pointstamp.service.service_worker import ServiceWorker

fl: Any = pyarrow.flight  # whose stubs say str where bytes go


def token_of(secret: bytes) -> str:
    """What to present to the servers of a job: it follows from the secret, and not the reverse.

    >>> len(token_of(b"a secret of a job"))
    64
    """
    return hmac.digest(secret, b"pointstamp flight token", "sha256").hex()


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
    """Serves one worker from the moment that it is made until `close`.

    Parameters
    ----------
    worker : ServiceWorker
    token : str
        What clients must present.
    host : str
        The address of this machine to listen at.
    name : str, optional
        By what name clients reach this machine; `host` if not given.
    port : int
        0 for a free one.
    certificates : Certificates, optional
        Encrypt with these.
    """

    def __init__(
        self,
        worker: ServiceWorker,
        token: str,
        host: str = "127.0.0.1",
        name: str | None = None,
        port: int = 0,
        certificates: Certificates | None = None,
    ) -> None:
        scheme = "grpc" if certificates is None else "grpc+tls"
        keys = [] if certificates is None else [(certificates.chain, certificates.key)]
        super().__init__(
            f"{scheme}://{host}:{port}",
            tls_certificates=keys or None,
            middleware={"token": _TokenCheck(token)},
        )
        self._worker = worker
        self._guard = ConnectionGuard(self.port)
        self.address = f"{scheme}://{name or host}:{self.port}"

    def close(self) -> None:
        """Answer no more calls; those that are being answered are answered first."""
        self._guard.close()
        self.shutdown()

    # What Flight calls.

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """What `do_action` knows."""
        self._guard.admit(context.peer())
        return [(verb, kind.summary) for verb, kind in VERBS.items()]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """One of `list_actions`: JSON in, JSON out."""
        self._guard.admit(context.peer())
        with _refusals():
            kind = VERBS.get(action.type)
            if kind is None:
                raise UsageError(
                    f"there is no action {action.type!r}; there are {', '.join(VERBS)}"
                )
            request = decode(kind, action.body.to_pybytes())
            answer = encode_answer(kind, self._worker.ask(request))
        yield answer

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Stage batches; the staging handle comes back as metadata."""
        self._guard.admit(context.peer())
        with _refusals():
            request = decode(StageBatches, descriptor.command)
            handle = self._worker.stage(request, _received(context, reader))
        writer.write(json.dumps(handle.to_json()).encode())

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Complete epochs of an output, of this worker; a batch's metadata has its epoch."""
        self._guard.admit(context.peer())
        with _refusals():
            request = decode(ReadEpochs, ticket.ticket)
            pairs = self._worker.read(request)
            schema = self._worker.spec.outputs[request.output]
        described = (
            (batch, pa.py_buffer(json.dumps({"epoch": epoch}).encode())) for epoch, batch in pairs
        )
        return fl.GeneratorStream(schema, described)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """The schema of an output, and an endpoint for each worker to get a range from."""
        self._guard.admit(context.peer())
        with _refusals():
            request = decode(ReadEpochs, descriptor.command)
            schema = self._worker.known(self._worker.spec.outputs, request.output, "output")
        ticket = encode(request)
        ends = [fl.FlightEndpoint(ticket, [address]) for address in self._worker.endpoints]
        return fl.FlightInfo(schema, descriptor, ends, -1, -1)


class _refusals:  # noqa: N801  (used as a function)
    """Errors of ours as errors of Flight, by which a client knows which."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PointstampError):
            name = type(error).__name__
            extra = json.dumps({"error": name, "message": str(error)}).encode()
            raise fl.FlightServerError(f"{name}: {error}", extra) from error


def _received(context: Any, reader: Any) -> Iterator[pa.RecordBatch]:
    """What a client brings; an error if it has gone away before it was done."""
    for chunk in reader:
        if chunk.data is not None:
            yield chunk.data
    # To the reader this is an end like any other.
    if context.is_cancelled():
        raise ServiceError("the client went away before it was done; nothing of it is staged")
