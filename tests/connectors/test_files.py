"""Files as a source, from every position of every format; files as a sink."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import json
import math
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import (
    CheckpointWarning,
    ColumnError,
    FileFormatError,
    PositionError,
    SchemaError,
    SinkError,
    SourceError,
    UsageError,
    WorkerError,
)
from pointstamp.formats.file_sink import FileSink
from pointstamp.formats.file_source import FileSource
from pointstamp.formats.sink_columns import columns_of
from pointstamp.formats.table_files import read_table
from pointstamp.testing import check_sink, check_source
from tests.checkpoint.bucket import Bucket

TABLE = pa.table(
    {
        "n": pa.array(range(200), pa.int64()),
        "text": [f'"{n}",\nnext line' if n % 7 == 0 else f"text {n}" for n in range(200)],
    }
)


def as_csv(path: Path) -> None:
    pacsv.write_csv(TABLE, path)


def as_json(path: Path) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in TABLE.to_pylist()))


def compressed(write: Callable[[Path], None]) -> Callable[[Path], None]:
    def write_compressed(path: Path) -> None:
        write(path)
        path.write_bytes(gzip.compress(path.read_bytes()))

    return write_compressed


def as_arrow_file(path: Path) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=30)


def as_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=30)


FORMS = [
    pytest.param("a.parquet", lambda path: pq.write_table(TABLE, path, 70), id="parquet"),
    pytest.param("a.arrow", as_arrow_file, id="arrow"),
    pytest.param("a.arrow", as_arrow_stream, id="arrow stream"),
    pytest.param("a.csv", as_csv, id="csv"),
    pytest.param("a.csv.gz", compressed(as_csv), id="csv.gz"),
    pytest.param("a.jsonl", as_json, id="json"),
    pytest.param("a.jsonl.gz", compressed(as_json), id="json.gz"),
]


def small(place: Path, **options: Any) -> FileSource:
    """A source of many small batches."""
    return FileSource(place, batch_rows=30, block_bytes=300, **options)


def read(source: FileSource, partition: str, position: Any = None) -> list[Any]:
    return [r for batch, _ in source.open(partition, position) for r in batch.to_pylist()]


@pytest.mark.parametrize(("name", "write"), FORMS)
def test_a_file_of_every_form_is_read_from_every_position(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    source = small(tmp_path)
    assert read(source, name) == TABLE.to_pylist()
    assert len(list(source.open(name, None))) > 5
    check_source(source, n_batches=100, n_positions=100)
    check_source(small(tmp_path / name))
    assert read(FileSource(tmp_path, schema=pa.schema([("n", pa.int32())])), name) == [
        {"n": n} for n in range(200)
    ]


def records_of(place: Path, **options: Any) -> list[Any]:
    found = ps.testing.collect(lambda scope: scope.source(FileSource(place, **options)))
    return [record for _, record in found]


@pytest.mark.parametrize("text", ["", "k,n", "k,n\n", "k,n\r\n", '"k",n'])
def test_a_table_of_no_records_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, newline="")
    (tmp_path / "b.csv").write_text("k,n\nx,1")
    assert records_of(tmp_path) == [("x", 1)]


@pytest.mark.parametrize("block_bytes", [8, 16, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        'k,n\r5" pipe,1\rx,2\r',
        'k,n\r\n5" pipe,1\r\nx,2\r\n',
        '\n\nk,n\n5" pipe,1\n\nx,2',
        '\ufeff"k",n\n"5"" pipe",1\n"x",2\n',
    ],
)
def test_lines_may_end_in_every_way_and_values_have_quotation_marks(
    tmp_path: Path, text: str, block_bytes: int
) -> None:
    (tmp_path / "a.csv").write_text(text, newline="", encoding="utf-8")
    assert records_of(tmp_path, block_bytes=block_bytes) == [('5" pipe', 1), ("x", 2)]


def test_a_block_does_not_end_within_a_quoted_value(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,k\n1,5" pipe\n2,"z\nq,3"\n3,x\n')
    expected = [(1, '5" pipe'), (2, "z\nq,3"), (3, "x")]
    for block_bytes in range(4, 40):
        assert records_of(tmp_path, block_bytes=block_bytes) == expected


def test_a_file_that_ends_within_a_quoted_value_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,k\n1,"x"\n2,"y\n3,z\n')
    for block_bytes in (8, 1 << 20):
        with pytest.raises(WorkerError, match="mark at byte 12 begins a value that has no end"):
            records_of(tmp_path, block_bytes=block_bytes)


@pytest.mark.parametrize("blank", ["", "\n", "\n" * 60])
def test_a_first_record_longer_than_a_block_has_the_types(tmp_path: Path, blank: str) -> None:
    """Else each block would have types of its own."""
    path = tmp_path / "a.csv"
    long = "x" * 100
    path.write_text(f'n,text\n{blank}1,"{long}"\n2,\n3,5\n4,007\n')
    expected = [(1, long), (2, None), (3, "5"), (4, "007")]
    for block_bytes in (8, 20, 64, 1 << 20):
        assert records_of(path, block_bytes=block_bytes) == expected
    check_source(FileSource(path, block_bytes=8))
    path.write_text(f'n,text\n{blank}1,"{long}"\n' + "2,y\n" * 100 + "2.5,y\n")
    with pytest.raises(WorkerError, match="CSV conversion error to int64: invalid value '2"):
        records_of(path, block_bytes=8)
    path.write_text(f"n,text\n{blank}")
    assert records_of(path, block_bytes=8) == []


@pytest.mark.parametrize("delimiter", [*";|^]- ", "\x01", "\t", ","])
def test_values_are_separated_as_is_said(tmp_path: Path, delimiter: str) -> None:
    """Where quoted values have delimiters and lines in them, and blocks end anywhere."""
    values = ["plain", f"a{delimiter}b", '5" pipe', f'"{delimiter}\n{delimiter}"', "", "1,5"]
    records = [(n, values[n % 6], n % 7) for n in range(40)]
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([("n", "text", "m"), *records])
    for block_bytes in (16, 50, 1 << 20):
        assert records_of(tmp_path, delimiter=delimiter, block_bytes=block_bytes) == records
    check_source(FileSource(tmp_path, delimiter=delimiter, block_bytes=64))


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\r", "é", b";", 5])
def test_a_delimiter_is_a_character(delimiter: Any) -> None:
    with pytest.raises(UsageError, match="delimiter is a character of ASCII, such as ';'"):
        FileSource("somewhere", delimiter=delimiter)


def test_a_delimiter_is_of_text_with_values_in_lines() -> None:
    with pytest.raises(UsageError, match="of CSV and TSV, and the format is 'json'"):
        FileSource("somewhere", format="json", delimiter=";")


def test_a_file_of_empty_lines_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n\n")
    (tmp_path / "b.csv").write_text("\ufeff", encoding="utf-8")
    assert records_of(tmp_path) == []
    (tmp_path / "c.csv").write_text("\n" * 10 + "n\n1\n")
    with pytest.raises(WorkerError, match="begins with 4 bytes of empty lines; a line with"):
        records_of(tmp_path, block_bytes=4)
    (tmp_path / "d.jsonl").write_text("\n" * 10 + "{}\n")
    with pytest.raises(WorkerError, match="with 4 bytes of empty lines; a line with an object"):
        records_of(tmp_path / "d.jsonl", block_bytes=4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('null\n{"n": 1}\n', "found 'null' at byte 0"),
        ('{"n": 1}\nnull\n', "found 'null' at byte 9"),
        ('{"n": 1}\n{"n": 1}\nnull', "found 'null' at byte 18"),
        ("1\n2\n", "found '1' at byte 0"),
    ],
)
def test_lines_that_are_no_objects_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    for block_bytes in (8, 1 << 20):
        with pytest.raises(WorkerError, match=said):
            records_of(tmp_path, block_bytes=block_bytes)


@pytest.mark.parametrize(("name", "called"), [("a.parquet", "Parquet"), ("a.arrow", "Arrow")])
def test_what_is_no_file_of_its_format_is_said_with_its_beginning(
    tmp_path: Path, name: str, called: str
) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n" * 9)
    said = rf"{name}: a file of {called} was expected, and it begins with b'a,b\\n1,', as none does"
    source = FileSource(tmp_path)
    with pytest.raises(FileFormatError, match=said):
        read(source, name)
    if called == "Parquet":  # of a stream of Arrow the end is not known before
        with pytest.raises(FileFormatError, match=said):
            source.n_before(name, 1)


def test_a_schema_may_be_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,m,s\n1,2,x\n3,,y\n")
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("m", pa.float64())])
    given = small(tmp_path, schema="n long, m double?")
    assert [batch.schema for batch, _ in given.open("a.csv", None) if len(batch)] == [schema]
    assert records_of(tmp_path, schema="n long, m double?") == [(1, 2.0), (3, None)]
    assert FileSink(tmp_path / "out", schema="n long, m double?").schema == schema
    fields = [types.SimpleNamespace(name="n", nullable=True, dataType=types.SimpleNamespace())]
    fields[0].dataType.simpleString = lambda: "bigint"
    assert records_of(tmp_path, schema=types.SimpleNamespace(fields=fields)) == [(1,), (3,)]
    with pytest.raises(SchemaError, match="'n' is no column: write its name and type"):
        FileSource(tmp_path, schema="n")
    with pytest.raises(SchemaError, match="two columns are called 'n', in schema='n long, n long'"):
        FileSink(tmp_path, schema="n long, n long")
    for other in ({"n": int}, pa.struct([("n", pa.int64())])):  # which has fields, too
        with pytest.raises(UsageError, match=r"schema is a pyarrow\.Schema, a text such as"):
            FileSource(tmp_path, schema=other)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_a_null_in_a_column_of_the_schema_that_has_none_is_refused(
    tmp_path: Path, name: str
) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("m", pa.int64())])
    (tmp_path / "a.csv").write_text("n,m\n,2\n")
    (tmp_path / "a.jsonl").write_text('{"m": 2}\n')
    pq.write_table(pa.table({"n": pa.array([None], pa.int64()), "m": [2]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=rf"{name}: column 'n' has a null, and the schema says"):
        read(FileSource(tmp_path / name, schema=schema), name)


@pytest.mark.parametrize("text", ['{"day": null}\n', "{}\n"])
def test_of_a_null_in_json_its_column_is_said_whatever_its_type(tmp_path: Path, text: str) -> None:
    """A day is read of a text or of a number; that it is neither was said of the other rows."""
    (tmp_path / "a.jsonl").write_text('{"day": "2020-01-01"}\n' + text)
    with pytest.raises(SchemaError, match="column 'day' has a null, and the schema says"):
        read(FileSource(tmp_path, schema="day date"), "a.jsonl")


def test_a_file_of_other_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "b.csv").write_text("n\n2.5\n")
    with pytest.raises(WorkerError, match=r"partition 'b\.csv': a batch of columns has another"):
        records_of(tmp_path)


def test_a_column_of_the_schema_that_a_file_has_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,n\n1,2\n")
    with pytest.raises(WorkerError, match=r"has several columns \['n'\]"):
        records_of(tmp_path, schema=pa.schema([("n", pa.int64())]))


def test_an_array_of_json_is_refused_by_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"n": 1},\n{"n": 2}]\n')
    with pytest.raises(WorkerError, match="is an array of JSON; it is to have an object in each"):
        records_of(tmp_path / "a.json")


def test_a_value_that_does_not_fit_is_refused_by_its_column(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, schema=pa.schema({"k": pa.string(), "n": pa.int64()}))

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([("a", 1), ("b", "two")]).sink(sink)

    with pytest.raises(WorkerError, match="column 'n' is of int64: Could not convert 'two'"):
        ps.execute(main)


@pytest.mark.parametrize(("name", "write"), FORMS)
def test_a_file_that_was_cut_short_does_not_fit_its_position(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    with pytest.raises(PositionError, match=r"it was read up to 1000000 .*, and has \d+ now"):
        read(small(tmp_path), name, 1_000_000)
    with pytest.raises(PositionError, match="an integer of at least 0; found 'x'"):
        read(small(tmp_path), name, "x")


def test_a_line_that_is_longer_than_a_block_is_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "x" * 5_000 + "\nb\n\nlast without an end")
    source = FileSource(tmp_path, block_bytes=10)
    assert [len(record["text"]) for record in read(source, "a.csv")] == [5_000, 1, 19]
    check_source(source, n_positions=100)


@pytest.mark.parametrize("deep", ['{"a":' + "[" * 1000 + "]" * 1000 + "}", '{"a":' * 20_000])
def test_json_that_is_nested_too_deeply_for_the_parser_is_refused(
    tmp_path: Path, deep: str
) -> None:
    (tmp_path / "a.jsonl").write_text('{"b": 1}\n' + deep + "\n")
    depth = r"byte 9 is nested (1001|20000) deep; 1000 levels can be read"
    with pytest.raises(FileFormatError, match=rf"a\.jsonl: the line at {depth}"):
        read(FileSource(tmp_path), "a.jsonl")


def test_brackets_in_texts_are_no_levels_of_json(tmp_path: Path) -> None:
    text = "[{" * 3_000
    (tmp_path / "a.jsonl").write_text(json.dumps({"a": text, "b": [[1]] * 2_000}) + "\n")
    assert read(FileSource(tmp_path), "a.jsonl") == [{"a": text, "b": [[1]] * 2_000}]
    (tmp_path / "b.jsonl").write_text(json.dumps({"a": '"' + text}) + "\n")
    assert read(FileSource(tmp_path), "b.jsonl") == [{"a": '"' + text}]


def test_files_that_are_empty_or_have_a_header_alone_have_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("n\n")
    (tmp_path / "c.jsonl").write_text("\n")
    source = FileSource(tmp_path)
    assert [read(source, name) for name in source.partitions()] == [[], [], []]


def test_a_folder_is_read_with_those_in_it_but_not_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b/c/1.csv", "a.csv", ".staged/2.csv", "_SUCCESS", "b/.3.csv.tmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("n\n1\n")
    assert FileSource(tmp_path).partitions() == ["a.csv", "b/c/1.csv"]


def test_a_link_to_a_folder_that_it_is_in_is_not_followed(tmp_path: Path) -> None:
    watched, elsewhere = tmp_path / "watched", tmp_path / "elsewhere"
    for folder in (watched / "east", watched / "west", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("n\n1\n")
    (watched / "itself").symlink_to(".")
    (watched / "again").symlink_to(watched)
    (watched / "east" / "up").symlink_to("..")
    (watched / "east" / "far_up").symlink_to(tmp_path)
    (watched / "linked.csv").symlink_to("east/a.csv")
    (watched / "gone").symlink_to("nowhere")
    (watched / "north").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(watched)
    (tmp_path / "by_link").symlink_to(watched)
    files = ["east/a.csv", "linked.csv", "north/a.csv", "west/a.csv"]
    local = fs.LocalFileSystem()
    assert FileSource(watched).partitions() == files
    assert FileSource(tmp_path / "by_link").partitions() == files
    assert FileSource(f"file://{watched}/").partitions() == files
    below = fs.SubTreeFileSystem(str(tmp_path), local)
    assert FileSource("watched", filesystem=below).partitions() == files
    assert len(ps.testing.collect(lambda scope: scope.source(FileSource(watched)))) == 4


def test_two_folders_that_link_to_each_other_are_read_once_each_way(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("n\n1\n")
        (tmp_path / name / "other").symlink_to(tmp_path / other)
    files = ["one/a.csv", "one/other/a.csv", "two/a.csv", "two/other/a.csv"]
    assert FileSource(tmp_path).partitions() == files


def test_what_is_no_source_of_files_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"found \['a.csv'\]; a folder has several files"):
        FileSource(["a.csv"])
    with pytest.raises(SourceError, match="no such file or folder; a pattern is not read"):
        FileSource(tmp_path / "*.csv").partitions()
    with pytest.raises(SourceError, match="nowhere: there is no such file or folder"):
        FileSource(tmp_path / "nowhere").partitions()
    (tmp_path / "a.txt").write_text("?")
    with pytest.raises(FileFormatError, match=r"a\.txt: a file of records ends with \.parquet"):
        read(FileSource(tmp_path), "a.txt")
    with pytest.raises(FileFormatError, match=r"a\.txt: an object was expected in each line"):
        read(FileSource(tmp_path, format="json"), "a.txt")
    with pytest.raises(FileFormatError, match="format='xml' is none of parquet"):
        FileSource(tmp_path, format="xml")
    with pytest.raises(UsageError, match="block_bytes is an integer of at least 1; found 0"):
        FileSource(tmp_path, block_bytes=0)
    (tmp_path / "b.csv").write_text("n\n" + "1\n" * 10 + "one\n")
    with pytest.raises(FileFormatError, match=r"bytes \d+ to \d+: .*give schema="):
        read(FileSource(tmp_path, block_bytes=8), "b.csv")
    with pytest.raises(ColumnError, match=r"has no columns \['m'\]; it has \['n'\]"):
        read(FileSource(tmp_path, schema=pa.schema([("m", pa.int64())])), "b.csv")


def test_a_file_whose_name_is_no_text_is_named(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(bytes(tmp_path) + b"/\xff.csv")).write_text("n\n1\n")
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    with pytest.raises(SourceError, match=r"has a file whose name is not UTF-8, b'.*\\xff.csv'"):
        FileSource(tmp_path).partitions()


def test_a_source_of_an_object_store(tmp_path: Path) -> None:
    bucket = Bucket()
    filesystem = fs.PyFileSystem(bucket)
    pq.write_table(TABLE, tmp_path / "a.parquet")
    bucket.objects["bucket/in/a.parquet"] = (tmp_path / "a.parquet").read_bytes()
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert read(FileSource("", filesystem=local), "a.parquet") == TABLE.to_pylist()
    assert read(FileSource("bucket/in", filesystem=filesystem), "a.parquet") == TABLE.to_pylist()


def test_files_of_fsspec_are_read_and_written(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")

    def flow(scope: ps.Scope[int]) -> None:
        words = scope.source(FileSource("/lines/in", filesystem=memory))
        schema = pa.schema([("word", pa.string())])
        words.sink(FileSink("/lines/out", format="json", schema=schema, filesystem=memory))

    for name, words in (("1.csv", "a\nb"), ("2.csv", "c")):
        memory.pipe_file(f"/lines/in/{name}", f"word\n{words}\n".encode())
        ps.run(flow, threads=True, checkpoint=tmp_path)
    written = [memory.cat_file(path).splitlines() for path in memory.glob("/lines/out/part-*")]
    found = [json.loads(line)["word"] for lines in written for line in lines]
    assert sorted(found) == ["a", "b", "c"]


@pytest.mark.parametrize("place", ["below", "below/", "memory://below", "/below"])
def test_a_place_of_fsspec_may_be_given_in_every_form(place: str) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/below/a/1.csv", b"n\n1\n")
    try:
        source = FileSource(place, filesystem=memory)
        assert source.partitions() == ["a/1.csv"]
        assert read(source, "a/1.csv") == [{"n": 1}]
    finally:
        memory.rm("/below", recursive=True)


def test_a_folder_of_this_machine_has_its_files_by_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("n\n1\n")
    local = fsspec.filesystem("file")
    for place in ("in", "in/", "./in//", "in///", str(tmp_path / "in")):
        for filesystem in (None, local):
            source = FileSource(place, filesystem=filesystem)
            assert source.partitions() == ["1.csv"]
            assert read(source, "1.csv") == [{"n": 1}]


READ = {
    "parquet": pq.read_table,
    "arrow": lambda path: pa.ipc.open_file(path).read_all(),
    "csv": pacsv.read_csv,
    "json": lambda path: pa.Table.from_pylist(
        [json.loads(line) for line in path.read_text().splitlines()]
    ),
}


@pytest.mark.parametrize("form", READ)
def test_files_of_every_form_keep_the_laws_of_a_transactional_sink(
    tmp_path: Path, form: str
) -> None:
    def seen() -> list[Any]:
        return [
            record
            for path in sorted((tmp_path / "out").glob("part-*"))
            for record in READ[form](path).to_pylist()
        ]

    batches = TABLE.to_batches(max_chunksize=50)
    check_sink(FileSink(tmp_path / "out", format=form), batches, seen)
    records = [[(1, "a"), {"text": "b", "n": 2}], [(3, "c")]]
    for path in (tmp_path / "out").glob("part-*"):
        path.unlink()
    check_sink(FileSink(tmp_path / "out", format=form, schema=TABLE.schema), records, seen)


@pytest.mark.parametrize("with_schema", [False, True])
def test_what_a_sink_writes_as_csv_is_read_as_it_was(tmp_path: Path, *, with_schema: bool) -> None:
    table = pa.table(
        {
            "text": ["a", None, "", "NA", "null", 'q"x,\n', "1"],
            "number": [1.5, None, math.inf, -0.0, 1e300, -math.inf, 2.0],
            "flag": [True, None, False, True, True, False, None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    out = tmp_path / "out"

    def flow(scope: Any) -> None:
        scope.source(FileSource(tmp_path / "a.parquet")).sink(FileSink(out, format="csv"))

    ps.run(flow)
    source = FileSource(out, schema=table.schema if with_schema else None)
    [name] = source.partitions()
    assert read(source, name) == table.to_pylist()
    (out / name).write_text("n,m\nnan,\nNaN,1\n")
    [(first, null), (second, one)] = [r.values() for r in read(FileSource(out), name)]
    assert [math.isnan(first), math.isnan(second), null, one] == [True, True, None, 1]


def test_nulls_are_none_in_columns_of_bytes_and_of_few_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,bytes,few\n1,,\n2,"",""\n3,x,x\n')
    few = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("n", pa.int64()), ("bytes", pa.binary()), ("few", few)])
    assert records_of(tmp_path, schema=schema) == [(1, None, None), (2, b"", ""), (3, b"x", "x")]


def test_days_are_read_from_json_as_they_are_written(tmp_path: Path) -> None:
    day = datetime.date(2020, 2, 29)
    schema = pa.schema([("n", pa.int64()), ("day", pa.date32())])
    rows = [(1, day), (2, None)]

    def main(scope: ps.Scope) -> None:
        scope.source(FileSource(tmp_path / "in", schema=schema)).sink(
            FileSink(tmp_path / "out", format="json")
        )

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("n,day\n1,2020-02-29\n2,\n")
    ps.run(main, threads=True)
    assert records_of(tmp_path / "out", schema=schema) == rows
    (tmp_path / "b.jsonl").write_text('{"n": 1, "day": 18321}\n{"n": 2}\n')
    assert records_of(tmp_path / "b.jsonl", schema=schema) == rows
    (tmp_path / "c.jsonl").write_text('{"n": 1, "day": "2020-02-30"}\n')
    with pytest.raises(WorkerError, match=r"c\.jsonl: Failed to parse string: '2020-02-30'"):
        records_of(tmp_path / "c.jsonl", schema=schema)


def test_times_of_day_in_json_are_text_or_numbers(tmp_path: Path) -> None:
    units = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    columns = [pa.array([3_723, None, 0], pa.int32() if k < 2 else pa.int64()) for k in range(4)]
    batch = pa.RecordBatch.from_arrays(
        [column.cast(unit) for column, unit in zip(columns, units, strict=True)], list("abcd")
    )
    sink = FileSink(tmp_path / "out", format="json")
    writer = sink.open(ps.SinkContext())
    writer.write(batch)
    sink.commit([writer.prepare(0)])
    (part,) = (tmp_path / "out").glob("part-*")
    assert '"c": "00:00:00.003723", "d": "00:00:00.000003723"' in part.read_text()
    (tmp_path / "n.jsonl").write_text(
        '{"a": 3723, "b": 3723, "c": 3723, "d": 3723}\n{}\n{"a": 0}\n'
    )
    for place in (part, tmp_path / "n.jsonl"):
        read = FileSource(place, schema=batch.schema).open(place.name, None)
        table = pa.Table.from_batches([found for found, _ in read if len(found)])
        assert table.schema == batch.schema
        assert table.column("d").to_pylist()[:2] == batch.column("d").to_pylist()[:2]
        assert table.column("a").cast(pa.int32()).to_pylist() == [3_723, None, 0]
    (tmp_path / "c.jsonl").write_text('{"a": "25:00:00"}\n')
    with pytest.raises(WorkerError, match=r"c\.jsonl, bytes 0 to 18: Failed to parse .*25:00:00"):
        records_of(tmp_path / "c.jsonl", schema=pa.schema([("a", pa.time32("s"))]))


@pytest.mark.parametrize("zone", [None, "UTC", "+05:30", "Europe/Paris"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_are_read_from_json_as_they_are_written(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    # In 1890 Paris was 9 minutes and 21 seconds before Greenwich.
    of_1890 = {"s": -(10**9) * 5 // 2, "ms": -2_500_000_000_877, "us": -2_500_000_000_000_877}
    values = pa.array([0, None, -1, 1_700_000_000, of_1890.get(unit, 120_000_000)], pa.int64())
    times = values.cast(pa.timestamp(unit, zone))
    inner = pa.StructArray.from_arrays([times], names=["at"])
    batch = pa.record_batch({"at": times, "inner": inner})
    assert through_json(tmp_path, batch).equals(batch)


def test_offsets_and_zones_are_as_documented(tmp_path: Path) -> None:
    offset, plain = "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00"
    for name, text in (("offset", offset), ("plain", plain)):
        (tmp_path / f"{name}.csv").write_text(f"t\n{text}\n")
        (tmp_path / f"{name}.jsonl").write_text(f'{{"t": "{text}"}}\n')

    def time(file: str, zone: str | None) -> datetime.datetime:
        schema = pa.schema([("t", pa.timestamp("us", zone))])
        [[found]] = records_of(tmp_path / file, schema=schema)
        return found

    shifted, same = datetime.datetime(2025, 12, 31, 22), datetime.datetime(2026, 1, 1)
    assert time("offset.jsonl", None) == shifted
    assert time("plain.jsonl", None) == time("plain.csv", None) == same
    in_utc = shifted.replace(tzinfo=datetime.UTC)
    assert time("offset.jsonl", "UTC") == time("offset.csv", "UTC") == in_utc
    assert time("plain.jsonl", "Europe/Paris") == same.replace(tzinfo=datetime.UTC)
    with pytest.raises(WorkerError, match="expected no zone offset"):
        time("offset.csv", None)
    with pytest.raises(WorkerError, match="expected a zone offset"):
        time("plain.csv", "UTC")


def test_days_within_structs_and_lists_are_read_from_json(tmp_path: Path) -> None:
    days = [datetime.date(2020, 2, 29), None]
    records = [{"day": days[0], "days": days}, None, {"day": None, "days": None}]
    kind = pa.struct([("day", pa.date32()), ("days", pa.list_(pa.date32()))])
    batch = pa.record_batch({"s": pa.array(records, kind), "l": pa.array([records, None, []])})
    assert through_json(tmp_path, batch).equals(batch)


AT = datetime.time(1, 2, 3, 4000)
DAY = datetime.date(2020, 2, 29)
TIME = pa.time64("us")
TEXT = pa.string()
AS_WRITTEN: list[tuple[list[Any], pa.DataType]] = [
    ([[("a", 1), ("b", None)], None, []], pa.map_(TEXT, pa.int64())),
    ([[(DAY, decimal.Decimal("1.20"))]], pa.map_(pa.date32(), pa.decimal128(9, 2))),
    ([[(AT, {"at": AT})], None], pa.map_(TIME, pa.struct([("at", TIME)]))),
    ([[[("a", AT)], None]], pa.list_(pa.map_(TEXT, TIME))),
    ([{"m": [("a", [AT])]}, None, {"m": None}], pa.struct([("m", pa.map_(TEXT, pa.list_(TIME)))])),
    ([{"at": AT}, {"at": None}, None], pa.struct([("at", TIME)])),
    ([[1, None], None], pa.list_(pa.time64("ns"))),
    ([[AT, None], None], pa.large_list(pa.time32("ms"))),
    ([[AT, AT], None], pa.list_(TIME, 2)),
    ([[1, 2], None], pa.list_(pa.int16(), 2)),
    ([["a", None], None], pa.large_list(pa.dictionary(pa.int8(), TEXT))),
    (["a", "b", None, "a"], pa.dictionary(pa.int32(), TEXT)),
    ([1.5, None], pa.float16()),
    ([DAY, None], pa.date64()),
]


@pytest.mark.parametrize(("values", "kind"), AS_WRITTEN, ids=str)
def test_what_is_written_as_json_is_read_by_its_schema(
    tmp_path: Path, values: list[Any], kind: pa.DataType
) -> None:
    batch = pa.record_batch({"n": range(len(values)), "v": pa.array(values, kind)})
    found = through_json(tmp_path, batch)
    assert found.schema == batch.schema
    assert found.equals(batch)


def test_times_within_structs_may_be_numbers(tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.struct([("at", pa.time32("s")), ("day", pa.date32())]))])
    (tmp_path / "n.jsonl").write_text('{"s": {"at": 3723, "day": 1}}\n{}\n')
    wanted = {"at": datetime.time(1, 2, 3), "day": datetime.date(1970, 1, 2)}
    assert records_of(tmp_path / "n.jsonl", schema=schema) == [(None,), (wanted,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[["a", 1]]', r"a map, as in column 'm', is read of a list such as \[\{\"key\": 1"),
        ('{"a": 1}', r"a map, as in column 'm', is read of a list such as \[\{\"key\": 1"),
        ('[{"key": null, "value": 1}]', "an entry of a map<string, int64> has no 'key'"),
        ("[null]", "an entry of a map<string, int64> has no 'key'"),
    ],
)
def test_a_map_of_another_form_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.jsonl").write_text(f'{{"m": {text}}}\n')
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    with pytest.raises(WorkerError, match=rf"m\.jsonl, bytes 0 to .*{said}"):
        records_of(tmp_path / "m.jsonl", schema=schema)


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("has_schema", [True, False])
def test_what_json_has_no_number_for_is_text_as_spark_writes_it(
    tmp_path: Path, has_schema: bool
) -> None:
    schema = pa.schema(
        [
            ("x", pa.float64()),
            ("lists", pa.list_(pa.float32())),
            ("s", pa.struct([("a", pa.float64()), ("n", pa.int64())])),
        ]
    )
    rows: list[tuple[Any, ...]] = [
        (0.5, [1.5, 2.0], {"a": 1.5, "n": 1}),
        (INFINITY, [INFINITY, -INFINITY], {"a": -INFINITY, "n": 2}),
        (NAN, [NAN], {"a": NAN, "n": None}),
    ]
    writer = FileSink(tmp_path, format="json", schema=schema).open(ps.SinkContext())
    writer.write(rows)
    token = writer.prepare(0)
    assert token is not None
    part = tmp_path / ".staged" / token["staged"]
    lines = [json.loads(line, parse_constant=pytest.fail) for line in part.read_text().splitlines()]
    assert [line["x"] for line in lines] == [0.5, "Infinity", "NaN"]
    assert lines[2] == {"x": "NaN", "lists": ["NaN"], "s": {"a": "NaN", "n": None}}
    source = FileSource(part, format="json", schema=schema if has_schema else None)
    found = [tuple(row.values()) for row in read(source, part.name)]
    assert str(found) == str(rows)  # NaN is not equal to itself


def test_texts_that_look_like_no_numbers_stay_texts(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.string()), ("x", pa.float64()), ("NaN", pa.list_(pa.string()))])
    text = """{"t": "NaN", "x": "NaN", "NaN": ["NaN", ",\\"NaN\\","], "other": "NaN"}
{"t": "Infinity", "x": 1, "NaN": []}
{"x": "-Infinity", "NaN": null}
"""
    (tmp_path / "a.jsonl").write_text(text)
    rows = [("NaN", NAN, ["NaN", ',"NaN",']), ("Infinity", 1.0, []), (None, -INFINITY, None)]
    source = FileSource(tmp_path, schema=schema)
    assert str([tuple(row.values()) for row in read(source, "a.jsonl")]) == str(rows)
    (tmp_path / "b.jsonl").write_text('{"x": "nan"}\n')
    with pytest.raises(WorkerError, match=r"b\.jsonl, bytes 0 to 13: .*from number to string"):
        records_of(tmp_path / "b.jsonl", schema=pa.schema([("x", pa.float64())]))


def through_json(folder: Path, batch: pa.RecordBatch) -> pa.RecordBatch:
    """What is read, by its schema, of a batch that was written."""
    sink = FileSink(folder / "out", format="json")
    writer = sink.open(ps.SinkContext())
    writer.write(batch)
    sink.commit([writer.prepare(0)])
    (part,) = (folder / "out").glob("part-*")
    read = FileSource(part, schema=batch.schema).open(part.name, None)
    (found,) = [found for found, _ in read if len(found)]
    return found


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"n": [[b"x"]]}), "JSON has no bytes; found b'x'"),
        (pa.table({"n": [datetime.timedelta(1)]}), "JSON has no durations; found '1 day, 0:00:00'"),
        (pa.table([[1], [2]], ["n", "n"]), r"one value by each name, and the columns are \['n', "),
    ],
)
def test_what_json_has_not_is_refused(tmp_path: Path, table: pa.Table, said: str) -> None:
    writer = FileSink(tmp_path, format="json").open(ps.SinkContext())
    with pytest.raises(SinkError, match=said):
        writer.write(table.to_batches()[0])
    writer.close()


@pytest.mark.parametrize("schema", [None, pa.schema([("n", pa.int64()), ("s", pa.string())])])
def test_nulls_of_other_programs_are_read(tmp_path: Path, schema: pa.Schema | None) -> None:
    (tmp_path / "a.csv").write_text('n,s\n"1","a"\n"",""\nNA,NA\n,\n')
    expected = [(1, "a"), (None, ""), (None, "NA"), (None, None)]
    found = read(FileSource(tmp_path, schema=schema), "a.csv")
    assert [tuple(record.values()) for record in found] == expected
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    for name in ("a.csv", "a.csv.gz"):  # of the command line
        table = read_table(tmp_path / name)
        assert [tuple(record.values()) for record in table.to_pylist()] == expected


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('a,n\nx,"y\nz,2\n', 6),
        ('a,n\nx,"y""\n', 6),
        ('a,n\nx,"y\nz"\nu,"v\n\n', 14),
        ('"a\nx\n', 0),
        ('a,n\nx,"y\nz"\n', None),
        ('a,n\nx,"y\n"', None),
        ('a,n\nx,5" pipe\n', None),
        ('"a\nb",n\n', None),
    ],
)
def test_a_table_of_text_ends_outside_of_quotes(tmp_path: Path, text: str, at: int | None) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        if at is None:
            assert read_table(path).num_columns == 2
        else:
            with pytest.raises(FileFormatError, match=f"quotation mark at byte {at} begins a val"):
                read_table(path)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_records_of_spaces_or_nulls_alone_are_records(tmp_path: Path, block_bytes: int) -> None:
    (tmp_path / "a.tsv").write_text("k\ts\n\t\n")
    (tmp_path / "b.csv").write_text("k\n \n\t\n\x0c\n")
    source = FileSource(tmp_path, block_bytes=block_bytes)
    assert read(source, "a.tsv") == [{"k": None, "s": None}]
    assert read(source, "b.csv") == [{"k": " "}, {"k": "\t"}, {"k": "\x0c"}]


@pytest.mark.parametrize("block_bytes", [1, 16, 1 << 20])
def test_a_byte_order_mark_is_one_at_the_beginning_alone(tmp_path: Path, block_bytes: int) -> None:
    mark = "\ufeff"
    (tmp_path / "a.csv").write_text(f'{mark}k\n{mark}a\n{mark}"\nb"\n{mark}\n', encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(mark + "\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(mark + '\n{"k": 1}\n', encoding="utf-8")
    source = FileSource(tmp_path, schema=pa.schema([("k", pa.string())]), block_bytes=block_bytes)
    assert [record["k"] for record in read(source, "a.csv")] == [
        f"{mark}a",
        f'{mark}"',
        'b"',
        mark,
    ]
    assert read(source, "b.jsonl") == []
    if block_bytes > 4:
        ones = FileSource(tmp_path, schema=pa.schema([("k", pa.int64())]))
        assert read(ones, "c.jsonl") == [{"k": 1}]


@pytest.mark.parametrize("end", ["", "\n", "\r"])
def test_nothing_in_the_last_place_of_a_file_is_null(tmp_path: Path, end: str) -> None:
    (tmp_path / "a.csv").write_text('k,s\n"x","v"\n"y",' + end, newline="")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    expected = [{"k": "x", "s": "v"}, {"k": "y", "s": None}]
    source = FileSource(tmp_path)
    for name in source.partitions():
        assert read(source, name) == expected
        assert read_table(tmp_path / name).to_pylist() == expected  # of the command line


def test_a_null_that_would_be_an_empty_line_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": ["a", None]}), tmp_path / "a.parquet")

    def flow(scope: Any) -> None:
        out = FileSink(tmp_path / "out", format="csv")
        scope.source(FileSource(tmp_path / "a.parquet")).sink(out)

    with pytest.raises(WorkerError, match="a null in a CSV file of one column"):
        ps.run(flow)


def test_a_folder_that_another_worker_makes_meanwhile_is_empty(tmp_path: Path) -> None:
    class MadeMeanwhile:
        """Arrow looks twice: whether the folder can be listed, and whether it is there."""

        def get_file_info(self, selector: Any) -> Any:
            raise FileNotFoundError(f"Cannot list directory '{selector.base_dir}'")

    sink: Any = FileSink(tmp_path / "out")
    sink.filesystem = MadeMeanwhile()
    sink.abort("a run")
    sink._check_empty()


@pytest.mark.parametrize("other", ["out", "out/", "in/../out", "link"])
def test_two_sinks_of_one_folder_are_refused(tmp_path: Path, other: str) -> None:
    def flow(scope: Any) -> None:
        numbers = scope.source(small(tmp_path / "in"))
        numbers.sink(FileSink(tmp_path / "out"))
        numbers.sink(FileSink(f"{tmp_path}/{other}"))

    (tmp_path / "link").symlink_to(tmp_path / "out")

    (tmp_path / "in").mkdir()
    as_csv(tmp_path / "in" / "a.csv")
    with pytest.raises(WorkerError, match="two sinks of this run write to this folder"):
        ps.run(flow, threads=True)
    assert list((tmp_path / "out").glob("part-*")) == []


@pytest.mark.parametrize("is_source_first", [False, True])
@pytest.mark.parametrize(
    ("watched", "written", "is_refused"),
    [
        ("a", "a", True),
        ("a", "a/b/c", True),
        ("link", "a/b", True),
        ("a/", "link", True),
        ("a/b", "a", False),
        ("a", "ab", False),
        ("a", "a/_out", False),
        ("a", "a/b/.out/c", False),
    ],
)
def test_a_folder_that_is_watched_is_not_written_to(
    tmp_path: Path, watched: str, written: str, *, is_refused: bool, is_source_first: bool
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    source = FileSource(f"{tmp_path}/{watched}", watch_s=0.1)
    sink = FileSink(tmp_path / written, format="csv")

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("first") as scope:
            stream = scope.source(source) if is_source_first else scope.to_stream([])
            if not is_source_first:
                stream.sink(sink)
        with worker.dataflow("second") as scope:
            if is_source_first:
                scope.to_stream([]).sink(sink)
            else:
                scope.source(source)
        worker.drop_dataflow("first")
        worker.drop_dataflow("second")

    if is_refused:
        with pytest.raises(WorkerError, match="would read what it writes: write to another"):
            ps.execute(main)
    else:
        ps.execute(main)


@pytest.mark.parametrize(("written", "is_refused"), [("a/b", True), ("ab", False)])
def test_a_watched_folder_is_one_whatever_file_system_it_is_in(
    tmp_path: Path, written: str, *, is_refused: bool
) -> None:
    (tmp_path / "a").mkdir()
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    source = FileSource("a", watch_s=0.1, filesystem=below)
    assert source.would_read(FileSink(tmp_path / written, format="csv")) == is_refused
    if is_refused:
        assert source.would_read(FileSink(written, format="csv", filesystem=below))


def test_a_folder_may_be_watched_when_the_sink_is_over(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([]).sink(FileSink(tmp_path, format="csv"))
        worker.run()
        with worker.dataflow("watching") as scope:
            scope.source(FileSource(tmp_path, watch_s=0.1))
        worker.drop_dataflow("watching")

    ps.execute(main)


def test_a_sink_refuses_what_does_not_fit(tmp_path: Path) -> None:
    def written(batch: Any, **options: Any) -> None:
        def main(worker: Any) -> None:
            with worker.dataflow() as scope:
                scope.batches_to_stream([batch]).sink(FileSink(tmp_path / "out", **options))

        ps.execute(main)

    with pytest.raises(WorkerError, match=r"records such as \(1, 'a'\).*: give schema="):
        written([(1, "a")])
    with pytest.raises(WorkerError, match=r"a record has the columns \['n', 'text'\]; found \(1,"):
        written([(1,)], schema=TABLE.schema)
    with pytest.raises(WorkerError, match=r"FileSink\(.*have columns m, and the schema of"):
        written(pa.RecordBatch.from_pydict({"m": [1]}), schema=TABLE.schema)
    with pytest.raises(WorkerError, match=r"write: JSON has no bytes; found b'1': make [^:]*$"):
        written(pa.RecordBatch.from_pydict({"n": [b"1"]}), format="json")
    with pytest.raises(FileFormatError, match="format='xml' is none of parquet"):
        FileSink(tmp_path, format="xml")
    assert list((tmp_path / "out").glob("part-*")) == []
    assert list((tmp_path / "out" / ".staged").iterdir()) == []
    written([(1, "a")], schema=TABLE.schema)
    with pytest.raises(WorkerError, match="has 1 files of an earlier run, such as part-0") as e:
        written([(1, "a")], schema=TABLE.schema)
    assert isinstance(e.value.__cause__, SinkError)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2.5, pa.int64()),
        (np.float32(2.5), pa.int64()),
        (decimal.Decimal("2.5"), pa.int8()),
        (datetime.datetime(2026, 1, 1, 5), pa.date32()),
        (datetime.datetime(2026, 1, 1, 5), pa.date64()),
        (decimal.Decimal(2), pa.date32()),
        (datetime.datetime(2026, 1, 1, 5, 0, 0, 1), pa.timestamp("ms")),
        (datetime.time(5, 0, 0, 1), pa.time32("s")),
        ([1, 2.5], pa.list_(pa.int64())),
        ({"n": 2.5}, pa.struct({"n": pa.int64()})),
        ({"a": 2.5}, pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_value_that_arrow_would_round_is_refused(value: Any, kind: pa.DataType) -> None:
    schema = pa.schema([("n", kind)])
    assert columns_of([(None,)], schema, "it").num_rows == 1
    with pytest.raises(SinkError, match=r"it: column 'n' is of .* would be another value as"):
        columns_of([(None,), (value,)], schema, "it")


def test_values_of_other_classes_that_are_the_same_are_taken() -> None:
    fields = {"n": pa.int64(), "day": pa.date32(), "at": pa.timestamp("s"), "x": pa.float32()}
    values = (2.0, datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, 5), 0.1)
    found = columns_of([values, (3, 20454, 5, 1)], pa.schema(list(fields.items())), "it")
    assert found.column(0).to_pylist() == [2, 3]
    assert found.column(1).to_pylist() == [datetime.date(2026, 1, 1)] * 2


def test_a_null_in_a_column_that_has_none_is_refused_by_each_format(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int8(), nullable=False), ("m", pa.int8())])
    for form in ("parquet", "arrow", "csv", "json"):
        writer = FileSink(tmp_path / form, format=form, schema=schema).open(ps.SinkContext())
        with pytest.raises(SinkError, match="column 'n' has a null, and is to have none"):
            writer.write([(None, 1)])
        writer.close()


def test_a_file_that_was_taken_away_after_its_commit_is_warned_of(tmp_path: Path) -> None:
    sink = FileSink(tmp_path)
    with pytest.warns(CheckpointWarning, match=r"part-1\.parquet is neither prepared nor there"):
        sink.commit([{"staged": "gone", "file": "part-1.parquet"}])


def test_a_watched_folder_is_read_as_files_come_and_files_that_went_are_forgotten(
    tmp_path: Path,
) -> None:
    seen: list[Any] = []
    source = small(tmp_path, watch_s=0.001)

    def end_after(n: int) -> Callable[[Any], None]:
        def note(record: Any) -> None:
            seen.append(record[0])
            name = f"{len(seen)}.csv"
            if len(seen) < n and not (tmp_path / name).exists():
                (tmp_path / f".{name}").write_text(f"n\n{len(seen)}\n")
                (tmp_path / f".{name}").rename(tmp_path / name)
            if len(seen) == n:
                raise StopIteration  # a watched folder does not end

        return note

    def flow(n: int) -> Callable[[Any], None]:
        return lambda scope: scope.source(source).inspect(end_after(n))

    (tmp_path / "0.csv").write_text("n\n0\n")
    with pytest.raises(WorkerError, match="StopIteration"):
        ps.execute(lambda worker: _built(worker, flow(5)))
    assert seen == [0, 1, 2, 3, 4]


def _built(worker: Any, build: Callable[[Any], None]) -> None:
    with worker.dataflow() as scope:
        build(scope)


@pytest.mark.parametrize("before", ["n\n1\n", "n\n", "\n", ""])
@pytest.mark.parametrize("after", ["n\n1\n2\n", "names"])
def test_a_file_that_changed_since_it_was_read_is_refused(
    tmp_path: Path, before: str, after: str
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    found: list[Any] = []

    def flow(scope: Any) -> None:
        scope.source(FileSource(place)).inspect(found.append)

    def run() -> None:
        ps.run(flow, threads=True, checkpoint=tmp_path / "checkpoint")

    (place / "a.csv").write_text(before)
    run()
    run()
    (place / "a.csv").write_text(after)
    with pytest.raises(WorkerError, match=f"at byte {len(before)}, and has {len(after)} bytes now"):
        run()
    (place / "a.csv").write_text(before)
    (place / "b.csv").write_text("n\n2\n")
    run()
    assert found == [(1,)] * ("1" in before) + [(2,)]


def test_a_file_that_grows_while_its_folder_is_watched_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n\n1\n")

    def flow(scope: Any) -> None:
        files = scope.source(FileSource(tmp_path, watch_s=0.001))
        files.inspect(lambda record: file.write_text("n\n1\n2\n"))

    with pytest.raises(WorkerError, match="read to its end, which was at byte 4, and has 6 bytes"):
        ps.run(flow, threads=True)


def test_a_run_with_files_goes_on_with_new_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def flow(scope: Any) -> None:
        numbers = scope.source(small(tmp_path / "in"))
        numbers.sink(FileSink(tmp_path / "out"))

    checkpoint = tmp_path / "checkpoint"
    for name, workers in (("a", 2), ("b", 1), ("c", 3)):
        as_csv(tmp_path / "in" / f"{name}.csv")
        # Processes, which the flow travels to, are as good as threads.
        ps.run(flow, workers, threads=workers != 2, checkpoint=checkpoint)
        (tmp_path / "in" / f"{name}.csv").unlink()  # which was read to its end
        n_rows = [pq.read_table(path).num_rows for path in (tmp_path / "out").glob("part-*")]
        assert sum(n_rows) == TABLE.num_rows * "abc".index(name) + TABLE.num_rows
    latest = Checkpoint(checkpoint).latest()
    assert latest is not None
    as_csv(tmp_path / "in" / "a.csv")  # the name is that of another file now
    ps.run(flow, checkpoint=checkpoint)
    n_rows = [pq.read_table(path).num_rows for path in (tmp_path / "out").glob("part-*")]
    assert sum(n_rows) == 4 * TABLE.num_rows
