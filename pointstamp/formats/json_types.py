"""Types that Arrow's parser of JSON reads, in place of those that it does not.

A day or a time of day is a text in JSON, and a map a list of objects with a `key` and a `value`:
JSON's own objects have only texts as names, and a schema would have to know them. NaN and the
infinities, which are no numbers of JSON, are the texts that Spark writes and reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite, isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_KEY, _VALUE = "key", "value"
_NO_NUMBER = re.compile(rb'([:\[,]\s*)"(NaN|-?Infinity)"(?=\s*[,}\]])')
"""A value, and no name. It is in no text: there a quote has a backslash before it."""


def json_type(kind: pa.DataType, *, in_text: bool = True) -> pa.DataType:
    """A type as JSON has it; the same where Arrow reads it as it is.

    Parameters
    ----------
    in_text : bool
        Days and times of day are texts; else they are numbers.

    >>> json_type(pa.list_(pa.date32()))
    ListType(list<item: string>)
    >>> json_type(pa.map_(pa.int32(), pa.time32("s")))
    ListType(list<item: struct<key: int32, value: string>>)
    """
    of = pa.types
    if of.is_date(kind) or of.is_time(kind):
        return pa.string() if in_text else kind
    if of.is_dictionary(kind):
        return json_type(kind.value_type, in_text=in_text)
    if of.is_float16(kind):
        return pa.float32()
    if of.is_list(kind) or of.is_large_list(kind) or of.is_fixed_size_list(kind):
        item = json_type(kind.value_type, in_text=in_text)
        return pa.list_(kind.value_field.with_type(item))
    if of.is_struct(kind):
        return pa.struct([f.with_type(json_type(f.type, in_text=in_text)) for f in kind])
    if of.is_map(kind):
        key, value = (json_type(t, in_text=in_text) for t in (kind.key_type, kind.item_type))
        return pa.list_(pa.struct([(_KEY, key), (_VALUE, value)]))
    return kind


def json_schema(schema: pa.Schema, *, in_text: bool = True) -> pa.Schema:
    """The same of all columns.

    >>> json_schema(pa.schema([("day", pa.date32()), ("n", pa.int64())]))
    day: string
    n: int64
    """
    return pa.schema([f.with_type(json_type(f.type, in_text=in_text)) for f in schema])


def without_nan(value: Any) -> Any:
    """A value of Python with what JSON has no number for as text.

    >>> without_nan({"x": [1.5, float("nan")], "y": float("-inf")})
    {'x': [1.5, 'NaN'], 'y': '-Infinity'}
    """
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: without_nan(one) for name, one in value.items()}
    return [*map(without_nan, value)] if isinstance(value, list | tuple) else value


def parsed_with_nan(
    data: bytes, parse: Callable[[bytes, pa.Schema | None], pa.Table], schema: pa.Schema | None
) -> pa.Table:
    """The table that `parse` makes of text in which NaN and infinities may be texts.

    Parameters
    ----------
    schema : pyarrow.Schema, optional
        Then columns without floats are parsed apart, and may have the same texts as such.

    Raises
    ------
    pyarrow.ArrowException
        If it is not to be read so.
    """
    try:
        return parse(data, schema)
    except pa.ArrowException:
        # Arrow's parser takes the bare words, which are no JSON, and not the texts.
        bare = _NO_NUMBER.sub(rb"\1\2", data)
        if bare == data:
            raise
    if schema is None:
        return parse(bare, None)
    floats = [field for field in schema if _has(field.type, pa.types.is_floating)]
    others = [field for field in schema if field not in floats]
    table, rest = parse(bare, pa.schema(floats)), parse(data, pa.schema(others))
    for field in rest.schema:
        table = table.append_column(field, rest.column(field.name))
    return table


def parsed_as(schema: pa.Schema, parse: Callable[[pa.Schema], pa.Table]) -> pa.Table:
    """The table that `parse` makes of a schema that it can read, with what is in the real one.

    Raises
    ------
    pyarrow.ArrowException
        If it is not to be read so.
    """
    in_text = json_schema(schema)
    if in_text == schema:
        return parse(schema)
    in_numbers = json_schema(schema, in_text=False)
    try:
        found = parse(in_text)
    except pa.ArrowException as error:
        try:
            found = parse(in_numbers)
        except pa.ArrowException as again:
            maps = [field.name for field in schema if _has(field.type, pa.types.is_map)]
            if not maps:
                raise
            raise pa.ArrowInvalid(
                f"{str(error if in_text == in_numbers else again).splitlines()[0]} (a map, as in "
                f'column {maps[0]!r}, is read of a list such as [{{"{_KEY}": 1, "{_VALUE}": 2}}])'
            ) from error
    return from_json(found, schema)


def from_json(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of JSON's types with the times of day and the maps of a schema.

    Of other types it stays as it is: those can be cast.

    >>> table = pa.table({"at": ["12:30:00.5", None]})
    >>> from_json(table, pa.schema([("at", pa.time32("ms"))])).column("at").to_pylist()
    [datetime.time(12, 30, 0, 500000), None]
    """
    for place, field in enumerate(schema):
        if _is_made(field.type):
            column: Any = table.column(place).combine_chunks()
            table = table.set_column(place, field, _made(column, field.type))
    return table


def _is_made(kind: pa.DataType) -> bool:
    """Whether Arrow has no cast to a type from that of JSON."""
    return _has(kind, lambda found: pa.types.is_time(found) or pa.types.is_map(found))


def _has(kind: pa.DataType, is_it: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is such a one, or has one in it."""
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return is_it(kind) or any(_has(each, is_it) for each in inner)


def _made(column: Any, kind: Any) -> Any:
    """A column of JSON's type for a type, as one of that."""
    of = pa.types
    if not _is_made(kind) or column.type == kind:
        return column.cast(kind)
    if of.is_time(kind):
        if not of.is_string(column.type):
            return column.cast(kind)
        join: Any = pc.binary_join_element_wise
        return join("1970-01-01 ", column, "").cast(pa.timestamp("ns")).cast(kind)
    if of.is_struct(kind):
        columns = [_made(column.field(n), field.type) for n, field in enumerate(kind)]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=column.is_null())
    if of.is_map(kind):
        keys, values = column.values.field(0), column.values.field(1)
        if keys.null_count or column.values.null_count:
            raise pa.ArrowInvalid(f"an entry of a {kind} has no {_KEY!r}")
        maps: Any = pa.MapArray  # which the stubs believe to be of other types
        return maps.from_arrays(
            column.offsets,
            _made(keys, kind.key_type),
            _made(values, kind.item_type),
            type=kind,
            mask=column.is_null(),
        )
    listed = pa.list_(kind.value_field)
    values = _made(column.values, kind.value_type)
    lists: Any = pa.ListArray
    return lists.from_arrays(column.offsets, values, listed, mask=column.is_null()).cast(kind)
