"""Aggregates by name, in part: of what a worker has at hand, before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.containers.named_aggregates import AggregatesByName

TOGETHER_RECORDS = 1 << 17
"""Of so many records at most a part is made: each costs a call of Arrow, and memory until then."""


def in_part(stream: StreamCore[Any], aggregates: AggregatesByName, name: str) -> StreamCore[Any]:
    """The parts of the batches; those of one time that come together make one part.

    Nothing is kept between activations, so that no answer is held back.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.NEVER)
    parts: StreamCore[Any] = builder.new_output(initial=False)

    builder.build(lambda capabilities, info: _InPart(aggregates).run)
    return parts


class _InPart:
    """The logic: takes what has come, and sends its parts."""

    __slots__ = ("_aggregates", "_batches", "_n_records", "_room")

    def __init__(self, aggregates: AggregatesByName) -> None:
        self._aggregates = aggregates
        self._batches: list[Any] = []
        self._n_records = 0
        self._room = TOGETHER_RECORDS if aggregates.is_sent else 1

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Take all there is."""
        input_, output = inputs[0], outputs[0]
        last: Any = None
        while (item := input_.pull()) is not None:
            time, batch = item
            if self._batches and (time != last or self._n_records >= self._room):
                self._send(last, output)
            last = time
            self._batches.append(batch)
            self._n_records += kind_of(batch).length(batch)
        if self._batches:
            self._send(last, output)

    def _send(self, time: Any, output: Output) -> None:
        batches, self._batches, self._n_records = self._batches, [], 0
        output.push(time, self._aggregates.part(batches))
