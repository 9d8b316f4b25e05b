"""Who holds a time back: against brute force on random graphs, and in words."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pointstamp.progress.antichain import Antichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.explanation import HolderKind, Own, causes, explain, layouts
from pointstamp.progress.operate import Interest, ProgressReport
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import Advance, Int, Product, summary_less_equal
from pointstamp.progress.topology import Edge
from tests.progress.roots import root


class Child:
    """An operator that does nothing, with one summary from each input to each output."""

    local = True
    wants_outside = False
    holds_capability = True
    complete = True

    def __init__(self, name: str, inputs: int, outputs: int, summary: Any = None) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.frontier_interest = [Interest.ALWAYS] * inputs
        self.summary = summary
        self.held = [ChangeBatch() for _ in range(outputs)]

    def internal_summary(self) -> Any:
        summary = Advance(0) if self.summary is None else self.summary
        row = {i: Antichain(summary_less_equal, [summary]) for i in range(self.outputs)}
        return [row for _ in range(self.inputs)], [ChangeBatch() for _ in range(self.outputs)]

    def set_external_summary(self, summaries: Any, capabilities: Any) -> None:
        for batch in capabilities:
            batch.drain()

    def push_external_progress(self, changes: Any) -> None:
        for batch in changes:
            batch.drain()

    def pull_internal_progress(self) -> ProgressReport:
        return ProgressReport(self.held, [], [], False)


def chain(*children: Child, peers: int = 1) -> Subgraph:
    edges = [Edge((i, 0), (i + 1, 0)) for i in range(1, len(children))]
    return root("chain", Int, list(children), edges, peers=peers)


def told(scope: Subgraph, place: int, time: Any, change: int) -> None:
    scope.accept([((place, time), change)])
    scope.push_external_progress(())
    scope.pull_internal_progress()


def test_a_capability_is_named_with_its_path_and_where_it_arrives() -> None:
    scope = chain(Child("a", 0, 1), Child("b", 1, 1, Advance(2)), Child("end", 1, 0), peers=3)
    graph = scope.topology
    told(scope, graph.source(1, 0), 3, +1)
    found = explain(layouts(scope), Own(), (0, graph.target(3, 0)), 5, 0, 3)
    (holder,) = found
    assert (holder.what, holder.worker, holder.time, holder.arrives) == (
        HolderKind.CAPABILITY,
        None,
        3,
        5,
    )
    assert holder.path == ("'a' [1]", "'b' [2]", "'end' [3]")
    assert str(holder) == (
        "another worker holds a capability at 3 for output 0 of 'a' [1]: 5 at 'end' [3], "
        "by 'a' [1] -> 'b' [2] -> 'end' [3]"
    )
    assert explain(layouts(scope), Own(), (0, graph.target(3, 0)), 4, 0, 3) == []


def test_what_is_held_here_is_told_from_what_others_hold() -> None:
    scope = chain(Child("a", 0, 1), Child("end", 1, 0), peers=2)
    graph = scope.topology
    told(scope, graph.source(1, 0), 3, +3)
    own = Own()
    own.held[0, graph.source(1, 0)] = Counter({3: 1})
    found = explain(layouts(scope), own, (0, graph.target(2, 0)), 9, 0, 2)
    assert [(h.worker, h.is_here, h.count) for h in found] == [(0, True, 1), (1, False, 2)]


def test_records_of_nobody_here_are_under_way() -> None:
    scope = chain(Child("a", 0, 1), Child("end", 1, 0), peers=2)
    told(scope, scope.topology.target(2, 0), 1, +7)
    (holder,) = explain(layouts(scope), Own(), (0, scope.topology.target(2, 0)), 1, 1, 2)
    assert (
        str(holder)
        == "7 records at 1 are under way to input 0 of 'end' [2], or wait there at a peer, "
        "as far as peers have reported"
    )


def test_what_was_let_go_and_not_reported_says_to_step() -> None:
    scope = chain(Child("a", 0, 1), Child("end", 1, 0))
    place = scope.topology.source(1, 0)
    told(scope, place, 3, +1)
    own = Own()
    own.pending[0, place] = Counter({3: -1, 5: +1})
    own.held[0, place] = Counter({5: 1})
    found = explain(layouts(scope), own, (0, scope.topology.target(2, 0)), 4, 0, 1)
    assert [holder.what for holder in found] == [HolderKind.UNREPORTED]
    assert "step it" in str(found[0])


def test_a_loop_is_followed_and_left_again() -> None:
    """in -> body -> back (+1) -> body: what is in the loop at 1 comes out at 1 and later."""
    children = [Child("in", 0, 1), Child("body", 2, 1), Child("back", 1, 1, Advance(1)),
                Child("end", 1, 0)]  # fmt: skip
    edges = [Edge((1, 0), (2, 0)), Edge((2, 0), (3, 0)), Edge((3, 0), (2, 1)), Edge((2, 0), (4, 0))]
    scope = root("loop", Int, children, edges)
    told(scope, scope.topology.target(3, 0), 1, +1)
    end = (0, scope.topology.target(4, 0))
    (holder,) = explain(layouts(scope), Own(), end, 7, 0, 1)
    assert holder.arrives == 2
    assert holder.path == ("'back' [3]", "'body' [2]", "'end' [4]")


def nested() -> tuple[Subgraph, Subgraph]:
    inner = Subgraph(
        "inner", Product(Int, Int), Int, [Child("deep", 1, 1, Product(Int, Int).summary(1))],
        [Edge((0, 0), (1, 0)), Edge((1, 0), (0, 0))], inputs=1, outputs=1,
        entered=[ChangeBatch()],
    )  # fmt: skip
    children: list[Any] = [Child("in", 0, 1), inner, Child("end", 1, 0)]
    return root("outer", Int, children, [Edge((1, 0), (2, 0)), Edge((2, 0), (3, 0))]), inner


def test_a_scope_is_opened_up() -> None:
    outer, inner = nested()
    inner.accept([((inner.topology.source(1, 0), (4, 2)), 1)])
    outer.push_external_progress(())
    outer.activate(2)
    outer.pull_internal_progress()
    scopes = layouts(outer)
    (holder,) = explain(scopes, Own(), (0, outer.topology.target(3, 0)), 4, 0, 1)
    assert (holder.address, holder.time, holder.arrives) == ((2, 1), (4, 2), 4)
    assert holder.path == ("'inner/deep' [2, 1]", "'end' [3]")


def test_what_enters_a_scope_is_followed_through_it() -> None:
    outer, inner = nested()
    told(outer, outer.topology.source(1, 0), 6, +1)
    scopes = layouts(outer)
    (holder,) = explain(scopes, Own(), (0, outer.topology.target(3, 0)), 6, 0, 1)
    assert holder.path == ("'in' [1]", "'inner/deep' [2, 1]", "'end' [3]")
    (holder,) = explain(scopes, Own(), (1, inner.topology.target(1, 0)), (6, 0), 0, 1)
    assert (holder.time, holder.arrives) == (6, (6, 0))


def test_a_cause_is_what_follows_from_nothing_else() -> None:
    scope = chain(Child("a", 0, 1), Child("b", 1, 1), Child("end", 1, 0))
    graph = scope.topology
    told(scope, graph.source(1, 0), 3, +1)
    told(scope, graph.target(2, 0), 2, +1)
    told(scope, graph.target(3, 0), 5, +1)
    told(scope, graph.source(1, 0), 8, +1)
    found = causes(layouts(scope), Own(), 0, 1)
    assert sorted(holder.time for holder in found) == [2, 3]
