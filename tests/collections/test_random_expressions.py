"""Random expressions are what plain Python says, record by record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import linear
from pointstamp.collections.instructions import table
from pointstamp.collections.schema import schema_of
from tests.collections.expressions import NAMES, SCHEMA, Both, expressions, rows
from tests.conftest import examples


def check(both: Both, records: list[dict[str, Any]]) -> None:
    """By columns, and by instructions where there are any, with the loop and with its twin."""
    expected = [both.compute(row) for row in records]
    compiled = linear.evaluate_rows, linear.keep_rows
    plain = linear.evaluate_rows.plain, linear.keep_rows.plain  # type: ignore[attr-defined]
    for most, forms in ((-1, compiled), (len(records), compiled), (len(records), plain)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear, "MOST_ROWS", most)
            patch.setattr(linear, "evaluate_rows", forms[0])
            patch.setattr(linear, "keep_rows", forms[1])
            assert values_of(both, records) == expected, (most, forms)


def values_of(both: Both, records: list[dict[str, Any]]) -> list[Any]:
    """What a view computes; of a condition a filter keeps where it is true."""
    is_condition = both.expression.bind(schema_of(SCHEMA)).type.name == "boolean"

    def build(scope: ps.Scope, t: ps.Collection) -> Any:
        kept = t.filter(both.expression) if is_condition else t
        return {"computed": t.select("id", x=both.expression), "kept": kept.select("id")}

    view = ps.View(build, t=SCHEMA)
    view.insert("t", [(at, *(row[name] for name in NAMES[1:])) for at, row in enumerate(records)])
    view.advance()
    found = [x for _, x in view.snapshot("computed")]
    kept = [at for (at,) in view.snapshot("kept")]
    assert kept == [at for at, x in enumerate(found) if x or not is_condition]
    view.close()
    return found


def test_most_of_what_is_drawn_has_instructions() -> None:
    schema = schema_of(SCHEMA)
    simple = [
        col("n") + 1,
        col("n") * col("i") - 3,
        col("x") / 2 + col("n"),
        (col("n") > 3) & col("yes") | col("t").is_null(),
        ps.when(col("day").is_null()).then(col("n")).otherwise(None),
        ps.coalesce(col("n"), col("i"), 0),
        col("d") * 2,
        col("at").cast("date"),
        ~(col("t") == "a"),
    ]
    for expression in simple:
        assert table(expression.bind(schema).instructions) is not None, expression
    for other in (col("t") < "a", col("x").sqrt(), col("t").upper()):
        assert other.bind(schema).instructions is None
    deep = col("n")
    for _ in range(100):
        deep = deep + 1
    assert deep.bind(schema).instructions is None


@settings(max_examples=examples(420))
@given(expressions(), st.lists(rows, min_size=1, max_size=5))
def test_an_expression_is_what_plain_python_says(both: Both, records: list[dict[str, Any]]) -> None:
    check(both, records)


@pytest.mark.soak
@settings(max_examples=30_000)
@given(expressions(depth=5), st.lists(rows, min_size=1, max_size=5))
def test_many_expressions_are_what_plain_python_says(
    both: Both, records: list[dict[str, Any]]
) -> None:
    check(both, records)
