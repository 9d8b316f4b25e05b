"""Reaching along edges: compiled, plain, and by the definition."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.lists import group
from pointstamp.kernels.reach import expand, reach_alike, shorten, spread_least
from pointstamp.kernels.sums import set_values, sum_lists, sum_weighted_lists

N = 8
FORMS = ["compiled", "plain"]

edge_lists = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=24)
vertex_sets = st.sets(st.integers(0, N - 1)).map(sorted)


def in_form(kernel, form):
    return kernel if form == "compiled" else kernel.plain


def pushing(edges):
    table = np.array(edges, np.int32).reshape(-1, 2)
    starts, others = group(table[:, 0].copy(), N, table[:, 1].copy())
    return starts[:-1].copy(), starts[1:].copy(), others


def numbers(values):
    return np.array(values, np.int32)


@pytest.mark.parametrize("form", FORMS)
@given(edges=edge_lists, fresh=vertex_sets)
def test_a_step_gives_a_level_to_those_without(form, edges, fresh):
    levels = np.full(N, -1, np.int64)
    levels[fresh] = 3
    found = in_form(expand, form)(*pushing(edges), numbers(fresh), levels, 4)
    expected = sorted({t for s, t in edges if s in fresh} - set(fresh))
    assert sorted(found.tolist()) == expected
    assert np.flatnonzero(levels == 4).tolist() == expected


@pytest.mark.parametrize("form", FORMS)
@given(edges=edge_lists, closed=vertex_sets, labels=st.permutations(range(N)))
def test_labels_become_the_least_that_lead_here(form, edges, closed, labels):
    is_open = np.ones(N, np.bool_)
    is_open[closed] = False
    expected = list(labels)
    for _ in range(N):
        for s, t in edges:
            if t not in closed:
                expected[t] = min(expected[t], expected[s])
    found = np.array(labels, np.int64)
    queue, queued = np.empty(N + 1, np.int32), np.zeros(N, np.bool_)
    changed = in_form(spread_least, form)(
        *pushing(edges), found, is_open, numbers(range(N)), queue, queued
    )
    assert found.tolist() == expected
    assert changed.tolist() == [v for v in range(N) if expected[v] != labels[v]]
    assert not queued.any()


@pytest.mark.parametrize("form", FORMS)
@given(
    edges=edge_lists,
    labels=st.lists(st.integers(0, 2), min_size=N, max_size=N),
    fresh=vertex_sets,
)
def test_reaching_stays_among_equal_labels(form, edges, labels, fresh):
    alike = networkx.DiGraph([(s, t) for s, t in edges if labels[s] == labels[t]])
    alike.add_nodes_from(range(N))
    expected = set().union(*(networkx.descendants(alike, v) for v in fresh)) - set(fresh)
    reached = np.zeros(N, np.bool_)
    reached[fresh] = True
    found = in_form(reach_alike, form)(
        *pushing(edges), np.array(labels, np.int64), reached, numbers(fresh)
    )
    assert found.tolist() == sorted(expected)
    assert np.flatnonzero(reached).tolist() == sorted(expected | set(fresh))


@pytest.mark.parametrize("form", FORMS)
@given(
    edges=st.lists(
        st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.integers(0, 9)), max_size=30
    ),
    known=st.dictionaries(st.integers(0, N - 1), st.integers(0, 20), max_size=3),
)
def test_distances_are_the_least_from_any_that_is_known(form, edges, known):
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(N))
    for s, t, w in sorted(edges, key=lambda e: -e[2]):
        graph.add_edge(s, t, weight=w)
    expected = [np.inf] * N
    for source, start in known.items():
        lengths = networkx.single_source_dijkstra_path_length(graph, source)
        for v, length in lengths.items():
            expected[v] = min(expected[v], start + length)
    sources = numbers([s for s, _, _ in edges])
    _, weights = group(sources, N, np.array([w for *_, w in edges], np.float64))
    distances = np.full(N, np.inf)
    distances[list(known)] = list(known.values())
    before = distances.copy()
    heap, position = np.empty(N, np.int32), np.full(N, -1, np.int32)
    changed = in_form(shorten, form)(
        *pushing([e[:2] for e in edges]), weights, distances, numbers(sorted(known)), heap, position
    )
    assert distances.tolist() == expected
    assert changed.tolist() == np.flatnonzero(distances < before).tolist()
    assert (position == -1).all()


@pytest.mark.parametrize("form", FORMS)
@given(edges=edge_lists)
def test_sums_are_added_in_the_order_of_the_lists(form, edges):
    values = 1 / np.arange(3.0, N + 3)
    begins, ends, others = pushing(edges)
    found = in_form(sum_lists, form)(begins, ends, others, values)
    expected = [
        sum((values[o] for o in others[b:e]), 0.0) for b, e in zip(begins, ends, strict=True)
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize("form", FORMS)
@given(edges=edge_lists)
def test_weighted_sums_are_added_in_the_order_of_the_lists(form, edges):
    values, weights = 1 / np.arange(3.0, N + 3), 1 / np.arange(7.0, len(edges) + 7)
    begins, ends, others = pushing(edges)
    starts = np.append(begins, ends[-1:])
    found = in_form(sum_weighted_lists, form)(starts, others, weights, values)
    expected = [
        sum((values[others[j]] * weights[j] for j in range(b, e)), 0.0)
        for b, e in zip(begins, ends, strict=True)
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize("form", ["compiled", "plain"])
def test_values_are_put_in_the_places_of_their_slots(form):
    slots, values = np.array([2, -1, 0, -3], np.int32), np.array([1.0, 2.0, 3.0, 4.0])
    places = np.zeros(5)
    assert in_form(set_values, form)(slots, values, 1, places) == 2
    assert places.tolist() == [0.0, 3.0, 0.0, 1.0, 0.0]
