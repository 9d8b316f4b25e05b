"""CSV as a table of Arrow, and what is null in it: the same of whole files and of blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NULL", "null"]
"""What is null in CSV where it is not of text: what Arrow takes for it, without nan, a number."""

_PIECE_BYTES = 1 << 20

_TEXT_NULLS: dict[str, Any] = {
    "null_values": [""],
    "strings_can_be_null": True,
    "quoted_strings_can_be_null": False,
}
"""Null in columns of text is nothing between two delimiters, as `FileSink` writes it; "" is none.
Arrow can say so of all columns alone."""


def csv_table(
    source: str | bytes,
    delimiter: str,
    read: pacsv.ReadOptions | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> pa.Table:
    r"""The table in text, whose values may be quoted, and then have lines in them.

    Parameters
    ----------
    source : str or bytes
        The path of a file, which may be compressed; or the text. It is read twice where a column
        of text may have nulls.
    types : dict, optional
        Of columns by name; others have what Arrow finds.

    Examples
    --------
    >>> csv_table(b'n,name\nNA,NA\n2,\n3,""\n4,x\n', ",").to_pydict()
    {'n': [None, 2, 3, 4], 'name': ['NA', None, '', 'x']}
    """
    parse = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def table(**options: Any) -> pa.Table:
        with _opened(source) as text:
            return pacsv.read_csv(text, read, parse, pacsv.ConvertOptions(**options))

    found = table(column_types=dict(types or {}), null_values=_NULLS)
    if rounded := [name for name in found.column_names if _may_be_rounded(found, name, types)]:
        texts = {name: pa.string() for name in rounded}
        written = table(
            column_types=texts,
            include_columns=rounded,
            null_values=_NULLS,
            strings_can_be_null=True,
        )
        for name in rounded:
            at = found.schema.get_field_index(name)
            if (exact := _as_integers(written.column(name))) is not None:
                found = found.set_column(at, name, exact)
    columns: list[Any] = found.columns
    empty = {
        field.name: field.type
        for field, column in zip(found.schema, columns, strict=True)
        if _is_text(field.type) and pc.min(_lengths(column)).as_py() == 0
    }
    if empty and len(set(found.schema.names)) == found.num_columns:
        again = table(column_types=empty, include_columns=list(empty), **_TEXT_NULLS)
        for name, field in zip(empty, again.schema, strict=True):
            at = found.schema.get_field_index(name)
            column = again.column(name)
            if at == found.num_columns - 1 and _is_nothing(column, source, delimiter):
                column = pa.chunked_array([*column[:-1].chunks, pa.nulls(1, field.type)])
            found = found.set_column(at, field, column)
    return found


def _may_be_rounded(table: pa.Table, name: str, types: Mapping[str, pa.DataType] | None) -> bool:
    """Whether Arrow may have made floats of integers that are too large for an int64."""
    if table.column_names.count(name) > 1 or name in (types or {}):
        return False
    column = table.column(name)
    beyond: Any = 2.0**63
    return pa.types.is_floating(column.type) and bool(
        pc.any(pc.greater_equal(pc.abs(column), beyond)).as_py()
    )


def _as_integers(texts: Any) -> Any:
    """Integers as uint64, or as decimals; as they are written where they have more digits.

    None if not all are integers.
    """
    texts = pc.utf8_trim_whitespace(texts)
    if not pc.all(pc.match_substring_regex(texts, "^[+-]?[0-9]+$")).as_py():
        return None
    for kind in (pa.uint64(), pa.decimal128(38)):
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    return texts


def _opened(source: str | bytes) -> Any:
    """The text as a file of Arrow's own, which calls no Python.

    Arrow reads ahead in threads, which go on for a while when what was read is refused. A process
    that ends meanwhile would be aborted when one of them calls Python.
    """
    return pa.BufferReader(source) if isinstance(source, bytes) else pa.input_stream(source)


def _is_nothing(column: Any, source: str | bytes, delimiter: str) -> bool:
    """Whether the last value of the last column is nothing, and not `""`.

    Arrow makes an empty text of it if the value before it has quotes and no end of a line follows.
    """
    last = column[-1].as_py()
    if last is None or len(last):
        return False
    end = b""
    if isinstance(source, bytes):
        end = source[-1:]
    else:
        with _opened(source) as text:
            while piece := text.read(_PIECE_BYTES):
                end = piece[-1:]
    return end == delimiter.encode()


def _is_text(kind: pa.DataType) -> bool:
    """Whether values may be an empty text: of bytes, and those that are kept as numbers, too."""
    of = pa.types
    if of.is_dictionary(kind):
        return _is_text(kind.value_type)
    is_any = (of.is_string, of.is_large_string, of.is_binary, of.is_large_binary)
    return any(is_one(kind) for is_one in is_any)


def _lengths(column: Any) -> Any:
    is_dictionary = pa.types.is_dictionary(column.type)
    return pc.binary_length(column.cast(column.type.value_type) if is_dictionary else column)
