"""What the operators on collections return, in types: checked by mypy, and never run."""

from __future__ import annotations

from typing import assert_type

from pointstamp import Collection, col
from pointstamp.collections.expression import Expression


def of_policies(t: Collection, columns: dict[str, Expression]) -> None:
    """With errors as data there are two collections."""
    assert_type(t.select("a"), Collection)
    assert_type(t.select(a=col("b"), on_error="route"), tuple[Collection, Collection])
    assert_type(t.select(a=col("b"), on_error="drop"), Collection)
    assert_type(t.select(**columns), Collection)
    assert_type(t.with_columns(a=col("b"), on_error="route"), tuple[Collection, Collection])
    assert_type(t.with_columns(**columns), Collection)
    assert_type(t.filter(col("b")), Collection)
    assert_type(t.filter(col("b"), on_error="route", name="x"), tuple[Collection, Collection])
    assert_type(t.map(lambda row: row, "a long", on_error="route"), tuple[Collection, Collection])
    assert_type(t.flat_map(lambda row: [row], "a long"), Collection)


def of_assertions(t: Collection) -> None:
    """They give the collection that they are asked of."""
    assert_type(t.assert_empty("none"), Collection)
    assert_type(t.assert_equal(t, "itself"), Collection)
