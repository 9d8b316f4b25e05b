"""Collections where answers went wrong, or costs followed the state, once."""

from __future__ import annotations

import math
import pickle
import re
import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp import build_info, col
from pointstamp.collections.aggregate import GroupState, state_of
from pointstamp.collections.schema import schema_of
from pointstamp.errors import (
    BuildError,
    DataError,
    InputError,
    OperatorError,
    SchemaError,
    WorkerError,
)

BIG = col("n") > 1
NAMED = col("t").fill_null("unknown")
KIND = ps.lit("sale")


def rows_of(build: Any, schema: str, rows: list[Any]) -> list[Any]:
    view = ps.View(build, t=schema)
    view.insert("t", rows)
    view.advance()
    return list(view.snapshot())


def test_expressions_made_elsewhere_mean_the_same_in_every_process() -> None:
    big, named, kind = BIG, NAMED, KIND

    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            rows, t = scope.new_collection("n long, t string?")
            chosen = t.filter(big & (col("t").fill_null("") < "z"))
            chosen.select("n", t=named, kind=kind).inspect(lambda row, *_: seen.append(row))
        rows.insert([(2 + worker.index, "Rome" if worker.index else None), (0, "Oslo")])
        rows.close()
        worker.run()
        return seen

    found = [row for part in ps.execute(main, workers=2) for row in part]
    assert sorted(found) == [(2, "unknown", "sale"), (3, "Rome", "sale")]


def test_changes_travel_as_values() -> None:
    def main(worker: ps.Worker) -> Any:
        view = ps.View(lambda scope, t: t, t="t string")
        view.insert("t", [(f"of {worker.index}",)])
        return view.advance(), view.snapshot()

    parts = ps.execute(main, workers=2)
    assert [changes for changes, _ in parts] == [[(("of 0",), 1)], [(("of 1",), 1)]]
    assert [snapshot for _, snapshot in parts] == [[("of 0",)], [("of 1",)]]
    empty = ps.View(lambda scope, t: t, t="t string").advance()
    assert pickle.loads(pickle.dumps(empty)) == []


def test_unsigned_integers_of_64_bits_are_no_other_integers() -> None:
    def built(make: Any) -> Any:
        return ps.View(lambda scope, a, b: make(a, b), a="k uint64, d date", b="k long")

    for make in (
        lambda a, b: a.join(b, on="k"),
        lambda a, b: a.select(x=col("k") * col("k")),
        lambda a, b: a.select(x=col("d") + col("k")),
    ):
        with pytest.raises(SchemaError, match="uint64"):
            built(make)


def test_a_column_may_be_called_name() -> None:
    found = rows_of(lambda scope, t: t.with_columns(name=col("a") + 1), "a long", [(1,)])
    assert found == [(1, 2)]
    assert rows_of(lambda scope, t: t.select(name="a"), "a long", [(1,)]) == [(1,)]
    assert rows_of(lambda scope, t: t.agg(name=ps.max("a")), "a long", [(1,)]) == [(1,)]


def test_ties_are_broken_by_the_bytes_of_texts() -> None:
    for texts in (("tea", "ink"), ("ink", "tea"), ("a long text", "a long tail")):
        found = rows_of(
            lambda scope, t: t.group_by("k").top_k(1, by="n"),
            "k long, t string, n long",
            [(1, text, 5) for text in texts],
        )
        assert found == [(1, min(texts), 5)]


