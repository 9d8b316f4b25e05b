"""Random graphs with text as ids, null attributes, edges that repeat and loops, and networkx's."""

from __future__ import annotations

import networkx as nx
import pyarrow as pa
from hypothesis import strategies as st

from pointstamp.graph import Graph

IDS = ["b", "a", "Zoë", "", "q1", "q2", "long name of a vertex", "x", "y", "z"]

ids = st.sampled_from(IDS)
kinds = st.sampled_from(["bank", "shop", None])
amounts = st.one_of(st.none(), st.integers(0, 5))
edge_rows = st.lists(st.tuples(ids, ids, amounts, kinds), max_size=24)


@st.composite
def tables(draw, max_edges=24):
    """Vertices in any order, some without edges, and edges."""
    names = draw(st.permutations(IDS))
    n = draw(st.integers(1, len(names)))
    names = names[:n]
    ends = st.sampled_from(names)
    rows = draw(st.lists(st.tuples(ends, ends, amounts, kinds), max_size=max_edges))
    vertices = pa.table(
        {
            "id": pa.array(names, pa.string()),
            "kind": pa.array(draw(st.lists(kinds, min_size=n, max_size=n)), pa.string()),
            "age": pa.array(draw(st.lists(amounts, min_size=n, max_size=n)), pa.int64()),
        }
    )
    edges = pa.table(
        {
            "src": pa.array([row[0] for row in rows], pa.string()),
            "dst": pa.array([row[1] for row in rows], pa.string()),
            "amount": pa.array([row[2] for row in rows], pa.int64()),
            "sort": pa.array([row[3] for row in rows], pa.string()),
        }
    )
    return vertices, edges


def graphs_of(vertices, edges):
    """The graph on one worker, and on three."""
    return [Graph(vertices, edges), Graph(vertices, edges, workers=3, threads=True)]


def same(vertices, edges, ask):
    """The answer of `ask(graph)`, a table, after a look that three workers give the same."""
    one, three = (ask(graph) for graph in graphs_of(vertices, edges))
    assert one.equals(three), f"{one.to_pylist()}\n{three.to_pylist()}"
    assert one.schema.names[:3] == vertices.schema.names
    assert one.select(vertices.schema.names).equals(vertices)
    return dict(zip(one.column("id").to_pylist(), one.columns[-1].to_pylist(), strict=True))


def directed(vertices, edges, make=nx.DiGraph):
    """networkx's graph of the same; of edges that repeat it adds the weights up."""
    graph = make()
    graph.add_nodes_from(vertices.column("id").to_pylist())
    for source, target in zip(*(edges.column(c).to_pylist() for c in ("src", "dst")), strict=True):
        before = graph.get_edge_data(source, target, {"weight": 0.0})["weight"]
        graph.add_edge(source, target, weight=before + 1.0)
    return graph


def undirected(vertices, edges):
    """The same without directions and loops."""
    graph = nx.Graph(directed(vertices, edges))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph
