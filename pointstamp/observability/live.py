"""Events as a stream: the source that a log feeds, in a dataflow that is not logged.

A batch is sent at the time that the source was at, which is a moment at or before those
of all its events; then the source goes to the moment at which the batch was made. So,
once the frontier is past a moment, all events of that moment have come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo

if TYPE_CHECKING:
    from pointstamp.operators.scope import Scope
    from pointstamp.operators.stream import Stream


class LogSource:
    """What a log puts batches into."""

    def __init__(self, capability: Capability, activate: Callable[[], None]) -> None:
        self._capability = capability
        self._activate = activate
        self._waiting: deque[tuple[Any, int]] = deque()
        self._is_ended = False

    def put(self, batch: Any, until: int = 0) -> None:
        """Send `batch`, if any; nothing after it is of a moment before `until`."""
        self._waiting.append((batch, until))
        self._activate()

    def end(self) -> None:
        """There is nothing after what was put."""
        self._is_ended = True
        self._activate()

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Send what was put since the last activation."""
        while self._waiting:
            batch, until = self._waiting.popleft()
            if batch is not None:
                outputs[0].push(self._capability.time, batch)
            if until > self._capability.time:
                self._capability.downgrade(until)
        if self._is_ended:
            self._capability.drop()


def log_source(scope: Scope, what: str, name: str) -> tuple[Stream[Any], LogSource]:
    """A stream in `scope`, and what to feed it with."""
    builder = OperatorBuilder(scope, name or f"Log of {what}")
    builder.states.refuse(NOT_REPLAYED)
    stream = builder.new_output()
    made: list[LogSource] = []

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        made.append(LogSource(capabilities.pop(), info.activate))
        return made[0].run

    builder.build(make_logic)
    (source,) = made
    return stream, source
