"""Running a graph algorithm on some workers, and reading the graphs that have known answers."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import pointstamp as ps
from tests.conftest import examples

WORKERS = [1, 2, 3]

quick = settings(
    max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture]
)

ids = st.one_of(st.integers(0, 12), st.sampled_from([-(2**63), 2**63 - 1, 10**12]))
edge_lists = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)
wide_edge_lists = st.lists(st.tuples(ids, ids), max_size=25)
vertex_lists = st.lists(st.integers(0, 15), max_size=5)
graphs = st.tuples(st.one_of(edge_lists, wide_edge_lists), vertex_lists)


def batches(columns, size):
    """Arrow batches of at most `size` records, of columns by name."""
    table = pa.table(columns)
    return table.to_batches(max_chunksize=size)


def answer(build, edges, vertices=(), workers=1, size=3):
    """The records of `build(edges, vertices)`, by their first column.

    The edges are pairs, or triples with weights, and are spread over the workers
    whose number they must not depend on.
    """
    types = {"src": pa.int64(), "dst": pa.int64(), "weight": pa.float64()}
    width = len(edges[0]) if len(edges) else 2
    columns = {
        name: pa.array([edge[i] for edge in edges], kind)
        for i, (name, kind) in enumerate(list(types.items())[:width])
    }
    nodes = {"vertex": pa.array(np.array(list(vertices), np.int64))}

    def main(worker):
        found = []

        def mine(columns):
            return batches(columns, size)[worker.index :: worker.peers]

        with worker.dataflow() as scope:
            result = build(
                scope.batches_to_stream(mine(columns)), scope.batches_to_stream(mine(nodes))
            )
            result.inspect_batch(lambda time, batch: found.append(batch))
        worker.run()
        return found

    parts = ps.execute(main, workers=workers, threads=True)
    found = [batch for part in parts for batch in part]
    assert all(isinstance(batch, pa.RecordBatch) for batch in found)
    rows = [row for batch in found for row in zip(*batch.to_pydict().values(), strict=True)]
    by_key = {row[0]: row[1] if len(row) == 2 else row[1:] for row in rows}
    assert len(by_key) == len(rows), "a vertex was answered twice"
    return by_key


def same_on_all(build, edges, vertices=(), size=3):
    """The answer, after a look that it is the same on 1, 2 and 3 workers, to the last bit."""
    first, *others = (answer(build, edges, vertices, n, size) for n in WORKERS)
    for other in others:
        assert other == first
    return first


def real_edges(data, name):
    with gzip.open(data(name, f"{name}.txt.gz"), "rt") as lines:
        return np.loadtxt(lines, np.int64, comments="#", usecols=(0, 1))


def published(data, name):
    answers = json.loads(data(name, "answers.json").read_text())
    return {**answers["recomputed"], **answers["published"]}


class Ldbc:
    """One of the two examples of LDBC Graphalytics."""

    def __init__(self, data, name):
        self._data = data
        self.name = name
        self.directed = name == "example-directed"
        lines = self._lines(f"{name}.e")
        self.weighted = [(int(s), int(t), float(w)) for s, t, w in lines]
        self.edges = [(s, t) for s, t, _ in self.weighted]
        self.vertices = [int(v) for (v,) in self._lines(f"{name}.v")]
        text = data("ldbc-example", f"{name}.properties").read_text().splitlines()
        pairs = [line.split(" = ", 1) for line in text if " = " in line and line[0] != "#"]
        self._properties = {key.removeprefix(f"graph.{name}."): value for key, value in pairs}

    def parameter(self, name):
        return self._properties[name]

    def reference(self, algorithm):
        lines = self._lines(f"{self.name}-{algorithm}")
        return {int(v): math.inf if value == "infinity" else float(value) for v, value in lines}

    def _lines(self, name):
        lines = self._data("ldbc-example", name).read_text().splitlines()
        return [line.split() for line in lines if line.strip()]
