"""A vertex program on workers that have parts of a graph, against the same in one process."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

from pointstamp.errors import GraphError, SchemaError
from pointstamp.graph import Graph
from pointstamp.graph.tables.local_run import LocalRun
from pointstamp.graph.tables.messages import PregelProgram
from pointstamp.graph.tables.vertex_program import ProgramFlow
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import tables

quick = settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))


def amounts(batch):
    """A message of nulls and numbers, of a whole edge with both its vertices."""
    assert batch.schema.names == ["src", "edge", "dst"]
    assert batch.schema.field("dst").type.names == ["id", "kind", "age", "total", "n"]
    assert batch.schema.field("edge").type.names == ["src", "dst", "amount", "sort"]
    rows = batch.to_pylist()
    found = [
        None if row["edge"]["amount"] is None else row["edge"]["amount"] + row["dst"]["total"]
        for row in rows
    ]
    return pa.array(found, pa.int64())


PROGRAMS = {
    "components": {
        "columns": {"label": ("id", "least(label, coalesce(msg, label))")},
        "aggregate": "min(msg)",
        "to_source": "dst.label",
        "to_target": "src.label",
        "max_iter": 12,
    },
    "sums of attributes of all three": {
        "columns": {"total": ("0", "total + coalesce(msg, 0)"), "rounds": ("0", "rounds + 1")},
        "aggregate": "sum(msg)",
        "to_source": "edge.amount + coalesce(dst.age, 1)",
        "to_target": "case when src.rounds < 2 then src.age + dst.rounds end",
        "max_iter": 5,
    },
    "levels, which end early": {
        "columns": {
            "level": ("case when id = 'a' then 0 end", "coalesce(level, msg)"),
            "rounds": ("0", "rounds + 1"),
        },
        "aggregate": "min(msg)",
        "to_source": None,
        "to_target": "case when dst.level is null then src.level + 1 end",
        "max_iter": 50,
    },
    "functions of batches": {
        "columns": {
            "total": (lambda batch: pc.utf8_length(batch.column("id")), "total + coalesce(msg, 1)"),
            "n": ("0", lambda batch: [n.as_py() + 3 for n in batch.column("n")]),
        },
        "aggregate": "sum(msg)",
        "to_source": amounts,
        "to_target": "src.total",
        "max_iter": 4,
    },
    "no round": {
        "columns": {"n": ("length(id)", "n + msg")},
        "aggregate": "sum(msg)",
        "to_source": None,
        "to_target": "src.n",
        "max_iter": 0,
    },
}


def spread_out(program, vertices, edges, workers):
    """What the dataflow makes, of records that are shared out without order."""
    schema = program.schema_of(vertices.schema, edges.schema)
    flow = ProgramFlow(program, vertices.schema, edges.schema, schema)

    def build(scope):
        streams = [
            scope.batches_to_stream(table.to_batches(3)[scope.index :: scope.peers])
            for table in (vertices, edges)
        ]
        return flow(scope, *streams)

    found = LocalRun(workers, True).rows_of(build)
    return (schema.empty_table() if found is None else found).sort_by("id")


@pytest.mark.parametrize("name", PROGRAMS)
@quick
@given(tables())
def test_rounds_of_parts_are_those_of_the_whole(name, drawn):
    given = PROGRAMS[name]
    program = PregelProgram.of(**given, early_stopping=True)
    sent = {"send_to_src": given["to_source"], "send_to_dst": given["to_target"]}
    expected = Graph(*drawn).pregel(
        given["columns"], given["aggregate"], max_iter=given["max_iter"], **sent
    )
    for workers in (1, 3):
        found = spread_out(program, *drawn, workers)
        assert found.equals(expected.sort_by("id").cast(found.schema)), (found, expected)


def test_edges_of_what_is_no_vertex_are_none_and_ids_that_repeat_are_refused():
    program = PregelProgram.of(
        {"n": ("0", "n + msg")}, "count(msg)", "src.id", "src.id", 3, early_stopping=True
    )
    edges = pa.table({"src": ["a", "a", "x", "b"], "dst": ["b", "x", "a", "y"]})
    for workers in (1, 3):
        found = spread_out(program, pa.table({"id": ["a", "b"]}), edges, workers)
        assert found.to_pydict() == {"id": ["a", "b"], "n": [3, 3]}
        found = spread_out(program, pa.table({"id": ["c"]}), edges, workers)
        assert found.to_pydict() == {"id": ["c"], "n": [0]}  # which no message begins
    with pytest.raises(GraphError, match="have an id that another one has, such as 'a'"):
        spread_out(program, pa.table({"id": ["a", "a"]}), edges, 1)


def test_what_a_round_makes_has_a_type_that_the_column_can_have_whatever_the_values_are():
    vertices, edges = {"id": [1], "age": [2]}, {"src": [1], "dst": [1]}
    graph = Graph(vertices, edges)
    for then in ("n / msg", "'1'", "id = 1"):
        with pytest.raises(SchemaError, match="'n' begins as int64, and a round makes "):
            graph.pregel({"n": ("age", then)}, "sum(msg)", send_to_dst="src.n")
    found = graph.pregel({"n": ("cast(age as double)", "msg")}, "sum(msg)", send_to_dst="src.age")
    assert found.column("n").to_pylist() == [2.0]


def test_a_column_without_a_type_is_refused_before_anything_runs():
    schemas = pa.schema({"id": pa.int64()}), pa.schema({"src": pa.int64(), "dst": pa.int64()})
    for begins in ("null", lambda batch: [7] * batch.num_rows):
        program = PregelProgram.of(
            {"n": (begins, "n")}, "min(msg)", None, "src.n", 3, early_stopping=True
        )
        with pytest.raises(SchemaError, match="'n' begins without a type"):
            program.schema_of(*schemas)
