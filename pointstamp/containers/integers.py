"""One integer for each record of a batch of columns."""

from __future__ import annotations

from typing import Any

from pointstamp.containers.kind import Ints
from pointstamp.containers.registry import kind_of
from pointstamp.containers.splitting import split_by_value as split_by_value


def integers_of(batch: Any, chosen: Any, what: str) -> Ints:
    """The integer of each record, int64[n]."""
    return kind_of(batch).integers(batch, chosen, what)
