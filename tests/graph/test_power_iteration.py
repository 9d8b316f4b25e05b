"""Clusters by power iteration, against the definition in NumPy, and graphs of which they are known.

The groups of the numbers are tested against all ways to group them.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import SchemaError, UsageError, WorkerError
from pointstamp.graph import power_iteration_clusters
from pointstamp.graph.line_clusters import line_clusters
from tests.graph.answers import quick, same_on_all

weights = st.sampled_from([0.0, 0.5, 1.0, 3.0])
weighted_edges = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), weights), min_size=1, max_size=30
)


def cost(values, groups):
    return sum(np.var(values[groups == g]) * (groups == g).sum() for g in np.unique(groups))


@quick
@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 4.0, -7.0, 9.0, 9.5]), max_size=9), st.integers(1, 4)
)
def test_groups_on_a_line_are_the_best_of_all_ways_to_cut_it(drawn, k):
    values = np.array(drawn, np.float64)
    found = line_clusters(values, k)
    assert len(found) == len(values)
    distinct = np.unique(values)
    n = min(k, len(distinct))
    assert sorted(set(found.tolist())) == list(range(n))
    assert all(np.ptp(values[found == g]) == 0 or n == k for g in range(n))
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    if n:
        ways = itertools.combinations(distinct[1:], n - 1)
        least = min(cost(values, np.searchsorted(np.array(cut), values, "right")) for cut in ways)
        assert cost(values, found) == pytest.approx(least, abs=1e-9)


def test_many_values_are_grouped_as_they_were_made():
    chosen = np.random.default_rng(1)
    groups = chosen.integers(0, 7, 20_000)
    values = groups * 10.0 + chosen.random(20_000)
    assert line_clusters(values, 7).tolist() == groups.tolist()


def numbers_by_definition(edges, rounds):
    """Dense matrices, sums of floats: the vertices that have edges, and their numbers."""
    matrix = np.zeros((10, 10))
    for source, target, weight in edges:
        if source != target:
            matrix[source, target] += weight
            matrix[target, source] += weight
    own = np.flatnonzero(matrix.sum(axis=1))
    matrix = matrix[np.ix_(own, own)]
    sums = matrix.sum(axis=1)
    numbers = sums / sums.sum()
    change = np.inf
    for _ in range(rounds if len(own) else 0):
        after = (matrix / sums[:, None]) @ numbers
        after /= after.sum()
        before, change = change, np.abs(after - numbers).sum()
        numbers = after
        if abs(change - before) <= max(1e-5 / len(own), 1e-8):
            break
    return own, numbers


@quick
@given(weighted_edges, st.integers(1, 4), st.integers(0, 12))
def test_clusters_are_groups_of_the_numbers_of_the_definition(edges, k, rounds):
    def build(edges, vertices):
        return power_iteration_clusters(edges, vertices, k=k, rounds=rounds)

    found = same_on_all(build, edges, [3, 30])
    own, numbers = numbers_by_definition(edges, rounds)
    assert sorted(found) == own.tolist()
    if len(own):
        clusters = np.array([found[vertex] for vertex in own.tolist()])
        expected = line_clusters(numbers, k)
        assert cost(numbers, clusters) == pytest.approx(cost(numbers, expected), abs=1e-9)


def test_cliques_of_two_sizes_are_two_clusters_whatever_leads_from_one_to_the_other():
    large, small = range(12), range(20, 25)
    edges = [(a, b, 1.0) for part in (large, small) for a, b in itertools.combinations(part, 2)]
    edges.append((3, 21, 0.01))
    found = same_on_all(lambda e, v: power_iteration_clusters(e, v, k=2, rounds=20), edges, [99])
    assert found == {**dict.fromkeys(large, 1), **dict.fromkeys(small, 0)}


def test_what_cannot_be_asked_is_refused():
    for wrong in ({"k": 0, "rounds": 1}, {"k": 1, "rounds": -1}):
        with pytest.raises(UsageError, match=r"needs [01] or more as its (k|rounds), not"):
            power_iteration_clusters(None, **wrong)
    with pytest.raises((SchemaError, WorkerError), match="weights of 0 or more"):
        same_on_all(lambda e, v: power_iteration_clusters(e, v, k=2, rounds=1), [(1, 2, -1.0)], [])
