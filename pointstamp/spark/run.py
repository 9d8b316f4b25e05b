"""`run`: a dataflow from DataFrames to a DataFrame.

The plan, of public DataFrame operations only:

    each input    mapInArrow: its batches become packed batches, dealt to the workers
    together      union, repartitionById(worker)
    the workers   mapInArrow(barrier=True): packed batches in, packed batches out
    the result    repartitionById(worker), mapInArrow: packed batches become batches

Spark does not let a barrier stage share a stage with `union`, nor with `limit` or
`take`; the first shuffle keeps the inputs apart from it and the second the
results. So anything can be done with the result, the barrier stage always runs
to its end, and a failure behind it does not run it again. What is shuffled are
packed batches of about 1 MiB, by number, without a sort.

*What it costs*, against one `mapInArrow` that does nothing (5 M records of two longs
from Parquet, two slots of a busy machine with two cores, medians of 5 in each run,
about 1 s for the one; spread a third). A shuffle of rows instead of packed batches costs
0.8 to 0.9 of it, before the workers or behind them: Spark writes and reads every
record by itself. Packing, the shuffle and unpacking together cost 0.2 to 0.5 more
than the one pass; two shuffles of packed batches, with a pass between them that does
nothing, 0.6 more (0.7 to 1.1 where that pass is a barrier). About 0.2 s of that is
fixed, for two more stages and their Python. Rows that hold an array per column, which
Spark unfolds (`inline` of `arrays_zip`) without a pass in Python, were no quicker than
packed batches, with strings or without. By far the most was none of these: `allGather` sleeps
a second in each task, so the tasks meet at the driver (`driver_control`).

On one machine, Parquet files whose columns are taken as they are the workers read themselves, by
Arrow (`parquet_files`); where all inputs are such, the first two steps are none, and a task of the
barrier stage begins with a row that says nothing.

Where the one input is another scan of as many partitions as there are workers, and that is known
(`scanned_inputs`), the first step is left out: the workers read it, and deal their batches among
themselves, as a scan may have all records in one of its partitions.

In a session on one machine, what counts the result itself or writes it to new files needs no last
step (`frame_writer`).

A caller that knows that a stage of its own is not needed says so, by `fused=True`, and the plan is
one step, `mapInArrow(barrier=True)`, at the cost of the one that does nothing.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial, reduce
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from pointstamp.errors import BuildError, SparkSetupError, UsageError
from pointstamp.spark.arrow_schemas import arrow_schema_of
from pointstamp.spark.held_slots import held_by_services
from pointstamp.spark.mapped_columns import MapInArrow, mappable
from pointstamp.spark.session import (
    check_allocation,
    check_running,
    check_slots,
    context_of,
    count_slots,
    is_local,
    retries_stages,
    session,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.communication.tls import Certificates
    from pointstamp.dataflow.logging_protocol import LoggerFactory
    from pointstamp.metrics.endpoint import MetricsEndpoint
    from pointstamp.spark.awaited_slots import AwaitedSlots

LOGGER = logging.getLogger("pointstamp.spark")


def run(
    build: Callable[..., Any],
    inputs: Mapping[str, DataFrame] | Sequence[DataFrame] | DataFrame,
    schema: str | StructType | None = None,
    workers: int | None = None,
    spark: SparkSession | None = None,
    *,
    progress: str = "demand",
    accumulate: bool = False,
    connections: str = "worker",
    log: LoggerFactory | None = None,
    fused: bool = False,
    certificates: Certificates | None = None,
    memory_limit: int | str | None = None,
    spill_directory: str | PathLike[str] | None = None,
    check: bool = True,
    metrics: int | str | MetricsEndpoint | None = None,
) -> DataFrame:
    """Run a dataflow as a stage: DataFrames in, DataFrame out. Lazy: nothing runs before an action.

    Another action may run the dataflow again, or take what Spark has kept of the one before;
    `cache` has it kept. The dataflow is built once by this call, in milliseconds and without a
    record, so that what is wrong with it is an error here.

    Parameters
    ----------
    build : callable
        `build(scope, edges)` builds the dataflow on each worker, and returns the
        stream of its results, batches of columns. It gets, by name, each input as a
        stream of `pyarrow.RecordBatch`: this worker's share, closed at the end,
        everything at time 0. If its parameters have other names, it gets them in
        the order of `inputs`. It travels to the workers by cloudpickle.
    inputs : DataFrame, several in a list, or a dict of them by name
        Read where they are partitioned and dealt out in large batches: their order
        means nothing, and which worker gets which rows is not defined; exchange by
        key inside.
    schema : str or StructType, optional
        Of the result. Its columns are found by name, and cast where no value
        changes by it. It may be left out where the results are records of an input as they are
        (exchanged and filtered by columns and expressions).
    workers : int, optional
        How many tasks the barrier stage has; if not given, all slots of the session but those
        that services of this program hold.
    spark : SparkSession, optional
        The session, where there are no inputs to ask for theirs.
    progress : "demand" or "eager"
        As for `pointstamp.execute`.
    accumulate : bool
        As for `pointstamp.execute`; the tasks of one machine are those that share memory.
    connections : "worker" or "machine"
        Each two tasks have a connection, or each two hosts have one, which carries what all
        their tasks send each other: fewer of them, for many tasks on several machines.
    log : Log, optional
        Where the workers write down what they do, as for `pointstamp.execute`: a folder of the
        machine that each task runs on, so one that they share, to be read as a whole. It is
        emptied by this call; each action writes it again.
    fused : bool
        Whether the tasks that read the one input are the workers, as many as it has
        partitions, and what follows runs in their stage. Then no record is shuffled, which is
        twice as quick where Spark's part is what costs. A barrier stage has conditions: the
        partitions come from a scan or a shuffle, and not out of a union, limit or coalesce,
        and of the result nothing takes only some (limit, show; write or cache it before).
        Spark refuses what breaks them, and says that it is for barrier execution. The input
        is planned by this call, which runs the shuffles in it, if there are any. A worker's
        share is as large as its partition.
    certificates : Certificates, optional
        What the workers encrypt with and know each other by, towards other machines and the
        driver (mutual TLS). They travel in the tasks, which Spark encrypts where it is set to.
    memory_limit, spill_directory : optional
        How much of what waits each worker keeps in memory, and where on the executors' machines
        the rest goes; see `pointstamp.execute`.
    check : bool
        Whether this call builds the dataflow once, as worker 0, on the machine that it is called
        on. No operator runs. Leave it out for a `build` that needs what only the executors have.
    metrics : int, str or MetricsEndpoint, optional
        Have the driver serve metrics for Prometheus at `/metrics` of this port, as for
        `pointstamp.execute`, from this call until the program ends: those of the workers that are
        there, so of the run that computes. Runs that are given the same port share it.

    Returns
    -------
    DataFrame
        In no order.

    Raises
    ------
    SparkSetupError
        When there are fewer slots than workers, or fewer that no service holds, or with dynamic
        allocation.
    BuildError
        When `build` cannot be called with these inputs, returns no stream, or the schema has to
        be given.
    ColumnError
        When an operator on an input reads a column that it has not; for an input without columns,
        or with two of one name.
    SchemaError
        When the results are those of an input, and have other columns than `schema`.
    UsageError
        For an input that is no DataFrame, another word than those for `progress` or
        `connections`, a folder with something else than a log, or a fused run of several inputs,
        or with another number of workers than partitions; where metrics cannot be served.
    MissingExtraError
        If metrics are asked for, and prometheus_client is not installed.

    An action on the DataFrame itself (collect, show, count, toArrow and the like), and a write of
    it in a classic session, raises a WorkerError where a worker failed: with the worker, the
    operator, the time and what it raised in its first line; one with what Spark failed of, where it
    could not compute an input that the workers read; and a JobCancelledError where its job was
    cancelled. What runs another DataFrame that is made of it gets Spark's exception, with the same
    in the midst of it.
    Its jobs are described in Spark's UI as `pointstamp: triangles, 2 workers`, and nodes of the
    plan have such names with either. How many records came in and went out, how many bytes the
    workers exchanged, how many steps they took and how often loops went round is logged by
    `pointstamp.spark`, at INFO, when all workers have ended well and the driver can be reached from
    them.

    Examples
    --------
    The triangles of a graph, with a worker per slot of the session::

        def triangles(scope, edges):
            return motifs(edges, "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")

        run(triangles, {"edges": edges}, "a long, b long, c long").show()
    """
    from pointstamp.communication.authentication import new_secret
    from pointstamp.communication.target import check_workers
    from pointstamp.communication.tcp import check_connections
    from pointstamp.operators.building import takes_names
    from pointstamp.runtime.run_options import check_options, is_eager
    from pointstamp.spark.actions import planned_later, with_actions
    from pointstamp.spark.awaited_slots import AwaitedSlots
    from pointstamp.spark.driver_control import worker_config
    from pointstamp.spark.given_inputs import inputs_by_name
    from pointstamp.spark.known_schemas import struct_of
    from pointstamp.spark.pickled_job import PickledJob
    from pointstamp.spark.scanned_inputs import ScannedInputs
    from pointstamp.spark.task import Job, work

    inputs = inputs_by_name(build, inputs)
    if fused:
        _check_one(inputs)
    by_name = takes_names(build, list(inputs))  # before a session is started for it
    spark = spark or _session_of(inputs)
    check_running(spark)
    check_allocation(spark)
    if fused:
        workers = _partitions(inputs, workers)
    workers = workers if workers is not None else all_slots(spark)
    check_workers(workers)
    check_slots(spark, workers)
    eager = is_eager(progress)
    check_connections(connections)
    check_options(
        progress,
        log,
        accumulate=accumulate,
        memory_limit=memory_limit,
        spill_directory=spill_directory,
    )
    if check:
        schema = _checked(build, inputs, schema, workers, by_name=by_name)
    elif schema is None:
        raise BuildError("schema= has to be given where check=False")
    control = worker_config(spark, certificates)
    counted = log
    if metrics is not None:
        # Not above: few runs have metrics, and others need nothing that they are made of.
        from pointstamp.spark.driver_metrics import metered_on_driver

        counted = metered_on_driver(metrics, control, workers, log)
    if log is not None:
        log.prepare()

    frames = list(inputs.values())
    scanned = ScannedInputs(frames)
    scans = scanned.parquet_scans()
    reads_records = not scans and (fused or scanned.is_scanned(workers))
    # Spark reads a text that is not simple here; nothing runs.
    struct = deepcopy(struct_of(schema))  # the program may go on to change its own
    arrow_schema = arrow_schema_of(struct, "the results")
    plural = "" if workers == 1 else "s"
    description = f"pointstamp: {_title(build)}, {workers} worker{plural}"
    job = Job(
        build,
        tuple(inputs),
        by_name,
        arrow_schema,
        new_secret(),
        workers,
        control,
        eager,
        counted,
        frames[0].schema.names if reads_records else None,
        scans,
        fused,
        False,
        certificates,
        accumulate,
        memory_limit,
        None if spill_directory is None else fspath(spill_directory),
        connections,
        description,
    )
    LOGGER.info("%s is planned, as a barrier stage", description, extra={"workers": workers})
    dealt = {number: frame for number, frame in enumerate(frames) if number not in scans}
    read = [frames[number] for number in scans]
    if reads_records:
        arrived = mappable(frames[0])
    elif dealt:
        arrived = arriving(dealt, workers, AwaitedSlots.of(spark, control, workers))
    else:
        arrived = spark.range(0, workers, 1, workers)  # a row for each, so that there are tasks

    def task(job: Job | PickledJob, *, gives_records: bool) -> MapInArrow:
        return _named(work(job, gives_records=gives_records), description)

    if fused:
        arrived = _beside(arrived, read)
        result = arrived.mapInArrow(task(job, gives_records=True), struct, barrier=True)
        return with_actions(result, control, description, workers)
    context = context_of(spark)

    def plan(job: Job | PickledJob) -> DataFrame:
        return leaving(_beside(arrived, read), task(job, gives_records=False), workers, struct)

    if context is None or not is_local(spark) or retries_stages(spark):
        # Spark retries no barrier stage that hands its results to an action.
        return with_actions(plan(job), control, description, workers)
    pickled = PickledJob(job, context)
    whole = arrived.mapInArrow(task(pickled, gives_records=True), struct, barrier=True)
    whole = with_actions(whole, control, description, workers)
    return planned_later(whole, partial(plan, pickled), struct, control, description, workers)


def _checked(
    build: Callable[..., Any],
    inputs: Mapping[str, DataFrame],
    schema: str | StructType | None,
    workers: int,
    *,
    by_name: bool,
) -> str | StructType:
    """The schema of the results, which are those that the dataflow has if that is known."""
    import pyarrow
    from pyspark.sql.types import StructType

    from pointstamp.containers.conform import conform
    from pointstamp.operators.building import name_of
    from pointstamp.spark.dry_build import InputStream, dry_build
    from pointstamp.spark.known_schemas import struct_of

    schemas = {
        name: arrow_schema_of(frame.schema, f"the input {name!r}") for name, frame in inputs.items()
    }
    stream = dry_build(build, schemas, workers, by_name=by_name)
    if schema is None:
        if not isinstance(stream, InputStream):
            raise BuildError(
                f"which columns {name_of(build)} makes is not known before it runs: give schema=, "
                "as in schema='a long, b string'"
            )
        return inputs[stream.input].schema
    if isinstance(stream, InputStream):
        struct = struct_of(schema)
        if isinstance(struct, StructType):
            nothing = pyarrow.RecordBatch.from_pylist([], schema=stream.schema)
            conform(nothing, arrow_schema_of(struct, "the results"))
    return schema


def arriving(
    frames: Mapping[int, DataFrame], workers: int, awaited: AwaitedSlots | None
) -> DataFrame:
    """The records of several DataFrames as packed batches, with those of a worker in one partition.

    Each has the number of its DataFrame as its input. They are there when there are slots for the
    workers, if that is to be `awaited`.
    """
    packed = _packed()
    dealt = []
    for number, frame in frames.items():
        task = _distribute(number, workers, frame.schema.names, awaited)
        dealt.append(mappable(frame).mapInArrow(task, packed))
    return reduce(_union, dealt).repartitionById(workers, "worker")


def _beside(arrived: DataFrame, read: Iterable[DataFrame]) -> DataFrame:
    """`arrived`, in whose plan Spark finds that `read` is read, and computes nothing of it.

    So it refuses to overwrite files that are read.
    """
    columns = [f"cast(null as {kind}) as {name}" for name, kind in arrived.dtypes]
    return reduce(_union, (frame.where("false").selectExpr(*columns) for frame in read), arrived)


def leaving(arrived: DataFrame, task: MapInArrow, workers: int, struct: StructType) -> DataFrame:
    """What the workers make of packed batches, which is packed batches too, as records."""
    results = arrived.mapInArrow(task, _packed(), barrier=True)
    return results.repartitionById(workers, "worker").mapInArrow(_unpack(), struct)


def _packed() -> StructType:
    """The columns of packed batches, which Spark is not asked to read."""
    from pointstamp.spark import packed_batches
    from pointstamp.spark.known_schemas import struct_of

    return struct_of(packed_batches.SCHEMA)


def _title(build: Callable[..., Any]) -> str:
    """What Spark's UI calls a function: without where it was defined, or what it is given.

    >>> _title(partial(run, workers=2)), _title((lambda: lambda: 0)())
    ('run', '<lambda>')
    """
    while isinstance(build, partial):
        build = build.func
    name: str = getattr(build, "__qualname__", type(build).__qualname__)
    return name.rpartition("<locals>.")[2]


def _named(task: MapInArrow, name: str) -> MapInArrow:
    """`task`, which Spark's plans call `name`."""
    task.__name__ = task.__qualname__ = name
    return task


