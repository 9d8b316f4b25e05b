"""What inputs of collections refuse by name, and answers at the limits of floats and numbers."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import BuildError, DataError, InputError, OperatorError, SchemaError

INFINITE = math.inf
GREATEST = 1.7976931348623157e308


def view_of(declared: Any) -> ps.View:
    return ps.View(lambda scope, t: t, t=declared)


@pytest.mark.parametrize("schema", ["k string", None])
@pytest.mark.parametrize("given", [5, None, "abc", b"abc"])
def test_what_is_no_iterable_of_rows_is_refused(schema: str | None, given: Any) -> None:
    view = view_of(schema)
    for call in (view.insert, view.delete, view.update):
        with pytest.raises(DataError, match=r"the input 't' is given .* and needs an iterable of"):
            call("t", given)
    assert view.advance() == []


def test_a_view_that_is_closed_refuses_changes_and_has_its_results() -> None:
    inputs = {
        "t": "k long",
        "u": ps.UpsertInput("k long, v long", key="k"),
        "c": ps.ClockInput("long"),
    }
    view = ps.View(
        lambda scope, t, u, c: {"kept": t.temporal_filter(None, "k", clock=c), "u": u}, **inputs
    )
    view.insert("t", [(1,), (5,)])
    view.upsert("u", [(1, 2)])
    view.advance(c=2)
    view.close()
    calls = (
        lambda: view.insert("t", [(7,)]),
        lambda: view.delete("t", [(5,)]),
        lambda: view.update("t", [((7,), 1)]),
        lambda: view.insert("u", [(7, 7)]),
        lambda: view.upsert("u", [(1, 3)]),
        lambda: view.upsert("t", [(1,)]),
        lambda: view.remove("u", [1]),
        lambda: view.advance(),
        lambda: view.advance(c=4),
        lambda: view.insert("nothing", [(7,)]),
    )
    for _ in range(2):
        for call in calls:
            with pytest.raises(InputError, match=r"view of the inputs \['t', 'c', 'u'\] is closed"):
                call()
        assert (view.snapshot("kept"), view.snapshot("u")) == ([(5,)], [(1, 2)])
        assert repr(view) == "View(inputs=['t', 'c', 'u'], epoch=1, closed)"
        view.close()


def test_a_view_without_inputs_goes_on_until_it_is_closed() -> None:
    def build(scope: Any) -> Any:
        own, collection = scope.new_collection("k long")
        own.close()
        return collection

    view = ps.View(build)
    assert (view.advance(), view.advance(), view.epoch) == ([], [], 2)
    view.close()
    with pytest.raises(InputError, match="is closed, at epoch 2"):
        view.advance()


@pytest.mark.parametrize("schema", ["k long", None])
@pytest.mark.parametrize("given", [5, (5,), ((5,), 1, 2)])
def test_changes_are_pairs(schema: str | None, given: Any) -> None:
    view = view_of(schema)
    with pytest.raises(DataError, match="row 1 for the input 't' should be a pair"):
        view.update("t", [((1,), 1), given])
    assert view.advance() == []


@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 3_000])
def test_rows_of_any_number_are_all_there_and_all_go_again(n: int) -> None:
    view = view_of("k long, v string?")
    rows = [(k, None if k % 3 else f"text {k}") for k in range(n)]
    view.insert("t", rows)
    assert sorted(view.advance(), key=repr) == sorted([(row, 1) for row in rows], key=repr)
    view.update("t", [(row, -1) for row in rows])
    view.advance()
    assert len(view.snapshot()) == 0


def test_none_of_many_rows_is_added_where_one_does_not_fit() -> None:
    view = view_of("k long, v string?")
    rows: list[Any] = [(k, None) for k in range(3_000)]
    rows[2_500] = ("a", None)
    for call, given in ((view.insert, rows), (view.update, [(row, 2) for row in rows])):
        with pytest.raises(DataError, match="row 2500 for the input 't', column 'k'"):
            call("t", given)
    assert view.advance() == []


def test_what_fails_in_an_iterable_is_raised_as_it_is() -> None:
    def failing() -> Any:
        yield (1,), 1
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        view_of("k long").update("t", failing())


def test_a_text_is_not_its_characters_as_keys_of_upserts() -> None:
    view = view_of(ps.UpsertInput("k string, v long", key="k"))
    view.upsert("t", [("a", 1), ("b", 2), ("ab", 3)])
    view.advance()
    for given in ("ab", 7):
        with pytest.raises(DataError, match=r"the input 't' is given .* an iterable of keys"):
            view.remove("t", given)
    assert view.advance() == []


def test_records_without_a_schema_are_no_columns() -> None:
    with pytest.raises(DataError, match="is given a DataFrame, and has no columns"):
        view_of(None).insert("t", pd.DataFrame({"x": [1, 2]}))


NOTHING = {"shop": 1, "item": None, "tags": None}


@pytest.mark.parametrize("make", [pa.Table.from_pylist, pd.DataFrame])
def test_columns_without_a_value_are_of_the_types_of_the_schema(make: Any) -> None:
    view = ps.View(lambda scope, a: a, a="shop long, item string?, tags array<string>?")
    view.insert("a", make([NOTHING, {**NOTHING, "tags": []}, {**NOTHING, "tags": [None]}]))
    view.insert("a", make([NOTHING]))
    assert list(view.advance()) == [
        ((1, None, None), 2),
        ((1, None, ()), 1),
        ((1, None, (None,)), 1),
    ]
    with pytest.raises(DataError, match=r"column 'shop' .* has 1 nulls, and is not nullable"):
        view.insert("a", make([{**NOTHING, "shop": None}]))
    with pytest.raises(SchemaError, match="column 'item' for the input 'a'"):
        view.insert("a", make([{**NOTHING, "item": []}]))


def test_no_more_than_64_bits_of_records_come_first() -> None:
    for schema, by in (("k long", "k"), (None, lambda record: record)):

        def build(scope: Any, t: Any, by: Any = by, schema: Any = schema) -> Any:
            groups = t.group_by("k") if schema else t.group_by(lambda record: record)
            return groups.top_k(1 << 63, by=by)

        with pytest.raises(BuildError, match=r"k=9223372036854775808, and should be .* 64 bits"):
            ps.View(build, t=schema)
    view = ps.View(lambda scope, t: t.group_by("k").top_k((1 << 63) - 1, by="k"), t="k long")
    view.insert("t", [(1,), (1,), (2,)])
    assert view.advance() == [((1,), 2), ((2,), 1)]


def test_a_batch_function_that_gives_nothing_is_told_apart() -> None:
    view = ps.View(
        lambda scope, t: t.group_by("k").reduce_batches(lambda batch, offsets: None, "n long"),
        t="k long",
    )
    view.insert("t", [(1,)])
    with pytest.raises(OperatorError, match="the function gave None, and should give columns"):
        view.advance()


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([-INFINITE, 0.0], -INFINITE),
        ([0.0, INFINITE], INFINITE),
        ([-INFINITE, INFINITE], math.nan),
        ([1.0, math.nan], math.nan),
        ([-INFINITE, -INFINITE], -INFINITE),
    ],
)
def test_between_an_infinity_and_a_number_is_the_infinity(
    values: list[float], middle: float
) -> None:
    def build(scope: Any, t: Any) -> Any:
        return t.agg(half=ps.median("v"), most=ps.quantile("v", 0.9))

    view = ps.View(build, t="v double")
    view.insert("t", [(value,) for value in values])
    view.advance()
    for found in view.snapshot()[0]:
        assert found == middle or (math.isnan(found) and math.isnan(middle))


def test_a_mean_of_finite_values_is_finite_where_their_sum_is_none() -> None:
    view = ps.View(lambda scope, t: t.agg(s=ps.sum("v"), a=ps.avg("v")), t="v double")
    view.insert("t", [(GREATEST,), (GREATEST,)])
    view.advance()
    assert list(view.snapshot()) == [(INFINITE, GREATEST)]
    view.insert("t", [(-INFINITE,)])
    view.advance()
    assert list(view.snapshot()) == [(-INFINITE, -INFINITE)]
    view.delete("t", [(-INFINITE,), (GREATEST,)])
    view.advance()
    assert list(view.snapshot()) == [(GREATEST, GREATEST)]


def test_results_that_wait_for_an_input_of_build_say_so() -> None:
    made = []

    def build(scope: Any, a: Any) -> Any:
        handle, b = scope.new_collection("k long", name="b")
        made.append(handle)
        return a.concat(b)

    with ps.View(build, a="k long") as view:
        view.insert("a", [(1,)])
        with pytest.raises(InputError, match=r"input 'b' .* itself, and which is at 0: advance it"):
            view.advance()
        made[0].insert([(2,)])
        made[0].advance_to(2)
        assert view.advance() == [((1,), 1), ((2,), 1)]
        made[0].close()
        view.insert("a", [(3,)])
        assert view.advance() == [((3,), 1)]
