"""The protocol of a service: its requests as dataclasses, and the one codec for them.

Each request is a dataclass: its fields are what it says, and its bases name what it is on the
wire, and what its response carries. `docs/service.md` describes the same for clients in any
language; on the wire everything is JSON. A request is handled by the method of `ServiceWorker`
that has the name of its verb, or of `Coordinator`, where worker 0 alone decides. So a new verb
is a dataclass here, and one handler.

By itself, so that a client need not import what a worker is.
"""

from __future__ import annotations

import hmac
import json
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, dataclass_transform

from pointstamp.checkpoint.staged import Staged
from pointstamp.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

PROTOCOL = 2
"""The version, which `describe` gives."""

NEVER = (1 << 62) - 1
"""An epoch that is complete when all are."""

TICK_S = 0.5
"""How long a worker is asked to wait at a time; in between we look whether all are there."""

MAX_WAIT_S = 5.0
"""The longest that a request waits for an epoch; a client that wants more asks again."""


def token_of(secret: bytes) -> str:
    """What clients present to the Flight servers: it follows from the secret, not the reverse.

    >>> len(token_of(b"a secret of a service"))
    64
    """
    return hmac.digest(secret, b"pointstamp flight token", "sha256").hex()


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

    def last_complete(self, output: str) -> int:
        """The last epoch that is complete at an output; `NEVER` when all are."""
        frontier = self.outputs[output]
        return NEVER if frontier is None else frontier - 1

    def last_committed(self) -> int:
        """The last epoch to which all inputs that are not closed have been committed.

        >>> Status({"words": None, "shops": 3}, {"counts": 3}, {"counts": -1}).last_committed()
        2
        """
        return min((time - 1 for time in self.inputs.values() if time is not None), default=NEVER)

    def __str__(self) -> str:
        """What holds epochs back, in words.

        >>> print(Status({"words": None}, {"counts": 3}, {"counts": -1}))
        input 'words' is closed, output 'counts' is complete before epoch 3
        """
        inputs = (
            f"input {name!r} is {'closed' if time is None else f'at epoch {time}'}"
            for name, time in self.inputs.items()
        )
        outputs = (
            f"output {name!r} is complete {'for ever' if time is None else f'before epoch {time}'}"
            for name, time in self.outputs.items()
        )
        return ", ".join([*inputs, *outputs])


StagingKey = tuple[str, int, str, int]


@dataclass(frozen=True)
class StagingHandle:
    """What was staged, by which attempt, and at which worker it lies; handed back to commit it."""

    input: str
    epoch: int
    attempt: str
    worker: int
    rows: int
    stored: Staged | None = None
    """Where the checkpoint has it; None without one."""
    signature: str = ""
    """By which worker 0 knows that a worker of this service has made it."""

    def signed(self, secret: bytes) -> StagingHandle:
        """The same, with the signature that follows from the secret.

        >>> handle = StagingHandle("edges", 3, "a", 0, 10).signed(b"x")
        >>> handle.is_genuine(b"x"), replace(handle, epoch=4).is_genuine(b"x")
        (True, False)
        """
        body = json.dumps(asdict(self) | {"signature": ""}, sort_keys=True).encode()
        return replace(self, signature=hmac.digest(secret, body, "sha256").hex())

    def is_genuine(self, secret: bytes) -> bool:
        """Whether its signature follows from the secret."""
        return hmac.compare_digest(self.signature.encode(), self.signed(secret).signature.encode())

    @property
    def key(self) -> StagingKey:
        """By which one is known from all others."""
        return self.input, self.epoch, self.attempt, self.worker


Answer = TypeVar("Answer")
Kind = TypeVar("Kind")

VERBS: dict[str, type[Verb[Any]]] = {}
"""By their names on the wire."""


@dataclass_transform(frozen_default=True)
class Verb(Generic[Answer]):
    """A request that is an action of Flight, whose handler returns an `Answer`; a dataclass.

    Its name on the wire stands behind its bases, with the name of the one value in the
    response: without, there is none, or the response is an object by itself.
    """

    verb: ClassVar[str]
    answer: ClassVar[str | None]
    of_leader: ClassVar[bool]
    """Whether worker 0 alone takes it."""

    def __init_subclass__(
        cls, verb: str, answer: str | None = None, *, of_leader: bool = True
    ) -> None:
        super().__init_subclass__()
        cls.verb, cls.answer, cls.of_leader = verb, answer, of_leader
        VERBS[verb] = dataclass(frozen=True)(cls)


