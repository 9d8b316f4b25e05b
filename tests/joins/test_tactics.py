"""Count, propose, extend and validate on arrays, with the workers played by a loop."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, kind_of
from pointstamp.joins import tactics
from pointstamp.joins.adjacency import Adjacency, IndexedGraph
from pointstamp.joins.candidates import LIST
from pointstamp.joins.plan import Constraint, Filter, PlanStep
from pointstamp.joins.tactics import KEY, LEAST, MATCHES, ROUTE, TODO, Extension

graphs = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)

# v2 is where v0 leads to and v1 leads to, and leads to v1 itself.
STEP = PlanStep(2, (Constraint(0, "forward"), Constraint(1, "forward"), Constraint(1, "reverse")))


def workers(edges, peers):
    """The graph at each worker: the rows of the keys that it owns, in both directions."""
    table = np.array(edges, np.int64).reshape(-1, 2)
    graphs = []
    for index in range(peers):
        adjacencies = []
        for direction, key in (("forward", table[:, 0]), ("reverse", table[:, 1])):
            mine = IndexedGraph(index, peers).owners(key) == index
            adjacencies.append(Adjacency.build(direction, table[mine, 0], table[mine, 1]))
        graphs.append(IndexedGraph(index, peers, adjacencies))
    return graphs


def exchange(batches, peers):
    """What each worker gets of `batches`, as they say themselves."""
    kind = kind_of(batches[0])
    parts = [kind.split(b, b[ROUTE].astype(np.uint64), peers) for b in batches]
    return [kind.concat([p[peer] for p in parts]) for peer in range(peers)]


def collected(pieces, names):
    return sorted(
        row
        for piece in pieces
        if piece is not None
        for row in zip(*(piece[n].tolist() for n in names), strict=True)
    )


def expected(edges, prefixes, distinct):
    graph = set(edges)
    return sorted(
        (a, b, c)
        for a, b in prefixes
        for c in range(8)
        if {(a, c), (b, c), (c, b)} <= graph and not (distinct and c in (a, b))
    )


prefix_lists = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20)


@given(edges=graphs, prefixes=prefix_lists, room=st.integers(1, 5), distinct=st.booleans())
def test_with_one_worker_a_step_is_one_intersection(edges, prefixes, room, distinct):
    (graph,) = workers(edges, 1)
    prefixes = [p for p in prefixes if not distinct or p[0] != p[1]]
    table = np.array(prefixes, np.int64).reshape(-1, 2)
    batch = Arrays(v0=table[:, 0], v1=table[:, 1])
    extension = Extension(STEP, bound=(0, 1) if distinct else (), kept=(0, 1))
    pieces = list(tactics.extend(extension, graph, batch, room))
    assert all(piece is None or 0 < len(piece) <= room for piece in pieces)
    want = expected(edges, prefixes, distinct)
    assert collected(pieces, ["v0", "v1", "v2"]) == want
    counts = tactics.count_matches(extension, graph, batch)
    assert sum(int(piece[MATCHES][0]) for piece in counts) == len(want)


def counted(extension, graphs, columns):
    """The prefixes, from worker 0, after their visits to the workers of all keys."""
    batch = tactics.uncounted(extension, Arrays(columns))
    at = [batch, *[kind_of(batch).slice(batch, 0, 0)] * (len(graphs) - 1)]
    for _ in (None, *extension.keys):
        at = [next(tactics.count(extension, g, b)) for g, b in zip(graphs, at, strict=True)]
        at = exchange(at, len(graphs))
    assert not any(b[TODO].any() for b in at)
    return at


@given(edges=graphs, prefixes=prefix_lists, peers=st.integers(2, 4))
def test_counting_finds_the_shortest_list_and_whose_it_is(edges, prefixes, peers):
    table = np.array(prefixes, np.int64).reshape(-1, 2)
    lengths = {
        (a, b): (
            sum(s == a for s, _ in set(edges)),
            min(sum(s == b for s, _ in set(edges)), sum(t == b for _, t in set(edges))),
        )
        for a, b in prefixes
    }
    known = workers(edges, peers)
    at = counted(Extension(STEP, kept=(0, 1)), known, {"v0": table[:, 0], "v1": table[:, 1]})
    want = []
    for pair in prefixes:
        if least := min(lengths[pair]):
            key = lengths[pair].index(least)
            want.append((*pair, least, key))
    assert collected(at, ["v0", "v1", LEAST]) == sorted(w[:3] for w in want)
    for index, (graph, batch) in enumerate(zip(known, at, strict=True)):
        for a, b, least, key in zip(
            *(batch[n].tolist() for n in ("v0", "v1", LEAST, KEY)), strict=True
        ):
            assert lengths[a, b][key] == least, "of lists that are as short, any"
            assert graph.owners(np.array([(a, b)[key]]))[0] == index


@given(edges=graphs, prefixes=prefix_lists, peers=st.integers(1, 4), room=st.integers(1, 9))
def test_a_proposed_prefix_carries_what_is_in_all_lists_of_its_key(edges, prefixes, peers, room):
    graphs = workers(edges, peers)
    table = np.array(prefixes, np.int64).reshape(-1, 2)
    extension = Extension(STEP, kept=(0, 1))
    arrived = counted(extension, graphs, {"v0": table[:, 0], "v1": table[:, 1]})
    out = {v: {t for s, t in edges if s == v} for v in range(8)}
    both = {v: {t for t in out[v] if (t, v) in edges} for v in range(8)}
    n_found = 0
    for graph, mine in zip(graphs, arrived, strict=True):
        for piece in tactics.propose(extension, graph, mine, room):
            n_found += len(piece)
            longest = max(np.diff(piece.starts), default=0)
            assert len(piece.values) <= room + longest
            for a, b, key, route, number in zip(
                *(piece.prefixes[n].tolist() for n in ("v0", "v1", KEY, ROUTE, LIST)), strict=True
            ):
                other = (b, a)[key]
                owner = graph.owners(np.array([other]))[0]
                if owner == graph.index:
                    assert (number, route) == (-1, graph.index), "nothing is missing: it stays"
                else:
                    candidates = piece.values[piece.starts[number] : piece.starts[number + 1]]
                    assert candidates.tolist() == sorted(both[b] if key else out[a])
                    assert route == owner
    assert n_found == sum(map(len, arrived))


THREE_KEYS = PlanStep(
    3, (Constraint(0, "forward"), Constraint(1, "reverse"), Constraint(2, "forward"))
)


@given(
    edges=graphs,
    triples=st.lists(st.tuples(*[st.integers(0, 7)] * 3), max_size=20),
    peers=st.integers(2, 4),
    room=st.integers(1, 5),
    distinct=st.booleans(),
)
def test_with_several_workers_the_lists_meet_wherever_they_are(
    edges, triples, peers, room, distinct
):
    """Three keys, so some are proposed, some met on the way, some validated at the end."""
    graph = set(edges)
    triples = [t for t in triples if not distinct or len(set(t)) == 3]
    want = sorted(
        (a, b, c, d)
        for a, b, c in triples
        for d in range(8)
        if {(a, d), (d, b), (c, d)} <= graph and not (distinct and d in (a, b, c))
    )
    graphs = workers(edges, peers)
    table = np.array(triples, np.int64).reshape(-1, 3)
    bound = (0, 1, 2) if distinct else ()
    extension = Extension(THREE_KEYS, bound, kept=(0, 1, 2))
    columns = {f"v{i}": table[:, i] for i in range(3)}
    arrived = counted(extension, graphs, columns)
    proposed = [
        piece
        for graph, mine in zip(graphs, arrived, strict=True)
        for piece in tactics.propose(extension, graph, mine, room)
    ]
    if not proposed:
        assert want == []
        return
    met = exchange(proposed, peers)
    n_here = sum(
        int(piece[MATCHES][0])
        for graph, mine in zip(graphs, met, strict=True)
        for piece in tactics.count_matches(extension, graph, mine, "here")
    )
    for part in ("all", "away"):
        extended = [
            piece
            for graph, mine in zip(graphs, met, strict=True)
            for piece in tactics.extend(extension, graph, mine, room, part)
            if piece is not None
        ]
        assert all(len(piece) <= room for piece in extended)
        assert part == "all" or all((piece[TODO] != 0).all() for piece in extended)
        found = []
        if extended:
            at = exchange(extended, peers)
            at = [
                next(tactics.validate(extension, graph, mine))
                for graph, mine in zip(graphs, at, strict=True)
            ]
            assert not any(mine[TODO].any() for mine in at)
            found = collected(at, ["v0", "v1", "v2", "v3"])
        if part == "all":
            assert found == want
        else:
            assert len(found) + n_here == len(want)


@given(edges=graphs, prefixes=prefix_lists)
def test_an_edge_is_tested_to_be_there_or_to_be_absent(edges, prefixes):
    (graph,) = workers(edges, 1)
    table = np.array(prefixes, np.int64).reshape(-1, 2)
    batch = Arrays(v0=table[:, 0], v1=table[:, 1])
    for absent in (False, True):
        (kept,) = tactics.test(Filter(0, 1, absent), graph, batch)
        assert list(kept) == [p for p in prefixes if (p in edges) != absent]


def test_seeds_are_the_keys_of_an_index():
    index = Adjacency.build("reverse", np.array([1, 2, 1]), np.array([9, 9, 4]))
    (batch,) = tactics.seeds(3, index)
    assert batch == Arrays(v3=[4, 9])


def test_much_reading_without_a_match_gives_control_back():
    """Two long lists with nothing in common, for each of many prefixes."""
    n = 50_000
    ends = np.arange(n)
    sources = np.concatenate([np.zeros(n, np.int64), np.ones(n, np.int64)])
    targets = np.concatenate([2 * ends, 2 * ends + 1])
    graph = IndexedGraph(0, 1, [Adjacency.build("forward", sources, targets)])
    step = PlanStep(2, (Constraint(0, "forward"), Constraint(1, "forward")))
    batch = Arrays(v0=np.zeros(1000, np.int64), v1=np.ones(1000, np.int64))
    pieces = list(tactics.extend(Extension(step), graph, batch, 100))
    assert pieces == [None] * len(pieces)
    assert len(pieces) > 10
    assert tactics.READ_BUDGET * (len(pieces) + 1) >= 1000 * n


def test_a_proposed_list_of_a_million_comes_in_pieces_of_the_size_asked_for():
    n = 1_000_000
    graph = IndexedGraph(0, 1, [Adjacency.build("forward", np.zeros(n, np.int64), np.arange(n))])
    extension = Extension(PlanStep(1, (Constraint(0, "forward"),)), kept=(0,))
    pieces = tactics.extend(extension, graph, Arrays(v0=[0, 0]), 65_536)
    sizes = [len(piece) for piece in itertools.islice(pieces, 20)]
    assert sizes == [65_536] * 20, "they are made as they are asked for"
