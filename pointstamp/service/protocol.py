"""The protocol of a service: its requests as dataclasses, and the one codec for them.

Each request is a dataclass: its fields are what it says, `verb` is its name on the wire, and
`answer` the name of the one value that its response carries. `docs/service.md` describes the
same for clients in any language; on the wire everything is JSON. A request is handled by the
method of `ServiceWorker` that has the name of its verb, or of `Coordinator`, where worker 0
alone decides. So a new verb is a dataclass here, in `Request`, and one handler.

By itself, so that a client need not import what a worker is.
"""

from __future__ import annotations

import hmac
import json
import types
import typing
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from pointstamp.errors import UsageError

PROTOCOL = 2
"""The version, which `describe` gives."""

NEVER = (1 << 62) - 1
"""An epoch that is complete when all are."""

TICK_S = 0.5
"""How long a worker is asked to wait at a time; in between we look whether all are there."""

MAX_WAIT_S = 5.0
"""The longest that a request waits for an epoch; a client that wants more asks again."""


@dataclass(frozen=True)
class Status:
    """How far a service is, as one of its workers knows it.

    Attributes
    ----------
    inputs : dict of str to int or None
        The epoch that each input is at; None for one that is closed.
    outputs : dict of str to int or None
        The first epoch of each output that is not complete; None when all are.
    discarded : dict of str to int
        The last epoch of each output that is discarded; -1 for none.
    end : int
        Where a reader is that has read all, once all inputs are closed. With a checkpoint that
        is an epoch which a service that begins again goes on with; else there is no more.
    """

    inputs: dict[str, int | None]
    outputs: dict[str, int | None]
    discarded: dict[str, int]
    end: int = NEVER

    def is_complete(self, output: str | None, epoch: int) -> bool:
        """Whether an output, or every one for None, is complete up to `epoch`."""
        frontiers = self.outputs.values() if output is None else [self.outputs[output]]
        return all(frontier is None or epoch < frontier for frontier in frontiers)


