"""What a table hands out for a snapshot: for each bin that has changed, what is new.

A bin is handed out *whole*, or as *more*: records that are added to, or take the place of, what
was handed out of it since it was last whole. What is more may be put together with the last of
that, which it then replaces. A delta is of immutable batches, so that it can be written while the
table goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AGAIN = "updates"
"""The name of updates of which something else is kept (sums), and that are taken in again: they
are dead from the beginning."""


@dataclass(frozen=True)
class BinDelta:
    """The changes of one bin since its last delta.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    is_whole : bool
        Whether it takes the place of all that was handed out of this bin before.
    n_replaced : int
        If it does not: of so many of the last batches.
    """

    batch: Any
    is_whole: bool = True
    n_replaced: int = 0


@dataclass(frozen=True)
class TableDelta:
    """The changes of a table since its last delta.

    Attributes
    ----------
    kind : str
        What the table's records are, in words; a table that is restored must be of the same.
    changes : mapping of int to BinDelta
        By bin. A bin that is not there is as it was.
    is_whole : bool
        Whether it takes the place of all that was handed out, and a bin that is not there is empty:
        what the worker had before a restart may be another's now.
    """

    kind: str
    changes: Mapping[int, BinDelta] = field(default_factory=dict)
    is_whole: bool = False
