"""Outputs of a service as sources of Spark: readers of streams, and of batches.

Offsets of a source are epochs, as `{"epoch": n}`: the first that is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pointstamp.service.protocol import TICK_S, AwaitEpoch, Discard, GetStatus, ReadEpochs
from pointstamp.spark.access import Access

COMMIT_S = 600.0
"""How long a commit waits for its epoch to pass where nothing else is said."""


class EpochRange(InputPartition):
    """What one worker has of some epochs."""

    def __init__(self, worker: int, after: int, upto: int) -> None:
        self.worker = worker
        self.after = after
        self.upto = upto


def read_epochs(
    access: Access, output: str, part: InputPartition, patience_s: float = 0.0
) -> Iterator[pa.RecordBatch]:
    """The batches of a part, for whose epochs it waits; in a task."""
    assert isinstance(part, EpochRange)
    await_epoch(access, part.worker, output, part.upto, patience_s)
    with access.worker(part.worker) as worker:
        # One worker said that these epochs are complete; another may still have to hear of it.
        for _, batch in worker.stream(ReadEpochs(output, part.after, part.upto, TICK_S * 10)):
            yield batch


def await_epoch(access: Access, worker: int, output: str, epoch: int, patience_s: float) -> None:
    """Wait for an epoch to be complete at a worker, but not longer than is said."""
    until = monotonic() + patience_s
    request = AwaitEpoch(epoch, output, TICK_S)
    while monotonic() < until and not access.ask(request, worker):
        pass


def frontier_of(access: Access, output: str) -> tuple[int, int]:
    """(the first epoch that is kept, the first that is not complete) of an output."""
    status = access.ask(GetStatus())
    frontier = status.outputs[output]
    return status.discarded[output] + 1, status.end if frontier is None else frontier


class StreamReader(DataSourceStreamReader):
    """Serves complete epochs, in order, and has the workers discard what is done with."""

    def __init__(self, access: Access, output: str) -> None:
        self._access = access
        self._output = output

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  (Spark's name)
        """The first epoch that the workers have not discarded."""
        return {"epoch": frontier_of(self._access, self._output)[0]}

    def latestOffset(  # noqa: N802  (Spark's name)
        self, start: dict[str, int], limit: Any
    ) -> dict[str, int]:
        """The first epoch that is not complete; there is no limit to what is read at once."""
        return {"epoch": max(start["epoch"], frontier_of(self._access, self._output)[1])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One for each worker."""
        if start["epoch"] >= end["epoch"]:
            return []
        after, upto = start["epoch"] - 1, end["epoch"] - 1
        return [EpochRange(worker, after, upto) for worker in range(len(self._access.endpoints))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a worker has of the epochs.

        They were complete when Spark planned the batch. A service that has begun again since
        may still be at work on them, for as long as a commit may take.
        """
        return read_epochs(self._access, self._output, partition, COMMIT_S)

    def commit(self, end: dict[str, int]) -> None:
        """Let the workers discard what comes before."""
        if end["epoch"] > 0:
            self._access.ask(Discard(self._output, end["epoch"] - 1))


class Reader(DataSourceReader):
    """Reads what the workers have, as of a complete epoch."""

    def __init__(self, access: Access, output: str, upto: int | None) -> None:
        self._access = access
        self._output = output
        self._upto = upto

    def partitions(self) -> list[InputPartition]:
        """One for each worker, all as of one epoch."""
        kept, frontier = frontier_of(self._access, self._output)
        upto = frontier - 1 if self._upto is None else self._upto
        return [EpochRange(worker, kept - 1, upto) for worker in range(len(self._access.endpoints))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a worker has."""
        return read_epochs(self._access, self._output, partition)
