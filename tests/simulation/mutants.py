"""Planted bugs: what the net of oracle, schedules and random dataflows must catch.

Each mutant replaces a method or two by a bugged copy, for the length of a `with`.
A net that lets one through has a hole. Every docstring says what the bug is; the
method below it is what it says and changes nothing else.

>>> MUTANTS["summary ignored"].caught_by
('safety',)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.channels import ExchangePusher
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import Operator
from pointstamp.dataflow.pact import Broadcast
from pointstamp.errors import StalledError, WorkerError
from pointstamp.operators.iterate import _Rounds
from pointstamp.progress.accumulate import Updates
from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.few_counts import FewCounts
from pointstamp.progress.operate import Changes, Interest, ProgressReport, Summaries
from pointstamp.progress.reachability import Tracker
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import summary_less_equal
from pointstamp.progress.topology import Node, PathStep, Topology
from pointstamp.testing.oracle import LivenessError, SafetyError
from tests.simulation.random_dataflows import (
    AnswerError,
    Case,
    Outputs,
    check_case,
    expected_outputs,
)

Patch = tuple[type, str, Any]

SAFETY, LIVENESS, ANSWER, ASSERTION = "safety", "liveness", "answer", "assertion"
"""What may catch a mutant: the oracle; a run that never ends, or ends with something
left; outputs that differ from those of one worker; a check in operators or antichains."""


@dataclass(frozen=True)
class Mutant:
    """A planted bug."""

    name: str
    what: str
    """The bug in a sentence."""
    caught_by: tuple[str, ...]
    """What catches it; the first of these must, the others may on the way there."""
    patches: Callable[[], list[Patch]]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the bug, until the end of the `with`."""
        with ExitStack() as undo:
            for owner, name, replacement in self.patches():
                undo.callback(setattr, owner, name, owner.__dict__[name])
                setattr(owner, name, replacement)
            yield


MUTANTS: dict[str, Mutant] = {}
"""All mutants, by name."""


