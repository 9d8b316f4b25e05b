"""Error policies: what an operator does where its user's code fails on a record.

`"raise"` stops everything, `"route"` sends the record with its error, as a `Failed`, on one
more stream, and `"drop"` leaves the record out and counts it. An operator makes one
`ErrorPolicy` when it is built, and its loop over records asks that:

    policy = ErrorPolicy(stream.scope.environment, name, on_error)
    attempt = policy.guard(function)            # with "raise" it is `function` itself
    results = [y for x in records if (y := attempt(x)) is not FAILED]
    policy.send(outputs, time)                  # what failed, at the last output, if routed

`policy.new_output(builder)` makes the output of what is routed, if there is one. Code that is
about a record before it comes to the operator (its key, its event time) is tried by another
operator before it: `operators.validation.validated`.

Rules
-----
1. A record gives all of its results or none of them.
2. Only an `Exception` of the user's code counts. `KeyboardInterrupt` and `SystemExit`
   stop the worker, and so does what is no record's fault: columns where the operator
   takes rows, or a result that is no batch.
3. Code that is called with a whole batch fails for the batch; an expression is such code.
4. A failure leaves at the time of its record.

Failures travel as any record does, to other workers too, so they can always be pickled: an
error or a record that does not come back from that arrives as a stand-in that has its text.

An error keeps the frames that it passed through, and those keep all that was in
them, capabilities too: a collection of errors would hold back time. So an error is
routed without its frames, with a note that says where it was raised.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from pointstamp.communication.failure import chain, revived, survivor
from pointstamp.dataflow.several_streams import several
from pointstamp.errors import BuildError, CarriedError

if TYPE_CHECKING:
    from pointstamp.dataflow.capability import Capability, InputCapability
    from pointstamp.dataflow.environment import Environment
    from pointstamp.dataflow.handles import Output
    from pointstamp.dataflow.operator import OperatorBuilder

T = TypeVar("T")
S = TypeVar("S")

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200

OnError = Literal["raise", "route", "drop"]
"""What happens when an operator's code raises: stop everything, send the record and the
error on a second stream, or leave the record out and count it (see `Worker.dropped`)."""


class Unrouted(TypedDict, total=False):
    """What operators with an error policy take by name, in types: where failures are no stream.

    Overloads have these for their keywords, and the methods behind them say the defaults.
    """

    on_error: Literal["raise", "drop"]
    name: str


class Routed(TypedDict):
    """The same where they are one: the operator gives a stream of failures, too."""

    on_error: Literal["route"]
    name: NotRequired[str]


class Failed(NamedTuple, Generic[T]):
    """A record on which user code failed, with the operator's name and the error.

    Where the code is called with a whole batch, `record` is that batch. The error has
    no traceback; its last note says where it was raised. Between processes, what
    cannot be pickled is replaced: an error by a `CarriedError`, a record by an
    `Unpicklable`.

    >>> import pickle
    >>> failed = Failed("x", "Map", ValueError("not a number"))
    >>> pickle.loads(pickle.dumps(failed))
    Failed(record='x', operator='Map', error=ValueError('not a number'))
    >>> pickle.loads(pickle.dumps(failed._replace(record=(n for n in [1])))).record.type
    'generator'
    """

    record: T
    operator: str
    error: Exception

    def __reduce__(self) -> tuple[Callable[..., Failed[Any]], tuple[Any, ...]]:
        record, error = self.record, self.error
        stand_in = Unpicklable(type(record).__name__, safe_text(_SHORT.repr, record))
        text = f"{type(error).__name__}: {safe_text(str, error)}".removesuffix(": ")
        notes = tuple(map(str, getattr(error, "__notes__", ())))
        return _revived, (survivor(record), stand_in, self.operator, survivor(error), text, notes)


@dataclass(frozen=True)
class Unpicklable:
    """Stands for a record that could not be pickled, where it was sent to."""

    type: str
    """The name of its type."""
    text: str
    """Its `repr`, shortened."""


def _revived(
    record: bytes | None,
    stand_in: Unpicklable,
    operator: str,
    error: bytes | None,
    text: str,
    notes: tuple[str, ...],
) -> Failed[Any]:
    """What `Failed.__reduce__` took apart."""
    carried = CarriedError(text)
    for note in notes:
        carried.add_note(note)
    return Failed(revived(record, stand_in), operator, revived(error, carried))


FAILED: Any = object()
"""What a guarded function gives where it failed."""


class ErrorPolicy:
    """Raises, routes or drops what the code of one operator fails on."""

    __slots__ = ("_environment", "_failed", "_operator", "raises", "routes")

    def __init__(self, environment: Environment, operator: str, on_error: OnError) -> None:
        if on_error not in ("raise", "route", "drop"):
            raise BuildError(
                f"operator {operator!r}: on_error is one of 'raise', 'route' and 'drop', "
                f"not {on_error!r}"
            )
        self._environment = environment
        self._operator = operator
        self._failed: list[Failed[Any]] = []
        self.raises = on_error == "raise"
        """Whether errors are not caught: then there is nothing to be asked."""
        self.routes = on_error == "route"
        """Whether failures are sent, on one more output than the operator has else."""

    def guard(
        self,
        function: Callable[..., Any],
        record_of: Callable[..., Any] = lambda record: record,
        n_records: Callable[[Any], int] = lambda record: 1,
        unless: type[Exception] | tuple[()] = (),
    ) -> Callable[..., Any]:
        """`function`, which gives `FAILED` where it fails; with "raise" it is returned as it is.

        Parameters
        ----------
        record_of : callable
            What it failed on, of the arguments that it was called with; the first by default.
        n_records : callable
            How many records that is.
        unless : type, optional
            Errors of this type are no record's fault, and raised.
        """
        if self.raises:
            return function

        def attempt(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except unless:
                raise
            except Exception as error:  # noqa: BLE001  (user code: what it raises is data)
                record = record_of(*arguments)
                self.note(record, error, n_records(record))
                return FAILED

        return attempt

    def note(self, record: Any, error: Exception, n_records: int = 1) -> None:
        """The code raised `error` for `record` (a batch: of so many records)."""
        if self.routes:
            self._failed.append(Failed(record, self._operator, detached(error)))
        else:
            self._environment.drop(self._operator, n_records)

    def new_output(self, builder: OperatorBuilder[S]) -> tuple[S, ...]:
        """The stream of what fails, if it is routed: the operator's last output."""
        return (builder.new_output(initial=False),) if self.routes else ()

    def send(self, outputs: Sequence[Output], capability: Capability | InputCapability) -> None:
        """Send what failed since the last call at the last output, at this time."""
        if self._failed:
            outputs[-1].session(capability).give_many(self.take())

    def push(self, output: Output, time: Any) -> None:
        """The same for an operator that has just consumed something of `time`."""
        if self._failed:
            output.push(time, self.take())

    def take(self) -> list[Failed[Any]]:
        """What failed since the last call, to be sent."""
        failed, self._failed = self._failed, []
        return failed


def streams(results: Any, *failed: Any) -> Any:
    """What an operator gives: its results, and behind them the failures if they are routed."""
    return several((results, *failed), ["results", "failed"]) if failed else results


def detached(error: Exception) -> Exception:
    """`error` without its frames, noting where it and those before it were raised."""
    for passed in chain(error):
        frames = passed.__traceback__
        if frames is not None:
            _note(passed, _where(frames))
            passed.__traceback__ = None
    return error


def _where(frames: TracebackType) -> str:
    while frames.tb_next is not None:
        frames = frames.tb_next
    code = frames.tb_frame.f_code
    return f"raised at {code.co_filename}:{frames.tb_lineno}, in {code.co_name}"


def _note(error: BaseException, note: str) -> None:
    # An error may be one object that is raised many times.
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def safe_text(said: Callable[[Any], str], value: Any) -> str:
    """`repr` or `str`, also where the user's own code for that fails."""
    try:
        return said(value)
    except Exception as error:  # noqa: BLE001  (user code runs here)
        return f"(its text failed: {type(error).__name__})"