@dataclass(frozen=True)
class StagingHandle:
    """What was staged, by which attempt, and at which worker it lies; handed back to commit it."""

    input: str
    epoch: int
    attempt: str
    worker: int
    rows: int
    stored: dict[str, Any] | None = None
    """Where the checkpoint has it; None without one."""
    signature: str = ""
    """By which worker 0 knows that a worker of this service has made it."""

    def signed(self, secret: bytes) -> StagingHandle:
        """The same, with the signature that follows from the secret.

        >>> handle = StagingHandle("edges", 3, "a", 0, 10).signed(b"x")
        >>> handle.is_genuine(b"x"), replace(handle, epoch=4).is_genuine(b"x")
        (True, False)
        """
        body = json.dumps(self.to_json() | {"signature": ""}, sort_keys=True).encode()
        return replace(self, signature=hmac.digest(secret, body, "sha256").hex())

    def is_genuine(self, secret: bytes) -> bool:
        """Whether its signature follows from the secret."""
        return hmac.compare_digest(self.signature.encode(), self.signed(secret).signature.encode())

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire.

        >>> handle = StagingHandle("edges", 3, "a", 0, 10)
        >>> StagingHandle.from_json(handle.to_json()) == handle
        True
        """
        return asdict(self)

    @classmethod
    def from_json(cls, body: Any) -> StagingHandle:
        """The handle that `to_json` wrote.

        Raises
        ------
        UsageError
            If it is none.
        """
        try:
            return cls(
                str(body["input"]),
                int(body["epoch"]),
                str(body["attempt"]),
                int(body["worker"]),
                int(body["rows"]),
                body["stored"],
                str(body["signature"]),
            )
        except (TypeError, KeyError, ValueError) as cause:
            raise UsageError(
                f"{body!r} is no staging handle: hand back, unchanged, what staging gave"
            ) from cause


Answer = TypeVar("Answer")
Kind = TypeVar("Kind", bound="Verb[Any]")


class Verb(Generic[Answer]):
    """A request whose handler returns an `Answer`."""

    verb: ClassVar[str]
    summary: ClassVar[str]
    answer: ClassVar[str | None] = None
    """The name of the value in the response; None if it is nothing, or an object by itself."""
    of_leader: ClassVar[bool] = True
    """Whether worker 0 alone takes it."""


@dataclass(frozen=True)
class Describe(Verb[dict[str, Any]]):
    """The workers, inputs and outputs."""

    verb, summary, of_leader = "describe", "the workers, inputs and outputs", False


@dataclass(frozen=True)
class GetStatus(Verb[Status]):
    """Where inputs and outputs are."""

    verb, summary, of_leader = "status", "where inputs and outputs are", False


@dataclass(frozen=True)
class AwaitEpoch(Verb[bool]):
    """Wait until an epoch is complete at an output, or at all for None; whether it is."""

    verb, summary, of_leader = "probe", "wait for an epoch to be complete", False
    answer = "complete"
    epoch: int
    output: str | None = None
    wait_s: float = 0.0


@dataclass(frozen=True)
class GetPosition(Verb[int | None]):
    """The first epoch of an input that may still be committed; None if it is closed."""

    verb, summary = "position", "the first epoch of an input that may be committed"
    answer = "epoch"
    input: str


@dataclass(frozen=True)
class Commit(Verb[bool]):
    """Admit the attempts at `epoch`, and go on to `until`, or close; whether this did it."""

    verb, summary = "commit", "admit what was staged, once"
    answer = "committed"
    input: str
    epoch: int
    attempts: tuple[StagingHandle, ...] = ()
    until: int | None = None
    """The epoch that the input goes on to; the one after for None."""
    close: bool = False


@dataclass(frozen=True)
class AdvanceInput(Verb[bool]):
    """Go on to an epoch, with nothing more at those before."""

    verb, summary = "advance", "go on to an epoch, with nothing more at those before"
    answer = "committed"
    input: str
    epoch: int


@dataclass(frozen=True)
class Abort(Verb[None]):
    """Drop what is staged, except what a commit has named; again is no error."""

    verb, summary = "abort", "drop what was staged"
    attempts: tuple[StagingHandle, ...] = ()


@dataclass(frozen=True)
class AwaitCompletion(Verb[bool]):
    """Wait until an epoch is as complete as inputs that are behind it allow."""

    verb, summary = "await_completion", "wait for an epoch, as far as other inputs allow"
    answer = "complete"
    epoch: int
    wait_s: float = 0.0


@dataclass(frozen=True)
class Discard(Verb[None]):
    """Have all workers discard an output's epochs up to this one, which is complete."""

    verb, summary = "discard", "have an output's epochs discarded"
    output: str
    upto: int


@dataclass(frozen=True)
class RequestSnapshot(Verb[dict[str, int | None]]):
    """The epochs of the last snapshot that is there, and of the next, which may be had soon."""

    verb, summary = "snapshot", "the epochs of the last snapshot, and of the next"
    soon: bool = False


@dataclass(frozen=True)
class AwaitSnapshot(Verb[bool]):
    """Wait until a snapshot of an epoch, or of a later one, is there; whether it is."""

    verb, summary = "await_snapshot", "wait for a snapshot to be there"
    answer = "committed"
    epoch: int
    wait_s: float = 0.0


@dataclass(frozen=True)
class Finish(Verb[None]):
    """Commit no more snapshots: what closes from here on, goes on in the service's next life."""

    verb, summary = "finish", "commit no more snapshots, as the inputs will be closed"


@dataclass(frozen=True)
class Stop(Verb[None]):
    """Have all workers end, as they are: `finish`, close the inputs before, and wait."""

    verb, summary = "stop", "end: finish and close the inputs before"


Request = (
    Describe
    | GetStatus
    | AwaitEpoch
    | GetPosition
    | Commit
    | AdvanceInput
    | Abort
    | AwaitCompletion
    | Discard
    | RequestSnapshot
    | AwaitSnapshot
    | Finish
    | Stop
)

