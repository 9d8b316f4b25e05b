"""Rows that PySpark takes, of which a DataFrame would have other values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import types as t

from pointstamp.errors import DataError
from pointstamp.spark.kept_rows import check_kept

PARTS = t.StructType([t.StructField("n", t.IntegerType()), t.StructField("t", t.StringType())])
KEPT = [
    (t.StringType(), ["", "a", None]),
    (t.DateType(), [date(2020, 1, 1), datetime(2020, 1, 1), None]),
    (t.TimestampNTZType(), [datetime(2020, 1, 1, 5)]),
    (t.TimestampType(), [datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 5, tzinfo=UTC)]),
    (t.DecimalType(5, 2), [Decimal("1.2"), Decimal("1.2300"), Decimal(100), Decimal("1E2")]),
    (t.DecimalType(38, 33), [Decimal("0.1234567890123456789012345678901230"), Decimal("0E-40")]),
    (t.FloatType(), [0.1, -3.4e38, float("inf"), float("nan")]),
    (t.DoubleType(), [1e300]),
    (t.ArrayType(t.StringType()), [["a", None], (), ("b",)]),
    (t.MapType(t.StringType(), t.StringType()), [{"a": None}, {}]),
    (PARTS, [(1, "a"), Row(n=1, t="a"), {"n": 1}, {"t": "a", "n": None}, None]),
    (t.IntegerType(), [1, None]),
]
CHANGED = [
    (t.StringType(), 5, "'x', which is string, does not keep 5: Spark makes a text"),
    (t.StringType(), b"a", "does not keep b'a': Spark makes a text"),
    (t.DateType(), datetime(2020, 1, 1, 5), "drops the time of the day"),
    (t.TimestampNTZType(), datetime(2020, 1, 1, tzinfo=UTC), "drops the zone"),
    (t.DecimalType(5, 2), Decimal("1.239"), "rounds it"),
    (t.DecimalType(38, 0), Decimal("12345678901234567890123456789.5"), "rounds it"),
    (t.DecimalType(38, 1), Decimal("0.01"), "rounds it"),
    (t.FloatType(), 1e300, "infinite as a float"),
    (t.FloatType(), -3.4028235677973366e38, "infinite as a float"),
    (t.ArrayType(t.StringType()), ["a", 5], "'x', which is string, does not keep 5"),
    (t.MapType(t.StringType(), t.DateType()), {1: None}, "does not keep 1: Spark makes a text"),
    (t.MapType(t.IntegerType(), t.StringType()), {1: 2}, "does not keep 2: Spark makes a text"),
    (PARTS, (1, 2), r"column 'x\.t', which is string, does not keep 2"),
    (
        PARTS,
        {"n": 1, "T": "a"},
        "the struct 'x' does not keep .*: it has 'T', and columns are n, t",
    ),
]


def struct_of(kind: Any) -> t.StructType:
    return t.StructType([t.StructField("first", t.LongType()), t.StructField("x", kind)])


@pytest.mark.parametrize(("kind", "values"), KEPT)
def test_values_that_stay_are_taken(kind: Any, values: list[Any]) -> None:
    check_kept([(1, value) for value in values], struct_of(kind), "mine")
    check_kept([{"x": value} for value in values], struct_of(kind), "mine")


@pytest.mark.parametrize(("kind", "value", "says"), CHANGED)
def test_values_that_spark_would_change_are_refused(kind: Any, value: Any, says: str) -> None:
    for row in ((1, value), [1, value], {"first": 1, "x": value}):
        with pytest.raises(DataError, match=f"operator 'mine': .*{says}"):
            check_kept([(1, None), row], struct_of(kind), "mine")


def test_names_of_no_column_are_refused() -> None:
    with pytest.raises(DataError, match=r"a row does not keep .* it has 'X', and columns are"):
        check_kept([{"first": 1, "X": "a"}], struct_of(t.StringType()), "mine")


def test_the_keys_of_a_map_are_no_names_of_columns() -> None:
    column = t.StructType([t.StructField("value", t.MapType(t.StringType(), t.StringType()))])
    check_kept([{"a": "b"}, {"value": "c"}], column, "mine")
    with pytest.raises(DataError, match=r"column 'value', .* does not keep 5"):
        check_kept([{"a": 5}], column, "mine")
