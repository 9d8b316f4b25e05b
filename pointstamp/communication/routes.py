"""Which worker is connected to which where machines share connections; see `relayed_link`.

Workers and relays are numbered together: a relay's number is behind those of all workers, so
that nothing that is by worker has to know of relays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

N_WORDS = 2
"""How many words each worker says to each other one before it may go: GOODBYE and RECEIVED."""

_Address = TypeVar("_Address")


def machines_of_hosts(addresses: Sequence[tuple[str, int]]) -> list[int]:
    """By worker, the first one with the same host.

    >>> machines_of_hosts([("one", 1), ("two", 1), ("one", 2)])
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    return [first.setdefault(host, worker) for worker, (host, _) in enumerate(addresses)]


class Routes:
    """Which worker is connected to which, where each two machines share one connection.

    A machine with several workers has a relay, which holds its connections to the other
    machines; the only worker of a machine holds them itself.

    Parameters
    ----------
    number : int
        The worker or relay whose view this is.
    machines : sequence of int
        By worker, a number of its machine; the same on every worker.

    Examples
    --------
    Two machines of two workers, 0 and 1, 2 and 3, with the relays 4 and 5.

    >>> [Routes(number, [0, 0, 2, 2]).neighbours for number in range(6)]
    [[1, 4], [0, 4], [3, 5], [2, 5], [0, 1, 5], [2, 3, 4]]
    >>> Routes(0, [0, 0, 2, 2]).path(0, 2)
    [0, 4, 5, 2]
    """

    def __init__(self, number: int, machines: Sequence[int]) -> None:
        self.number = number
        self.machines = list(machines)
        self._members: dict[int, list[int]] = {}
        for worker, machine in enumerate(machines):
            self._members.setdefault(machine, []).append(worker)
        has_others = len(self._members) > 1
        self._gates = {
            machine: len(machines) + place if has_others and len(members) > 1 else members[0]
            for place, (machine, members) in enumerate(self._members.items())
        }
        """By machine, what holds its connections: a relay, or its only worker."""
        self._machine_of_relay = {
            gate: machine for machine, gate in self._gates.items() if gate >= len(machines)
        }
        self.end = len(machines) + len(self._members)
        """Numbers are below this one."""
        self.is_relay = number >= len(machines)
        own = self._machine(number)
        self.members = self._members[own]
        """The workers of this machine."""
        gate = self._gates[own]
        self.relay = gate if gate in self._machine_of_relay else None
        """The relay of this machine; None if it has none."""
        self.starts_relay = self.relay is not None and number == self.members[0]
        """Whether this is the worker that starts it."""
        self.local = [
            near
            for near in (*self.members, *([] if self.relay is None else [self.relay]))
            if near != number
        ]
        """The neighbours that are of this machine."""
        others = [self._gates[machine] for machine in self._members if machine != own]
        self.neighbours = sorted([*self.local, *(others if number == gate else [])])
        """To what this worker, or relay, is connected."""
        self.to_come = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words from other workers have yet to come by its link."""
        self.to_go = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words for other workers have yet to go by its link."""
        self._count()

    def _machine(self, number: int) -> int:
        if number in self._machine_of_relay:
            return self._machine_of_relay[number]
        return self.machines[number]

    def name(self, number: int) -> str:
        """What a worker, or relay, is called in messages.

        >>> Routes(0, [0, 0, 2, 2]).name(2), Routes(0, [0, 0, 2, 2]).name(5)
        ('worker 2', "the relay of worker 2's machine")
        """
        if number not in self._machine_of_relay:
            return f"worker {number}"
        return f"the relay of worker {self.first_of(number)}'s machine"

    def first_of(self, number: int) -> int:
        """The worker itself, or that which starts the relay."""
        if number not in self._machine_of_relay:
            return number
        return self._members[self._machine_of_relay[number]][0]

    def with_relays(self, addresses: Sequence[_Address]) -> list[_Address]:
        """Where all are called: relays where the first worker of their machine would be."""
        return [*addresses, *(addresses[members[0]] for members in self._members.values())]

    def path(self, source: int, target: int) -> list[int]:
        """What a message from worker `source` to `target` visits, in order, both included."""
        here, there = self.machines[source], self.machines[target]
        if here == there:
            return [source, target]
        return list(dict.fromkeys([source, self._gates[here], self._gates[there], target]))

    def via(self, target: int) -> int:
        """The neighbour to which a message for worker `target` goes."""
        there = self.machines[target]
        if there == self._machine(self.number):
            return target
        if self.relay is not None and not self.is_relay:
            return self.relay
        return self._gates[there]

    def _count(self) -> None:
        """Count the words that will pass here, of which both ends are not on one link."""
        own = self._machine(self.number)
        for other, members in self._members.items():
            if other == own:
                continue
            for here in self.members:
                for there in members:
                    self._count_path(self.path(here, there))

    def _count_path(self, path: list[int]) -> None:
        if len(path) == 2 or self.number not in path:
            return
        at = path.index(self.number)
        for place in (at - 1, at + 1):
            if 0 <= place < len(path):
                # As many in each direction, as the way back is the same.
                self.to_come[path[place]] += N_WORDS
                self.to_go[path[place]] += N_WORDS

    @property
    def is_done(self) -> bool:
        """Whether nothing has to pass here any more."""
        return not any(self.to_come.values()) and not any(self.to_go.values())
