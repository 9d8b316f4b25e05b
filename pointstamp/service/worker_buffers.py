"""What one worker of a service keeps: what is staged, what is to be sent, what came out.

What brings records may fail half-way, be tried again, or run twice at once. So what is
brought is *staged* under the name of the attempt, and enters the dataflow when a commit
names the attempt; what is not named is dropped. With a checkpoint, what is staged is written
there as well, and its handle says where: after a restart any worker can read it.

Where the workers have a `memory_limit`, what is staged goes to disk if it does not fit, and is
read again batch by batch as the dataflow takes it.

The caller holds a lock, except for `InputFeeder`, which is the worker's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.staged import Staged
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.schema import Schema
from pointstamp.containers.text_sweep import SWEEPS, Held
from pointstamp.errors import EpochError, ServiceError, UsageError
from pointstamp.operators.sources import InputHandle
from pointstamp.service.changes_columns import added_up, no_rows, to_columns
from pointstamp.service.protocol import StageBatches, StagingHandle, StagingKey

MOST_JOBS = 64
"""So many that were aborted are known: tasks that still run then may stage a moment later."""


class StagingArea:
    """The staged batches of one worker, whose handles are signed with a secret."""

    def __init__(self, worker: int, checkpoint: Checkpoint | None, secret: bytes) -> None:
        self._worker = worker
        self._secret = secret
        self._checkpoint = checkpoint
        self._waiting: dict[StagingKey, tuple[StagingHandle, Sequence[pa.RecordBatch], int]] = {}
        """With each handle its batches, and how many bytes they have."""
        self._dropped_jobs: deque[str] = deque(maxlen=MOST_JOBS)

    def stage(
        self,
        request: StageBatches,
        batches: Sequence[pa.RecordBatch],
        stored: Staged | None,
        size: tuple[int, int] | None = None,
    ) -> StagingHandle:
        """Keep what an attempt has brought; the same attempt again changes nothing.

        `size` is how many records and bytes it has, where that is known. Raises `ServiceError` if
        the attempt is of a job that was aborted.
        """
        if request.attempt.startswith(tuple(self._dropped_jobs)):
            raise ServiceError(f"the job of attempt {request.attempt!r} was aborted: stage it anew")
        n_rows, n_bytes = size or (
            sum(batch.num_rows for batch in batches),
            sum(batch.nbytes for batch in batches),
        )
        place = request.input, request.epoch, request.attempt, self._worker
        handle = StagingHandle(*place, n_rows, stored).signed(self._secret)
        return self._waiting.setdefault(handle.key, (handle, batches, n_bytes))[0]

    def n_bytes(self, input: str) -> int:
        """How much waits for a commit of an input."""
        return sum(n_bytes for key, (_, _, n_bytes) in self._waiting.items() if key[0] == input)

    def take(self, handles: Iterable[StagingHandle]) -> Iterator[pa.RecordBatch]:
        """The batches of those attempts that are this worker's, each attempt once.

        Raises `ServiceError` at once if one of them is neither here nor in the checkpoint, and
        `CheckpointError` when what that has is read, and is not what was written.
        """
        mine = {one.attempt: one for one in handles if one.worker == self._worker}
        staged = [self._batches(one) for one in mine.values()]
        staged.reverse()

        def each() -> Iterator[pa.RecordBatch]:
            while staged:  # which lets go of them one by one
                yield from staged.pop()

        return each()

    def taken_bytes(self, handles: Iterable[StagingHandle]) -> int:
        """How many bytes `take` gives of what is here; what a checkpoint has is not counted."""
        return sum(self._waiting[key][2] for key in {h.key for h in handles} & self._waiting.keys())

    def _batches(self, handle: StagingHandle) -> Iterable[pa.RecordBatch]:
        if handle.key in self._waiting:
            return self._waiting[handle.key][1]
        if handle.stored is not None and self._checkpoint is not None:
            return self._checkpoint.read(handle.stored)
        raise ServiceError(
            f"worker {self._worker} has nothing staged by attempt {handle.attempt!r} for epoch "
            f"{handle.epoch} of input {handle.input!r}; it has {sorted(self._waiting) or 'none'}"
        )

    def drop(self, handle: StagingHandle) -> None:
        """Let go of what one attempt has brought."""
        self._waiting.pop(handle.key, None)

    def drop_job(self, job: str) -> None:
        """Let go of what the attempts of a job have brought, and take nothing more of it."""
        self._dropped_jobs.append(job)
        for key in [key for key in self._waiting if key[2].startswith(job)]:
            del self._waiting[key]

    def drop_upto(self, input: str, epoch: int) -> None:
        """Let go of what waits for the epochs of an input up to this one: they are decided."""
        for key in [key for key in self._waiting if key[0] == input and key[1] <= epoch]:
            del self._waiting[key]

    def __len__(self) -> int:
        return len(self._waiting)


class InputFeeder:
    """Feeds an input as fast as the dataflow takes it, in the order of the decisions."""

    def __init__(
        self, handle: InputHandle, decode: Callable[[pa.RecordBatch], Any] | None = None
    ) -> None:
        self._handle = handle
        self._decode = decode
        """Makes of a batch what the input is of, where that is something else."""
        self._waiting: deque[Iterator[None]] = deque()
        self.n_bytes = 0
        """How much was admitted and waits for the dataflow to have room."""

    @property
    def time(self) -> int | None:
        """The epoch that the input is at; None when it is closed."""
        return None if self._handle.is_closed else int(self._handle.time)

    def admit(
        self, epoch: int, batches: Iterable[pa.RecordBatch], until: int | None, n_bytes: int = 0
    ) -> None:
        """Send `batches` at `epoch`, then go on to `until`, or close; `feed` does it.

        Of `n_bytes` in all. They are asked for one by one, so that what is read from files is not
        in memory at once.
        """
        self.n_bytes += n_bytes
        self._waiting.append(self._admission(epoch, batches, until, n_bytes))

    def feed(self) -> None:
        """Send what the dataflow has room for; the rest waits for the next call."""
        while self._waiting and not self._handle.is_throttled:
            if next(self._waiting[0], True):
                self._waiting.popleft()

    def _admission(
        self, epoch: int, batches: Iterable[pa.RecordBatch], until: int | None, n_bytes: int
    ) -> Iterator[None]:
        """Goes on by a batch with each None that it gives."""
        self._handle.advance_to(epoch)
        for batch in batches:
            n_taken = min(n_bytes, batch.nbytes) if n_bytes else 0
            n_bytes -= n_taken
            self.n_bytes -= n_taken
            self._handle.send_batch(batch if self._decode is None else self._decode(batch))
            yield
        self.n_bytes -= n_bytes
        if until is None:
            self._handle.close()
        else:
            self._handle.advance_to(until)


class OutputBuffer:
    """Keeps the batches of an output by epoch, until they are discarded.

    Which epochs are complete it does not know: a reader asks for those only.

    >>> buffer = OutputBuffer("counts")
    >>> buffer.add(3, pa.RecordBatch.from_pydict({"n": [7]}))
    >>> [(epoch, batch.to_pylist()) for epoch, batch in buffer.read(None, 3)]
    [(3, [{'n': 7}])]
    >>> buffer.discard(3)
    >>> buffer.read(None, 3)
    []
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.discarded = -1
        """The last epoch that is discarded; epochs begin with 0."""
        self._kept: dict[int, list[pa.RecordBatch]] = {}

    def add(self, epoch: int, batch: pa.RecordBatch) -> None:
        """Keep a batch; those without records are not kept."""
        if batch.num_rows:
            self._kept.setdefault(epoch, []).append(batch)

    def read(self, after: int | None, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of the epochs in (after, upto], in order; all that is kept, for None.

        Raises `EpochError` if something of this is discarded.
        """
        if after is None:
            after = self.discarded
        if after < self.discarded:
            raise EpochError(
                f"output {self.name!r} cannot be read from epoch {after + 1}: what came up to "
                f"epoch {self.discarded} is discarded"
            )
        epochs = sorted(epoch for epoch in self._kept if after < epoch <= upto)
        return [(epoch, batch) for epoch in epochs for batch in self._kept[epoch]]

    def all(self, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """What has to be kept to go on from the end of `upto`."""
        return self.read(None, upto)

    def snapshot(self, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """Raises `UsageError`: this output is a stream."""
        raise UsageError(
            f"output {self.name!r} is a stream, and only collections have snapshots: read epochs"
        )

    def discard(self, upto: int) -> None:
        """Let go of the epochs up to this one; again is no error."""
        self.discarded = max(self.discarded, upto)
        for epoch in [epoch for epoch in self._kept if epoch <= upto]:
            del self._kept[epoch]


class CollectionBuffer(OutputBuffer):
    """The same of a collection: what is discarded is added up, so that its records are known.

    What a service that begins again gets of epochs that are discarded is added to that. So a
    snapshot of the service may have added up no epoch that comes again after it: until
    that has what it needs, `hold_at` has later epochs kept, even if they are discarded.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        super().__init__(name)
        self._schema = schema
        self._added = BatchSeries()
        """Rows that add up to the records as of the last epoch that is added up."""
        self._limit: int | None = None
        """No later epoch is added up."""

    def all(self, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """The records as of an epoch that is discarded, with that, and the changes since."""
        with SWEEPS.held_back():
            records = self._records()
            base = [(self._n_added(), to_columns(self._schema, records))] if len(records) else []
        kept = sorted(epoch for epoch in self._kept if epoch <= upto)
        return base + [(epoch, batch) for epoch in kept for batch in self._kept[epoch]]

    def snapshot(self, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """The records as of the end of `upto`, each with how often it is there.

        Raises `EpochError` if that is before what is discarded.
        """
        if upto < self.discarded:
            raise EpochError(
                f"output {self.name!r} has no snapshot as of epoch {upto}: what came up to epoch "
                f"{self.discarded} is added up"
            )
        parts = [batch for _, batch in self.all(upto)]
        with SWEEPS.held_back():
            rows = added_up(self._schema, parts, f"output {self.name!r}")
            return [(upto, to_columns(self._schema, rows))] if len(rows) else []

    def add(self, epoch: int, batch: pa.RecordBatch) -> None:
        """Keep a batch of changes."""
        super().add(epoch, batch)
        if epoch <= self.discarded:
            self._add_up()

    def discard(self, upto: int) -> None:
        """Add up the epochs up to this one."""
        self.discarded = max(self.discarded, upto)
        self._add_up()

    def hold_at(self, epoch: int | None) -> None:
        """Add up no later epoch from now on; any for None."""
        self._limit = epoch
        self._add_up()

    def held_texts(self) -> list[Held]:
        """What is added up, for sweeps; it changes only where these are held back."""
        return [(rows, self._schema.texts) for rows in self._added.rows]

    def _n_added(self) -> int:
        return self.discarded if self._limit is None else min(self.discarded, self._limit)

    def _add_up(self) -> None:
        upto = self._n_added()
        done = [self._kept.pop(epoch) for epoch in list(self._kept) if epoch <= upto]
        if done:
            batches = [batch for of_epoch in done for batch in of_epoch]
            with SWEEPS.held_back():
                rows = added_up(self._schema, batches, f"output {self.name!r}")
                if len(rows):
                    self._added.insert(rows)

    def _records(self) -> Any:
        return self._added.as_one(no_rows(self._schema))
