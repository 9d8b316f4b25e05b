"""Probes: whether times are still possible at a place, asked from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.dataflow.environment import Environment
    from pointstamp.progress.explanation import Holder


class Probe:
    """Observes the frontier of one or more streams: whether times may still arrive there.

    Its questions are those of a frontier; with several places (`probe_with`) a
    time is possible if it is possible at any of them.
    """

    def __init__(self) -> None:
        self._frontiers: list[Frontier] = []
        self.listeners: list[Callable[[], None]] = []
        """What to call when a place that it watches has moved, in the step in which it does."""
        self._reasons: list[Callable[[Any], list[Holder]]] = []

    def watch(self, frontier: Frontier, explain: Callable[[Any], list[Holder]]) -> None:
        """Watch one more place; `explain` gets a time, or None for the earliest to come."""
        self._frontiers.append(frontier)
        self._reasons.append(explain)

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

    def explain(self, time: Any = None) -> list[Holder]:
        """What could still produce `time`, or one before it, at the places that it watches.

        Each holder can be printed: what is held, by which worker, operator and port, at
        what time, and on which way it would come here. A worker knows by name what it
        holds itself; of what others hold it knows the place, and with two workers whose
        it is. `pointstamp explain PID` asks them all.

        Parameters
        ----------
        time : optional
            Without it: the earliest times that may still come.

        Returns
        -------
        list of Holder
            What this worker holds comes first; empty if the time cannot come any more.

        Raises
        ------
        UsageError
            While the dataflow is being built.

        Notes
        -----
        Costs a walk over all objects of the process: for a person that waits, not for a
        loop.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input("edges")
        ...         probe = stream.map(lambda x: x + 1).probe()
        ...     input.advance_to(3)
        ...     worker.step()
        ...     return [str(holder) for holder in probe.explain(5)]
        >>> print(ps.execute(main)[0][0])
        this worker (0) has not advanced input 'edges' [1] beyond 3: 3 at 'Probe' [3], by \
'edges' [1] -> 'Map' [2] -> 'Probe' [3]
        """
        found: dict[Holder, None] = {}
        for frontier, explain in zip(self._frontiers, self._reasons, strict=True):
            if frontier.elements if time is None else frontier.less_equal(time):
                found.update(dict.fromkeys(explain(time)))
        return list(found)

    def __repr__(self) -> str:
        return f"Probe({self.elements})"


def probe_with(
    stream: StreamCore[Any],
    probe: Probe,
    name: str = "Probe",
    on_batch: Callable[[Any, Any], object] | None = None,
) -> None:
    """Let `probe` watch the end of `stream`, and call `on_batch(time, batch)` with what comes."""
    given: Any = probe  # of any type, until it is looked at
    if not isinstance(given, Probe):
        raise BuildError(
            f"operator {name!r} has a probe follow a stream, one that probe() of a stream or "
            f"Probe() gives; found {given!r:.200}"
        )
    builder = OperatorBuilder(stream.scope, name)
    builder.states.holds_no_texts()  # `on_batch` is the library's, and says itself what it keeps
    builder.new_input(stream, Pipeline(), Interest.ALWAYS)
    builder.set_role("probe")
    (counts,) = builder.frontiers
    listeners = probe.listeners

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        why = partial(_explain, stream.scope.environment, stream.scope.number, info.address[-1])
        probe.watch(Frontier(counts), why)

        return _Watching(listeners, on_batch)

    builder.build(make_logic)


class _Watching(BuiltInLogic):
    """The logic: takes what comes, and calls those that wait for the probe to move."""

    __slots__ = ("_listeners", "_on_batch")

    def __init__(
        self,
        listeners: list[Callable[[], None]],
        on_batch: Callable[[Any, Any], object] | None,
    ) -> None:
        self._listeners = listeners
        self._on_batch = on_batch

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_ = inputs[0]
        while (item := input_.pull()) is not None:
            if self._on_batch is not None:
                self._on_batch(item[0], item[1])
        if self._listeners:
            for listener in list(self._listeners):
                listener()


def _explain(environment: Environment, scope: int, node: int, time: Any) -> list[Holder]:
    return environment.explain(scope, node, time)


class ProbeMethods(StreamCore[T]):
    """Probes. Methods of `Stream`."""

    def probe(self, *, name: str = "Probe") -> Probe:
        """A probe that observes the frontier of this stream.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         probe = stream.probe()
        ...     input.advance_to(3)
        ...     worker.step_while(lambda: probe.less_than(3))
        ...     return probe.less_than(3), probe.less_equal(3), probe.elements
        >>> ps.execute(main)
        [(False, True, [3])]
        """
        probe = Probe()
        probe_with(self, probe, name)
        return probe

    def probe_with(self, probe: Probe, *, name: str = "Probe") -> Self:
        """Have an existing `probe` observe this stream, too; returns the stream.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     probe = ps.Probe()
        ...     with worker.dataflow() as scope:
        ...         slow, first = scope.new_input()
        ...         fast, second = scope.new_input()
        ...         first.probe_with(probe)
        ...         second.probe_with(probe)
        ...     fast.advance_to(9)
        ...     slow.advance_to(2)
        ...     worker.step_while(lambda: probe.less_than(2))
        ...     return probe.less_than(3)
        >>> ps.execute(main)
        [True]
        """
        probe_with(self, probe, name)
        return self
