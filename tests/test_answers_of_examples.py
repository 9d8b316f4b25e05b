"""What the examples find out, on 1, 2 and 4 workers, is what something else finds out."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.formats.edge_files import read_edges

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def example(name: str) -> Any:
    """The module, new each time."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for theirs
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def run(main: Any, *args: Any, workers: int) -> list[Any]:
    return ps.execute(main, *args, workers=workers, threads=True)


def joined(parts: list[list[Any]]) -> list[Any]:
    return [item for part in parts for item in part]


def by_epoch(told: list[tuple[int, Any]], n_epochs: int) -> Iterator[Counter[Any]]:
    """What holds after each epoch, of (epoch, (thing, diff)); nothing is told in vain."""
    held: Counter[Any] = Counter()
    for epoch in range(n_epochs):
        changes: Counter[Any] = Counter()
        for at, (thing, diff) in told:
            if at == epoch:
                assert diff
                assert thing not in changes
                changes[thing] = diff
        held.update(changes)
        assert all(n in (0, 1) for n in held.values())
        yield +held


def test_balls_are_hit_in_every_round_and_end_where_they_must(workers: int) -> None:
    parts = run(example("pingpong").pingpong, 7, 5, workers=workers)
    for index, (_, ended) in enumerate(parts):
        assert sorted(ended) == [(ball, 7) for ball in range(5) if (ball + 7) % workers == index]


@pytest.mark.parametrize("window", [1, 3, 100])
def test_counts_of_words_follow_the_lines_that_come_and_go(workers: int, window: int) -> None:
    draw = random.Random(1)
    lines = [" ".join(draw.choices("abcdef", k=draw.randrange(6))) for _ in range(12)]
    told = joined(run(example("wordcount_with_retractions").count, lines, window, workers=workers))
    n_epochs = len(lines) + window
    for epoch, held in enumerate(by_epoch(told, n_epochs)):
        present = lines[max(epoch - window + 1, 0) : epoch + 1]
        assert held == Counter(Counter(" ".join(present).split()).items())
    assert not held


def test_of_equal_records_of_an_epoch_one_passes(workers: int) -> None:
    distinct = example("distinct")
    found = joined(run(distinct.distinct, 50, 30, 4, workers=workers))
    assert sorted(found) == sorted(
        (epoch, x)
        for epoch in range(4)
        for x in {x for index in range(workers) for x in distinct.numbers(index, epoch, 50, 30)}
    )


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_joins_find_what_two_loops_find(workers: int, by_hand: bool) -> None:
    hash_join = example("hash_join")
    parts = run(hash_join.join, 100, 20, by_hand, workers=workers)
    left, right = (hash_join.records(side, 100, 20) for side in "ab")
    expected = [(a, b) for a in left for b in right if a[0] == b[0]]
    assert sorted(joined([matches for _, matches in parts])) == sorted(expected)


def test_times_are_distances(workers: int) -> None:
    bfs = example("bfs")
    edges = bfs.random_edges(200, 300)
    distances: dict[int, int] = {}
    for part in run(bfs.search, edges, edges[0][0], workers=workers):
        assert not part.keys() & distances.keys()
        distances.update(part)
    graph = networkx.DiGraph(edges)
    assert distances == networkx.single_source_shortest_path_length(graph, edges[0][0])
    assert len(set(distances.values())) > 5


