"""How the tasks and the data source of Spark reach a service, by its name.

The token and certificates are in neither options nor plans, which Spark shows: they travel in
the class of the data source, and in the closures of tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pointstamp.communication.tls import Certificates
from pointstamp.errors import SchemaError
from pointstamp.service.flight_client import RemoteWorker
from pointstamp.service.protocol import StageBatches, StagingHandle, encode


@dataclass(frozen=True)
class Access:
    """The endpoints of a service, and what to show there.

    Attributes
    ----------
    endpoints : tuple of str
        By worker.
    certificates : Certificates, optional
        To present to endpoints that encrypt.
    inputs, outputs : dict of str to pyarrow.Schema
    collections : frozenset of str
        Which inputs are collections.
    maintained : frozenset of str
        Which outputs are.
    """

    name: str
    endpoints: tuple[str, ...]
    token: str = field(repr=False)
    certificates: Certificates | None = field(repr=False)
    inputs: Mapping[str, pa.Schema]
    outputs: Mapping[str, pa.Schema]
    collections: frozenset[str] = frozenset()
    maintained: frozenset[str] = frozenset()

    def worker(self, worker: int) -> RemoteWorker:
        """To one of the workers; the caller closes it."""
        endpoint = self.endpoints[worker % len(self.endpoints)]
        return RemoteWorker(endpoint, self.token, self.certificates)

    def stage(
        self, input: str, epoch: int, partition: int, batches: Iterable[pa.RecordBatch]
    ) -> StagingHandle:
        """Bring the records of a partition, each try under a name of its own."""
        with self.worker(partition) as worker:
            return worker.stage(StageBatches(input, epoch, uuid.uuid4().hex), batches)


def check_columns(names: Sequence[str], where: str, expected: Sequence[str]) -> None:
    """Raise `SchemaError` unless what is sent has the columns that it should, in any order."""
    if sorted(names) != sorted(expected):
        raise SchemaError(
            f"{where} has columns {', '.join(expected)}, and what is sent has "
            f"{', '.join(names)}: select them"
        )


def staging(
    access: Access, input: str, epoch: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: stages its partition, and gives one row, the handle."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # there is one in every task
        staged = access.stage(input, epoch, context.partitionId(), batches)
        yield pa.RecordBatch.from_pydict({"handle": [encode(staged).decode()]})

    return task
