"""The server of a service: an Arrow Flight server for each worker.

`docs/service.md` is its protocol, for clients in any language. Here a call is taken
apart, handed to the worker's `ServiceWorker`, and the answer put together; whoever calls must
present the token of the job. Arrow's own threads answer the calls.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.flight

from pointstamp.communication.tls import Certificates
from pointstamp.errors import PointstampError, ServiceError, UsageError
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.staging import StagingHandle
from pointstamp.service.status import Status

fl: Any = pyarrow.flight  # whose stubs say str where bytes go

PROTOCOL = 1
"""The version of the protocol, which `describe` tells."""

MAX_WAIT_S = 5.0
"""The longest that a call waits for an epoch; who wants to wait longer calls again."""


def token_of(secret: bytes) -> str:
    """What to present at the endpoints of a job: it follows from the secret, and not the reverse.

    >>> len(token_of(b"a secret of a job"))
    64
    """
    return hmac.digest(secret, b"pointstamp server", "sha256").hex()


class _Bearers(fl.ServerMiddlewareFactory):  # type: ignore[misc]  # it is Any
    """Lets those in who present the token."""

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
    resident : ServiceWorker
    token : str
        What clients must present.
    host : str
        The address of this machine to listen at, on a free port.
    name : str, optional
        By what name clients reach this machine; `host` if not given.
    certificates : Certificates, optional
        Encrypt with these.
    """

    def __init__(
        self,
        resident: ServiceWorker,
        token: str,
        host: str = "127.0.0.1",
        name: str | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        scheme = "grpc" if certificates is None else "grpc+tls"
        keys = [] if certificates is None else [(certificates.chain, certificates.key)]
        super().__init__(
            f"{scheme}://{host}:0",
            tls_certificates=keys or None,
            middleware={"bearer": _Bearers(token)},
        )
        self._resident = resident
        self.address = f"{scheme}://{name or host}:{self.port}"
        self.all: list[str] = [self.address]
        """The endpoints of all workers, by index."""
        self._actions: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
            "describe": ("the workers, inputs and outputs", self._describe),
            "status": ("where inputs and outputs are", lambda told: _status(resident.status())),
            "position": (
                "the first epoch of an input that may be committed",
                lambda told: {"epoch": resident.position(_text(told, "input"))},
            ),
            "commit": ("let what was staged in, once", self._commit),
            "advance": ("go on to an epoch, with nothing more at those before", self._advance),
            "abort": ("drop what was staged", self._abort),
            "probe": ("wait for an epoch to be complete", self._probe),
            "await_completion": (
                "wait for an epoch, as far as other inputs let it",
                self._await_completion,
            ),
            "discard": ("let go of an output's epochs", self._discard),
            "snapshot": ("the epochs of the last snapshot, and of the next", self._snapshot),
            "await_snapshot": ("wait for a snapshot to be sealed", self._await_snapshot),
            "finish": ("seal no more snapshots, as the inputs will be closed", self._finish),
            "stop": ("end: finish and close the inputs before", self._stop),
        }

    def close(self) -> None:
        """Answer nobody any more; what is being answered is answered first."""
        self.shutdown()

    # What Flight calls.

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """What `do_action` knows."""
        return [(name, what) for name, (what, _) in self._actions.items()]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """One of `list_actions`: JSON in, JSON out."""
        with _told():
            if action.type not in self._actions:
                raise UsageError(
                    f"there is no action {action.type!r}; there are {', '.join(self._actions)}"
                )
            answer = self._actions[action.type][1](_parsed(action.body.to_pybytes()))
        yield json.dumps(answer).encode()

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Stage batches; the handle comes back as metadata."""
        with _told():
            told = _parsed(descriptor.command)
            input, epoch = _text(told, "input"), _number(told, "epoch")
            attempt = _text(told, "attempt")
            staged = self._resident.stage(input, epoch, _brought(context, reader), attempt)
        writer.write(json.dumps(staged.to_json()).encode())

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Complete epochs of an output, of this worker; a batch's metadata has its epoch."""
        with _told():
            told = _parsed(ticket.ticket)
            output = _text(told, "output")
            pairs = self._resident.read(
                output,
                _number(told, "after", None),
                _number(told, "upto", None),
                _wait_s(told),
            )
            schema = self._resident.plan.outputs[output]
        described = ((batch, pa.py_buffer(_json({"epoch": epoch}))) for epoch, batch in pairs)
        return fl.GeneratorStream(schema, described)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """The schema of an output, and an endpoint for each worker to get a range from."""
        with _told():
            told = _parsed(descriptor.command)
            output = _text(told, "output")
            schemas = self._resident.plan.outputs
            if output not in schemas:
                raise UsageError(f"there is no output {output!r}; there are {list(schemas)}")
        ends = [fl.FlightEndpoint(_json(told), [address]) for address in self.all]
        return fl.FlightInfo(schemas[output], descriptor, ends, -1, -1)

    # The actions.

    def _describe(self, told: dict[str, Any]) -> dict[str, Any]:
        plan = self._resident.plan
        return {
            "protocol": PROTOCOL,
            "worker": self._resident.index,
            "endpoints": self.all,
            "inputs": {name: _columns(schema) for name, schema in plan.inputs.items()},
            "outputs": {name: _columns(schema) for name, schema in plan.outputs.items()},
        }

    def _commit(self, told: dict[str, Any]) -> dict[str, Any]:
        epoch = _number(told, "epoch")
        until = None if told.get("close") else _number(told, "until", epoch + 1)
        attempts = _handles(told, "attempts")
        input = _text(told, "input")
        return {"committed": self._resident.commit(input, epoch, attempts, until)}

    def _advance(self, told: dict[str, Any]) -> dict[str, Any]:
        input, until = _text(told, "input"), _number(told, "epoch")
        now = self._resident.position(input)
        if now is None or until <= now:
            return {"committed": False}
        return {"committed": self._resident.commit(input, now, [], until)}

    def _abort(self, told: dict[str, Any]) -> dict[str, Any]:
        self._resident.abort(_handles(told, "attempts"))
        return {}

    def _probe(self, told: dict[str, Any]) -> dict[str, Any]:
        output = _text(told, "output") if told.get("output") is not None else None
        done = self._resident.wait(output, _number(told, "epoch"), _wait_s(told))
        return {"complete": done}

    def _await_completion(self, told: dict[str, Any]) -> dict[str, Any]:
        return {"complete": self._resident.await_completion(_number(told, "epoch"), _wait_s(told))}

    def _discard(self, told: dict[str, Any]) -> dict[str, Any]:
        self._resident.discard(_text(told, "output"), _number(told, "upto"))
        return {}

    def _snapshot(self, told: dict[str, Any]) -> dict[str, Any]:
        return self._resident.snapshot(bool(told.get("soon")))

    def _await_snapshot(self, told: dict[str, Any]) -> dict[str, Any]:
        return {"sealed": self._resident.await_snapshot(_number(told, "epoch"), _wait_s(told))}

    def _finish(self, told: dict[str, Any]) -> dict[str, Any]:
        self._resident.finish()
        return {}

    def _stop(self, told: dict[str, Any]) -> dict[str, Any]:
        self._resident.stop()
        return {}


