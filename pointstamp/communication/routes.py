"""Which worker is connected to which where machines share connections; see `relayed_link`."""

from __future__ import annotations

from collections.abc import Sequence

N_WORDS = 2
"""How many words each worker says to each other one before it may go: GOODBYE and RECEIVED."""


class Routes:
    """Which worker is connected to which, where each two machines share one connection.

    Parameters
    ----------
    index : int
        The worker whose view this is.
    machines : sequence of int
        By worker, a number of its machine; the same on every worker.

    Examples
    --------
    Two machines of two workers: 0 and 1, 2 and 3.

    >>> [Routes(worker, [0, 0, 2, 2]).neighbours for worker in range(4)]
    [[1], [0, 3], [3], [1, 2]]
    >>> Routes(0, [0, 0, 2, 2]).via(2), Routes(1, [0, 0, 2, 2]).via(2)
    (1, 3)
    """

    def __init__(self, index: int, machines: Sequence[int]) -> None:
        self.index = index
        self.machines = list(machines)
        self._members: dict[int, list[int]] = {}
        for worker, machine in enumerate(machines):
            self._members.setdefault(machine, []).append(worker)
        self._places = {machine: place for place, machine in enumerate(self._members)}
        own = machines[index]
        self.members = self._members[own]
        """The workers of this machine."""
        self.neighbours = sorted(
            {
                *(peer for peer in self.members if peer != index),
                *(
                    self._holder(other, own)
                    for other in self._members
                    if other != own and self._holder(own, other) == index
                ),
            }
        )
        """The workers to which this one is connected."""
        self.to_come = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words from other workers have yet to come by its link."""
        self.to_go = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words for other workers have yet to go by its link."""
        self._count()

    def _holder(self, machine: int, other: int) -> int:
        """The worker of `machine` that holds its connection to `other`."""
        members = self._members[machine]
        # By the sum, so that with as many machines as workers each of them has about one.
        return members[(self._places[machine] + self._places[other]) % len(members)]

    def path(self, source: int, target: int) -> list[int]:
        """The workers that a message from `source` to `target` visits, in order, both included."""
        here, there = self.machines[source], self.machines[target]
        if here == there:
            return [source, target]
        visited = [source, self._holder(here, there), self._holder(there, here), target]
        return list(dict.fromkeys(visited))

    def via(self, target: int) -> int:
        """The neighbour to which a message for `target` goes."""
        return self.path(self.index, target)[1]

    def _count(self) -> None:
        """Count the words that will pass here, of which both ends are not on one link."""
        for other, members in self._members.items():
            if other == self.machines[self.index]:
                continue
            for here in self.members:
                for there in members:
                    self._count_path(self.path(here, there))

    def _count_path(self, path: list[int]) -> None:
        if len(path) == 2 or self.index not in path:
            return
        at = path.index(self.index)
        for place in (at - 1, at + 1):
            if 0 <= place < len(path):
                # As many in each direction, as the way back is the same.
                self.to_come[path[place]] += N_WORDS
                self.to_go[path[place]] += N_WORDS

    @property
    def is_done(self) -> bool:
        """Whether nothing has to pass here any more."""
        return not any(self.to_come.values()) and not any(self.to_go.values())
