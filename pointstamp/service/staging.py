"""Batches that were brought to a worker and wait to be named attempts, or attempts.

Who brings records may fail half-way, be tried again, or run twice at once. So what is
brought is *staged* under the name of the attempt, and enters the dataflow when a commit
names the attempt; what is not named is dropped. A `StagingHandle` is the handle.

With a checkpoint, what is staged is written there as well, and a handle says where: after
a restart any worker can read it. Without, it lives as long as the worker.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from pointstamp.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True)
class StagingHandle:
    """What was staged, by whom, and at which worker it lies."""

    input: str
    epoch: int
    attempt: str
    worker: int
    rows: int
    kept: dict[str, Any] | None = None
    """Where the checkpoint has it; None without one."""
    seal: str = ""
    """By which worker 0 knows that a worker of this service has made it."""

    def sealed(self, secret: bytes) -> StagingHandle:
        """The same, with the seal that who knows the secret gives it.

        >>> handle = StagingHandle("edges", 3, "a", 0, 10).sealed(b"x")
        >>> handle.is_genuine(b"x"), replace(handle, epoch=4).is_genuine(b"x")
        (True, False)
        """
        said = json.dumps(self.to_json() | {"seal": ""}, sort_keys=True).encode()
        return replace(self, seal=hmac.digest(secret, said, "sha256").hex())

    def is_genuine(self, secret: bytes) -> bool:
        """Whether its seal is that of who knows the secret."""
        return hmac.compare_digest(self.seal.encode(), self.sealed(secret).seal.encode())

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire.

        >>> StagingHandle.from_json(StagingHandle("edges", 3, "a", 0, 10).to_json())
        StagingHandle(input='edges', epoch=3, attempt='a', worker=0, rows=10, kept=None, seal='')
        """
        return asdict(self)

    @classmethod
    def from_json(cls, told: Any) -> StagingHandle:
        """The handle that `to_json` wrote.

        Raises
        ------
        UsageError
            If it is none.
        """
        try:
            return cls(
                str(told["input"]),
                int(told["epoch"]),
                str(told["attempt"]),
                int(told["worker"]),
                int(told["rows"]),
                told["kept"],
                str(told["seal"]),
            )
        except (TypeError, KeyError, ValueError) as cause:
            raise UsageError(
                f"{told!r} is no handle: hand back, unchanged, what staging gave"
            ) from cause


class Staging:
    """The staged batches of one worker; its caller holds a lock."""

    def __init__(
        self, worker: int, checkpoint: Checkpoint | None = None, secret: bytes = b""
    ) -> None:
        self._worker = worker
        self._secret = secret
        self._checkpoint = checkpoint
        self._waiting: dict[
            tuple[str, int], dict[str, tuple[StagingHandle, list[pa.RecordBatch]]]
        ] = {}

    def stage(
        self,
        input: str,
        epoch: int,
        attempt: str,
        batches: Sequence[pa.RecordBatch],
        kept: dict[str, Any] | None = None,
    ) -> StagingHandle:
        """Keep what an attempt has brought; the same attempt again changes nothing."""
        attempts = self._waiting.setdefault((input, epoch), {})
        if attempt not in attempts:
            n_rows = sum(batch.num_rows for batch in batches)
            staged = StagingHandle(input, epoch, attempt, self._worker, n_rows, kept)
            staged = staged.sealed(self._secret)
            attempts[attempt] = (staged, list(batches))
        return attempts[attempt][0]

    def take(self, attempts: Iterable[StagingHandle]) -> Iterator[pa.RecordBatch]:
        """The batches of those attempts that are this worker's, each attempt once.

        Raises
        ------
        ServiceError
            At once, if one of them is neither here nor in the checkpoint.
        CheckpointError
            When what the checkpoint has is read, and is not what was written.
        """
        mine = {staged.attempt: staged for staged in attempts if staged.worker == self._worker}
        return chain.from_iterable([self._batches(staged) for staged in mine.values()])

    def _batches(self, staged: StagingHandle) -> Iterable[pa.RecordBatch]:
        attempts = self._waiting.get((staged.input, staged.epoch), {})
        if staged.attempt in attempts:
            return attempts[staged.attempt][1]
        if staged.kept is not None and self._checkpoint is not None:
            # Not at the top: who only hands handles on does not need it.
            from pointstamp.checkpoint.input_log import Staged

            return self._checkpoint.read(Staged.from_json(staged.kept))
        raise ServiceError(
            f"worker {self._worker} has nothing staged by attempt {staged.attempt!r} for epoch "
            f"{staged.epoch} of input {staged.input!r}; it has {sorted(attempts) or 'none'}"
        )

    def drop(self, staged: StagingHandle) -> None:
        """Let go of what one attempt has brought."""
        attempts = self._waiting.get((staged.input, staged.epoch), {})
        attempts.pop(staged.attempt, None)
        if not attempts:
            self._waiting.pop((staged.input, staged.epoch), None)

    def drop_upto(self, input: str, epoch: int) -> None:
        """Let go of what waits for the epochs of an input up to this one: they are decided."""
        for key in [key for key in self._waiting if key[0] == input and key[1] <= epoch]:
            del self._waiting[key]

    def __len__(self) -> int:
        return sum(len(attempts) for attempts in self._waiting.values())
