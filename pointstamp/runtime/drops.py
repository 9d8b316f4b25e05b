"""That all workers drop the same dataflows at the same point of what they do.

Workers build and drop in one order, the same on each. A worker that drops does not
wait for the others: it reports what it dropped, and how many dataflows it had
built before. Each compares what its peers report with what it does itself, drop by drop.
This holds what is not compared yet; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pointstamp.errors import StructureError


class DataflowDrop(NamedTuple):
    """One drop, and where in the order of a worker's doings it stands."""

    n_built: int
    """How many dataflows were built before."""
    number: int
    """Of the dataflow that was dropped."""
    name: str
    was_complete: bool = False
    """On that worker, so that it becomes complete on all."""

    def is_same(self, other: DataflowDrop) -> bool:
        """Whether another worker has dropped the same, be it complete there or not."""
        return self[:3] == other[:3]

    def __str__(self) -> str:
        return f"dataflow {self.number} ({self.name!r}) after {self.n_built} were built"


class Drops:
    """What worker `index` and its peers dropped, in order.

    >>> drops = Drops(0, peers=2)
    >>> drops.receive(1, DataflowDrop(2, 1, "odd"))
    >>> [(peer, drop.name) for peer, drop in drops.ahead()]
    [(1, 'odd')]
    >>> drops.note(DataflowDrop(2, 1, "odd"))
    >>> list(drops.ahead())
    []
    """

    def __init__(self, index: int, peers: int) -> None:
        self._index = index
        self._peers = peers
        self.n_dropped = 0
        self._own: dict[int, DataflowDrop] = {}
        self._n_received: dict[int, int] = {}
        self._received: dict[tuple[int, int], DataflowDrop] = {}
        self._n_compared: dict[int, int] = {}

    def note(self, drop: DataflowDrop) -> None:
        """This worker has dropped one more."""
        which = self.n_dropped
        self.n_dropped += 1
        if self._peers == 1:
            return
        self._own[which] = drop
        for peer in list(self._n_received):
            if (peer, which) in self._received:
                self._compare(peer, which, self._received.pop((peer, which)))

    def receive(self, peer: int, drop: DataflowDrop) -> None:
        """A peer has dropped one more."""
        which = self._n_received.get(peer, 0)
        self._n_received[peer] = which + 1
        if which in self._own:
            self._compare(peer, which, drop)
        else:
            self._received[peer, which] = drop

    def ahead(self) -> Iterator[tuple[int, DataflowDrop]]:
        """What peers have dropped, and this worker has not, or not yet."""
        for (peer, _), drop in self._received.items():
            yield peer, drop

    def _compare(self, peer: int, which: int, theirs: DataflowDrop) -> None:
        own = self._own[which]
        if not own.is_same(theirs):
            raise StructureError(
                f"workers {self._index} and {peer} dropped different dataflows as number {which} "
                f"of those that they dropped: here {own}, at worker {peer} {theirs}; all workers "
                "must build and drop the same dataflows in the same order"
            )
        self._n_compared[which] = self._n_compared.get(which, 0) + 1
        if self._n_compared[which] == self._peers - 1:
            del self._own[which], self._n_compared[which]
