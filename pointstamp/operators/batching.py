"""Batching: lists of records of at most so many, sent when full, complete, or old enough.

Records of different times are never in one list: the rest of a time leaves when the time is
complete, or when its first record has waited for the timeout.

Source: Bytewax `operators`, its `collect`. There lists are by key and know no times.
"""

from __future__ import annotations

import datetime
import math
import sys
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class BatchMethods(StreamCore[T]):
    """Batching. Methods of `Stream`."""

    def batch(
        self,
        max_size: int,
        timeout: float | datetime.timedelta | None = None,
        *,
        name: str = "Batch",
    ) -> Stream[list[T]]:
        """Group records of one time into lists of at most `max_size`, on each worker.

        A list is sent when it is full, when its time is complete, or when its first record has
        waited for `timeout`. Of columns each list is a batch.

        Parameters
        ----------
        max_size : int
            Of a list, at least 1.
        timeout : float or datetime.timedelta, optional
            Seconds; without it a list waits until its time is complete.
        name : str
            Of the operator.

        Raises
        ------
        BuildError
            If `max_size` or `timeout` is not positive.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abcde").batch(2))
        [(0, ['a', 'b']), (0, ['c', 'd']), (0, ['e'])]
        """
        if type(max_size) is not int or max_size < 1:
            raise BuildError(
                f"operator {name!r}: max_size is an integer from 1 on, not {max_size!r}"
            )
        timeout_s = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
        if timeout_s is not None and (
            isinstance(timeout_s, bool)
            or not isinstance(timeout_s, (int, float))
            or not 0 < timeout_s <= sys.float_info.max
        ):
            raise BuildError(
                f"operator {name!r}: timeout is a positive timedelta or number of seconds, not "
                f"{timeout!r}"
            )
        builder = OperatorBuilder(self.scope, name)
        builder.new_input(self, Pipeline(), Interest.IF_CAPABILITY)
        builder.declare(max_size=max_size, timeout_s=timeout_s)
        result: Stream[list[T]] = builder.new_output(initial=False)
        builder.build(lambda capabilities, info: _Batching(max_size, timeout_s, info).run)
        return result


class _Begun:
    """A list that is not full."""

    __slots__ = ("capability", "due_s", "n_records", "parts")

    def __init__(self, capability: Capability, due_s: float) -> None:
        self.capability = capability
        self.due_s = due_s
        self.parts: list[Any] = []
        self.n_records = 0


class _Batching:
    """The logic: fills one list for each time."""

    def __init__(self, max_size: int, timeout_s: float | None, info: OperatorInfo) -> None:
        self._max_size = max_size
        self._wait_s = math.inf if timeout_s is None else timeout_s
        self._info = info
        self._begun: dict[Any, _Begun] = {}
        self._rings_s = -math.inf
        """When the timer rings that is set."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        input_, output = inputs[0], outputs[0]
        for at, batch in input_:
            self._add(at, batch, output)
        now_s = self._info.environment.clock()
        frontier = input_.frontier
        for time, begun in list(self._begun.items()):
            if begun.due_s <= now_s or not frontier.less_equal(time):
                del self._begun[time]
                with begun.capability:
                    _send(output, time, [_whole(begun.parts)])
        if self._rings_s <= now_s:
            self._set_timer(now_s)

    def _set_timer(self, now_s: float) -> None:
        """For the list that was begun first: each list's own would stay when that is long sent."""
        first_s = min((begun.due_s for begun in self._begun.values()), default=math.inf)
        if first_s < math.inf:
            left_s = first_s - now_s
            self._rings_s = now_s + left_s  # not `first_s`, which it may be just before
            self._info.activate_after(left_s)

    def _add(self, at: InputCapability, batch: Any, output: Output) -> None:
        """Put a batch to the list of its time; send what is full."""
        kind = kind_of(batch)
        begun = self._begun.pop(at.time, None)
        n_records = kind.length(batch)
        n_before = 0 if begun is None else begun.n_records
        n_rest = (n_before + n_records) % self._max_size
        if n_before + n_records >= self._max_size:
            whole = batch if begun is None else _whole([*begun.parts, batch])
            n_full = n_before + n_records - n_rest
            starts = range(0, n_full, self._max_size)
            _send(output, at.time, [kind.slice(whole, i, i + self._max_size) for i in starts])
            batch = kind.slice(whole, n_full, n_full + n_rest)
            if begun is not None:
                begun.capability.drop()
                begun = None
        if not n_rest:
            return
        if begun is None:
            begun = _Begun(at.retain(), self._info.environment.clock() + self._wait_s)
        begun.parts.append(batch)
        begun.n_records = n_rest
        self._begun[at.time] = begun


def _send(output: Output, time: Any, lists: list[Any]) -> None:
    """Rows as records that are lists; columns as batches, which are not put together again."""
    for batch in kind_of(lists[0]).kept_apart(lists):
        output.push(time, batch)


def _whole(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else kind_of(parts[0]).concat(parts)