class Describe(Verb[dict[str, Any]], verb="describe", of_leader=False):
    """The workers, inputs and outputs."""


class GetStatus(Verb[Status], verb="status", of_leader=False):
    """Where inputs and outputs are."""


class AwaitEpoch(Verb[bool], verb="probe", answer="complete", of_leader=False):
    """Wait until an epoch is complete at an output, or at all for None; whether it is."""

    epoch: int
    output: str | None = None
    wait_s: float = 0.0


class AwaitStaged(Verb[int], verb="await_staged", answer="bytes", of_leader=False):
    """Wait until fewer bytes of an input are staged at this worker; how many are.

    That is what was sent and has not entered the dataflow: for it is not committed, or there is
    no room.
    """

    input: str
    below: int = 0
    wait_s: float = 0.0


class GetPosition(Verb[int | None], verb="position", answer="epoch"):
    """The first epoch of an input that may still be committed; None if it is closed."""

    input: str


class Commit(Verb[bool], verb="commit", answer="committed"):
    """Admit the attempts at `epoch`, and go on to `until`, or close; whether this did it."""

    input: str
    epoch: int
    attempts: tuple[StagingHandle, ...] = ()
    until: int | None = None
    """The epoch that the input goes on to; the one after for None."""
    close: bool = False
    query: str | None = None
    """The id of a query whose batch it is: one that cannot have been admitted before is an error
    where the input is past the epoch, and not the answer False."""

    @property
    def next_epoch(self) -> int | None:
        """The epoch that the input goes on to; None if it closes."""
        return None if self.close else self.epoch + 1 if self.until is None else self.until


class AdvanceInput(Verb[bool], verb="advance", answer="committed"):
    """Go on to an epoch, with nothing more at those before."""

    input: str
    epoch: int


class CommitEpoch(Verb[int | None], verb="commit_epoch", answer="epoch"):
    """Admit attempts to collections, all at the next epoch; which one that is, null if closed.

    The collections of a service have one sequence of epochs, numbered here: what is staged for
    one may be committed at any later epoch.
    """

    commit: str
    """A name of its own: repeated, it is the epoch that it was, and nothing changes."""
    attempts: tuple[StagingHandle, ...] = ()
    batch: int | None = None
    """With it, `commit` is the name of a feed, and this is the number of its batch: one that is not
    greater than that of the feed's last commit is a repetition, and the epoch of that."""
    close: bool = False
    """Have the collections closed behind it."""


class GetEpochTimes(Verb[dict[str, int]], verb="epoch_times", answer="times"):
    """When each epoch in [first, upto] of the collections was committed, in us since 1970.

    By epoch, as a text. Those that all outputs have discarded are left out, but the last of them.
    """

    first: int
    upto: int


class GetBatch(Verb[int | None], verb="batch", answer="batch"):
    """The number of the last batch that a feed of collections has committed; None for none."""

    commit: str


class Abort(Verb[None], verb="abort"):
    """Drop what is staged, except what a commit has named; again is no error."""

    attempts: tuple[StagingHandle, ...] = ()
    job: str = ""
    """With it all attempts whose names begin so, those that are still to come, too."""


class AwaitCompletion(Verb[bool], verb="await_completion", answer="complete"):
    """Wait until an epoch is as complete as inputs that are behind it allow."""

    epoch: int
    wait_s: float = 0.0


class Discard(Verb[None], verb="discard"):
    """Have all workers discard an output's epochs up to this one, which is complete."""

    output: str
    upto: int


class RequestSnapshot(Verb[dict[str, int | None]], verb="snapshot"):
    """The epochs of the last snapshot that is there, and of the next, which may be had soon."""

    soon: bool = False


class AwaitSnapshot(Verb[bool], verb="await_snapshot", answer="committed"):
    """Wait until a snapshot of an epoch, or of a later one, is there; whether it is."""

    epoch: int
    wait_s: float = 0.0


class Finish(Verb[None], verb="finish"):
    """Commit no more snapshots: what closes from here on, goes on in the service's next life."""


class Stop(Verb[None], verb="stop"):
    """Have all workers end, as they are: `finish`, close the inputs before, and wait."""


