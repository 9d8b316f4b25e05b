"""A Spark session fit for barrier stages, and how many tasks it can run at once.

The workers of a dataflow are the tasks of one barrier stage, which Spark starts
together or not at all: there must be a slot for each. `session` gives the active
session, or starts one on this machine with slots enough; `check_slots` and
`check_allocation` say before a job starts that it cannot (Spark says so late, and the
scheduler of 4.3 does not always survive it).

Only public API and configuration are used, which a Spark Connect session has too.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.communication.target import check_workers
from pointstamp.errors import SparkSetupError, UsageError
from pointstamp.formats.owned_folder import owned_folder
from pointstamp.spark import java, spark_home
from pointstamp.spark.held_slots import held_by_services

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Local to this machine: driver and tasks talk over the loopback interface.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # As many records as a container holds (Spark's own limit in bytes holds too).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Of rows that are large themselves, which is what a dataflow is fed with, Spark's limit
    # of 64 MiB would have the buffer grow and move many times, and the worker wait.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    # Workers are forks of a process that has imported what they need.
    "spark.python.daemon.module": "pointstamp.spark.python_daemon",
    # A barrier stage that failed is run again, all of it. On one machine nothing
    # is lost by chance, so that would only be a wait of four times for the error.
    "spark.stage.maxConsecutiveAttempts": "1",
}
"""The settings of a session on this machine, where the user's say nothing else."""

# What goes wrong reaches the caller as an exception with its cause, so the log
# would only say it twice. The file has to be there when the JVM starts. PySpark's
# gateway resets the root to WARN, and says so, unless it has a level of its own.
_LOG_SETTINGS = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def session(master: str | None = None, workers: int = 1) -> SparkSession:
    """The active Spark session, or a new local one with slots for `workers` tasks.

    Parameters
    ----------
    master : str, optional
        As Spark has it: `"local[4]"`, `"spark://host:7077"`, `"sc://host"` for Spark
        Connect. Without it: the active session, what `spark-submit` or
        SPARK_REMOTE says, or else this machine with a slot per processor and per
        worker.
    workers : int
        How many tasks of a barrier stage it must be able to run at once.

    Returns
    -------
    SparkSession
        The caller stops it, if it is the caller's to stop.

    Raises
    ------
    SparkSetupError
        When PySpark, Java or bash is absent, when another session with another master
        is active, when Spark does not start, or when there are fewer slots than workers.
    """
    check_workers(workers)
    if master is not None and not isinstance(master, str):
        raise UsageError(f"a master of Spark is a text such as 'local[4]', and not {master!r}")
    spark = _active(master) or _start(master, workers)
    check_slots(spark, workers)
    return spark


def is_active() -> bool:
    """Whether this program has an active Spark session, which `session` would return."""
    spark = _known()
    return spark is not None and not is_stopped(spark)


def _known() -> SparkSession | None:
    """The session of this program, whichever thread asks; it may have been stopped.

    Spark has an active session for each thread, and a default one for all others.
    """
    known = _spark_session()
    from pyspark.errors import PySparkException

    try:
        return known.getActiveSession() or known.active()
    except PySparkException:
        return None


def is_stopped(spark: SparkSession) -> bool:
    """Whether a classic session is over; of one of Spark Connect that is not known."""
    context = context_of(spark)
    if context is None:
        return False
    java: Any = context._jsc
    return java is None or bool(java.sc().isStopped())


def _spark_session() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as cause:
        raise SparkSetupError(
            "PySpark is not installed here: pip install 'pointstamp[spark]'"
        ) from cause
    return SparkSession


def _active(master: str | None) -> SparkSession | None:
    spark = _known()
    if spark is not None and is_stopped(spark):
        spark.stop()  # so that PySpark starts another, and does not give this one again
        return None
    if spark is None or master is None:
        return spark
    running = spark.conf.get("spark.master", None)
    if running != master:
        raise SparkSetupError(
            f"a Spark session with master {running} is active, and master {master} is asked "
            f"for; stop that session first, or do not ask for a master"
        )
    return spark


