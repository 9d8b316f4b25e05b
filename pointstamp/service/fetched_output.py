"""What the workers had of an output when their service was stopped, which can be read since."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pointstamp.errors import EpochError


@dataclass
class FetchedOutput:
    """The epochs of an output that were complete.

    Attributes
    ----------
    name : str
        Of the output.
    pairs : list of (int, pyarrow.RecordBatch)
        With their epochs. Of a collection some are of what was discarded, added up.
    discarded : int
        Up to which epoch.
    """

    name: str
    pairs: list[tuple[int, pa.RecordBatch]]
    discarded: int

    def read(self, upto: int | None, after: int | None) -> list[tuple[int, pa.RecordBatch]]:
        """Those behind `after`, or behind what is discarded; raises `EpochError` as workers do."""
        if after is not None and after < self.discarded:
            raise EpochError(
                f"output {self.name!r} cannot be read from epoch {after + 1}: what came up to "
                f"epoch {self.discarded} is discarded"
            )
        first = self.discarded if after is None else after
        return [
            (epoch, batch)
            for epoch, batch in self.pairs
            if first < epoch and (upto is None or epoch <= upto)
        ]

    def discard(self, upto: int) -> None:
        """Read the epochs up to this one no more."""
        self.discarded = max(self.discarded, upto)
