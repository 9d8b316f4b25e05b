"""`maintain`: collections kept up to date by a job that runs once in a while, without a service.

Each call is one epoch and one job:

    each input    mapInArrow: its batches become packed batches, dealt to the workers
    together      union, repartitionById(worker)
    the workers   mapInArrow(barrier=True): packed batches in, what was written out

The workers begin with the snapshot of the run before, and write the next one; what changed of the
outputs is stored beside it. The driver collects where all of that is, and commits it, last. The
DataFrames that come back read what is stored: to compute them again runs nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pointstamp.errors import UsageError
from pointstamp.spark.session import check_allocation, check_running, check_slots, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.communication.tls import Certificates


def maintain(
    build: Callable[..., Any],
    spark: SparkSession | None,
    changes: Mapping[str, DataFrame],
    *,
    form: str = "cdf",
    diff: str | None = None,
    checkpoint: Any,
    run: str | None = None,
    workers: int | None = None,
    collections: Mapping[str, Any] | None = None,
    certificates: Certificates | None = None,
) -> Any:
    """Update the results of a dataflow of collections by a single job; returns their changes.

    The job begins with the snapshot that the run before has left in the checkpoint, takes in the
    changes as one epoch, and leaves the next snapshot. So a nightly job costs what has changed,
    and not what there is.

    Parameters
    ----------
    build : callable
        As that of `pointstamp.View` and `serve`: it gets a `Collection` for each input, and
        returns a `Collection`, or a dict of them. It travels to the workers by cloudpickle.
    spark : SparkSession, optional
        The active one, or a new one, for None.
    changes : dict of DataFrame by name
        What has changed of each input since the last run. The first run is given whole tables: a
        DataFrame without the columns of the form is one, each row of which is inserted.
    form : "cdf", "append" or "diff"
        How that is said: by the columns of Delta's change data feed; by rows that are added; by
        how often each row is added.
    diff : str, optional
        The column that says so, of integers, which are below 0 for rows that are removed.
    checkpoint : path, URI or Checkpoint
        A folder that the driver and all executors reach, of this dataflow alone, used by one
        call at a time: another one is refused meanwhile.
    run : str, optional
        A name of this run, such as its date. A run of the name of the last one that counts runs
        nothing, and gives the changes of that again: so a program that is killed at any moment
        is to be started again, with the same name.
    workers : int, optional
        How many tasks the job has; all slots of the session if not given. It may be another
        number in each run.
    collections : mapping, optional
        Of names to schemas, as for `serve`; those of the DataFrames in the first run, if not given.
    certificates : Certificates, optional
        As for `run`.

    Returns
    -------
    DataFrame, or dict of DataFrame
        The change data feed of the result in this run, by name if there are several: its columns,
        `_change_type` ("insert" or "delete"), `_commit_version`, which is the number of the run,
        from 0, and `_commit_timestamp`, when it was committed. A diff of n is n rows. To be read
        before the second run after this one commits, which removes it.

    Raises
    ------
    UsageError
        For a form that there is not, or the name of a run that is not the last one.
    DataError, SchemaError
        If a change does not fit its form and schema. Nothing has changed then.
    CheckpointStructureError
        If the checkpoint is of something else, or has inputs of other columns.
    CheckpointInUseError
        If another call is at work in the checkpoint; in an object store, if one has begun since.
        Nothing of this one counts then.
    WorkerError
        If the job fails. Nothing has changed then.

    Notes
    -----
    *Exactly once.* A run counts when its manifest is written, whole or not at all: one that failed
    before is repeated, with the same changes or with more. With `form="cdf"` the last
    `_commit_version` of each input is kept, and an older one is an error: so changes that
    are in the checkpoint cannot go in twice, whatever the run is called.

    Examples
    --------
    ::

        def report(scope, sales):
            return sales.group_by("shop").agg(n=ps.count(), cents=ps.sum("cents"))

        tonight = maintain(report, spark, {"sales": changes}, form="cdf", run="2026-11-25",
                           checkpoint="s3://bucket/report")
        tonight.write.mode("append").saveAsTable("report_changes")
    """
    from pointstamp.communication.target import check_workers
    from pointstamp.operators.building import check_build
    from pointstamp.service.checkpoint_config import checkpoint_of
    from pointstamp.service.epoch_run import EpochRuns
    from pointstamp.service.spec import RESULT
    from pointstamp.spark.epoch_job import EpochJob
    from pointstamp.spark.run import all_slots

    if not isinstance(changes, Mapping):
        raise UsageError(
            f"maintain is given a dict of DataFrames by input, and not {changes!r:.200}"
        )
    if not changes:
        raise UsageError(
            "maintain is given a dict of DataFrames by input, and this one has none: a run takes "
            'the changes of one input or more, as {"sales": changes}, each by the name that build '
            "has for it"
        )
    for name, frame in changes.items():
        if not hasattr(frame, "mapInArrow"):
            raise UsageError(f"input {name!r} should be a DataFrame of Spark, not {frame!r:.200}")
    # Before a session is started for it. A later run is given some of its inputs alone.
    check_build(build, list(changes))
    if run is not None and (not isinstance(run, str) or not run):
        raise UsageError(f"run= is a text that is not empty, or None, and not {run!r}")
    place = checkpoint_of(checkpoint)
    if place is None:
        raise UsageError("maintain keeps its state in a folder: give it by checkpoint=")
    spark = spark or session()
    check_running(spark)
    check_allocation(spark)
    workers = all_slots(spark) if workers is None else workers
    check_workers(workers)
    check_slots(spark, workers)
    with place.claimed() as claim:  # before anything of it is read
        job = EpochJob(spark, EpochRuns(place), build, changes, form, diff, collections, run)
        feeds = job.feeds(job.committed or job.run(run, workers, certificates, claim))
    return feeds[RESULT] if set(feeds) == {RESULT} else feeds
