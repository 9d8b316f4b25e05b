"""What may still arrive where, from counts of what is outstanding.

The tracker of a scope is told how the counts of pointstamps change: records in
flight at targets, capabilities held at sources. From these it maintains, for
every location, the *implied* times: the minimal times that something outstanding
could still produce there. What changes in that is passed on along the steps of
the topology and nowhere else, so a change costs what it changes.

Rules
-----
1. `update` only notes a change; `propagate` brings everything up to date.
2. Per location there are two counted antichains: of the pointstamps themselves,
   and of the implied times, to which the frontier of the former contributes one
   count and every step from another location contributes its own.
3. Propagation takes the earliest changed time first, and adds up all changes of
   one time at one location before it passes them on. In a loop that lets go of a
   time, the change that removes its next round meets the one that would add it:
   without this order the two would chase each other around the loop for ever.

Source: timely-dataflow `progress/reachability.rs` (`Tracker`).
"""

from __future__ import annotations

import heapq
from typing import Any

from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.topology import Topology


class Tracker:
    """Counts pointstamps of one scope and maintains what they imply.

    >>> from pointstamp.progress.antichain import Antichain
    >>> from pointstamp.progress.timestamp import Int, summary_less_equal
    >>> from pointstamp.progress.topology import Edge, Node
    >>> later = [[Antichain(summary_less_equal, [Int.summary(1)])]]
    >>> graph = Topology(
    ...     Int,
    ...     [Node("outside", 0, 0, []), Node("a", 0, 1, []), Node("b", 1, 1, later),
    ...      Node("c", 1, 0, [[]])],
    ...     [Edge((1, 0), (2, 0)), Edge((2, 0), (3, 0))],
    ... )
    >>> tracker = Tracker(graph)
    >>> tracker.update(graph.source(1, 0), 5, +1)
    >>> tracker.propagate()
    >>> tracker.frontier(graph.target(3, 0))
    [6]
    """

    __slots__ = (
        "_implications",
        "_key",
        "_n_inside",
        "_natural",
        "_noted",
        "_pointstamps",
        "_pushed",
        "_to_outputs",
        "_work",
        "_work_changes",
        "output_changes",
        "topology",
    )

    def __init__(
        self, topology: Topology, to_outputs: list[list[tuple[int, Any]]] | None = None
    ) -> None:
        timestamp = topology.timestamp
        self.topology = topology
        self._key = timestamp.key
        self._natural = timestamp.natural
        n = len(topology.ports)
        self._pointstamps = [MutableAntichain(timestamp) for _ in range(n)]
        self._implications = [MutableAntichain(timestamp) for _ in range(n)]
        self._to_outputs = to_outputs
        self._noted: ChangeBatch[tuple[int, Any]] = ChangeBatch()
        self._pushed: ChangeBatch[tuple[int, Any]] = ChangeBatch()
        self._work: list[tuple[Any, int, Any]] = []
        self._work_changes: dict[tuple[int, Any], int] = {}
        self._n_inside = 0
        self.output_changes: list[ChangeBatch[Any]] = [
            ChangeBatch() for _ in range(topology.nodes[0].inputs)
        ]
        """Per scope output: changes in what pointstamps inside imply there."""

    def follow_outside(self, output: int, input_: int, summary: Any) -> None:
        """Add a path outside, from a scope output to a scope input.

        What is implied at its beginning already (initial capabilities are counted
        before the world outside is known) is passed on along it, too.
        """
        topology = self.topology
        topology.add_outside_step(output, input_, summary)
        for time in self._implications[topology.target(0, output)].frontier:
            reached = summary.results_in(time)
            if reached is not None:
                self._push(topology.source(0, input_), reached, 1)

    def update(self, location: int, time: Any, change: int) -> None:
        """Note that the count of (time, location) changes."""
        self._noted.update((location, time), change)

    def propagate(self) -> None:
        """Bring all implied times up to date with the noted changes."""
        if not self._noted and not self._work:
            return
        # Additions first, so that a capability that moves does not leave a gap
        # for the length of this loop, with a wave of changes that cancel.
        changes = self._noted.drain()
        for (location, time), change in changes:
            if change > 0:
                self._count(location, time, change)
        for (location, time), change in changes:
            if change < 0:
                self._count(location, time, change)
        self._spread()

    def drain_frontier_changes(self) -> list[tuple[tuple[int, Any], int]]:
        """((target, time), change) of every frontier change since the last call."""
        return self._pushed.drain()

    def frontier(self, location: int) -> list[Any]:
        """The minimal times that may still come at `location`."""
        return self._implications[location].frontier

    def pointstamps(self, location: int) -> MutableAntichain:
        """The counts of what is outstanding at `location` itself."""
        return self._pointstamps[location]

    def is_covered(self, location: int, time: Any) -> bool:
        """Whether pointstamps elsewhere, or earlier ones, keep `time` possible here.

        If so, nobody's frontier can advance by the removal of a pointstamp
        (time, location). Other counts of that same pointstamp do not cover it:
        each holder would wait for the others to let go first.
        """
        implied = self._implications[location]
        if implied.less_than(time):
            return True
        own = 1 if time in self._pointstamps[location].frontier else 0
        return implied.count(time) > own

    def is_idle(self) -> bool:
        """Whether nothing is outstanding inside the scope, after `propagate`.

        Pointstamps of node 0 are the parent's business and do not count.
        """
        return self._n_inside == 0

    def outstanding(self) -> list[tuple[int, Any, int]]:
        """All (location, time, count) that are not zero."""
        return [
            (location, time, count)
            for location, counts in enumerate(self._pointstamps)
            for time, count in counts
        ]

    def _count(self, location: int, time: Any, change: int) -> None:
        counts = self._pointstamps[location]
        is_inside = self.topology.ports[location][0] != 0
        held = len(counts)
        changes = counts.update(time, change)
        if is_inside:
            self._n_inside += len(counts) - held
        for changed, difference in changes:
            self._push(location, changed, difference)
            if is_inside and self._to_outputs is not None:
                for output, summary in self._to_outputs[location]:
                    reached = summary.results_in(changed)
                    if reached is not None:
                        self.output_changes[output].update(reached, difference)

    def _push(self, location: int, time: Any, change: int) -> None:
        place = (location, time)
        known = self._work_changes.get(place)
        if known is None:
            key = time if self._natural else self._key(time)
            heapq.heappush(self._work, (key, location, time))
            self._work_changes[place] = change
        else:
            self._work_changes[place] = known + change

    def _spread(self) -> None:
        work, changes = self._work, self._work_changes
        steps, ports = self.topology.steps, self.topology.ports
        while work:
            _, location, time = heapq.heappop(work)
            change = changes.pop((location, time))
            if not change:
                continue
            for moved, difference in self._implications[location].update(time, change):
                if ports[location][2]:
                    self._pushed.update((location, moved), difference)
                for to, summary in steps[location]:
                    reached = moved if summary is None else summary.results_in(moved)
                    if reached is not None:
                        self._push(to, reached, difference)
