"""Columns of lists and structs: as keys, as payload, in order, at borders and in snapshots."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections.schema import nulls_first, schema_of
from pointstamp.containers.nested import NestedType, column_type_named, column_type_of_arrow
from pointstamp.errors import DataError, SchemaError
from tests.collections.lives import PLANS, LifePlan, check_lives
from tests.collections.running import run_epochs
from tests.collections.temporal_programs import accumulated
from tests.conftest import examples

ORDERS = "k long, tags array<string>, at struct<x: double, y: array<struct<n: long, t: string>>>?"

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "uint64": st.integers(0, (1 << 64) - 1),
    "double": st.floats(allow_nan=True),
    "boolean": st.booleans(),
    "string": st.text("a\0\xff\u1234b", max_size=4),
    "binary": st.binary(max_size=4),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "timestamp_utc": st.datetimes(timezones=st.just(dt.UTC)),
    "duration": st.timedeltas(dt.timedelta(-9), dt.timedelta(9)),
    "decimal(9,2)": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
}


@st.composite
def types(draw: Any, depth: int = 2) -> tuple[str, st.SearchStrategy[Any]]:
    """The name of a nested type, and its values, as tuples."""
    inner = st.sampled_from(sorted(SCALARS.items()))
    if depth:
        inner = inner | types(depth - 1)
    if draw(st.booleans()):
        name, values = draw(inner)
        return f"array<{name}>", st.lists(st.none() | values, max_size=3).map(tuple)
    fields = draw(st.lists(inner, min_size=1, max_size=3))
    text = ", ".join(f"f{place}: {name}" for place, (name, _) in enumerate(fields))
    return f"struct<{text}>", st.tuples(*(st.none() | values for _, values in fields))


def plain(value: Any) -> Any:
    """With one zero, and a NaN that is equal to itself."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@settings(max_examples=examples(300))
@given(types().flatmap(lambda t: st.tuples(st.just(t[0]), t[1], t[1])))
def test_bytes_are_canonical_and_have_the_order_of_values(of: tuple[str, Any, Any]) -> None:
    name, one, other = of
    kind = column_type_named(name)
    assert isinstance(kind, NestedType)
    assert column_type_named(kind.name) == kind
    assert column_type_of_arrow(kind.arrow()) == kind
    encoded = [kind.encoded(value) for value in (one, other)]
    assert [plain(kind.decoded(data, 0)[0]) for data in encoded] == [plain(one), plain(other)]
    assert plain(kind.to_value(kind.to_word(one))) == plain(one)
    assert (encoded[0] == encoded[1]) == (plain(one) == plain(other))
    # Texts and binaries are ordered by their bytes, as everywhere.
    keys = [nulls_first(_bytes(plain(value))) for value in (one, other)]
    if "NaN" not in repr(keys):
        assert (encoded[0] < encoded[1]) == (keys[0] < keys[1])
    column = pa.array([kind.for_arrow(one), None, kind.for_arrow(other)], kind.arrow())
    words = kind.words_of(column)
    assert words.tolist() == [kind.to_word(one), 0, kind.to_word(other)]
    again = kind.column_of(words, np.array([False, True, False]))
    assert again.type == column.type
    assert kind.words_of(again).tolist() == words.tolist()
    assert again.null_count == 1


def _bytes(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_bytes, value))
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("kind", ["string", "binary", "date", "timestamp", "struct<x: string>"])
def test_a_null_beside_structs_that_have_no_empty_bytes(kind: str) -> None:
    view = ps.View(lambda scope, t: t, t=f"k long, s struct<a: {kind}>?")
    view.insert("t", [(1, None), (2, (None,))])
    assert view.advance() == [((1, None), 1), ((2, (None,)), 1)]
    assert view.snapshot().to_arrow().column("s").to_pylist() == [None, {"a": None}]


