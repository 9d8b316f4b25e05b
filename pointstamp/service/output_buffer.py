"""What one worker has of one output: batches by epoch, until they are discarded.

Nothing here knows which epochs are complete: a reader asks for those only. The
caller holds a lock, for the worker adds while others read.
"""

from __future__ import annotations

import pyarrow as pa

from pointstamp.errors import EpochError


class OutputBuffer:
    """Keeps the batches of an output by epoch.

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

        Raises
        ------
        EpochError
            If something of this is discarded.
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

    def discard(self, upto: int) -> None:
        """Let go of the epochs up to this one; again is no error."""
        self.discarded = max(self.discarded, upto)
        for epoch in [epoch for epoch in self._kept if epoch <= upto]:
            del self._kept[epoch]
