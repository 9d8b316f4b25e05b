"""The staging area of one worker: batches that wait to be committed, or aborted.

What brings records may fail half-way, be tried again, or run twice at once. So what is
brought is *staged* under the name of the attempt, and enters the dataflow when a commit
names the attempt; what is not named is dropped. A `StagingHandle` is handed out for it.

With a checkpoint, what is staged is written there as well, and a handle says where: after
a restart any worker can read it. Without, it lives as long as the worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.input_log import Staged
from pointstamp.errors import ServiceError
from pointstamp.service.protocol import StagingHandle


class StagingArea:
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
        stored: dict[str, Any] | None = None,
    ) -> StagingHandle:
        """Keep what an attempt has brought; the same attempt again changes nothing."""
        attempts = self._waiting.setdefault((input, epoch), {})
        if attempt not in attempts:
            n_rows = sum(batch.num_rows for batch in batches)
            handle = StagingHandle(input, epoch, attempt, self._worker, n_rows, stored)
            attempts[attempt] = (handle.signed(self._secret), list(batches))
        return attempts[attempt][0]

    def take(self, handles: Iterable[StagingHandle]) -> Iterator[pa.RecordBatch]:
        """The batches of those attempts that are this worker's, each attempt once.

        Raises
        ------
        ServiceError
            At once, if one of them is neither here nor in the checkpoint.
        CheckpointError
            When what the checkpoint has is read, and is not what was written.
        """
        mine = {one.attempt: one for one in handles if one.worker == self._worker}
        return chain.from_iterable([self._batches(one) for one in mine.values()])

    def _batches(self, handle: StagingHandle) -> Iterable[pa.RecordBatch]:
        attempts = self._waiting.get((handle.input, handle.epoch), {})
        if handle.attempt in attempts:
            return attempts[handle.attempt][1]
        if handle.stored is not None and self._checkpoint is not None:
            return self._checkpoint.read(Staged.from_json(handle.stored))
        raise ServiceError(
            f"worker {self._worker} has nothing staged by attempt {handle.attempt!r} for epoch "
            f"{handle.epoch} of input {handle.input!r}; it has {sorted(attempts) or 'none'}"
        )

    def drop(self, handle: StagingHandle) -> None:
        """Let go of what one attempt has brought."""
        attempts = self._waiting.get((handle.input, handle.epoch), {})
        attempts.pop(handle.attempt, None)
        if not attempts:
            self._waiting.pop((handle.input, handle.epoch), None)

    def drop_upto(self, input: str, epoch: int) -> None:
        """Let go of what waits for the epochs of an input up to this one: they are decided."""
        for key in [key for key in self._waiting if key[0] == input and key[1] <= epoch]:
            del self._waiting[key]

    def __len__(self) -> int:
        return sum(len(attempts) for attempts in self._waiting.values())
