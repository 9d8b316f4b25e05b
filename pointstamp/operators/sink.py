"""The end of a stream in code of the user's: an operator that sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pact
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    pass


class SinkMethods(StreamCore[T]):
    """The end of a stream. Methods of `Stream`."""

    def sink(self, pact: Pact, name: str, logic: Callable[[Input], Any]) -> None:
        """An operator that reads this stream and sends nothing; `logic(input)`.

        `input.frontier` says what may still come, and its moves are a reason to run.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     events = []
        ...     def logic(input):
        ...         for time, batch in input:
        ...             events.append((time.time, batch))
        ...         if input.frontier.is_empty():
        ...             events.append("end")
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).sink(ps.Pipeline(), "Events", logic)
        ...     worker.run()
        ...     return events
        >>> ps.execute(main)
        [[(0, [1, 2]), 'end']]
        """
        builder = OperatorBuilder(self.scope, name)
        builder.new_input(self, pact, Interest.ALWAYS)

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], Any]:
            return lambda inputs, outputs: logic(inputs[0])

        builder.build(make_logic)
