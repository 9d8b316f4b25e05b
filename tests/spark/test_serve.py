"""A service on a real Spark session: driven directly, by streams in, and by streams out."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

import pointstamp as ps
import pointstamp.spark
from pointstamp.errors import (
    AuthenticationError,
    BuildError,
    ServiceError,
    SparkSetupError,
    StoppedError,
    UsageError,
    WorkerError,
)
from pointstamp.service.flight_client import RemoteWorker
from pointstamp.service.protocol import GetStatus

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def both(scope, numbers, others):
    """Each number once more as often as it has come; and all numbers, of both inputs."""

    def check(batch):
        if -1 in batch.column("n").to_pylist():
            raise ValueError("the very cause")
        if -3 in batch.column("n").to_pylist():
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    return {
        "numbers": numbers.exchange("n").map_batches(check),
        "all": numbers.concat(others).exchange("n"),
    }


def serve(spark, workers=2, **options):
    schemas = dict.fromkeys(("numbers", "others"), "n long")
    outputs = {"numbers": "n long", "all": pa.schema({"n": pa.int64()})}
    return pointstamp.spark.serve(both, spark, workers, inputs=schemas, outputs=outputs, **options)


@pytest.fixture(scope="module")
def service(spark):
    with serve(spark, name="shared") as running:
        for output in ("numbers", "all"):
            running.output(output).collect()  # a link connects with the first call, and stays so
        yield running


@pytest.fixture
def epoch(service):
    """The epoch that the inputs of the service, which the tests share, are at."""
    now = max(service.input("numbers").time, service.input("others").time)
    for name in ("numbers", "others"):
        if service.input(name).time < now:
            service.input(name).advance_to(now)
    return now


@pytest.fixture
def files(spark, tmp_path):
    """`files([1, 2], [3])`: a stream that has a batch for each list."""

    def write(*batches):
        folder = tmp_path / "numbers"
        folder.mkdir(exist_ok=True)
        for k, numbers in enumerate(batches):
            at = folder / f"{time.monotonic_ns():020}-{k}.parquet"
            pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), at)
            os.utime(at, (1e9 + k, 1e9 + k))  # Spark takes them in the order of their times
        return (
            spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(folder))
        )

    return write


def write(stream, service, tmp_path, epoch, input="numbers", place="sink"):
    """Run a query that writes all of a stream to an input, batch 0 at `epoch`."""
    query = (
        stream.writeStream.format("pointstamp")
        .options(service=service.name, input=input, first_epoch=str(epoch))
        .option("checkpointLocation", str(tmp_path / place))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def numbers(service, epoch, upto, output="numbers"):
    """[(epoch, number)] of an output, epochs counted from `epoch`."""
    pairs = service.output(output).read(upto, after=epoch - 1)
    return sorted((e - epoch, n) for e, b in pairs for n in b.column("n").to_pylist())


def test_tables_and_dataframes_go_in_and_tables_come_out(spark, service, epoch):
    service.input("numbers").send(spark.range(0, 1000, 1, 5).selectExpr("id as n"))
    service.input("numbers").send(pa.table({"n": [-5, -6]}))
    service.input("numbers").advance_to(epoch + 1)
    service.input("numbers").send(spark.range(3).selectExpr("id as n"))
    service.input("numbers").advance_to(epoch + 2)
    found = numbers(service, epoch, epoch + 1)
    assert [n for e, n in found if e == 0] == [-6, -5, *range(1000)]
    assert [n for e, n in found if e == 1] == [0, 1, 2]


def test_endpoints_encrypt_where_there_are_certificates(
    spark, driver_certificates, files, tmp_path
):
    with serve(spark, 1, name="secret", certificates=driver_certificates) as service:
        assert all(server.startswith("grpc+tls://") for server in service.endpoints)
        service.input("others").close()
        service.input("numbers").send(spark.range(3).selectExpr("id as n"))
        service.input("numbers").advance_to(1)
        write(files([7]), service, tmp_path, 1)
        assert sorted(n for _, n in numbers(service, 0, 1)) == [0, 1, 2, 7]
        read = spark.read.format("pointstamp").options(service="secret", output="numbers").load()
        assert sorted(row.n for row in read.collect()) == [0, 1, 2, 7]
        # That was Spark's tasks with a certificate: without one the token is not enough.
        with (
            RemoteWorker(service.endpoints[0], service.token) as stranger,
            pytest.raises(AuthenticationError, match="this client presents none"),
        ):
            stranger.ask(GetStatus())


def test_a_stream_goes_in_a_batch_an_epoch(service, epoch, files, tmp_path):
    write(files([1, 2], [3], [3, 4]), service, tmp_path, epoch)
    assert service.input("numbers").time == epoch + 3
    # Every commit had waited: nothing is left to be worked off.
    assert not service.output("numbers").probe.less_equal(epoch + 2)
    assert numbers(service, epoch, epoch + 2) == [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4)]


def test_a_batch_that_spark_replays_comes_out_once(service, epoch, files, tmp_path):
    write(files([1, 2], [3]), service, tmp_path, epoch)
    # As if the driver had been killed between the service's commit and Spark's own record of it.
    (tmp_path / "sink" / "commits" / "1").unlink()
    (tmp_path / "sink" / "commits" / ".1.crc").unlink(missing_ok=True)
    write(files([4]), service, tmp_path, epoch)
    assert service.input("numbers").time == epoch + 3
    assert numbers(service, epoch, epoch + 2) == [(0, 1), (0, 2), (1, 3), (2, 4)]


def test_two_streams_go_in_at_speeds_of_their_own(service, epoch, files, tmp_path):
    """A commit does not wait for an input that is behind, which may be fed by its own query."""
    write(files([1], [2], [3]), service, tmp_path, epoch)
    assert service.output("all").probe.less_equal(epoch)
    write(files(), service, tmp_path, epoch, "others", "other sink")
    assert numbers(service, epoch, epoch + 2, "all") == [(e, e + 1) for e in (0, 0, 1, 1, 2, 2)]


def test_what_is_there_is_read_as_of_a_complete_epoch(spark, service, epoch):
    for n in (7, 8):
        service.input("numbers").send([{"n": n}])
        service.input("numbers").advance_to(service.input("numbers").time + 1)
    service.input("numbers").send([{"n": 9}])
    service.output("numbers").probe.wait(epoch + 1)
    service.output("numbers").discard(epoch - 1)
    reader = spark.read.format("pointstamp").options(service="shared", output="numbers")
    assert sorted(row.n for row in reader.load().collect()) == [7, 8]
    assert [row.n for row in reader.option("epoch", str(epoch)).load().collect()] == [7]
    assert reader.load().schema.simpleString() == "struct<n:bigint>"
    service.input("numbers").advance_to(epoch + 3)
    assert sorted(row.n for row in reader.option("epoch", str(epoch + 2)).load().collect()) == [
        7, 8, 9
    ]  # fmt: skip


def test_a_stream_of_an_output_has_complete_epochs_once_and_has_them_forgotten(
    spark, service, epoch, tmp_path
):
    if epoch:
        service.output("numbers").discard(epoch - 1)
    stream = spark.readStream.format("pointstamp").options(service="shared", output="numbers")
    query = (
        stream.load()
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for step in range(3):
            service.input("numbers").send([{"n": 10 * step}, {"n": 10 * step + 1}])
            service.input("numbers").advance_to(epoch + step + 1)
            service.output("numbers").probe.wait(epoch + step)
            query.processAllAvailable()
            # What is sent and not complete is not there.
            service.input("numbers").send([{"n": -7}])
        found = spark.read.parquet(str(tmp_path / "out")).collect()
        assert sorted(row.n for row in found) == [-7, -7, 0, 1, 10, 11, 20, 21]
        # With each batch Spark says that it is done with the one before.
        assert service.status().discarded["numbers"] >= epoch + 1
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"service": "nobody"}, "names 'nobody'; this session knows"),
        ({"service": "shared"}, 'option("output", ...) names None; the service has '),
        ({"service": "shared", "output": "x"}, "names 'x'; the service has 'numbers', 'all'"),
        ({"service": "shared", "output": "all", "epoch": "x"}, "a whole number from 0, and is 'x'"),
    ],
)
def test_options_that_mean_nothing_are_errors_that_say_what_there_is(spark, service, options, said):
    with pytest.raises(PySparkException) as caught:
        spark.read.format("pointstamp").options(**options).load().collect()
    assert said in str(caught.value)


def test_a_stream_with_other_columns_is_refused(spark, service, files, tmp_path):
    stream = files([1]).withColumnRenamed("n", "m")
    with pytest.raises(PySparkException, match="has columns n, and what is sent has m"):
        write(stream, service, tmp_path, 0)


def test_too_few_slots_are_said_with_what_to_set(spark):
    with pytest.raises(SparkSetupError, match=r"local\[4\] has 4: set its master to local\[5\]"):
        serve(spark, 4)
    with pytest.raises(UsageError, match="at least one worker; 0"):
        serve(spark, 0)
    with pytest.raises(BuildError, match="cannot be called"):
        pointstamp.spark.serve(
            both, spark, inputs={"a": "n long"}, outputs={"numbers": "n long", "all": "n long"}
        )
    with pytest.raises(UsageError, match="'numbers' needs a schema"):
        pointstamp.spark.serve(
            lambda scope, numbers: numbers, spark, inputs={"numbers": 7}, outputs={"n": "n long"}
        )


def test_slots_that_a_service_holds_are_not_waited_for(spark, service):
    """The stage would begin when the service ends."""
    held = r"of the 4 of the Spark session with master local\[4\] only 2 are free, as long as the "
    held += "service 'shared' holds 2: "
    with pytest.raises(SparkSetupError, match=f"^3 workers need .*{held}ask for at most 2 workers"):
        pointstamp.spark.run(lambda scope, r: r, spark.range(5), workers=3)
    with pytest.raises(SparkSetupError, match=f"{held}stop what"):
        serve(spark, 2)
    ran = pointstamp.spark.run(lambda scope, r: r, spark.range(5))
    assert ran.count() == 5
    assert ran.rdd.getNumPartitions() == 2


def test_a_worker_that_fails_is_what_is_raised_and_the_session_stays_usable(spark, service):
    # Two workers of the shared service hold two slots, so this one has one.
    failing = serve(spark, 1, name="failing")
    failing.input("numbers").send([{"n": -1}])
    began = time.monotonic()
    with contextlib.suppress(WorkerError):  # the worker may fail before this has returned
        failing.input("numbers").advance_to(1)
    with pytest.raises(WorkerError, match="the very cause") as caught:
        failing.output("numbers").collect(upto=0)
    assert time.monotonic() - began < 60
    assert (caught.value.operator, caught.value.time) == ("MapBatches", 0)
    with pytest.raises(WorkerError, match="the very cause"):
        failing.stop()
    assert spark.range(5).count() == 5
    assert len(active_jobs_besides(spark, 1)) <= 1


def test_a_block_that_raises_aborts_and_nothing_is_left_running(spark, service):
    running = serve(spark, 1, name="aborted")

    def use():
        with running:
            running.input("numbers").send([{"n": 1}])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    with pytest.raises(StoppedError, match="aborted"):
        running.input("numbers").send([{"n": 1}])
    assert len(active_jobs_besides(spark, 1)) <= 1


def active_jobs_besides(spark, n):
    """The jobs that run, when there was time for all but `n` to end: those of `service`."""
    until = time.monotonic() + 60
    while len(ids := spark.sparkContext.statusTracker().getActiveJobsIds()) > n:
        if time.monotonic() > until:
            break
        spark.range(1).count()
    return list(ids)


def test_a_service_and_its_query_begin_again_from_their_checkpoints(
    spark, service, files, tmp_path
):
    """The second life is on Spark as well, the third on processes of another number."""
    folder = tmp_path / "service"
    first = serve(spark, 1, checkpoint=folder)
    write(files([1, 2], [3]), first, tmp_path, 0)
    first.input("numbers").send([{"n": 99}])  # never committed
    first.abort()
    with serve(spark, 1, checkpoint=folder) as second:
        assert second.input("numbers").time == 2
        # Another query, whose first batch is of the last epoch of the former life.
        with pytest.raises(StreamingQueryException, match="for epoch 1, 2 records, is not in it"):
            write(files(), second, tmp_path, 1, place="other")
        # As if Spark had not heard of the last commit: it runs that batch again.
        (tmp_path / "sink" / "commits" / "1").unlink()
        (tmp_path / "sink" / "commits" / ".1.crc").unlink(missing_ok=True)
        write(files([4], [5]), second, tmp_path, 0)
        assert numbers(second, 0, 3) == [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5)]
    schemas = dict.fromkeys(("numbers", "others"), pa.schema({"n": pa.int64()}))
    outputs = dict.fromkeys(("numbers", "all"), pa.schema({"n": pa.int64()}))
    with ps.serve(both, 3, inputs=schemas, outputs=outputs, checkpoint=folder) as third:
        assert numbers(third, 0, 3) == [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5)]


def test_a_worker_that_is_killed_is_what_is_raised(spark, service):
    killed = serve(spark, 1, name="killed")
    killed.input("numbers").send([{"n": -3}])
    began = time.monotonic()

    def end():
        killed.input("numbers").advance_to(1)  # which the worker may not live to answer
        killed.output("numbers").collect(upto=0)

    with pytest.raises(WorkerError, match="worker 0 went away without a word: it was killed"):
        end()
    assert time.monotonic() - began < 60
    with pytest.raises(WorkerError, match="worker 0 went away"):
        killed.input("numbers").send([{"n": 1}])
    killed.abort()
    assert spark.range(5).count() == 5


def test_a_job_that_fails_without_a_word_of_its_workers_is_an_error_of_ours(spark, service):
    class NotThere:
        """What cannot be unpickled in a task."""

        def __call__(self, scope, numbers):
            raise NotImplementedError

        def __reduce__(self):
            return int, ("not a number",)

    with pytest.raises(
        ServiceError, match="the Spark job of the service failed, and none of its workers reported"
    ) as caught:
        pointstamp.spark.serve(
            NotThere(), spark, inputs={"numbers": "n long"}, outputs={"n": "n long"}
        )
    assert isinstance(caught.value.__cause__, Py4JJavaError)
    assert "ValueError: inv" in str(caught.value.__cause__)


def test_a_service_goes_on_when_a_worker_is_killed(spark, service, tmp_path):
    flag = tmp_path / "killed"

    def build(scope, numbers):
        def check(batch):
            if -5 in batch.column("n").to_pylist() and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return batch

        return numbers.exchange("n").map_batches(check)

    policy = ps.RestartPolicy(delay_s=0.0)
    with pointstamp.spark.serve(
        build,
        spark,
        1,
        inputs={"numbers": "n long"},
        outputs={"n": "n long"},
        name="restarted",
        checkpoint=tmp_path / "service",
        restart=policy,
    ) as running:
        input = running.input("numbers")
        for epoch, numbers in enumerate([[1], [2, -5], [3]]):
            input.send(spark.createDataFrame([(n,) for n in numbers], "n long"))
            input.advance_to(epoch + 1)
        pairs = running.output("n").read(2)
        found = [(epoch, n) for epoch, b in pairs for n in b["n"].to_pylist()]
        assert sorted(found) == [(0, 1), (1, -5), (1, 2), (2, 3)]
        # The session knows where the workers are now.
        read = spark.read.format("pointstamp").option("service", "restarted").load()
        assert sorted(row.n for row in read.collect()) == [-5, 1, 2, 3]
    assert flag.exists()
