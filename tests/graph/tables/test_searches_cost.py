"""What searches keep, and what laying them out costs."""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.errors import DataError
from pointstamp.graph import Graph
from pointstamp.graph.tables import element_search, list_searches, numbered_graph
from pointstamp.graph.tables.element_pattern import parse_elements
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.numbered_graph import KEPT, NumberedGraph
from pointstamp.graph.tables.path_search import PathEnds, path_search
from pointstamp.graph.tables.sql_text import parse_sql


def test_a_graph_keeps_the_lists_of_the_last_conditions_alone():
    graph = Graph({"src": [1, 2, 3], "dst": [2, 3, 1], "w": [1, 2, 3]})
    for bound in range(12):
        found = graph.count("(a)-[e]->(b); (b)-[]->(c); !(c)-[]->(b)", f"e.w < {bound}")
        assert found == min(max(bound - 1, 0), 3)
    kept = graph._numbered._lists
    assert len([key for key in kept if key[0] != ()]) <= KEPT
    assert len([key for key in kept if key[0] == ()]) <= 4


def test_lists_that_are_wanted_again_are_not_made_again(monkeypatch):
    made = []
    whole = numbered_graph.EdgeLists.of

    def counted(*given):
        made.append(given)
        return whole(*given)

    monkeypatch.setattr(numbered_graph.EdgeLists, "of", counted)
    graph = NumberedGraph(2, np.array([0, 1]), np.array([1, 0]))
    first = graph.lists((), False, False)
    for i in range(KEPT + 1):
        graph.lists(i, False, False)
    assert graph.lists((), False, False) is first
    assert len(made) == KEPT + 2
    graph.lists(1, False, False)
    assert len(made) == KEPT + 2
    graph.lists(0, False, False)  # which is the oldest one, and gone
    assert len(made) == KEPT + 3


def test_workers_that_are_threads_make_lists_once(monkeypatch):
    made, found = [], []
    whole = numbered_graph.EdgeLists.of
    graph = NumberedGraph(2, np.array([0, 1]), np.array([1, 0]))
    other = Thread(target=lambda: found.append(graph.lists((), False, False)))

    def meeting(*given):
        made.append(given)
        if len(made) == 1:
            other.start()
            other.join(0.05)  # in which it would make its own
        return whole(*given)

    monkeypatch.setattr(numbered_graph.EdgeLists, "of", meeting)
    first = graph.lists((), False, False)
    other.join()
    assert found == [first]
    assert len(made) == 1
    assert pickle.loads(pickle.dumps(graph)).lists((), False, False).starts.tolist() == [0, 1, 2]


def test_laying_out_a_long_path_looks_at_each_edge_of_it_twice(monkeypatch):
    looked = []
    seen = element_search._Unbound._seen_from

    def counted(*given):
        looked.append(given)
        return seen(*given)

    monkeypatch.setattr(element_search._Unbound, "_seen_from", counted)
    true = parse_sql("true")
    for n in (50, 200):
        looked.clear()
        search = path_search(PathEnds(true, true, None, n), n)
        plain = ElementSearch(search.pattern)
        element_search._SearchSteps(plain, NumberedGraph(2, np.array([0]), np.array([1])), 0, 1)
        assert 0 < len(looked) <= 2 * n


def test_a_path_of_many_edges_is_found():
    n = 400
    graph = Graph({"src": np.arange(n), "dst": np.arange(1, n + 1)})
    [path] = graph.bfs("id = 0", f"id = {n}", max_path_length=n).to_pylist()
    assert [path[f"v{i}"]["id"] for i in range(1, n)] == list(range(1, n))


def test_vertices_of_a_long_path_are_not_copied_for_each_of_its_edges(monkeypatch):
    copied = []
    taken = element_search._taken

    def counted(prefixes, found):
        made = taken(prefixes, found)
        copied.append(sum(made[name] is not column for name, column in prefixes.items()))
        return made

    monkeypatch.setattr(element_search, "_taken", counted)
    n = 100
    graph = Graph({"src": np.arange(n), "dst": np.arange(1, n + 1)})
    assert graph.bfs("id = 0", f"id = {n}", max_path_length=n).num_rows == 1
    assert len(copied) >= n - 1
    assert sum(copied) <= n
    prefixes = {"v0": np.array([5, 6, 7])}
    for found in ([2, 1, 0], [0, 0, 2], [1, 2], [True, False, True], [0, 1, 2]):
        found = np.array(found)
        assert taken(prefixes, found)["v0"].tolist() == prefixes["v0"][found].tolist()


