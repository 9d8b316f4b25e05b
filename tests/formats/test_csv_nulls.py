"""What is null in CSV, and what Arrow is given to read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from pointstamp.errors import FileFormatError
from pointstamp.formats.csv_nulls import csv_table
from pointstamp.formats.table_files import read_table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('k,s\nz,b\n"x",', [None]),
        ('k,s\nz,b\n"x",""', [""]),
        ('k,s\nz,b\n"x",\n', [None]),
        ('k,s\nz,b\n"x",""\n', [""]),
        ('k,s\nz,b\n"x","a,"\n"y",', ["a,", None]),
        ('k,s\nz,b\n"x",\n"y",""', [None, ""]),
        ('k,s\nz,b\n"",', [None]),
        ('s\nb\n"x"\n""', ["x", ""]),
        ('s,k\nb,z\n,"x"\n"",""', [None, ""]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_nothing_in_a_last_place_is_null_and_an_empty_text_is_none(
    text: str, expected: list[str | None], ending: str, tmp_path: Path
) -> None:
    separated = text.replace(",", "\t").replace("a\t", "a,") if ending == "tsv" else text
    data = separated.encode()
    path = tmp_path / f"table.{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    delimiter = "\t" if ending == "tsv" else ","
    for table in (csv_table(data, delimiter), csv_table(str(path), delimiter), read_table(path)):
        assert table["s"].to_pylist() == ["b", *expected]


@pytest.mark.parametrize("damage", ["none", "cut", "no table"])
def test_arrow_s_threads_read_no_file_of_python(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go on for a while behind an error: a process that ended meanwhile was aborted."""
    read, given = pacsv.read_csv, []

    def noting(text: Any, *options: Any) -> Any:
        given.append(text)
        return read(text, *options)

    monkeypatch.setattr(pacsv, "read_csv", noting)
    lines = b"a,b\n" + b"1,x\n" * 99 + (b"1,2,3\n" if damage == "no table" else b"2,\n")
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(lines)[: -12 if damage == "cut" else None])
    if damage == "none":
        assert read_table(path)["b"].to_pylist() == ["x"] * 99 + [None]
    else:
        with pytest.raises(FileFormatError, match="Truncated" if damage == "cut" else "Expected 2"):
            read_table(path)
    assert given
    assert all(isinstance(text, pa.NativeFile) for text in given)
    assert not any(isinstance(text, pa.PythonFile) for text in given)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["18446744073709551615", "1", ""], pa.uint64()),
        (["10000000000000000001", " 10000000000000000002", "NA"], pa.uint64()),
        (["18446744073709551615", "-1"], pa.decimal128(38)),
        (["9" * 38, "+1"], pa.decimal128(38)),
        (["9" * 50, "9" * 49 + "8"], pa.string()),
        (["10000000000000000001", "1.5"], pa.float64()),
        (["10000000000000000001", "1e3"], pa.float64()),
        (["10000000000000000001", "nan"], pa.float64()),
        (["9223372036854775807", "-9223372036854775808"], pa.int64()),
    ],
)
def test_integers_of_more_than_an_int64_stay_what_they_are(
    texts: list[str], kind: pa.DataType
) -> None:
    """Of two that were one float, two vertices were one."""
    table = csv_table("\n".join(["n,s", *(f"{text},x" for text in texts)]).encode(), ",")
    assert table.schema.types == [kind, pa.string()]
    for text, found in zip(texts, table["n"].to_pylist(), strict=True):
        if text in ("", "NA"):
            assert found is None
        elif kind == pa.float64():
            assert found == float(text) or found != found
        else:
            assert found == (text if kind == pa.string() else int(text))


def test_types_that_are_given_are_kept_for_large_integers() -> None:
    table = csv_table(b"n\n10000000000000000001\n", ",", types={"n": pa.float64()})
    assert table["n"].to_pylist() == [1e19]