def test_a_column_of_nulls_alone_and_one_of_nothing() -> None:
    kind = column_type_named("array<struct<a: long>>")
    assert kind.column_of(np.zeros(2, np.int64), np.ones(2, np.bool_)).to_pylist() == [None, None]
    assert kind.column_of(np.zeros(2, np.int64), None).to_pylist() == [[], []]
    assert kind.column_of(np.zeros(0, np.int64), None).to_pylist() == []


Row = tuple[Any, ...]
TAGS = [(), ("a",), ("a", None), ("a", "b"), ("a\0",), (None,)]
PLACES = [None, (None, None), (0.5, ()), (0.5, ((1, "x"), None)), (0.5, ((1, "x"), (None, None)))]


def key(value: Any) -> Any:
    return nulls_first(_bytes(value))


def groups(rows: Counter[Row], place: int) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows.elements():
        found.setdefault(row[place], []).append(row)
    return found


def summary(found: list[Row]) -> Row:
    """Of a group, how many, the greatest place, and all places in order, and those that differ."""
    there = sorted((row[2] for row in found if row[2] is not None), key=key)
    greatest = there[-1] if there else None
    differing = tuple(value for n, value in enumerate(there) if n == there.index(value))
    return len(found), greatest, tuple(there), differing


FORMS: list[tuple[Any, Any]] = [
    (
        lambda t: t.group_by("tags").agg(
            n=ps.count(), top=ps.max("at"), every=ps.collect_list("at"), sets=ps.collect_set("at")
        ),
        lambda rows: Counter((tags, *summary(found)) for tags, found in groups(rows, 1).items()),
    ),
    (
        lambda t: t.join(t.select("tags", other="k"), on="tags").select("k", "other", "at"),
        lambda rows: Counter(
            (row[0], other[0], row[2])
            for found in groups(rows, 1).values()
            for row in found
            for other in found
        ),
    ),
    (
        lambda t: t.group_by("k").top_k(1, by=["at", "tags"], descending=[False, True]),
        lambda rows: Counter(
            min(
                sorted(found, key=lambda row: key(row[1]), reverse=True),
                key=lambda row: key(row[2]),
            )
            for found in groups(rows, 0).values()
        ),
    ),
    (
        lambda t: t.filter(col("at").is_null() | (col("k") == 1)).select("tags", "at").distinct(),
        lambda rows: Counter({row[1:] for row in rows.elements() if row[2] is None or row[0] == 1}),
    ),
    (
        lambda t: t.agg(tags=ps.collect_set("tags"), places=ps.count_distinct("at")),
        lambda rows: Counter(
            [
                (
                    tuple(sorted({row[1] for row in rows.elements()}, key=key)),
                    len({row[2] for row in rows.elements()} - {None}),
                )
            ]
        ),
    ),
    (
        lambda t: t.group_by("tags").reduce(
            lambda key, rows: [(len(rows), rows[0][2])],
            "n long, at struct<x: double, y: array<struct<n: long, t: string>>>?",
        ),
        lambda rows: Counter(
            (len(found), min(found, key=lambda row: [key(value) for value in row])[2])
            for found in groups(rows, 1).values()
        ),
    ),
    (
        lambda t: t.explode("tags"),
        lambda rows: Counter((k, tag, at) for k, tags, at in rows.elements() for tag in tags),
    ),
    (
        lambda t: t.select(
            tags=ps.when(col("k") == 1).then(col("tags")).otherwise(None), k="k"
        ).explode("tags", outer=True),
        lambda rows: Counter(
            (tag, k) for k, tags, _ in rows.elements() for tag in (k == 1 and tags) or [None]
        ),
    ),
]


@dataclass(frozen=True)
class NestedProgram:
    """Epochs of changes, and the form of what is computed of them."""

    form: int
    epochs: list[list[list[tuple[Row, int]]]]
    n_inputs: ClassVar = 1

    def build(self, inputs: Any) -> Any:
        return FORMS[self.form][0](inputs[0])

    def expected(self) -> list[Counter[Row]]:
        there: Counter[Row] = Counter()
        found = []
        for (changes,) in self.epochs:
            for row, diff in changes:
                there[row] += diff
            found.append(FORMS[self.form][1](there))
        return found


