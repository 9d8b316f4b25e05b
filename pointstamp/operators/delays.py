"""Operators that keep records for a later time: delays, and reclocking.

A delayed record waits under the capability for its new time, of which there is one
for each distinct time, and leaves when that is complete.

Source: timely-dataflow `dataflow/operators/core/reclock.rs` and `vec/delay.rs`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.splitting import split_by_value
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError, TimestampError
from pointstamp.operators.generic import operator, operator_notify
from pointstamp.operators.transform import rows
from pointstamp.operators.user_code import check_function, check_takes
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

Parts = Iterable[tuple[Any, Any]]
"""New times, and the records for each."""


def check_total(stream: StreamCore[Any], name: str) -> None:
    """Raise unless any two times of the stream are ordered."""
    timestamp = stream.scope.timestamp
    if not timestamp.total:
        raise BuildError(
            f"{name} needs times any two of which are ordered; those of scope "
            f"{stream.scope.name!r} are of {timestamp!r}: use delay"
        )


class _Early:
    """Batches that no clock had a time for yet, in an order of time."""

    def __init__(self, timestamp: Timestamp) -> None:
        self._timestamp = timestamp
        self._number = count()
        self._heap: list[tuple[Any, int, Any, Any]] = []
        """(key, number of arrival, time, batch)"""

    def put(self, time: Any, batch: Any) -> None:
        """Keep one more."""
        entry = (self._timestamp.key(time), next(self._number), time, batch)
        heapq.heappush(self._heap, entry)

    def take(self, time: Any) -> Iterator[Any]:
        """Those at or before `time`, in order of time and arrival."""
        key = self._timestamp.key(time)
        others = []
        while self._heap and self._heap[0][0] <= key:
            entry = heapq.heappop(self._heap)
            if self._timestamp.less_equal(entry[2], time):
                yield entry[3]
            else:
                others.append(entry)  # in a partial order
        for entry in others:
            heapq.heappush(self._heap, entry)

    def clear(self) -> None:
        """Keep none."""
        self._heap.clear()


def delayed(stream: StreamCore[Any], name: str, parts: Callable[[Any, Any], Parts]) -> Stream[Any]:
    """Keep the parts of each batch, `parts(time, batch)`, until their times are complete."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        stash: Stash[list[Any]] = Stash(info)
        if info.states.durable_state is not None:
            _declare(stash, capability, info)
        capability.drop()

        def logic(input_: Input, output: Output) -> None:
            for time, batch in input_:
                for wanted, part in parts(time.time, batch):
                    new_time = output.capabilities.check_not_before(time.time, wanted, "delay")
                    stash.add(time, part, new_time)
            for capability, batches in stash:
                session = output.session(capability)
                for part in batches:
                    session.give_batch(part)

        return logic

    return operator([stream], [Pipeline()], name, build, Interest.IF_CAPABILITY)


def _declare(stash: Stash[list[Any]], capability: Capability, info: OperatorInfo) -> None:
    """Have what is delayed beyond an epoch outlast the program: by time, anywhere."""
    # Here and not above: few dataflows are durable.
    from pointstamp.checkpoint.keyed_state import KeyedBatches, by_tag

    def everything() -> Iterator[tuple[Any, Any]]:
        return ((time, part) for time, parts in stash.items() for part in parts)

    def restore(time: Any, batch: Any) -> None:
        stash.add(capability, batch, time)

    info.states.keep("delayed", KeyedBatches(everything, restore, by_tag))


def _rows_by_time(time: Any, batch: Any, function: Callable[[Any, Any], Any], name: str) -> Parts:
    by_time: dict[Any, list[Any]] = {}
    for record in rows(batch, name):
        wanted = function(record, time)
        try:
            of_time = by_time.setdefault(wanted, [])
        except TypeError:  # it has no hash
            raise TimestampError(
                f"operator {name!r} cannot delay the record {record!r:.200} from {time} to "
                f"{wanted!r:.200} ({type(wanted).__name__}), which is no time"
            ) from None
        of_time.append(record)
    return by_time.items()


def columns_by_time(time: Any, batch: Any, column: Any, name: str) -> Parts:
    """The records of a batch of columns for each new time, which `column` gives."""
    return split_by_value(batch, kind_of(batch).integers(batch, column, name))


class DelayMethods(StreamCore[T]):
    """Operators that move records to later times. Methods of `Stream`."""

    def delay(self, function: Any, *, name: str = "Delay") -> Stream[T]:
        """Move each record to the time `function(record, time)`; sent when that is complete.

        Parameters
        ----------
        function : callable, str or pyarrow.compute.Expression
            On rows `function(record, time)` gives the new time; on columns the name
            of a column of integer times, or an expression (of record batches).

        Raises
        ------
        CapabilityError
            While it runs, for a new time that is not at or after the old one.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([7, 5]).delay(lambda record, time: time + record)
        >>> ps.testing.collect(build)
        [(5, 5), (7, 7)]
        """
        check_function(function, name, or_columns=True)
        check_takes(function, name, "record", "time")
        of_rows = callable(function) and not is_expression(function)
        parts = _rows_by_time if of_rows else columns_by_time
        return delayed(self, name, lambda time, batch: parts(time, batch, function, name))

    def delay_total(self, function: Any, *, name: str = "DelayTotal") -> Stream[T]:
        """`delay` for totally ordered times, which is faster.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([7, 5]).delay_total(lambda record, time: time + record)
        >>> ps.testing.collect(build)
        [(5, 5), (7, 7)]
        """
        check_function(function, name, or_columns=True)
        check_total(self, name)
        return self.delay(function, name=name)

    def delay_batch(self, function: Callable[[Any], Any], *, name: str = "DelayBatch") -> Stream[T]:
        """Move whole batches to the time `function(time)`; sent when that is complete.

        Raises
        ------
        CapabilityError
            While it runs, for a new time that is not at or after the old one.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream("ab").delay_batch(lambda time: time + 3)
        >>> ps.testing.collect(build)
        [(3, 'a'), (3, 'b')]
        """
        check_function(function, name)
        check_takes(function, name, "time")
        return delayed(self, name, lambda time, batch: [(function(time), batch)])

    def reclock(self, clock: StreamCore[Any], *, name: str = "Reclock") -> Stream[T]:
        """Move each record to the next time of the stream `clock`; sent when that is complete.

        The times of the clock are those of its records, whatever they are, on this
        worker. A record waits for the first of them that is at or after its own time;
        if none ever is, the record is not sent.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     clock = scope.to_stream([5, 10]).delay(lambda record, time: record)
        ...     return scope.to_stream([3, 8, 11]).delay(lambda record, time: record).reclock(clock)
        >>> ps.testing.collect(build)
        [(5, 3), (10, 8)]
        """
        timestamp = self.scope.timestamp

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
            capability.drop()
            info.states.refuse(
                "what waits for its clock may be of epochs that are complete, and is not stored; "
                "delay the records themselves, or reclock in a dataflow that is not durable"
            )
            early = _Early(timestamp)

            def logic(data: Input, ticks: Input, output: Output, notificator: Notificator) -> None:
                while (item := data.pull()) is not None:
                    early.put(*item)
                for time, _ in ticks:
                    notificator.notify_at(time.retain())
                for capability in notificator:
                    with capability, output.session(capability) as session:
                        for batch in early.take(capability.time):
                            session.give_batch(batch)
                if not len(notificator) and ticks.frontier.is_empty():
                    early.clear()  # no clock will ever have a time for them

            return logic

        return operator_notify([self, clock], [Pipeline(), Pipeline()], name, build, ())
