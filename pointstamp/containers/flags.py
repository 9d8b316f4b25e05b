"""Batches of columns divided by a column of booleans."""

from __future__ import annotations

from typing import Any

from pointstamp.containers.registry import kind_of


def split_by_flag(batch: Any, name: str, what: str) -> list[Any]:
    """The records for which the column `name` is not true (null counts as that), and the others."""
    kind = kind_of(batch)
    return [kind.filter(batch, name, what, keep=keep) for keep in (False, True)]
