"""Some records and columns of a batch: what its kind does, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pointstamp.containers.kind import Ints
from pointstamp.containers.registry import kind_of

Key = str | Sequence[str]


def take(batch: Any, places: Ints) -> Any:
    """The records at `places`, int64[m], in that order, with repetitions."""
    return kind_of(batch).take(batch, places)


def is_columns(batch: Any) -> bool:
    """Whether `batch` is an Arrow record batch."""
    return type(batch) is not list and kind_of(batch).name == "columns"


def column_of(batch: Any, name: str, operator: str) -> Any:
    """A column of a batch."""
    return kind_of(batch).column(batch, name, operator)


def with_columns(batch: Any, more: dict[str, Any]) -> Any:
    """A batch with more columns at the end."""
    return kind_of(batch).with_columns(batch, more)