def test_cycles_of_many_vertices_are_found_and_long_ways_that_do_not_return_are_not_walked():
    n = 1500  # more than Python's calls may be deep
    ring = np.arange(n)
    sources = np.concatenate([ring, ring[:-1] + n])  # and a path beside it
    graph = Graph({"src": sources, "dst": np.concatenate([np.roll(ring, -1), ring[1:] + n])})
    tracemalloc.start()
    [cycle] = graph.detect_cycles().column("found_cycles").to_pylist()
    assert tracemalloc.get_traced_memory()[1] < 1000 * n
    tracemalloc.stop()
    assert cycle == [*range(n), 0]


@pytest.mark.parametrize("is_ring", [False, True])
def test_cycles_are_not_looked_for_along_edges_both_ways(monkeypatch, is_ring):
    grown = []

    class Counted(list_searches._Growing):
        def __init__(self, lists, paths):
            grown.append(paths.size)
            super().__init__(lists, paths)

    monkeypatch.setattr(list_searches, "_Growing", Counted)
    n = 200
    here = np.arange(n if is_ring else n - 1)
    there = (here + 1) % n
    graph = Graph({"src": np.concatenate([here, there]), "dst": np.concatenate([there, here])})
    found = graph.detect_cycles().column("found_cycles").to_pylist()
    pairs = sorted([min(ends), max(ends), min(ends)] for ends in zip(here, there, strict=True))
    rings = [[*range(n), 0], [0, *range(n - 1, -1, -1)]] if is_ring else []
    assert sorted(found) == sorted([*pairs, *rings])
    # Those of the ring, at each length; from each vertex along the road there were n^3 / 6.
    assert sum(grown) <= (2 * n**2 if is_ring else 0)


def test_the_longest_cycles_are_closed_by_what_both_ends_of_a_path_have(monkeypatch):
    grown = []

    class Counted(list_searches._Growing):
        def __init__(self, lists, paths):
            grown.append(len(paths))
            super().__init__(lists, paths)

    monkeypatch.setattr(list_searches, "_Growing", Counted)
    n = 40
    source, target = np.divmod(np.arange(n * n), n)
    graph = Graph({"src": source, "dst": target})
    cycles = graph.detect_cycles(3).column("found_cycles")
    of = {3: n * (n - 1) * (n - 2) // 3, 2: n * (n - 1) // 2, 1: n}
    assert Counter(len(cycle) - 1 for cycle in cycles.to_pylist()) == of
    assert len({tuple(cycle) for cycle in cycles.to_pylist()}) == len(cycles)
    # And not a third of n^3 of three vertices, each of which would try all others.
    assert sum(grown) <= n


def test_lists_get_their_ids_chunk_by_chunk():
    # Together they may be more than an array of text has room for.
    lists = pa.chunked_array([[[1, 0]], [[], [1]]])
    found = list_searches.with_ids(pa.table({"walk": lists}), pa.array(["a", "b"]))
    assert found.column("walk").to_pylist() == [["b", "a"], [], ["b"]]
    assert [len(chunk) for chunk in found.column("walk").chunks] == [1, 2]


def test_matches_get_their_attributes_chunk_by_chunk():
    n = 2 * numbered_graph.PIECE + 1
    found = Graph({"src": np.arange(n), "dst": np.arange(n)}).find("(a)-[e]->()")
    assert found.num_rows == n
    assert all(len(chunk) <= numbered_graph.PIECE for chunk in found.column("a").chunks)
    assert found.column("a").combine_chunks().field("id").to_pylist() == list(range(n))


def test_a_search_for_a_path_that_is_not_there_takes_memory_for_each_vertex_once():
    n = 4000
    graph = Graph({"id": np.arange(n + 1)}, {"src": np.arange(n - 1), "dst": np.arange(1, n)})
    assert graph.count("(a)-[]->(b)") == n - 1  # which makes what is kept
    tracemalloc.start()
    assert graph.bfs("id = 0", f"id = {n}", max_path_length=n).num_rows == 0
    assert tracemalloc.get_traced_memory()[1] < 1000 * n  # and not a flag for each at each distance
    tracemalloc.stop()


def test_long_walks_are_made_some_at_a_time(monkeypatch):
    graph = Graph({"src": [0, 1, 2], "dst": [1, 2, 0]})
    task = list_searches.WalkTask(2, 20, 0.0, 3)
    [whole] = task.pieces(graph._numbered, 0, 1)
    monkeypatch.setattr(list_searches, "_STEPS", 50)
    pieces = list(task.pieces(graph._numbered, 0, 1))
    assert [piece.num_rows for piece in pieces] == [2, 2, 2]
    assert pa.concat_batches(pieces) == whole


@pytest.mark.parametrize(
    "pattern",
    [
        "(a)-[e]->(b); (b)-[f]->(c); (c)-[g]->(a)",
        "(a)-[e]->(b); (a)-[f]-(b)",
        "(a)-[e]->(b); (b)-[f]->(c); (c)-[g]->(d); (d)-[h]->(a); (a)-[i]->(c); (d)-[j]->(b)",
    ],
)
def test_matches_are_the_same_in_pieces_of_any_size(monkeypatch, pattern):
    rng = np.random.default_rng(3)
    graph = Graph({"src": rng.integers(0, 6, 40), "dst": rng.integers(0, 6, 40), "n": range(40)})

    def found():
        columns = graph.find(pattern).to_pydict()
        return sorted(
            zip(*([str(element) for element in c] for c in columns.values()), strict=True)
        )

    expected = found()
    assert len(expected) > 50
    for module, sizes in [
        (numbered_graph, {"PIECE": 3, "READ": 2}),
        (element_search, {"_FEW": 2, "_WAITING": 2}),
    ]:
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)
    assert found() == expected


