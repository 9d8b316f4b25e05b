"""Subgraphs with scripted operators: what they are told, when they are visited, what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import BuildError
from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Interest, ProgressReport
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import Advance, Int, Product, summary_less_equal
from pointstamp.progress.topology import Edge
from pointstamp.progress.turns import Turns
from tests.progress.roots import root

STAY = Advance(0)


class Scripted:
    """An operator that does what its test says, and remembers what it was told."""

    complete = True

    def __init__(
        self,
        name: str,
        inputs: int = 0,
        outputs: int = 0,
        *,
        holds: int = 0,
        summary: Any = STAY,
        interest: Interest = Interest.ALWAYS,
        wants_outside: bool = False,
        local: bool = True,
    ) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.local, self.wants_outside = local, wants_outside
        self.frontier_interest = [interest] * inputs
        self.holds_capability = bool(holds)
        self._summary, self._initial = summary, holds
        self.frontiers = [MutableAntichain(Int) for _ in range(inputs)]
        self.visits = 0
        self.external: Any = None
        self.next: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        self.again = False

    def internal_summary(self) -> Any:
        table = [
            {i: Antichain(summary_less_equal, [self._summary]) for i in range(self.outputs)}
            for _ in range(self.inputs)
        ]
        return table, [ChangeBatch([(0, 1)] if self._initial else []) for _ in range(self.outputs)]

    def set_external_summary(self, summaries: Any, capabilities: Any) -> None:
        self.external = [{i: list(paths) for i, paths in row.items()} for row in summaries]
        self.push_external_progress(capabilities)
        self.visits = 0

    def push_external_progress(self, changes: Sequence[ChangeBatch]) -> None:
        for counts, batch in zip(self.frontiers, changes, strict=True):
            for time, change in batch.drain():
                counts.update(time, change)

    def report(
        self,
        internal: Sequence[Any] = (),
        consumed: Sequence[Any] = (),
        produced: Sequence[Any] = (),
    ) -> None:
        """What the next visit reports, at port 0."""
        self.next = (list(internal), list(consumed), list(produced))

    def pull_internal_progress(self) -> ProgressReport:
        self.visits += 1
        internal, consumed, produced = self.next
        self.next = ([], [], [])

        def ports(n: int, changes: list[Any]) -> list[ChangeBatch]:
            return [ChangeBatch(changes if port == 0 else ()) for port in range(n)]

        return ProgressReport(
            ports(self.outputs, internal),
            ports(self.inputs, consumed),
            ports(self.outputs, produced),
            self.again,
        )


def visit(scope: Subgraph) -> ProgressReport:
    scope.push_external_progress([ChangeBatch() for _ in range(scope.inputs)])
    return scope.pull_internal_progress()


def settle(scope: Subgraph) -> None:
    for _ in range(20):
        if not visit(scope).active:
            return
    raise AssertionError("the scope never comes to rest")


def pair(interest: Interest = Interest.ALWAYS, **options: Any) -> tuple[Any, Scripted, Scripted]:
    """source -> sink."""
    source = Scripted("source", outputs=1, holds=1)
    sink = Scripted("sink", inputs=1, interest=interest)
    scope = root("pair", Int, [source, sink], [Edge((1, 0), (2, 0))], **options)
    settle(scope)
    return scope, source, sink


def test_a_capability_that_moves_moves_the_frontier_downstream() -> None:
    scope, source, sink = pair()
    assert sink.frontiers[0].frontier == [0]
    source.report(internal=[(0, -1), (3, +1)])
    scope.activate(1)
    settle(scope)
    assert sink.frontiers[0].frontier == [3]
    assert not scope.complete
    source.report(internal=[(3, -1)])
    scope.activate(1)
    settle(scope)
    assert sink.frontiers[0].frontier == []
    assert scope.complete


def test_a_record_in_flight_holds_its_time_until_it_is_consumed() -> None:
    scope, source, sink = pair()
    source.report(internal=[(0, -1)], produced=[(2, 7)])
    scope.activate(1)
    settle(scope)
    assert sink.frontiers[0].frontier == [2]
    sink.report(consumed=[(2, 7)])
    scope.activate(2)
    settle(scope)
    assert sink.frontiers[0].frontier == []


def test_a_receipt_may_overtake_its_send() -> None:
    scope, source, sink = pair()
    sink.report(consumed=[(2, 7)])
    scope.activate(2)
    settle(scope)
    assert sink.frontiers[0].frontier == [0]
    source.report(internal=[(0, -1), (2, +1)], produced=[(2, 7)])
    scope.activate(1)
    settle(scope)
    assert sink.frontiers[0].frontier == [2]


@pytest.mark.parametrize(
    ("interest", "visited"),
    [(Interest.NEVER, False), (Interest.IF_CAPABILITY, False), (Interest.ALWAYS, True)],
)
def test_a_frontier_is_a_reason_for_a_visit_as_interest_says(
    interest: Interest, visited: bool
) -> None:
    scope, source, sink = pair(interest)
    before = sink.visits
    source.report(internal=[(0, -1), (1, +1)])
    scope.activate(1)
    settle(scope)
    assert (sink.visits > before) == visited


def test_a_scope_whose_operators_hold_nothing_is_not_visited() -> None:
    inner_sink = Scripted("inner sink", inputs=1, interest=Interest.IF_CAPABILITY)
    inner = Subgraph("inner", Int, Int, [inner_sink], [Edge((0, 0), (1, 0))], inputs=1,
                     entered=[ChangeBatch()])  # fmt: skip
    source = Scripted("source", outputs=1, holds=1)
    scope = root("outer", Int, [source, inner], [Edge((1, 0), (2, 0))])
    settle(scope)
    before = inner_sink.visits
    for time in range(5):
        source.report(internal=[(time, -1), (time + 1, +1)])
        scope.activate(1)
        settle(scope)
    assert inner_sink.visits == before
    # What it missed it is told when there is a reason to visit it.
    inner.activate(1)
    scope.activate(2)
    settle(scope)
    assert inner_sink.frontiers[0].frontier == [5]


def looped(**options: Any) -> tuple[Subgraph, Scripted]:
    """body -> feedback (+1) -> body, where the body holds a capability."""
    body = Scripted("body", inputs=1, outputs=1, holds=1, **options)
    loop = Scripted("loop", inputs=1, outputs=1, summary=Advance(1), interest=Interest.NEVER)
    scope = root("loop", Int, [body, loop], [Edge((1, 0), (2, 0)), Edge((2, 0), (1, 0))])
    settle(scope)
    return scope, body


def test_what_an_operator_is_told_of_the_outside_leaves_out_itself() -> None:
    _, body = looped(wants_outside=True)
    assert body.external == [{0: [Advance(1)]}]
    assert body.frontiers[0].frontier == []


def test_an_operator_that_does_not_add_itself_is_told_the_whole_frontier() -> None:
    _, body = looped(wants_outside=False)
    assert body.frontiers[0].frontier == [1]


def test_records_that_an_operator_sent_to_itself_are_outside_of_it() -> None:
    scope, body = looped(wants_outside=True)
    body.report(internal=[(0, -1)], produced=[(0, 4)])
    scope.activate(1)
    settle(scope)
    assert body.frontiers[0].frontier == [1]


class Cluster:
    """The same pair on several workers, with updates kept to be delivered by hand."""

    def __init__(self, workers: int, *, eager: bool = False) -> None:
        self.sent: list[list[Any]] = [[] for _ in range(workers)]
        self.workers = [pair(peers=workers, eager=eager, share=sent.append) for sent in self.sent]

    def do(self, worker: int, node: int, **report: Any) -> None:
        scope, *operators = self.workers[worker]
        operators[node - 1].report(**report)
        scope.activate(node)
        settle(scope)

    def deliver(self) -> None:
        for sender, batches in enumerate(self.sent):
            while batches:
                updates = batches.pop(0)
                for worker, (scope, _, _) in enumerate(self.workers):
                    if worker != sender:
                        scope.accept(updates)
                        settle(scope)

    def frontier(self, worker: int) -> list[Any]:
        return list(self.workers[worker][2].frontiers[0].frontier)


def test_a_time_is_complete_only_when_every_worker_let_go() -> None:
    cluster = Cluster(3)
    for worker in range(3):
        cluster.deliver()
        assert [cluster.frontier(w) for w in range(3)] == [[0]] * 3
        cluster.do(worker, 1, internal=[(0, -1), (1, +1)])
    cluster.deliver()
    assert [cluster.frontier(w) for w in range(3)] == [[1]] * 3


def test_demand_holds_back_what_can_advance_nobody() -> None:
    cluster = Cluster(2)
    # A consumption that the sources still cover: nobody's frontier can advance by it.
    cluster.do(0, 2, consumed=[(0, 5)])
    assert cluster.sent == [[], []]
    # The source lets go: that is needed, and takes along what was held back.
    cluster.do(0, 1, internal=[(0, -1)])
    (batch,) = cluster.sent[0]
    assert sorted(change for _, change in batch) == [-5, -1]


def test_eager_sends_every_change_at_once() -> None:
    cluster = Cluster(2, eager=True)
    cluster.do(0, 2, consumed=[(0, 5)])
    assert len(cluster.sent[0]) == 1


def test_holding_back_does_not_make_workers_wait_for_each_other() -> None:
    cluster = Cluster(2)
    for worker in (0, 1):
        cluster.do(worker, 1, internal=[(0, -1)], produced=[(0, 1)])
    for worker in (0, 1):
        cluster.do(worker, 2, consumed=[(0, 1)])
    for _ in range(4):
        cluster.deliver()
    assert [cluster.frontier(w) for w in range(2)] == [[], []]
    assert all(scope.complete for scope, _, _ in cluster.workers)


def test_a_scope_reports_entering_records_as_consumed_and_held_at_once() -> None:
    entered: ChangeBatch = ChangeBatch()
    body = Scripted("body", inputs=1, outputs=1)
    inner = Subgraph("inner", Product(Int, Int), Int, [body], [Edge((0, 0), (1, 0)),
                     Edge((1, 0), (0, 0))], inputs=1, outputs=1, entered=[entered])  # fmt: skip
    body._summary = Product(Int, Int).identity
    body.frontiers = [MutableAntichain(Product(Int, Int))]
    inner.internal_summary()
    inner.set_external_summary([{}], [ChangeBatch([(0, 1)])])
    visit(inner)
    entered.update((0, 0), 3)
    progress = visit(inner)
    assert [list(batch.drain()) for batch in progress.consumed] == [[(0, 3)]]
    assert [list(batch.drain()) for batch in progress.internal] == [[(0, 1)]]


def test_a_scope_that_cannot_sit_in_its_parent_is_refused() -> None:
    with pytest.raises(BuildError, match="cannot sit in a scope with times of"):
        Subgraph("wrong", Int, Product(Int, Int), [], [])


def test_an_empty_scope_is_complete() -> None:
    scope = root("empty", Int, [], [])
    assert not visit(scope).active
    assert scope.complete


@given(st.lists(st.integers(0, 9)))
def test_children_take_turns_by_number(draws: list[int]) -> None:
    turns, waiting = Turns(), set[int]()
    for child in draws:
        if child and child not in waiting:
            turns.add(child)
            waiting.add(child)
        elif not child:
            assert turns.take() == min(waiting, default=0)
            waiting -= {min(waiting, default=0)}
        assert turns.is_empty() is not bool(waiting)
    assert [turns.take() for _ in waiting] == sorted(waiting)
    assert turns.take() == 0
