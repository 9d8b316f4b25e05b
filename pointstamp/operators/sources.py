"""Where records come from: an input driven from outside, an iterable, code of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.errors import DroppedError, InputError
from pointstamp.operators.generic import Build
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.scope import Scope
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
        activate: Callable[[], None],
        is_throttled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_throttled = is_throttled
        self.name = name
        self._timestamp = timestamp
        self._capability = capability
        self._session = output.session(capability)
        self._output = output
        self._activate = activate
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
        self._session.give(record)
        self._activate()

    def send_batch(self, batch: Any) -> None:
        """Send a container at the current time; it must not change afterwards."""
        self._check("send")
        self._session.give_batch(batch)
        self._activate()

    def advance_to(self, time: Any) -> None:
        """Promise to send at `time` or later only.

        Raises
        ------
        InputError
            If `time` is not at or after the current time.
        """
        self._check("advance")
        time = self._timestamp.check(time)
        now = self._capability.time
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


def new_input(scope: Scope, name: str = "Input") -> tuple[InputHandle, Stream[Any]]:
    """See `Scope.new_input`."""
    builder = OperatorBuilder(scope, name)
    builder.set_role("input")
    stream = builder.new_output()
    handles: list[InputHandle] = []

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        (output,) = builder.output_handles
        handles.append(
            InputHandle(
                name,
                scope.timestamp,
                capabilities.pop(),
                output,
                info.activate,
                info.is_throttled,
            )
        )
        durable_state = scope.environment.durable_state
        if durable_state is not None and durable_state.is_restored:
            handles[0].advance_to(scope.epochs().first(durable_state.first_epoch))
        # What was given to the handle is flushed after this, as for any operator.
        return lambda inputs, outputs: None

    builder.build(make_logic)
    (handle,) = handles
    scope.environment.inputs.append(handle)
    return handle, stream


def empty(scope: Scope, name: str = "Empty") -> Stream[Any]:
    """See `Scope.empty`."""
    builder = OperatorBuilder(scope, name)
    stream = builder.new_output(initial=False)
    builder.build(lambda capabilities, info: lambda inputs, outputs: None)
    return stream


def to_stream(scope: Scope, records: Iterable[Any], name: str = "ToStream") -> Stream[Any]:
    """See `Scope.to_stream`."""
    builder = OperatorBuilder(scope, name)
    stream = builder.new_output()

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], bool]:
        capability = capabilities.pop()
        remaining = iter(() if _is_over(scope) else records)

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
    scope: Scope, batches: Iterable[Any], name: str = "FromBatches"
) -> Stream[Any]:
    """See `Scope.batches_to_stream`."""
    builder = OperatorBuilder(scope, name)
    stream = builder.new_output()

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], bool]:
        capability = capabilities.pop()
        remaining = iter(() if _is_over(scope) else batches)

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


def _is_over(scope: Scope) -> bool:
    """Whether the least time was complete when the program ran before: what is sent then was."""
    durable_state = scope.environment.durable_state
    return durable_state is not None and durable_state.is_restored


def source(scope: Scope, build: Build, name: str = "Source") -> Stream[Any]:
    """See `Scope.source`."""
    builder = OperatorBuilder(scope, name)
    builder.states.refuse(NOT_REPLAYED)
    stream = builder.new_output()

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], Any]:
        logic = build(capabilities.pop(), info)
        return lambda inputs, outputs: logic(outputs[0])

    builder.build(make_logic)
    return stream
