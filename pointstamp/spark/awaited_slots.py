"""Workers begin when there are slots for all of them: the stage before them waits, or the driver.

Spark counts its slots when it makes a barrier stage. With adaptive execution that is when the
stages before it have ended. An executor that was lost meanwhile, and is not there again yet, fails
the job at once, where without adaptive execution Spark would count again, each 15 s; and what it
does to clean up after the job stops the session. So the stage before waits: its tasks ask the
driver how many slots there are, at their ends, for as long as Spark would. An action on a result
begins when the driver counts enough, and so do the workers of a service, before which there is no
stage.

Source: `handleMapStageSubmitted`, `handleJobSubmitted` and `handleJobCancellation` of Spark 4.3's
`DAGScheduler`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pointstamp.communication.control import ControlClient
from pointstamp.errors import CommunicationError, SparkSetupError
from pointstamp.spark.session import context_of, is_local, java_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.communication.control import Address, ControlConnection, WorkerConfig

LOGGER = logging.getLogger("pointstamp.spark")

REACH_S = 3.0
"""How long a task tries to reach the driver, before it does without."""

ANSWER_S = 20.0
"""How long it waits for an answer."""

LOOK_S = 0.2
"""How long it waits before it asks again."""

FORGET_S = 60.0
"""After so long without a question another action asks, and not a task of the same that is retried.

Those that begin when the time is over are to fail at once.
"""

INTERVAL = "spark.scheduler.barrier.maxConcurrentTasksCheck.interval"
CHECKS = "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures"
"""How long Spark waits between two checks of the slots, and how many may fail."""


@dataclass(frozen=True)
class CountSlots:
    """A request: how many slots there are for so many workers. The answer is None if not known."""

    workers: int


@dataclass(frozen=True)
class SlotCount:
    """The answer.

    Attributes
    ----------
    slots : int
        How many tasks can run at once.
    left_s : float
        How long is still waited for more.
    """

    slots: int
    left_s: float


@dataclass(frozen=True)
class AwaitedSlots:
    """For each task of the stage before the workers: wait until there are slots for these.

    Attributes
    ----------
    config : WorkerConfig
        Of the workers.
    workers : int
    """

    config: WorkerConfig
    workers: int

    @classmethod
    def of(cls, spark: SparkSession, config: WorkerConfig, workers: int) -> AwaitedSlots | None:
        """None where there are no executors that come and go, or none that we could count."""
        return cls(config, workers) if _can_be_short(spark) else None

    def wait(self, partition: int) -> None:
        """Wait; in a task. Where the driver cannot be reached, do without.

        Raises
        ------
        SparkSetupError
            If there are too few slots for as long as Spark would wait.
        """
        if self.config.control in _unreachable:
            return
        # What is lost of another group is no failure of a worker.
        config = replace(self.config, group=f"{self.config.group} inputs")
        try:
            with ControlClient.connect(config, partition, timeout_s=REACH_S) as control:
                while (found := control.ask(CountSlots(self.workers), ANSWER_S)) is not None:
                    if found.slots >= self.workers:
                        return
                    if found.left_s <= 0:
                        raise SparkSetupError(
                            f"{self.workers} workers need {self.workers} slots at once, and Spark "
                            f"had {found.slots} for as long as it looks ({INTERVAL}, {CHECKS}): "
                            "ask for fewer workers, or give the session more executors"
                        )
                    time.sleep(LOOK_S)
        except CommunicationError:
            _unreachable.add(self.config.control)


_unreachable: set[Address] = set()
"""Drivers that this process has tried to reach: another task of it does not."""

_lock = threading.Lock()
_short: dict[str, tuple[float, float]] = {}
"""By group for which there are too few slots: since when, and when that was last asked."""


def count(connection: ControlConnection, message: CountSlots) -> SlotCount | None:
    """Answer a task; in the driver."""
    found = count_now()
    if found is None:
        return None
    with _lock:
        if found.slots >= message.workers:
            _short.pop(connection.group, None)
            return found
        now = time.monotonic()
        since, last = _short.get(connection.group, (now, -math.inf))
        if now - last > FORGET_S:
            since = now
            _warn(found.slots, message.workers)
        _short[connection.group] = since, now
        return replace(found, left_s=since + found.left_s - now)


def _can_be_short(spark: SparkSession) -> bool:
    """Whether executors come and go, and can be counted from here."""
    return context_of(spark) is not None and not is_local(spark)


def _pause(timeout_s: float) -> bool:
    time.sleep(timeout_s)
    return False


def await_slots(
    spark: SparkSession, workers: int, is_over: Callable[[float], bool] = _pause
) -> None:
    """Wait in the driver, before a job: one of a service, which begins with its workers, or any.

    Of the first Spark would look each 15 s. `is_over(timeout_s)` waits until the job is not wanted
    any more, and says whether it is not. Where there are too few slots for as long as Spark would
    wait, the job is left to Spark.
    """
    if not _can_be_short(spark):
        return
    until: float | None = None
    while (found := count_now()) is not None and found.slots < workers:
        if until is None:
            _warn(found.slots, workers)
            until = time.monotonic() + found.left_s
        if time.monotonic() > until or is_over(LOOK_S):
            return


def count_now() -> SlotCount | None:
    """The slots of this program's session; None if that is over, or Spark does not say."""
    try:
        scheduler = java_context()
        profile = scheduler.resourceProfileManager().defaultResourceProfile()
        conf = scheduler.conf()
        limit_s = conf.getTimeAsSeconds(INTERVAL, "15s") * conf.getInt(CHECKS, 40)
        return SlotCount(int(scheduler.maxNumConcurrentTasks(profile)), limit_s)
    except Exception:  # noqa: BLE001  (it is stopped, or of a version that has no such methods)
        return None


def _warn(slots: int, workers: int) -> None:
    message = "%d workers need %d slots at once, and Spark has %d now: waiting for executors"
    LOGGER.warning(message, workers, workers, slots)
