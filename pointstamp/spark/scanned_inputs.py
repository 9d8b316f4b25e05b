"""Which inputs the workers of a run read themselves, in place of batches that others have dealt.

On one machine, files of Parquet whose columns are taken as they are the workers read without Spark
(`parquet_files`).

Else the tasks that read an input can be the workers where Spark allows a barrier stage that begins
so, where there are as many of them as workers, and where that is known when `run` is called. This
is known on one machine, whose cores do not come and go and where no task waits for a place near its
data, of a plan that does nothing but scan, filter and project: the number of its partitions
depends on the files that were listed and on settings of the session. A union, a limit or a
coalesce would be refused by Spark, and a shuffle would have to run to know how many partitions
adaptive execution leaves of it. So the plan is asked for as the text that `explain` prints, of
which each line has to be one that is known here; of what is not, the batches are dealt.

What is saved is a pass through Python and a shuffle of all records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pointstamp.spark.parquet_files import ParquetScan, parquet_scan
from pointstamp.spark.session import context_of, is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTING = "spark.pointstamp.parquet.direct"
"""Of the session: "false" where Spark is to read all files."""

_READ_OTHERWISE = (
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
)
"""Settings of Spark by which a column is another one, or files may lack what they should have."""

_NODE = re.compile(
    r"[ :+-]*(\*\(\d+\) )?"
    r"(ColumnarToRow|Filter|Project|Range|LocalTableScan|"
    r"FileScan (avro|csv|json|orc|parquet|text))\b"
)


class ScannedInputs:
    """What the plans of inputs say, each asked for once; nothing runs."""

    def __init__(self, frames: Sequence[DataFrame]) -> None:
        self._frames = frames
        self._plans: dict[int, tuple[DataFrame, str]] = {}

    def is_scanned(self, workers: int) -> bool:
        """Whether the tasks that read the one input can be the workers."""
        from pyspark.errors import PySparkException

        if len(self._frames) != 1:
            return False
        with suppress(PySparkException):
            frame, plan = self._plan(0)
            return is_scan(plan) and frame.rdd.getNumPartitions() == workers
        return False

    def parquet_scans(self) -> dict[int, ParquetScan]:
        """Those that workers read as files, by number."""
        scans = {number: self._parquet_scan(number) for number in range(len(self._frames))}
        return {number: scan for number, scan in scans.items() if scan is not None}

    def _parquet_scan(self, number: int) -> ParquetScan | None:
        from pyspark.errors import PySparkException

        if not _may_be_read(self._frames[number]):
            return None
        with suppress(PySparkException):
            return parquet_scan(*self._plan(number))
        return None

    def _plan(self, number: int) -> tuple[DataFrame, str]:
        if number not in self._plans:
            self._plans[number] = _plan(self._frames[number])
        return self._plans[number]


def _may_be_read(frame: DataFrame) -> bool:
    """Whether settings of the session let files be read by others than Spark."""
    conf = frame.sparkSession.conf
    if (conf.get(SETTING, None) or "true").lower() == "false":
        return False
    return not any((conf.get(name, None) or "").lower() == "true" for name in _READ_OTHERWISE)


def _plan(frame: DataFrame) -> tuple[DataFrame, str]:
    """The DataFrame as it is planned now, and its plan as text.

    There is no text where the workers may be on other machines than the files. What is wrong with
    the plan, which Spark says here, the action says too.
    """
    spark = frame.sparkSession
    if context_of(spark) is None or not is_local(spark):
        return frame, ""
    # A new one: Spark keeps what it has planned of a DataFrame, with records that it has cached
    # since, or has not any more.
    planned = frame.select("*")
    # What `explain` prints; as a query, EXPLAIN takes several times as long.
    return planned, str(planned._jdf.queryExecution().simpleString())


def is_scan(plan: str) -> bool:
    r"""Whether a plan, as Spark explains it, does nothing but scan, filter and project.

    >>> is_scan("== Physical Plan ==\n*(1) Filter (id#0L > 3)\n+- *(1) Range (0, 9, step=1)\n")
    True
    >>> is_scan("== Physical Plan ==\nCollectLimit 3\n+- *(1) Range (0, 9, step=1)\n")
    False
    """
    title, *nodes = plan.strip().splitlines() or [""]
    return title == "== Physical Plan ==" and bool(nodes) and all(map(_NODE.match, nodes))
