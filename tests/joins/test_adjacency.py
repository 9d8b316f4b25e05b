"""The index of one worker: rows, edges in pieces, who owns what, room for marks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import InternalError
from pointstamp.joins.adjacency import Adjacency, IndexedGraph

graphs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


def adjacency(direction, edges):
    table = np.array(edges, np.int64).reshape(-1, 2)
    return Adjacency.build(direction, table[:, 0], table[:, 1])


@given(edges=graphs, vertex=st.integers(-1, 11))
def test_a_row_has_the_neighbours_in_its_direction(edges, vertex):
    for direction, pairs in (("forward", edges), ("reverse", [(t, s) for s, t in edges])):
        index = adjacency(direction, edges)
        begins, ends = index.spans(np.array([vertex]))
        row = index.values[begins[0] : ends[0]].tolist()
        assert row == sorted({t for s, t in pairs if s == vertex})


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 5))
def test_a_record_sent_by_a_vertex_arrives_where_its_row_is(vertices, peers):
    batch = Arrays(v=np.array(vertices, np.int64))
    kind = kind_of(batch)
    for peer, part in enumerate(kind.split(batch, kind.hashes(batch, "v"), peers)):
        assert (IndexedGraph(0, peers).owners(part["v"]) == peer).all()
        for other in range(peers):
            assert (IndexedGraph(other, peers).has("forward", part["v"]) == (other == peer)).all()


def test_a_graph_without_an_index_has_no_edges():
    graph = IndexedGraph()
    assert not len(graph.adjacency("reverse").values)
    assert len(graph.marks) == len(graph.ids) == 0
    assert graph.numbers_of(np.array([3])).tolist() == [-1]


def test_numbers_are_of_the_neighbours_of_both_directions_in_order():
    far = [(1, 300), (1, -(2**63)), (2**63 - 1, 300)]
    graph = IndexedGraph(0, 1, [adjacency("forward", far), adjacency("reverse", far)])
    assert graph.ids.tolist() == [-(2**63), 1, 300, 2**63 - 1]
    assert graph.numbers_of(np.array([300, 7, 1])).tolist() == [2, -1, 1]
    assert len(graph.marks) == 4
    for direction, vertex, row in (("forward", 1, [0, 2]), ("reverse", 300, [1, 3])):
        index = graph.adjacency(direction)
        assert index.values.dtype == np.int32
        (begin,), (end,) = index.spans(np.array([vertex]))
        assert index.values[begin:end].tolist() == row


def test_a_second_index_of_one_direction_is_a_bug_of_ours():
    with pytest.raises(InternalError):
        IndexedGraph(0, 1, [adjacency("forward", [(1, 2)])] * 2)