def test_floats_of_32_bits_have_32_bits() -> None:
    def build(scope: Any, t: Any) -> Any:
        narrow = t.select(f="f")
        return narrow.concat(t.select(f=col("d").cast("float"))).distinct()

    assert rows_of(build, "f float, d double", [(0.1, 0.1)]) == [(float(np.float32(0.1)),)]
    view = ps.View(lambda scope, t: t.select(f=col("d").cast("float")), t="d double")
    view.insert("t", [(1e300,)])
    with pytest.raises(OperatorError, match="does not fit float"):
        view.advance()


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0.29, "decimal(9,2)", Decimal("0.29")),
        (4.35, "decimal(9,2)", Decimal("4.35")),
        (-1.005, "decimal(9,2)", Decimal("-1.01")),
        (2.5, "decimal(9,0)", Decimal(3)),
        (Decimal("1.29"), "decimal(9,1)", Decimal("1.3")),
        (Decimal("-1.25"), "decimal(9,1)", Decimal("-1.3")),
        (Decimal("-1.99"), "long", -1),
        (-1.99, "long", -1),
    ],
)
def test_casts_go_to_the_nearest_decimal_and_to_integers_towards_0(
    value: Any, kind: str, expected: Any
) -> None:
    schema = "x double" if isinstance(value, float) else "x decimal(9,2)"
    found = rows_of(lambda scope, t: t.select(x=col("x").cast(kind)), schema, [(value,)])
    assert found == [(expected,)]


def test_products_are_right_to_the_last_bit() -> None:
    double = lambda scope, t: t.select(x=col("a") * col("b"))  # noqa: E731
    found = rows_of(
        double, "a long, b long", [(2**63 - 1, 1), (-(2**62), 2), (3037000499, 3037000499)]
    )
    assert found == sorted([(2**63 - 1,), (-(2**63),), (3037000499**2,)])
    view = ps.View(double, t="a long, b long")
    view.insert("t", [(89547301328687144, 103)])
    with pytest.raises(OperatorError, match="multiplied does not fit"):
        view.advance()


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_least_long_is_a_value_of_floats_too(kind: str) -> None:
    least = -(2.0**63)
    made = lambda scope, t: t.select(x=col("a").abs(), n=col("a").cast("long"))  # noqa: E731
    assert rows_of(made, f"a {kind}", [(least,), (-0.0,)]) == [(0.0, 0), (-least, -(2**63))]
    for beyond in (-least, math.nextafter(least, -math.inf) if kind == "double" else 2 * least):
        with pytest.raises(OperatorError, match="does not fit 64 bits"):
            rows_of(made, f"a {kind}", [(beyond,)])


@pytest.mark.parametrize(
    "beside", [{}, {"o": ps.min("a")}, {"o": ps.median("a")}, {"o": ps.count_distinct("a")}]
)
def test_a_sum_takes_large_diffs_whatever_is_beside_it(beside: Any) -> None:
    view = ps.View(lambda scope, t: t.agg(x=ps.sum("a"), **beside).select("x"), t="a long")
    total = 0
    for value, diff in ((1, 2**31), (-7, 2**40), (2**20, 2**31), (3, -(2**31) - 1), (-7, -(2**40))):
        view.update("t", [((value,), diff), ((5,), 1)])
        total += value * diff + 5
        view.advance()
        assert view.snapshot() == [(total,)]
    view.update("t", [((2**62,), 2**62)])
    with pytest.raises(OperatorError, match=r"more than 92 bits|beyond 64 bits"):
        view.advance()


def test_sums_beyond_what_is_kept_are_refused() -> None:
    view = ps.View(lambda scope, t: t.agg(s=ps.sum("a"), m=ps.median("a")), t="a long")
    view.update("t", [((2**62 + n,), 2**30) for n in range(16)])
    with pytest.raises(OperatorError, match="more than 92 bits"):
        view.advance()
    view = ps.View(lambda scope, t: t.agg(s=ps.sum("a")), t="a long")
    view.update("t", [((2**62 + n,), 2**30) for n in range(16)])
    with pytest.raises(OperatorError, match=f"is {2**96 + 120 * 2**30} for the group"):
        view.advance()
    view = ps.View(lambda scope, t: t.agg(n=ps.count()), t="a long")
    view.update("t", [((n,), 2**62) for n in range(3)])
    with pytest.raises(OperatorError, match=r"the diffs of the group .* is beyond 64 bits"):
        view.advance()
    view = ps.View(lambda scope, t: t.agg(s=ps.sum("a")), t="a decimal(18,0)")
    view.insert("t", [(Decimal(10**18 - 1),)] * 5)
    with pytest.raises(OperatorError, match="more digits than a decimal can"):
        view.advance()


KEY = ("Rome", None, (1, "x"), date(2026, 1, 1))


