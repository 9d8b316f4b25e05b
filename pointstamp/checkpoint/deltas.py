"""What a table hands out for a snapshot: for each bin that has changed, what is new.

A bin is handed out *whole*, or as *more*: records that are added to, or take the place of, what
was handed out of it since it was last whole. A delta is of immutable batches, so that it can
be written while the table goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BinDelta:
    """What is new in one bin.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    is_whole : bool
        Whether it takes the place of all that was handed out of this bin before.
    """

    batch: Any
    is_whole: bool = True


@dataclass(frozen=True)
class TableDelta:
    """The changes of a table since its last delta.

    Attributes
    ----------
    kind : str
        What the table's records are, in words; a table that is restored must be of the same.
    changes : mapping of int to BinDelta
        By bin. A bin that is not there is as it was.
    """

    kind: str
    changes: Mapping[int, BinDelta] = field(default_factory=dict)
