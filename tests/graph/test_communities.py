"""Label propagation against LDBC's reference, and the definition."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import UsageError, WorkerError
from pointstamp.graph import communities
from tests.graph.answers import Ldbc, answer, graphs, quick, real_edges, same_on_all


def by_definition(edges, vertices, rounds, directed):
    arcs = {(s, t) for s, t in edges if s != t}
    pairs = [*arcs, *((t, s) for s, t in arcs)]
    votes = collections.Counter(pairs) if directed else dict.fromkeys(pairs, 1)
    near = collections.defaultdict(list)
    for (s, t), n in votes.items():
        near[t] += [s] * n
    labels = {v: v for edge in edges for v in edge} | {v: v for v in vertices}
    for _ in range(rounds):
        after = {}
        for v in labels:
            count = collections.Counter(labels[u] for u in near[v])
            after[v] = min(count, key=lambda x: (-count[x], x)) if count else labels[v]
        labels = after
    return labels


@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_communities_are_those_of_ldbc(data, name):
    ldbc = Ldbc(data, name)
    rounds = int(ldbc.parameter("cdlp.max-iterations"))
    found = same_on_all(
        lambda e, v: communities(e, v, rounds=rounds, directed=ldbc.directed),
        ldbc.edges,
        ldbc.vertices,
    )
    assert found == ldbc.reference("CDLP")


@quick
@given(graph=graphs, rounds=st.integers(0, 5), directed=st.booleans())
def test_communities_are_those_of_the_definition(graph, rounds, directed):
    found = same_on_all(lambda e, v: communities(e, v, rounds=rounds, directed=directed), *graph)
    assert found == by_definition(*graph, rounds, directed)


def test_labels_that_swap_for_ever_stop_with_the_rounds():
    for rounds, expected in [(4, {1: 1, 2: 2}), (5, {1: 2, 2: 1})]:
        build = lambda e, v, rounds=rounds: communities(e, rounds=rounds)  # noqa: E731
        assert same_on_all(build, [(1, 2)]) == expected


def test_the_communities_of_a_real_graph(data):
    edges = real_edges(data, "email-Eu-core")
    found = same_on_all(lambda e, v: communities(e, rounds=5), edges, size=10_000)
    assert found == by_definition(edges.tolist(), (), 5, True)


def test_fewer_than_no_rounds_are_refused():
    with pytest.raises(WorkerError) as caught:
        answer(lambda e, v: communities(e, rounds=-1), [(1, 2)], workers=2)
    assert isinstance(caught.value.__cause__, UsageError)
