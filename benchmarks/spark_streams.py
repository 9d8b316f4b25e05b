"""Streams of Spark, as the benchmarks of services have them: one session, source and clock."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

SLOTS = 4
PARTITIONS = 2
"""Of the source and of Spark's shuffles: as many as there are workers."""

LEAST = 10
"""Batches that are waited for, however long they take."""


def shared() -> Any:
    """The session that the cases of a process share; it ends with the process."""
    from pointstamp.spark import session

    spark = session(f"local[{SLOTS}]", workers=3)
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    return spark


def source(spark: Any, n_records: int, n_keys: int) -> Any:
    """A stream of batches of so many records, of which the next is always there."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", n_records)
    numbers = rate.option("numPartitions", PARTITIONS).load()
    return numbers.selectExpr(f"pmod(xxhash64(value), {n_keys}L) as key")


def progress(query: Any, wanted: int, patience_s: float) -> Iterator[Any]:
    """Of one batch after the other: so many, or fewer when it has taken so long."""
    until, last = None, -1
    while last + 1 < wanted:
        assert query.isActive, query.exception()
        assert not query.awaitTermination(0.2), query.exception()
        # Spark keeps those of the last hundred batches.
        for one in query.recentProgress:
            if one["batchId"] > last:
                last = one["batchId"]
                yield one
        if last >= 0 and until is None:
            until = monotonic() + patience_s  # the first batch is Spark's getting ready
        if until is not None and monotonic() > until and last + 1 >= min(LEAST, wanted):
            return
