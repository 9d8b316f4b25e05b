"""Files of text that is not UTF-8: read in their encoding, and else refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import FileFormatError, UsageError, WorkerError
from pointstamp.formats.table_files import read_table
from pointstamp.testing import check_source, collect

CSV = "näme,n\nJosé,1\nAnn,2\nZoë,3\n"
JSON = '{"name": "José"}\n{"name": "Ann"}\n'


def read(path: Path, **options: Any) -> list[Any]:
    found = collect(lambda scope: scope.source(ps.FileSource(path, **options)))
    return [record for _, record in found]


@pytest.mark.parametrize("block_bytes", [4, 1 << 20])
def test_text_is_read_in_its_encoding(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV, encoding="cp1252")
    schema = pa.schema({"näme": pa.string(), "n": pa.int64()})
    source = ps.FileSource(path, encoding="cp1252", block_bytes=block_bytes, schema=schema)
    check_source(source)
    expected = [("Ann", 2), ("José", 1), ("Zoë", 3)]
    assert sorted(read(path, encoding="cp1252", block_bytes=block_bytes)) == expected
    path = tmp_path / "people.jsonl"
    path.write_text(JSON, encoding="latin-1")
    assert sorted(read(path, encoding="latin-1", block_bytes=block_bytes)) == [("Ann",), ("José",)]


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.csv", "name,n\nJosé,1\n", {}, "column 'name' is not UTF-8 (byte 10 is 0xe9)"),
        ("a.csv", "name\nJoe\nJosé\n", {"block_bytes": 8}, "column 'name' is not UTF-8 (byte 12"),
        ("a.csv", CSV, {}, "the line of names is not UTF-8 (byte 1 is 0xe4)"),
        (
            "a.csv",
            "name\nJosé\n",
            {"schema": pa.schema({"name": pa.string()})},
            "text is not UTF-8 (byte 8 is 0xe9)",
        ),
        ("a.jsonl", JSON, {}, "byte 13 is 0xe9, which is not utf-8"),
        ("a.csv", "n\n\x81\n", {"encoding": "cp1252"}, "byte 2 is 0x81, which is not cp1252"),
    ],
)
def test_text_of_another_encoding_is_refused_by_place(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], said: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
    with pytest.raises(WorkerError, match=f"{re.escape(f'{path}: {said}')}.*encoding="):
        read(path, **options)


def test_columns_of_bytes_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"name\n\xe9\n")
    assert read(path, schema=pa.schema({"name": pa.binary()})) == [(b"\xe9",)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "none such", None])
def test_an_encoding_has_the_characters_of_ascii_as_their_bytes(encoding: Any) -> None:
    with pytest.raises(UsageError, match="encoding is one such as"):
        ps.FileSource("somewhere", encoding=encoding)


@pytest.mark.parametrize(
    ("text", "said"),
    [("src,dst\nZoë,1\n", "column 'src' is not UTF-8"), (CSV, "the line of names is not UTF-8")],
)
def test_a_table_of_another_encoding_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(FileFormatError, match=said):
        read_table(path)
