"""The columns that `select` and others are given: as names, as expressions, or by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pointstamp.collections.expression import Expression, as_expression, col
from pointstamp.collections.over import PartitionFunction, WindowColumn
from pointstamp.collections.schema import Schema
from pointstamp.errors import BuildError, ColumnError


def plain_words(schema: Schema, columns: dict[str, Expression]) -> list[int] | None:
    """The words of columns that are given as they are; None if one is computed."""
    words = []
    for expression in columns.values():
        if expression.column is None:
            return None
        words += schema.words(expression.column)
    return words


def by_name(columns: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Columns and expressions that are given, and those that are given by name, by their names.

    Raises
    ------
    ColumnError
        If one has no name, or two have one.
    """
    found: dict[str, Any] = {}
    for column in columns:
        expression = col(column) if isinstance(column, str) else column
        if not isinstance(expression, Expression) or expression.name is None:
            raise ColumnError(f"{column!r} has no name: give it as an argument, name=expression")
        if expression.name in found:
            raise ColumnError(f"the column {expression.name!r} is given twice")
        found[expression.name] = expression
    for given, value in named.items():
        if isinstance(value, PartitionFunction):
            raise BuildError(f"{value} has no order: write {value}.over(keys, order_by=...)")
        if isinstance(value, WindowColumn):
            found[given] = value
            continue
        # A text is the name of a column here; that of a text itself is ps.lit("...").
        found[given] = col(value) if isinstance(value, str) else as_expression(value)
    return found
