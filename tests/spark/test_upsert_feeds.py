"""Collections of upserts that follow streams of Spark: rows by key, and messages of Debezium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import pointstamp as ps
import pointstamp.spark
from pointstamp.collections.schema import schema_of
from pointstamp.collections.upserts import EventForm
from pointstamp.errors import DataError, SchemaError, UsageError
from pointstamp.service.event_columns import columns_of_events, to_events
from pointstamp.spark.feeds import required_of
from pointstamp.spark.upsert_forms import upsert_form_of
from tests.spark.test_feeds import NOW, Files, forget_commit, run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ORDERS = ps.UpsertInput("id long, state string, note string?", key="id")
MESSAGE = (
    "op string, before struct<id: bigint, state: string, note: string>, "
    "after struct<id: bigint, state: string, note: string>, ts_ms long, source string"
)


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Callable[[str, str], Files]:
    return lambda name, columns: Files(spark, tmp_path / name, columns)


def test_upserts_and_messages_of_debezium_change_what_a_view_changes(
    spark: Any, files: Any, tmp_path: Path
) -> None:
    upserts = files("upserts", "id long, state string, note string, gone boolean, at long")
    messages = files("messages", MESSAGE)

    def build(scope: Any, orders: Any, others: Any) -> Any:
        return {"orders": orders, "n": orders.concat(others).group_by("state").count()}

    inputs = {"orders": ORDERS, "others": ORDERS}
    with (
        ps.View(build, **inputs) as view,
        pointstamp.spark.serve(
            build, spark, 2, collections=inputs, checkpoint=tmp_path / "service"
        ) as service,
    ):

        def check(epoch: int) -> None:
            for name, expected in view.advance().items():
                assert service.output(name).changes(epoch)[:] == expected[:], (name, epoch)

        orders = service.input("orders")
        # The greatest of a sequence counts, wherever it comes.
        upserts.put(
            (1, "paid", "x", False, 9), (1, "open", None, False, 3), (2, "open", None, False, 4)
        )
        upserts.put((2, None, None, True, 5), (1, "sent", None, False, 1), (7, None, None, True, 0))
        options = {"deleted": "gone", "sequence": "at", "trigger": NOW}
        run(orders.follow(upserts.stream, "upserts", **options))
        view.upsert("orders", [(1, "paid", "x"), (2, "open", None)])
        check(0)
        view.upsert("orders", [(1, "sent", None)])
        view.remove("orders", [2, 7])
        check(1)
        forget_commit(tmp_path, "orders", 1)
        run(orders.follow(upserts.stream, "upserts", **options))
        a, b = (1, "open", "a"), (1, "paid", None)
        messages.put(
            ("c", None, a, 1, "s"), ("r", None, (2, "open", "b"), 1, "s"), ("u", a, b, 2, None)
        )
        messages.put(("d", b, None, 3, "s"), (None, None, None, None, None))
        debezium = {"form": "debezium", "sequence": "ts_ms", "trigger": NOW}
        # A tombstone has no place: it says nothing.
        run(service.input("others").follow(messages.stream, **debezium))
        view.upsert("others", [b, (2, "open", "b")])
        check(2)
        view.remove("others", [1])
        check(3)
        frame = spark.createDataFrame(
            [(5, "open", None), (1, "open", None)], upserts.columns.split(", gone")[0]
        )
        assert orders.load(frame) == 4
        orders.upsert([(6, "open", "by hand")])
        view.upsert("orders", [(5, "open", None), (1, "open", None)])
        check(4)
        view.upsert("orders", [(6, "open", "by hand")])
        assert service.advance() == 5
        check(5)


FORM = EventForm(schema_of("id long, state string, note string?"), "id", "orders")
WIRE = columns_of_events(FORM)


def form(name: str, **options: Any) -> Any:
    given = {"deleted": None, "sequence": None, **options}
    return upsert_form_of(name, "input 'orders'", FORM.keys, required_of(FORM), **given)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"state": None}, "column 'state' is null, and is not nullable; the row is {'id': 1, "),
        ({"id": None, "gone": True}, "column 'id' is null, and is not nullable"),
        ({"gone": None}, "column 'gone' is null, and should be true or false"),
        ({"at": None}, "column 'at' is null, and should be a place in an order"),
    ],
)
def test_upserts_that_say_nothing_are_refused(row: dict[str, Any], said: str) -> None:
    types = {"id": "long", "state": "string", "note": "string", "gone": "boolean", "at": "long"}
    arrow = {"long": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
    schema = pa.schema([(name, arrow[kind]) for name, kind in types.items()])
    good = {"id": 1, "state": "open", "note": None, "gone": False, "at": 4}
    found = form("upserts", deleted="gone", sequence="at")
    made = found.changes(pa.RecordBatch.from_pylist([good, {**good, "gone": True}], schema), WIRE)
    events = to_events(FORM, made.cast(WIRE), "here").rows
    assert events[:, [0, 1, 4, -1]].tolist() == [[1, 4, 0, 1], [1, 4, 0, 1]]
    assert (events[:, FORM.after - 1] == [1, 0]).all()
    with pytest.raises(DataError) as caught:
        found.changes(pa.RecordBatch.from_pylist([good, {**good, **row}], schema), WIRE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"op": "x"}, "'op' should be one of c, r, u, d; the row is {'op': 'x', 'before'"),
        ({"op": None}, "'op' should be one of c, r, u, d"),
        ({"after": None}, "'after' is null; the row is {'op': 'u'"),
        ({"op": "d", "before": None}, "'before' is null"),
        ({"after": {"id": 1, "state": None, "note": None}}, "column 'state' is null, and is not"),
        ({"op": "d", "before": {"id": None, "state": None, "note": None}}, "column 'id' is null"),
    ],
)
def test_messages_that_say_nothing_are_refused(message: dict[str, Any], said: str) -> None:
    record = pa.struct([("id", pa.int64()), ("state", pa.string()), ("note", pa.string())])
    schema = pa.schema([("op", pa.string()), ("before", record), ("after", record)])
    row = {"id": 1, "state": "open", "note": None}
    good, found = {"op": "u", "before": row, "after": row}, form("debezium")
    deletion = {"op": "d", "before": {**row, "state": None}, "after": None}
    made = found.changes(pa.RecordBatch.from_pylist([good, deletion], schema), WIRE)
    assert made.column("_deleted").to_pylist() == [False, True]
    with pytest.raises(DataError) as caught:
        found.changes(pa.RecordBatch.from_pylist([good, {**good, **message}], schema), WIRE)
    assert said in str(caught.value)


def test_what_is_no_form_of_upserts_is_refused(spark: Any) -> None:
    row = "id long, state string, note string"

    def check(columns: str, name: str, **options: Any) -> None:
        form(name, **options).check(StructType.fromDDL(columns), FORM.schema, "input 'orders'")

    for columns, name, options, error, text in [
        (row, "append", {}, UsageError, "is an input of upserts, and form='append' is none of"),
        (row, "debezium", {"deleted": "gone"}, UsageError, "'op' says what is deleted; leave out"),
        (row, "upserts", {"deleted": "state"}, UsageError, "deleted='state' is a column of the"),
        (row, "upserts", {"deleted": "gone"}, SchemaError, "lacks 'gone': its columns are id, "),
        (row, "upserts", {"sequence": "at"}, SchemaError, "lacks 'at'"),
        (row, "upserts", {"sequence": "note"}, SchemaError, "'note' of Spark's type string, and"),
        (
            f"{row}, gone int",
            "upserts",
            {"deleted": "gone"},
            SchemaError,
            "should be boolean: cast",
        ),
        ("id int, state string, note string", "upserts", {}, SchemaError, "'id' of Spark's type i"),
        (row, "debezium", {}, SchemaError, "lacks 'op': its columns are id, state, note, and sh"),
        (MESSAGE.replace("op string", "op int"), "debezium", {}, SchemaError, "'op' of Spark's ty"),
        (
            MESSAGE.replace("state: string", "s: int", 1),
            "debezium",
            {},
            SchemaError,
            "lacks 'state'",
        ),
        (MESSAGE, "debezium", {"sequence": "lsn"}, SchemaError, "sequence='lsn' is no column of"),
        (MESSAGE, "debezium", {"sequence": "source"}, SchemaError, "'source' of Spark's type str"),
        (f"op string, before int, {row} ,after int", "debezium", {}, SchemaError, "a struct of th"),
    ]:
        with pytest.raises(error, match=text):
            check(columns, name, **options)
    check(f"{row}, gone boolean, at timestamp", "upserts", deleted="gone", sequence="at")
    check(row, "upserts", sequence="id")
    check(MESSAGE, "debezium", sequence="ts_ms")
