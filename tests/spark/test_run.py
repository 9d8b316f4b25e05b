"""`pointstamp.spark.run` on a real Spark session: what goes in, what comes out, what is refused."""

from __future__ import annotations

import datetime
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp.spark
from pointstamp.communication.explanations import explain_program
from pointstamp.errors import (
    BuildError,
    ColumnError,
    SchemaError,
    SerializationError,
    SparkSetupError,
    UsageError,
)
from pointstamp.spark import driver_control
from tests.spark.flows import COUNTS, by_id, count_all, run, same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_goes_in_comes_out(spark, workers):
    numbers = spark.range(0, 10_000, 1, 5)
    result = run(by_id, {"records": numbers}, "id long", workers)
    assert sorted(result.toArrow()["id"].to_pylist()) == list(range(10_000))


def test_workers_that_are_given_certificates_meet_and_report_with_them(spark, driver_certificates):
    numbers = spark.range(0, 100, 1, 3)
    result = pointstamp.spark.run(
        by_id, {"records": numbers}, "id long", workers=2, certificates=driver_certificates
    )
    assert sorted(result.toArrow()["id"].to_pylist()) == list(range(100))
    assert ("127.0.0.1", driver_certificates) in driver_control._controls


def test_the_driver_can_ask_each_task_what_it_waits_for(spark, tmp_path):
    """Over its control connection, while it is in the middle of code of the program."""
    done = tmp_path / "done"

    def build(scope, records):
        def slow(batch):
            while not done.exists():
                time.sleep(0.01)
            return batch

        return records.map_batches(slow, name="Slow")

    result = run(build, {"records": spark.range(0, 100, 1, 4)}, "id long")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(result.toArrow)
        try:
            said = ""
            while said.count(" of 2 ") < 2 or "is in operator 'Slow', at time 0" not in said:
                time.sleep(0.05)
                found = explain_program(60)
                said = "\n".join(each.text or "" for each in found)
        finally:
            done.touch()
        assert running.result().num_rows == 100
    assert len(found) == 2
    assert said.count("worker 0 of 2 ") == said.count("worker 1 of 2 ") == 1


def test_every_worker_is_a_task_of_the_stage_and_gets_a_share(spark):
    counts = run(count_all, {"records": spark.range(0, 1200, 1, 6)}, COUNTS, 3).collect()
    assert sorted((row.worker, row.peers, row.n) for row in counts) == [
        (0, 3, 400),  # 6 partitions of 200 records, two each
        (1, 3, 400),
        (2, 3, 400),
    ]


def test_rows_of_equal_key_meet_on_one_worker(spark):
    frame = spark.range(0, 600, 1, 4).selectExpr("id % 7 as id")

    def owners(scope, records):
        index = scope.index
        return records.exchange("id").map_batches(
            lambda batch: batch.append_column("worker", pa.array([index] * batch.num_rows))
        )

    found = run(owners, {"records": frame}, "id long, worker long", 3).distinct().collect()
    assert sorted(row.id for row in found) == list(range(7))


def test_several_inputs_meet_in_one_stage(spark):
    def tagged(name):
        def tag(batch):
            return pa.RecordBatch.from_pydict(
                {"from": pa.array([name] * batch.num_rows), "id": batch.column("id")}
            )

        return tag

    def both(scope, left, right):
        return left.map_batches(tagged("left")).concat(right.map_batches(tagged("right")))

    inputs = {"left": spark.range(3), "right": spark.range(2).selectExpr("id", "id as more")}
    rows = run(both, inputs, "from string, id long").collect()
    assert Counter(row["from"] for row in rows) == {"left": 3, "right": 2}


def test_inputs_that_differ_in_what_may_be_null_are_one_stream(spark):
    fields = "id long {0}, pair struct<x: int {0}> {0}, list array<int>"
    never = spark.createDataFrame([(1, (2,), [3])], fields.format("not null"))
    maybe = spark.createDataFrame([(4, (5,), [6])], fields.format(""))
    assert never.schema != maybe.schema

    def both(scope, left, right):
        return left.concat(right)

    result = run(both, {"left": never, "right": maybe}, never.schema)
    assert result.schema == never.schema
    assert sorted(result.collect()) == [*never.collect(), *maybe.collect()]


def test_inputs_go_by_position_where_the_names_differ(spark):
    inputs = {"these": spark.range(3), "those": spark.range(5)}
    assert run(lambda scope, x, y: y, inputs, "id long").count() == 5