@dataclass(frozen=True)
class StageBatches:
    """What the descriptor of DoPut says; the batches follow."""

    input: str
    epoch: int
    attempt: str


@dataclass(frozen=True)
class ReadEpochs:
    """What the ticket of DoGet says: the epochs in (after, upto] of an output."""

    output: str
    after: int | None = None
    """None for all that is not discarded."""
    upto: int | None = None
    """None for the last that is complete now."""
    wait_s: float = 0.0
    form: str = "changes"
    """Of a collection, "snapshot" is what all changes up to `upto` add up to; `after` is not used.
    "all" is that up to what is discarded, as of that epoch, and the changes since."""


class WorkerHandle(Protocol):
    """What sends requests to one worker: itself, or a client of its Flight server."""

    @property
    def address(self) -> str | None:
        """Of the worker's Flight server; None if it is in this process."""

    def ask(self, request: Verb[Answer]) -> Answer:
        """The answer to a request."""

    def stage(self, request: StageBatches, batches: Iterable[Any]) -> StagingHandle:
        """Stage `batches`, all of one schema, for a commit."""

    def read(self, request: ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of what the worker has of complete epochs."""


# The codec.


def encode(value: Any) -> bytes:
    """The body of a request or of an answer, or a staging handle.

    >>> encode(AwaitEpoch(7, output="n"))
    b'{"epoch": 7, "output": "n", "wait_s": 0.0}'
    """
    return json.dumps(value, default=vars).encode()


def decode(kind: type[Kind], body: bytes | None) -> Kind:
    """What `encode`, or a client in another language, has written.

    Raises
    ------
    UsageError
        If a field is missing, or of another type.

    >>> decode(AwaitEpoch, b'{"epoch": 7}')
    AwaitEpoch(epoch=7, output=None, wait_s=0.0)
    """
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError) as cause:
        raise UsageError(f"what is asked is no JSON: {cause}") from cause
    if not isinstance(given, dict):
        raise UsageError(f"what is asked should be a JSON object, and is {given!r}")
    return _made(kind, given)


def encode_answer(kind: type[Verb[Answer]], answer: Answer) -> bytes:
    """The response to a request of a kind."""
    if kind.answer is not None:
        return encode({kind.answer: answer})
    return encode({} if answer is None else answer)


def decode_answer(kind: type[Verb[Answer]], body: bytes) -> Answer:
    """What `encode_answer` was given."""
    found: Any = json.loads(body)
    if kind.answer is not None:
        found = found[kind.answer]
    elif kind is GetStatus:
        found = Status(**found)
    return typing.cast(Answer, None if found == {} else found)


_hints: Callable[[Any], dict[str, Any]] = cache(typing.get_type_hints)

_WORDS: dict[Any, str] = {
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    float: "a number of seconds",
    Staged: "what staging gave",
    tuple[StagingHandle, ...]: "a list of staging handles",
}


def _made(kind: type[Kind], given: dict[str, Any]) -> Kind:
    """A dataclass of an object of JSON."""
    hints, values = _hints(kind), {}
    for each in fields(kind):  # type: ignore[arg-type]  # each is a dataclass
        value, wanted = given.get(each.name), hints[each.name]
        if isinstance(wanted, types.UnionType):
            wanted = typing.get_args(wanted)[0]
        if each.name in given and not (value is None and each.default is None):
            values[each.name] = _checked(each.name, value, wanted)
        elif each.default is MISSING:
            raise UsageError(f"{each.name!r} should be {_WORDS[wanted]}, and is missing")
    return kind(**values)


def _checked(name: str, given: Any, wanted: Any) -> Any:
    if wanted is float and type(given) in (int, float) and given >= 0:
        return min(float(given), MAX_WAIT_S)
    if type(given) is wanted and wanted is not float:
        return given
    if isinstance(given, dict) and wanted is Staged:
        return _made(Staged, given)
    if isinstance(given, list) and typing.get_origin(wanted) is tuple:
        return tuple(map(_handle, given))
    raise UsageError(f"{name!r} should be {_WORDS[wanted]}, and is {given!r}")


def _handle(given: Any) -> StagingHandle:
    try:
        return _made(StagingHandle, given if isinstance(given, dict) else {})
    except UsageError as cause:
        raise UsageError(
            f"{given!r} is no staging handle: hand back, unchanged, what staging gave"
        ) from cause
