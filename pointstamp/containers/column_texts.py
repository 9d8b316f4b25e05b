"""Columns by a text such as "shop long, item string?", or by PySpark's `StructType`.

A text has the names and types of the columns as in Spark's DDL, with `?` behind the type of one
that may be null.
"""

from __future__ import annotations

import re
from typing import Any

from pointstamp.containers.nested import column_type_named, split_at_commas
from pointstamp.containers.words import WordType
from pointstamp.errors import SchemaError

_COLUMN = re.compile(
    r"\s*([^\s?]+)\s+([a-z_0-9]+(?:\s*\([^)]*\)|\s*<.*>)?)\s*(\?)?\s*", re.IGNORECASE | re.DOTALL
)
_SPARKS_TIME = re.compile(r"\btimestamp\b(?!:)")
"""As the type, and not as the name of a field."""

NamedColumn = tuple[str, WordType, bool]
"""Its name and type, and whether it may be null."""


def columns_named(given: Any) -> list[NamedColumn] | None:
    """The columns that a text or a `StructType` names; None of anything else.

    Raises
    ------
    SchemaError
        If the text is none, or for a type that there is not.

    >>> [(name, kind.name, null) for name, kind, null in columns_named("a long, b string?")]
    [('a', 'long', False), ('b', 'string', True)]
    """
    if isinstance(given, str):
        return [_parsed(text) for text in split_at_commas(given)]
    fields = getattr(given, "fields", None)
    # Of PySpark, which is not imported; Arrow's structs have fields, too, of other attributes.
    if isinstance(fields, list | tuple) and all(hasattr(field, "dataType") for field in fields):
        return [_of_spark(field) for field in fields]
    return None


def _parsed(text: str) -> NamedColumn:
    matched = _COLUMN.fullmatch(text)
    if matched is None:
        raise SchemaError(
            f"{text.strip()!r} is no column: write its name and type, as 'item string?'"
        )
    name, kind, nullable = matched.groups()
    return name, column_type_named(kind), bool(nullable)


def _of_spark(field: Any) -> NamedColumn:
    kind = _SPARKS_TIME.sub("timestamp_utc", field.dataType.simpleString())
    return field.name, column_type_named(kind), field.nullable