def test_a_spanning_forest_has_the_components_of_the_graph(workers: int) -> None:
    unionfind = example("unionfind")
    parts = run(unionfind.forest, 200, 120 // workers, workers=workers)
    spanning = joined([part for _, part in parts])
    edges = [
        e for index in range(workers) for e in unionfind.random_edges(index, 200, 120 // workers)
    ]
    graph, forest = networkx.Graph(), networkx.Graph()
    for of, its_edges in ((graph, edges), (forest, spanning)):
        of.add_nodes_from(range(200))
        of.add_edges_from(its_edges)
    assert {*spanning} <= {*edges}
    assert networkx.is_forest(forest)
    assert forest.number_of_edges() == len(spanning)
    components = networkx.connected_components
    assert sorted(map(sorted, components(forest))) == sorted(map(sorted, components(graph)))


def test_each_event_goes_through_its_chain(workers: int) -> None:
    parts = run(example("event_driven").drive, 6, 4, 3, 20, workers=workers)
    for number in range(6):
        seen = joined([seens[number] for _, seens in parts])
        assert sorted(seen) == [e + 3 for e in range(20) if e % 4 == number]


def test_ranks_of_each_epoch_are_those_of_a_run_from_scratch(workers: int) -> None:
    pagerank = example("pagerank")
    changes = pagerank.epochs(40, 5, 4)
    parts = run(pagerank.rank, changes, workers=workers)
    edges: set[tuple[int, int]] = set()
    seen: set[int] = set()
    for held, updates in zip(by_epoch(joined([r for _, r in parts]), 4), changes, strict=True):
        edges = changed(edges, updates)
        seen.update(*edges)
        assert held == Counter(ranks_from_scratch(edges, seen).items())


def ranks_from_scratch(edges: set[tuple[int, int]], vertices: set[int]) -> dict[int, int]:
    """By 19 rounds in thousandths, in each of which an edge gives a part, rounded down."""
    degrees = Counter(source for source, _ in edges)
    ranks = dict.fromkeys(vertices, 1000)
    for _ in range(19):
        new = dict.fromkeys(vertices, 150)
        for source, target in edges:
            new[target] += 85 * ranks[source] // (100 * degrees[source])
        ranks = new
    return ranks


def changed(edges: set[Any], updates: list[tuple[Any, int]]) -> set[Any]:
    gone = {edge for edge, diff in updates if diff < 0}
    come = {edge for edge, diff in updates if diff > 0}
    assert gone <= edges
    assert not come & edges
    return (edges - gone) | come


def test_ranks_are_those_of_networkx(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With finer ranks and more rounds, on a graph where every vertex has an edge."""
    pagerank = example("pagerank")
    monkeypatch.setattr(pagerank, "UNIT", 10**9)
    monkeypatch.setattr(pagerank, "BASE", 15 * 10**7)
    monkeypatch.setattr(pagerank, "ROUNDS", 80)
    ring = [(v, (v + 1) % 15) for v in range(15)]
    chords = [(0, 5), (1, 5), (9, 5), (5, 12)]
    changes = [[(e, +1) for e in ring + chords[:2]], [(chords[0], -1), (chords[3], +1)]]
    parts = run(pagerank.rank, changes, workers=workers)
    edges: set[tuple[int, int]] = set()
    for held, updates in zip(by_epoch(joined([r for _, r in parts]), 2), changes, strict=True):
        edges = changed(edges, updates)
        matrix = networkx.google_matrix(networkx.DiGraph([*edges]), 0.85, nodelist=range(15))
        expected = np.linalg.matrix_power(np.asarray(matrix), 200)[0]
        assert [rank / 15e9 for _, rank in sorted(held)] == pytest.approx(expected, abs=1e-6)


def test_a_small_change_costs_less_than_a_start() -> None:
    pagerank = example("pagerank")
    ((passed_on, _),) = run(pagerank.rank, pagerank.epochs(1000, 1, 3), workers=1)
    assert max(passed_on[1:]) < passed_on[0] / 3


def test_triangles_appear_and_vanish_as_a_recount_says(workers: int) -> None:
    motifs = example("changing_motifs")
    changes = motifs.epochs(15, 60, 5)
    told = joined(run(motifs.watch, changes, workers=workers))
    edges: set[tuple[int, int]] = set()
    n_both = Counter(diff for _, (_, diff) in told)
    for held, updates in zip(by_epoch(told, 5), changes, strict=True):
        edges = changed(edges, updates)
        assert held == Counter(
            (a, b, c) for a, b in edges for b2, c in edges if b2 == b and (a, c) in edges
        )
    assert min(n_both[+1], n_both[-1]) > 10


def test_every_request_is_answered_and_timed(workers: int) -> None:
    parts = run(example("open_loop").serve, 40, 400, workers=workers)
    n_answered: Counter[int] = Counter()
    for latencies, answers in parts:
        assert len(latencies) == 40
        assert min(latencies) >= 0  # nothing is complete before it is due
        for time, n in answers:
            n_answered[time] += n
    assert n_answered == dict.fromkeys(range(40), workers)


@pytest.mark.parametrize("ahead", [1, 4])
def test_no_more_is_read_than_flow_control_allows(workers: int, ahead: int) -> None:
    for index, (most, total) in enumerate(
        run(example("flow_control").consume, 30, ahead, workers=workers)
    ):
        assert 1 <= most <= ahead + 1
        assert total == sum(range(30)) + 30 * index


def test_numbers_take_their_steps_in_another_process(workers: int) -> None:
    parts = run(example("subgraph_in_another_process").outside, 40, 2, workers=workers)
    assert sorted(joined(parts)) == sorted(((n - 1) % 2, (steps_of(n), n)) for n in range(1, 40))


def steps_of(n: int) -> int:
    return 0 if n == 1 else 1 + steps_of(3 * n + 1 if n % 2 else n // 2)


@pytest.mark.parametrize("seed", range(6))
def test_epochs_that_overtake_each_other_change_nothing(seed: int) -> None:
    """On schedules with some links and workers far slower than others."""
    n = 2 + seed % 3
    for name, main, args in (
        ("pagerank", "rank", (20, 4, 3)),
        ("changing_motifs", "watch", (10, 40, 4)),
    ):
        module = example(name)
        changes = module.epochs(*args)
        parts = ps.simulate(getattr(module, main), changes, workers=n, seed=seed)
        (alone,) = run(getattr(module, main), changes, workers=1)
        if name == "pagerank":
            parts, alone = [part for _, part in parts], alone[1]
        assert sorted(joined(parts)) == sorted(alone)


OTHER_WORKERS = {1: 3, 2: 1, 4: 2}
"""On how many workers a service begins again that was on so many."""


def snapshots_over_two_lives(
    module: Any, epochs: list[Any], workers: int, folder: Path
) -> list[list[Any]]:
    """Of each epoch, by a service that is aborted in the middle and goes on on other workers."""
    first = module.serve(str(folder), workers, threads=True)
    module.feed(first, epochs[: len(epochs) // 2])
    first.input("edges").insert([(98, 99)])  # not committed, and so lost
    first.abort()
    with module.serve(str(folder), OTHER_WORKERS[workers], threads=True) as service:
        assert service.input("edges").time == len(epochs) // 2
        module.feed(service, epochs)
        output = service.output("result")
        return [list(output.snapshot(epoch)) for epoch in range(len(epochs))]


def counts_over_two_lives(module: Any, epochs: list[Any], workers: int, folder: Path) -> list[int]:
    return [n for ((n,),) in snapshots_over_two_lives(module, epochs, workers, folder)]


def counts_by_networkx(epochs: list[pa.Table]) -> list[int]:
    graph, counts = networkx.Graph(), []
    for edges in epochs:
        pairs = zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True)
        graph.add_edges_from((u, v) for u, v in pairs if u != v)
        counts.append(sum(networkx.triangles(graph).values()) // 3)
    return counts


def test_triangles_of_a_growing_graph_are_those_of_networkx(workers: int, tmp_path: Path) -> None:
    module = example("growing_triangles")
    edges = module.random_edges(30, 300)
    epochs = [edges.slice(start, 50) for start in range(0, 300, 50)]
    expected = counts_by_networkx(epochs)
    assert counts_over_two_lives(module, epochs, workers, tmp_path) == expected
    assert expected[0] < expected[3] < expected[5]


def test_epochs_without_new_edges_change_nothing(tmp_path: Path) -> None:
    module = example("growing_triangles")
    triangle = pa.table([[1, 2, 3], [2, 3, 1]], schema=module.EDGE)
    epochs = [triangle, triangle, triangle.slice(3), triangle]
    assert counts_over_two_lives(module, epochs, 2, tmp_path) == [1, 1, 1, 1]


def test_the_published_triangles_are_counted_as_the_edges_come(
    tmp_path: Path, data: Callable[..., Path]
) -> None:
    """183344 is what data/README.md's `answers.json` has of the whole graph."""
    module = example("growing_triangles")
    file = data("sx-mathoverflow-a2q", "sx-mathoverflow-a2q.txt.gz")
    edges = pa.Table.from_batches(read_edges(str(file)).batches())
    epochs = [edges.slice(start, 27_000) for start in range(0, len(edges), 27_000)]
    assert counts_over_two_lives(module, epochs, 2, tmp_path)[3] == 183344


def labels_over_two_lives(
    module: Any, epochs: list[Any], workers: int, folder: Path
) -> list[dict[int, int]]:
    return [dict(rows) for rows in snapshots_over_two_lives(module, epochs, workers, folder)]


def test_components_of_edges_that_come_and_go_are_those_of_networkx(
    workers: int, tmp_path: Path
) -> None:
    module = example("changing_components")
    epochs = module.random_changes(60, 25, 12)
    found = labels_over_two_lives(module, epochs, workers, tmp_path)
    counts: Counter[tuple[int, int]] = Counter()
    n_parted = 0
    for epoch, changes in enumerate(epochs):
        for edge, change in changes:
            counts[edge] += change
        graph = networkx.Graph([e for e, n in counts.items() if n > 0 and e[0] != e[1]])
        parts = networkx.connected_components(graph)
        assert found[epoch] == {
            vertex: least for part in parts for least in [min(part)] for vertex in part
        }
        before = found[epoch - 1] if epoch else {}
        n_parted += sum(
            before.get(vertex, vertex) < label for vertex, label in found[epoch].items()
        )
    assert n_parted > 50


def test_an_edge_that_goes_before_it_comes_is_not_there(tmp_path: Path) -> None:
    module = example("changing_components")
    epochs = [[((1, 2), -1)], [((2, 1), +1)], [((1, 2), +1), ((2, 3), +1)], [((2, 3), -1)]]
    found = labels_over_two_lives(module, epochs, 2, tmp_path)
    assert found == [{}, {}, {1: 1, 2: 1, 3: 1}, {1: 1, 2: 1}]


def consequences(rules: list[Any], facts: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """All that follows, by trying each rule on all facts until nothing is new."""
    held = {name: set(rows) for name, rows in facts.items()}
    for rule in rules:
        held.setdefault(rule.head.relation, set())
    while True:
        new = [
            (rule.head.relation, tuple(found[name] for name in rule.head.arguments))
            for rule in rules
            for found in bindings(rule.body, held, {})
        ]
        if all(row in held[name] for name, row in new):
            return held
        for name, row in new:
            held[name].add(row)


def bindings(body: Any, held: dict[str, set[Any]], known: dict[str, int]) -> Iterator[Any]:
    """The values of variables with which all atoms hold."""
    if not body:
        yield known
        return
    for row in held[body[0].relation]:
        found = dict(known)
        for name, value in zip(body[0].arguments, row, strict=True):
            wanted = int(name) if name.isdigit() else found.setdefault(name, value)
            if wanted != value:
                break
        else:
            yield from bindings(body[1:], held, found)


CONSTANT = "near(y) :- edge(1, y). near(z) :- near(y), edge(y, z), edge(z, z)."


@pytest.mark.parametrize("name", ["reach", "same", "points", "constant"])
@pytest.mark.parametrize("seed", range(4))
def test_what_follows_by_rules_is_what_trying_all_gives(name: str, seed: int) -> None:
    module = example("datalog")
    widths = {"edge": 2} if name == "constant" else None
    program, first = module.PROGRAMS[name] if widths is None else (CONSTANT, {})
    widths = widths or {relation: len(rows[0]) for relation, rows in first.items()}
    schemas = {
        relation: ", ".join(f"c{n} long" for n in range(width))
        for relation, width in widths.items()
    }
    rules, draw = module.parsed(program), random.Random(seed)
    facts: dict[str, set[Any]] = {relation: set() for relation in widths}
    held: dict[str, set[Any]] = {rule.head.relation: set() for rule in rules}
    n_followed = 0
    with ps.View(lambda scope, **given: module.solve(scope, given, program), **schemas) as view:
        for _ in range(8):
            for relation, width in widths.items():
                rows = {tuple(draw.choices(range(5), k=width)) for _ in range(3)}
                come = rows - facts[relation]
                gone = set(draw.sample(sorted(facts[relation]), min(2, len(facts[relation]))))
                facts[relation] = (facts[relation] | come) - gone
                view.insert(relation, sorted(come))
                view.delete(relation, sorted(gone))
            changes = view.advance()
            changes = changes if isinstance(changes, dict) else {next(iter(held)): changes}
            for relation, pairs in changes.items():
                for row, diff in pairs:
                    assert (row in held[relation]) is (diff == -1)
                    held[relation] ^= {row}
            expected = consequences(rules, facts)
            assert held == {relation: expected[relation] for relation in held}
            n_followed += sum(map(len, held.values()))
    assert n_followed
