"""An input that is made apart, and feeds any number of dataflows.

What is sent goes to all of them, and they all see time pass together: one stream of
changes under several queries, for one, of which some come later than others.

Source: timely-dataflow `dataflow/operators/core/input.rs`, whose handle can be
registered more than once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import BuildError, InputError
from pointstamp.operators.sources import InputHandle
from pointstamp.progress.timestamp import Int, Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.scope import Scope
    from pointstamp.operators.stream import Stream


class SharedInput:
    """Drives inputs of several dataflows as a single input.

    Every worker makes its own, gives it to the same dataflows, and advances or closes
    it, as with the handle of `Scope.new_input`. A dataflow that is built later hears
    nothing of what was sent before: its stream begins at the time that the input has
    by then. One that was dropped hears nothing more, and is no error; with none, what
    is sent goes nowhere.

    Parameters
    ----------
    timestamp : Timestamp
        The type of its times, which is that of all scopes it is given to.
    name : str
        For messages to people.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def main(worker):
    ...     seen = []
    ...     input = ps.SharedInput()
    ...     for sign in (1, -1):
    ...         with worker.dataflow() as scope:
    ...             numbers = input.to_stream(scope)
    ...             numbers.inspect(lambda x, sign=sign: seen.append(sign * x))
    ...     input.send(3)
    ...     input.close()
    ...     worker.run()
    ...     return seen
    >>> ps.execute(main)
    [[3, -3]]
    """

    def __init__(self, timestamp: Timestamp = Int, name: str = "Input") -> None:
        given: Any = timestamp  # of any type, until it is looked at
        if isinstance(given, type) or not hasattr(given, "minimum"):
            raise BuildError(
                f"input {name!r} cannot have times of {given!r}, which is no type of times: give "
                "one such as ps.Int"
            )
        self.name = name
        self.timestamp = timestamp
        self.time: Any = timestamp.minimum
        """The time at which records are sent now."""
        self.is_closed = False
        self._handles: list[InputHandle] = []

    def to_stream(self, scope: Scope) -> Stream[Any]:
        """What is sent from now on, as a stream of `scope`.

        Raises
        ------
        BuildError
            If the scope's times are of another type.
        InputError
            If the input is closed.
        """
        self._check("become a stream")
        if scope.timestamp != self.timestamp:
            raise BuildError(
                f"input {self.name!r} has times of {self.timestamp!r}, and scope {scope.name!r} "
                f"has times of {scope.timestamp!r}; make an input for each type"
            )
        handle, stream = scope.new_input(self.name)
        handle.advance_to(self.time)
        self._forget_dropped()
        self._handles.append(handle)
        return stream

    def send(self, record: Any) -> None:
        """Send one record at the current time, to all dataflows."""
        self._check("send")
        for handle in self._handles:
            if not handle.is_dropped:
                handle.send(record)

    def send_batch(self, batch: Any) -> None:
        """Send a container at the current time, to all; it must not change afterwards."""
        self._check("send")
        for handle in self._handles:
            if not handle.is_dropped:
                handle.send_batch(batch)

    def advance_to(self, time: Any) -> None:
        """Promise to send at `time` or later only, in all dataflows.

        Raises
        ------
        InputError
            If `time` is not at or after the current time.
        """
        self._check("advance")
        time = self.timestamp.check(time)
        if not self.timestamp.less_equal(self.time, time):
            raise InputError(f"input {self.name!r} is at {self.time} and cannot go back to {time}")
        self.time = time
        self._forget_dropped()
        for handle in self._handles:
            handle.advance_to(time)

    def close(self) -> None:
        """Promise to send nothing more. Closing twice is closing once."""
        self.is_closed = True
        for handle in self._handles:
            handle.close()
        self._handles.clear()

    def __enter__(self) -> SharedInput:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _forget_dropped(self) -> None:
        self._handles = [handle for handle in self._handles if not handle.is_dropped]

    def _check(self, what: str) -> None:
        if self.is_closed:
            raise InputError(f"input {self.name!r} is closed and cannot {what}")

    def __repr__(self) -> str:
        return f"SharedInput({self.name!r}, {'closed' if self.is_closed else self.time!r})"
