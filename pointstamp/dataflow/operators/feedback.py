"""Feedback: the stream that comes before what it is made of.

A loop is made in two steps: `scope.feedback` gives a stream to build on and a
handle; `handle.connect` says what flows around. On the way time advances by the
summary, which is what keeps a loop from waiting for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.errors import FeedbackError
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Summary

if TYPE_CHECKING:
    from pointstamp.dataflow.scope import Scope
    from pointstamp.dataflow.stream import Stream


class Loop:
    """The open end of a feedback, to be connected once."""

    def __init__(self, scope: Scope, summary: Summary, name: str) -> None:
        self.scope = scope
        self.name = name
        self._summary = summary
        self._builder = OperatorBuilder(scope, name)
        self.connected = False
        self.stream = self._builder.new_output(initial=False)

    def connect(self, stream: Stream[Any]) -> None:
        """Let `stream` flow around, at later times."""
        if self.connected:
            raise FeedbackError(
                f"feedback {self.name!r} of scope {self.scope.name!r} is connected already; "
                "concat the streams and connect the result"
            )
        self.connected = True
        summary = self._summary
        self._builder.new_input(stream, Pipeline(), Interest.NEVER)
        self._builder.set_summary(0, 0, summary)

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], None]:
            def logic(inputs: list[Input], outputs: list[Output]) -> None:
                while (item := inputs[0].pull()) is not None:
                    time = summary.results_in(item[0])
                    if time is not None:
                        outputs[0].push(time, item[1])

            return logic

        self._builder.build(make_logic)
