"""Upserts and change feeds as collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections.schema import schema_of
from pointstamp.collections.upserts import CurrentRecords, Event, EventForm
from pointstamp.errors import BuildError, ColumnError, DataError, InputError, WorkerError
from tests.collections.temporal_programs import Orders, check_program, orders
from tests.conftest import examples

Update = tuple[tuple[Any, ...], int, int]


@settings(max_examples=examples(200))
@given(orders(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 7]), st.integers(0, 1 << 20))
def test_upserts_are_what_recomputing_gives(
    program: Orders, workers: int, at_a_time: int, seed: int
) -> None:
    check_program(program, workers, at_a_time, seed)


def updates_of(make: Any, *epochs: list[Any]) -> list[Update]:
    """What `make(scope, stream)` gives of the records of each epoch, on one worker."""

    def main(worker: ps.Worker) -> list[Update]:
        seen: list[Update] = []
        with worker.dataflow() as scope:
            input_, stream = scope.new_input()
            make(scope, stream).inspect(lambda row, time, diff: seen.append((row, time, diff)))
        for epoch, records in enumerate(epochs):
            input_.advance_to(epoch)
            for record in records:
                input_.send(record)
        input_.close()
        worker.run()
        return seen

    [found] = ps.execute(main)
    return found


def upserts(scope: Any, stream: Any) -> Any:
    return scope.from_upserts(stream, "a long, b string, c long", key=["a", "b"])


def debezium(scope: Any, stream: Any) -> Any:
    return scope.from_debezium(stream, "a long, b long?", key="a")


def feed(scope: Any, stream: Any) -> Any:
    return scope.from_cdf(stream, "a long, b long?")


def message(op: str, before: int | None, after: int | None) -> dict[str, Any]:
    rows = [None if b is None else {"a": 7, "b": b} for b in (before, after)]
    return {"op": op, "before": rows[0], "after": rows[1]}


def test_upserts_of_an_input_without_a_key_say_what_to_call() -> None:
    view = ps.View(lambda scope, t: t, t="n long")
    with pytest.raises(InputError, match=r"'t' has no key, .* insert\('t', rows\)"):
        view.upsert("t", [(1,)])


def test_a_key_of_several_columns() -> None:
    found = updates_of(
        upserts,
        [((1, "x"), (1, "x", 5)), ((1, "y"), {"a": 1, "b": "y", "c": 6})],
        [((1, "x"), None), ((1, "y"), (1, "y", 6)), ((2, "x"), None)],
    )
    # Within an epoch they are in the order of the numbers of their texts.
    found.sort(key=lambda update: (update[1], update[0]))
    assert found == [((1, "x", 5), 0, 1), ((1, "y", 6), 0, 1), ((1, "x", 5), 1, -1)]


def test_a_debezium_feed() -> None:
    found = updates_of(
        debezium,
        [message("r", None, 1), message("u", 1, 2), message("u", 2, 3)],
        [message("u", None, 4)],  # without the row before, nothing is compared
        [message("d", 4, None), None],
    )
    assert found == [((7, 3), 0, 1), ((7, 3), 1, -1), ((7, 4), 1, 1), ((7, 4), 2, -1)]


@pytest.mark.parametrize(
    ("epochs", "said", "was"),
    [
        ([[message("c", None, 1)], [message("u", 2, 3)]], r"\(7, 2\)", r"\(7, 1\)"),
        ([[message("c", None, 1), message("u", 2, 3)]], r"\(7, 2\)", r"\(7, 1\)"),
        ([[message("d", 1, None)]], r"\(7, 1\)", "not there"),
    ],
)
def test_a_row_before_that_differs_is_an_error(epochs: list[Any], said: str, was: str) -> None:
    with pytest.raises(WorkerError, match=f"key \\(7,\\) says .* was {said}, and it is {was}"):
        updates_of(debezium, *epochs)


def test_a_change_feed() -> None:
    def row(kind: str, b: int | None) -> dict[str, Any]:
        return {"a": 7, "b": b, "_change_type": kind, "_commit_version": 3}

    found = updates_of(
        feed,
        [row("insert", None)],
        [row("update_preimage", None), row("update_postimage", 2)],
        [row("delete", 2)],
    )
    assert found == [
        ((7, None), 0, 1),
        ((7, None), 1, -1),
        ((7, 2), 1, 1),
        ((7, 2), 2, -1),
    ]


@pytest.mark.parametrize(
    ("make", "record", "said"),
    [
        (upserts, 7, "needs pairs of a key and a row"),
        (upserts, ((1, "x"), (2, "x", 3)), "the key .* is given for .* are another"),
        (upserts, ((1, "x"), (1, "x")), "should be a tuple of 3 values"),
        (debezium, {"op": "t"}, "which is c, r, u or d"),
        (debezium, message("u", 1, None), "without 'after'"),
        (debezium, message("d", None, None), "without 'before'"),
        (debezium, {"op": "d", "before": {"b": 1}}, "whose 'before' has no"),
        (feed, {"a": 1, "b": 2}, "needs dicts with '_change_type'"),
        (feed, {"a": 1, "b": 2, "_change_type": ["insert"]}, "needs dicts with '_change_type'"),
        (feed, {"a": 1, "_change_type": "insert"}, "has the keys"),
    ],
)
def test_a_record_of_another_form_is_an_error(make: Any, record: Any, said: str) -> None:
    with pytest.raises(WorkerError, match=said):
        updates_of(make, [record])


def test_a_sequence_that_is_no_integer_is_an_error() -> None:
    def make(scope: Any, stream: Any) -> Any:
        return scope.from_upserts(stream, "a long", "a", sequence=lambda record: "x")

    with pytest.raises(WorkerError, match="sequence= gave 'x'"):
        updates_of(make, [(1, (1,))])


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises((ColumnError, WorkerError), match="'z'"):
        updates_of(lambda scope, stream: scope.from_upserts(stream, "a long", "z"))
    with pytest.raises((BuildError, WorkerError), match="no column as key"):
        updates_of(lambda scope, stream: scope.from_upserts(stream, "a long", []))


def test_a_view_of_upserts() -> None:
    def build(scope: Any, orders: Any, shops: Any) -> Any:
        return orders.join(shops, on="shop")

    view = ps.View(
        build,
        orders=ps.UpsertInput("id long, shop long, state string", key="id"),
        shops="shop long, city string",
    )
    view.insert("shops", [(1, "Rome")])
    view.upsert("orders", [(7, 1, "open"), {"id": 8, "shop": 2, "state": "open"}])
    assert view.advance() == [((1, 7, "open", "Rome"), 1)]
    view.upsert("orders", [(8, 1, "paid"), (7, 1, "open")])
    assert view.advance() == [((1, 8, "paid", "Rome"), 1)]
    view.remove("orders", [7, 9])
    assert view.advance() == [((1, 7, "open", "Rome"), -1)]
    with pytest.raises(InputError, match="is of upserts: change it by upsert"):
        view.insert("orders", [(1, 1, "open")])
    with pytest.raises(InputError, match="'shops' has no key"):
        view.upsert("shops", [(1, "Oslo")])
    with pytest.raises(DataError, match="'orders'"):
        view.remove("orders", ["x"])
    view.close()


def test_a_row_that_is_none_is_refused_and_columns_are_rows() -> None:
    """None was taken for the deletion of the key whose words are 0."""
    view = ps.View(lambda scope, t: t, t=ps.UpsertInput("a long, b string?", key="a"))
    view.upsert("t", [(0, "x")])
    with pytest.raises(DataError, match=r"row 1 for the input 't' .* it is None"):
        view.upsert("t", [(0, "y"), None])
    assert view.advance() == [((0, "x"), 1)]
    view.upsert("t", pa.table({"a": [0, 1, 1], "b": ["y", "z", None]}))
    assert view.advance() == [((0, "x"), -1), ((0, "y"), 1), ((1, None), 1)]
    view.close()


def test_keys_without_a_record_are_forgotten() -> None:
    form = EventForm(schema_of("a long, b long"), "a", "Upserts")
    records = CurrentRecords(form, "Upserts")
    for key in range(2_000):
        put, take = Event(None, (key, 1)), Event((key,), None)
        assert len(records.apply(form.encode([put], "a test").rows)) == 1
        assert len(records.apply(form.encode([take], "a test").rows)) == 1
    assert len(records) <= 32
    assert np.count_nonzero(records._records[:, 0]) == 0
