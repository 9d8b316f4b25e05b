"""`run` on a cluster with two machines, from a classic session and through Spark Connect.

Both are sessions of one application, whose driver serves Spark Connect beside its own
session; it has two executors with two slots each. See `standalone` for what is real here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pointstamp
from tests.free_ports import free_port
from tests.spark.standalone import CORES, Cluster, Program, Raised, cluster, program

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]

SLOTS = 2 * CORES


PORT = free_port()

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": CORES,
    "spark.executor.instances": 2,
    "spark.sql.shuffle.partitions": 2,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    # What fails is tried again, as it should be, twice at most: workers that end while an executor
    # is lost have the second attempt be of the others alone, which fails.
    "spark.task.maxFailures": 1,
    "spark.stage.maxConsecutiveAttempts": 3,
    # An executor that died is back in seconds; Spark would look again only after 15.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    # Everything here is as right where tasks are run twice.
    "spark.speculation": "true",
    # Of a task that is cancelled Spark kills the Python, later; what ends here, ends by itself.
    "spark.python.task.killTimeout": "10min",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": PORT,
}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, quick_to_start: str) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), quick_to_start) as running:
        yield running


@pytest.fixture(scope="module")
def classic(machines: Cluster, quick_to_start: str) -> Iterator[Program]:
    of_java = dict.fromkeys(
        ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"),
        f"'{quick_to_start}'",
    )
    with program(machines.environment, machines.master, SETTINGS | of_java) as running:
        yield running


@pytest.fixture(scope="module")
def connect(machines: Cluster, classic: Program) -> Iterator[Program | None]:
    if importlib.util.find_spec("grpc") is None:
        yield None
        return
    with program(machines.environment, f"sc://127.0.0.1:{PORT}") as running:
        yield running


@pytest.fixture(params=["connect", "classic"])
def driver(request: pytest.FixtureRequest, connect: Program | None, classic: Program) -> Program:
    """A program of each kind, whose executors may or may not have Pointstamp."""
    running = {"connect": connect, "classic": classic}[request.param]
    if running is None:
        pytest.skip("Spark Connect needs grpcio, which is not installed")
    return running


@pytest.fixture
def ready(driver: Program) -> Program:
    """A program of each kind, whose executors have Pointstamp."""
    driver.call(install_on_executors)
    return driver


# What programs do. Spark's tasks cannot import this file, so what they run is defined
# inside of functions, and travels by value.


def install_on_executors(spark: Any) -> bool:
    return pointstamp.spark.install_on_executors(spark)


def ask_a_graph(spark: Any) -> bool:
    """Whether a graph of DataFrames answers as it should: an algorithm, a search, messages."""
    from pyspark.sql.functions import col

    vertices = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], "id string, age long")
    edges = spark.createDataFrame([("a", "b"), ("b", "a"), ("b", "c")], "src string, dst string")
    graph = pointstamp.spark.graph(vertices, edges, workers=2)
    assert {row.id: row.count for row in graph.degrees.collect()}.keys() == {"a", "b", "c"}
    assert {row.kcore for row in graph.k_core().collect()} == {1}
    found = graph.find("(x)-[e]->(y)", "x.age < y.age").collect()
    assert sorted((row.x.id, row.e.dst) for row in found) == [("a", "b"), ("b", "c")]
    assert graph.find("(x)-[e]->(y)", col("x.age") < col("y.age")).count() == 2
    assert graph.count("(x)-[e*2]->(y)") == 3
    assert graph.bfs("id = 'a'", "id = 'c'").columns == ["from", "e0", "v1", "e1", "to"]
    ages = graph.aggregate_messages("sum(msg) as ages", send_to_dst="src.age").collect()
    return {row.id: row.ages for row in ages} == {"a": 2, "b": 1, "c": 2}


def ship_other_version(spark: Any, folder: str, python: str) -> bool:
    """Become a program of another version, whose executors start new processes."""
    from pointstamp.spark import installation

    installation.PACKAGE = Path(shutil.copytree(installation.PACKAGE, Path(folder, "pointstamp")))
    (installation.PACKAGE / "another.py").touch()
    spark.sparkContext.pythonExec = python
    return pointstamp.spark.install_on_executors(spark)


def which(spark: Any) -> bool:
    """Whether all workers have the other version."""
    import pyarrow as pa

    def build(scope: Any) -> Any:
        import importlib.util

        has_it = importlib.util.find_spec("pointstamp.another") is not None
        return scope.batches_to_stream([pa.RecordBatch.from_pydict({"has_it": [has_it]})])

    frame = pointstamp.spark.run(build, {}, "has_it boolean", spark=spark)
    return [row.has_it for row in frame.collect()] == [True] * SLOTS


def ship_to(spark: Any, python: str, version: str | None = None) -> bool:
    """Ship, with another Python on the executors, or from one that says that it is another."""
    context = spark.sparkContext
    before = context.pythonExec, context.pythonVer
    context.pythonExec, context.pythonVer = python, version or before[1]
    try:
        return pointstamp.spark.install_on_executors(spark)
    finally:
        context.pythonExec, context.pythonVer = before


def count(spark: Any, n: int, workers: int | None = None) -> int:
    """How many of `n` numbers come back from some workers, which exchange them."""

    def build(scope: Any, numbers: Any) -> Any:
        return numbers.exchange("id")

    inputs = {"numbers": spark.range(0, n, 1, 3)}
    return int(pointstamp.spark.run(build, inputs, "id long", workers).count())


def count_with(spark: Any, python: str, n: int) -> int:
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, python
    try:
        return count(spark, n, SLOTS)
    finally:
        context.pythonExec = before


def sums(spark: Any, workers: int) -> dict[int, int]:
    """The sums of the numbers below 1000, by their last digit."""
    import pyarrow as pa

    def build(scope: Any, numbers: Any) -> Any:
        def total(batch: Any) -> Any:
            return batch.append_column("worker", pa.array([scope_index] * batch.num_rows))

        scope_index = scope.index
        return numbers.exchange("digit").map_batches(total)

    frame = spark.range(0, 1000, 1, 3).selectExpr("id % 10 as digit", "id")
    schema = "digit long, id long, worker long"
    result = pointstamp.spark.run(build, {"numbers": frame}, schema, workers).toArrow()
    owners = {(row["digit"], row["worker"]) for row in result.to_pylist()}
    assert len(owners) == 10  # all of a key are on one worker
    found: dict[int, int] = {}
    for row in result.to_pylist():
        found[row["digit"]] = found.get(row["digit"], 0) + row["id"]
    return found


def who_and_where(spark: Any) -> list[tuple[int, int, str, str]]:
    """Of each worker: its index, how many there are, its machine, how it runs Pointstamp.

    Spark knows its executors by where their connections to the driver come from, which is
    one address here. The workers are told two while they find each other.
    """
    import pyarrow as pa

    def build(scope: Any) -> Any:
        from pyspark import BarrierTaskContext

        import pointstamp as ps

        context = BarrierTaskContext.get()
        address = context.getTaskInfos()[context.partitionId()].address
        BarrierTaskContext.getTaskInfos = BarrierTaskContext.really  # type: ignore[attr-defined]
        me = [scope.index, scope.peers, address.partition(":")[0], ps.build_info()]
        names = ["worker", "peers", "host", "how"]
        row = {name: [value] for name, value in zip(names, me, strict=True)}
        return scope.batches_to_stream([pa.RecordBatch.from_pydict(row)])

    class OnTwoMachines:
        """What is unpickled in a task before it looks for its peers: it changes what it sees."""

        def __call__(self, scope: Any) -> Any:
            raise NotImplementedError

        def __reduce__(self) -> Any:
            return pretend, ()

    def pretend() -> Any:
        from pyspark import BarrierTaskContext

        def addresses(context: Any) -> Any:
            infos = context.really()
            executors = sorted({info.address for info in infos})
            for info in infos:
                info.address = f"127.0.0.{1 + executors.index(info.address)}:1"
            return infos

        BarrierTaskContext.really = BarrierTaskContext.getTaskInfos  # type: ignore[attr-defined]
        BarrierTaskContext.getTaskInfos = addresses  # type: ignore[method-assign]
        return build

    schema = "worker long, peers long, host string, how string"
    frame = pointstamp.spark.run(OnTwoMachines(), {}, schema, spark=spark, check=False)
    return sorted(tuple(row) for row in frame.collect())


def fail(spark: Any) -> None:
    def build(scope: Any, numbers: Any) -> Any:
        def check(batch: Any) -> Any:
            if scope_index == 1:
                raise ValueError("the very cause")
            return batch

        scope_index = scope.index
        return numbers.exchange("id").map_batches(check)

    pointstamp.spark.run(build, {"numbers": spark.range(1000)}, "id long", SLOTS).collect()


def survive(
    spark: Any, folder: str, generation: int, *, always: bool = False, writes: bool = False
) -> tuple[list[int], Counter[int]]:
    """What comes out where worker 1 kills itself once, and how often each worker began.

    Or it kills its parent's parent, which is the executor that it is a task of; or it does so
    whenever it begins. What comes out is collected, or read again from where workers write it.
    """

    def build(scope: Any, numbers: Any) -> Any:
        import os
        import signal
        import time
        from pathlib import Path

        from pyspark import BarrierTaskContext

        def victim(pid: int, generation: int) -> int:
            if not generation:
                return pid
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
            return victim(int(stat.split()[1]), generation - 1)

        def kill_once(batch: Any) -> Any:
            if index == 1:
                try:
                    Path(folder, "killed").touch(exist_ok=always)
                except FileExistsError:
                    return batch
                # One of this machine that is slow to begin would end before it has.
                until = time.monotonic() + 60
                while len(list(Path(folder).glob("worker *"))) < slots:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                os.kill(victim(os.getpid(), generation), signal.SIGKILL)
            return batch

        index = scope.index
        attempt = BarrierTaskContext.get().taskAttemptId()
        Path(folder, f"worker {index}, attempt {attempt}").touch()
        return numbers.exchange("id").map_batches(kill_once)

    slots = SLOTS
    inputs = {"numbers": spark.range(0, 1000, 1, 3)}
    found = pointstamp.spark.run(build, inputs, "id long", SLOTS, check=False)
    if writes:
        found.write.parquet(f"{folder}/out")
        found = spark.read.parquet(f"{folder}/out")
    rows = found.collect()
    attempts = Counter(int(path.name[7]) for path in Path(folder).glob("worker *"))
    return sorted(row.id for row in rows), attempts


def lose(spark: Any, folder: str) -> tuple[list[int], list[int], Counter[int]]:
    """What a kept result has, and what it has once the executor of worker 0 is lost.

    Likewise how often each worker began. Another job begins while the executor is not there.
    """

    def build(scope: Any, numbers: Any) -> Any:
        import os
        from pathlib import Path

        from pyspark import BarrierTaskContext

        stat = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2]
        attempt = BarrierTaskContext.get().taskAttemptId()
        Path(folder, f"worker {scope.index}, attempt {attempt}").write_text(stat.split()[1])
        return numbers.exchange("id")

    inputs = {"numbers": spark.range(0, 1000, 1, 3)}
    kept = pointstamp.spark.run(build, inputs, "id long", 2, check=False).cache()
    first = sorted(row.id for row in kept.collect())
    [began] = Path(folder).glob("worker 0, *")
    before = executors(spark)
    os.kill(int(began.read_text()), signal.SIGKILL)
    wait_until(lambda: executors(spark) != before)
    # With an executor less, and one that is there again in seconds.
    inputs = {"numbers": spark.range(0, 1000, 1, 3)}
    again = pointstamp.spark.run(lambda _, numbers: numbers, inputs, None, SLOTS)
    found = again.select("id").collect()  # which the driver does not wait for, but the tasks
    assert sorted(row.id for row in found) == first
    wait_until(lambda: len(executors(spark)) == len(before))
    second = sorted(row.id for row in kept.collect())
    kept.unpersist()
    attempts = Counter(int(path.name[7]) for path in Path(folder).glob("worker *"))
    return first, second, attempts


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def executors(spark: Any) -> set[str]:
    """The names of those that the driver knows."""
    return set(spark.sparkContext._jsc.sc().getExecutorIds().mkString(",").split(","))


def survive_always(spark: Any, folder: str) -> None:
    survive(spark, folder, 0, always=True)


def repeat_a_slow_task(spark: Any, folder: str) -> tuple[list[int], Counter[int], bool]:
    """What comes out where a task that reads is slow until it is run again, and is then.

    Likewise how often each worker began, and whether the task was.
    """

    def slow(batches: Any) -> Any:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        if context.partitionId() == 2:
            again, until = Path(folder, "again"), time.monotonic() + 120
            if context.attemptNumber():
                again.touch()
            while not again.exists() and time.monotonic() < until:
                time.sleep(0.02)
        yield from batches

    def build(scope: Any, numbers: Any) -> Any:
        import time
        from pathlib import Path

        from pyspark import BarrierTaskContext

        def dawdle(batch: Any) -> Any:
            time.sleep(1 if index == 1 else 0)
            return batch

        index = scope.index
        attempt = BarrierTaskContext.get().taskAttemptId()
        Path(folder, f"worker {index}, attempt {attempt}").touch()
        return numbers.exchange("id").map_batches(dawdle)

    inputs = {"numbers": spark.range(0, 1000, 1, 3).mapInArrow(slow, "id long")}
    rows = pointstamp.spark.run(build, inputs, "id long", SLOTS, check=False).collect()
    attempts = Counter(int(path.name[7]) for path in Path(folder).glob("worker *"))
    return sorted(row.id for row in rows), attempts, Path(folder, "again").exists()


def cancel(spark: Any, folder: str, how: str) -> tuple[str, int, float]:
    """What an action raises that is cancelled while a worker computes and all others wait for it.

    And how many workers began it, and how long after all their processes have ended.
    """

    def build(scope: Any, numbers: Any) -> Any:
        import os
        import time
        from pathlib import Path

        def compute(batch: Any) -> Any:
            Path(folder, "computes").touch()
            while not Path(folder, "stop").exists():
                time.sleep(0.01)
            return batch

        Path(folder, f"pid {os.getpid()}").touch()
        stream = numbers.exchange("id")
        return stream.map_batches(compute if scope.index == 0 else lambda batch: batch)

    def act() -> None:
        if how == "group":
            spark.sparkContext.setJobGroup("mine", "to be cancelled")
        elif how == "tag":
            spark.sparkContext.addJobTag("mine")
        elif how == "interrupt":
            spark.addTag("mine")
        frame = pointstamp.spark.run(build, inputs, "id long", SLOTS, check=False)
        try:
            frame.collect()
        except Exception as error:  # noqa: BLE001  (whichever it is)
            raised.append(f"{type(error).__name__}: {error}")

    def pids() -> list[str]:
        return [path.name.removeprefix("pid ") for path in Path(folder).glob("pid *")]

    inputs = {"numbers": spark.range(0, 1000, 1, 3)}
    raised: list[str] = []
    acting = threading.Thread(target=act, name="acting")
    acting.start()
    while len(pids()) < SLOTS or not Path(folder, "computes").exists():
        assert acting.is_alive(), raised
        time.sleep(0.01)
    began = time.monotonic()
    if how == "all":
        spark.sparkContext.cancelAllJobs()
    elif how == "group":
        spark.sparkContext.cancelJobGroup("mine")
    elif how == "tag":
        spark.sparkContext.cancelJobsWithTag("mine")
    else:
        spark.interruptTag("mine")
    acting.join()
    while any(_is_running(pid) for pid in pids()):
        if time.monotonic() - began > 90:
            break
        time.sleep(0.01)
    seconds = time.monotonic() - began
    Path(folder, "stop").touch()
    return raised[0], len(pids()), seconds


def _is_running(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"  # one that has ended, which its parent has not looked at yet


def count_with_dynamic_allocation(spark: Any, n: int) -> int:
    """As far as the settings say: what there is of executors stays."""
    may_set, is_dynamic = (
        "spark.sql.legacy.setCommandRejectsSparkCoreConfs",
        "spark.dynamicAllocation.enabled",
    )
    spark.conf.set(may_set, "false")
    spark.conf.set(is_dynamic, "true")
    try:
        return count(spark, n, SLOTS)
    finally:
        spark.conf.unset(is_dynamic)
        spark.conf.unset(may_set)


def serve(spark: Any, folder: str) -> tuple[list[int], int]:
    """What two workers make of a DataFrame, a table and a stream; and how many doors they have.

    It is read all at once, by a batch, and by a stream.

    Functions of the package would be looked up on executors; this one travels by value.
    """
    import pyarrow as pa

    def build(scope: Any, n: Any) -> Any:
        return n.exchange("n")

    with pointstamp.spark.serve(
        build, spark, 2, inputs={"n": "n long"}, outputs={"n": "n long"}
    ) as service:
        service.input("n").send(spark.range(0, 100, 1, 3).selectExpr("id as n"))
        service.input("n").advance_to(1)
        service.input("n").send(pa.table({"n": [100]}))
        service.input("n").advance_to(2)
        spark.range(101, 110).selectExpr("id as n").coalesce(1).write.parquet(f"{folder}/n")
        stream = spark.readStream.schema("n long").parquet(f"{folder}/n").writeStream
        stream.format("pointstamp").options(service=service.name, first_epoch="2").option(
            "checkpointLocation", f"{folder}/checkpoint"
        ).trigger(availableNow=True).start().awaitTermination()
        found = service.output("n").collect(upto=2)
        read = spark.read.format("pointstamp").option("service", service.name).load()
        assert sorted(row.n for row in read.collect()) == list(range(110))
        going = spark.readStream.format("pointstamp").option("service", service.name).load()
        going.writeStream.format("parquet").option("checkpointLocation", f"{folder}/going").trigger(
            availableNow=True
        ).start(f"{folder}/out").awaitTermination()
        assert sorted(row.n for row in spark.read.parquet(f"{folder}/out").collect()) == list(
            range(110)
        )
        doors = {door.rpartition(":")[0] for door in service.endpoints}
        assert doors <= {f"grpc://127.0.0.{n}" for n in (1, 2)} | {f"grpc://{_host(spark)}"}
        return sorted(found["n"].to_pylist()), len(service.endpoints)


def _host(spark: Any) -> str:
    return str(spark.conf.get("spark.driver.host"))


def test_executors_that_have_the_package_are_sent_nothing(
    classic: Program, machines: Cluster
) -> None:
    assert classic.call(ship_to, machines.plain) is False
    assert classic.call(count_with, machines.plain, 1000) == 1000


def test_executors_that_lack_the_package_get_it_once(
    connect: Program | None, classic: Program
) -> None:
    driver = connect or classic  # what the one adds, the other sees
    with pytest.raises(
        Raised,
        match=r"executors lack pointstamp \([^$]*install_on_executors\(spark\) brings",
    ):
        driver.call(count, 1000, SLOTS)
    assert driver.call(install_on_executors) is True
    assert driver.call(install_on_executors) is False
    assert driver.call(count, 1000, SLOTS) == 1000


def test_workers_are_tasks_on_all_machines_and_run_what_was_shipped(ready: Program) -> None:
    found = ready.call(who_and_where)
    assert [(worker, peers) for worker, peers, _, _ in found] == [(n, SLOTS) for n in range(SLOTS)]
    assert sorted(host for _, _, host, _ in found) == ["127.0.0.1"] * 2 + ["127.0.0.2"] * 2
    # Where the core is compiled here, its libraries were sent too.
    assert {how.startswith("compiled") for *_, how in found} == {
        pointstamp.build_info() == "compiled"
    }


@pytest.mark.parametrize("workers", [1, 3])
def test_answers_do_not_depend_on_the_number_of_workers(ready: Program, workers: int) -> None:
    expected = {digit: sum(range(digit, 1000, 10)) for digit in range(10)}
    assert ready.call(sums, workers) == expected


def test_a_graph_of_frames_is_asked(connect: Program | None, classic: Program) -> None:
    driver = connect or classic  # all other graphs are of classic sessions
    driver.call(install_on_executors)
    assert driver.call(ask_a_graph)


def test_what_an_operator_raises_comes_from_the_other_machine(ready: Program) -> None:
    with pytest.raises(Raised) as caught:
        ready.call(fail)
    message = str(caught.value)
    assert "worker 1 failed: operator 'MapBatches' failed at time 0" in message
    assert 'raise ValueError("the very cause")' in message
    assert ready.call(count, 10) == 10  # the session is as good as before


def test_too_few_slots_are_said_before_anything_starts(ready: Program) -> None:
    with pytest.raises(
        Raised, match=r"SparkSetupError: 5 workers need 5 slots .* spark\.executor\.instances"
    ):
        ready.call(count, 10, SLOTS + 1)


def test_libraries_that_executors_lack_are_named(classic: Program, machines: Cluster) -> None:
    with pytest.raises(Raised, match=r"SparkSetupError: executors lack cloudpickle \(.*Install"):
        classic.call(ship_to, machines.poor)


def test_another_python_on_the_executors_is_said(classic: Program, machines: Cluster) -> None:
    with pytest.raises(Raised, match=r"executors run Python 3\.\d+, and this program Python 3\.9"):
        classic.call(ship_to, machines.bare, "3.9")
    with pytest.raises(Raised, match=r"cannot be asked what they have: .*/no/such/python"):
        classic.call(ship_to, "/no/such/python")


@pytest.mark.parametrize("writes", [False, True], ids=["collected", "written"])
@pytest.mark.parametrize("generation", [0, 2], ids=["worker", "machine"])
def test_after_a_death_all_runs_again_and_the_output_comes_once(
    classic: Program, generation: int, tmp_path: Path, writes: bool
) -> None:
    classic.call(install_on_executors)
    numbers, attempts = classic.call(partial(survive, writes=writes), str(tmp_path), generation)
    assert numbers == list(range(1000))
    assert attempts == dict.fromkeys(range(SLOTS), 2)


def test_an_executor_that_is_lost_behind_the_workers_is_waited_for_and_they_run_again_all(
    classic: Program, tmp_path: Path
) -> None:
    classic.call(install_on_executors)
    first, second, attempts = classic.call(lose, str(tmp_path))
    assert first == second == list(range(1000))
    assert attempts == {0: 2, 1: 2}


def test_a_worker_that_dies_each_time_is_named(classic: Program, tmp_path: Path) -> None:
    classic.call(install_on_executors)
    with pytest.raises(Raised, match="WorkerError: worker 1 went away without a word"):
        classic.call(survive_always, str(tmp_path))
    assert Counter(path.name[7] for path in tmp_path.glob("worker *"))["1"] == 3


def test_a_task_that_spark_runs_twice_gives_its_records_once(
    classic: Program, tmp_path: Path
) -> None:
    classic.call(install_on_executors)
    numbers, attempts, was_repeated = classic.call(repeat_a_slow_task, str(tmp_path))
    assert was_repeated
    assert numbers == list(range(1000))
    assert attempts == dict.fromkeys(range(SLOTS), 1)  # workers are not


@pytest.mark.parametrize("how", ["all", "group", "tag"])
def test_workers_of_a_job_that_is_cancelled_end(classic: Program, how: str, tmp_path: Path) -> None:
    classic.call(install_on_executors)
    _check_cancelled(classic, how, tmp_path)


def test_workers_of_a_job_that_is_interrupted_through_spark_connect_end(
    connect: Program | None, tmp_path: Path
) -> None:
    if connect is None:
        pytest.skip("Spark Connect needs grpcio, which is not installed")
    connect.call(install_on_executors)
    _check_cancelled(connect, "interrupt", tmp_path)


def _check_cancelled(driver: Program, how: str, folder: Path) -> None:
    said, n_began, seconds = driver.call(cancel, str(folder), how)
    assert said.startswith("JobCancelledError: the Spark job was cancelled: ")
    assert n_began == SLOTS
    assert seconds < 60  # one, on a machine with nothing else to do
    assert driver.call(count, 10, SLOTS) == 10  # all slots are free again


def test_dynamic_allocation_is_refused_before_anything_starts(classic: Program) -> None:
    with pytest.raises(Raised, match=r"SparkSetupError: .* spark.dynamicAllocation.enabled="):
        classic.call(count_with_dynamic_allocation, 10)
    assert classic.call(count, 10, SLOTS) == 10


def test_a_service_runs_on_tasks_of_a_cluster(ready: Program, tmp_path: Path) -> None:
    assert ready.call(serve, str(tmp_path)) == (list(range(110)), 2)
    assert ready.call(count, 10, SLOTS) == 10  # all slots are free again


def serve_a_collection(spark: Any, folder: str) -> tuple[list[tuple[str, int]], str]:
    """The counts of a DataFrame's rows by key, and how a stream of rows is refused."""
    from pointstamp.errors import EpochError, UsageError

    def build(scope: Any, rows: Any) -> Any:
        return {"counts": rows.group_by("k").count()}

    with pointstamp.spark.serve(
        build, spark, 2, collections={"rows": "k string"}, checkpoint=folder
    ) as service:
        rows = service.input("rows")
        frame = spark.range(5).selectExpr("if(id < 3, 'a', 'b') as k")
        try:
            service.output("counts").to_spark()
            raise AssertionError("what is not complete was read")
        except EpochError as error:
            assert "no epoch is complete; wait for one" in str(error)  # noqa: PT017
        service.probe.wait(rows.load(frame))
        found = service.output("counts").to_spark().collect()
        stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as k")
        try:
            rows.follow(stream, "append").stop()
            said = ""
        except UsageError as error:
            said = str(error)
        return sorted((row.k, row["count"]) for row in found), said


def test_a_collection_of_a_service_takes_dataframes(
    ready: Program, connect: Program | None, tmp_path: Path
) -> None:
    counts, said = ready.call(serve_a_collection, str(tmp_path))
    assert counts == [("a", 3), ("b", 2)]
    refused = "commits the batches of a stream in this program, and Spark Connect" in said
    assert (refused, said == "") == (ready is connect, ready is not connect)


def test_executors_that_have_another_version_get_this_one(
    classic: Program, machines: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last one: an executor that starts after it may unpack either version."""
    folder = tmp_path_factory.mktemp("version")
    assert classic.call(ship_other_version, str(folder), machines.other) is True
    assert classic.call(install_on_executors) is False
    assert classic.call(which)
