"""A scope and its operators, presented to its parent as one operator.

Theory of operation
-------------------
Each worker has an instance of every scope. An instance holds a tracker with the
counts of all workers, as far as it knows them: its own operators' reports count
at once, those of its peers when their batch arrives. Batches of one worker
arrive in order, so what an instance knows is at any moment, for each worker, all
that this worker reported up to some moment. That is what makes it safe: if every
report is right when it is made, then so is every sum of such beginnings.

In demand mode a worker holds its changes back while they cannot advance anyone's
frontier: until one of them removes a pointstamp that nothing earlier and nothing
upstream covers. That this cannot make all workers wait for each other is seen
at the earliest pointstamp (by time, then by place along the streams) that is
held back: before it all counts agree, so nothing covers it, so it is sent.

The world outside is child 0: its outputs are the scope's inputs. What enters is
consumed outside and produced inside, in one report, exchanged among the
instances and passed up when known to all. What leaves is produced inside and
counted outside; if it could come back, it is still held against the scope's own
inputs until the parent's next push, which is its receipt.

Rules
-----
1. A round reads as `pull_internal_progress`: propagate, visit, propagate, share.
2. A child is visited at most once per round, after a propagation that counted
   its last report. Children are visited in order, so that records travel down a
   chain of operators in one round.
3. All updates of this worker pass through `_report`, all of others through
   `accept`. Nothing else touches the tracker, but for child 0's capabilities.
4. The instance never sees a worker: what it wants sent is given to `share`.

Source: timely-dataflow `progress/subgraph.rs`; the Naiad paper (SOSP 2013),
section 3.3. That reports count at once, and that the outside is excluded from
what a nested scope is told, are departures of ours.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from pointstamp.errors import BuildError
from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import (
    Changes,
    Interest,
    Operate,
    Progress,
    Summaries,
)
from pointstamp.progress.reachability import Tracker
from pointstamp.progress.timestamp import (
    SAME,
    Outside,
    Refinement,
    Timestamp,
    summary_less_equal,
)
from pointstamp.progress.topology import Edge, Node, Topology

Updates = list[tuple[tuple[int, Any], int]]
"""((location, time), change): what instances of a scope send each other."""


class Subgraph:
    """The instance of one scope on one worker; speaks `Operate` with its parent.

    Parameters
    ----------
    name : str
        For messages to people.
    timestamp, outer : Timestamp
        The times inside, and those of the parent (the same for the root).
    children : sequence of Operate
        Operators 1, 2, ... of the scope; 0 is the outside.
    edges : sequence of Edge
        The streams between them.
    inputs, outputs : int
        How many streams enter and leave.
    peers : int
        How many workers have an instance.
    eager : bool
        Whether every change is sent at once, rather than on demand.
    entered : sequence of ChangeBatch
        Per scope input: inner times of the records that entered; channels fill it.
    share : callable
        Takes the changes that the peers are to hear of, one batch at a time.
    wake : callable
        Called when the instance has something to do and should be visited.
    """

    local = False
    wants_outside = True

    def __init__(
        self,
        name: str,
        timestamp: Timestamp,
        outer: Timestamp,
        children: Sequence[Operate],
        edges: Sequence[Edge],
        *,
        inputs: int = 0,
        outputs: int = 0,
        peers: int = 1,
        eager: bool = False,
        entered: Sequence[ChangeBatch[Any]] = (),
        share: Callable[[Updates], None] = lambda updates: None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        refinement = timestamp.refines(outer)
        if refinement is None:
            raise BuildError(
                f"scope {name!r} with times of {timestamp!r} cannot sit in a scope with times of "
                f"{outer!r}: the inner type must say how it refines the outer one"
            )
        self.name = name
        self.timestamp = timestamp
        self.outer = outer
        self.refinement: Refinement = refinement
        self.inputs = inputs
        self.outputs = outputs
        self.frontier_interest: Sequence[Interest] = ()
        self.children = children
        self.edges = list(edges)
        self.peers = peers
        self.eager = eager
        self._entered = entered
        self._share_updates = share
        self._wake = wake
        self._next: list[int] = []
        self._queued: set[int] = set()
        self._round: list[int] | None = None
        self._position = 0
        self._holders: set[int] = set()
        self._incomplete: set[int] = set()
        self._held_back: ChangeBatch[tuple[int, Any]] = ChangeBatch()
        self._left: list[tuple[int, Any, int]] = []
        self._unreceipted: list[tuple[int, Any, int]] = []
        self._progress = Progress(
            [ChangeBatch() for _ in range(outputs)],
            [ChangeBatch() for _ in range(inputs)],
            [ChangeBatch() for _ in range(outputs)],
            True,
        )
        self._output_capabilities = [MutableAntichain(outer) for _ in range(outputs)]
        self._inboxes: list[list[ChangeBatch[Any]]] = [[]]
        self._views: dict[int, Tracker] = {}
        self._initial: list[Changes] = [()]
        self._loops: set[int] = set()

    # Setting up, in the order of the calls.

    def internal_summary(self) -> tuple[Summaries, Changes]:
        """Ask all children, lay out the graph, and sum it up for the parent."""
        nodes = [Node("outside", self.outputs, self.inputs, ())]
        for child in self.children:
            summaries, capabilities = child.internal_summary()
            nodes.append(Node(child.name, child.inputs, child.outputs, summaries))
            self._initial.append(capabilities)
        self.topology = Topology(self.timestamp, nodes, self.edges)
        self.topology.check_cycles()
        to_outputs = self.topology.summaries_to_outputs()
        self._tracker = Tracker(self.topology, to_outputs)
        self._count_initial_capabilities(self._tracker)
        self._tracker.propagate()
        self._collect_output_changes()
        self.frontier_interest = self._derive_interest()
        initial = [ChangeBatch(changes.drain()) for changes in self._progress.internal]
        return self._summarize(to_outputs), initial

    def set_external_summary(self, summaries: Summaries, capabilities: Changes) -> None:
        """Close the paths that run outside, then tell all children of theirs."""
        for output, row in enumerate(summaries):
            for input_, paths in enumerate(row):
                for path in paths:
                    outside = Outside(self.refinement, path, self.timestamp.identity)
                    self._tracker.follow_outside(output, input_, outside)
                    self._loops.add(output)
        self._inboxes.extend(
            [ChangeBatch() for _ in range(child.inputs)] for child in self.children
        )
        looping = self.topology.nodes_in_loops()
        for node, child in enumerate(self.children, start=1):
            if child.wants_outside and node in looping:
                self._make_view(node)
        for port, changes in enumerate(capabilities):
            self._enter_capabilities(port, changes)
        self._deliver_frontiers(wake=False)
        for node, child in enumerate(self.children, start=1):
            self._set_child_external_summary(node, child)
            self.activate(node)

    # A visit.

    def push_external_progress(self, changes: Changes) -> None:
        """Take in new frontiers outside, and the receipt for what left."""
        for port, batch in enumerate(changes):
            self._enter_capabilities(port, batch)
        for output, time, count in self._unreceipted:
            self._update(self.topology.target(0, output), time, -count)
        self._unreceipted.clear()

    def pull_internal_progress(self) -> Progress:
        """One round: hear, run, hear again, tell."""
        self._report_entered()
        self._deliver_frontiers()
        self._visit_children()
        self._deliver_frontiers()
        self._collect_output_changes()
        self._share()
        # Only now: what peers say has left between two visits is in no report before this.
        self._unreceipted, self._left = self._left, []
        return self._progress._replace(active=bool(self._next or self._unreceipted))

    def accept(self, updates: Updates) -> None:
        """Count what a peer reported."""
        for (location, time), change in updates:
            self._apply(location, time, change)
        self._wake()

    def activate(self, child: int) -> None:
        """Ask for a visit of `child`: in this round if its turn is still to come."""
        if child in self._queued:
            return
        self._queued.add(child)
        if self._round is not None and child > self._position:
            heapq.heappush(self._round, child)
            return
        self._next.append(child)
        if self._round is None and len(self._next) == 1:
            self._wake()

    @property
    def holds_capability(self) -> bool:
        """Whether a moving frontier may free a capability here, or changes held back."""
        return bool(self._holders) or bool(self._held_back)

    @property
    def complete(self) -> bool:
        """Whether nothing is outstanding inside, on any worker, as far as known."""
        return self._tracker.is_idle() and not self._incomplete and not self._held_back

    def frontier(self, node: int, port: int) -> list[Any]:
        """The minimal times that may still come at an input of child `node`."""
        return self._tracker.frontier(self.topology.target(node, port))

    def outstanding(self) -> list[tuple[str, Any, int]]:
        """(place in words, time, count) of every pointstamp that is known."""
        return [
            (self.topology.describe(location), time, count)
            for location, time, count in self._tracker.outstanding()
        ]

    # Setting up.

    def _count_initial_capabilities(self, tracker: Tracker, without: int = 0) -> None:
        for node, child in enumerate(self.children, start=1):
            if node == without and not child.local:
                continue
            # Every worker's instance starts alike, so a local child's are counted
            # for all of them: nobody has to wait for a first report to be safe.
            owners = (self.peers - (node == without)) if child.local else 1
            for port, batch in enumerate(self._initial[node]):
                location = self.topology.source(node, port)
                for time, count in batch:
                    tracker.update(location, time, count * owners)

    def _summarize(self, to_outputs: list[list[tuple[int, Any]]]) -> Summaries:
        rows = []
        for input_ in range(self.inputs):
            row = [Antichain(summary_less_equal) for _ in range(self.outputs)]
            for output, summary in to_outputs[self.topology.source(0, input_)]:
                row[output].insert(self.refinement.summarize(summary))
            rows.append(row)
        return rows

    def _derive_interest(self) -> list[Interest]:
        """Per input, the greatest interest of the children's inputs that it can reach.

        Changes that are held back may be set free by a frontier outside.
        """
        holds_back = self.peers > 1 and not self.eager
        least = Interest.IF_CAPABILITY if holds_back else Interest.NEVER
        wanted = []
        for input_ in range(self.inputs):
            interest = least
            for location in self.topology.reachable_from(self.topology.source(0, input_)):
                node, port, is_target = self.topology.ports[location]
                if node and is_target:
                    child_interest = self.children[node - 1].frontier_interest[port]
                    interest = max(interest, Interest(child_interest))
            wanted.append(interest)
        return wanted

    def _make_view(self, node: int) -> None:
        """A second tracker for a child in a loop, without what it holds itself."""
        view = Tracker(self.topology)
        self._count_initial_capabilities(view, without=node)
        self._views[node] = view

    def _set_child_external_summary(self, node: int, child: Operate) -> None:
        if node in self._views:
            summaries: Summaries = self.topology.summaries_around(node)
        else:
            summaries = [
                [Antichain(summary_less_equal) for _ in range(child.inputs)]
                for _ in range(child.outputs)
            ]
        child.set_external_summary(summaries, self._inboxes[node])
        for batch in self._inboxes[node]:
            batch.drain()

    # The steps of a round.

    def _report_entered(self) -> None:
        for port, batch in enumerate(self._entered):
            for time, count in batch.drain():
                location = self.topology.source(0, port)
                self._report(location, time, count)
                self._report_produced(location, time, count)

    def _deliver_frontiers(self, *, wake: bool = True) -> None:
        """Propagate, and put what changed where the children's next push takes it."""
        self._tracker.propagate()
        self._deliver(self._tracker.drain_frontier_changes(), None, wake)
        for node, view in self._views.items():
            view.propagate()
            self._deliver(view.drain_frontier_changes(), node, wake)

    def _deliver(self, changes: Updates, viewer: int | None, wake: bool) -> None:
        for (location, time), change in changes:
            node, port, _ = self.topology.ports[location]
            if node == 0 or (node in self._views and viewer is None):
                continue
            if viewer is not None and node != viewer:
                continue
            child = self.children[node - 1]
            interest = child.frontier_interest[port]
            if interest == Interest.NEVER and child.local:
                continue
            self._inboxes[node][port].update(time, change)
            if wake and (
                interest == Interest.ALWAYS
                or (interest == Interest.IF_CAPABILITY and child.holds_capability)
            ):
                self.activate(node)

    def _visit_children(self) -> None:
        if not self._next:
            return
        self._round, self._next = self._next, []
        heapq.heapify(self._round)
        while self._round:
            self._position = heapq.heappop(self._round)
            self._queued.discard(self._position)
            self._visit(self._position)
        self._round = None

    def _visit(self, node: int) -> None:
        child = self.children[node - 1]
        child.push_external_progress(self._inboxes[node])
        progress = child.pull_internal_progress()
        self._take_report(node, child, progress)
        self._note_state(node, child)
        if progress.active:
            self.activate(node)

    def _take_report(self, node: int, child: Operate, progress: Progress) -> None:
        topology, shared = self.topology, child.local
        for port, batch in enumerate(progress.internal):
            if batch:
                location = topology.source(node, port)
                for time, change in batch.drain():
                    self._report(location, time, change, shared=shared, own=node)
        for port, batch in enumerate(progress.consumed):
            if batch:
                location = topology.target(node, port)
                for time, count in batch.drain():
                    self._report(location, time, -count, shared=shared)
        for port, batch in enumerate(progress.produced):
            if batch:
                location = topology.source(node, port)
                for time, count in batch.drain():
                    self._report_produced(location, time, count, shared=shared)

    def _note_state(self, node: int, child: Operate) -> None:
        if child.holds_capability and any(child.frontier_interest):
            self._holders.add(node)
        else:
            self._holders.discard(node)
        if child.complete:
            self._incomplete.discard(node)
        else:
            self._incomplete.add(node)

    def _collect_output_changes(self) -> None:
        """Turn what inner pointstamps imply at the outputs into capabilities held."""
        for output, batch in enumerate(self._tracker.output_changes):
            held = self._output_capabilities[output]
            for time, change in batch.drain():
                outer_time = self.refinement.to_outer(time)
                self._progress.internal[output].extend(held.update(outer_time, change))

    def _share(self) -> None:
        """Give out what was held back, if somebody needs it."""
        if self._held_back and (self.eager or any(map(self._is_needed, self._held_back))):
            self._share_updates(self._held_back.drain())

    def _is_needed(self, update: tuple[tuple[int, Any], int]) -> bool:
        (location, time), change = update
        # What crosses the border of the scope decides frontiers that this
        # tracker does not know, so it is always needed.
        if self.topology.ports[location][0] == 0:
            return True
        return change < 0 and not self._tracker.is_covered(location, time)

    # The only places where counts change.

    def _report_produced(self, source: int, time: Any, count: int, *, shared: bool = True) -> None:
        for target, copies in self.topology.consumers[source]:
            self._report(target, time, count * copies, shared=shared)

    def _report(
        self, location: int, time: Any, change: int, *, shared: bool = True, own: int = 0
    ) -> None:
        """Count a change on this worker, and note it for the peers if it is news."""
        self._apply(location, time, change, own)
        if shared and self.peers > 1:
            self._held_back.update((location, time), change)

    def _apply(self, location: int, time: Any, change: int, own: int = 0) -> None:
        node, port, is_target = self.topology.ports[location]
        if node:
            self._update(location, time, change, own)
        elif is_target:
            self._leave(port, time, change)
        else:
            self._progress.consumed[port].update(self.refinement.to_outer(time), change)

    def _leave(self, output: int, time: Any, count: int) -> None:
        self._progress.produced[output].update(self.refinement.to_outer(time), count)
        if output in self._loops:
            self._update(self.topology.target(0, output), time, count)
            self._left.append((output, time, count))

    def _enter_capabilities(self, port: int, changes: ChangeBatch[Any]) -> None:
        location = self.topology.source(0, port)
        for time, change in changes.drain():
            self._update(location, self.refinement.to_inner(time), change)

    def _update(self, location: int, time: Any, change: int, own: int = 0) -> None:
        self._tracker.update(location, time, change)
        for node, view in self._views.items():
            if node != own:
                view.update(location, time, change)


def root(
    name: str,
    timestamp: Timestamp,
    children: Sequence[Operate],
    edges: Sequence[Edge],
    **options: Any,
) -> Subgraph:
    """A scope that nothing holds, set up and ready for its first visit."""
    subgraph = Subgraph(name, timestamp, timestamp, children, edges, **options)
    assert subgraph.refinement == SAME
    subgraph.internal_summary()
    subgraph.set_external_summary([], [])
    return subgraph