VERBS: dict[str, type[Verb[Any]]] = {each.verb: each for each in typing.get_args(Request)}


@dataclass(frozen=True)
class StageBatches(Verb[StagingHandle]):
    """What the descriptor of DoPut says; the batches follow."""

    verb, summary, of_leader = "stage", "stage batches", False
    input: str
    epoch: int
    attempt: str


@dataclass(frozen=True)
class ReadEpochs(Verb[None]):
    """What the ticket of DoGet says: the epochs in (after, upto] of an output."""

    verb, summary, of_leader = "read", "read complete epochs", False
    output: str
    after: int | None = None
    """None for all that is not discarded."""
    upto: int | None = None
    """None for the last that is complete now."""
    wait_s: float = 0.0


# The codec.

_HINTS = {
    kind.verb: typing.get_type_hints(kind)
    for kind in (*typing.get_args(Request), StageBatches, ReadEpochs)
}


def encode(request: Verb[Any]) -> bytes:
    """The body of a request: its fields that are not as by default.

    >>> encode(AwaitEpoch(7, output="n"))
    b'{"epoch": 7, "output": "n"}'
    """
    body = {
        each.name: getattr(request, each.name)
        for each in fields(request)  # type: ignore[arg-type]  # each verb is a dataclass
        if getattr(request, each.name) != each.default
    }
    return json.dumps(body, default=_plain).encode()


def decode(kind: type[Kind], body: bytes | None) -> Kind:
    """The request of a kind that `encode`, or a client in another language, has written.

    Raises
    ------
    UsageError
        If a field is missing, or of another type.

    >>> decode(AwaitEpoch, b'{"epoch": 7}')
    AwaitEpoch(epoch=7, output=None, wait_s=0.0)
    """
    given = parsed(body)
    hints = _HINTS[kind.verb]
    said: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]  # each verb is a dataclass
        if each.name in given and not (given[each.name] is None and each.default is None):
            said[each.name] = _checked(each.name, given[each.name], hints[each.name])
        elif each.default is MISSING:
            raise UsageError(f"{each.name!r} should be {_words(hints[each.name])}, and is missing")
    return kind(**said)


def encode_answer(kind: type[Verb[Answer]], answer: Answer) -> bytes:
    """The response to a request of a kind."""
    if kind.answer is not None:
        return json.dumps({kind.answer: answer}).encode()
    return json.dumps({} if answer is None else answer, default=asdict).encode()


def decode_answer(kind: type[Verb[Answer]], body: bytes) -> Answer:
    """What `encode_answer` was given."""
    found: Any = json.loads(body)
    if kind.answer is not None:
        found = found[kind.answer]
    elif kind is GetStatus:
        found = Status(**found)
    elif not found:
        found = None
    answer: Answer = found
    return answer


def parsed(body: bytes | None) -> dict[str, Any]:
    """A body as an object of JSON."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as cause:
        raise UsageError(f"what is asked is no JSON: {cause}") from cause
    if not isinstance(found, dict):
        raise UsageError(f"what is asked should be a JSON object, and is {found!r}")
    return found


def _plain(value: Any) -> Any:
    return value.to_json()


_WORDS: dict[Any, str] = {
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    float: "a number of seconds",
    tuple[StagingHandle, ...]: "a list of staging handles",
}


def _words(hint: Any) -> str:
    return _WORDS[_without_none(hint)]


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return next(each for each in typing.get_args(hint) if each is not type(None))
    return hint


def _checked(name: str, given: Any, hint: Any) -> Any:
    wanted = _without_none(hint)
    if wanted is float:
        if type(given) in (int, float) and given >= 0:
            return min(float(given), MAX_WAIT_S)
    elif wanted in (int, str, bool):
        if type(given) is wanted:
            return given
    elif isinstance(given, list):
        return tuple(map(StagingHandle.from_json, given))
    raise UsageError(f"{name!r} should be {_words(hint)}, and is {given!r}")
