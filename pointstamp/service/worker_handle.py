"""What a service needs of one of its workers, wherever it runs.

`ServiceWorker` is one in the same process, `flight_client.RemoteWorker` one anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from pointstamp.service.staging import StagingHandle
from pointstamp.service.status import Status


class Link(Protocol):
    """Talks to one worker; see `ServiceWorker`, whose methods these are."""

    @property
    def address(self) -> str | None:
        """Of the worker's server; None if it is in this process."""

    def status(self) -> Status:
        """How far the service is, as this worker knows it."""

    def stage(
        self, input: str, epoch: int, batches: Iterable[Any], attempt: str | None = None
    ) -> StagingHandle:
        """Keep `batches` for a commit."""

    def read(
        self, output: str, after: int | None, upto: int | None, timeout_s: float = 0.0
    ) -> list[tuple[int, pa.RecordBatch]]:
        """The worker's batches of complete epochs in (after, upto]."""

    def wait(self, output: str | None, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is complete; whether it is."""

    def commit(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> bool:
        """Let the attempts in at `epoch`; from here on, of worker 0 alone."""

    def abort(self, attempts: Sequence[StagingHandle]) -> None:
        """DropAttempts what is staged, except what a commit has named."""

    def position(self, input: str) -> int | None:
        """The first epoch of an input that may still be committed."""

    def await_completion(self, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is as complete as inputs that are behind it allow."""

    def discard(self, output: str, upto: int) -> None:
        """Have all workers let go of an output's epochs."""

    def snapshot(self, soon: bool = False) -> dict[str, int | None]:
        """The epochs of the last snapshot that is sealed, and of the next."""

    def await_snapshot(self, epoch: int, timeout_s: float) -> bool:
        """Wait until a snapshot of `epoch`, or of a later one, is sealed; whether it is."""

    def finish(self) -> None:
        """Seal no more snapshots."""

    def stop(self) -> None:
        """Have all workers leave."""
