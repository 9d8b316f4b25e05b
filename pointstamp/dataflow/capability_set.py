"""Several capabilities of one output, kept as few as allow the same.

What an operator may still send at is often said by a frontier: all times at or
after one of several that cannot be compared. A `CapabilitySet` is that frontier,
held: an antichain of capabilities, which moves on with `downgrade`.

Source: timely-dataflow `dataflow/operators/capability.rs`; a refused downgrade
leaves the set as it was, here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pointstamp.dataflow.capability import Capability, CapabilityCounts
from pointstamp.errors import CapabilityError
from pointstamp.progress.antichain import Antichain


class CapabilitySet:
    """A set of capabilities: the right to send at any time at or after one of theirs.

    Parameters
    ----------
    capabilities : iterable of Capability
        To be in it from the start; the set owns them from then on.

    Examples
    --------
    An operator that lets its output follow its input's frontier:

    >>> import pointstamp as ps
    >>> def follow(capability, info):
    ...     held = ps.CapabilitySet([capability])
    ...     def logic(input, output):
    ...         for time, batch in input:
    ...             with held.delayed(time.time + 1) as later:
    ...                 output.session(later).give_batch(batch)
    ...         held.downgrade(input.frontier)
    ...     return logic
    >>> def build(scope):
    ...     return scope.to_stream("ab").unary_frontier(ps.Pipeline(), "Follow", follow)
    >>> ps.testing.collect(build)
    [(1, 'a'), (1, 'b')]
    """

    __slots__ = ("_capabilities", "_counts")

    def __init__(self, capabilities: Iterable[Capability] = ()) -> None:
        self._capabilities: list[Capability] = []
        self._counts: CapabilityCounts | None = None
        """Of the output that they are for; None until there was one."""
        for capability in capabilities:
            self.insert(capability)

    @property
    def elements(self) -> list[Any]:
        """The times of its capabilities, no two of which are ordered."""
        return [capability.time for capability in self._capabilities]

    def less_equal(self, time: Any) -> bool:
        """Whether it allows to send at `time`."""
        return self._before(time) is not None

    def insert(self, capability: Capability) -> None:
        """Add `capability`, which the set owns from now on, and drop what is then superfluous.

        Raises
        ------
        CapabilityError
            If it was dropped, or is for another output than the others.
        """
        if not isinstance(capability, Capability):
            raise CapabilityError(
                f"a CapabilitySet holds capabilities, and was given {capability!r} "
                f"({type(capability).__name__}); retain() one from what was received"
            )
        capability.check("join a CapabilitySet", self._counts)
        self._counts = capability._counts
        before = self._before(capability.time)
        if before is not None:
            if before is not capability:
                capability.drop()
            return
        less_equal = self._counts.timestamp.less_equal
        after = [held for held in self._capabilities if less_equal(capability.time, held.time)]
        self._capabilities = [held for held in self._capabilities if held not in after]
        self._capabilities.append(capability)
        _drop(after)

    def delayed(self, time: Any) -> Capability:
        """A capability for `time`, of the caller's own.

        Raises
        ------
        CapabilityError
            If no capability here is for that time or an earlier one.
        """
        before = self._before(time)
        if before is None:
            raise self._refusal("delay to", [time])
        return before.delayed(time)

    def downgrade(self, frontier: Any) -> None:
        """Keep the right to send at or after the times of `frontier` only.

        Parameters
        ----------
        frontier : Frontier, Probe, CapabilitySet or iterable of times
            Of none, everything is dropped.

        Raises
        ------
        CapabilityError
            If it has a time that the set does not allow. The set is as it was.
        """
        times = _times(frontier)
        if not self.try_downgrade(times):
            raise self._refusal("downgrade to", times)

    def try_downgrade(self, frontier: Any) -> bool:
        """Do the same where it is allowed; whether it was. If not, the set is as it was."""
        times = _times(frontier)
        if not all(map(self.less_equal, times)):
            return False
        going = {capability.time: capability for capability in self._capabilities}
        # One for a time that stays is kept: making another would be reported for nothing.
        least = self._least(times)
        kept = [going.pop(time) if time in going else self.delayed(time) for time in least]
        self._capabilities = kept
        _drop(going.values())
        return True

    def drop(self) -> None:
        """Let go of all of them."""
        capabilities, self._capabilities = self._capabilities, []
        _drop(capabilities)

    def _before(self, time: Any) -> Capability | None:
        """One that allows to send at `time`."""
        if self._counts is None:
            return None
        timestamp = self._counts.timestamp
        time = timestamp.check(time)
        for capability in self._capabilities:
            if timestamp.less_equal(capability.time, time):
                return capability
        return None

    def _least(self, times: list[Any]) -> Antichain:
        """Those of `times` that no other of them comes before."""
        if self._counts is None:
            return Antichain(lambda a, b: False)
        timestamp = self._counts.timestamp
        return Antichain(timestamp.less_equal, map(timestamp.check, times))

    def _refusal(self, what: str, times: list[Any]) -> CapabilityError:
        of = "" if self._counts is None else f" of operator {self._counts.operator!r}"
        missing = [time for time in times if not self.less_equal(time)]
        return CapabilityError(
            f"a CapabilitySet{of} cannot {what} {', '.join(map(repr, missing))}: it has "
            f"capabilities for {self.elements}, none of which is at or before"
        )

    def __iter__(self) -> Iterator[Capability]:
        return iter(list(self._capabilities))

    def __len__(self) -> int:
        return len(self._capabilities)

    def __enter__(self) -> CapabilitySet:
        return self

    def __exit__(self, *exception: object) -> None:
        self.drop()

    def __repr__(self) -> str:
        return f"CapabilitySet({self.elements})"


def _times(frontier: Any) -> list[Any]:
    return list(getattr(frontier, "elements", frontier))


def _drop(capabilities: Iterable[Capability]) -> None:
    for capability in capabilities:
        capability.drop()
