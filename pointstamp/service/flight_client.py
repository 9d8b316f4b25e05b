"""The Arrow Flight client: a worker of a service that is anywhere, as a `WorkerHandle`."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.flight

from pointstamp import errors
from pointstamp.errors import AuthenticationError, PointstampError, ServiceError, StoppedError
from pointstamp.formats.aligned_batches import aligned
from pointstamp.service import protocol
from pointstamp.service.protocol import StagingHandle, Verb

if TYPE_CHECKING:
    from pointstamp.communication.tls import Certificates

fl: Any = pyarrow.flight  # whose stubs say str where bytes go, and lack what we use

Answer = TypeVar("Answer")

ANSWER_S = 30.0
"""How long an answer may take, beyond the time that a worker is asked to wait."""

DIAGNOSIS_S = 5.0
"""How long finding out why a server cannot be reached may take, for each step."""


class Unanswered(StoppedError):
    """A call failed of its transport: the worker is gone, or what leads to it."""


class RemoteWorker(contextlib.AbstractContextManager["RemoteWorker"]):
    """Sends requests to one worker by its Flight server; see `WorkerHandle`.

    The address is as `grpc://host:port` or `grpc+tls://host:port`; the certificates are what to
    present to a server that encrypts, and by which to know its certificate.
    """

    def __init__(self, address: str, token: str, certificates: Certificates | None = None) -> None:
        self.address = address
        self._certificates = certificates
        self._headers = [(b"authorization", f"Bearer {token}".encode())]
        self._client = fl.FlightClient(
            address,
            tls_root_certs=certificates and certificates.roots,
            cert_chain=certificates and certificates.chain,
            private_key=certificates and certificates.key,
        )

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def ask(self, request: Verb[Answer]) -> Answer:
        """The answer to a request."""
        options = self._options(ANSWER_S + getattr(request, "wait_s", 0.0))
        with self._translated():
            action = fl.Action(request.verb, protocol.encode(request))
            answers = list(self._client.do_action(action, options))
        if not answers:
            raise self._unanswered("the call ended without an answer")
        return protocol.decode_answer(type(request), answers[0].body.to_pybytes())

    def stage(self, request: protocol.StageBatches, batches: Iterable[Any]) -> StagingHandle:
        """Stage `batches`, all of one schema, for a commit."""
        descriptor = fl.FlightDescriptor.for_command(protocol.encode(request))
        given = iter(batches)
        first = list(islice(given, 1))
        schema = first[0].schema if first else pa.schema([])
        with self._translated():
            writer, reader = self._client.do_put(descriptor, schema, self._options(None))
        try:
            for batch in chain(first, given):  # which may raise errors of their own
                with self._translated():
                    writer.write_batch(batch)
            with self._translated():
                writer.done_writing()
                handle = reader.read()
        finally:
            # It raises of what the call failed, which those before need not know.
            with self._translated():
                writer.close()
        if handle is None:
            raise self._unanswered("the call ended without a staging handle")
        return protocol.decode(StagingHandle, handle.to_pybytes())

    def read(self, request: protocol.ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of what the worker has of complete epochs."""
        return list(self.stream(request))

    def stream(self, request: protocol.ReadEpochs) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The same, as they arrive."""
        with self._translated():
            ticket = fl.Ticket(protocol.encode(request))
            for chunk in self._client.do_get(ticket, self._options(None)):
                yield json.loads(chunk.app_metadata.to_pybytes())["epoch"], aligned(chunk.data)

    def _options(self, timeout_s: float | None) -> Any:
        return fl.FlightCallOptions(timeout=timeout_s, headers=self._headers)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of Flight as errors of ours: as the worker said, or that it is gone.

        What a worker raises has `extra_info`. All else is of the transport, whatever the class:
        gRPC has no status of its own for most of what a connection can end of, and to Arrow an
        unknown status is no error of Flight.
        """
        try:
            yield
        except fl.FlightUnauthenticatedError as cause:
            raise AuthenticationError(
                f"the server at {self.address} does not take this token: {cause}"
            ) from cause
        except (fl.FlightError, pa.ArrowException, OSError) as cause:
            if not _is_of_flight(cause):
                raise  # of what is sent, as a batch of another schema
            extra = getattr(cause, "extra_info", None)
            if extra:
                raise _refusal(extra, str(cause)) from cause
            if isinstance(cause, fl.FlightUnavailableError):
                _check_tls(self.address, self._certificates)
            raise self._unanswered(cause) from cause

    def _unanswered(self, why: object) -> Unanswered:
        return Unanswered(f"the worker at {self.address} does not answer: {why}")


def _is_of_flight(error: Exception) -> bool:
    """Whether a call raised it; else it is Arrow's, of an argument.

    >>> _is_of_flight(pa.ArrowException("Unknown error: Stream removed"))
    True
    >>> _is_of_flight(pa.ArrowInvalid("Tried to write record batch with different schema"))
    False
    """
    return isinstance(error, fl.FlightError | OSError) or type(error) is pa.ArrowException


def _check_tls(address: str, certificates: Certificates | None) -> None:
    """Raise `AuthenticationError` if it is for certificates that a server cannot be reached.

    A client of gRPC does not learn that its certificate is refused: the server closes its end,
    as one that ends does. So connections of our own look: a server that takes the certificate
    sends its settings first, and one that has ended takes no connection, or not a second one.
    """
    found = urlsplit(address)
    if found.scheme != "grpc+tls":
        return
    import ssl

    from pointstamp.communication import tls

    peer = found.hostname or "", found.port or 0
    what = f"the server at {address} and this client do not take each other's certificates"
    remedy = "both need one of the roots that the service was given"
    if certificates is None:
        remedy += ", and this client presents none"
    try:
        given = certificates and tls.context(certificates, initiated=True)
        context = given or ssl.create_default_context()
        context.set_alpn_protocols(["h2"])
        for _ in range(2):
            with (
                socket.create_connection(peer, DIAGNOSIS_S) as connection,
                context.wrap_socket(connection, server_hostname=peer[0]) as encrypted,
            ):
                if encrypted.recv(1):
                    return
    except ssl.SSLEOFError:
        return
    except ssl.SSLError as cause:
        raise AuthenticationError(f"{what}: {cause}; {remedy}") from cause
    except OSError:
        return
    raise AuthenticationError(f"{what}: it closes the connection; {remedy}")


def _refusal(extra: bytes | None, text: str) -> PointstampError:
    """The error that a worker raised."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(extra or b"{}")
        kind = getattr(errors, found["error"], None)
        if isinstance(kind, type) and issubclass(kind, PointstampError):
            return kind(found["message"])
    return ServiceError(text)
