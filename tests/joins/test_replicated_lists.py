"""Lists that every worker knows: which they are, and that hubs are no one's burden."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.compiled import build_info
from pointstamp.containers import Arrays
from pointstamp.joins import tactics
from pointstamp.joins.adjacency import Adjacency, IndexedGraph
from pointstamp.joins.generic_join import GenericJoin
from pointstamp.joins.plan import make_plan
from pointstamp.joins.replicated_lists import least_bits, offers, replicated_with, sizes_of

graphs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=120)


def shares(edges, direction, peers):
    """The index of each worker's own vertices."""
    table = np.array(edges, np.int64)
    key = table[:, 0 if direction == "forward" else 1]
    found = []
    for index in range(peers):
        mine = IndexedGraph(index, peers).owners(key) == index
        found.append(Adjacency.build(direction, table[mine, 0], table[mine, 1]))
    return found


def rows(index):
    spans = zip(index.starts[:-1].tolist(), index.starts[1:].tolist(), strict=True)
    lists = [index.values[a:b].tolist() for a, b in spans]
    return dict(zip(index.keys.tolist(), lists, strict=True))


@given(
    edges=graphs,
    direction=st.sampled_from(["forward", "reverse"]),
    peers=st.integers(1, 3),
    replicated_items=st.integers(0, 130),
)
def test_the_longest_lists_that_there_is_room_for_are_known_to_all(
    edges, direction, peers, replicated_items
):
    own = shares(edges, direction, peers)
    every = {key: row for index in own for key, row in rows(index).items()}
    bits = least_bits([sizes_of(index) for index in own], direction, replicated_items)
    told = {key for key, row in every.items() if len(row) >= 2**bits}
    assert sum(len(every[key]) for key in told) <= replicated_items
    more = [len(row) for row in every.values() if len(row) >= 2 ** (bits - 1)]
    assert bits == 0 or sum(more) > replicated_items
    for worker, mine in enumerate(own):
        offered = [piece for index in own for piece in offers(index, bits)]
        index, least = replicated_with(mine, offered, direction)
        assert offered == []
        assert least == (2**bits if told else -1)
        assert rows(index) == {k: every[k] for k in {*rows(mine), *told}}
        graph = IndexedGraph(worker, peers, [index], {direction: least})
        vertices = np.arange(-1, 40)
        owned = graph.owners(vertices) == worker
        here = [o or least == 1 or v in told for v, o in zip(vertices, owned, strict=True)]
        assert graph.has(direction, vertices).tolist() == here


def test_where_nothing_is_known_only_own_lists_are_here():
    graph = IndexedGraph(1, 2)
    vertices = np.arange(50)
    assert (graph.has("forward", vertices) == (graph.owners(vertices) == 1)).all()
    assert not graph.all_have("forward", np.array([0, 10**6])).any()


N_LEAVES = 100_000 if build_info() == "compiled" else 10_000  # a loop of Python for each is slow
TRIANGLE = make_plan(3, [(0, 1), (1, 2), (0, 2)])


def work_on_a_star(worker, replicated_items):
    """Triangles of a hub, its leaves and a ring of them: how many each worker found."""
    leaves = np.arange(1, N_LEAVES + 1)[worker.index :: worker.peers]
    hub, after = np.zeros(len(leaves), np.int64), leaves % N_LEAVES + 1
    found = []
    with worker.dataflow() as scope:
        edges = scope.batches_to_stream(
            [Arrays(src=hub, dst=leaves), Arrays(src=leaves, dst=after)]
        )
        join = GenericJoin(edges, TRIANGLE, range(3), replicated_items=replicated_items)
        join.matches().inspect_batch(lambda time, batch: found.append(len(batch)))
    worker.run()
    return sum(found)


@pytest.mark.parametrize(
    "replicated_items", [1 << 24, 11 * N_LEAVES // 10], ids=["all lists", "the hub's list"]
)
def test_the_work_of_a_star_with_many_leaves_is_shared(replicated_items):
    found = ps.execute(work_on_a_star, replicated_items, workers=2, threads=True)
    assert sum(found) == N_LEAVES
    assert min(found) > 0.45 * N_LEAVES


def test_without_sharing_out_one_worker_does_it_all(monkeypatch):
    """So that the test above proves something: of lists unknown, and of proposals kept."""
    assert min(ps.execute(work_on_a_star, 0, workers=2, threads=True)) == 0
    monkeypatch.setattr(tactics, "SPREAD", N_LEAVES + 1)
    assert min(ps.execute(work_on_a_star, 1 << 24, workers=2, threads=True)) == 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("replicated_items", [0, 60, 200, 1 << 24])
def test_matches_do_not_depend_on_what_is_known(replicated_items, seed, monkeypatch):
    """Three keys, loops and an absent edge; nearly every prefix is shared out."""
    monkeypatch.setattr(tactics, "SPREAD", 3)
    rng = np.random.default_rng(seed)
    pairs = np.minimum(rng.geometric(0.15, (110, 2)), 20)
    plan = make_plan(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)], [(2, 0)])

    def main(worker):
        mine = pairs[worker.index :: worker.peers]
        found, counts = [], []
        with worker.dataflow() as scope:
            edges = scope.batches_to_stream([Arrays(src=mine[:, 0], dst=mine[:, 1])])
            join = GenericJoin(
                edges, plan, range(4), True, batch_records=7, replicated_items=replicated_items
            )
            join.matches().inspect_batch(lambda time, batch: found.extend(batch))
            GenericJoin(
                edges, plan, distinct=True, batch_records=7, replicated_items=replicated_items
            ).count(lambda n: [(n,)]).inspect_batch(lambda time, batch: counts.extend(batch))
        worker.run()
        return found, counts

    results = ps.simulate(main, workers=3, seed=seed)
    graph = set(map(tuple, pairs.tolist()))
    expected = sorted(
        (a, b, c, d)
        for a, b in graph
        for c, d in graph
        if {(b, c), (d, a), (a, c), (b, d)} <= graph
        and (c, a) not in graph
        and len({a, b, c, d}) == 4
    )
    assert len(expected) > 10
    assert sorted(match for found, _ in results for match in found) == expected
    assert [count for _, counts in results for count in counts] == [(len(expected),)]
