"""The DataFrame that `run` gives, whose actions fail of their cause and are named in Spark's UI.

An error of a worker reaches the program as Java's, with the cause in the middle of it. The workers
report it to the driver, too (`failures`), so actions of this very DataFrame, and writes of it,
raise it as `pointstamp.execute` does. What is made of the DataFrame by Spark is Spark's, and its
actions raise what Spark raises.

In the UI they have the line of the program that calls them (`call_sites`).

When an action fails, as one that is cancelled does, workers that still run are ended
(`cancelled_tasks`).

Before the first of them in a session the Python of the executors is compared with ours.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any

from pointstamp.errors import JobCancelledError, PointstampError
from pointstamp.spark import driver_control
from pointstamp.spark.awaited_slots import await_slots
from pointstamp.spark.call_sites import CallSite, call_site, called_at, set_back
from pointstamp.spark.cancelled_tasks import ACTION
from pointstamp.spark.failures import cancelled, explained, remember, too_few_slots
from pointstamp.spark.frame_writer import writer_of
from pointstamp.spark.installation import check_executors
from pointstamp.spark.session import check_running, context_of, is_stopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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


class Actions:
    """How the actions of a DataFrame run.

    Parameters
    ----------
    frame : DataFrame
        Of `run`.
    config : WorkerConfig
        Where its workers report.
    description : str
        Of its jobs, in Spark's UI.
    workers : int
    whole : DataFrame, optional
        The same records, where all partitions have to be computed at once; `frame` if not given.
    """

    def __init__(
        self,
        frame: DataFrame,
        config: WorkerConfig,
        description: str,
        workers: int,
        whole: DataFrame | None = None,
    ) -> None:
        self._frame = frame
        self._config = config
        self._description = description
        self._workers = workers
        self._whole = whole

    @contextmanager
    def running(self, site: CallSite) -> Iterator[None]:
        """An action, which the program asks for at `site`."""
        spark = self._frame.sparkSession
        check_running(spark)
        with called_at(spark, site):
            check_executors(spark)
            if not self._is_kept():  # else the workers may have nothing to do
                await_slots(spark, self._workers)
            with (
                _described(spark, self._description),
                _stopped_said(spark),
                explained_by(self._config),
                _named(spark, self._config),
            ):
                yield

    def whole(self) -> DataFrame:
        """The DataFrame for an action that computes all of it."""
        return self._frame if self._whole is None or self._is_kept() else self._whole

    def _is_kept(self) -> bool:
        """Whether Spark keeps the records, or is to: by the plan of this DataFrame."""
        if "_jdf" not in vars(self._frame):
            return False
        level = self._frame.storageLevel
        return level.useMemory or level.useDisk or level.useOffHeap


def with_actions(
    frame: DataFrame, config: WorkerConfig, description: str, workers: int
) -> DataFrame:
    """`frame`, with actions that raise what a worker failed of, and have a description."""
    found: Any = frame
    kind: Any = type(frame)
    found._actions = Actions(frame, config, description, workers)
    found.__class__ = _with_actions(kind)
    remember(frame, config)
    return frame


def planned_later(
    whole: DataFrame,
    plan: Callable[[], DataFrame],
    schema: StructType,
    config: WorkerConfig,
    description: str,
    workers: int,
) -> DataFrame:
    """The DataFrame that `plan` gives, asked for when Spark is to know it, with such actions.

    What counts or writes all of it takes `whole`, and its own plan, which takes Spark longer to
    make than both, is never needed.

    Parameters
    ----------
    whole : DataFrame
        Of a classic session: the same records, where all partitions have to be computed at once.
    plan : callable
    schema : StructType
    config, description, workers
        As of `Actions`.
    """
    given: Any = type(whole).__base__
    kind = _planned_later(given)
    frame: Any = object.__new__(kind)
    given.__init__(frame, None, whole.sparkSession)
    del frame._jdf
    frame._plan = plan
    frame.schema = deepcopy(schema)  # which the program may change
    frame._actions = Actions(frame, config, description, workers, whole)
    remember(frame, config)
    found: DataFrame = frame
    return found


def whole(frame: DataFrame) -> DataFrame:
    """The records of a DataFrame that `run` gave, for one action that computes all of them.

    If it runs again, so do the workers; Spark may keep what the DataFrame itself has computed.
    """
    given: Any = frame
    found: DataFrame = given._actions.whole()
    return found


@cache
def _with_actions(kind: Any) -> type:
    """A class, and no attributes: `write` is a property, which no instance can replace."""
    members: dict[str, Any] = {
        name: _explaining(getattr(kind, name)) for name in ACTIONS if hasattr(kind, name)
    }
    members["count"] = _counting(kind.count)
    members["write"] = property(partial(_writer, kind.write))
    # As one of PySpark's, which says why none can be pickled.
    members["__reduce__"] = lambda self: (kind, (None, self.sparkSession))
    return type(kind.__name__, (kind,), {**members, "__module__": kind.__module__})


@cache
def _planned_later(kind: Any) -> type:
    base: Any = _with_actions(kind)
    members = {"_jdf": _PlannedOnce()}
    return type(kind.__name__, (base,), {**members, "__module__": kind.__module__})


class _PlannedOnce:
    """An attribute that is there from when it is asked for first."""

    _lock = threading.RLock()  # a plan may ask for those of its inputs

    def __get__(self, frame: Any, kind: type) -> Any:
        if frame is None:
            return self
        with self._lock:
            if "_jdf" not in vars(frame):  # which other threads have asked for
                frame._jdf = frame._plan()._jdf
            return vars(frame)["_jdf"]


def _explaining(action: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(action)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._actions.running(call_site(action.__name__)):
            return action(self, *args, **kwargs)

    return call


def _counting(count: Callable[[Any], int]) -> Callable[[Any], int]:
    @wraps(count)
    def call(self: Any) -> int:
        with self._actions.running(call_site("count")):
            return count(self._actions.whole())

    return call


def _writer(write: property, frame: Any) -> Any:
    if context_of(frame.sparkSession) is None:
        return write.__get__(frame)  # a client of Spark Connect writes by its own means
    return writer_of(frame, frame._actions)


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
def _stopped_said(spark: SparkSession) -> Iterator[None]:
    """Raise that the session was stopped meanwhile, in place of what Spark meets with then."""
    try:
        yield
    except PointstampError:
        raise
    except Exception as error:
        if not is_stopped(spark):
            raise
        raise JobCancelledError(
            "the Spark job was cancelled: the Spark session was stopped while it ran, by the "
            "program or by Spark itself, which says why in its log"
        ) from error


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
        set_back(context, ACTION, before)


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
        set_back(context, DESCRIPTION, None)