@st.composite
def nested_programs(draw: Any) -> NestedProgram:
    """Insertions, and deletions of what was inserted."""
    rows = st.tuples(st.integers(0, 1), st.sampled_from(TAGS), st.sampled_from(PLACES))
    known: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 5))):
        added = draw(st.lists(rows, max_size=5))
        gone = draw(st.integers(0, len(known)))
        epochs.append([[*((row, 1) for row in added), *((row, -1) for row in known[:gone])]])
        known = [*known[gone:], *added]
    return NestedProgram(draw(st.integers(0, len(FORMS) - 1)), epochs)


@settings(max_examples=examples(100))
@given(nested_programs(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 7]))
def test_programs_of_nested_columns_give_what_recomputing_gives(
    program: NestedProgram, workers: int, at_a_time: int
) -> None:
    check_nested(program, workers, at_a_time)


def check_nested(program: NestedProgram, workers: int, at_a_time: int) -> None:
    """The updates of all workers add up to what recomputing gives, at each epoch."""
    given = ([ORDERS], program.build, program.epochs, at_a_time)
    parts = ps.simulate(run_epochs, *given, workers=workers, seed=1)
    found = accumulated([update for part in parts for update in part], len(program.epochs))
    assert found == program.expected()


@settings(max_examples=examples(60))
@given(nested_programs(), PLANS)
def test_programs_of_nested_columns_go_on_from_snapshots(
    program: NestedProgram, plans: list[LifePlan]
) -> None:
    check_lives(program, plans, 1, 100, ORDERS)


def test_columns_go_in_and_come_out_as_arrow_has_them() -> None:
    schema = schema_of(ORDERS)
    assert str(schema_of(schema.to_arrow(np.empty((0, schema.n_words + 1), np.int64)).schema)) == (
        "k long, tags array<string>, at struct<x:double,y:array<struct<n:long,t:string>>>?"
    )
    view = ps.View(lambda scope, t: t, t=ORDERS)
    table = pa.table(
        {
            "k": [1, 2],
            "tags": pa.array([["a", None], []], pa.large_list(pa.string())),
            "at": [{"x": 0.5, "y": [{"n": 1, "t": "x"}, None]}, None],
        }
    )
    view.insert("t", table)
    view.insert("t", [{"k": 3, "tags": ["b"], "at": {"x": None, "y": None}}])
    assert view.advance() == [
        ((1, ("a", None), (0.5, ((1, "x"), None))), 1),
        ((2, (), None), 1),
        ((3, ("b",), (None, None)), 1),
    ]
    found = view.snapshot().to_arrow()
    assert {repr(row) for row in found.to_pylist()} == {
        repr(row)
        for row in [
            *table.to_pylist(),
            {"k": 3, "tags": ["b"], "at": {"x": None, "y": None}},
        ]
    }
    view.delete("t", found)
    assert [diff for _, diff in view.advance()] == [-1, -1, -1]
    view.close()


def test_sparks_types_are_these_and_its_timestamps_are_in_utc() -> None:
    def field(name: str, kind: str) -> Any:
        return SimpleNamespace(
            name=name, nullable=True, dataType=SimpleNamespace(simpleString=lambda: kind)
        )

    fields = [
        field("a", "array<timestamp>"),
        field("b", "struct<timestamp:timestamp,c:decimal(9,2),d:array<bigint>>"),
        field("e", "timestamp_ntz"),
    ]
    assert str(schema_of(SimpleNamespace(fields=fields))) == (
        "a array<timestamp_utc>?, b "
        "struct<timestamp:timestamp_utc,c:decimal(9,2),d:array<long>>?, e timestamp?"
    )