def test_an_input_without_rows_is_an_input(spark):
    nothing = spark.range(10).where("id > 20")
    counts = run(count_all, {"records": nothing}, COUNTS).collect()
    assert sorted((row.worker, row.peers, row.n) for row in counts) == [(0, 2, 0), (1, 2, 0)]
    assert run(same, {"records": nothing}, "id long").count() == 0
    assert run(same, {"records": spark.createDataFrame([], "id long")}, "id long").count() == 0


def test_no_inputs_are_fine(spark):
    def numbers(scope):
        return scope.batches_to_stream([pa.RecordBatch.from_pydict({"id": [scope.index]})])

    rows = pointstamp.spark.run(numbers, {}, "id long", workers=3, spark=spark).collect()
    assert sorted(row.id for row in rows) == [0, 1, 2]


def test_nothing_runs_before_an_action(spark, tmp_path):
    mark = tmp_path / "ran"

    def build(scope, records):
        mark.touch()
        return records

    inputs = {"records": spark.range(3)}
    result = pointstamp.spark.run(build, inputs, "id long", workers=2, check=False)
    assert result.columns == ["id"]
    assert not mark.exists()
    assert result.count() == 3
    assert mark.exists()


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (lambda frame: frame.limit(5).count(), 5),
        (lambda frame: len(frame.limit(5).collect()), 5),
        (lambda frame: len(frame.take(3)), 3),
        (lambda frame: frame.head().id >= 0, True),
        (lambda frame: frame.union(frame).count(), 400_000),
        (lambda frame: frame.coalesce(1).limit(1).count(), 1),
        (lambda frame: frame.join(frame.limit(10), "id").count(), 10),
    ],
)
def test_anything_can_be_done_with_the_result(spark, of, expected):
    numbers = spark.range(0, 200_000, 1, 4)
    assert of(run(by_id, {"records": numbers}, "id long")) == expected


def test_a_result_can_be_the_input_of_another(spark):
    once = run(by_id, {"records": spark.range(100)}, "id long")
    twice = run(by_id, {"records": once}, "id long")
    assert twice.count() == 100


def test_columns_of_any_type_pass_through(spark):
    row = {
        "text": "grün",
        "nothing": None,
        "bytes": bytearray(b"\0\1"),
        "list": [1, None, 3],
        "pair": {"a": 1, "b": ["x", "y"]},
        "map": {"one": 1},
        "exact": Decimal("12.34"),
        "day": datetime.date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 12, 30, 15, 250),
        "ratio": 0.1,
        "flag": True,
    }
    schema = (
        "text string, nothing int, bytes binary, list array<int>, "
        "pair struct<a: int, b: array<string>>, map map<string, int>, exact decimal(10, 2), "
        "day date, at timestamp, ratio double, flag boolean"
    )
    frame = spark.createDataFrame([tuple(row.values())], schema)
    result = run(same, {"records": frame}, schema)
    assert result.schema == frame.schema
    assert result.collect() == frame.collect()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("make_ym_interval(1, 2)", "interval year to month"),
        ("make_interval(1, 2)", "interval"),
        ("array()", "array<void>"),
    ],
)
def test_a_column_that_arrow_has_no_type_for_is_named(spark, column, kind):
    odd = spark.range(3).selectExpr("id", f"{column} as odd")
    said = f"column 'odd' of {{}} is {kind}, which Arrow has no type for: cast it"
    with pytest.raises(SchemaError, match=re.escape(said.format("the input 'records'"))):
        run(same, {"records": odd}, "id long")
    with pytest.raises(SchemaError, match=re.escape(said.format("the results"))):
        run(same, {"records": spark.range(3)}, odd.schema)
    edges = odd.selectExpr("id as src", "id + 1 as dst", "odd")
    with pytest.raises(SchemaError, match=re.escape(said.format("what the graph needs"))):
        pointstamp.spark.graph(edges, workers=1).find("(a)-[e]->(b)").collect()


def test_a_function_that_is_not_pickled_is_named(spark):
    lock = threading.Lock()

    def build(scope, records):
        return records.inspect_batch(lambda time, batch: lock)

    with pytest.raises(
        SerializationError, match=r"the function .*build.* cannot be .* '_thread.lock"
    ):
        run(build, {"records": spark.range(3)}, "id long")


