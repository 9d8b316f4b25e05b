"""Batches that were brought to a worker and wait to be named winners, or losers.

Who brings records may fail half-way, be tried again, or run twice at once. So what is
brought is *staged* under the name of the attempt, and enters the dataflow when a commit
names the attempt; what is not named is dropped. A `Staged` is the receipt.

In memory, for as long as the worker lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from pointstamp.errors import ServiceError, UsageError


@dataclass(frozen=True)
class Staged:
    """What was staged, by whom, and at which worker it lies."""

    input: str
    epoch: int
    attempt: str
    worker: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire.

        >>> Staged.from_json(Staged("edges", 3, "a", 0, 10).to_json())
        Staged(input='edges', epoch=3, attempt='a', worker=0, rows=10)
        """
        return asdict(self)

    @classmethod
    def from_json(cls, told: Any) -> Staged:
        """The receipt that `to_json` wrote.

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
            )
        except (TypeError, KeyError, ValueError) as cause:
            raise UsageError(
                f"{told!r} is no receipt: hand back, unchanged, what staging gave"
            ) from cause


class Staging:
    """The staged batches of one worker; its caller holds a lock."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._waiting: dict[tuple[str, int], dict[str, tuple[Staged, list[pa.RecordBatch]]]] = {}

    def stage(
        self, input: str, epoch: int, attempt: str, batches: Sequence[pa.RecordBatch]
    ) -> Staged:
        """Keep what an attempt has brought; the same attempt again changes nothing."""
        attempts = self._waiting.setdefault((input, epoch), {})
        if attempt not in attempts:
            n_rows = sum(batch.num_rows for batch in batches)
            staged = Staged(input, epoch, attempt, self._worker, n_rows)
            attempts[attempt] = (staged, list(batches))
        return attempts[attempt][0]

    def take(self, winners: Iterable[Staged]) -> list[pa.RecordBatch]:
        """The batches of those winners that lie here, each attempt once.

        Raises
        ------
        ServiceError
            If one of them is not here.
        """
        found: dict[str, list[pa.RecordBatch]] = {}
        for staged in winners:
            if staged.worker == self._worker:
                found[staged.attempt] = self._batches(staged)
        return [batch for batches in found.values() for batch in batches]

    def _batches(self, staged: Staged) -> list[pa.RecordBatch]:
        attempts = self._waiting.get((staged.input, staged.epoch), {})
        if staged.attempt not in attempts:
            raise ServiceError(
                f"worker {self._worker} has nothing staged by attempt {staged.attempt!r} for epoch "
                f"{staged.epoch} of input {staged.input!r}; it has {sorted(attempts) or 'none'}"
            )
        return attempts[staged.attempt][1]

    def has(self, staged: Staged) -> bool:
        """Whether this receipt is for something that lies here."""
        return staged.attempt in self._waiting.get((staged.input, staged.epoch), {})

    def drop(self, staged: Staged) -> None:
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
