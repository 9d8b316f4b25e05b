"""What the inputs and outputs of a service on Spark know beyond others: session and workers.

A service without Spark has `CollectionFeed` and `CollectionOutput`. Those of a service on Spark are
made with a `SparkSide`, by which they have jobs of the session come to the service's workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.checkpoint.checkpoint import Checkpoint
    from pointstamp.spark.access import Access
    from pointstamp.spark.service_pool import Registration


@dataclass(frozen=True)
class SparkSide:
    """The session that a service is in, and how jobs of it reach the workers."""

    spark: SparkSession
    registration: Registration
    checkpoint: Checkpoint | None
    """That of the service."""

    @property
    def access(self) -> Access:
        """Of the workers as they are now: those that are started again may be elsewhere."""
        return self.registration.access
