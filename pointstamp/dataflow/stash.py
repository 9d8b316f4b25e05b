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

from pointstamp.dataflow.stash_core import StashCore

if TYPE_CHECKING:
    from pointstamp.dataflow.capability import Capability, InputCapability
    from pointstamp.dataflow.operator import OperatorInfo

V = TypeVar("V")


class Stash(StashCore, Generic[V]):
    """Values by time, each held until its time is complete at the operator's inputs.

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

    if TYPE_CHECKING:

        def __init__(
            self,
            info: OperatorInfo,
            make: Callable[[], V] | None = None,
            *,
            n_outputs: int = 1,
            early: bool = False,
        ) -> None: ...

        def at(self, held: InputCapability | Capability, time: Any = None) -> V:
            """The value of the time of what was received, or of a later `time`."""

        def items(self) -> Iterator[tuple[Any, V]]:
            """(time, value) of all that is held."""

        def by_output(self) -> Iterator[tuple[list[Capability], V]]:
            """(a capability for each output, value) of each complete time, least first."""

    def __iter__(self) -> Iterator[tuple[Capability, V]]:
        """(capability, value) of each time that is complete now, least first."""
        while (capability := self.next_complete()) is not None:
            with capability:
                yield capability, self.value


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
