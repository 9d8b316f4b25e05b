"""Sources that read on only as fast as the computation keeps up.

A source that reads all there is fills the queues behind it, and a file or a topic may
be larger than memory. Here a probe, put where the work is done, says how far that
is, and the source reads on when the probe has reached what it is to wait for.
It is not asked again before: a probe that moves wakes it.

Source: timely-dataflow `dataflow/operators/core/flow_controlled.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.errors import BuildError, DataError, UsageError
from pointstamp.operators.probe import Probe
from pointstamp.operators.user_code import check_function
from pointstamp.progress.timestamp import Int

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


@dataclass(frozen=True)
class Reading:
    """What an `iterator_source` has read, and when it should read on.

    Attributes
    ----------
    batches : iterable of (time, batch)
        What it sends: containers (a list of records is one), at times that do not go
        back, from the time that it was called with.
    target
        It is called again when the probe says that no time before this one can come.
        The source itself holds back all times from its own on: one that is later than
        those would be waited for for ever.
    lower_bound : optional
        It will send nothing before that; without it, nothing before what it sent last.
    """

    batches: Iterable[tuple[Any, Any]]
    target: Any
    lower_bound: Any = None


Read = Callable[[Any], Reading | None]
"""`read(time)`: what can be read now, to be sent at `time` or later; None at the end."""


class _Reader:
    """The logic: one reading for each activation, if the probe has come far enough."""

    def __init__(
        self,
        scope: ScopeCore[Any],
        capability: Capability,
        info: OperatorInfo,
        read: Read,
        probe: Probe,
    ) -> None:
        self._timestamp = scope.timestamp
        self._target = scope.timestamp.minimum
        self._capability = capability
        self._read = read
        self._probe = probe
        self._activate = info.activate
        probe.listeners.append(self._activate)
        scope.environment.closers.callback(self._end)

    def run(self, inputs: list[Input], outputs: list[Output]) -> bool:
        """Read on, if it is time to; whether to be called again soon."""
        if not self._capability.live or self._probe.less_than(self._target):
            return False  # the probe will wake us
        reading = self._read(self._capability.time)
        if reading is None:
            self._capability.drop()
            self._end()
            return False
        if not isinstance(reading, Reading):
            raise UsageError(
                f"read() of an iterator_source gives a Reading, or None at the end; it gave "
                f"{reading!r:.200}"
            )
        self._target = self._timestamp.check(reading.target)
        for time, batch in reading.batches:
            self._capability.downgrade(time)
            outputs[0].session(self._capability).give_batch(batch)
        if reading.lower_bound is not None:
            self._raise_to(self._timestamp.check(reading.lower_bound))
        return True

    def _raise_to(self, lower_bound: Any) -> None:
        if self._timestamp.less_equal(self._capability.time, lower_bound):
            self._capability.downgrade(lower_bound)

    def _end(self) -> None:
        if self._activate in self._probe.listeners:
            self._probe.listeners.remove(self._activate)


def _read_ahead(batches: Iterator[tuple[int, Any]], ahead: int, name: str) -> Read:
    """Read a batch at a time, each when all times `ahead` before its own are complete."""
    upcoming: list[tuple[int, Any]] = []

    def read(time: int) -> Reading | None:
        found = list(upcoming)
        upcoming[:] = next(([item] for item in batches), [])
        if upcoming:
            at = _checked_pair(upcoming[0], name)[0]
            return Reading(found, target=max(0, at - ahead + 1), lower_bound=at)
        return Reading(found, target=0) if found else None

    return read


def _checked_pair(item: Any, name: str) -> tuple[int, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2 or type(item[0]) is not int:
        raise DataError(
            f"source {name!r} is given pairs (time, batch), whose times are integers; found "
            f"{item!r:.200}"
        )
    return item[0], item[1]


class FlowControlMethods(ScopeCore["Stream[Any]"]):
    """Sources that wait for a probe. Methods of `Scope`."""

    def flow_controlled(
        self,
        batches: Iterable[tuple[int, Any]],
        probe: Probe,
        ahead: int = 1,
        name: str = "FlowControlled",
    ) -> Stream[Any]:
        """A source of (time, batch) from an iterable, which is read only as `probe` advances.

        Parameters
        ----------
        batches : iterable of (int, container)
            Times that do not go back, each with a list of records, or columns. One
            batch is read before it may be sent.
        probe : Probe
            Says what is complete; put it where the work is done, which may be later
            than this call, with `probe_with`.
        ahead : int
            How far to run ahead: a batch of time t is sent when all times up to
            `t - ahead` are complete, so that at most so many times are at work.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     probe = ps.Probe()
        ...     lines = scope.flow_controlled([(0, ["a", "b"]), (3, ["c"])], probe, ahead=2)
        ...     return lines.map(str.upper).probe_with(probe)
        >>> ps.testing.collect(build)
        [(0, 'A'), (0, 'B'), (3, 'C')]
        """
        if self.timestamp is not Int:
            raise BuildError(
                f"source {name!r} counts how far it runs ahead, and scope {self.name!r} has times "
                f"of {self.timestamp!r}; iterator_source() is for times that are not integers"
            )
        if type(ahead) is not int or ahead < 1:
            raise BuildError(
                f"source {name!r} would never send anything: it may run {ahead!r} times ahead, and "
                "what it sends has to be at least 1 ahead of what is complete"
            )
        if not isinstance(batches, Iterable):
            raise BuildError(
                f"source {name!r} needs an iterable of pairs (time, batch); found {batches!r:.200}"
            )
        return self.iterator_source(_read_ahead(iter(batches), ahead, name), probe, name)

    def iterator_source(
        self, read: Read, probe: Probe, name: str = "IteratorSource"
    ) -> Stream[Any]:
        """A source that decides how far `probe` must have advanced before it reads on.

        `read(time)` gives a `Reading`: what to send at `time` or later, and the target
        that the probe has to reach before the next call. It gives None at the end.
        Times may be of any type.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     probe = ps.Probe()
        ...     def read(time):
        ...         if time == 3:
        ...             return None
        ...         return ps.Reading([(time, [10 * time])], target=time, lower_bound=time + 1)
        ...     return scope.iterator_source(read, probe).probe_with(probe)
        >>> ps.testing.collect(build)
        [(0, 0), (1, 10), (2, 20)]
        """
        check_function(read, name)
        if not isinstance(probe, Probe):
            raise BuildError(
                f"operator {name!r} waits for a probe, which probe() of a stream or Probe() gives; "
                f"found {probe!r:.200}"
            )
        builder = OperatorBuilder(self, name)
        builder.states.refuse(NOT_REPLAYED)
        stream = builder.new_output()

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], bool]:
            return _Reader(self, capabilities.pop(), info, read, probe).run

        builder.build(make_logic)
        return stream
