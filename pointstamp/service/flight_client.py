"""A worker behind a server, as a link: what `ServiceWorker` has, by Arrow Flight."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.flight

from pointstamp import errors
from pointstamp.errors import AuthenticationError, PointstampError, ServiceError, StoppedError
from pointstamp.service.staging import StagingHandle
from pointstamp.service.status import Status

fl: Any = pyarrow.flight  # whose stubs say str where bytes go, and lack what we use

ANSWER_S = 30.0
"""How long an answer may take, beyond the time that a worker is asked to wait."""

_GONE = (
    fl.FlightUnavailableError,
    fl.FlightTimedOutError,
    fl.FlightCancelledError,
    fl.FlightInternalError,
)


class RemoteWorker:
    """Talks to one worker by its server; see `link.Link`.

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
        """Hang up."""
        self._client.close()

    def __enter__(self) -> RemoteWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def act(self, action: str, wait_s: float = 0.0, **told: Any) -> Any:
        """The answer to an action of the protocol."""
        if wait_s:
            told["wait_s"] = wait_s
        with self._translated():
            asked = fl.Action(action, json.dumps(told).encode())
            (answer,) = self._client.do_action(asked, self._options(ANSWER_S + wait_s))
            return json.loads(answer.body.to_pybytes())

    def status(self) -> Status:
        """How far the service is, as this worker knows it."""
        return Status(**self.act("status"))

    def stage(
        self, input: str, epoch: int, batches: Iterable[Any], attempt: str | None = None
    ) -> StagingHandle:
        """Keep `batches`, all of one schema, for a commit."""
        told = {"input": input, "epoch": epoch, "attempt": attempt or uuid.uuid4().hex}
        descriptor = fl.FlightDescriptor.for_command(json.dumps(told).encode())
        given = iter(batches)
        first = next(given, None)
        schema = pa.schema([]) if first is None else first.schema
        with self._translated():
            writer, reader = self._client.do_put(descriptor, schema, self._options(None))
            with writer:
                if first is not None:
                    writer.write_batch(first)
                for batch in given:
                    writer.write_batch(batch)
                writer.done_writing()
                handle = reader.read()
            if handle is None:
                raise StoppedError(f"the worker at {self.address} gave no handle")
            return StagingHandle.from_json(json.loads(handle.to_pybytes()))

    def read(
        self, output: str, after: int | None, upto: int | None, timeout_s: float = 0.0
    ) -> list[tuple[int, pa.RecordBatch]]:
        """The worker's batches of complete epochs in (after, upto]."""
        return list(self.stream(output, after, upto, timeout_s))

    def stream(
        self, output: str, after: int | None, upto: int | None, timeout_s: float = 0.0
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The same, as they arrive."""
        told: dict[str, Any] = {"output": output, "wait_s": timeout_s}
        told |= {} if after is None else {"after": after}
        told |= {} if upto is None else {"upto": upto}
        with self._translated():
            ticket = fl.Ticket(json.dumps(told).encode())
            for chunk in self._client.do_get(ticket, self._options(None)):
                yield json.loads(chunk.app_metadata.to_pybytes())["epoch"], chunk.data

    def wait(self, output: str | None, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is complete; whether it is."""
        return bool(self.act("probe", timeout_s, output=output, epoch=epoch)["complete"])

    def commit(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> bool:
        """Let the attempts in at `epoch`, and go on to `until`."""
        told: dict[str, Any] = {"input": input, "epoch": epoch}
        told["attempts"] = [one.to_json() for one in attempts]
        told |= {"close": True} if until is None else {"until": until}
        return bool(self.act("commit", **told)["committed"])

    def abort(self, attempts: Sequence[StagingHandle]) -> None:
        """DropAttempts what is staged, except what a commit has named."""
        self.act("abort", attempts=[staged.to_json() for staged in attempts])

    def position(self, input: str) -> int | None:
        """The first epoch of an input that may still be committed."""
        found: int | None = self.act("position", input=input)["epoch"]
        return found

    def await_completion(self, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is as complete as inputs that are behind it allow."""
        return bool(self.act("await_completion", timeout_s, epoch=epoch)["complete"])

    def discard(self, output: str, upto: int) -> None:
        """Have all workers let go of an output's epochs."""
        self.act("discard", output=output, upto=upto)

    def snapshot(self, soon: bool = False) -> dict[str, int | None]:
        """The epochs of the last snapshot that is sealed, and of the next."""
        found: dict[str, int | None] = self.act("snapshot", soon=soon)
        return found

    def await_snapshot(self, epoch: int, timeout_s: float) -> bool:
        """Wait until a snapshot of `epoch`, or of a later one, is sealed; whether it is."""
        return bool(self.act("await_snapshot", timeout_s, epoch=epoch)["sealed"])

    def finish(self) -> None:
        """Seal no more snapshots."""
        self.act("finish")

    def stop(self) -> None:
        """Have all workers leave."""
        self.act("stop")

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
            raise _said(cause.extra_info, str(cause)) from cause


def _said(told: bytes | None, text: str) -> PointstampError:
    """The error that a worker raised."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(told or b"{}")
        kind = getattr(errors, found["error"], None)
        if isinstance(kind, type) and issubclass(kind, PointstampError):
            return kind(found["message"])
    return ServiceError(text)
