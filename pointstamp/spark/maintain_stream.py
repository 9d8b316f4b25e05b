"""`maintain_stream`: collections kept up to date by a query of Spark, each batch of it an epoch.

The query is a plan of DataFrames, as that of `run`, and lazy:

    each stream   mapInArrow: its batches become packed batches, dealt to the workers
    together      union, repartitionById(worker)
    the workers   mapInArrow(barrier=True): packed batches in, what changed of the result out
    the result    repartitionById(worker), mapInArrow: packed batches become batches

So it stands wherever a stream of Spark's may stand: in front of `writeStream`, through Spark
Connect, and in a streaming table of a declarative pipeline, which allows no function on the driver.
All that happens, happens in the tasks. They begin with the snapshot of the batch before, and write
the next; one of them commits it, under the name of the batch, before any has given a row. A batch
that Spark repeats finds it committed, runs nothing, and gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pointstamp.errors import BuildError, UsageError
from pointstamp.spark.session import check_slots, context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pointstamp.communication.tls import Certificates


def maintain_stream(
    build: Callable[..., Any],
    streams: Mapping[str, DataFrame],
    *,
    form: str = "append",
    diff: str | None = None,
    checkpoint: Any,
    workers: int | None = None,
    collections: Mapping[str, Any] | None = None,
    certificates: Certificates | None = None,
) -> DataFrame:
    """Maintain a collection by a streaming query's batches; returns the stream of its changes.

    Each batch of the query is an epoch. Its tasks load what was kept of the batch before, and
    write what has to be kept for the next, so that nothing runs between batches, and nothing has
    to be started before. A service (`serve`) keeps the same in memory, and is for batches that
    are seconds apart.

    Parameters
    ----------
    build : callable
        As that of `pointstamp.View` and `serve`: it gets a `Collection` for each input, and
        returns one. It travels to the workers by cloudpickle.
    streams : dict of DataFrame by name
        What changes of each input: DataFrames of streams.
    form : "append", "cdf" or "diff"
        How that is said: by rows that are added; by the columns of Delta's change data feed; by
        how often each row is added.
    diff : str, optional
        The column that says so, of integers, which are below 0 for rows that are removed.
    checkpoint : path, URI or Checkpoint
        A folder that all executors reach. Each query has a folder of its own in it, by its id,
        which Spark keeps in the `checkpointLocation` of the query.
    workers : int, optional
        How many tasks a batch has; all slots of the session if not given. It may be another
        number when a query is started again.
    collections : mapping, optional
        Of names to schemas, as for `serve`; those of the DataFrames, if not given.
    certificates : Certificates, optional
        As for `run`.

    Returns
    -------
    DataFrame
        A stream, for a query with output mode "append": the change data feed of the result. It has
        the columns of that, `_change_type` ("insert" or "delete"), `_commit_version`, which is the
        number of the batch, from 0, and `_commit_timestamp`, when it was committed. A diff of n is
        n rows.

    Raises
    ------
    UsageError
        For a form that there is not, or a checkpoint that tasks cannot reach.
    SchemaError
        If the columns of a stream do not fit its form and schema.
    BuildError
        If `build` returns something else than one collection.
    SparkSetupError
        When there are fewer slots than workers.

    A query fails with what is wrong with a row (`DataError`) or with the folder: if what it has of
    batches is not what the query has (`CheckpointError`). The batch has changed nothing then.

    Notes
    -----
    *Exactly once*, as far as what writes the stream is: a batch that Spark repeats gives the rows
    that it gave. What the query keeps and the folder belong together: copy or remove both. A query
    that begins anew, without its `checkpointLocation`, has another id, and so begins with nothing
    kept, as it should; what was kept for the other one stays until it is removed.

    In a declarative pipeline, give `with_schema(spark.readStream.table("edges"), ...)`, for there
    Spark may not be asked for columns; and `workers`, where the master does not say how many.

    Examples
    --------
    ::

        moved = maintain_stream(components, {"edges": stream}, checkpoint="s3://bucket/components")
        moved.writeStream.option("checkpointLocation", "s3://bucket/query").toTable("moved")
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from pointstamp.communication.target import check_workers
    from pointstamp.operators.building import name_of
    from pointstamp.service.checkpoint_config import checkpoint_of
    from pointstamp.service.epoch_run import check_inputs
    from pointstamp.service.feed_columns import feed_schema
    from pointstamp.service.spec import RESULT, service_spec
    from pointstamp.spark.awaited_slots import AwaitedSlots
    from pointstamp.spark.batch_epochs import BatchTask, StreamOfChanges
    from pointstamp.spark.feed_forms import given_schemas
    from pointstamp.spark.run import all_slots, arriving, leaving

    if not isinstance(streams, Mapping):
        raise UsageError(
            f"maintain_stream is given a dict of DataFrames by input, and not {streams!r:.200}"
        )
    if not streams:
        raise UsageError(
            "maintain_stream is given a dict of DataFrames by input, and this one has none: a "
            'query takes the changes of one input or more, as {"sales": stream}, each by the name '
            "that build has for it"
        )
    for name, frame in streams.items():
        _check_stream(name, frame)
    place = checkpoint_of(checkpoint)
    if place is None or place.uri is None:
        raise UsageError(
            "maintain_stream keeps what it has in a folder: give it by checkpoint=, as a path or a "
            f"URI, and not as {checkpoint!r}"
        )
    spark = next(iter(streams.values())).sparkSession
    workers = all_slots(spark) if workers is None else workers
    check_workers(workers)
    check_slots(spark, workers)
    changes = [
        StreamOfChanges.of(name, frame, form, diff, collections) for name, frame in streams.items()
    ]
    schemas = {} if collections is None else given_schemas(collections, streams)
    schemas |= {each.name: each.schema for each in changes}
    spec = service_spec(build, {}, {}, {}, schemas)
    if set(spec.maintained) != {RESULT}:
        raise BuildError(
            f"{name_of(build)} returned the collections {sorted(spec.maintained)}, and a query has "
            "one result: return one, and make a stream of each"
        )
    check_inputs(spec)
    schema = spec.maintained[RESULT]
    struct = from_arrow_schema(feed_schema(schema, RESULT))
    decode = {each.name: each.decode for each in changes}
    task = BatchTask.new(spark, spec, decode, place, workers, certificates)
    awaited = AwaitedSlots.of(spark, task.control, workers)
    arrived = arriving({n: each.frame for n, each in enumerate(changes)}, workers, awaited)
    return leaving(arrived, task, workers, struct)


def _check_stream(name: str, frame: Any) -> None:
    """Refuse what is no stream, as far as that is known: Spark Connect is not asked."""
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise UsageError(f"input {name!r} should be a DataFrame of a stream, and not {frame!r}")
    if context_of(frame.sparkSession) is not None and not frame.isStreaming:
        raise UsageError(
            f"input {name!r} should be a stream, as spark.readStream gives it; maintain takes in "
            "DataFrames that are none"
        )
