"""The end of a stream in code of the user's: an operator that sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pact
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


def sink(stream: Stream[Any], pact: Pact, name: str, logic: Callable[[Input], Any]) -> None:
    """See `Stream.sink`."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, pact, Interest.ALWAYS)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], Any]:
        return lambda inputs, outputs: logic(inputs[0])

    builder.build(make_logic)
