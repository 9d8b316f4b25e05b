"""Parquet files that workers read themselves: which they are, and that records are Spark's."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp.spark
from pointstamp.errors import SourceError, WorkerError
from pointstamp.spark import parquet_files
from pointstamp.spark.parquet_files import UNEVEN, ParquetScan, RowGroup, _row_groups
from pointstamp.spark.scanned_inputs import SETTING, ScannedInputs

on_spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLE = pa.table(
    {
        "id": [f"é{i}" if i % 5 else None for i in range(500)],
        "n": pa.array(range(500), pa.int32()),
        "x": [i / 4 for i in range(500)],
        "is": [i % 3 == 0 for i in range(500)],
        "octets": [bytes([i % 256]) for i in range(500)],
    }
)


@given(st.lists(st.integers(0, 100), max_size=9), st.integers(1, 5))
def test_each_row_group_is_read_by_one_worker_and_none_by_far_more_than_its_share(sizes, peers):
    groups = [RowGroup("file", n, size, (0, 0)) for n, size in enumerate(sizes)]
    scan = ParquetScan(pa.schema([]), groups)
    shares = scan._shares(peers)
    assert len(shares) == peers
    assert [group for share in shares for group in share] == groups
    read = [sum(group.n_bytes for group in share) for share in shares]
    assert max(read) <= sum(sizes) / peers + max(sizes, default=0)
    assert scan.is_uneven(peers) == (max(read) > UNEVEN * sum(sizes) / peers)


def scan_of(path, **changes):
    file = pq.ParquetFile(path)
    found = path.stat()
    version = (found.st_size, found.st_mtime_ns)
    groups = [RowGroup(str(path), n, 1, version) for n in range(file.num_row_groups)]
    return ParquetScan(changes.get("schema", file.schema_arrow), groups)


def test_columns_are_read_in_the_order_of_the_schema_and_as_its_types(tmp_path):
    path = tmp_path / "a.parquet"
    wide = TABLE.set_column(0, "id", TABLE["id"].cast(pa.large_string()))
    pq.write_table(wide, path, row_group_size=90)
    schema = pa.schema([TABLE.schema.field("n"), TABLE.schema.field("id")])
    scan = scan_of(path, schema=schema)
    read = [batch for worker in range(3) for batch in scan.batches(worker, 3)]
    assert pa.Table.from_batches(read, schema).equals(TABLE.select(["n", "id"]))


def test_a_file_is_opened_once_by_each_worker(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=10)
    scan = scan_of(path)
    opened = []
    of_arrow = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda path: opened.append(path) or of_arrow(path))
    read = [batch for worker in range(2) for batch in scan.batches(worker, 2)]
    assert pa.Table.from_batches(read).equals(TABLE)
    assert opened == [str(path)] * 2


def test_batches_of_long_records_have_fewer_of_them(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"octets": [bytes(1000)] * 100}), path, use_dictionary=False)
    (group,) = _row_groups(str(path), pa.schema([("octets", pa.binary())]))
    monkeypatch.setattr(parquet_files, "BATCH_BYTES", 10_500)
    read = list(ParquetScan(pa.schema([("octets", pa.binary())]), [group]).batches(0, 1))
    assert [batch.num_rows for batch in read] == [10] * 10


def test_a_file_that_has_changed_or_is_gone_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    scan = scan_of(path)
    os.utime(path, ns=(0, 0))
    with pytest.raises(SourceError, match=r"a\.parquet has changed since the DataFrame"):
        list(scan.batches(0, 1))
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read: "):
        list(scan.batches(0, 1))


# What Spark reads.


def records(frame):
    return sorted(map(repr, frame.collect()))


def passed_on(scope, frame):
    return frame


def folder_of(tmp_path, *tables):
    folder = tmp_path / "a folder"
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=200)
    return str(folder)


READ = {
    "all columns": lambda frame: frame,
    "some columns": lambda frame: frame.select("x", "id"),
    "another order": lambda frame: frame.select("n", "id"),
}

NOT_READ = {
    "a filter": lambda frame: frame.filter("n > 100"),
    "another name": lambda frame: frame.withColumnRenamed("n", "m"),
    "swapped names": lambda frame: frame.selectExpr("x as n", "n as x"),
    "something computed": lambda frame: frame.selectExpr("n + 1 as n", "id"),
    "another type": lambda frame: frame.selectExpr("cast(n as long) as n"),
    "a limit": lambda frame: frame.limit(7),
    "a union": lambda frame: frame.union(frame),
    "repeated": lambda frame: frame.repartition(3),
    "no columns": lambda frame: frame.select(),
    "of a file": lambda frame: frame.selectExpr("n", "_metadata.file_name as id"),
}


class TestOnSpark:
    pytestmark = on_spark

    @pytest.mark.parametrize("kind", [*READ, *NOT_READ])
    def test_records_are_those_of_spark(self, spark, tmp_path, kind):
        frame = {**READ, **NOT_READ}[kind](spark.read.parquet(folder_of(tmp_path, TABLE, TABLE)))
        assert bool(ScannedInputs([frame]).parquet_scans()) == (kind in READ)
        if frame.columns:
            found = pointstamp.spark.run(passed_on, frame, workers=2)
            assert found.columns == frame.columns
            assert records(found) == records(frame)

    @pytest.mark.parametrize(
        "table",
        [
            pa.table({"n": pa.array([1, 2], pa.timestamp("us", "UTC"))}),
            pa.table({"n": pa.array([1, 2], pa.date32())}),
            pa.table({"n": [{"x": 1}, None]}),
            pa.table({"n": pa.array([1, 2], pa.uint32())}),
            pa.table({"n": pa.array([1, 2], pa.duration("us"))}),
            pa.table({"n": pa.array([1, 2], pa.decimal128(9, 2))}),
            pa.table({"n": pa.array(["a", "b"]).dictionary_encode()}),
        ],
        ids=lambda table: str(table.schema.types[0]),
    )
    def test_types_that_may_be_read_otherwise_spark_reads(self, spark, tmp_path, table):
        frame = spark.read.parquet(folder_of(tmp_path, table))
        assert ScannedInputs([frame]).parquet_scans() == {}
        found = pointstamp.spark.run(passed_on, frame, workers=1)
        assert records(found) == records(frame)

    def test_files_of_other_columns_spark_reads(self, spark, tmp_path):
        other = TABLE.rename_columns(["ID", *TABLE.schema.names[1:]])
        files = {"fewer": [TABLE, TABLE.drop_columns(["id"])], "others": [TABLE, other]}
        for name, tables in files.items():
            folder = tmp_path / name
            folder.mkdir()
            frame = spark.read.schema("id string, n int").parquet(folder_of(folder, *tables))
            assert ScannedInputs([frame]).parquet_scans() == {}
            found = pointstamp.spark.run(passed_on, frame, workers=2)
            assert records(found) == records(frame)

    def test_what_a_folder_s_name_says_spark_adds(self, spark, tmp_path):
        folder = str(tmp_path / "parts")
        spark.createDataFrame(TABLE).write.partitionBy("is").parquet(folder)
        # A column of a file that the folder says otherwise of: Spark takes the folder's.
        false = next(Path(folder, "is=false").glob("*.parquet"))
        pq.write_table(TABLE.slice(0, 9), false)
        false.with_name(f".{false.name}.crc").unlink(missing_ok=True)
        frame = spark.read.parquet(folder)
        for chosen in (frame, frame.select("n", "is")):
            assert ScannedInputs([chosen]).parquet_scans() == {}
            assert records(pointstamp.spark.run(passed_on, chosen, workers=2)) == records(chosen)
        (scan,) = ScannedInputs([frame.select("n")]).parquet_scans().values()
        assert {*scan.schema.names} == {"n"}

    def test_several_folders_spark_reads_and_where_that_is_set(self, spark, tmp_path):
        folder = folder_of(tmp_path, TABLE)
        twice = spark.read.parquet(folder, folder)
        assert ScannedInputs([twice]).parquet_scans() == {}
        assert pointstamp.spark.run(passed_on, twice, workers=2).count() == 2 * TABLE.num_rows
        once = spark.read.parquet(folder)
        assert [*ScannedInputs([twice, once]).parquet_scans()] == [1]
        spark.conf.set(SETTING, "false")
        try:
            assert ScannedInputs([once]).parquet_scans() == {}
        finally:
            spark.conf.unset(SETTING)

    @pytest.mark.parametrize("workers", [1, 2])
    def test_some_inputs_are_read_and_others_are_dealt(self, spark, tmp_path, capsys, workers):
        def numbered(scope, first, second, third):
            def named(name):
                return lambda batch: pa.RecordBatch.from_pydict(
                    {"input": [name], "n": [batch.num_rows], "worker": [scope.index]}
                )

            streams = {"first": first, "second": second, "third": third}
            return scope.concatenate([s.map_batches(named(n)) for n, s in streams.items()])

        read = spark.read.parquet(folder_of(tmp_path, TABLE, TABLE.slice(0, 100)))
        inputs = {"first": read.select("n"), "second": spark.range(7), "third": read}
        found = pointstamp.spark.run(
            numbered, inputs, "input string, n long, worker long", workers=workers
        )
        found.explain()
        assert "FileScan" not in capsys.readouterr().out
        rows = found.collect()
        totals = {
            name: sum(row.n for row in rows if row.input == name)
            for name in ("first", "second", "third")
        }
        assert totals == {"first": 600, "second": 7, "third": 600}
        assert {row.worker for row in rows} == {*range(workers)}

    def test_records_of_one_row_group_are_dealt_to_all(self, spark, tmp_path):
        path = tmp_path / "numbers.parquet"
        pq.write_table(pa.table({"n": range(400_000)}), path, row_group_size=400_000)

        def owners(scope, frame):
            return frame.map_batches(
                lambda batch: pa.RecordBatch.from_pydict(
                    {"worker": [scope.index], "n": [batch.num_rows]}
                )
            )

        frame = spark.read.parquet(str(path))
        rows = pointstamp.spark.run(owners, frame, "worker long, n long", workers=2).collect()
        assert sum(row.n for row in rows) == 400_000
        assert {row.worker for row in rows} == {0, 1}

    def test_a_file_that_has_changed_is_named(self, spark, tmp_path):
        folder = folder_of(tmp_path, TABLE)
        found = pointstamp.spark.run(passed_on, spark.read.parquet(folder), workers=2)
        pq.write_table(TABLE.slice(3), f"{folder}/0.parquet")
        with pytest.raises(WorkerError, match=r"0\.parquet has changed since the DataFrame was"):
            found.collect()

    def test_records_that_spark_kept_and_keeps_no_longer_are_read(self, spark, tmp_path):
        frame = spark.read.parquet(folder_of(tmp_path, TABLE)).cache()
        before = records(frame)  # planned with what is kept, so that it names no files
        assert ScannedInputs([frame]).parquet_scans() == {}
        frame.unpersist(blocking=True)
        assert ScannedInputs([frame]).parquet_scans()
        assert records(pointstamp.spark.run(passed_on, frame, workers=2)) == before

    def test_what_is_in_other_files_is_not_read_from_a_summary(self, spark, tmp_path):
        folder = tmp_path / "dataset"
        collected = []
        pq.write_to_dataset(TABLE, folder, metadata_collector=collected)
        pq.write_metadata(TABLE.schema, folder / "_metadata", metadata_collector=collected)
        pq.write_table(TABLE, folder / "_metadata_of_old.parquet")
        frame = spark.read.parquet(str(folder))
        assert ScannedInputs([frame]).parquet_scans()
        found = records(pointstamp.spark.run(passed_on, frame, workers=2))
        assert found == records(frame)
        assert len(found) == TABLE.num_rows

    @pytest.mark.parametrize(
        ("files", "options"),
        [
            (["0.parquet", "k=1/0.parquet"], {}),
            (["0.parquet", "k=1/other"], {"pathGlobFilter": "*.parquet"}),
            (["odd/0.parquet", "k=1/0.parquet"], {"ignoreInvalidPartitionPaths": "true"}),
        ],
        ids=["beside", "beside what a pattern leaves out", "of another name"],
    )
    def test_files_beside_folders_of_partitions_are_not_read(self, spark, tmp_path, files, options):
        for name in files:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            pq.write_table(TABLE, path)
        reader = spark.read.options(**options).schema("n int, id string")
        frame = reader.parquet(str(tmp_path)).select("n", "id")
        found = records(pointstamp.spark.run(passed_on, frame, workers=2))
        assert found == records(frame)
        assert len(found) < 2 * TABLE.num_rows

    def test_what_a_folder_s_escaped_name_says_spark_adds(self, spark, tmp_path):
        folder = tmp_path / "a%3An=1"
        folder.mkdir()
        pq.write_table(pa.table({"a:n": [2, 3]}), folder / "0.parquet")
        frame = spark.read.parquet(str(tmp_path))
        assert ScannedInputs([frame]).parquet_scans() == {}
        found = pointstamp.spark.run(passed_on, frame, workers=1)
        assert records(found) == records(frame) == ["Row(a:n=1)"] * 2

    def test_columns_that_are_found_by_their_numbers_spark_reads(self, spark, tmp_path):
        from pyspark.sql.types import IntegerType, StructField, StructType

        kind = pa.int32()
        fields = [
            pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
            for number, name in enumerate(["n", "m"])
        ]
        path = tmp_path / "numbered.parquet"
        pq.write_table(pa.table([[1, 2], [30, 40]], pa.schema(fields)), path)
        second = StructField("n", IntegerType(), metadata={"parquet.field.id": 1})
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
        try:
            frame = spark.read.schema(StructType([second])).parquet(str(path))
            assert ScannedInputs([frame]).parquet_scans() == {}
            found = pointstamp.spark.run(passed_on, frame, workers=1)
            assert records(found) == records(frame) == ["Row(n=30)", "Row(n=40)"]
        finally:
            spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")

    @pytest.mark.parametrize("kind", ["Corrupt", "Missing"])
    def test_files_that_may_lack_something_spark_reads(self, spark, tmp_path, kind):
        frame = spark.read.parquet(folder_of(tmp_path, TABLE, TABLE))
        setting = f"spark.sql.files.ignore{kind}Files"
        spark.conf.set(setting, "true")
        try:
            found = pointstamp.spark.run(passed_on, frame, workers=2)
            file = tmp_path / "a folder" / "0.parquet"
            if kind == "Missing":
                file.unlink()
            else:
                file.write_bytes(b"?" * file.stat().st_size)
            assert found.count() == TABLE.num_rows
        finally:
            spark.conf.unset(setting)

    @pytest.mark.parametrize("others", [0, 1])
    def test_a_table_of_files_that_are_read_is_not_overwritten(self, spark, tmp_path, others):
        from pyspark.errors import AnalysisException

        folder = folder_of(tmp_path, TABLE.select(["n"]))
        inputs = [spark.read.parquet(folder), *[spark.range(3)] * others]
        found = pointstamp.spark.run(lambda scope, first, *_: first, inputs, workers=2)
        spark.sql(f"CREATE TABLE of_files (n int) USING parquet LOCATION '{folder}'")
        try:
            with pytest.raises(AnalysisException, match="being read"):
                found.write.insertInto("of_files", overwrite=True)
        finally:
            spark.sql("DROP TABLE of_files")
        assert found.count() == TABLE.num_rows

    def test_python_of_workers_is_used_again(self, spark, tmp_path):
        def process(scope, frame):
            return frame.map_batches(lambda _: pa.RecordBatch.from_pydict({"pid": [os.getpid()]}))

        frame = spark.read.parquet(folder_of(tmp_path, TABLE, TABLE))
        found = pointstamp.spark.run(process, frame, "pid long", workers=2)
        first, second = ({row.pid for row in found.collect()} for _ in range(2))
        assert first & second

    @pytest.mark.parametrize("name", ["N", "`a.b`"])
    @pytest.mark.parametrize("fused", [False, True])
    def test_columns_that_spark_scans_have_the_names_of_the_frame(
        self, spark, tmp_path, name, fused
    ):
        path = tmp_path / "a.parquet"
        other = pa.array([1, 2], pa.date32())
        pq.write_table(pa.table({"n": [1, 2], "a.b": [3, 4], "other": other}), path)
        frame = spark.read.parquet(str(path)).select(name, "other")
        assert ScannedInputs([frame]).is_scanned(1)
        found = pointstamp.spark.run(passed_on, frame, workers=1, fused=fused)
        assert found.columns == frame.columns
        assert records(found) == records(frame)