def test_few_matches_of_many_pieces_come_together():
    n = 1 << 17
    # Most of many pieces is not rising, so that of each a few are left.
    edges = {"src": np.arange(n), "dst": np.arange(n) + 1, "w": np.arange(n) % 1000 * -1}
    graph = NumberedGraph(n + 1, edges["src"], edges["dst"], None, pa.table({"w": edges["w"]}))
    [pattern] = parse_elements("(a)-[e]->(b); (b)-[f]->(c)")
    search = ElementSearch(pattern, (parse_sql("e.w < f.w"),))
    pieces = list(search.matches(graph, 0, 1))
    assert sum(len(piece["e0"]) for piece in pieces) == (n - 1) // 1000
    assert len(pieces) == 1


PARALLEL = {
    "(a)-[]->(b); (b)-[]->(c)": (1, 1),
    "(a)-[e]->(b); (c)-[f]->(b)": (2, 5),
    "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)": (1, 1),
    "(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)": (0, 0),
    "(a)-[e]->(b); (b)-[f]->(a)": (0, 0),
}
"""Of three vertices with so many edges each, as multiples of so many matches: those of different
vertices, and all."""


@pytest.mark.parametrize("pattern", PARALLEL)
def test_parallel_edges_are_searched_once_for_each_pair_of_vertices(pattern):
    n = 20_000
    ends = {"src": np.repeat([0, 1, 0], n), "dst": np.repeat([1, 2, 2], n)}
    graph = Graph({"id": range(3)}, ends)
    assert len(graph._numbered.lists((), False, False).once.lists.others) == 3
    n_edges = pattern.count("->") - pattern.count("!")
    for distinct, many in zip((True, False), PARALLEL[pattern], strict=True):
        # There are some 10^8 pairs of edges, and 10^13 of three.
        assert graph.count(pattern, distinct=distinct) == many * n**n_edges
    found = graph.find(pattern, distinct=True, limit=5)
    assert found.num_rows == min(5, PARALLEL[pattern][0] * n**n_edges)


def test_edges_that_few_are_parallel_to_are_searched_one_by_one():
    # The matches of the last step are counted, and not made.
    ends = {"src": np.repeat([0, 1], [3, 40]), "dst": [1, 1, 1, *range(2, 42)]}
    assert Graph({"id": range(42)}, ends)._numbered.lists((), False, False).once is None
    assert Graph({"id": range(42)}, ends).count("(a)-[]->(b); (b)-[]->(c)") == 120


def test_more_matches_than_64_bits_can_say_are_an_error():
    n = 100_000
    graph = Graph({"id": [0, 1]}, {"src": np.repeat([0, 1], n), "dst": np.repeat([1, 0], n)})
    circle = "(a)-[]->(b); (b)-[]->(a); (a)-[]->(b); (b)-[]->(a)"
    with pytest.raises(DataError, match="has 200000000000000000000 matches"):
        graph.count(circle)
