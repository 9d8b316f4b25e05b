"""Files of tables with any columns: Parquet, and text with a line of names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pointstamp.errors import FileFormatError, UsageError
from pointstamp.formats.csv_lines import csv_lines
from pointstamp.formats.csv_nulls import csv_table


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    """The table in a file: `.parquet`; `.csv` or `.tsv`, of which `.gz` may follow.

    Raises
    ------
    FileFormatError
        If it is not what its name says, or of another kind.
    """
    suffixes = [suffix for suffix in Path(path).suffixes if suffix != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind not in (".parquet", ".csv", ".tsv"):
        raise FileFormatError(
            f"{path}: a table is in a file that ends with .parquet, .csv or .tsv, or .gz after it"
        )
    delimiter = "\t" if kind == ".tsv" else ","
    try:
        if kind == ".parquet":
            return pq.read_table(Path(path))
        table = csv_table(os.fspath(path), delimiter)
        if _ends_in_lines(table):
            _check_closed(path, delimiter)
        kinds = zip(table.column_names, table.schema.types, strict=True)
        of_bytes = [name for name, kind in kinds if pa.types.is_binary(kind)]
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: there is no such file") from error
    except (pa.ArrowException, OSError) as error:
        if kind != ".parquet" and isinstance(error, pa.ArrowInvalid):
            _check_closed(path, delimiter)
        raise FileFormatError(f"{path}: {str(error).splitlines()[0]}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path}: the line of names is not UTF-8; convert the file"
        ) from error
    if of_bytes:  # as which Arrow reads what is no UTF-8
        raise FileFormatError(
            f"{path}: column {of_bytes[0]!r} is not UTF-8; convert the file, such as by "
            "`iconv -f latin1 -t utf-8`"
        )
    return table


def _ends_in_lines(table: pa.Table) -> bool:
    """Whether a value of the last record has more than one line, as one has that has no end."""
    last: list[Any] = table.column_names
    if table.num_rows:
        last = [column[-1].as_py() for column in table.columns]
    texts = (text.encode() if isinstance(text, str) else text for text in last)
    return any(b"\n" in text for text in texts if isinstance(text, bytes))


def _check_closed(path: str | os.PathLike[str], delimiter: str) -> None:
    with pa.input_stream(os.fspath(path)) as file:
        csv_lines(file.read(), delimiter).check_closed(os.fspath(path), 0)


def values_of(texts: Sequence[str], kind: pa.DataType) -> list[Any]:
    """Texts as values of a column of that type, as it would be read from them.

    Raises
    ------
    UsageError
        If one is none.

    >>> values_of(["7", "8"], pa.int64()), values_of(["7"], pa.string())
    ([7, 8], ['7'])
    """
    if pa.types.is_null(kind):  # of a file without records
        raise UsageError(f"there are no vertices, so none has the id {texts[0]!r}")
    try:
        found: Any = pa.array(texts, pa.string()).cast(kind)  # whose stubs say less
        return list(found.to_pylist())
    except pa.ArrowException as error:
        raise UsageError(f"ids are {kind}, and {', '.join(map(repr, texts))} are not") from error