@pytest.mark.parametrize("beside", [{}, {"m": ps.median("n")}])
@pytest.mark.parametrize("in_loop", [False, True])
def test_the_group_of_a_sum_that_does_not_fit_is_named(beside: Any, in_loop: bool) -> None:
    schema = "t string, l long?, s struct<a: long, b: string>, d date"

    def build(scope: Any, t: Any) -> Any:
        def total(found: Any) -> Any:
            return found.group_by("t", "l", "s", "d").agg(n=ps.sum("n"), **beside).drop(*beside)

        return t.iterate(total, limit=2) if in_loop else total(t)

    view = ps.View(build, t=f"{schema}, n long?")
    view.update("t", [((*KEY, 2**63 - 1), 2), (("Oslo", *KEY[1:], 1), 1)])
    said = f"is {2**64 - 2} for the group of the key {KEY!r}, which is beyond 64 bits"
    with pytest.raises(OperatorError, match=re.escape(said)):
        view.advance()


def test_the_record_of_diffs_that_do_not_fit_is_named() -> None:
    view = ps.View(lambda scope, t: t.distinct(), t="t string, n long")
    view.update("t", [(("Rome", 7), 2**62)])
    view.advance()
    view.update("t", [(("Rome", 7), 2**62)])
    with pytest.raises(
        OperatorError, match=r"the group of the key \('Rome', 7\) is beyond 64 bits"
    ):
        view.advance()


