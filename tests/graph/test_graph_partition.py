"""Shares: which worker has what, and who is told how often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.graph.graph_partition import GraphPartition
from pointstamp.graph.partitioning import partitions
from pointstamp.kernels.hashing import hash_ints
from tests.graph.answers import edge_lists, quick


def shares_of(edges, directions=("in",), form="pull", workers=3, vertices=()):
    """The workers' partitions of a graph; None where there is none."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            mine = edges[worker.index :: worker.peers]
            alone = scope.to_stream(vertices) if vertices else None
            parts = partitions(scope.to_stream(mine), alone, directions, form)
            parts.inspect_batch(lambda time, batch: found.extend(batch))
        worker.run()
        return found[0] if found else None

    return ps.execute(main, workers=workers, threads=True)


def owner(vertex, workers):
    return int(hash_ints(np.array([vertex]))[0] % np.uint64(workers))


def edges_in(partition, links, form):
    """(tail, head) of every edge of a partition, as ids."""
    found = []
    for i, (begin, end) in enumerate(zip(links.begins, links.ends, strict=True)):
        others = links.others[begin:end].tolist()
        pairs = [(other, i) if form == "pull" else (i, other) for other in others]
        found += [(int(partition.ids[tail]), int(partition.ids[head])) for tail, head in pairs]
    return found


@pytest.mark.parametrize("form", ["pull", "push"])
@quick
@given(edges=edge_lists)
def test_edges_lie_with_the_owners_of_their_heads(form, edges):
    found = []
    for index, partition in enumerate(shares_of(edges, form=form)):
        if partition is None:
            continue
        here = edges_in(partition, partition.links[0], form)
        assert all(owner(head, 3) == index for _, head in here)
        assert all(owner(v, 3) == index for v in partition.vertices.tolist())
        found += here
    expected = [edge for edge in edges if edge[0] != edge[1]]
    assert sorted(found) == sorted(set(expected) if form == "pull" else expected)


@quick
@given(edges=edge_lists)
def test_every_vertex_is_owned_once_and_knows_its_degree(edges):
    parts = [partition for partition in shares_of(edges, vertices=[99]) if partition is not None]
    owned = {int(v): int(d) for s in parts for v, d in zip(s.vertices, s.degrees, strict=True)}
    assert sum(partition.n for partition in parts) == len(owned)
    proper = {edge for edge in edges if edge[0] != edge[1]}
    ids = {v for edge in edges for v in edge} | {99}
    assert owned == {v: sum(s == v for s, _ in proper) for v in ids}


@quick
@given(edges=edge_lists, chosen=st.sets(st.integers(0, 12)))
def test_who_has_a_ghost_is_told_of_it(edges, chosen):
    """Messages of some vertices reaches the place of each, at every worker that has one."""
    parts = shares_of(edges)
    told = [set() for _ in parts]
    for partition in filter(None, parts):
        rows = np.flatnonzero(np.isin(partition.vertices, list(chosen))).astype(np.int32)
        messages = partition.publish(rows, value=partition.vertices)
        assert (np.diff(messages["to"]) >= 0).all(), "sent in more pieces than there are workers"
        for to in set(messages["to"].tolist()):
            mine = messages["to"] == to
            batch = Arrays(slot=messages["slot"][mine], value=messages["value"][mine])
            places = parts[to].places_of_messages([batch])
            assert parts[to].ids[places].tolist() == batch["value"].tolist()
            told[to] |= set(batch["value"].tolist())
    for partition, heard in zip(parts, told, strict=True):
        ghosts = set(partition.ghosts.tolist()) if partition else set()
        assert heard == ghosts & chosen


@pytest.mark.parametrize("n_told", [1, 50], ids=["few", "many"])
def test_a_worker_is_told_once_of_a_vertex_however_many_edges_there_are(n_told):
    edges = [(hub, leaf) for hub in range(50) for leaf in range(100, 400)]
    for partition in shares_of(edges):
        hubs = np.flatnonzero(partition.vertices < 50).astype(np.int32)[:n_told]
        assert len(partition.publish(hubs, value=partition.vertices)) == 2 * len(hubs)


def test_places_of_ids_that_are_not_here_are_none():
    (partition,) = shares_of([(5, 7)], workers=1)
    assert isinstance(partition, GraphPartition)
    assert partition.places_of(np.array([7, 6, 5])).tolist() == [1, -1, 0]
    assert [partition.rows_of(v).tolist() for v in (7, 6, 8)] == [[1], [], []]


@quick
@given(edges=edge_lists)
def test_links_to_pull_are_the_same_of_ids_that_lie_far_apart(edges):
    far = [(tail * 10**15, head * 10**15) for tail, head in edges]
    for near, other in zip(shares_of(edges, workers=1), shares_of(far, workers=1), strict=True):
        if near is None:
            assert other is None
            continue
        assert (near.vertices * 10**15).tolist() == other.vertices.tolist()
        assert near.degrees.tolist() == other.degrees.tolist()
        for links, others in zip(near.links, other.links, strict=True):
            assert links.sizes.tolist() == others.sizes.tolist()
            assert links.others.tolist() == others.others.tolist()
