"""Where records come from: an input driven from outside, an iterable, code of the user's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sized
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.registry import batches_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.connectors import Source
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.several_streams import several
from pointstamp.dataflow.source_counts import set_source_size
from pointstamp.dataflow.stream_core import T
from pointstamp.errors import BuildError, DroppedError, InputError
from pointstamp.operators.generic import Build, checked_logic
from pointstamp.operators.user_code import check_takes, is_async, refuse_generator
from pointstamp.progress.activation import Activation
from pointstamp.progress.timestamp import Int, Timestamp

if TYPE_CHECKING:
    from pointstamp.dataflow.event_loop import AsyncInput
    from pointstamp.operators.stream import Stream


class InputHandle:
    """Drives an input: sends at its current time, and advances it.

    Every worker has one, and all must advance or close theirs for the time to
    pass. Without a call of `advance_to` or `close` everybody waits.
    """

    def __init__(
        self,
        name: str,
        timestamp: Timestamp,
        capability: Capability,
        output: Output,
        activation: Activation,
        is_throttled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_throttled = is_throttled
        self.name = name
        self._timestamp = timestamp
        self._is_int = timestamp is Int
        self._capability = capability
        self._session = output.session(capability)
        self._output = output
        self._activation = activation
        self.is_closed = False
        self.is_dropped = False
        """Whether its dataflow was dropped, and it closed with that."""

    @property
    def time(self) -> Any:
        """The time at which records are sent now."""
        return self._capability.time

    @property
    def is_throttled(self) -> bool:
        """Whether so much is in flight that it would be better to wait.

        `worker.step_while(lambda: input.is_throttled)` keeps what is in flight bounded.
        Sending more is allowed.
        """
        return self._is_throttled()

    def send(self, record: Any) -> None:
        """Send one record at the current time."""
        self._check("send")
        builder = self._session._builder()
        if builder.is_empty():
            self._activation.ask()  # and for what else is given until the operator sends it
        builder.give(record)

    def send_batch(self, batch: Any) -> None:
        """Send a container at the current time; it must not change afterwards."""
        self._check("send")
        self._session.give_batch(batch)
        self._activation.ask()

    def advance_to(self, time: Any) -> None:
        """Promise to send at `time` or later only.

        Raises
        ------
        InputError
            If `time` is not at or after the current time.
        """
        self._check("advance")
        now = self._capability.time
        if not (self._is_int and type(time) is int and time >= now):
            time = self._timestamp.check(time)
            if not self._timestamp.less_equal(now, time):
                raise InputError(f"input {self.name!r} is at {now} and cannot go back to {time}")
        self._output.flush()
        self._capability.downgrade(time)

    def close(self) -> None:
        """Promise to send nothing more. Closing twice is closing once."""
        if not self.is_closed:
            self.is_closed = True
            self._output.flush()
            self._capability.drop()

    def abandon(self) -> None:
        """Refuse everything but `close`: the dataflow was dropped."""
        self.is_closed = self.is_dropped = True

    def __enter__(self) -> InputHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check(self, what: str) -> None:
        if self.is_closed:
            if self.is_dropped:
                raise DroppedError(f"input {self.name!r} cannot {what}: its dataflow was dropped")
            raise InputError(f"input {self.name!r} is closed and cannot {what}")

    def __repr__(self) -> str:
        return f"InputHandle({self.name!r}, {'closed' if self.is_closed else self.time!r})"


class _Driven(BuiltInLogic):
    """Nothing: what was given to the handle is flushed after this, as for any operator."""

    __slots__ = ()

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Do nothing."""


def _is_over(scope: ScopeCore[Any]) -> bool:
    """Whether the least time was complete when the program ran before: what is sent then was."""
    durable_state = scope.environment.durable_state
    return durable_state is not None and durable_state.is_restored


def _size(records: Any) -> int | None:
    """How many records there are, where that is known."""
    return len(records) if isinstance(records, Sized) else None


def _size_of_all(batches: Any) -> int | None:
    """The same of several batches."""
    sizes = [_size(batch) for batch in batches] if isinstance(batches, list | tuple) else [None]
    return None if None in sizes else sum(size or 0 for size in sizes)