class _told:  # noqa: N801  (used as a function)
    """Errors of ours, said so that a client can tell which."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PointstampError):
            name = type(error).__name__
            told = _json({"error": name, "message": str(error)})
            raise fl.FlightServerError(f"{name}: {error}", told) from error


def _brought(context: Any, reader: Any) -> Iterator[pa.RecordBatch]:
    """What a client brings; an error if it has gone away before it was done."""
    for chunk in reader:
        if chunk.data is not None:
            yield chunk.data
    # To the reader this is an end like any other.
    if context.is_cancelled():
        raise ServiceError("the client went away before it was done; nothing of it is staged")


def _parsed(body: bytes | None) -> dict[str, Any]:
    try:
        told = json.loads(body or b"{}")
    except (ValueError, RecursionError) as cause:
        raise UsageError(f"what is asked is no JSON: {cause}") from cause
    if not isinstance(told, dict):
        raise UsageError(f"what is asked should be a JSON object, and is {told!r}")
    return told


def _json(told: Any) -> bytes:
    return json.dumps(told).encode()


_NEEDED: Any = object()


def _text(told: dict[str, Any], name: str) -> str:
    found = told.get(name)
    if not isinstance(found, str):
        raise UsageError(f"{name!r} should be a text, and is {found!r}")
    return found


def _number(told: dict[str, Any], name: str, default: Any = _NEEDED) -> Any:
    found = told.get(name, default)
    if found is default and default is not _NEEDED:
        return default
    if type(found) is not int:
        given = "missing" if found is _NEEDED else repr(found)
        raise UsageError(f"{name!r} should be a whole number, and is {given}")
    return found


def _handles(told: dict[str, Any], name: str) -> list[StagingHandle]:
    found = told.get(name, [])
    if not isinstance(found, list):
        raise UsageError(f"{name!r} should be a list of handles, and is {found!r}")
    return [StagingHandle.from_json(one) for one in found]


def _wait_s(told: dict[str, Any]) -> float:
    found = told.get("wait_s", 0)
    if type(found) not in (int, float) or not found >= 0:
        raise UsageError(f"'wait_s' should be a number of seconds, and is {found!r}")
    return min(float(found), MAX_WAIT_S)


def _status(status: Status) -> dict[str, Any]:
    return asdict(status)


def _columns(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
