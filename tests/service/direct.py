"""The workers of a service, asked one by one: what a client of the protocol does."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from pointstamp.service.protocol import (
    Abort,
    AwaitCompletion,
    AwaitEpoch,
    Commit,
    Discard,
    Finish,
    GetPosition,
    GetStatus,
    ReadEpochs,
    StageBatches,
    StagingHandle,
    Status,
    WorkerHandle,
)
from pointstamp.service.service import Service


class Direct:
    """One worker."""

    def __init__(self, worker: WorkerHandle) -> None:
        self.worker: Any = worker

    def stage(
        self, input: str, epoch: int, batches: Iterable[Any], attempt: str | None = None
    ) -> StagingHandle:
        return self.worker.stage(StageBatches(input, epoch, attempt or uuid.uuid4().hex), batches)

    def read(
        self, output: str, after: int | None, upto: int | None, wait_s: float = 0.0
    ) -> list[Any]:
        return self.worker.read(ReadEpochs(output, after, upto, wait_s))

    def commit(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> bool:
        return self.worker.ask(Commit(input, epoch, tuple(attempts), until, until is None))

    def abort(self, attempts: Sequence[StagingHandle]) -> None:
        self.worker.ask(Abort(tuple(attempts)))

    def wait(self, output: str | None, epoch: int, wait_s: float) -> bool:
        return self.worker.ask(AwaitEpoch(epoch, output, wait_s))

    def await_completion(self, epoch: int, wait_s: float) -> bool:
        return self.worker.ask(AwaitCompletion(epoch, wait_s))

    def position(self, input: str) -> int | None:
        return self.worker.ask(GetPosition(input))

    def discard(self, output: str, upto: int) -> None:
        self.worker.ask(Discard(output, upto))

    def status(self) -> Status:
        return self.worker.ask(GetStatus())

    def finish(self) -> None:
        self.worker.ask(Finish())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worker, name)


def workers_of(service: Service) -> list[Direct]:
    """Those that it has now, or had last, by index."""
    return [Direct(worker) for worker in service._supervisor.workers]
