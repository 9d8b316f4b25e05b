"""What a `pointstamp.spark.run` that fails says: the cause first, whatever it was."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import pointstamp.spark
from pointstamp.errors import JobCancelledError, WorkerError
from pointstamp.spark import driver_control
from tests.spark.flows import by_id, failure_of, run, same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("other long", "the results have columns id, and the schema of the DataFrame has other"),
        ("id tinyint", "the results do not fit the schema of the DataFrame"),
    ],
)
def test_a_result_that_does_not_fit_the_schema_is_an_error(spark, schema, said):
    # By a function of which it is not known before what it makes.
    made = run(lambda s, r: r.map_batches(lambda b: b), {"r": spark.range(1000)}, schema)
    message = failure_of(made)
    assert "SchemaError" in message
    assert said in message


def test_results_without_columns_are_an_error(spark):
    message = failure_of(run(lambda scope, r: r.map_batches(list), {"r": spark.range(3)}, "id int"))
    assert "should be columns (pyarrow.RecordBatch), and are rows" in message


def test_what_an_operator_raises_is_in_the_message_with_its_traceback(spark):
    def fails_on_one(scope, records):
        def check(batch):
            if scope_index == 1:
                raise ValueError("the very cause")
            return batch

        scope_index = scope.index
        return records.exchange("id").map_batches(check)

    started = time.monotonic()
    message = failure_of(run(fails_on_one, {"records": spark.range(1000)}, "id long", 3))
    assert time.monotonic() - started < 60
    assert "worker 1 failed: operator 'MapBatches' failed at time 0" in message
    assert 'raise ValueError("the very cause")' in message


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("action", ["collect", "show", "count", "toArrow", "take"])
def test_an_error_begins_with_its_cause(spark, action, fused):
    """Whichever action it is; `take` breaks off what is fused, which Spark refuses."""
    if fused and action in ("take", "show"):
        pytest.skip("Spark refuses it before anything runs")

    def fails(scope, records):
        def check(batch):
            raise ValueError("the very cause")

        return records.map_batches(check, name="Check")

    inputs = {"records": spark.range(0, 1000, 1, 2)}
    frame = pointstamp.spark.run(fails, inputs, "id long", workers=2, fused=fused)
    arguments = [5] if action == "take" else []
    with pytest.raises(WorkerError) as caught:
        getattr(frame, action)(*arguments)
    first = str(caught.value).splitlines()[0]
    assert re.fullmatch(
        r"worker [01] failed: operator 'Check' failed at time 0: ValueError\('the very cause'\), "
        rf"in check at {re.escape(__file__)}:\d+, called with batch=<RecordBatch of 500 rows>",
        first,
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.operator == "Check"


@pytest.mark.parametrize("fused", [False, True])
def test_what_spark_fails_of_in_an_input_that_workers_read_is_its_cause(spark, fused):
    numbers = spark.range(0, 10, 1, 2).selectExpr("cast(10 / (id - 3) as long) as id")
    result = pointstamp.spark.run(by_id, numbers, "id long", 2, fused=fused)
    with pytest.raises(WorkerError, match=r"^the Spark job failed: \[DIVIDE_BY_ZERO\]") as it:
        result.collect()
    assert "barrier task" in str(it.value.__cause__)  # Spark's own error, as a whole


def test_what_a_function_of_an_input_raises_is_its_cause(spark):
    from pyspark.sql.functions import udf

    @udf("long")
    def unlucky(id):
        raise ValueError("no luck")

    numbers = spark.range(0, 10, 1, 2).select(unlucky("id").alias("id"))
    result = pointstamp.spark.run(by_id, numbers, "id long", 2, fused=True)
    with pytest.raises(WorkerError, match=r"^the Spark job failed: ValueError: no luck"):
        result.collect()


def test_what_spark_refuses_after_a_failure_is_not_that_failure(spark):
    def fails(scope, records):
        def check(batch):
            raise ValueError("the very cause")

        return records.map_batches(check)

    inputs = {"records": spark.range(0, 100, 1, 2)}
    frame = pointstamp.spark.run(fails, inputs, "id long", fused=True)
    failure_of(frame)
    with pytest.raises(Exception, match="Barrier execution mode does not allow"):
        frame.take(5)


def test_a_job_that_is_cancelled_is_said_to_be(spark, tmp_path):
    """And what computes in its workers ends."""
    began = tmp_path / "began"

    def build(scope, records):
        def compute(batch):
            while True:
                began.touch()
                time.sleep(0.01)

        return records.map_batches(compute)

    frame = run(build, {"records": spark.range(0, 100, 1, 4)}, "id long")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(frame.toArrow)
        while not began.exists():
            assert not running.done()
            time.sleep(0.01)
        spark.sparkContext.cancelAllJobs()
        with pytest.raises(JobCancelledError, match=r"Spark job was cancelled: Job .* all jobs"):
            running.result()
    until = time.monotonic() + 60
    servers = [each.server for each in driver_control._controls.values()]
    while any(server.workers() for server in servers) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(server.workers() for server in servers)
    assert run(same, {"records": spark.range(3)}, "id long").count() == 3


def test_a_task_that_dies_fails_the_job(spark):
    def dies_on_one(scope, records):
        import os
        import signal

        index = scope.index

        def die(batch):
            if index == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return batch

        return records.exchange("id").map_batches(die)

    with pytest.raises(Exception, match=r"crashed|lost worker 1|worker 1 went away"):
        run(dies_on_one, {"records": spark.range(1000)}, "id long", 3).collect()


@pytest.mark.parametrize("fused", [False, True])
def test_a_worker_that_exits_is_named(spark, fused):
    def leaves(scope, records):
        def leave(batch):
            if scope_index == 1:
                sys.exit("that is all")
            return batch

        scope_index = scope.index
        return records.exchange("id").map_batches(leave)

    numbers = spark.range(0, 1000, 1, 2)
    with pytest.raises(WorkerError, match=r"^worker 1 called sys\.exit\('that is all'\) before it"):
        pointstamp.spark.run(leaves, numbers, "id long", workers=2, fused=fused).collect()


def test_an_error_whose_text_cannot_be_encoded_is_raised(spark):
    """As that of a file whose name is no text; the job waited for ever."""

    def fails(scope, records):
        def check(batch):
            raise ValueError("no such file: \udcff")

        return records.map_batches(check)

    result = run(fails, {"records": spark.range(0, 100, 1, 2)}, "id long")
    with pytest.raises(WorkerError, match=r"^worker [01] failed: .*no such file: \\udcff"):
        result.collect()
    with pytest.raises(Exception, match=r"ValueError: no such file: \\udcff"):
        result.groupBy("id").count().collect()


def test_a_failed_job_leaves_the_session_usable(spark):
    failure_of(run(same, {"records": spark.range(1000)}, "id tinyint"))
    assert run(same, {"records": spark.range(3)}, "id long").count() == 3
