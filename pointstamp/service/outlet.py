"""What one worker has of one output: batches by epoch, until they are forgotten.

Nothing here knows which epochs are complete: whoever reads asks for those only. The
caller holds a lock, for the worker adds while others read.
"""

from __future__ import annotations

import pyarrow as pa

from pointstamp.errors import EpochError


class Outlet:
    """Keeps the batches of an output by epoch.

    >>> outlet = Outlet("counts")
    >>> outlet.add(3, pa.RecordBatch.from_pydict({"n": [7]}))
    >>> [(epoch, batch.to_pylist()) for epoch, batch in outlet.read(None, 3)]
    [(3, [{'n': 7}])]
    >>> outlet.forget(3)
    >>> outlet.read(None, 3)
    []
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.forgotten = -1
        """The last epoch that is forgotten; epochs begin with 0."""
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
            If something of this is forgotten.
        """
        if after is None:
            after = self.forgotten
        if after < self.forgotten:
            raise EpochError(
                f"output {self.name!r} cannot be read from epoch {after + 1}: what came up to "
                f"epoch {self.forgotten} is forgotten"
            )
        epochs = sorted(epoch for epoch in self._kept if after < epoch <= upto)
        return [(epoch, batch) for epoch in epochs for batch in self._kept[epoch]]

    def forget(self, upto: int) -> None:
        """Let go of the epochs up to this one; again is no error."""
        self.forgotten = max(self.forgotten, upto)
        for epoch in [epoch for epoch in self._kept if epoch <= upto]:
            del self._kept[epoch]
