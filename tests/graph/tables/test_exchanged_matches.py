"""Searches in records that are spread over workers, with small tables and with large ones."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import WorkerError
from pointstamp.graph import Graph
from pointstamp.graph.tables import small_tables
from pointstamp.graph.tables.exchanged import SearchFlow
from pointstamp.graph.tables.searches import all_columns
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import tables

quick = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))

PATTERNS = [
    "(a)-[e1]->(b); (b)-[e2]->(c)",
    "(a)-[e1]->(b); (b)-[]->(c); (c)-[]->(a)",
    "()-[e1]->()",
    "(a)-[]->()",
    "(b)-[e*1..3]->(a)",
    "(a); (b)",
]


class SpreadGraph(Graph):
    """A graph whose `find` has the vertices and edges spread over three workers."""

    def _found(self, searches, limit):
        columns = all_columns([search.pattern for search in searches])
        structs = {"vertex": self.vertices.schema, "edge": self.edges.schema}
        fields = [pa.field(name, pa.struct(list(structs[kind]))) for name, kind in columns.items()]
        if searches[0].pattern.hop:
            fields += [("_hop", pa.int64()), ("_pattern", pa.string()), ("_direction", pa.string())]
        schema = pa.schema(fields)
        flow = SearchFlow(searches, columns, schema)
        given_tables = self.vertices, self.edges

        def main(worker):
            found = []
            with worker.dataflow() as scope:
                streams = (
                    scope.batches_to_stream(
                        [
                            batch
                            for i in range(worker.index, table.num_rows, worker.peers)
                            for batch in table.slice(i, 1).combine_chunks().to_batches()
                        ]
                    )
                    for table in given_tables
                )
                flow(scope, *streams).inspect_batch(lambda _, batch: found.append(batch))
            worker.run()
            return found

        parts = ps.execute(main, workers=3, threads=True)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema)


def rows_of(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("small", [0, 1 << 20])
@quick
@given(graph=tables(max_edges=8), condition=st.booleans())
def test_matches_are_those_of_the_graph_in_one_place(pattern, small, graph, condition):
    where = "a.age is null or a.age < 3" if condition and "(a)" in pattern else None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(small_tables, "SMALL", small)
        spread = SpreadGraph(*graph).find(pattern, where)
    whole = Graph(*graph).find(pattern, where)
    assert spread.schema.names == whole.schema.names
    assert rows_of(spread) == rows_of(whole)


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_ids_that_repeat_are_refused(small, monkeypatch):
    monkeypatch.setattr(small_tables, "SMALL", small)
    graph = SpreadGraph({"id": ["a", "b"], "n": [1, 2]}, {"src": ["a"], "dst": ["b"]})
    twice = pa.table({"id": ["a", "b", "a"], "n": [1, 2, 3]})
    monkeypatch.setattr(SpreadGraph, "vertices", twice)
    with pytest.raises(WorkerError, match="1 vertices have an id that another one has"):
        graph.find("(a)-[e]->(b)")


def test_small_tables_alone_are_sent_to_all_workers(monkeypatch):
    seen = []
    whole = small_tables.chosen_by_size

    def noted(records, sizes, choose):
        def look(batch, small):
            seen.append(small)
            return choose(batch, small)

        return whole(records, sizes, look)

    monkeypatch.setattr("pointstamp.graph.tables.exchanged.chosen_by_size", noted)
    vertices = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
    edges = pa.table({"src": ["a"], "dst": ["b"]})
    n_bytes = sum(
        batch.nbytes
        for table in (vertices, edges)
        for i in range(table.num_rows)
        for batch in table.slice(i, 1).to_batches()
    )
    for limit, small in [(n_bytes, True), (n_bytes - 1, False)]:
        monkeypatch.setattr(small_tables, "SMALL", limit)
        seen.clear()
        assert SpreadGraph(vertices, edges).find("(a)-[e]->(b)").num_rows == 1
        assert {*seen} == {small}