@pytest.mark.parametrize(
    "build",
    [
        lambda t: t.threshold(lambda counts: counts.clip(max=1)),
        lambda t: t.intersect(t.filter(col("n") > 0)),
        lambda t: t.iterate(lambda _: t.subtract(t.negate()), limit=2),
        lambda t: t.group_by("t").agg(x=ps.count_distinct("n")),
        lambda t: t.group_by("t").agg(x=ps.mode("n")),
        lambda t: t.group_by("t").agg(x=ps.median("n")),
        lambda t: t.group_by("t").agg(x=ps.bool_or(col("n") > 0)),
        lambda t: t.group_by("t").agg(x=ps.stddev("n")),
        lambda t: t.group_by("t").agg(x=ps.sum(col("n").cast("double"))),
        lambda t: t.group_by("t").agg(
            x=ps.linear_aggregate(
                "n", zero=0, add=lambda state, value, n: state + n, emit=abs, type="long"
            ),
        ),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_counts_beyond_64_bits_are_an_error_in_whatever_keeps_them(build: Any, sign: int) -> None:
    view = ps.View(lambda scope, t: build(t).distinct(), t="t string, n long")
    for _ in range(2):
        view.update("t", [(("Rome", 7), sign * 2**61), (("Rome", 8), -sign * 2**61)])
        view.advance()
    # Of the first record, and of the group.
    view.update("t", [(("Rome", 7), sign * (2**62 + 2**61)), (("Rome", 8), sign * 2**62)])
    with pytest.raises(OperatorError, match=r"the sum of the diffs of .* is beyond 64 bits"):
        view.advance()


def test_a_multiplicity_that_changes_by_more_than_64_bits_is_an_error() -> None:
    def far(counts: Any) -> Any:
        return np.where(counts == 1, 2**63 - 1, 1 - 2**63)

    view = ps.View(lambda scope, t: t.threshold(far), t="n long")
    view.insert("t", [(7,)])
    assert view.advance() == [((7,), 2**63 - 1)]
    view.insert("t", [(7,)])
    with pytest.raises(OperatorError, match="the change of how often a record is there"):
        view.advance()


def test_the_least_diff_has_no_opposite() -> None:
    view = ps.View(lambda scope, t: t.negate(), t="n long")
    view.update("t", [((7,), 1 - 2**63)])
    assert view.advance() == [((7,), 2**63 - 1)]
    view.update("t", [((8,), -(2**63))])
    with pytest.raises(
        OperatorError, match="'Negate' failed at time 1: a diff of -9223372036854775808"
    ):
        view.advance()


def test_what_is_there_the_fewest_times_is_subtracted_from_as_from_nothing() -> None:
    view = ps.View(lambda scope, t, u: t.subtract(u), t="n long", u="n long")
    view.update("t", [((7,), -(2**63))])
    view.update("u", [((7,), 2**62)])
    assert view.advance() == []
    view.close()


def test_a_frame_whose_sum_does_not_fit_is_an_error() -> None:
    rolled = ps.rolling(ps.sum("n"), 2).over("t", order_by="n")
    view = ps.View(lambda scope, t: t.select(x=rolled), t="t string, n long")
    view.insert("t", [("Rome", 2**63 - 1), ("Rome", 2**63 - 2)])
    with pytest.raises(OperatorError, match="for a frame of 2 records or less"):
        view.advance()


def test_no_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="leaves no column"):
        ps.View(lambda scope, t: t.select(), t="a long")
    with pytest.raises(SchemaError, match="leaves no column"):
        ps.View(lambda scope, t: t.drop("a"), t="a long")


def test_a_whole_collection_with_records_from_the_start_sends_one_row() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            rows, t = scope.new_collection("a long")
            t.agg(n=ps.count()).inspect(lambda row, time, diff: seen.append((row, time, diff)))
        if worker.index == 0:
            rows.insert([(1,)])
        rows.advance_to(1)
        if worker.index == 0:
            rows.delete([(1,)])
        rows.close()
        worker.run()
        return seen

    for workers in (1, 2, 3):
        parts = ps.execute(main, workers=workers, threads=True)
        found = sorted(update for part in parts for update in part)
        assert found == [((0,), 1, 1), ((1,), 0, 1), ((1,), 1, -1)]


@pytest.mark.parametrize(
    "aggregate",
    [ps.count(), ps.sum("v"), ps.sum("f"), ps.avg("v"), ps.var("f"), ps.min("v"), ps.max("t"),
     ps.count_distinct("v"), ps.bool_or(col("v") > 1)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("of", [GroupState, state_of])
def test_groups_that_are_gone_are_forgotten(aggregate: Any, of: Any) -> None:
    schema = schema_of("k long, v long, f double, t string")
    bound = aggregate.bind(schema, "x")
    state = of(1, [bound], "Aggregate")
    word = schema.to_updates([(0, 1, 0.5, "a")], 1, "a test").rows[0]
    value = [] if bound.value is None else [int(bound.value.evaluate(word[None, :])[0][0])]
    if bound.value is not None and bound.value.type.is_float:
        value = [int(word[2])]
    rows = np.array([[n, *value, 1] for n in range(20)], np.int64)
    gone = rows * [*[1] * len(value), 1, -1]
    for _ in range(1_000):
        state.take_in([rows.copy()])
        state.take_in([gone.copy()])
        rows[:, 0] += len(rows)
        gone[:, 0] += len(rows)
    assert len(state) < 10_000


def test_a_view_keeps_what_is_there_and_no_history() -> None:
    view = ps.View(lambda scope, t: t, t="a long")
    for _ in range(50):
        view.insert("t", [(n,) for n in range(100)])
        view.advance()
        view.delete("t", [(n,) for n in range(100)])
        view.advance()
    (result,) = view._results.values()
    assert result.n_updates <= 1_224
    assert view.snapshot() == []
    assert result.n_updates == 0


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_keys_that_are_integers_of_other_widths_meet(how: Any) -> None:
    view = ps.View(lambda scope, a, b: a.join(b, on="k", how=how), a="k int, x long", b="k long")
    view.insert("a", [(1, 10), (2, 20)])
    view.insert("b", [(1,), (3,)])
    view.advance()
    one, two, three = (1, 10), (2, 20), (3, None)
    expected = {
        "inner": [one], "left": [one, two], "right": [one, three], "full": [one, two, three],
        "semi": [one], "anti": [two],
    }  # fmt: skip
    assert list(view.snapshot()) == expected[how]


def test_one_of_many_values() -> None:
    many = list(range(0, 5_000, 2))
    found = rows_of(lambda scope, t: t.filter(col("a").is_in(many)), "a long", [(4,), (5,)])
    assert found == [(4,)]
    build = lambda scope, t: t.select(x=col("f").is_in([math.nan, 1]))  # noqa: E731
    found = rows_of(build, "f double?", [(math.nan,), (1.0,), (2.0,), (None,)])
    assert found == [(None,), (False,), (True,), (True,)]
    assert rows_of(lambda scope, t: t.filter(col("a").is_in([])), "a long", [(1,)]) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", 10**400),
        ("float", 1e300),
        ("string", "\ud800"),
        ("decimal(9,2)", Decimal("1E999999")),
        ("decimal(9,2)", Decimal("NaN")),
        ("decimal(4,1)", Decimal("1.00000000000000000000000000000000000000000000000000000000001")),
    ],
)
def test_values_of_no_column_are_refused_with_their_row(kind: str, value: Any) -> None:
    view = ps.View(lambda scope, t: t, t=f"a {kind}")
    with pytest.raises(DataError, match="row 0 for the input 't', column 'a'"):
        view.insert("t", [(value,)])
    with pytest.raises(DataError, match="beyond 64 bits"):
        view.update("t", [((value,), 2**63)])


@pytest.mark.parametrize("in_one_epoch", [True, False])
def test_a_row_more_often_than_64_bits_can_say_names_its_result(in_one_epoch: bool) -> None:
    view = ps.View(lambda scope, t: {"kept": t}, t="a long")
    for _ in range(2):
        view.update("t", [((1,), 2**62)])
        if not in_one_epoch:
            view.advance()
    said = "the result 'kept': the sum of the diffs of equal records is beyond 64 bits"
    for _ in range(2):
        with pytest.raises(DataError, match=said):
            view.advance() if in_one_epoch else view.snapshot()


def test_an_aggregate_without_a_name_is_refused() -> None:
    def of_groups(scope: Any, t: ps.Collection) -> ps.Collection:
        return t.group_by("k").agg(ps.sum("n"))

    def of_all(scope: Any, t: ps.Collection) -> ps.Collection:
        return t.agg(ps.sum("n"), m=ps.count())

    for build in (of_groups, of_all):
        with pytest.raises(BuildError, match=r"agg is given sum\(col\('n'\)\) without a name"):
            ps.View(build, t="k long, n long")


def test_dates_beyond_the_calendar_are_refused() -> None:
    view = ps.View(lambda scope, t: t.select(d=col("d") + col("n")), t="d date, n long")
    view.insert("t", pa.table({"d": pa.array([0], pa.int32()).cast(pa.date32()), "n": [10**10]}))
    with pytest.raises(OperatorError, match="beyond the years 1 to 9999"):
        view.advance()


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("duration", timedelta.max, "64 bits of microseconds"),
        ("array<duration>", [timedelta.min], "64 bits of microseconds"),
        (
            "timestamp_utc",
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))),
            "9999 in UTC",
        ),
        ("timestamp_utc", datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), "9999 in UTC"),
    ],
)
def test_times_that_a_word_does_not_have_are_refused(kind: str, value: Any, said: str) -> None:
    view = ps.View(lambda scope, t: t, t=f"a {kind}")
    with pytest.raises(DataError, match=f"row 0 for the input 't', column 'a': .*{said}"):
        view.insert("t", [(value,)])


