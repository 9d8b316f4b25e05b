"""Patterns of vertices and edges with attributes, against trying every way to put edges."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointstamp.errors import ColumnError, PatternError, SchemaError, UsageError
from pointstamp.graph import Graph
from pointstamp.graph.tables import element_search, numbered_graph
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import graphs_of, tables

quick = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))

TERM = re.compile(r"(!?)\((\w*)\)(<?)-\[(\w*)\]-(>?)\((\w*)\)|\((\w+)\)")

PATTERNS = [
    "(a)-[e]->(b)",
    "(a)-[e1]->(b); (b)-[e2]->(a)",
    "(a)-[e1]->(b); (b)-[e2]->(c)",
    "(a)-[e1]->(b); (b)-[]->(c); (a)-[e3]->(c)",
    "(a)-[e1]->(b); (a)-[e2]->(b)",
    "(a)-[e1]-(b)",
    "(a)-[e1]-(b); (b)-[e2]-(c)",
    "(a)<-[e1]-(b)",
    "(a)-[e1]->()",
    "(a)-[]->(a); (a)-[e2]->(b)",
    "(a)-[e1]->(b); !(b)-[]->(a)",
    "(a)-[e1]->(b); !(a)-[]-(c)",
    "(a); (b)",
    "(a)-[e1]->(b); (c)-[e2]->(d)",
    "!(a)-[]->(b)",
    "(a)-[e1]->(b); !(b)-[]->()",
    "!()-[]->(a)",
    "(a)-[e1]->(b); !(b)-[]-()",
]
CONDITIONS = [
    None,
    "a.age > 2",
    "a.kind = 'bank' or b.age < 4",
    "a.age < b.age and a.kind = 'bank'",
    "a.age is null and not (b.kind = 'shop')",
    "a.id != b.id",
    "e1.amount < e2.amount and e1.sort = 'bank'",
    "e1.amount + coalesce(a.age, 1) >= 3",
    "e1.sort = a.kind and e2.amount in (1, 2, 3)",
]


@pytest.mark.parametrize(
    "pattern", ["(b)<-[e]->(c)", "(b)<-[e]->()", "()<-[e]->(b)", "()<-[e]->()"]
)
def test_edges_both_ways_have_two_ends_named_or_not(pattern):
    graph = Graph({"src": [1, 2, 3, 4], "dst": [2, 3, 2, 4], "eid": [10, 20, 30, 40]})
    found = graph.find(pattern).to_pylist()
    assert sorted((m["e1"]["eid"], m["e2"]["eid"]) for m in found) == [(20, 30), (30, 20), (40, 40)]
    assert graph.count(pattern) == 3


def brute_force(vertices, edges, pattern, distinct):
    """Every match of a pattern, as a dict from its names to records, found by trying all."""
    terms = [TERM.fullmatch(part.strip()).groups() for part in pattern.split(";")]
    names = []
    for _, left, _, name, _, right, alone in terms:
        names += [n for n in ((left, name, right) if alone is None else (alone,)) if n]
    names = list(dict.fromkeys(names))
    people = {row["id"]: row for row in vertices.to_pylist()}
    rows = edges.to_pylist()
    present = [t for t in terms if t[6] is None and not t[0]]
    ways = [
        [
            (row, ends)
            for row in rows
            for ends in (
                [(row["dst"], row["src"])]
                if left_arrow
                else [(row["src"], row["dst"])]
                if right_arrow or row["src"] == row["dst"]
                else [(row["src"], row["dst"]), (row["dst"], row["src"])]
            )
        ]
        for _, _, left_arrow, _, right_arrow, _, _ in present
    ]
    found = []
    for chosen in itertools.product(*ways):
        match = {}
        fits = True
        others = []
        for (_, left, _, name, _, right, _), (row, ends) in zip(present, chosen, strict=True):
            for vertex, end in zip((left, right), ends, strict=True):
                if not vertex:
                    others.append(end)
                elif match.setdefault(vertex, people[end]) is not people[end]:
                    fits = False
            if name:
                match[name] = row
        if not fits:
            continue
        of_vertices = {n for t in terms for n in (t[1], t[5], t[6]) if n}
        free = [name for name in names if name in of_vertices and name not in match]
        for filled in itertools.product(people.values(), repeat=len(free)):
            whole = {**match, **dict(zip(free, filled, strict=True))}
            ids = [whole[n]["id"] for n in names if n in of_vertices] + others
            if distinct and len(set(ids)) < len(ids):
                continue
            pairs = {(row["src"], row["dst"]) for row in rows}
            # What has no name, at the end of an edge that is not there, is all vertices.
            absent = [
                (one, other, t[4])
                for t in terms
                if t[0]
                for one in ([whole[t[1]]["id"]] if t[1] else people)
                for other in ([whole[t[5]]["id"]] if t[5] else people)
            ]
            if not any(
                (one, other) in pairs or (not arrow and (other, one) in pairs)
                for one, other, arrow in absent
            ):
                found.append({name: whole[name] for name in names})
    return found


# The conditions in Python, where None is as null in SQL.


def _less(x, y):
    return None not in (x, y) and x < y


def holds(condition, match):
    """Whether a condition is true of a match."""
    a, b = match.get("a", {}), match.get("b", {})
    e1, e2 = match.get("e1", {}), match.get("e2", {})
    tests = {
        None: lambda: True,
        CONDITIONS[1]: lambda: _less(2, a["age"]),
        CONDITIONS[2]: lambda: a["kind"] == "bank" or _less(b["age"], 4),
        CONDITIONS[3]: lambda: _less(a["age"], b["age"]) and a["kind"] == "bank",
        CONDITIONS[4]: lambda: a["age"] is None and b["kind"] == "bank",
        CONDITIONS[5]: lambda: a["id"] != b["id"],
        CONDITIONS[6]: lambda: _less(e1["amount"], e2["amount"]) and e1["sort"] == "bank",
        CONDITIONS[7]: lambda: (
            e1["amount"] is not None and e1["amount"] + (1 if a["age"] is None else a["age"]) >= 3
        ),
        CONDITIONS[8]: lambda: (
            e1["sort"] is not None and e1["sort"] == a["kind"] and e2["amount"] in (1, 2, 3)
        ),
    }
    return tests[condition]()


def in_order(records):
    return sorted(repr(sorted(record.items())) for record in records)


@quick
@given(
    tables(max_edges=9),
    st.sampled_from(PATTERNS),
    st.sampled_from(CONDITIONS),
    st.booleans(),
    st.sampled_from([0, 1, numbered_graph.MANY_PARALLEL]),
)
def test_matches_are_those_that_trying_all_finds(drawn, pattern, condition, distinct, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbered_graph, "MANY_PARALLEL", many)
        _check_matches(*drawn, pattern, condition, distinct)


def _check_matches(vertices, edges, pattern, condition, distinct):
    if vertices.num_rows > 6:
        kept = set(vertices.column("id").to_pylist()[:6])
        vertices = vertices.slice(0, 6)
        rows = [r for r in edges.to_pylist() if {r["src"], r["dst"]} <= kept]
        edges = pa.Table.from_pylist(rows, edges.schema)
    named = set(re.findall(r"\w+", pattern))
    used = set(re.findall(r"\b(\w+)\.", condition or ""))
    if not used <= named:
        condition = None
    expected = [
        match
        for match in brute_force(vertices, edges, pattern, distinct)
        if holds(condition, match)
    ]
    for graph in graphs_of(vertices, edges):
        found = graph.find(pattern, condition, distinct=distinct)
        assert in_order(found.to_pylist()) == in_order(expected)
        assert graph.count(pattern, condition, distinct=distinct) == len(expected)
        assert graph.find(pattern, condition, distinct=distinct, limit=2).num_rows == min(
            2, len(expected)
        )


@quick
@given(tables(max_edges=12))
def test_chains_are_edges_one_after_the_other(drawn):
    graph = Graph(*drawn)
    two = graph.find("(a)-[e*2]->(c)")
    assert two.schema.names == ["a", "_e1", "_ac1", "_e2", "c"]
    spelt = graph.find("(a)-[_e1]->(_ac1); (_ac1)-[_e2]->(c)")
    assert in_order(two.to_pylist()) == in_order(spelt.select(two.schema.names).to_pylist())
    some = graph.find("(a)-[e*1..2]->(c)").to_pylist()
    assert sum(row["_hop"] == 2 for row in some) == two.num_rows
    assert [row["_e2"] for row in some if row["_hop"] == 1] == [None] * drawn[1].num_rows
    either = graph.find("(a)-[e*1..2]-(c)").to_pylist()
    out = [r for r in either if r["_direction"] == "out"]
    assert in_order(out) == in_order({**r, "_ca1": None} for r in some)
    assert sum(row["_direction"] == "in" for row in either) == len(some)
    named = graph.find("(a)-[e*1..2]->(c)", "length(_ac1.kind) > 0").to_pylist()
    assert in_order(named) == in_order(row for row in some if row["_ac1"] and row["_ac1"]["kind"])
    last = graph.find("(a)-[e*1..2]->(c)", "_e2.amount > 1").to_pylist()
    assert in_order(last) == in_order(
        row for row in some if row["_e2"] and (row["_e2"]["amount"] or 0) > 1
    )


@pytest.mark.parametrize("size", [1, 7])
def test_pieces_may_be_of_any_size(monkeypatch, size):
    ends = [(i, j) for i in range(6) for j in range(6) if i != j]
    edges = {"src": [s for s, _ in ends], "dst": [t for _, t in ends]}
    triangle = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"
    whole = Graph(edges).find(triangle).to_pylist()
    assert len(whole) == 6 * 5 * 4
    for module in (numbered_graph, element_search):
        monkeypatch.setattr(module, "PIECE", size)
    assert in_order(Graph(edges).find(triangle).to_pylist()) == in_order(whole)


def test_a_condition_on_one_element_leaves_edges_out_before_the_search(monkeypatch):
    made = []
    spread = element_search.spread

    def noting(begins, ends):
        for of, at in spread(begins, ends):
            made.append(len(of))
            yield of, at

    monkeypatch.setattr(element_search, "spread", noting)
    hub = {"src": [0] * 500 + list(range(1, 501)), "dst": [*range(1, 501), *[0] * 500]}
    amounts = {"amount": list(range(1000))}
    graph = Graph({**hub, **amounts})
    pattern = "(a)-[e1]->(b); (b)-[e2]->(c)"
    assert graph.count(pattern) == 250_500
    made.clear()
    assert graph.find(pattern, "e1.amount = 3 and e2.amount > 10 and e1.src = c.id").num_rows == 1
    assert sum(made) <= 2


def test_parts_that_have_nothing_in_common_are_combined_up_to_a_bound(monkeypatch):
    graph = Graph({"id": list(range(100))}, {"src": [0], "dst": [1]})
    assert graph.count("(a); (b)", "a.id < b.id") == 4950
    monkeypatch.setattr(element_search, "MAX_COMBINED", 9_999)
    with pytest.raises(PatternError, match="no vertex in common"):
        graph.find("(a); (b)")
    assert graph.find("(a); (b)", limit=5).num_rows == 5
    assert graph.find("(a); (b)", "a.id < 2").num_rows == 200


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(a)-[e]->(b", "'\\)' were expected"),
        ("(a)-[e>(b)", "an edge was expected"),
        ("(a)-[e*]->(b)", "a chain needs its lengths"),
        ("(a)-[e*2..]->(b)", "a chain needs its lengths"),
        ("(a)-[e*0]->(b)", "lengths are from 1"),
        ("(a)-[e*3..2]->(b)", "lengths are from 1"),
        ("!(a)-[e]->(b)", "an absent edge has no name"),
        ("!(a)<-[]->(b)", "an absent edge has no name"),
        ("(a)-[e]->(b); (b)-[e]->(c)", "taken already"),
        ("(a)-[a]->(b)", "taken already"),
        ("(a)-[e]->(b); (e)-[]->(b)", "names an edge"),
        ("(a)-[*1..2]->(b); (b)-[*1..2]->(c)", "only one edge"),
        ("()", "a vertex alone needs a name"),
        ("!(a)", "only edges can be absent"),
        ("()-[]->()", "names nothing"),
        ("(a)-[]->(b); !()-[]->()", "an absent edge needs a vertex with a name"),
        ("(a)-[e*2]->(c); (a)-[f*2]->(c)", "'_ac1' is a vertex inside another chain"),
        ("(a)-[e*2]->(bc); (ab)-[f*2]->(c)", "'_abc1' is a vertex inside another chain"),
        ("()-[e*2]->(c); (c)-[f*2]->()", "'_c1' is a vertex inside another chain"),
        ("(_hop)-[e*1..2]->(b)", "'_hop' says what a chain is"),
        ("", "were expected"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern, says):
    with pytest.raises(PatternError, match=says):
        Graph({"src": ["a"], "dst": ["b"]}).find(pattern)


def test_what_is_no_condition_is_refused():
    graph = Graph({"src": ["a"], "dst": ["b"], "amount": [1]})
    with pytest.raises(ColumnError, match=r"'x\.amount' is no attribute"):
        graph.find("(a)-[e]->(b)", "x.amount > 1")
    with pytest.raises(ColumnError, match="'amount' is no attribute"):
        graph.find("(a)-[e]->(b)", "amount > 1")
    with pytest.raises(ColumnError, match="'e' has no attribute 'sum', only 'src', 'dst'"):
        graph.find("(a)-[e]->(b)", "e.sum > 1")
    with pytest.raises(UsageError, match="was expected"):
        graph.find("(a)-[e]->(b)", "e.amount >")


@pytest.mark.parametrize(
    ("condition", "error", "says"),
    [
        ("a.name > b.age", SchemaError, "'>' cannot be computed of string, int64: cast one"),
        ("a.age", SchemaError, "true or false, and this is int64"),
        ("a.age = date '2020-13-01'", UsageError, "the date '2020-13-01'"),
        (f"a.age = 1{'0' * 80}", UsageError, "the number 1000"),
        ("pi(a.age) = 1", UsageError, "there is no function 'pi'"),
    ],
)
def test_what_a_condition_cannot_compute_is_no_failure_of_a_worker(condition, error, says):
    graph = Graph({"id": [1, 2], "name": ["x", "y"], "age": [3, 4]}, {"src": [1], "dst": [2]})
    with pytest.raises(error, match=says):
        graph.find("(a)-[]->(b)", condition)


@pytest.mark.parametrize(
    ("condition", "ages"),
    [
        ("a.age % 10 = 3", [2**53 + 1]),
        ("a.age % -5 = -2", [-7]),
        ("(-9223372036854775807 - 1) % -1 = 0", [2**53 + 1, -7, 6]),
        ("a.age % 0 is null", [2**53 + 1, -7, 6]),
        ("a.age % 2.5 = 1 and a.age < 10", [6]),
        ("a.age / 2 = 3", [6]),
        ("a.age > 0.5", [2**53 + 1, 6]),
        ("pow(6, a.age) = 46656", [6]),
        ("pow(a.age, 4) > 1e60", [2**53 + 1]),
        ("'abc' like 'a%'", [2**53 + 1, -7, 6]),
        ("not ('abc' like 'b%') and a.age = 6", [6]),
        ("(a.name like null) is null", [2**53 + 1, -7, 6]),
        ("a.age < 9223372036854775808", [2**53 + 1, -7, 6]),
        ("a.big > 0 and a.big != -1", [2**53 + 1, 6]),
        ("a.big in (18446744073709551615, 6) or a.big = a.age", [2**53 + 1, 6]),
        ("coalesce(a.big, 0) % 2 = 0", [-7, 6]),
        ("lower(a.kind) like 'b%' and a.kind = 'Bank'", [2**53 + 1]),
        ("a.short + 0.5 >= 2", [6]),
        ("length(a.none) = 1 or coalesce(a.none, a.age) = 6", [6]),
        ("a.none <=> a.none and (a.none = a.none) is null", [2**53 + 1, -7, 6]),
    ],
)
def test_conditions_are_computed_exactly_and_of_constants_too(condition, ages):
    vertices = {
        "id": [1, 2, 3],
        "name": ["x", "y", None],
        "age": [2**53 + 1, -7, 6],
        "big": pa.array([2**64 - 1, 0, 6], pa.uint64()),
        "kind": pa.array(["Bank", "shop", None]).dictionary_encode(),
        "short": np.array([1, 1, 2], np.float16),
        "none": pa.nulls(3),
    }
    found = Graph(vertices, {"src": [1, 2, 3], "dst": [2, 3, 1]}).find("(a)-[e]->(b)", condition)
    assert [one["age"] for one in found.column("a").to_pylist()] == ages


def test_a_condition_on_an_element_guards_the_next_one_on_it():
    vertices = pa.table({"id": [1, 2, 3], "label": ["12", "none", "3"]})
    graph = Graph(vertices, pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]}))
    where = "a.label <> 'none' and cast(a.label as int) > 5"
    assert [row["a"]["id"] for row in graph.find("(a)-[]->()", where=where).to_pylist()] == [1]
    with pytest.raises(SchemaError, match="'none' is no int"):
        graph.find("(a)-[]->()", where="cast(a.label as int) > 5")
