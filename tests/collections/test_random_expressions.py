"""Random expressions are what plain Python says, record by record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from tests.collections.expressions import NAMES, SCHEMA, Both, expressions, rows
from tests.conftest import examples


def check(both: Both, records: list[dict[str, Any]]) -> None:
    view = ps.View(lambda scope, t: t.select("id", x=both.expression), t=SCHEMA)
    view.insert("t", [(at, *(row[name] for name in NAMES[1:])) for at, row in enumerate(records)])
    view.advance()
    assert [x for _, x in view.snapshot()] == [both.compute(row) for row in records]


@settings(max_examples=examples(600))
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