def _start(master: str | None, workers: int) -> SparkSession:
    builder = _spark_session().builder
    if master is None and {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"} & os.environ.keys():
        return _made(builder, os.environ.get("SPARK_REMOTE", "that spark-submit gave"))
    if master is not None and master.startswith("sc://"):
        return _made(builder.remote(master), master)
    _check_bash()
    slots = max(workers, os.cpu_count() or 1)
    master = master or f"local[{slots}]"
    with ExitStack() as started:
        environment = {"JAVA_HOME": str(started.enter_context(java.for_spark()))}
        builder = builder.master(master).appName("pointstamp")
        if master.startswith("local"):
            log_settings = started.enter_context(_log_settings())
            for key, value in LOCAL.items():
                builder = builder.config(key, value)
            options = f"-Dlog4j2.configurationFile={log_settings}"
            # Tasks run the Python that has this package: the one that runs us.
            environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
            if "SPARK_HOME" not in os.environ and (home := spark_home.of_installed()) is not None:
                environment["SPARK_HOME"] = str(home)
                options += spark_home.java_options(home)
            builder = builder.config("spark.sql.shuffle.partitions", slots)
            builder = builder.config("spark.driver.extraJavaOptions", options)
        started.enter_context(_environment(environment))
        return _made(builder, master)


def _check_bash() -> None:
    if shutil.which("bash") is None:
        raise SparkSetupError(
            f"Spark's launcher is written for bash, and there is none on the PATH "
            f"({os.environ.get('PATH', '')}): install bash, or add its folder to the PATH"
        )


def _made(builder: SparkSession.Builder, master: str) -> SparkSession:
    """The session, or why there is none in words of ours: Java's are a page long."""
    try:
        return builder.getOrCreate()
    except Exception as cause:
        raise SparkSetupError(
            f"Spark does not start with master {master}: {reason(str(cause))}; correct the "
            f"master (as local[4], spark://host:7077 or sc://host), or start what is there"
        ) from cause


def reason(text: str) -> str:
    r"""What PySpark's exception says, without the stack of Java.

    >>> reason("An error occurred while calling None.X.\n: a.B: no luck\n\tat c.D(E.scala:1)")
    'a.B: no luck'
    >>> reason("[JAVA_GATEWAY_EXITED] Java gateway process exited early.")
    '[JAVA_GATEWAY_EXITED] Java gateway process exited early (Java says why above)'
    """
    of_java = re.search(r"^: (.+)", text, re.MULTILINE)
    if of_java is not None:
        return of_java[1]
    said = next(iter(text.splitlines()), "it does not say why").rstrip(".")
    # Java ended before PySpark could ask it; what it had to say went to standard error.
    return f"{said} (Java says why above)" if "JAVA_GATEWAY_EXITED" in text else said


@contextmanager
def _log_settings() -> Iterator[str]:
    with owned_folder("pointstamp-log-") as folder:
        path = folder / "log4j2.properties"
        path.write_text(_LOG_SETTINGS)
        yield path.as_uri()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for a child that is started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def check_session(spark: Any) -> None:
    """Refuse what is no session, such as the text of a master."""
    if not hasattr(spark, "conf"):
        raise UsageError(
            f"a session of Spark is needed, such as pointstamp.spark.session() gives, and not "
            f"{spark!r}"
        )


def check_running(spark: SparkSession) -> None:
    """Refuse a session that was stopped, by the program or by Spark itself; and what is none."""
    check_session(spark)
    if is_stopped(spark):
        raise SparkSetupError(
            "the Spark session was stopped, by the program or by Spark itself, which says why in "
            "its log: make its DataFrames again with another one, such as "
            "pointstamp.spark.session() starts"
        )


def check_slots(spark: SparkSession, workers: int) -> None:
    """Refuse a barrier stage of `workers` tasks where Spark has not the slots for it.

    Raises
    ------
    SparkSetupError
        With how many there are, how many are needed and what to set; and where services of
        this program hold so many that the stage would wait until they end. A cluster
        that does not say beforehand how large it is passes: Spark counts again
        when the stage starts.
    """
    slots = count_slots(spark)
    if slots is None:
        return
    master = spark.conf.get("spark.master", None) or ""
    if slots < workers:
        remedy = (
            f"set its master to local[{workers}] or more"
            if master.startswith("local")
            else "set spark.executor.instances times spark.executor.cores to that or more"
        )
        raise SparkSetupError(
            f"{workers} workers need {workers} slots at once, and the Spark session with master "
            f"{master} has {slots}: ask for at most {slots} workers, or {remedy}"
        )
    held = held_by_services(spark)
    free = slots - sum(held.values())
    if free < workers:
        fewer = f"ask for at most {free} workers, " if free > 0 else ""
        raise SparkSetupError(
            f"{workers} workers need {workers} slots at once, and "
            f"{said_of_free(slots, master, held)}: {fewer}stop what is not needed, or start the "
            f"session with {slots - free + workers} slots"
        )


def said_of_free(slots: int, master: str, held: Mapping[str, int]) -> str:
    """How many slots are free, and which services hold the others, in words.

    >>> said_of_free(4, "local[4]", {"a": 2, "b": 1})[-79:]
    "only 1 are free, as long as the service 'a' holds 2 and the service 'b' holds 1"
    """
    of_services = " and ".join(f"the service {name!r} holds {n}" for name, n in held.items())
    return (
        f"of the {slots} of the Spark session with master {master} only "
        f"{max(slots - sum(held.values()), 0)} are free, as long as {of_services}"
    )


def check_allocation(spark: SparkSession) -> None:
    """Refuse a barrier stage where executors come and go as Spark sees fit.

    Spark refuses it as well (`SPARK-24942`), behind the stages that pack the inputs. On
    `local[n]` there are no executors, and the setting means nothing.

    Raises
    ------
    SparkSetupError
        With the setting that has it so.

    Examples
    --------
    >>> class Session:
    ...     conf = {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"}
    >>> check_allocation(Session)
    Traceback (most recent call last):
    ...
    pointstamp.errors.SparkSetupError: workers run as tasks of a barrier stage, which Spark does \
not allow with dynamic allocation, and spark.dynamicAllocation.enabled is true: start the session \
with spark.dynamicAllocation.enabled=false, spark.executor.instances and spark.executor.cores
    """
    check_session(spark)
    is_dynamic = (spark.conf.get("spark.dynamicAllocation.enabled", None) or "").lower() == "true"
    if is_dynamic and not is_local(spark):
        raise SparkSetupError(
            "workers run as tasks of a barrier stage, which Spark does not allow with dynamic "
            "allocation, and spark.dynamicAllocation.enabled is true: start the session with "
            "spark.dynamicAllocation.enabled=false, spark.executor.instances and "
            "spark.executor.cores"
        )


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run where the session does, with no executor that could be lost: `local[n]`."""
    return bool(re.match(r"local($|\[)", spark.conf.get("spark.master", None) or ""))


def retries_stages(spark: SparkSession) -> bool:
    """Whether Spark runs a stage again that failed."""
    return int(spark.conf.get("spark.stage.maxConsecutiveAttempts", None) or 4) > 1


def count_slots(spark: SparkSession) -> int | None:
    """How many tasks the session can run at once; None where it does not say.

    Of each executor the cores that are left by its last task that fits are no slot.
    """
    executors = _executors(spark)
    per_task = int(spark.conf.get("spark.task.cpus", "1") or 1)
    return None if executors is None else executors[0] * (executors[1] // per_task)


def _executors(spark: SparkSession) -> tuple[int, int] | None:
    """How many executors there are, and the cores of each."""
    master = spark.conf.get("spark.master", None) or ""
    if master.startswith("local-cluster"):
        n_executors, cores, *_ = map(int, re.findall(r"\d+", master))
        return n_executors, cores
    if master.startswith("local"):
        all_cores = local_cores(master)
        all_cores = _parallelism(spark) if all_cores is None else all_cores
        return None if all_cores is None else (1, all_cores)
    instances, each, most = (
        int(spark.conf.get(f"spark.{name}", None) or 0)
        for name in ("executor.instances", "executor.cores", "cores.max")
    )
    if not instances or not each:
        return None
    is_limited = master.startswith("spark:") and most  # which is of a standalone cluster alone
    return min(instances, most // each) if is_limited else instances, each


def local_cores(master: str) -> int | None:
    """How many cores a master on one machine stands for; None if it is all there are.

    >>> local_cores("local"), local_cores("local[3]"), local_cores("local[3, 2]")
    (1, 3, 3)
    >>> local_cores("local[*]") is None
    True
    """
    if master == "local":
        return 1
    numbers = [int(number) for number in re.findall(r"\d+", master.partition("[")[2])]
    return None if "*" in master or not numbers else numbers[0]


def _parallelism(spark: SparkSession) -> int | None:
    """What a classic session on `local[*]` counts as its cores; None with Connect."""
    if spark.conf.get("spark.default.parallelism", None):
        return None  # a wish, not a count
    context = context_of(spark)
    return None if context is None else context.defaultParallelism


def java_context() -> Any:
    """Java's context of the classic session of this program; an exception where there is none."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    return context._jsc.sc()


def context_of(spark: SparkSession) -> SparkContext | None:
    """The context of a classic session; one of Spark Connect has none."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except PySparkException:
        return None
