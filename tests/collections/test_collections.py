"""Collections by their methods: what each operator answers, and what it refuses."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import col
from pointstamp.errors import BuildError, ColumnError, DataError, InputError, SchemaError


def once(build: Any, schema: str, rows: list[Any]) -> Any:
    """The rows of a result of one input, of one epoch."""
    view = ps.View(build, t=schema)
    view.insert("t", rows)
    view.advance()
    return list(view.snapshot())


# The programs of the first day.


def report(scope: Any, sales: Any, shops: Any) -> Any:
    big = sales.filter(col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"), largest=ps.max("cents"))


def test_join_and_aggregate_in_one_process() -> None:
    view = ps.View(
        report, sales="shop long, item string?, cents long", shops="shop long, city string"
    )
    view.insert("shops", [(1, "Rome"), (2, "Oslo")])
    view.insert("sales", [(1, "tea", 1_200), (2, None, 3_000), (2, "ink", 400)])
    first = [(("Oslo", 1, 3_000, 3_000), 1), (("Rome", 1, 1_200, 1_200), 1)]
    assert view.advance() == first
    view.delete("sales", [(2, None, 3_000)])
    assert view.advance() == [(("Oslo", 1, 3_000, 3_000), -1)]
    frame = view.snapshot().to_pandas()
    assert frame.to_dict("list") == {
        "city": ["Rome"],
        "n": [1],
        "cents": [1_200],
        "largest": [1_200],
    }


def test_the_fourth_comes_up_when_one_of_three_goes() -> None:
    view = ps.View(
        lambda scope, sales: sales.group_by("shop").top_k(3, by="cents"),
        sales="shop long, cents long",
    )
    view.insert("sales", [(1, cents) for cents in (10, 40, 20, 30)])
    assert view.advance() == [((1, cents), 1) for cents in (20, 30, 40)]
    view.delete("sales", [(1, 40)])
    assert view.advance() == [((1, 10), 1), ((1, 40), -1)]


def test_a_histogram_of_degrees_by_hand() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            edges, graph = scope.new_collection("src long, dst long")
            histogram = (
                graph.group_by("src")
                .agg(degree=ps.count())
                .group_by("degree")
                .agg(vertices=ps.count())
            )
            histogram.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        edges.insert([(0, 1), (0, 2)])
        edges.advance_to(1)
        edges.update([((3, 1), +1), ((0, 2), -1)])
        edges.advance_to(2)
        edges.close()
        worker.run()
        return seen

    (seen,) = ps.execute(main)
    assert sorted(seen) == [((1, 2), 1, 1), ((2, 1), 0, 1), ((2, 1), 1, -1)]


# Values.

VALUES: list[tuple[str, Any]] = [
    ("long", -(2**63)),
    ("long", 2**63 - 1),
    ("int", -5),
    ("short", 3),
    ("byte", -128),
    ("uint64", 2**64 - 1),
    ("boolean", True),
    ("double", -1.5),
    ("double", math.inf),
    ("float", 0.25),
    ("string", "héllo"),
    ("string", ""),
    ("binary", b"\0\xff"),
    ("date", dt.date(1969, 12, 31)),
    ("timestamp", dt.datetime(2026, 1, 1, 12, 0, 0, 7)),
    ("timestamp_utc", dt.datetime(1960, 1, 1, tzinfo=dt.UTC)),
    ("duration", dt.timedelta(microseconds=-3)),
    ("decimal(18,2)", Decimal("-1234567890123456.78")),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_come_back_as_rows_and_as_columns(kind: str, value: Any) -> None:
    view = ps.View(lambda scope, t: t, t=f"a {kind}?, n long")
    view.insert("t", [(value, 1), (None, 2)])
    changes = view.advance()
    assert changes == [((None, 2), 1), ((value, 1), 1)]
    table = changes.to_arrow().drop_columns(["diff"])
    again = ps.View(lambda scope, t: t, t=table.schema)
    again.insert("t", table)
    assert again.advance() == changes
    again.delete("t", table.slice(1))
    again.delete("t", table.slice(0, 1).to_batches()[0])
    again.advance()
    assert again.snapshot() == []


def test_one_zero_and_one_nan() -> None:
    rows = [(0.0,), (-0.0,), (math.nan,), (-math.nan,)]
    found = once(lambda scope, t: t.group_by("x").agg(n=ps.count()), "x double", rows)
    assert found[0] == (0.0, 2)
    assert math.isnan(found[1][0])
    assert found[1][1] == 2
    assert once(lambda scope, t: t.agg(m=ps.max("x")), "x double", [(1.0,), (math.inf,)]) == [
        (math.inf,)
    ]


def test_frames_are_columns() -> None:
    pd = pytest.importorskip("pandas")

    view = ps.View(lambda scope, t: t, t="a long?, b string?")
    view.insert("t", pd.DataFrame({"b": ["x", None], "a": pd.array([1, None], "Int64")}))
    assert view.advance() == [((None, None), 1), ((1, "x"), 1)]
    view.insert("t", [{"b": "y", "a": 2}])
    assert view.advance() == [((2, "y"), 1)]


def test_dictionaries_and_views_are_their_values() -> None:
    """As categories of pandas and of polars are dictionaries."""
    texts = pa.array(["x", None, "x"])
    for column in (texts.dictionary_encode(), texts.cast(pa.string_view())):
        view = ps.View(lambda scope, t: t, t="a long, b string?")
        view.insert("t", pa.record_batch({"a": [1, 2, 3], "b": column}))
        assert view.advance() == [((1, "x"), 1), ((2, None), 1), ((3, "x"), 1)]


GOOD: dict[str, Any] = {
    "long": 7,
    "byte": 7,
    "string": "a",
    "date": dt.date(2026, 1, 1),
    "timestamp": dt.datetime(2026, 1, 1),
    "decimal(4,1)": Decimal("1.5"),
}


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("long", 1.5, "1.5 of type float is no long"),
        ("long", True, "True of type bool is no long"),
        ("long", 2**63, "beyond long"),
        ("byte", 128, "beyond byte"),
        ("string", b"a", "no string"),
        ("date", dt.datetime(2026, 1, 1), "no date"),
        ("timestamp", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "should have no zone"),
        ("decimal(4,1)", Decimal("1.25"), "more than the 1 places"),
        ("decimal(4,1)", Decimal(1_000), "more digits"),
        ("decimal(4,1)", Decimal("NaN"), "is not finite"),
        ("long", None, "not nullable"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_and_none_is_added(
    kind: str, value: Any, said: str
) -> None:
    view = ps.View(lambda scope, t: t, t=f"n long, a {kind}")
    with pytest.raises(DataError, match="row 1 for the input 't'.*" + said):
        view.insert("t", [(1, GOOD[kind]), (2, value)])
    assert view.advance() == []


def test_decimals_are_what_they_are_in_any_context_of_a_thread() -> None:
    view = ps.View(lambda scope, t: t, t="a decimal(18,2)")
    rows = [(Decimal("-9999999999999999.99"),), (Decimal("9999999999999999.99"),)]
    with decimal.localcontext() as context:
        context.prec = 3
        view.insert("t", rows)
    assert view.advance() == [(row, 1) for row in rows]


def test_rows_of_another_form_are_refused() -> None:
    view = ps.View(lambda scope, t: t, t="a long, b long")
    for rows in ([(1,)], [7], ["ab"], [{"a": 1, "c": 2}]):
        with pytest.raises(DataError, match="row 0 for the input 't'"):
            view.insert("t", rows)
    with pytest.raises(DataError, match="no integer"):
        view.update("t", [((1, 2), 1.0)])  # type: ignore[list-item]  # as is to be seen
    with pytest.raises(SchemaError, match="should be those of: a long, b long"):
        view.insert("t", pa.table({"a": [1], "c": [2]}))
    with pytest.raises(SchemaError, match="should be long"):
        view.insert("t", pa.table({"a": [1], "b": [2.0]}))
    with pytest.raises(SchemaError, match=r"'b' for the input 't'.*halffloat; cast"):
        view.insert("t", pa.table({"a": [1], "b": pa.array(np.ones(1, np.float16))}))
    with pytest.raises(DataError, match="1 nulls"):
        view.insert("t", pa.table({"a": [1], "b": pa.array([None], pa.int64())}))
    with pytest.raises(InputError, match="no input 'u'"):
        view.insert("u", [])
    assert view.advance() == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("a", "'a' is no column"),
        ("a lon", "no type 'lon'"),
        ("a long, a int", "two columns are called 'a'"),
        ("a decimal(19,2)", "1 to 18 digits"),
        (7, "a schema is a text"),
        (pa.schema([("a", pa.float16())]), "column 'a' of a pyarrow.Schema"),
    ],
)
def test_a_schema_that_is_none_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        ps.View(lambda scope, t: t, t=schema)


# Expressions.


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("a") + 1, [3, None]),
        (1 - col("a"), [-1, None]),
        (-col("a"), [-2, None]),
        (col("a") * col("a"), [4, None]),
        (col("a") / 4, [0.5, None]),
        (col("a") + col("f"), [2.5, None]),
        (col("a") == 2, [True, None]),
        (col("a") != 2, [False, None]),
        ((col("a") > 1) & (col("b") > 1), [True, None]),
        ((col("a") > 1) & (col("b") > 5), [False, False]),
        ((col("a") > 1) | (col("b") > 1), [True, True]),
        (~(col("a") > 1), [False, None]),
        (col("a").is_null(), [False, True]),
        (col("a").fill_null(9), [2, 9]),
        (col("t") < "b", [True, False]),
        (col("t").is_in(["a", "z"]), [True, False]),
        (ps.when(col("a") > 1).then("big").otherwise("small"), ["big", "small"]),
        (
            ps.when(col("a").is_null()).then(0.0).when(col("b") > 1).then(1.0).otherwise(2.0),
            [1.0, 0.0],
        ),
        (ps.when(col("b") == 2).then(1 / col("z")).otherwise(0.5), [0.25, 0.5]),
        (col("d") + 1, [Decimal("2.25"), Decimal("1.50")]),
        (col("d") * col("d"), [Decimal("1.5625"), Decimal("0.2500")]),
        (col("d") > 1, [True, False]),
        (col("d").cast("double"), [1.25, 0.5]),
        (col("f").cast("long"), [0, 1]),
        (col("b").cast("short"), [2, 3]),
        (
            col("at") + dt.timedelta(hours=1),
            [dt.datetime(2026, 1, 1, 1), dt.datetime(2026, 1, 2, 1)],
        ),
        (col("at") >= dt.datetime(2026, 1, 2), [False, True]),
        (col("day") - dt.date(2026, 1, 1), [0, 1]),
    ],
)
def test_expressions(expression: Any, expected: list[Any]) -> None:
    schema = (
        "n long, a long?, b int, t string, f double, d decimal(9,2), z long, at timestamp, day date"
    )
    rows = [
        (0, 2, 2, "a", 0.5, Decimal("1.25"), 4, dt.datetime(2026, 1, 1), dt.date(2026, 1, 1)),
        (1, None, 3, "c", 1.5, Decimal("0.50"), 0, dt.datetime(2026, 1, 2), dt.date(2026, 1, 2)),
    ]
    found = once(lambda scope, t: t.select("n", x=expression), schema, rows)
    assert [x for _, x in found] == expected


def test_an_expression_says_what_is_wrong() -> None:
    schema = "a long, t string"

    def built(make: Any) -> Any:
        return ps.View(lambda scope, t: make(t), t=schema)

    with pytest.raises(ColumnError, match="there are: a long, t string"):
        built(lambda t: t.filter(col("b") > 1))
    with pytest.raises(SchemaError, match="do not go together"):
        built(lambda t: t.filter(col("t") > 1))
    with pytest.raises(SchemaError, match="is long, not boolean"):
        built(lambda t: t.filter(col("a")))
    with pytest.raises(SchemaError, match="is not defined"):
        built(lambda t: t.select(x=col("t") - "b"))
    with pytest.raises(SchemaError, match="write & for and"):
        built(lambda t: t.filter(col("a") > 1 and col("a") < 5))
    with pytest.raises(ColumnError, match="has no name"):
        built(lambda t: t.select(col("a") + 1))
    with pytest.raises(SchemaError, match="cannot be cast"):
        built(lambda t: t.select(x=col("t").cast("long")))


@pytest.mark.parametrize(
    ("expression", "row", "said"),
    [
        (col("a") + 1, (2**63 - 1,), "9223372036854775807 and another value do not fit 64 bits"),
        (col("a") * 2, (2**62,), "4611686018427387904 multiplied does not fit 64 bits"),
        (1 / col("a"), (0,), "1.0 is divided by 0"),
        (col("a").cast("byte"), (200,), "200 does not fit byte"),
    ],
)
def test_an_expression_that_fails_on_a_record_is_an_error(
    expression: Any, row: Any, said: str
) -> None:
    view = ps.View(lambda scope, t: t.select(x=expression), t="a long")
    view.insert("t", [row])
    with pytest.raises(ps.errors.OperatorError, match=said):
        view.advance()


# Aggregates and joins.


def test_sums_are_exact_and_null_of_no_values() -> None:
    view = ps.View(
        lambda scope, t: t.group_by("k").agg(
            n=ps.count(), v=ps.count("v"), s=ps.sum("v"), f=ps.sum("f"), mean=ps.avg("v")
        ),
        t="k long, v long?, f double",
    )
    view.insert("t", [(1, 2**62, 1e300), (1, None, 0.1)])
    assert view.advance() == [((1, 2, 1, 2**62, 1e300 + 0.1, float(2**62)), 1)]
    view.delete("t", [(1, 2**62, 1e300)])
    assert view.advance()[0] == ((1, 1, 0, None, 0.1, None), 1)


def test_a_sum_beyond_64_bits_says_which_group() -> None:
    view = ps.View(lambda scope, t: t.group_by("k").agg(s=ps.sum("v")), t="k long, v long")
    view.insert("t", [(7, 2**62), (7, 2**62)])
    with pytest.raises(ps.errors.OperatorError, match="9223372036854775808 for the group"):
        view.advance()


def test_a_whole_collection_has_one_row_also_when_it_is_empty() -> None:
    def build(scope: Any, t: Any) -> Any:
        return t.agg(n=ps.count(), s=ps.sum("a"), m=ps.min("a"))

    view = ps.View(build, t="a long")
    assert view.advance() == [((0, None, None), 1)]
    view.insert("t", [(4,), (6,)])
    assert view.advance() == [((0, None, None), -1), ((2, 10, 4), 1)]
    view.delete("t", [(4,), (6,)])
    assert view.advance() == [((0, None, None), 1), ((2, 10, 4), -1)]
    for workers in (1, 2, 4):

        def main(worker: ps.Worker) -> list[Any]:
            seen: list[Any] = []
            with worker.dataflow() as scope:
                rows, t = scope.new_collection("a long")
                build(scope, t).inspect(lambda row, time, diff: seen.append((row, diff)))  # noqa: B023
            rows.close()
            worker.run()
            return seen

        parts = ps.execute(main, workers=workers, threads=True)
        assert [row for part in parts for row in part] == [((0, None, None), 1)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(1, 10, 100)]),
        ("left", [(None, 30, None), (1, 10, 100), (2, 20, None)]),
        ("right", [(1, 10, 100), (3, None, 300)]),
        ("full", [(None, 30, None), (1, 10, 100), (2, 20, None), (3, None, 300)]),
        ("semi", [(1, 10)]),
        ("anti", [(None, 30), (2, 20)]),
    ],
)
def test_joins(how: str, expected: list[Any]) -> None:
    view = ps.View(
        lambda scope, a, b: a.join(b, on="k", how=how), a="k long?, x long", b="k long, y long"
    )
    view.insert("a", [(1, 10), (2, 20), (None, 30)])
    view.insert("b", [(1, 100), (3, 300)])
    view.advance()
    assert list(view.snapshot()) == expected
    view.delete("b", [(1, 100)])
    view.insert("b", [(2, 200)])
    view.advance()
    view.insert("b", [(1, 100)])
    view.delete("b", [(2, 200)])
    view.advance()
    assert list(view.snapshot()) == expected


def test_a_cross_join_and_names_that_clash() -> None:
    view = ps.View(lambda scope, a, b: a.join(b, how="cross"), a="x long, y long", b="x long")
    view.insert("a", [(1, 2)])
    view.insert("b", [(3,), (4,)])
    view.advance()
    assert list(view.snapshot()) == [(1, 2, 3), (1, 2, 4)]
    assert str(view.snapshot().schema) == "x long, y long, x_right long"


def test_what_cannot_be_joined_is_refused() -> None:
    def built(make: Any) -> Any:
        return ps.View(lambda scope, a, b: make(a, b), a="k long, t string", b="k long, t string")

    for make, error, said in [
        (lambda a, b: a.join(b), BuildError, "needs on="),
        (lambda a, b: a.join(b, left_on="k"), BuildError, "needs on="),
        (lambda a, b: a.join(b, on="k", how="outer"), BuildError, "how='outer'"),
        (lambda a, b: a.join(b, on="k", how="cross"), BuildError, "has no key"),
        (lambda a, b: a.join(b, left_on="k", right_on="t"), SchemaError, "convert one by map"),
        (lambda a, b: a.join(b, on="z"), ColumnError, "'z'"),
        (lambda a, b: a.join(7, on="k"), BuildError, "no collection"),
        (lambda a, b: a.concat(b.drop("t")), SchemaError, "same names"),
        (lambda a, b: a.group_by("k").agg(), BuildError, "no aggregate"),
        (lambda a, b: a.group_by("k").agg(n=3), BuildError, "no aggregate such as"),
        (lambda a, b: a.group_by("k").agg(n=ps.sum("t")), SchemaError, "of string"),
        (lambda a, b: a.group_by("k").agg(n=ps.bool_or("t")), SchemaError, "of string"),
        (lambda a, b: a.group_by(), BuildError, "no column"),
        (lambda a, b: a.group_by("k").top_k(0, by="t"), BuildError, "k=0"),
        (lambda a, b: 7, BuildError, "should return a Collection"),
    ]:
        with pytest.raises(error, match=said):
            built(make)


def test_more_deleted_than_there_was_is_seen_by_a_snapshot() -> None:
    view = ps.View(lambda scope, t: t, t="a long")
    view.delete("t", [(1,)])
    assert view.advance() == [((1,), -1)]
    with pytest.raises(DataError, match="fewer than no times"):
        view.snapshot()
    view.insert("t", [(1,), (1,)])
    view.advance()
    assert view.snapshot() == [(1,)]


def test_several_results_by_name() -> None:
    view = ps.View(lambda scope, t: {"all": t, "once": t.distinct()}, t="a long")
    view.insert("t", [(1,), (1,)])
    assert view.advance() == {"all": [((1,), 2)], "once": [((1,), 1)]}
    assert view.snapshot("all") == [(1,), (1,)]
    with pytest.raises(InputError, match="no result None"):
        view.snapshot()


# Keys with nulls.


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(None, 1, "x", 3), (None, None, "y", 4)]),
        ("left", [(None, 1, "x", 3), (None, None, "y", 4), (2, None, "z", None)]),
        ("right", [(None, 1, "x", 3), (None, None, "y", 4), (3, None, None, 5)]),
        (
            "full",
            [(None, 1, "x", 3), (None, None, "y", 4), (2, None, "z", None), (3, None, None, 5)],
        ),
        ("semi", [(None, None, "y"), (None, 1, "x")]),
        ("anti", [(2, None, "z")]),
    ],
)
def test_nulls_of_keys_of_two_columns_are_equal_if_asked_for(how: Any, expected: list[Any]) -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        return one.join(two, on=["a", "b"], how=how, null_equal=True)

    view = ps.View(build, one="a long?, b long?, t string", two="a long?, b long?, n long")
    view.insert("one", [(None, 1, "x"), (None, None, "y"), (2, None, "z")])
    view.insert("two", [(None, 1, 3), (None, None, 4), (3, None, 5)])
    assert dict(view.advance()) == dict.fromkeys(expected, 1)


def test_a_null_meets_nothing_where_the_other_side_has_none() -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        both = one.join(two, left_on=["a", "a2"], right_on=["b", "b"], null_equal=True)
        assert str(both.schema) == "a long, a2 long, c long"
        left = one.join(two, left_on="a2", right_on="b", how="left", null_equal=True)
        return {"both": both, "left": left}

    view = ps.View(build, one="a long?, a2 long?", two="b long, c long")
    view.insert("one", [(None, None), (0, 0), (None, 0)])
    view.insert("two", [(0, 7)])
    changes = view.advance()
    assert changes["both"] == [((0, 0, 7), 1)]
    assert changes["left"] == [
        ((None, None, None), 1),
        ((0, None, 7), 1),
        ((0, 0, 7), 1),
    ]


def test_a_column_may_be_in_a_key_of_nulls_twice() -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        return one.join(two, left_on=["a", "a2"], right_on=["b", "b"], null_equal=True)

    view = ps.View(build, one="a long?, a2 long", two="b long?, c long")
    view.insert("one", [(None, 0), (0, 0)])
    view.insert("two", [(0, 7), (None, 8)])
    assert view.advance() == [((0, 0, 7), 1)]


def test_an_arrangement_is_joined_with_nulls_and_beside_that_without() -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        left, right = one.arrange("a"), two.arrange("b")
        return {"with": left.join(right, null_equal=True), "without": left.join(right)}

    view = ps.View(build, one="a string?", two="b string?, c long")
    view.insert("one", [(None,), ("x",)])
    view.insert("two", [(None, 1), ("x", 2)])
    assert view.advance() == {"with": [((None, 1), 1), (("x", 2), 1)], "without": [(("x", 2), 1)]}


def test_a_collection_is_joined_with_an_arrangement() -> None:
    def build(scope: Any, one: Any, two: Any) -> Any:
        arranged = two.arrange("a")
        with pytest.raises(BuildError, match=r"no collection; its \.collection is one"):
            one.concat(arranged)
        return {"from here": one.join(arranged, on="a", how="left"), "back": arranged.join(one)}

    view = ps.View(build, one="a long", two="a long, c long")
    view.insert("one", [(1,), (3,)])
    view.insert("two", [(1, 10), (2, 20)])
    assert view.advance() == {
        "from here": [((1, 10), 1), ((3, None), 1)],
        "back": [((1, 10), 1)],
    }


def test_a_cross_join_has_no_nulls_of_a_key() -> None:
    with pytest.raises(BuildError, match="no key, and none of null_equal="):
        ps.View(lambda scope, t: t.join(t, how="cross", null_equal=True), t="a long?")