def test_strings_are_keys_and_dictionaries_come_out_as_their_values(spark):
    frame = spark.range(0, 900, 1, 3).selectExpr("concat('word ', id % 3) as word")

    def encoded(scope, words):
        return words.exchange("word").map_batches(
            lambda batch: pa.RecordBatch.from_pydict(
                {"word": pc.dictionary_encode(batch.column("word"))}
            )
        )

    counts = run(encoded, {"words": frame}, "word string").groupBy("word").count().collect()
    assert {row.word: row["count"] for row in counts} == {
        "word 0": 300,
        "word 1": 300,
        "word 2": 300,
    }


def test_results_are_cast_where_no_value_changes(spark):
    rows = run(same, {"records": spark.range(3)}, "id int").collect()
    assert sorted(row.id for row in rows) == [0, 1, 2]


def test_jobs_and_plans_say_what_runs(spark, capsys):
    frame = run(by_id, {"records": spark.range(0, 100, 1, 3)}, "id long")
    context = spark.sparkContext

    def seen(scope, records):
        # The tasks of a job have the properties of the thread that asked for it.
        def described(batch):
            from pyspark import TaskContext

            said = TaskContext.get().getLocalProperty("spark.job.description")
            return pa.RecordBatch.from_pydict({"said": [said]})

        return records.map_batches(described)

    asked = run(seen, {"records": spark.range(0, 100, 1, 2)}, "said string")
    found = {row.said for row in asked.collect()}
    assert found == {"pointstamp: seen, 2 workers"}
    assert context.getLocalProperty("spark.job.description") is None
    context.setJobDescription("mine")
    try:
        # Another DataFrame: of one that was computed Spark keeps what it shuffled.
        asked = run(seen, {"records": spark.range(0, 100, 1, 2)}, "said string")
        assert {row.said for row in asked.collect()} == {"mine"}
    finally:
        context.setLocalProperty("spark.job.description", None)
    frame.explain()
    plan = capsys.readouterr().out
    for name in ("input 0", "by_id, 2 workers", "results"):
        assert f"MapInArrow pointstamp: {name}(" in plan


def test_what_a_run_counted_is_logged(spark, caplog):
    caplog.set_level("INFO", "pointstamp.spark")

    def by_id_in_rounds(scope, records):
        def body(going):
            return going.map_batches(
                lambda batch: batch.set_column(0, "id", pc.add(batch["id"], 1))
            )

        return records.exchange("id").iterate(body, limit=3, name="Thrice")

    frame = run(by_id_in_rounds, {"records": spark.range(0, 10_000, 1, 4)}, "id long")
    assert frame.toArrow().num_rows == 10_000

    def counted() -> list[str]:
        texts = [record.getMessage() for record in caplog.records]
        return [text for text in texts if "records in" in text]

    until = time.monotonic() + 60
    while not counted() and time.monotonic() < until:
        time.sleep(0.01)  # it comes by a connection of its own
    [said] = counted()
    found = re.fullmatch(
        r"pointstamp: by_id_in_rounds, 2 workers: 10,000 records in \(10,000 records\), "
        r"10,000 out; "
        r"([\d,]+) bytes exchanged; at most ([\d,]+) steps of a worker; 3 rounds of 'Thrice'",
        said,
    )
    assert found is not None, said
    # Half of the records have eight bytes each that go to the other worker.
    assert 35_000 < int(found[1].replace(",", "")) < 100_000
    assert int(found[2].replace(",", "")) > 1


def test_too_few_slots_are_said_before_anything_starts(spark):
    with pytest.raises(SparkSetupError, match=r"5 workers need 5 slots .* local\[4\] has 4"):
        run(same, {"records": spark.range(3)}, "id long", 5)


def test_all_slots_are_used_where_no_number_is_given(spark):
    result = pointstamp.spark.run(count_all, {"records": spark.range(3)}, COUNTS)
    assert {row.peers for row in result.collect()} == {4}


def test_what_cannot_be_called_with_the_inputs_is_said_before_anything_starts(spark):
    with pytest.raises(BuildError, match=r"same\(scope, records\) cannot be called .* a, b"):
        run(same, {"a": spark.range(3), "b": spark.range(3)}, "id long")
    with pytest.raises(UsageError, match="at least one worker; 0"):
        run(same, {"records": spark.range(3)}, "id long", 0)


def test_a_build_that_returns_no_stream_is_an_error(spark):
    started = time.monotonic()
    with pytest.raises(
        BuildError,
        match=r"test_run.py:\d+\) should return the stream of its results, and returned None",
    ):
        run(lambda scope, records: None, {"records": spark.range(3)}, "id long")
    assert time.monotonic() - started < 60  # milliseconds, on a machine with nothing else to do


