# cython: boundscheck=False, wraparound=False
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
1. A round reads as `pull_internal_progress`: propagate, visit, propagate, share. What is held back
   is looked at once more between rounds, when peers report: peers do not wait for a round.
2. A child is visited after a propagation that counted its last report, once per round, and of
   one worker once more where only frontiers are left to be looked at. Children are visited in
   order, so that records travel down a chain of operators in one round.
3. All updates of this worker pass through `_report`, or `_report_number`, which does the same
   where times are numbers; all of others through `accept`. Nothing else touches the tracker,
   but for child 0's capabilities.
4. The instance never sees a worker: what it wants sent is given to `share`.

Source: timely-dataflow `progress/subgraph.rs`; the Naiad paper (SOSP 2013),
section 3.3. That reports count at once, and that the outside is excluded from
what is delivered to a nested scope, are departures of ours.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from pointstamp.errors import BuildError
from pointstamp.progress.accumulate import Accumulation, Updates
from pointstamp.progress.activation import NO_ACTIVATION, ActivatedScope, activation_of
from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import INTEGERS, PAIRS, ChangeBatch
from pointstamp.progress.operate import (
    Changes,
    CountObserver,
    Interest,
    Operate,
    ProgressReport,
    Summaries,
    new_changes,
    no_changes,
)
from pointstamp.progress.reachability import Tracker
from pointstamp.progress.scope_child import FrontierListener, ScopeChild
from pointstamp.progress.timestamp import SAME, Outside, Refinement, Timestamp
from pointstamp.progress.topology import Edge, Node, Topology
from pointstamp.progress.turns import Turns

_INTEGERS, _PAIRS = INTEGERS, PAIRS  # compiled, numbers of C

_NO_EDGES = array("q", [0])

# Stay empty, and are those of all scopes that need none: what many look at is in the cache.
_NO_VIEWS: dict[int, Tracker] = {}
_NONE_LEFT: list[tuple[int, Any, int]] = []