@pytest.mark.parametrize(
    ("kind", "column", "said"),
    [
        ("date", pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()), "2147483647 days since"),
        ("timestamp", pa.array([-(2**62)], pa.timestamp("us")), "-4611686018427387904 us since"),
        ("timestamp", pa.array([2**62], pa.timestamp("s")), "out of bounds"),
        ("timestamp", pa.array([1], pa.timestamp("ns")), "lose data"),
        ("duration", pa.array([2**62], pa.duration("s")), "out of bounds"),
    ],
)
def test_times_of_arrow_that_a_word_does_not_have_are_refused(
    kind: str, column: Any, said: str
) -> None:
    view = ps.View(lambda scope, t: t, t=f"a {kind}")
    with pytest.raises(DataError, match=f"column 'a' for the input 't': .*{said}"):
        view.insert("t", pa.table({"a": column}))


def test_times_at_the_limits_come_out_as_they_went_in() -> None:
    schema = "d date, t timestamp?, u timestamp_utc, l duration"
    last = datetime.max.replace(tzinfo=UTC)
    longest = timedelta(microseconds=2**63 - 1)
    rows = [
        (date.min, None, datetime.min.replace(tzinfo=UTC), timedelta(microseconds=-(2**63))),
        (date.max, datetime.max, last, longest),  # noqa: DTZ901  (without a zone, as the column)
    ]
    view = ps.View(lambda scope, t: t, t=schema)
    view.insert("t", rows)
    view.advance()
    assert view.snapshot() == rows
    again = ps.View(lambda scope, t: t, t=schema)
    again.insert("t", view.snapshot().to_arrow())
    again.advance()
    assert again.snapshot() == rows