def test_a_mistake_in_build_is_said_before_any_job_with_its_line(spark):
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup(None)

    def build(scope, records):
        return records.exchagne("id")

    with pytest.raises(AttributeError, match="exchagne") as caught:
        run(build, {"records": spark.range(3)}, "id long")
    names = [entry.name for entry in caught.traceback]
    assert names[0] == "test_a_mistake_in_build_is_said_before_any_job_with_its_line"
    assert names[-2:] == ["build", "__getattr__"]  # which says what it is called here
    assert tracker.getJobIdsForGroup(None) == before


@pytest.mark.parametrize(
    "build",
    [
        lambda scope, records: records.exchange("idd"),
        lambda scope, records: records.filter(pc.field("id") > 0).exchange(["id", "idd"]),
        lambda scope, records: records.filter(pc.field("idd") > 0),
    ],
)
def test_a_missing_column_of_an_input_is_said_before_any_job(spark, build):
    with pytest.raises(ColumnError, match="reads idd of input 'records', whose columns are id"):
        run(build, {"records": spark.range(3)}, "id long")


def test_a_filter_in_text_is_said_to_be_an_expression(spark):
    with pytest.raises(ColumnError, match=r"reads id > 1 .* such as pc.field\('x'\) > 2"):
        run(lambda scope, records: records.filter("id > 1"), {"records": spark.range(3)}, "id long")


def test_other_columns_than_those_of_the_result_are_said_before_any_job(spark):
    with pytest.raises(SchemaError, match=r"the results have columns id, .* has other"):
        run(by_id, {"records": spark.range(3)}, "other long")


def test_a_schema_is_that_of_the_input_or_has_to_be_given(spark):
    frame = spark.createDataFrame([(1, "x")], "id long, text string")
    result = pointstamp.spark.run(by_id, frame, workers=2)
    assert result.schema == frame.schema
    assert result.collect() == frame.collect()
    with pytest.raises(BuildError, match=r"which columns count_all makes .* give schema="):
        pointstamp.spark.run(count_all, frame, workers=2)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id long, a array", r"array needs the type of its elements, as in array<long>"),
        ("a array()", "array needs the type of its elements"),
        ("a array<>", "array needs the type of its elements"),
        ("a struct<b: map, c: int>", "map needs the types of its keys and values"),
        ("id wrong", r"\[UNSUPPORTED_DATATYPE\]"),
        ("id long,, a long", r"\[PARSE_SYNTAX_ERROR\]"),
    ],
)
def test_a_schema_that_spark_cannot_read_is_refused_in_a_line(spark, schema, why):
    with pytest.raises(
        SchemaError, match=rf"^Spark cannot read the schema '{re.escape(schema)}': {why}"
    ):
        run(same, {"records": spark.range(3)}, schema)


def test_inputs_are_given_as_one_or_in_order(spark):
    def second(scope, x, y):
        return y

    result = pointstamp.spark.run(second, [spark.range(3), spark.range(5)], workers=2)
    assert result.count() == 5
    assert pointstamp.spark.run(same, spark.range(4), workers=1).count() == 4


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"records": [1, 2]}, "input 'records' should be a DataFrame of Spark, and is a list"),
        ([pa.table({"id": [1]})], "input 'records' should be .* and is a pyarrow.lib.Table"),
        ("records", "are a DataFrame, several in a list, or a dict .* and not a str"),
    ],
)
def test_an_input_that_is_no_dataframe_is_named(spark, inputs, said):
    with pytest.raises(UsageError, match=said):
        run(same, inputs, "id long")


@pytest.mark.parametrize("names", [("a", "A"), ("*", "b"), ("a.*", "a"), ("x.y", "X.Y")])
def test_names_that_spark_cannot_look_up_are_those_of_the_columns(spark, names):
    first, second = names
    records = spark.range(0, 5, 1, 3).selectExpr("id", "id + 10").toDF(first, second)
    result = run(
        lambda scope, records: records.exchange(second), {"records": records}, records.schema
    )
    assert result.schema.names == [first, second]
    assert sorted(result.collect()) == [(id, id + 10) for id in range(5)]


def test_an_input_without_columns_or_with_two_of_one_name_is_refused(spark):
    records = spark.range(3)
    with pytest.raises(ColumnError, match="input 'records' has no columns"):
        run(same, {"records": records.select()}, "id long")
    twice = records.select("id", "id")
    with pytest.raises(ColumnError, match=r"'records' has several columns with the name 'id'"):
        run(same, {"records": twice}, "id long")


