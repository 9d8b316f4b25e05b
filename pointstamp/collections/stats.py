"""Statistics of what is arranged: how much there is, in how many batches, and of which times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pointstamp.collections.arrange import Arrangement
from pointstamp.containers.text_sweep import SWEEPS, TextStats

if TYPE_CHECKING:
    from pointstamp.collections.schema import Schema
    from pointstamp.collections.trace_arrange import TraceArrangement


@dataclass(frozen=True)
class IndexStats:
    """What this worker keeps of one arrangement.

    Times are those of its scope; a tuple has the least ones, several only in a loop.
    """

    columns: str
    """The schema of the collection that is arranged."""
    key: tuple[str, ...]
    updates: int
    bytes: int
    batches: int
    apart: int
    """So many of the batches, the newest, are not merged before all readers have come as far."""
    merging: int
    """So many merges, of two batches each, are in progress."""
    since: tuple[Any, ...]
    """Accumulations at these times and all after them are exact; empty where nothing reads it."""
    upper: tuple[Any, ...]
    """All times before these are in batches, as far as this worker knows; empty where all are."""


@dataclass(frozen=True)
class CollectionStats:
    """What this worker keeps of a collection, arranged: sums over its arrangements."""

    updates: int
    bytes: int
    batches: int
    apart: int
    merging: int
    """See `IndexStats`, both."""
    indexes: tuple[IndexStats, ...]
    """Of each arrangement."""
    texts: TextStats
    """Of the texts of this process, which its collections share."""


@dataclass(frozen=True)
class IndexedColumns:
    """An arrangement, and what it is of."""

    schema: Schema
    key: tuple[str, ...]
    arrangement: Arrangement | TraceArrangement

    def stats(self) -> IndexStats:
        """As of now, at this worker."""
        kept, stream = self.arrangement, self.arrangement.batches
        graph = stream.scope.subgraph
        least = stream.scope.timestamp.minimum
        upper = [least] if graph is None else graph.frontier_behind(*stream.source)
        if isinstance(kept, Arrangement):
            spine = kept.spine
            n_batches, n_merges = spine.n_batches, len(spine.merges)
            sizes = spine.n_updates, spine.n_bytes, n_batches, spine.n_apart, n_merges
            since = [spine.since] if spine.is_kept else []
        else:
            trace = kept.trace
            n_bytes = sum(batch.rows.nbytes for batch in trace.batches)
            n_batches, n_merges = len(trace.batches), len(trace.merges)
            sizes = trace.n_updates, n_bytes, n_batches, trace.n_apart, n_merges
            since = kept.encoding.least(trace.asked_for)
        return IndexStats(
            str(self.schema),
            self.key,
            *sizes,
            tuple(since),
            tuple(upper),
        )


def stats_of(indexes: Sequence[IndexedColumns]) -> CollectionStats:
    """Of some arrangements together."""
    found = tuple(index.stats() for index in indexes)
    return CollectionStats(
        sum(stats.updates for stats in found),
        sum(stats.bytes for stats in found),
        sum(stats.batches for stats in found),
        sum(stats.apart for stats in found),
        sum(stats.merging for stats in found),
        found,
        SWEEPS.stats(),
    )