class Subgraph(ActivatedScope):
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
    observer : CountObserver, optional
        What gets each change of a count.
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
        entered: Sequence[ChangeBatch] = (),
        share: Callable[[Updates], None] = lambda updates: None,
        wake: Callable[[], None] = lambda: None,
        observer: CountObserver | None = None,
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
        self._is_same = refinement is SAME
        self._keeps_numbers = False
        """Whether times that are numbers are the same numbers outside, and counts cross the border
        as what they are; known when the paths outside are."""
        self.inputs = inputs
        self.outputs = outputs
        self.frontier_interest: Sequence[Interest] = ()
        self.children = children
        self._by_number = tuple([ScopeChild(n, of) for n, of in enumerate((None, *children))])
        """The children, after the world outside, with what a visit looks at."""
        self._ports: list[tuple[int, int, bool]] = []
        self._consumers: list[list[tuple[int, int]]] = []
        self._edges_of = _NO_EDGES
        """The same in an array, as `Topology` lays it out."""
        self._leads_out: list[bool] = []
        """Per source, whether records leave the scope from there."""
        self.edges = list(edges)
        self.peers = peers
        self.eager = eager
        self.entered = tuple(entered)
        self._share_updates = share
        self._activation = activation_of(wake)
        self._observer = observer
        self.n_changes = 0
        """How many changes of counts it has seen: as long as that moves, something goes on."""
        self._next = Turns()
        self._round = Turns()
        self._is_in_round = self._is_at_work = False
        self._position = 0
        self._n_holders = self._n_incomplete = 0
        self._held_back: ChangeBatch = ChangeBatch()
        self.accumulation: Accumulation | None = None
        """What is added up here for other workers, if this is an accumulator's."""
        self._left = self._unreceipted = _NONE_LEFT
        # Tuples: one object each, where a list is two; and those of no port are all the same one.
        self._consumed = tuple(new_changes(inputs))
        self._internal, self._produced = tuple(new_changes(outputs)), tuple(new_changes(outputs))
        reported = (self._internal, self._consumed, self._produced)
        self._idle_progress = ProgressReport(*reported, False)
        self._active_progress = ProgressReport(*reported, True)
        self._output_capabilities = tuple([MutableAntichain(outer) for _ in range(outputs)])
        self._listeners: tuple[FrontierListener | None, ...] = ()
        self._views = _NO_VIEWS
        self._initial: list[Changes] = [()]
        self._loops: set[int] = set()
        self.is_active = True
        """Whether the last report asked for another visit."""

    # Setting up, in the order of the calls.

    def internal_summary(self) -> tuple[Summaries, Changes]:
        """Ask all children, lay out the graph, and sum it up for the parent."""
        nodes = [Node("outside", self.outputs, self.inputs, ())]
        for known in self._by_number[1:]:
            child = known.operate
            summaries, capabilities = child.internal_summary()
            describe_way = getattr(child, "describe_way", None)
            nodes.append(Node(child.name, child.inputs, child.outputs, summaries, describe_way))
            self._initial.append(capabilities if any(capabilities) else ())  # most have none
            known.ask()
        self.topology = Topology(self.timestamp, nodes, self.edges)
        self._ports = self.topology.ports
        for known, first in zip(self._by_number, self.topology.first, strict=True):
            known.first = first
        self._consumers = self.topology.consumers
        self._edges_of = self.topology.consumers_side_by_side()
        self._leads_out = [
            any(self._ports[target][0] == 0 for target, _ in each) for each in self._consumers
        ]
        if self._observer is not None:
            self._observer.lay_out(self._ports)
        self.topology.check_cycles(self.name)
        to_outputs = self.topology.summaries_to_outputs()
        self._tracker = Tracker(self.topology, to_outputs)
        self._count_initial_capabilities(self._tracker)
        self._tracker.propagate()
        self._collect_output_changes()
        self.frontier_interest = self._derive_interest()
        initial = [ChangeBatch(changes.drain()) for changes in self._internal]
        return self.topology.summaries_across(to_outputs, self.refinement.summarize), initial

    def set_external_summary(self, summaries: Summaries, capabilities: Changes) -> None:
        """Close the paths that run outside, then set those of all children."""
        for output, row in enumerate(summaries):
            for input_, paths in row.items():
                for path in paths:
                    outside = Outside(self.refinement, path, self.timestamp.identity)
                    self._tracker.follow_outside(output, input_, outside)
                    self._loops.add(output)
                    self._left, self._unreceipted = [], []
        for known in self._by_number[1:]:
            known.inbox = (new_changes if known.is_pushed else no_changes)(known.operate.inputs)
        self._note_listeners()
        looping = self.topology.nodes_in_loops()
        for node, child in enumerate(self.children, start=1):
            if child.wants_outside and node in looping:
                self._make_view(node)
        self._keeps_numbers = self._is_same and not self._loops and not self._views
        for port, changes in enumerate(capabilities):
            self._enter_capabilities(port, changes)
        self._deliver_frontiers(False)
        for node, child in enumerate(self.children, start=1):
            self._set_child_external_summary(node, child)
            self.activate(node)

    def accumulate(
        self,
        workers: int,
        hand_on: Callable[[Updates, dict[int, int]], None],
        send_out: Callable[[Updates], None],
    ) -> None:
        """Before the first visit: add up what so many `workers` report, this one among them."""
        held: ChangeBatch = ChangeBatch()
        for node, known in enumerate(self._by_number):
            for port, batch in enumerate(self._initial[node]) if known.is_local else ():
                location = self.topology.source(node, port)
                for time, count in batch:
                    held.update((location, time), count * workers)
        self.accumulation = Accumulation(
            held,
            [not is_target for _, _, is_target in self._ports],
            [node == 0 for node, _, _ in self._ports],
            self._tracker,
            hand_on,
            send_out,
        )

    # A visit.

    def push_external_progress(self, changes: Changes) -> None:
        """Take in new frontiers outside, and the receipt for what left."""
        for port, batch in enumerate(changes):
            self._enter_capabilities(port, batch)
        if self._unreceipted:
            for output, time, count in self._unreceipted:
                self._update(self.topology.target(0, output), time, -count, 0)
            self._unreceipted.clear()

    def pull_internal_progress(self) -> ProgressReport:
        """One round: receive, run, receive again, report."""
        self._is_at_work = True
        self._report_entered()
        self._deliver_frontiers(True)
        self._visit_children()
        has_ended = self._next.is_empty() and self.peers == 1
        self._deliver_frontiers(True)
        if has_ended and not self._next.is_empty():  # frontiers alone are left: no peer waits
            self._visit_children()
            self._deliver_frontiers(True)
        self._collect_output_changes()
        self._share()
        # Only now: what peers say has left between two visits is in no report before this.
        if self._left:
            self._unreceipted, self._left = self._left, []
        self._is_at_work = False
        self.is_active = not self._next.is_empty() or bool(self._unreceipted)
        return self._active_progress if self.is_active else self._idle_progress

    def accept(self, updates: Updates) -> bool:
        """Count what a peer reported; whether `share_needed` has something to look at."""
        for (location, time), change in updates:
            self._apply(location, time, change, 0)
        self._activation.ask()
        return not self.eager and (self._holds_back() or self.accumulation is not None)

    def share_needed(self) -> None:
        """Give out what a peer's report has made needed, before an operator is run for long."""
        self._tracker.propagate()
        self._share()

    def activate(self, child: int) -> None:
        """Ask for a visit of `child`: in this round if its turn is still to come."""
        asked = self._by_number[child]
        if asked.is_queued:
            return
        asked.is_queued = True
        if self._is_in_round and child > self._position:
            self._round.add(child)
            return
        # At work, it says at the end whether it asks for another visit.
        has_changes = not self._is_at_work and self._next.is_empty()
        self._next.add(child)
        if has_changes:
            self._activation.ask()

    def abandon(self) -> None:
        """Report nothing more, and throw away what waits; no count changes, here or on peers."""
        if self.accumulation is not None:
            self.accumulation.release(at_once=True)  # the others may go on for a while
        for child in self._by_number:
            if child.operator is not None and child.is_local:  # scopes in it: by themselves
                child.operator.abandon()

    def let_go(self) -> None:
        """Let go of the operators, which hold this; there is no visit after this."""
        for child in self._by_number:
            child.let_go()
        # An activation that is still held calls on an empty scope, which is never visited.
        self._activation = NO_ACTIVATION
        self.children = ()
        self.entered = ()

    @property
    def holds_capability(self) -> bool:
        """Whether a moving frontier may free a capability here, or changes held back."""
        return self.holds()

    def holds(self) -> bool:
        """The same, for a scope that is compiled."""
        if self._n_holders or self._holds_back():
            return True
        return self.accumulation is not None and bool(self.accumulation)

    @property
    def complete(self) -> bool:
        """Whether nothing is outstanding inside, on any worker, as far as known."""
        return self.is_complete()

    def is_complete(self) -> bool:
        """The same, for a scope that is compiled."""
        if self._n_incomplete or self._holds_back():
            return False
        if self.accumulation is not None and self.accumulation:
            return False
        return self._tracker.is_idle()

    def frontier(self, node: int, port: int) -> list[Any]:
        """The minimal times that may still come at an input of child `node`."""
        return self._tracker.frontier(self.topology.target(node, port))

    def frontier_behind(self, node: int, output: int) -> list[Any]:
        """The minimal times that may still come at an output of child `node`."""
        return self._tracker.frontier(self.topology.source(node, output))

    def pointstamps(self) -> list[tuple[int, Any, int]]:
        """(location, time, count) of every pointstamp that is known."""
        return self._tracker.outstanding()

    def outstanding(self) -> list[tuple[str, Any, int]]:
        """(place in words, time, count) of every pointstamp that is known."""
        return [(self.topology.describe(at), time, n) for at, time, n in self.pointstamps()]

    # Setting up.

    def _count_initial_capabilities(self, tracker: Tracker, without: int = 0) -> None:
        for node, child in enumerate(self.children, start=1):
            if node == without and not child.local:
                continue
            # Every worker's instance starts alike, so a local child's are counted
            # for all of them: no worker has to wait for a first report to be safe.
            owners = (self.peers - (node == without)) if child.local else 1
            for port, batch in enumerate(self._initial[node]):
                location = self.topology.source(node, port)
                for time, count in batch:
                    tracker.update(location, time, count * owners)

    def _derive_interest(self) -> list[Interest]:
        """Per input, the greatest interest of the children's inputs that it can reach.

        Changes that are held back may be set free by a frontier outside.
        """
        if not self.inputs:
            return []
        least = Interest.IF_CAPABILITY if self.peers > 1 and not self.eager else Interest.NEVER
        interests = {
            known.first + port: interest
            for known in self._by_number
            for port, interest in enumerate(known.interests)
        }
        greatest = self.topology.greatest_reached(interests)
        sources = (self.topology.source(0, input_) for input_ in range(self.inputs))
        return [Interest(max(least, greatest[source])) for source in sources]

    def _note_listeners(self) -> None:
        """Per location: what gets its frontier, from what, and whether it is a reason to run."""
        listeners = []
        for location, (node, port, is_target) in enumerate(self._ports):
            listener = None
            if node and is_target:
                child = self._by_number[node]
                interest = child.interests[port]
                if interest != Interest.NEVER or not child.is_local:
                    listener = FrontierListener(child, child.inbox[port], interest)
            listeners.append(listener)
            self._tracker.is_delivered[location] = listener is not None
        self._listeners = tuple(listeners)

    def _make_view(self, node: int) -> None:
        """A second tracker for a child in a loop, without what it holds itself."""
        view = Tracker(self.topology)
        self._count_initial_capabilities(view, without=node)
        self._views = {**self._views, node: view}

    def _set_child_external_summary(self, node: int, child: Operate) -> None:
        inbox = self._by_number[node].inbox
        summaries: Summaries = [{}] * child.outputs
        if node in self._views:
            summaries = self.topology.summaries_around(node)
        child.set_external_summary(summaries, inbox)
        for batch in inbox:
            batch.drain()

    # The steps of a round.

    def _report_entered(self) -> None:
        for port, batch in enumerate(self.entered):
            if batch.is_empty():
                continue
            location = self.outputs + port
            if self._keeps_numbers and self._has_numbers(batch):
                for place in range(batch.n_numbers()):
                    self._report_number(batch, place, location, 1, True)
                self._take_produced(batch, location, True)
                continue
            for time, count in batch.drain():
                self._report(location, time, count, True, 0)
                self._report_produced(location, time, count, True)

    def _deliver_frontiers(self, wake: bool) -> None:
        """Propagate, and put what changed where the children's next push takes it."""
        self._tracker.propagate()
        self._deliver(self._tracker, 0, wake)
        if self._views:
            for node, view in self._views.items():
                view.propagate()
                self._deliver(view, node, wake)

    def _deliver(self, tracker: Tracker, viewer: int, wake: bool) -> None:
        """Deliver what moved to the children; `viewer` alone gets its own view."""
        if not tracker.n_moved:
            return
        for moved in range(tracker.n_moved):
            at = 4 * moved
            location = tracker.moved[at]
            listener = self._listeners[location]
            if listener is None:
                continue
            child = listener.child
            node = child.number
            if self._views and (node != viewer if viewer else node in self._views):
                continue
            change = tracker.moved[at + 3]
            if tracker.has_numbers:
                outer, inner = tracker.moved[at + 1], tracker.moved[at + 2]
                listener.batch.update_number(outer, inner, tracker.has_pairs, change)
            else:
                listener.batch.update(tracker.moved_times[moved], change)
            if wake and (listener.wakes or (listener.if_holder and child.is_holder)):
                self.activate(node)
        tracker.forget_frontier_changes()

    def _visit_children(self) -> None:
        self._round, self._next = self._next, self._round
        self._is_in_round = True
        node = self._round.take()
        while node:
            self._position = node
            self._visit(self._by_number[node])
            node = self._round.take()
        self._is_in_round = False

    def _visit(self, child: ScopeChild) -> None:
        child.is_queued = False
        operator = child.operator
        if operator is not None:
            if child.is_pushed:
                operator.push_external_progress(child.inbox)
            progress = operator.pull_internal_progress()
            self._note_state(child, operator.holds(), operator.is_complete())
        else:
            operate = child.operate
            operate.push_external_progress(child.inbox)
            progress = operate.pull_internal_progress()
            # Compiled, None would pass for a `ProgressReport` that is somewhere else in memory.
            assert progress is not None, f"{operate.name!r} reported nothing"
            self._note_state(child, operate.holds_capability, operate.complete)
        self._take_report(child, progress)
        if progress.active:
            self.activate(child.number)

    def _take_report(self, child: ScopeChild, progress: ProgressReport) -> None:
        shared = child.is_local
        # Inputs come before outputs, as `Topology` numbers them.
        location = child.first
        for batch in progress.consumed:
            if batch.kind:
                self._take_changes(batch, location, -1, shared, 0)
            location += 1
        first_output = location
        for batch in progress.internal:
            if batch.kind:
                self._take_changes(batch, location, 1, shared, child.number)
            location += 1
        location = first_output
        for batch in progress.produced:
            if batch.kind:
                self._take_produced(batch, location, shared)
            location += 1

    def _take_changes(
        self, batch: ChangeBatch, location: int, sign: int, shared: bool, own: int
    ) -> None:
        """Report the changes of a batch, each `sign` times."""
        if not self._views and self._has_numbers(batch):
            for place in range(batch.n_numbers()):
                self._report_number(batch, place, location, sign, shared)
        else:
            for place in range(batch.gather()):
                self._report(location, batch.items[place], sign * batch.changes[place], shared, own)
        batch.clear()

    def _take_produced(self, batch: ChangeBatch, source: int, shared: bool) -> None:
        """Report what was produced at all places to which it went."""
        is_direct = self._keeps_numbers or not (self._views or self._leads_out[source])
        if is_direct and self._has_numbers(batch):
            for place in range(batch.n_numbers()):
                for edge in range(self._edges_of[source], self._edges_of[source + 1], 2):
                    target = self._edges_of[edge]
                    self._report_number(batch, place, target, self._edges_of[edge + 1], shared)
        else:
            for place in range(batch.gather()):
                self._report_produced(source, batch.items[place], batch.changes[place], shared)
        batch.clear()

    def _has_numbers(self, batch: ChangeBatch) -> bool:
        """Whether the tracker takes the changes of a batch as numbers."""
        return self._tracker.has_numbers and batch.kind == (
            _PAIRS if self._tracker.has_pairs else _INTEGERS
        )

    def _report_number(
        self, batch: ChangeBatch, place: int, location: int, factor: int, shared: bool
    ) -> None:
        """`_report` one change of a batch `factor` times."""
        self.n_changes += 1
        outer, inner = batch.entries[3 * place], batch.entries[3 * place + 1]
        change = factor * batch.entries[3 * place + 2]
        if self._tracker.is_inside[location]:
            self._update_number(location, outer, inner, change)
        else:
            # Those of child 0: first the scope's outputs, which are targets, then its inputs.
            leaves = location < self.outputs
            at = self._produced[location] if leaves else self._consumed[location - self.outputs]
            at.update_number(outer, inner, self._tracker.has_pairs, change)
        if shared and self.peers > 1 and self._tracker.has_pairs:
            self._held_back.update((location, (outer, inner)), change)
        elif shared and self.peers > 1:
            self._held_back.update_number(location, inner, True, change)

    def _update_number(self, location: int, outer: int, inner: int, change: int) -> None:
        """`_update`, where no child has a view of its own."""
        self._tracker.update_number(location, outer, inner, change)
        if self._observer is not None:
            self._observer.changed_number(location, outer, inner, self._tracker.has_pairs, change)

    def _note_state(self, child: ScopeChild, holds: bool, complete: bool) -> None:
        is_holder = holds and child.is_interested
        if is_holder != child.is_holder:
            child.is_holder = is_holder
            self._n_holders += 1 if is_holder else -1
        if complete != child.is_complete:
            child.is_complete = complete
            self._n_incomplete += -1 if complete else 1

    def _collect_output_changes(self) -> None:
        """Turn what inner pointstamps imply at the outputs into capabilities held."""
        for output, batch in enumerate(self._tracker.output_changes):
            if batch.is_empty():
                continue
            held, changes = self._output_capabilities[output], self._internal[output]
            for time, change in batch.drain():
                if held.change(self._to_outer(time), change):
                    for lost in held.gone:
                        changes.update(lost, -1)
                    for new in held.came:
                        changes.update(new, 1)

    def _share(self) -> None:
        """Give out what was held back, if another worker needs it."""
        if self.accumulation is not None:
            if self._holds_back():
                self.accumulation.add(self._held_back.drain())
            self.accumulation.release(at_once=self.eager)
            return
        if not self._holds_back():
            return
        for (location, time), change in self._held_back:
            if self.eager or self._is_needed(location, time, change):
                self._share_updates(self._held_back.drain())
                break

    def _holds_back(self) -> bool:
        """Whether there are changes that were not sent to the peers."""
        return self.peers > 1 and not self._held_back.is_empty()

    def _is_needed(self, location: int, time: Any, change: int) -> bool:
        # What crosses the border of the scope decides frontiers that this
        # tracker does not know, so it is always needed.
        if self.topology.ports[location][0] == 0:
            return True
        return change < 0 and not self._tracker.is_covered(location, time)

    def describe_way(self, input_: int, output: int) -> str:
        """The operators on a way through that does not advance the time outside, in words."""
        summarize = self.refinement.summarize
        return self.topology.describe_way(input_, output, lambda s: not summarize(s).advances)

    # The only places where counts change.

    def _report_produced(self, source: int, time: Any, count: int, shared: bool) -> None:
        for target, copies in self._consumers[source]:
            self._report(target, time, count * copies, shared, 0)

    def _report(self, location: int, time: Any, change: int, shared: bool, own: int) -> None:
        """Count a change on this worker, and note it for the peers if it is new to them."""
        self._apply(location, time, change, own)
        if shared and self.peers > 1:
            self._held_back.update((location, time), change)

    def _apply(self, location: int, time: Any, change: int, own: int) -> None:
        """Count a change; `own`, if any, is the child that it is a capability of."""
        self.n_changes += 1
        if self._tracker.is_inside[location]:
            self._update(location, time, change, own)
            return
        _, port, is_target = self._ports[location]
        if is_target:
            self._leave(port, time, change)
        else:
            self._consumed[port].update(self._to_outer(time), change)

    def _leave(self, output: int, time: Any, count: int) -> None:
        self._produced[output].update(self._to_outer(time), count)
        if output in self._loops:
            self._update(self.topology.target(0, output), time, count, 0)
            self._left.append((output, time, count))

    def _enter_capabilities(self, port: int, changes: ChangeBatch) -> None:
        if changes.is_empty():
            return
        location = self.outputs + port
        if self._keeps_numbers and self._has_numbers(changes):
            for place in range(changes.n_numbers()):
                outer, inner = changes.entries[3 * place], changes.entries[3 * place + 1]
                self._update_number(location, outer, inner, changes.entries[3 * place + 2])
            changes.clear()
            return
        for time, change in changes.drain():
            inner_time = time if self._is_same else self.refinement.to_inner(time)
            self._update(location, inner_time, change, 0)

    def _to_outer(self, time: Any) -> Any:
        return time if self._is_same else self.refinement.to_outer(time)

    def _update(self, location: int, time: Any, change: int, own: int) -> None:
        self._tracker.update(location, time, change)
        if self._observer is not None:
            self._observer.changed(location, time, change)
        if self._views:
            for node, view in self._views.items():
                if node != own:
                    view.update(location, time, change)
