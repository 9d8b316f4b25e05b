"""Scopes that nothing holds, for tests of progress alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pointstamp.progress.operate import Operate
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import SAME, Timestamp
from pointstamp.progress.topology import Edge


def root(
    name: str,
    timestamp: Timestamp,
    children: Sequence[Operate],
    edges: Sequence[Edge],
    **options: Any,
) -> Subgraph:
    """A scope that nothing holds, set up and ready for its first visit."""
    subgraph = Subgraph(name, timestamp, timestamp, children, edges, **options)
    assert subgraph.refinement == SAME
    subgraph.internal_summary()
    subgraph.set_external_summary([], [])
    return subgraph