def _session_of(inputs: Mapping[str, DataFrame]) -> SparkSession:
    for frame in inputs.values():
        return frame.sparkSession
    return session()


def _check_one(inputs: Mapping[str, DataFrame]) -> None:
    """Refuse to fuse with other than one input."""
    if len(inputs) != 1:
        raise UsageError(
            f"a fused run reads one DataFrame, in whose tasks the workers are, and not "
            f"{len(inputs)}; leave out fused=True"
        )


def _partitions(inputs: Mapping[str, DataFrame], workers: int | None) -> int:
    """How many partitions the one input has, which are to be the workers."""
    ((name, frame),) = inputs.items()
    if context_of(frame.sparkSession) is None:
        raise SparkSetupError(
            "a fused run has to know how many partitions its input has, which Spark Connect does "
            "not say; leave out fused=True"
        )
    found: int = frame.rdd.getNumPartitions()
    if not found:
        raise UsageError(
            f"input {name!r} has no partitions, as it is empty, and a fused run makes a worker of "
            "each; leave out fused=True"
        )
    if workers is None or workers == found:
        return found
    raise UsageError(
        f"input {name!r} has {found} partitions, which a fused run makes as many workers of, and "
        f"{workers} were asked for; repartition it, or leave out workers= or fused=True"
    )