def _mutant(
    name: str, *caught_by: str
) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    def add(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        MUTANTS[name] = Mutant(name, (patches.__doc__ or "").strip(), caught_by, patches)
        return patches

    return add


def _moved(batches: Changes) -> list[ChangeBatch]:
    """The changes of `batches`, which are empty after this."""
    return [ChangeBatch(batch.drain()) for batch in batches]


def _again(progress: ProgressReport) -> ProgressReport:
    """The same, and asking for another visit."""
    return ProgressReport(progress.internal, progress.consumed, progress.produced, True)


def _incomplete_while(owner: type, late: dict[int, Any]) -> Patch:
    """Whose reports are late has no complete scope: they are late, and not lost."""
    was = owner.__dict__["is_complete"]

    def is_complete(self: Any) -> bool:
        return id(self) not in late and bool(was(self))

    return (owner, "is_complete", is_complete)


# Reports of operators.


@_mutant("consumed before capability", SAFETY)
def _consumed_before_capability() -> list[Patch]:
    """What was consumed is reported, and the capability it gave one visit later."""
    pull = Operator.pull_internal_progress
    kept: dict[int, list[ChangeBatch]] = {}

    def bugged(self: Operator) -> ProgressReport:
        earlier = kept.pop(id(self), None)
        progress = pull(self)
        if earlier is not None:
            for batch, changes in zip(progress.internal, earlier, strict=True):
                batch.extend(changes)
        elif any(progress.consumed) and any(progress.internal):
            kept[id(self)] = _moved(progress.internal)
            return _again(progress)
        return progress

    return [(Operator, "pull_internal_progress", bugged), _incomplete_while(Operator, kept)]


@_mutant("produced a round late", SAFETY, LIVENESS)
def _produced_late() -> list[Patch]:
    """What was produced is reported one visit after what was consumed for it."""
    pull = Operator.pull_internal_progress
    kept: dict[int, list[ChangeBatch]] = {}

    def bugged(self: Operator) -> ProgressReport:
        earlier = kept.pop(id(self), None)
        progress = pull(self)
        if earlier is not None:
            for batch, changes in zip(progress.produced, earlier, strict=True):
                batch.extend(changes)
        elif any(progress.produced):
            kept[id(self)] = _moved(progress.produced)
            return _again(progress)
        return progress

    return [(Operator, "pull_internal_progress", bugged), _incomplete_while(Operator, kept)]


@_mutant("capability dropped before send", SAFETY)
def _dropped_before_send() -> list[Patch]:
    """What was given to an output is sent at the next visit, though its capability is dropped."""

    def bugged(self: Operator) -> ProgressReport:
        for output in self._outputs:
            output.flush()
        self.activation.is_at_work = True
        try:
            again = self._logic(self._inputs, self._outputs)
        finally:
            self.activation.is_at_work = False
        for input_ in self._inputs:
            input_.end_round()
        unsent = any(output.n_collected() for output in self._outputs)
        return self._report(again is True or unsent)

    return [(Operator, "pull_internal_progress", bugged)]


# What workers tell each other.


@_mutant("progress batch split", SAFETY)
def _batch_split() -> list[Patch]:
    """A batch of changes goes out as two, the second of them one round later."""
    share = Subgraph._share
    rest: dict[int, Updates] = {}

    def bugged(self: Subgraph) -> None:
        send = self._share_updates

        def send_half(updates: Updates) -> None:
            middle = (len(updates) + 1) // 2
            send(updates[:middle])
            if updates[middle:]:
                rest.setdefault(id(self), []).extend(updates[middle:])
                self._activation.ask()

        late = rest.pop(id(self), None)
        if late:
            send(late)
        self._share_updates = send_half
        try:
            share(self)
        finally:
            self._share_updates = send

    return [(Subgraph, "_share", bugged), _incomplete_while(Subgraph, rest)]


@_mutant("demand holds too much", LIVENESS)
def _holds_too_much() -> list[Patch]:
    """In demand mode what crosses the border of a scope is held back until something else goes."""
    needed = Subgraph._is_needed

    def bugged(self: Subgraph, location: int, time: Any, change: int) -> bool:
        return self.topology.ports[location][0] != 0 and needed(self, location, time, change)

    return [(Subgraph, "_is_needed", bugged)]


@_mutant("all wait for each other", LIVENESS)
def _all_wait() -> list[Patch]:
    """In demand mode a drop counts as covered by other holders of the same pointstamp."""

    def bugged(self: Tracker, location: int, time: Any) -> bool:
        implied = MutableAntichain(self.topology.timestamp, self._implications[location])
        return implied.less_than(time) or implied.count(time) > 0

    return [(Tracker, "is_covered", bugged)]


@_mutant("initial capabilities of one worker", SAFETY)
def _initial_of_one() -> list[Patch]:
    """The capabilities that all workers start with are counted for one of them."""
    count = Subgraph._count_initial_capabilities

    def bugged(self: Subgraph, tracker: Tracker, without: int = 0) -> None:
        peers, self.peers = self.peers, 1
        try:
            count(self, tracker, without)
        finally:
            self.peers = peers

    return [(Subgraph, "_count_initial_capabilities", bugged)]


@_mutant("peer's news cut short", LIVENESS, SAFETY)
def _news_cut_short() -> list[Patch]:
    """A change by several of one pointstamp, heard from a peer, counts as a change by one."""

    def bugged(self: Subgraph, updates: Updates) -> None:
        for (location, time), change in updates:
            self._apply(location, time, max(-1, min(1, change)), 0)
        self._activation.ask()

    return [(Subgraph, "accept", bugged)]


# Counting and following paths.


@_mutant("summary ignored", SAFETY)
def _summary_ignored() -> list[Patch]:
    """Where two paths through an operator lead to one output, the second is not followed."""
    add = Topology._add_internal_steps

    def bugged(self: Topology, index: int, node: Node) -> None:
        add(self, index, node)
        if index and node.inputs > 1:
            self.steps[self.target(index, 1)].clear()

    return [(Topology, "_add_internal_steps", bugged)]


@_mutant("later of two paths believed", SAFETY)
def _first_path_only() -> list[Patch]:
    """Where several paths lead through a scope, the one found first counts, not the earliest."""

    def bugged(
        self: Topology, start: int, steps: list[list[PathStep]], compose: Callable[[Any, Any], Any]
    ) -> dict[int, Antichain]:
        found = {start: Antichain(summary_less_equal, [self.timestamp.identity])}
        work = [(start, self.timestamp.identity)]
        while work:
            location, path = work.pop()
            for to, step in steps[location]:
                longer = path if step is None else compose(path, step)
                if longer is not None and to not in found:
                    found[to] = Antichain(summary_less_equal, [longer])
                    work.append((to, longer))
        return found

    return [(Topology, "_closure", bugged)]


@_mutant("negative count forgotten", LIVENESS, SAFETY)
def _negative_forgotten() -> list[Patch]:
    """A count that falls below zero is taken for zero, and forgotten."""
    do, do_few = MutableAntichain.change, FewCounts.change

    def bugged(self: MutableAntichain, time: Any, change: int) -> bool:
        return do(self, time, max(change, -self.count(time)))

    def bugged_few(self: FewCounts, outer: int, inner: int, change: int) -> int:
        return do_few(self, outer, inner, max(change, -self.count(outer, inner)))

    return [(MutableAntichain, "change", bugged), (FewCounts, "change", bugged_few)]


@_mutant("only one time uncovered", SAFETY, ASSERTION)
def _one_uncovered() -> list[Patch]:
    """When a time of a frontier goes, only the first of those it covered comes up."""
    uncovered = MutableAntichain._uncovered

    def bugged(self: MutableAntichain, time: Any) -> list[Any]:
        return uncovered(self, time)[:1]

    do_few = FewCounts.change

    def bugged_few(self: FewCounts, outer: int, inner: int, change: int) -> int:
        sign = do_few(self, outer, inner, change)
        if sign < 0 and self.many is None:
            self.others.n = min(self.others.n, 1)
        return sign

    return [(MutableAntichain, "_uncovered", bugged), (FewCounts, "change", bugged_few)]


@_mutant("broadcast counted once", SAFETY, LIVENESS)
def _broadcast_once() -> list[Patch]:
    """A record that goes to all workers is counted as one that goes to one of them."""

    def bugged(self: Broadcast, peers: int) -> int:
        return 1

    return [(Broadcast, "copies", bugged)]


# Scopes and what is around them.


@_mutant("child's frontier shown early", SAFETY)
def _child_early() -> list[Patch]:
    """A scope shows its parent what its own worker holds inside, before its peers agree."""
    summarize, report, collect = (
        Subgraph.internal_summary,
        Subgraph._report,
        Subgraph._collect_output_changes,
    )
    own: dict[int, Tracker] = {}

    def internal_summary(self: Subgraph) -> tuple[Summaries, Changes]:
        result = summarize(self)
        alone = own[id(self)] = Tracker(self.topology, self.topology.summaries_to_outputs())
        peers, self.peers = self.peers, 1
        self._count_initial_capabilities(alone)
        self.peers = peers
        alone.propagate()
        for batch in alone.output_changes:
            batch.drain()
        return result

    def report_too(
        self: Subgraph, location: int, time: Any, change: int, shared: bool, child: int
    ) -> None:
        report(self, location, time, change, shared, child)
        if self.topology.ports[location][0]:
            own[id(self)].update(location, time, change)

    def collect_own(self: Subgraph) -> None:
        whole = self._tracker
        if id(self) not in own:
            collect(self)
            return
        own[id(self)].propagate()
        self._tracker = own[id(self)]
        try:
            collect(self)
        finally:
            self._tracker = whole

    return [
        (Subgraph, "internal_summary", internal_summary),
        (Subgraph, "_report", report_too),
        (Subgraph, "_has_numbers", lambda self, batch: False),  # so that all of it passes there
        (Subgraph, "_collect_output_changes", collect_own),
    ]


@_mutant("receipts of a loop ignored", SAFETY)
def _receipts_ignored() -> list[Patch]:
    """What leaves a scope and may come back is not held against its inputs meanwhile."""

    def bugged(self: Subgraph, output: int, time: Any, count: int) -> None:
        self._produced[output].update(self.refinement.to_outer(time), count)

    return [(Subgraph, "_leave", bugged)]


@_mutant("receipt before report", SAFETY)
def _receipt_before_report() -> list[Patch]:
    """What peers say has left a scope counts as received outside before it was reported there."""
    push = Subgraph.push_external_progress

    def bugged(self: Subgraph, changes: Changes) -> None:
        self._unreceipted.extend(self._left)
        self._left.clear()
        push(self, changes)

    return [(Subgraph, "push_external_progress", bugged)]


@_mutant("paths outside begin empty", SAFETY)
def _outside_begins_empty() -> list[Patch]:
    """Initial capabilities inside a scope are not followed along the paths outside it."""

    def bugged(self: Tracker, output: int, input_: int, summary: Any) -> None:
        self.topology.add_outside_step(output, input_, summary)

    return [(Tracker, "follow_outside", bugged)]


@_mutant("frontier changes lost", LIVENESS, SAFETY)
def _changes_lost() -> list[Patch]:
    """A change of a frontier is lost if it is no reason to visit the operator."""
    deliver = Subgraph._deliver

    def bugged(self: Subgraph, tracker: Tracker, viewer: int, wake: bool) -> None:
        deliver(self, tracker, viewer, wake)
        for child in self._by_number:
            if wake and not child.is_queued:
                for batch in child.inbox:
                    batch.drain()

    return [(Subgraph, "_deliver", bugged)]


@_mutant("entered records reported late", SAFETY, LIVENESS)
def _entered_late() -> list[Patch]:
    """What entered a scope counts as consumed outside at once, inside one visit later."""
    late: dict[int, list[tuple[int, Any, int]]] = {}

    def bugged(self: Subgraph) -> None:
        for location, time, count in late.pop(id(self), ()):
            self._report_produced(location, time, count, True)
        for port, batch in enumerate(self.entered):
            for time, count in batch.drain():
                location = self.topology.source(0, port)
                self._report(location, time, count, True, 0)
                late.setdefault(id(self), []).append((location, time, count))
                self._activation.ask()

    return [(Subgraph, "_report_entered", bugged), _incomplete_while(Subgraph, late)]


# Channels, notifications, visits.


@_mutant("exchange loses the last batch", LIVENESS)
def _exchange_loses_last() -> list[Patch]:
    """An exchange keeps a batch back until the next one comes; at close, that is for ever."""
    push = ExchangePusher.push
    kept: dict[int, tuple[ExchangePusher, Any, Any]] = {}

    def bugged(self: ExchangePusher, time: Any, batch: Any) -> None:
        earlier = kept.get(id(self))
        kept[id(self)] = (self, time, batch)
        if earlier is not None:
            push(*earlier)

    return [(ExchangePusher, "push", bugged)]


@_mutant("exchange loses a record", ANSWER)
def _exchange_loses_record() -> list[Patch]:
    """An exchange sends a batch's first record in place of its last; no count differs."""
    push = ExchangePusher.push

    def bugged(self: ExchangePusher, time: Any, batch: Any) -> None:
        push(self, time, [*batch[:-1], batch[0]])

    return [(ExchangePusher, "push", bugged)]


@_mutant("equal keys on two workers", ANSWER)
def _keys_apart() -> list[Patch]:
    """Where a record goes depends on the worker that sends it, not on its key alone."""

    def bugged(self: ExchangePusher, time: Any, batch: Any) -> None:
        kind = kind_of(batch)
        parts = kind.exchange(batch, self._by, self._peers)
        for number, part in enumerate(parts):
            if part:
                self.hand((number + self._index) % self._peers, time, part, len(part))

    return [(ExchangePusher, "push", bugged)]


@_mutant("notified one time early", ASSERTION, ANSWER)
def _notified_early() -> list[Patch]:
    """A notification comes when nothing before its time may come, rather than at or before."""
    take = Notificator._take_complete

    class _Early:
        def __init__(self, frontier: Any) -> None:
            self.less_equal = frontier.less_than

    def bugged(self: Notificator) -> Any:
        frontiers = self._frontiers
        self._frontiers = [_Early(frontier) for frontier in frontiers]  # type: ignore[misc]
        try:
            return take(self)
        finally:
            self._frontiers = frontiers

    return [(Notificator, "_take_complete", bugged)]


@_mutant("condition of one worker", ANSWER)
def _condition_of_one_worker() -> list[Patch]:
    """A loop with a condition stops as the values of one worker say, not those of all."""
    is_last = _Rounds._is_last

    def bugged(self: _Rounds, at: Any) -> bool:
        values = [value for batch in self._values.get(at, ()) for value in batch]
        first = min((worker for worker, _, _ in values), default=0)
        if values:
            self._values[at] = [[value for value in values if value[0] == first]]
        return is_last(self, at)

    return [(_Rounds, "_is_last", bugged)]


@_mutant("activation lost", LIVENESS)
def _activation_lost() -> list[Patch]:
    """An operator that is activated during a round, when its turn is over, is forgotten."""
    activate = Subgraph.activate

    def bugged(self: Subgraph, child: int) -> None:
        if not self._is_in_round or child > self._position:
            activate(self, child)

    return [(Subgraph, "activate", bugged)]


@_mutant("interest of scopes ignored", LIVENESS)
def _interest_ignored() -> list[Patch]:
    """A scope does not ask for changes of frontiers on behalf of what is in it."""

    def bugged(self: Subgraph) -> list[Interest]:
        return [Interest.NEVER] * self.inputs

    return [(Subgraph, "_derive_interest", bugged)]


def catcher(mutant: Mutant, case: Case, expected: Outputs | None) -> str | None:
    """What catches a mutant in one run, or None if nothing does."""
    try:
        with mutant.planted():
            check_case(case, expected)
    except SafetyError:
        return SAFETY
    except (StalledError, LivenessError):
        return LIVENESS
    except AnswerError:
        return ANSWER
    except (AssertionError, WorkerError):
        return ASSERTION
    return None


def hunt(mutant: Mutant, cases: Iterable[Case]) -> dict[str, int]:
    """What catches a mutant, and after how many runs; up to what must catch it."""
    found: dict[str, int] = {}
    for n_runs, case in enumerate(cases, start=1):
        caught_by = catcher(mutant, case, expected_outputs(case.plan))
        if caught_by is not None:
            found.setdefault(caught_by, n_runs)
        if caught_by == mutant.caught_by[0]:
            break
    return found
