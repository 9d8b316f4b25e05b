"""Probes: whether times are still possible at a place, asked from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.dataflow.stream import Stream


class Probe:
    """Tells whether times may still come at the places that it watches.

    Its questions are those of a frontier; with several places (`probe_with`) a
    time is possible if it is possible at any of them.
    """

    def __init__(self) -> None:
        self._frontiers: list[Frontier] = []
        self.listeners: list[Callable[[], None]] = []
        """What to call when a place that it watches has moved, in the step in which it does."""

    def watch(self, frontier: Frontier) -> None:
        """Watch one more place."""
        self._frontiers.append(frontier)

    def less_than(self, time: Any) -> bool:
        """Whether a time strictly before `time` may still come."""
        for frontier in self._frontiers:
            if frontier.less_than(time):
                return True
        return False

    def less_equal(self, time: Any) -> bool:
        """Whether `time`, or one before it, may still come."""
        for frontier in self._frontiers:
            if frontier.less_equal(time):
                return True
        return False

    @property
    def done(self) -> bool:
        """Whether nothing more comes."""
        return all(frontier.is_empty() for frontier in self._frontiers)

    @property
    def elements(self) -> list[Any]:
        """The minimal times that may still come, at each of the places."""
        return [time for frontier in self._frontiers for time in frontier.elements]

    def __repr__(self) -> str:
        return f"Probe({self.elements})"


def probe_with(stream: Stream[Any], probe: Probe, name: str = "Probe") -> None:
    """Let `probe` watch the end of `stream`."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.ALWAYS)
    (counts,) = builder.frontiers
    probe.watch(Frontier(counts))
    listeners = probe.listeners

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            while inputs[0].pull() is not None:
                pass
            if listeners:
                for listener in list(listeners):
                    listener()

        return logic

    builder.build(make_logic)
