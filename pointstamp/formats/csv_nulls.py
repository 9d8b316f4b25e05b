"""CSV as a table of Arrow, and what is null in it: the same of whole files and of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NULL", "null"]
"""What is null in CSV where it is not of text: what Arrow takes for it, without nan, a number."""

_TEXT_NULLS: dict[str, Any] = {
    "null_values": [""],
    "strings_can_be_null": True,
    "quoted_strings_can_be_null": False,
}
"""Null in columns of text is nothing between two delimiters, as `FileSink` writes it; "" is none.
Arrow can say so of all columns alone."""


def csv_table(
    source: Callable[[], Any],
    delimiter: str,
    read: pacsv.ReadOptions | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> pa.Table:
    r"""The table in text, whose values may be quoted, and then have lines in them.

    Parameters
    ----------
    source : callable
        Opens the text: a path, or a file; twice where a column of text may have nulls.
    types : dict, optional
        Of columns by name; others have what Arrow finds.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b'n,name\nNA,NA\n2,\n3,""\n4,x\n'
    >>> csv_table(lambda: BytesIO(text), ",").to_pydict()
    {'n': [None, 2, 3, 4], 'name': ['NA', None, '', 'x']}
    """
    parse = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def table(**options: Any) -> pa.Table:
        text: Any = _WithLineEnd(source())
        return pacsv.read_csv(text, read, parse, pacsv.ConvertOptions(**options))

    found = table(column_types=dict(types or {}), null_values=_NULLS)
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
            found = found.set_column(at, field, again.column(name))
    return found


class _WithLineEnd:
    """A file of text, and the end of a line behind it; Arrow skips one that is empty.

    Without it Arrow takes nothing in the last place for `""` if the value before it has quotes.
    """

    def __init__(self, source: Any) -> None:
        self._stream = source if hasattr(source, "read") else pa.input_stream(source)
        self._has_ended = False
        self.closed = False

    def read(self, n_bytes: int) -> bytes:
        """The next bytes; empty at the end."""
        data: bytes = self._stream.read(n_bytes)
        if data or self._has_ended:
            return data
        self._has_ended = True
        return b"\n"

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._stream.close()


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
