"""The DataFrame that `run` gives, whose actions fail of their cause and are named in Spark's UI.

An error of a worker reaches the program as Java's, with the cause in the middle of it. The workers
report it to the driver, too (`failures`), so actions of this very DataFrame raise it as
`pointstamp.execute` does. What is made of the DataFrame by Spark is Spark's, and its actions raise
what Spark raises.

In the UI they have the line of the program that calls them (`call_sites`).

When an action fails, as one that is cancelled does, workers that still run are ended
(`cancelled_tasks`).

Before the first of them in a session the Python of the executors is compared with ours.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from pointstamp.errors import PointstampError
from pointstamp.spark import driver_control
from pointstamp.spark.call_sites import call_site, called_at
from pointstamp.spark.cancelled_tasks import ACTION
from pointstamp.spark.failures import cancelled, explained, too_few_slots
from pointstamp.spark.installation import check_executors
from pointstamp.spark.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.communication.control import WorkerConfig

ACTIONS = (
    "collect",
    "count",
    "first",
    "foreach",
    "foreachPartition",
    "head",
    "isEmpty",
    "show",
    "tail",
    "take",
    "toArrow",
    "toPandas",
)
"""The methods of a DataFrame that run it, and are done when they return."""

DESCRIPTION = "spark.job.description"


def with_actions(frame: DataFrame, config: WorkerConfig, description: str) -> DataFrame:
    """`frame`, with actions that raise what a worker failed of, and have a description."""
    for name in ACTIONS:
        action = getattr(frame, name, None)
        if action is not None:
            setattr(frame, name, _explaining(action, frame, config, description))
    return frame


def _explaining(
    action: Callable[..., Any], frame: DataFrame, config: WorkerConfig, description: str
) -> Callable[..., Any]:
    spark = frame.sparkSession

    @wraps(action)
    def call(*args: Any, **kwargs: Any) -> Any:
        with called_at(spark, call_site(action.__name__)):
            check_executors(spark)
            with _described(spark, description), explained_by(config), _named(spark, config):
                return action(*args, **kwargs)

    return call


@contextmanager
def explained_by(config: WorkerConfig) -> Iterator[None]:
    """Raise what a worker failed of, or that the job was cancelled, in place of Spark's error."""
    before = driver_control.first_cause(config)
    try:
        yield
    except PointstampError:
        raise
    except Exception as error:
        # Then workers are interrupted, and may take that for a failure of their peers.
        if (cancellation := cancelled(error)) is not None:
            raise cancellation from error
        if (refusal := too_few_slots(error)) is not None:
            raise refusal from error
        cause = driver_control.first_cause(config)
        # One of a run before is no cause of what Spark refuses now.
        found = explained(None if cause is before else cause, error)
        if found is None:
            raise
        raise found from found.__cause__


@contextmanager
def _named(spark: SparkSession, config: WorkerConfig) -> Iterator[None]:
    """Have the tasks of an action end when it fails, as it does at once if it is cancelled."""
    name = uuid.uuid4().hex
    with _jobs_named(spark, name):
        try:
            yield
        except BaseException:
            driver_control.end_tasks(config, name)
            raise


@contextmanager
def _jobs_named(spark: SparkSession, name: str) -> Iterator[None]:
    """Have the tasks that this thread runs know of which action they are."""
    context = context_of(spark)
    if context is None:
        spark.addTag(name)
        try:
            yield
        finally:
            spark.removeTag(name)
        return
    before = context.getLocalProperty(ACTION)
    context.setLocalProperty(ACTION, name)
    try:
        yield
    finally:
        context.setLocalProperty(ACTION, before)  # type: ignore[arg-type]  # None unsets it


@contextmanager
def _described(spark: SparkSession, description: str) -> Iterator[None]:
    """Have the jobs of this thread described in Spark's UI, unless the program does it."""
    context = context_of(spark)
    if context is None or context.getLocalProperty(DESCRIPTION) is not None:
        yield
        return
    context.setLocalProperty(DESCRIPTION, description)
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type]  # as Spark unsets it
