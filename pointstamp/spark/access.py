"""How the tasks and the data source of Spark reach a service, by its name.

The token and certificates are in neither options nor plans, which Spark shows: they travel in
the class of the data source, and in the closures of tasks.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from pointstamp.communication.tls import Certificates
from pointstamp.errors import SchemaError, ServiceError, StoppedError
from pointstamp.service.flight_client import RemoteWorker, Unanswered
from pointstamp.service.protocol import StageBatches, StagingHandle, Verb, encode

Answer = TypeVar("Answer")

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark has for a batch of a stream which query it is of."""

RESTART_S = 60.0
"""How long the tasks and the sinks of streams try to reach workers that are started again."""

BUSY_S = 60.0
"""How long a worker is tried that listens, and whose calls are lost."""

LOOK_S = 0.02

CONNECT_S = 1.0

KEPT_BYTES = 4 << 20
"""So much of a partition is kept, to be sent again."""


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
    identity : str
        Of what its epochs are of, over all lives of the service: another one has others.
    patience_s : float
        How long to try to reach a worker that does not listen: it may be started again, at the
        same address.
    """

    name: str
    endpoints: tuple[str, ...]
    token: str = field(repr=False)
    certificates: Certificates | None = field(repr=False)
    inputs: Mapping[str, pa.Schema]
    outputs: Mapping[str, pa.Schema]
    collections: frozenset[str] = frozenset()
    maintained: frozenset[str] = frozenset()
    identity: str = ""
    patience_s: float = 0.0

    def worker(self, worker: int) -> RemoteWorker:
        """To one of the workers; the caller closes it."""
        endpoint = self.endpoints[worker % len(self.endpoints)]
        return RemoteWorker(endpoint, self.token, self.certificates)

    def ask(self, request: Verb[Answer], worker: int = 0) -> Answer:
        """What a worker answers; it is asked again where it was lost, and may start again.

        So only what may be repeated is to be asked.
        """
        return self.repeated(worker, lambda found: found.ask(request))

    def repeated(self, worker: int, use: Callable[[RemoteWorker], Answer]) -> Answer:
        """What `use` gives of a worker; again, where that was lost, and may start again.

        And where it listens, so is there, while the call was lost on the way to it, as on a
        machine that is too busy to connect in time. What `use` does may be done twice then.
        """
        began = monotonic()
        while True:
            try:
                with self.worker(worker) as found:
                    return use(found)
            except StoppedError as error:
                passed = monotonic() - began
                may_be_busy = isinstance(error, Unanswered) and passed < BUSY_S
                if passed >= self.patience_s and not (may_be_busy and self._listens(worker)):
                    raise
            self._await_server(worker, began + self.patience_s)

    def _await_server(self, worker: int, until: float) -> None:
        """Wait until something listens where a worker was.

        By connections that say nothing: a call of Flight takes much of the machine's time, which
        those that are started again need.
        """
        while True:
            sleep(LOOK_S)
            if self._listens(worker) or monotonic() >= until:
                return

    def all_listen(self) -> bool:
        """Whether something listens where each worker is, or was."""
        return all(self._listens(worker) for worker in range(len(self.endpoints)))

    def _listens(self, worker: int) -> bool:
        found = urlsplit(self.endpoints[worker % len(self.endpoints)])
        with (
            suppress(OSError),
            socket.create_connection((found.hostname, found.port), CONNECT_S),
        ):
            return True
        return False

    def stage(
        self,
        input: str,
        epoch: int,
        partition: int,
        batches: Iterable[pa.RecordBatch],
        job: str = "",
    ) -> StagingHandle:
        """Bring the records of a partition, each try under a name of its own, of a job.

        A commit names the one whose handle came back, so it does not matter how far others came.
        """
        given = RepeatableBatches(batches)
        return self.repeated(
            partition,
            lambda found: found.stage(StageBatches(input, epoch, job + uuid.uuid4().hex), given),
        )


class RepeatableBatches:
    """Batches that are read once, and can be iterated over again while they are few.

    Once more than `KEPT_BYTES` were read, iterating over them again raises `ServiceError`.

    >>> batches = RepeatableBatches(iter([pa.RecordBatch.from_pydict({"n": [7]})]))
    >>> [batch.to_pylist() for _ in range(2) for batch in batches]
    [[{'n': 7}], [{'n': 7}]]
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._rest = iter(batches)
        self._kept: list[pa.RecordBatch] | None = []
        self._n_bytes = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._kept is None:
            raise ServiceError(
                f"a worker of the service, or the connection to it, was lost when it had been sent "
                f"{self._n_bytes} bytes of a partition, which Spark's task cannot read again: have "
                "Spark begin again what sends it"
            )
        yield from list(self._kept)
        for batch in self._rest:
            self._n_bytes += batch.nbytes
            if self._n_bytes > KEPT_BYTES:
                self._kept = None
            if self._kept is not None:
                self._kept.append(batch)
            yield batch


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
