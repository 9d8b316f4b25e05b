"""Columns grouped by the values of key columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pointstamp.containers import arrow_groups
from pointstamp.containers.arrow_groups import can_combine as can_combine
from pointstamp.containers.arrow_groups import check_aggregates as check_aggregates
from pointstamp.containers.arrow_groups import combined as combined
from pointstamp.containers.registry import kind_of


def groups(batch: Any, key: Any, operator: str) -> Iterator[tuple[Any, Any]]:
    """Each distinct key of a batch of columns, and its records as a batch of the same kind."""
    return kind_of(batch).group(batch, key, operator)


def aggregated(batch: Any, key: Any, aggregates: Any, operator: str) -> Any:
    """One record for each distinct key."""
    kind = kind_of(batch)
    if not kind.has_columns and (named := arrow_groups.named_columns(key, aggregates)):
        kind.column(batch, named[0], operator)
    return arrow_groups.aggregated(kind_of(batch).to_arrow(batch), key, aggregates, operator)
