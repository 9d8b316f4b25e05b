"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine with four slots."""
    from pointstamp.spark import session

    with session("local[4]", workers=4) as started:
        # What a session opens with its first job and keeps (the JVM's connection for
        # accumulators, for one) belongs to the session and not to a test.
        assert started.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
        yield started
