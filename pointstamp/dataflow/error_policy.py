"""`Failed`: a record on which an operator's code failed, as a record of its own.

With `on_error="route"` an operator sends these on a second stream. They travel as
any record does, to other workers too, so they can always be pickled: an error or a
record that does not come back from that arrives as a stand-in that has its text.

An error keeps the frames that it passed through, and those keep all that was in
them, capabilities too: whoever collects errors would hold back time. So an error is
routed without its frames, with a note that says where it was raised.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pointstamp.communication.failure import chain, revived, survivor
from pointstamp.errors import BuildError, CarriedError

T = TypeVar("T")

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200

OnError = Literal["raise", "route", "drop"]
"""What happens when an operator's code raises: stop everything, send the record and the
error on a second stream, or leave the record out and count it (see `Worker.dropped`)."""


class Failed(NamedTuple, Generic[T]):
    """A record, the name of the operator whose code failed on it, and the error.

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
        stand_in = Unpicklable(type(record).__name__, _text(_SHORT.repr, record))
        text = f"{type(error).__name__}: {_text(str, error)}".removesuffix(": ")
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


def detached(error: Exception) -> Exception:
    """`error` without its frames, noting where it and those before it were raised."""
    for passed in chain(error):
        frames = passed.__traceback__
        if frames is not None:
            _note(passed, _where(frames))
            passed.__traceback__ = None
    return error


def check_on_error(on_error: Any, operator: str) -> None:
    """Refuse what is none of the three, when the dataflow is built."""
    if on_error not in ("raise", "route", "drop"):
        raise BuildError(
            f"operator {operator!r}: on_error is one of 'raise', 'route' and 'drop', "
            f"not {on_error!r}"
        )


def _where(frames: TracebackType) -> str:
    while frames.tb_next is not None:
        frames = frames.tb_next
    code = frames.tb_frame.f_code
    return f"raised at {code.co_filename}:{frames.tb_lineno}, in {code.co_name}"


def _note(error: BaseException, note: str) -> None:
    # An error may be one object that is raised many times.
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _text(said: Callable[[Any], str], value: Any) -> str:
    """`repr` or `str`, also where the user's own code for that fails."""
    try:
        return said(value)
    except Exception as error:  # noqa: BLE001  (user code runs here)
        return f"(its text failed: {type(error).__name__})"