class SourceMethods(ScopeCore["Stream[Any]"]):
    """Where records come from. Methods of `Scope`."""

    def new_input(self, name: str = "Input") -> tuple[InputHandle, Stream[Any]]:
        """An input driven by the program: its handle and its stream.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         stream.inspect_batch(lambda time, batch: seen.append((time, batch)))
        ...     input.send("a")
        ...     input.advance_to(4)
        ...     input.send("b")
        ...     input.close()
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[(0, ['a']), (4, ['b'])]]
        """
        builder = OperatorBuilder(self, name)
        builder.set_role("input")
        builder.states.holds_no_texts()
        stream = builder.new_output()
        handles: list[InputHandle] = []

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], None]:
            (output,) = builder.output_handles
            activation = info.activate
            assert isinstance(activation, Activation)  # it is asked for each record
            handles.append(
                InputHandle(
                    name,
                    self.timestamp,
                    capabilities.pop(),
                    output,
                    activation,
                    info.is_throttled,
                )
            )
            durable_state = self.environment.durable_state
            if durable_state is not None and durable_state.is_restored:
                handles[0].advance_to(self.epochs().first(durable_state.first_epoch))
            return _Driven()

        builder.build(make_logic)
        (handle,) = handles
        self.environment.inputs.append(handle)
        return several((handle, stream), ["input", "stream"], main=1)

    def to_stream(self, records: Iterable[T], *, name: str = "ToStream") -> Stream[T]:
        """A stream of an iterable's records, at the least time. Each worker sends its own.

        Of a record batch, a table or a data frame (of pandas, polars, or another that shows
        itself by Arrow's C stream interface) it is a stream of columns.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("ab"))
        [(0, 'a'), (0, 'b')]
        """
        batches = batches_of(records)
        if batches is not None:
            return self._send_batches(batches, lambda: _size(records), name)
        if isinstance(records, dict):
            raise BuildError(
                f"operator {name!r} is given a dict, of which the records would be the keys: for "
                "columns give pyarrow.table(it), for rows list(it) or it.items(); found "
                f"{records!r:.200}"
            )
        if not hasattr(records, "__iter__"):
            more = "; async_source takes an asynchronous generator" * hasattr(records, "__aiter__")
            raise BuildError(
                f"operator {name!r} needs an iterable of records, or a table, and was given "
                f"{records!r:.200}{more}"
            )
        first = records[0] if isinstance(records, (list, tuple)) and records else None
        if batches_of(first) is not None:
            raise BuildError(
                f"operator {name!r} is given a list of batches, of which each would be one record: "
                "batches_to_stream(it) makes a stream of their records"
            )
        builder = OperatorBuilder(self, name)
        stream = builder.new_output()
        set_source_size(stream, lambda: _size(records))

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], bool]:
            capability = capabilities.pop()
            remaining = iter(() if _is_over(self) else records)

            def logic(inputs: list[Input], outputs: list[Output]) -> bool:
                if info.is_throttled():
                    return False
                # One batch per activation, so that what it sets off can go on meanwhile.
                batch = list(islice(remaining, PREFERRED_RECORDS))
                if batch:
                    outputs[0].push(capability.time, batch)
                    return True
                capability.drop()
                return False

            return logic

        builder.build(make_logic)
        return stream

    def batches_to_stream(
        self, batches: Iterable[Any], *, name: str = "FromBatches"
    ) -> Stream[Any]:
        """A stream of an iterable of containers, tables or data frames, at the least time.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.batches_to_stream([[1, 2], [3]]))
        [(0, 1), (0, 2), (0, 3)]
        """
        given: Any = batches  # of any type, until it is looked at
        if not hasattr(given, "__iter__"):
            raise BuildError(
                f"operator {name!r} needs an iterable of batches, each a list of records or "
                f"columns, and was given {given!r:.200}"
            )
        return self._send_batches(batches, lambda: _size_of_all(batches), name)

    def _send_batches(
        self, batches: Iterable[Any], n_total: Callable[[], int | None], name: str
    ) -> Stream[Any]:
        builder = OperatorBuilder(self, name)
        stream = builder.new_output()
        set_source_size(stream, n_total)

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], bool]:
            capability = capabilities.pop()
            remaining = iter(() if _is_over(self) else batches)

            def logic(inputs: list[Input], outputs: list[Output]) -> bool:
                if capability.live and not info.is_throttled():
                    for batch in remaining:
                        with outputs[0].session(capability) as session:
                            session.give_batch(batch)
                        return True
                    capability.drop()
                return False

            return logic

        builder.build(make_logic)
        return stream

    def empty(self, *, name: str = "Empty") -> Stream[Any]:
        """A stream without records, complete from the start.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.empty())
        []
        """
        builder = OperatorBuilder(self, name)
        stream = builder.new_output(initial=False)
        builder.build(lambda capabilities, info: lambda inputs, outputs: None)
        return stream

    def async_source(
        self,
        generate: Callable[[AsyncInput], AsyncIterator[T]],
        *,
        batches: bool = False,
        buffer: int = 1024,
        name: str = "AsyncSource",
    ) -> Stream[T]:
        """A source of what an asynchronous generator yields, one on each worker.

        Until it ends, the worker keeps the right to send at the time at which it is. It
        runs in the worker's event loop, and is cancelled when the dataflow ends early.

        Parameters
        ----------
        generate : callable
            An asynchronous generator function. It is called with an `AsyncInput`, whose
            `advance_to(time)` says at which time the next records are given (at first the
            least), and whose `index` and `peers` say which worker it is.
        batches : bool
            Whether it yields containers rather than records.
        buffer : int
            How many records (or containers) it may yield before the worker has sent them;
            after so many it waits.

        >>> import pointstamp as ps
        >>> async def ticks(input):
        ...     for round in range(3):
        ...         yield "tick"
        ...         input.advance_to(round + 1)
        >>> ps.testing.collect(lambda scope: scope.async_source(ticks))
        [(0, 'tick'), (1, 'tick'), (2, 'tick')]
        """
        # Not at the top: it imports asyncio.
        from pointstamp.operators import async_source

        return async_source.async_source(self, generate, batches=batches, buffer=buffer, name=name)

    @overload
    def source(
        self, build: Callable[[AsyncInput], AsyncIterator[T]], name: str = "Source"
    ) -> Stream[T]: ...

    @overload
    def source(
        self, build: Source, name: str = "Source", *, epoch_s: float = 1.0
    ) -> Stream[Any]: ...

    @overload
    def source(self, build: Build, name: str = "Source") -> Stream[Any]: ...

    def source(self, build: Any, name: str = "Source", *, epoch_s: float = 1.0) -> Stream[Any]:
        """A stream from a `Source`, or from a custom operator without inputs; `logic(output)`.

        An asynchronous generator function is run as `async_source` does. A `Source`, which has
        partitions and positions, is read by all workers, each its share of the partitions, and
        can be resumed: see `docs/sources_and_sinks.md`.

        `build(capability, info)` is called once on each worker and returns the logic,
        which is called once, and again whenever it returns True or `info` was asked
        for it: at once (`activate`), after a time (`activate_after`) or by another
        thread (`thread_activator`). The stream ends when the capability is dropped.

        Parameters
        ----------
        epoch_s : float
            Of a `Source` outside of `ps.run`, which has epochs of its own: how many seconds each
            worker stays at an epoch of which it has sent something.

        Raises
        ------
        BuildError
            For a `Source` in a scope of other times than epochs.
        SourceError
            For partitions or batches that are none, while it runs as well; `PartitionLostError`
            if a snapshot has a position in a partition that is gone.

        >>> import pointstamp as ps
        >>> def build(capability, info):
        ...     def logic(output):
        ...         with output.session(capability) as session:
        ...             session.give(capability.time ** 2)
        ...         capability.downgrade(capability.time + 1)
        ...         if capability.time == 3:
        ...             capability.drop()
        ...         return capability.live
        ...     return logic
        >>> ps.testing.collect(lambda scope: scope.source(build))
        [(0, 0), (1, 1), (2, 4)]
        """
        if isinstance(build, Source):
            if isinstance(build, type):
                raise BuildError(
                    f"operator {name!r} needs a Source, and {build.__name__} is the class of some: "
                    f"give {build.__name__}(...)"
                )
            # Here and not above: many dataflows have none.
            from pointstamp.operators.partitioned_source import partitioned_source

            return partitioned_source(self, build, name, epoch_s)
        if is_async(build):
            return self.async_source(build, name=name)
        if not callable(build):
            raise BuildError(
                f"operator {name!r} needs a Source, which has partitions() and open(), an "
                "asynchronous generator function, or a function build(capability, info); found "
                f"{build!r:.200}"
                + (
                    "; files are read by ps.FileSource(path)"
                    if isinstance(build, str | PathLike)
                    else ""
                )
            )
        refuse_generator(build, name, "make it an async def, or give to_stream what it yields")
        check_takes(build, name, "capability", "info")
        builder = OperatorBuilder(self, name)
        builder.states.refuse(NOT_REPLAYED)
        stream = builder.new_output()

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], Any]:
            logic = checked_logic(build(capabilities.pop(), info), build, name)
            return lambda inputs, outputs: logic(outputs[0])

        builder.build(make_logic)
        return stream
