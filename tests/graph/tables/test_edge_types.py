"""Degrees by the type of edges."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.errors import ColumnError, GraphError, SchemaError, UsageError
from pointstamp.graph import Graph


def expected(edges: list[tuple[str, str, Any]], ends: list[int], types: list[Any]) -> Any:
    """Of each vertex with an edge at one of the ends, how many of each type."""
    counts: Counter[tuple[str, Any]] = Counter()
    for edge in edges:
        counts.update((edge[end], edge[2]) for end in ends)
    return {vertex: [counts[vertex, one] for one in types] for vertex in {key[0] for key in counts}}


def found(table: Any) -> Any:
    return {one["id"]: list(one[table.schema.names[1]].values()) for one in table.to_pylist()}


@pytest.mark.parametrize("kind", [pa.string(), pa.int16(), pa.bool_(), pa.date32()])
def test_degrees_by_type_are_those_of_a_count(kind):
    values = {
        pa.string(): ["é", "", None, "b"],
        pa.int16(): [3, -1, None, 0],
        pa.bool_(): [True, None, False],
        pa.date32(): [dt.date(2024, 2, 29), None],
    }[kind]
    choose = np.random.default_rng(1)
    edges = [
        (f"v{a}", f"v{b}", values[c])
        for a, b, c in choose.integers(0, [9, 9, len(values)], (60, 3)).tolist()
    ]
    columns = dict(
        zip(("src", "dst"), zip(*((a, b) for a, b, _ in edges), strict=True), strict=True)
    )
    table = pa.table({**columns, "kind": pa.array([one[2] for one in edges], kind)})
    graph = Graph({"id": [f"v{i}" for i in range(12)]}, table)
    in_order = [None, *sorted(value for value in values if value is not None)]
    for name, ends in (("type_degree", [0, 1]), ("type_out_degree", [0]), ("type_in_degree", [1])):
        ask = getattr(graph, name)
        assert found(ask("kind")) == expected(edges, ends, in_order)
        given = [in_order[-1], None]
        assert found(ask("kind", given)) == expected(edges, ends, given)


def test_fields_are_called_as_types():
    edges = {"src": [1, 1], "dst": [2, 2], "kind": [None, "a.b"], "is_new": [True, False]}
    graph = Graph(edges)
    assert graph.type_out_degree("kind").to_pylist() == [
        {"id": 1, "out_degrees": {"null": 1, "a.b": 1}}
    ]
    assert graph.type_in_degree("is_new").schema.field("in_degrees").type.names == [
        "false",
        "true",
    ]
    categories = pa.table(edges).set_column(2, "kind", pa.array(edges["kind"]).dictionary_encode())
    assert Graph(categories).type_degree("kind") == graph.type_degree("kind")


def test_types_that_make_no_fields_are_refused():
    graph = Graph({"src": [1, 1], "dst": [2, 2], "kind": [None, "null"], "tags": [[1], [2]]})
    with pytest.raises(
        ColumnError, match="edges have no column 'sort' of types, only 'src', 'dst'"
    ):
        graph.type_degree("sort")
    with pytest.raises(UsageError, match="two types of edges are called 'null'"):
        graph.type_degree("kind")
    with pytest.raises(GraphError, match=r"types of edges are string, and \[1\] are not"):
        graph.type_degree("kind", [1])
    with pytest.raises(UsageError, match="from 1 to 1000, and there are 0"):
        graph.type_degree("kind", [])
    with pytest.raises(SchemaError, match="types of edges are text or numbers, not list"):
        graph.type_degree("tags")
    many = Graph({"src": [1] * 1001, "dst": [2] * 1001, "kind": range(1001)})
    with pytest.raises(UsageError, match="from 1 to 1000, and there are 1001"):
        many.type_degree("kind")
    assert many.type_degree("kind", [7]).to_pylist()[0] == {"id": 1, "degrees": {"7": 1}}
