"""The Arrow Flight client: a worker of a service that is anywhere, as a `WorkerHandle`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight

from pointstamp import errors
from pointstamp.errors import AuthenticationError, PointstampError, ServiceError, StoppedError
from pointstamp.service.protocol import (
    ReadEpochs,
    StageBatches,
    StagingHandle,
    Verb,
    decode,
    decode_answer,
    encode,
)

fl: Any = pyarrow.flight  # whose stubs say str where bytes go, and lack what we use

Answer = TypeVar("Answer")

ANSWER_S = 30.0
"""How long an answer may take, beyond the time that a worker is asked to wait."""

_GONE = (
    fl.FlightUnavailableError,
    fl.FlightTimedOutError,
    fl.FlightCancelledError,
    fl.FlightInternalError,
)


class RemoteWorker(contextlib.AbstractContextManager["RemoteWorker"]):
    """Sends requests to one worker by its Flight server; see `WorkerHandle`.

    Parameters
    ----------
    address : str
        Of the server, as `grpc://host:port` or `grpc+tls://host:port`.
    token : str
        What to present.
    roots : bytes, optional
        By which to know the server's certificate: PEM.
    """

    def __init__(self, address: str, token: str, roots: bytes | None = None) -> None:
        self.address = address
        self._headers = [(b"authorization", f"Bearer {token}".encode())]
        self._client = fl.FlightClient(address, tls_root_certs=roots)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def ask(self, request: Verb[Answer]) -> Answer:
        """The answer to a request."""
        options = self._options(ANSWER_S + getattr(request, "wait_s", 0.0))
        with self._translated():
            action = fl.Action(request.verb, encode(request))
            (answer,) = self._client.do_action(action, options)
            return decode_answer(type(request), answer.body.to_pybytes())

    def stage(self, request: StageBatches, batches: Iterable[Any]) -> StagingHandle:
        """Stage `batches`, all of one schema, for a commit."""
        descriptor = fl.FlightDescriptor.for_command(encode(request))
        given = iter(batches)
        first = list(islice(given, 1))
        schema = first[0].schema if first else pa.schema([])
        with self._translated():
            writer, reader = self._client.do_put(descriptor, schema, self._options(None))
            with writer:
                for batch in chain(first, given):
                    writer.write_batch(batch)
                writer.done_writing()
                handle = reader.read()
            if handle is None:
                raise StoppedError(f"the worker at {self.address} gave no staging handle")
            return decode(StagingHandle, handle.to_pybytes())

    def read(self, request: ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of what the worker has of complete epochs."""
        return list(self.stream(request))

    def stream(self, request: ReadEpochs) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The same, as they arrive."""
        with self._translated():
            ticket = fl.Ticket(encode(request))
            for chunk in self._client.do_get(ticket, self._options(None)):
                yield json.loads(chunk.app_metadata.to_pybytes())["epoch"], chunk.data

    def _options(self, timeout_s: float | None) -> Any:
        return fl.FlightCallOptions(timeout=timeout_s, headers=self._headers)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of Flight as errors of ours: as the worker said, or that it is gone."""
        try:
            yield
        except fl.FlightUnauthenticatedError as cause:
            raise AuthenticationError(
                f"the server at {self.address} does not take this token: {cause}"
            ) from cause
        except _GONE as cause:
            raise StoppedError(f"the worker at {self.address} does not answer: {cause}") from cause
        except fl.FlightServerError as cause:
            raise _refusal(cause.extra_info, str(cause)) from cause


def _refusal(extra: bytes | None, text: str) -> PointstampError:
    """The error that a worker raised."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(extra or b"{}")
        kind = getattr(errors, found["error"], None)
        if isinstance(kind, type) and issubclass(kind, PointstampError):
            return kind(found["message"])
    return ServiceError(text)