def test_a_service_has_nested_columns() -> None:
    with ps.serve(
        lambda scope, t: t.group_by("tags").agg(every=ps.collect_list("at")),
        2,
        threads=True,
        collections={"t": ORDERS},
    ) as service:
        service.input("t").insert([(1, ["a"], (0.5, [(1, "x")])), (2, ["a"], None)])
        epoch = service.advance()
        assert service.output().changes(epoch) == [((("a",), ((0.5, ((1, "x"),)),)), 1)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, "a", None)], "column 'tags': 'a' of type str is no array<string>"),
        ([(1, ["a", 7], None)], "column 'tags': 7 of type int is no string"),
        ([(1, None, None)], "None as 'tags', which is not nullable"),
        ([(1, [], (0.5,))], r"column 'at': \(0.5,\) of type tuple is no struct<"),
        ([(1, [], {"x": 0.5})], r"has the fields \['x'\], and is no struct<x:double"),
        ([(1, [], (0.5, [(1 << 63, "x")]))], "is beyond long"),
    ],
)
def test_a_value_of_another_form_is_an_error(rows: list[Any], said: str) -> None:
    view = ps.View(lambda scope, t: t, t=ORDERS)
    with pytest.raises(DataError, match=said):
        view.insert("t", rows)
    view.close()


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda t: t.select(a=col("tags") + col("tags")), r"array<string> \+ array<string> is not"),
        (lambda t: t.select(a=col("tags").length()), "asked of array<string>, which is no text"),
        (lambda t: t.select(a=col("tags").cast("string")), "cannot be cast to string"),
        (lambda t: t.select(a=col("k").cast("array<long>")), "cannot be cast to array<long>"),
        (lambda t: t.filter(col("tags") == ["a"]), "is no value of a column"),
        (lambda t: t.select(a=col("at").fill_null((1.0, []))), "is no value of a column"),
        (lambda t: t.filter(col("tags") == col("at")), "array<string>"),
        (lambda t: t.agg(a=ps.sum("tags")), "of array<string>, of which there is none"),
        (lambda t: t.agg(a=ps.avg("tags")), "of array<string>, of which there is none"),
    ],
)
def test_expressions_that_there_are_not_of_nested_columns_are_named(build: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        ps.View(lambda scope, t: build(t), t=ORDERS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a array<longs>", "there is no type 'longs'"),
        ("a struct<>", "is no struct: write struct<name: type, ...>"),
        ("a struct<b>", "is no struct: write struct<name: type, ...>"),
        ("a struct<b: long, b: int>", "needs at least one field, and names that differ"),
        ("a map<string, long>", "there is no type 'map<string, long>': have a list of structs"),
        ("a array", "there is no type 'array': it needs the type of its elements, as in array<"),
        ("a array()", r"there is no type 'array\(\)': it needs the type of its elements"),
        ("a array<>", "there is no type 'array<>': it needs the type of its elements"),
        ("a struct<b: list>", "there is no type 'list': it needs the type of its elements"),
        ("a struct", "there is no type 'struct': it needs fields, as in struct<"),
        ("a array<long", "is no column"),
    ],
)
def test_a_type_that_is_none_is_named(text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema_of(text)


def test_lists_of_lists_and_structs_become_rows() -> None:
    schema = "id long, places array<struct<x: double, names array<string>>>?"
    view = ps.View(lambda scope, t: t.explode("places"), t=schema)
    view.insert("t", [(1, [(0.5, ["a", "b"]), None]), (2, None)])
    assert view.advance() == [((1, None), 1), ((1, (0.5, ("a", "b"))), 1)]
    view.update("t", [((2, None), -1), ((1, [(0.5, ["a", "b"]), None]), -1), ((3, [None]), 2)])
    assert view.advance() == [
        ((1, None), -1),
        ((1, (0.5, ("a", "b"))), -1),
        ((3, None), 2),
    ]


def test_explode_needs_a_list_and_keeps_what_is_append_only() -> None:
    with pytest.raises(SchemaError, match="'Explode': column 'id' is long, and explode needs a"):
        ps.View(lambda scope, t: t.explode("id"), t="id long")
    schemas = []

    def build(scope: Any, t: Any) -> Any:
        found = t.explode("days")
        schemas.append((str(found.schema), found.append_only))
        return found

    ps.View(build, t=ps.AppendInput("days array<date>, n long"))
    assert schemas == [("days date?, n long", True)]
