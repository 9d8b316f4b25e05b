"""What a dataflow of collections has beside its results, kept where it is built.

Checks that a view waits for, what was arranged, and loops that are to be explained: each is
made deep in a program, and asked for from outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.stream_core import StreamCore

if TYPE_CHECKING:
    from pointstamp.collections.explained_loop import ExplainedLoop
    from pointstamp.collections.stats import IndexedColumns
    from pointstamp.operators.feedback import Loop


@dataclass
class BesideResults:
    """Of one dataflow, by what its collections were asked for while it was built."""

    checks: list[StreamCore[Any]] = field(default_factory=list)
    """Streams of the outermost scope, whose times are over when what is checked was looked at."""
    indexes: list[IndexedColumns] = field(default_factory=list)
    """What is arranged."""
    loops: list[ExplainedLoop] = field(default_factory=list)
    """Loops whose rounds are counted."""
    closing: dict[Any, Loop] = field(default_factory=dict)
    """By scope: the loop through which what enters it goes."""

    def figures(self) -> list[dict[str, Any]]:
        """What is arranged, as plain values, for what looks at a worker from outside."""
        return [
            {
                "columns": stats.columns,
                "key": list(stats.key),
                "updates": stats.updates,
                "bytes": stats.bytes,
                "batches": stats.batches,
                "apart": stats.apart,
                "merging": stats.merging,
                "since": [str(time) for time in stats.since],
                "upper": [str(time) for time in stats.upper],
            }
            for stats in (index.stats() for index in list(self.indexes))
        ]


def beside_of(scope: Any) -> BesideResults:
    """Of the dataflow of a scope."""
    while scope.parent is not None:
        scope = scope.parent
    found: BesideResults = scope.beside.setdefault(BesideResults, BesideResults())
    return found