def _used_outside(scope: Any, t: Any) -> Any:
    inside: list[Any] = []
    return t.iterate(lambda found: (inside.append(found), found)[1]).concat(inside[0])


def _not_left(scope: Any, t: Any) -> Any:
    with scope.iterative() as inner:
        found = inner.variable("n long")
        found.set(t.distinct())
        return found


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda scope, t: t.filter(lambda row: row[0] > 1), "map takes functions of rows"),
        (lambda scope, t: t.filter(pc.field("n") > 1), r"an expression of pointstamp\.col"),
        (lambda scope, t: t.withColumn("m", col("n")), "'withColumn'; here: with_columns"),
        (lambda scope, t: t.groupBy("n"), "'groupBy'; it is called 'group_by' here"),
        (lambda scope, t: t.group_by("n").sum("n"), r"'sum'; here: agg\(total="),
        (lambda scope, t: t.nothing, "no attribute 'nothing'$"),
        (lambda scope, t: t.filter(col("n").is_in(1)), "needs a list of values"),
        (lambda scope, t: t.filter(col("n").is_in("ab")), "needs a list of values"),
        (lambda scope, t: t.filter(col("n").is_in(t)), "semi"),
        (lambda scope, t: t.map(lambda row: row, "n array<long?>"), "may be null as it is"),
        (lambda scope, t: t.map(5, "n long"), "'Map' needs a function; found 5"),
        (lambda scope, t: t.flat_map(None, "n long"), "'FlatMap' needs a function; found None"),
        (lambda scope, t: t.inspect(5), "'Inspect' needs a function; found 5"),
        (lambda scope, t: t.threshold("a"), "'Threshold' needs a function; found 'a'"),
        (lambda scope, t: t.iterate(None), "'Iterate' needs a function; found None"),
        (lambda scope, t: t.rename(["n"]), "needs a dict of new names by the old"),
        (lambda scope, t: t.join(t, on=[]), "no column as its key"),
        (_used_outside, r"take it out of its loop by leave\(\)"),
        (_not_left, r"take it out of its loop by leave\(\)"),
    ],
)
def test_what_is_often_meant_is_named(build: Any, said: str) -> None:
    with pytest.raises((BuildError, SchemaError, AttributeError), match=said):
        ps.View(build, t="n long")


def test_what_is_no_name_is_no_input_and_no_result() -> None:
    view = ps.View(lambda scope, t: t, t="n long")
    for call in (lambda: view.insert([], [(1,)]), lambda: view.upsert([], [(1,)])):
        with pytest.raises(InputError, match=r"known by its name, a text, and not by \[\]"):
            call()
    with pytest.raises(InputError, match=r"there is no result \[\]; there are \['result'\]"):
        view.snapshot([])  # type: ignore[arg-type]  # as is to be seen


def test_what_is_no_column_is_refused_by_name() -> None:
    for make, error in [
        (lambda t: ps.count(1), BuildError),  # type: ignore[arg-type]  # as is to be seen
        (lambda t: t.group_by(1), BuildError),
        (lambda t: t.drop(col("a")), BuildError),
        (lambda t: t.join(t, on=col("a")), BuildError),
        (lambda t: t.group_by("a").top_k(1, by=col("a")), BuildError),
    ]:
        with pytest.raises(error, match="is given"):
            ps.View(lambda scope, t, make=make: make(t), t="a long")
    view = ps.View(lambda scope, t: t.threshold(lambda n: n * 0.5), t="a long")
    view.insert("t", [(1,)])
    with pytest.raises(OperatorError, match="should give as many integers"):
        view.advance()