def test_many_rows_arrive_in_large_batches(spark):
    def sizes(scope, records):
        return records.map_batches(
            lambda batch: pa.RecordBatch.from_pydict({"n": [batch.num_rows]})
        )

    numbers = spark.range(0, 1_000_000, 1, 2)
    found = [row.n for row in run(sizes, {"records": numbers}, "n long").collect()]
    assert sum(found) == 1_000_000
    assert len(found) < 40


def test_workers_log_and_tell_of_progress_as_they_are_told_to(spark, tmp_path):
    frame = pointstamp.spark.run(
        count_all,
        {"records": spark.range(10)},
        COUNTS,
        workers=2,
        progress="eager",
        log=pointstamp.Log(tmp_path / "run.log"),
    )
    assert sum(frame.toArrow()["n"].to_pylist()) == 10
    logged = pointstamp.observability.read(tmp_path / "run.log")
    assert [worker.index for worker in logged.workers] == [0, 1]
    assert all("CountAll" in worker["operators"]["name"] for worker in logged.workers)


def test_a_mode_of_progress_that_is_none_is_said_before_anything_starts(spark):
    with pytest.raises(UsageError, match="'demand' or 'eager', and not 'lazy'"):
        pointstamp.spark.run(
            same, {"records": spark.range(3)}, "id long", workers=1, progress="lazy"
        )


@pytest.mark.parametrize("accumulate", [False, True])
def test_workers_add_up_their_progress_if_they_are_told_to(spark, accumulate):
    def way(scope, records):
        kind = type(scope.environment.share.__self__).__name__
        return records.map_batches(lambda batch: pa.RecordBatch.from_pydict({"way": [kind]}))

    records = spark.range(0, 10, 1, 4)
    frame = pointstamp.spark.run(
        way, {"records": records}, "way string", workers=2, accumulate=accumulate
    )
    expected = "AccumulatedExchange" if accumulate else "ProgressExchange"
    assert {row.way for row in frame.collect()} == {expected}


def test_connections_for_each_two_machines_arrive_at_the_tasks(spark):
    def way(scope, records):
        mesh = scope.environment.communicator
        has_routes = getattr(mesh, "_routes", None) is not None
        return records.exchange("id").map_batches(
            lambda batch: pa.RecordBatch.from_pydict({"has_routes": [has_routes] * len(batch)})
        )

    frame = pointstamp.spark.run(
        way,
        {"records": spark.range(0, 10, 1, 4)},
        "has_routes boolean",
        workers=2,
        connections="machine",
    )
    assert [row.has_routes for row in frame.collect()] == [True] * 10


def test_another_word_for_connections_is_refused_before_anything_starts(spark):
    with pytest.raises(UsageError, match="'host'"):
        pointstamp.spark.run(
            same, {"records": spark.range(3)}, "id long", workers=1, connections="host"
        )


def test_what_waits_goes_to_disk_beyond_a_limit(spark, tmp_path):
    def pairs(scope, records):
        memory = scope.environment.memory
        return records.join(records, "id", how="left").map_batches(
            lambda batch: pa.RecordBatch.from_pydict(
                {"n": [batch.num_rows], "spilled": [memory.spilled_bytes]}
            )
        )

    frame = pointstamp.spark.run(
        pairs,
        {"records": spark.range(0, 20_000, 1, 4)},
        "n long, spilled long",
        workers=2,
        memory_limit="50kB",
        spill_directory=tmp_path,
    )
    rows = frame.collect()
    assert sum(row.n for row in rows) == 20_000
    assert min(row.spilled for row in rows) > 0
    assert not list(tmp_path.iterdir())


async def coroutine(scope, records):
    return records


def generator(scope, records):
    yield records


@pytest.mark.parametrize("build", [coroutine, generator])
def test_what_runs_nothing_when_it_is_called_is_refused(spark, build):
    with pytest.raises(BuildError, match=f"{build.__name__} runs nothing when it is called"):
        run(build, {"records": spark.range(1)}, "id long")


def test_a_stream_is_no_input_of_a_job(spark):
    stream = spark.readStream.format("rate").load().selectExpr("value as src", "value as dst")
    with pytest.raises(UsageError, match=r"input 'edges' is a stream, .*: foreachBatch gives one"):
        pointstamp.spark.run(lambda scope, edges: edges, {"edges": stream}, workers=1)
    with pytest.raises(UsageError, match="input 'edges' is a stream"):
        pointstamp.spark.graph(stream, workers=1).k_core()
