"""Union-find against networkx, compiled and plain."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.unionfind import least_roots

pairs = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=30)


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(pairs=pairs)
def test_roots_are_the_least_that_are_connected(form, pairs):
    graph = networkx.Graph(pairs)
    graph.add_nodes_from(range(15))
    expected = {
        v: least
        for part in networkx.connected_components(graph)
        for least in [min(part)]
        for v in part
    }
    table = np.array(pairs, np.int32).reshape(-1, 2)
    run = least_roots if form == "compiled" else least_roots.plain
    found = run(table[:, 0].copy(), table[:, 1].copy(), 15)
    assert found.tolist() == [expected[v] for v in range(15)]