def test_many_epochs_ahead_cost_no_more_each() -> None:
    """The batches that a join looks into while epochs wait, counted."""
    from pointstamp.collections import join as module

    counts = []
    original = module.match_some

    def counted(changes: Any, batches: Any, *rest: Any) -> Any:
        counts.append(len(batches))
        return original(changes, batches, *rest)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            (a, left), (b, right) = (scope.new_collection("k long") for _ in range(2))
            left.join(right, on="k")
        for epoch in range(400):
            for input_ in (a, b):
                input_.insert([(epoch,)])
                input_.advance_to(epoch + 1)
        a.close()
        b.close()
        worker.run()

    module.match_some = counted
    try:
        ps.execute(main)
    finally:
        module.match_some = original
    assert 400 < sum(counts) < 400 * 2 * 10


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: ps.rank().over("a", order_by="b") == 1, r"with_columns\(n=\.\.\.\)"),
        (lambda: ps.rank().over("a", order_by="b") != 1, r"with_columns\(n=\.\.\.\)"),
        (lambda: ps.rank() == 1, r"write \.over\("),
        (lambda: ps.count() == 1, r"agg\(n=\.\.\.\)"),
        (lambda: ps.sum("a") + 1, r"agg\(n=\.\.\.\)"),
        (lambda: ps.count() > col("a"), r"agg\(n=\.\.\.\)"),
        (lambda: ps.when(col("a") > 1) == 1, r"\.then\(value\)"),
        (lambda: ps.when(col("a") > 1).then(2) == 1, r"\.otherwise\(other\)"),
    ],
)
def test_what_is_no_column_yet_is_not_compared_in_silence(make: Any, hint: str) -> None:
    with pytest.raises(BuildError, match=f"is no column to compute with: .*{hint}"):
        make()


@pytest.mark.parametrize("joined", ["join", "motifs"])
def test_what_a_join_makes_is_never_in_memory_as_a_whole(joined: str) -> None:
    """Pairs of one key, and paths through one vertex: 96 MB and more, of which the sum is kept."""
    n = 2_000

    def build(edges: ps.Collection) -> ps.Collection:
        if joined == "motifs":
            return ps.motifs(edges, "(a)-[]->(b); (b)-[]->(c)").agg(n=ps.count())
        begin, go_on = edges.filter(col("dst") == 0), edges.filter(col("src") == 0)
        begin, go_on = begin.rename({"dst": "at"}), go_on.rename({"src": "at"})
        return begin.join(go_on, on="at").agg(n=ps.count())

    view = ps.View(lambda scope, edges: build(edges), edges="src long, dst long")
    edges = [(-k, 0) for k in range(1, n + 1)] + [(0, k) for k in range(1, n + 1)]
    view.insert("edges", edges)
    tracemalloc.start()
    try:
        assert (((n * n,), 1)) in view.advance()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The sources hold the words of a piece as objects of Python, too.
    assert peak < (64 if build_info() == "compiled" else 128) << 20


@pytest.mark.skipif(build_info() != "compiled", reason="interpreted, words may be any integers")
@pytest.mark.parametrize("epoch", [2**63 - 1, 2**63, 2**70])
def test_an_epoch_in_a_loop_that_is_beyond_64_bits_is_refused_by_name(epoch: int) -> None:
    """It was a bare OverflowError."""

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            input, numbers = scope.new_collection("n long")
            numbers.iterate(lambda again: again.distinct()).inspect(lambda *at: found.append(at))
        input.advance_to(epoch)
        input.insert([(1,)])
        input.close()
        worker.run()
        return found

    if epoch < 2**63:
        assert ps.execute(main) == [[((1,), epoch, 1)]]
        return
    with pytest.raises(WorkerError, match=rf"times below 2\*\*63, .*; found \({epoch}, 0\)"):
        ps.execute(main)
