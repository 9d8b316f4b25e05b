"""Why a worker stopped, and which of several reasons was the first.

When one worker fails its peers fail too, because it is gone. Everything needed to
distinguish the cause from its consequences is here, as plain values: what a worker sends
its peers (`Notice`), what it reports to its driver (`Failure`), and the choice
of the one that the caller gets to see (`first_cause`).

Rules:

- A failure is *secondary* when its exception, or one that it was raised from or
  while handling, says that a peer failed or was lost.
- The first cause is the earliest primary failure; a secondary one is named only
  where nothing else is known.
- A notice that is passed on keeps the worker it came from.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication.framing import Buffer
from pointstamp.errors import (
    OperatorError,
    PeerFailedError,
    PeerLostError,
    SerializationError,
    WorkerError,
)

NOTICE_CHARACTERS = 8_000
"""What is sent of a cause's text; a longer one would delay the notice."""


@dataclass(frozen=True)
class Notice:
    """What a worker that fails sends its peers: which worker failed first, and of what."""

    worker: int
    lost: bool
    text: str

    def as_error(self) -> PeerFailedError | PeerLostError:
        """What the peers raise."""
        kind = PeerLostError if self.lost else PeerFailedError
        return kind(self.text, self.worker)


def notice(worker: int, cause: BaseException | None) -> Notice:
    """What `worker` sends its peers when it fails of `cause`.

    >>> notice(1, ValueError("seven"))
    Notice(worker=1, lost=False, text='worker 1 failed: ValueError: seven')
    >>> notice(2, notice(1, ValueError("seven")).as_error()).worker
    1
    """
    if isinstance(cause, PeerFailedError | PeerLostError) and cause.peer is not None:
        return Notice(cause.peer, isinstance(cause, PeerLostError), str(cause))
    if cause is None:
        return Notice(worker, False, f"worker {worker} gave up")
    return Notice(worker, False, f"worker {worker} {_verb(cause)}"[:NOTICE_CHARACTERS])


@dataclass(frozen=True)
class Failure:
    """How one worker ended without a result.

    Attributes
    ----------
    at : float
        When, in seconds of the machine's monotonic clock.
    what : str
        What happened, in words that follow "worker 3".
    original : str
        Its traceback, where it had the time to leave one.
    cause : BaseException or None
        The exception, where it could be carried here.
    secondary : bool
        Whether it is a consequence of the failure of a peer.
    """

    worker: int
    at: float
    what: str
    operator: str | None = None
    time: object = None
    original: str = ""
    cause: BaseException | None = None
    secondary: bool = False

    def as_error(self) -> WorkerError | SerializationError:
        """What the caller of the computation gets; raise it `from failure.cause`."""
        if isinstance(self.cause, UncarriedResult):
            return SerializationError(str(self.cause))
        error = WorkerError(
            f"worker {self.worker} {self.what}",
            self.worker,
            self.operator,
            self.time,
            self.original,
        )
        if self.original and (self.cause is None or self.cause.__traceback__ is None):
            error.add_note(f"\nThe traceback of worker {self.worker}:\n\n{self.original}")
        return error


class UncarriedResult(SerializationError):
    """The result of a worker cannot be pickled; the worker itself did not fail."""


def failure(worker: int, exception: BaseException, at: float) -> Failure:
    """How `worker` failed of `exception`; an operator's error gives its name and time."""
    operator, time = None, None
    if isinstance(exception, OperatorError):
        operator, time = exception.operator, exception.time
    return Failure(
        worker,
        at,
        _verb(exception),
        operator,
        time,
        "".join(traceback.format_exception(exception)),
        _root(exception),
        any(isinstance(e, PeerFailedError | PeerLostError) for e in chain(exception)),
    )


def death(worker: int, status: int, at: float) -> Failure:
    """How `worker` ended whose process exited with `status`, without a word.

    `status` is as `subprocess` gives it: negative for a signal.

    >>> death(1, -9, 0.0).what, death(1, 3, 0.0).what
    ('was killed by SIGKILL', 'exited with status 3 before it had a result')
    """
    if status >= 0:
        return Failure(worker, at, f"exited with status {status} before it had a result")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return Failure(worker, at, f"was killed by {name}")


def first_cause(failures: Iterable[Failure]) -> Failure:
    """The failure that the others follow from: the earliest that is not secondary."""
    return min(failures, key=lambda failure: (failure.secondary, failure.at))


def dump(failure: Failure) -> bytes:
    """`failure` as bytes that load anywhere, with its time and cause where they do.

    User-defined times and exceptions need not survive pickling, least of all in
    another process; what does not is left out, and its text is there all the same.
    """
    bare = replace(failure, time=repr(failure.time), cause=None)
    return pickle.dumps((bare, survivor(failure.time), survivor(failure.cause)))


def load(data: Buffer) -> Failure:
    """The failure that `dump` made `data` of, without what does not load here."""
    bare, time, cause = pickle.loads(data)
    found: Failure = bare
    return replace(found, time=revived(time, found.time), cause=revived(cause))


def survivor(value: object) -> bytes | None:
    """`value` pickled, or None if it does not come back from that."""
    try:
        pickled: bytes = cloudpickle.dumps(value)
        cloudpickle.loads(pickled)
    except Exception:  # noqa: BLE001  (user code runs here)
        return None
    return pickled


def revived(pickled: bytes | None, otherwise: Any = None) -> Any:
    """What `survivor` pickled, or `otherwise` if it does not load here."""
    try:
        return otherwise if pickled is None else cloudpickle.loads(pickled)
    except Exception:  # noqa: BLE001  (user code runs here; the text is at hand)
        return otherwise


def _verb(exception: BaseException) -> str:
    """What happened, in words that follow "worker 3"."""
    if isinstance(exception, SystemExit):
        return f"called sys.exit({exception.code!r}) before it had a result"
    return f"failed: {_said(exception)}"


def _said(exception: BaseException) -> str:
    """Type and message; an operator's error as it words itself, with its cause's."""
    if isinstance(exception, OperatorError):
        cause = exception.__cause__
        said = str(exception)
        return said if cause is None or _text(cause) in said else f"{said}: {_said(cause)}"
    return f"{type(exception).__name__}: {_text(exception)}".removesuffix(": ")


def _text(exception: BaseException) -> str:
    """`str(exception)`, also where the user's own code for that fails."""
    try:
        return str(exception)
    except Exception as error:  # noqa: BLE001  (user code runs here)
        return f"(its text failed: {type(error).__name__})"


def _root(exception: BaseException) -> BaseException:
    """The user's exception, where an operator's error stands before it."""
    if isinstance(exception, OperatorError) and exception.__cause__ is not None:
        return exception.__cause__
    return exception


def chain(exception: BaseException) -> Iterator[BaseException]:
    """`exception`, those it was raised from, or while handling, and those it groups."""
    waiting, seen = [exception], set()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [e for e in (found.__cause__, found.__context__) if e is not None]
        if isinstance(found, BaseExceptionGroup):
            waiting += found.exceptions
