"""What a service needs of one of its workers, wherever it runs.

`ServiceWorker` is one in the same process, `flight_client.RemoteWorker` one anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from pointstamp.service.protocol import ReadEpochs, StageBatches, StagingHandle, Verb

Answer = TypeVar("Answer")


class WorkerHandle(Protocol):
    """Sends requests to one worker; see `protocol`."""

    @property
    def address(self) -> str | None:
        """Of the worker's Flight server; None if it is in this process."""

    def ask(self, request: Verb[Answer]) -> Answer:
        """The answer to a request."""

    def stage(self, request: StageBatches, batches: Iterable[Any]) -> StagingHandle:
        """Stage `batches`, all of one schema, for a commit."""

    def read(self, request: ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of what the worker has of complete epochs."""