def all_slots(spark: SparkSession) -> int:
    """How many tasks the session can run at once beside the services of this program.

    `SparkSetupError` if it does not say.
    """
    slots = count_slots(spark)
    if slots is None:
        raise SparkSetupError(
            "the Spark session does not say how many slots it has: say how many workers to run"
        )
    # One where all are held: it is refused with the services that hold them.
    return max(slots - sum(held_by_services(spark).values()), 1)


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.union(right)


LACKING = (
    "The Python of this executor has not all that Pointstamp needs: "
    "pointstamp.spark.install_on_executors(spark) brings Pointstamp to it, and says what else is "
    "missing"
)


def _distribute(
    input: int, workers: int, names: list[str], awaited: AwaitedSlots | None
) -> MapInArrow:
    # Where Pointstamp is not there, the task says so.
    pickled = None if awaited is None else pickle.dumps(awaited)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        try:
            from pointstamp.spark import packed_batches
        except ModuleNotFoundError as error:
            error.add_note(LACKING)
            raise

        context = TaskContext.get()
        assert context is not None  # there is one in every task
        named = (batch.rename_columns(names) for batch in batches)
        partition = context.partitionId()
        yield from packed_batches.distribute(named, input, partition, workers)
        if pickled is not None:
            pickle.loads(pickled).wait(partition)

    return _named(task, f"pointstamp: input {input}")


def _unpack() -> MapInArrow:
    def task(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pointstamp.spark import packed_batches

        return (packed.batch for packed in packed_batches.unpack(rows))

    return _named(task, "pointstamp: results")
