"""Stash: what has come of each time, until nothing more of it can come.

The most frequent form of an operator that waits: keep the batches of a time with a
capability for it, and answer once when the time is complete. A stash holds both, and gives
them out least time first, each time once.

Source: the `stash` of timely-dataflow's examples of `unary_frontier`; there it is a
`HashMap` that is searched at each activation, here a notificator finds what is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.dataflow.capability import Capability, InputCapability

if TYPE_CHECKING:
    from pointstamp.dataflow.handles import Input
    from pointstamp.dataflow.operator import OperatorInfo

V = TypeVar("V")


class Stash(Generic[V]):
    """Values by time, each held until no input of the operator can bring more of its time.

    Made in the `build` of an operator that sees frontiers; iterating gives (capability,
    value) of each time that is complete now, and drops the capability behind it.

    Parameters
    ----------
    info : OperatorInfo
        Of the operator that makes it.
    make : callable, optional
        Makes the value of a time when the first of it comes. The default is an empty list;
        of an operator with several inputs, one for each of them. Where the run has a
        `memory_limit`, those are sequences with `append`, `extend` and `clear`, of which
        what does not fit is on disk: iterating reads one batch at a time.
    n_outputs : int
        For how many of the operator's outputs a capability is held; see `by_output`.
    early : bool
        Whether a time is given out as soon as all *before* it are complete. Then more of it
        may come, and is kept anew.

    Examples
    --------
    >>> import collections
    >>> import pointstamp as ps
    >>> def word_count(capability, info):
    ...     stash = ps.Stash(info)
    ...     def logic(input, output):
    ...         stash.take(input)
    ...         for capability, batches in stash:
    ...             counts = collections.Counter(word for batch in batches for word in batch)
    ...             output.session(capability).give_many(counts.items())
    ...     return logic
    >>> def build(scope):
    ...     return scope.to_stream("abca").unary_frontier(ps.Exchange(), "WordCount", word_count)
    >>> ps.testing.collect(build, workers=2)
    [(0, ('a', 4)), (0, ('b', 2)), (0, ('c', 2))]
    """

    def __init__(
        self,
        info: OperatorInfo,
        make: Callable[[], V] | None = None,
        *,
        n_outputs: int = 1,
        early: bool = False,
    ) -> None:
        self._notificator = info.notificator(early=early)
        n_inputs = len(info.frontiers)
        self._by_input = n_inputs > 1
        new_batches = info.new_batches
        self._make: Callable[[], Any] = make or (
            (lambda: [new_batches() for _ in range(n_inputs)]) if self._by_input else new_batches
        )
        self._outputs = range(1, n_outputs)
        self._values: dict[Any, V] = {}
        self._more: dict[Any, list[Capability]] = {}
        """By time: the capabilities for the outputs after the first."""

    def at(self, held: InputCapability | Capability, time: Any = None) -> V:
        """The value of the time of what was received, or of a later `time`."""
        time = held.time if time is None else time
        if time not in self._values:
            self._notificator.notify_at(held.delayed(time))
            if self._outputs:
                assert isinstance(held, InputCapability)
                self._more[time] = [held.delayed(time, output) for output in self._outputs]
            self._values[time] = self._make()
        return self._values[time]

    def add(self, held: InputCapability | Capability, batch: Any, time: Any = None) -> None:
        """Append a batch to the value of its time, where that is a list."""
        self.at(held, time).append(batch)  # type: ignore[attr-defined]  # as is said above

    def take(self, *inputs: Input) -> None:
        """Append all that has come at the inputs, where values are lists (of all inputs)."""
        for number, input_ in enumerate(inputs):
            for time, batch in input_:
                value: Any = self.at(time)
                (value[number] if self._by_input else value).append(batch)

    def times(self) -> list[Any]:
        """Those of which something is held."""
        return list(self._values)

    def items(self) -> Iterator[tuple[Any, V]]:
        """(time, value) of all that is held."""
        return iter(self._values.items())

    def __iter__(self) -> Iterator[tuple[Capability, V]]:
        """(capability, value) of each time that is complete now, least first."""
        for capability in self._notificator:
            with capability:
                yield capability, self._values.pop(capability.time)

    def by_output(self) -> Iterator[tuple[list[Capability], V]]:
        """The same with a list of capabilities, one for each output."""
        for capability, value in self:
            capabilities = [capability, *self._more.pop(capability.time, ())]
            yield capabilities, value
            for other in capabilities:
                other.drop()

    def __len__(self) -> int:
        """How many times are held."""
        return len(self._values)


def in_memory(batches: Any) -> list[Any]:
    """What a stash has given, as a list that may be taken apart; what was on disk is read.

    >>> in_memory([1, 2])
    [1, 2]
    """
    if isinstance(batches, list):
        return batches
    found = list(batches)
    batches.clear()
    return found
