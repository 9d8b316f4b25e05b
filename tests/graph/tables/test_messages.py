"""Messages along edges and vertex programs, against the same done record by record."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

from pointstamp.errors import ColumnError, SchemaError, UsageError
from pointstamp.graph import Graph
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import directed, tables

quick = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(tables())
def test_messages_come_to_what_they_do_record_by_record(drawn):
    people = {row["id"]: row for row in drawn[0].to_pylist()}
    sent = {}
    for row in drawn[1].to_pylist():
        ages = people[row["src"]]["age"], people[row["dst"]]["age"]
        for to, said in ((row["dst"], ages[0]), (row["src"], row["amount"])):
            if said is not None:
                sent.setdefault(to, []).append(said)
    aggregates = ["sum(msg) as total", "min(msg)", "count(msg) as n", "avg(msg * 2) as twice"]
    found = Graph(*drawn).aggregate_messages(aggregates, "edge.amount", "src.age")
    assert found.schema.names == ["id", "total", "min(msg)", "n", "twice"]
    assert {row["id"]: (row["total"], row["min(msg)"], row["n"], row["twice"])
            for row in found.to_pylist()} == {
        to: (sum(said), min(said), len(said), pytest.approx(2 * sum(said) / len(said)))
        for to, said in sent.items()
    }  # fmt: skip


@quick
@given(tables())
def test_a_program_of_components_and_one_of_ranks_are_networkx_s(drawn):
    graph = directed(*drawn)
    labels = {"label": ("id", "least(label, coalesce(msg, label))")}
    found = Graph(*drawn).pregel(
        labels, "min(msg)", send_to_dst="src.label", send_to_src="dst.label", max_iter=12
    )
    of = dict(zip(*found.select(["id", "label"]).to_pydict().values(), strict=True))
    for members in nx.weakly_connected_components(graph):
        least = min(members, key=lambda name: name.encode())
        assert {of[member] for member in members} == {least}


def test_ranks_as_a_program():
    edges = {"src": ["a", "a", "b", "c"], "dst": ["b", "c", "c", "a"]}
    graph = Graph(edges)
    with_degrees = Graph(
        {"id": ["a", "b", "c"], "n_out": graph.out_degrees.column("out_degree")}, edges
    )
    ranks = {"rank": ("1.0", "0.15 + 0.85 * coalesce(msg, 0.0)")}
    program = with_degrees.pregel(
        ranks, "sum(msg)", send_to_dst="src.rank / src.n_out", max_iter=60
    )
    expected = graph.page_rank(tol=1e-12).column("pagerank").to_pylist()
    assert program.column("rank").to_pylist() == pytest.approx(expected, abs=1e-4)


def test_a_program_ends_when_no_message_is_sent():
    graph = Graph({"src": [1, 2, 3], "dst": [2, 3, 4]})
    levels = {
        "level": ("case when id = 1 then 0 end", "coalesce(level, msg)"),
        "rounds": ("0", "rounds + 1"),
    }
    send = "case when dst.level is null then src.level + 1 end"
    found = graph.pregel(levels, "min(msg)", send_to_dst=send, max_iter=100)
    assert found.to_pydict() == {"id": [1, 2, 3, 4], "level": [0, 1, 2, 3], "rounds": [3] * 4}
    on = graph.pregel(levels, "min(msg)", send_to_dst=send, max_iter=5, early_stopping=False)
    assert on.column("rounds").to_pylist() == [5] * 4


def test_what_is_asked_wrongly_is_refused():
    graph = Graph({"src": ["a"], "dst": ["b"]})
    with pytest.raises(UsageError, match="send_to_src or send_to_dst"):
        graph.aggregate_messages("sum(msg)")
    with pytest.raises(UsageError, match="an aggregate of messages is one of"):
        graph.aggregate_messages("msg + 1", send_to_dst="src.id")
    with pytest.raises(ColumnError, match="'src' has no attribute 'age'"):
        graph.aggregate_messages("sum(msg)", send_to_dst="src.age")
    with pytest.raises(ColumnError, match=r"say 'src\.age'"):
        graph.aggregate_messages("sum(msg)", send_to_dst="age")
    with pytest.raises(UsageError, match="pregel needs a column"):
        graph.pregel({}, "sum(msg)", send_to_dst="src.id")


def test_messages_to_both_ends_are_of_a_type_that_holds_both():
    graph = Graph({"id": [1, 2], "age": [3, 4], "name": ["x", "y"]}, {"src": [1], "dst": [2]})
    found = graph.aggregate_messages("sum(msg) as s", send_to_src="dst.age", send_to_dst="0.5")
    assert found.to_pydict() == {"id": [1, 2], "s": [4.0, 0.5]}
    with pytest.raises(SchemaError, match="to sources they are int64 and to targets string"):
        graph.aggregate_messages("max(msg)", send_to_src="dst.age", send_to_dst="src.name")
    with pytest.raises(SchemaError, match="which are string, cannot be put together by sum"):
        graph.aggregate_messages("sum(msg)", send_to_dst="src.name")
    with pytest.raises(SchemaError, match="'r' begins as int64, and a round makes double"):
        graph.pregel({"r": ("1", "0.5 * coalesce(msg, 1)")}, "sum(msg)", send_to_dst="src.r")


@pytest.mark.parametrize("aggregate", ["sum", "avg", "mean", "stddev_pop", "var_pop"])
def test_booleans_are_no_numbers_as_in_spark(aggregate):
    graph = Graph({"src": [1, 2, 2], "dst": [3, 3, 1], "new": [True, True, False]})
    says = f"values that are bool cannot be put together by {aggregate}"
    with pytest.raises(SchemaError, match=says):
        graph.aggregate_messages(f"{aggregate}(msg) as n", send_to_dst="edge.new")
    with pytest.raises(SchemaError, match=says):
        graph.aggregate_messages(f"{aggregate}(msg > 1) as n", send_to_dst="src.id")
    with pytest.raises(SchemaError, match=says):
        graph.pregel({"n": ("0.0", "msg")}, f"{aggregate}(msg)", send_to_dst="edge.new")
    asked = ["sum(cast(msg as int)) as n", "max(msg) as any", "count(msg) as all"]
    found = graph.aggregate_messages(asked, send_to_dst="edge.new")
    assert found.to_pydict() == {"id": [1, 3], "n": [0, 2], "any": [False, True], "all": [1, 2]}


def test_functions_of_batches_say_what_expressions_do():
    people = {"id": ["a", "b", "c"], "age": [34, 36, None]}
    edges = {"src": ["a", "b", "c"], "dst": ["b", "c", "b"], "w": [1, 2, 3]}
    graph = Graph(people, edges)

    def scaled(batch):
        assert batch.schema.names == ["src", "edge", "dst"]
        ages = pc.struct_field(batch.column("src"), "age")
        return pc.multiply(ages, pc.struct_field(batch.column("edge"), "w"))

    by_function = graph.aggregate_messages("sum(msg) as s", "edge.w", scaled)
    assert by_function.equals(
        graph.aggregate_messages("sum(msg) as s", "edge.w", "src.age * edge.w")
    )
    least = {
        "least": (lambda batch: batch.column("id"), "least(least, coalesce(msg, least))"),
        "rounds": ("0", lambda batch: [n + 1 for n in batch.column("rounds").to_pylist()]),
    }
    sent = {"send_to_dst": lambda batch: pc.struct_field(batch.column("src"), "least")}
    found = graph.pregel(least, "min(msg)", max_iter=3, **sent)
    assert found.select(["least", "rounds"]).to_pydict() == {
        "least": ["a", "a", "a"],
        "rounds": [3, 3, 3],
    }


def test_functions_get_batches_and_what_they_give_is_checked():
    n = 70_000
    graph = Graph({"src": np.arange(n), "dst": np.zeros(n, np.int64)})
    sizes = []

    def one_each(batch):
        sizes.append(batch.num_rows)
        return np.ones(batch.num_rows, np.int64)

    found = graph.aggregate_messages("sum(msg) as n", send_to_dst=one_each)
    assert (found.to_pydict(), sizes) == ({"id": [0], "n": [n]}, [65_536, n - 65_536])
    with pytest.raises(SchemaError, match=r"messages to targets gives a value for each .* gave 1"):
        graph.aggregate_messages("sum(msg)", send_to_dst=lambda batch: [1])
    with pytest.raises(SchemaError, match="function of x gives a column"):
        graph.pregel({"x": (lambda batch: 7, "x")}, "sum(msg)", send_to_dst="src.x")
    with pytest.raises(ZeroDivisionError):
        graph.aggregate_messages("sum(msg)", send_to_src=lambda batch: 1 / 0)
