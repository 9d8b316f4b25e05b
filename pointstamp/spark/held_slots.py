"""The slots of a Spark application that services of this program hold, as long as they run.

Spark counts all slots there are before it starts a barrier stage, and then waits until enough of
them are free: a stage that needs those of a service would wait without a word until that ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HeldSlots:
    """The slots of one service.

    Attributes
    ----------
    application : str, optional
        Spark's name for the application that they are of.
    service : str
    n_slots : int
    is_over : callable
        Whether the service has ended.
    """

    application: str | None
    service: str
    n_slots: int
    is_over: Callable[[], bool]


_all: list[HeldSlots] = []
_lock = threading.Lock()


def hold(spark: SparkSession, service: str, n_slots: int, is_over: Callable[[], bool]) -> None:
    """Note that a service holds slots of a session's application until it is over."""
    with _lock:
        _all[:] = [each for each in _all if not each.is_over()]
        _all.append(HeldSlots(_application(spark), service, n_slots, is_over))


def held_by_services(spark: SparkSession) -> dict[str, int]:
    """By service of this program, the slots that it holds where the session's jobs run."""
    application = _application(spark)
    with _lock:
        running = [each for each in _all if not each.is_over()]
    return {each.service: each.n_slots for each in running if each.application == application}


def _application(spark: Any) -> str | None:
    found: str | None = spark.conf.get("spark.app.id", None)
    return found
