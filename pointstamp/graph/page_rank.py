"""PageRank: how likely a walk along the edges, with random jumps, is at each vertex.

Every round the rank of a vertex, divided by the number of its out-neighbours, is
received by the workers that have edges from it, and they add up what comes in.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.errors import UsageError
from pointstamp.graph.edges import check_count, check_share
from pointstamp.graph.graph_partition import SLOT, VALUE, GraphPartition, followed
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import Numbers
from pointstamp.kernels.sums import Floats, set_values, sum_lists
from pointstamp.operators.stream import Stream

RANK = "rank"

# What is for all comes in the place of a slot: how many vertices a worker has, and
# the two local_streams of the mass that is to be spread.
_COUNT, _HIGH, _LOW = -1, -2, -3

# Masses are added up as multiples of 2^-62, since sums of integers do not depend on
# the number of workers; in local_streams that a float holds exactly when they travel.
_UNIT = 2.0**62
_HALF = 31


def pagerank(
    edges: Stream[Any],
    vertices: Stream[Any] | None = None,
    *,
    rounds: int = 20,
    damping: float = 0.85,
    dangling: Literal["spread", "drop"] = "spread",
    directed: bool = True,
) -> Stream[Any]:
    """The PageRank of each vertex, after a number of iterations.

    All ranks are 1/N at first, of N vertices. A round gives each vertex (1 - damping)/N,
    and damping times what its in-neighbours pass on: their rank, in equal parts to
    their out-neighbours. Edges that repeat count once.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Batches with an integer column `vertex`, `id`, or else the first; or rows of
        integers. Needed only for vertices without edges, which count in N.
    rounds : int
        At least 0.
    damping : float
        From 0 to 1.
    dangling : "spread" or "drop"
        What becomes of the rank of vertices without out-neighbours: divided among
        all vertices, as LDBC Graphalytics has it (ranks add up to 1), or lost.
    directed : bool
        If not, every edge is one in both directions.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64, and `rank`, float64; each vertex once, on the worker
        that owns it. The same on any number of workers, to the last bit.

    Raises
    ------
    UsageError
        If `rounds` or `damping` are out of range. When it is built.

    Notes
    -----
    Work per round is of the order of the edges; a worker sends 14 bytes for each of
    its vertices and each other worker that has edges from it. Memory at its peak,
    beside the edges that come in: one and a quarter times what they take as two int64
    columns, two and a quarter if undirected.

    Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking", 1999;
    LDBC Graphalytics specification.

    Examples
    --------
    Both edges lead to 2, which in one round keeps nothing: 0.15/3 + 0.85 (1/3 + 1/3).

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2), (3, 2)] if scope.index == 0 else [])
    ...     return pagerank(edges, rounds=1, dangling="drop")
    >>> [(v, round(rank, 4)) for _, (v, rank) in ps.testing.collect(build, workers=2)]
    [(1, 0.05), (2, 0.6167), (3, 0.05)]
    """
    check_count("pagerank", "its rounds", rounds, 0)
    check_share("pagerank", "its damping", damping)
    if dangling not in ("spread", "drop"):
        raise UsageError(f"pagerank can 'spread' or 'drop' dangling mass, not {dangling!r}")
    parts = partitions(edges, vertices, [followed(directed)], "pull", loops=True)
    start = partial(_Ranks, rounds=rounds, damping=damping, spread=dangling == "spread")
    return solve(parts, start, _Ranks.result, "PageRank")


class _Ranks:
    """The ranks of a worker's vertices."""

    def __init__(
        self, partition: GraphPartition, rounds: int, damping: float, spread: bool
    ) -> None:
        self._partition = partition
        self._rounds = rounds
        self._damping = damping
        self._spread = spread
        self._n_all = partition.n
        self._dangling = partition.degrees == 0
        self._divisors = np.maximum(partition.degrees, 1).astype(np.float64)
        self._parts = np.zeros(partition.n_places)
        """What each place passes on to each of its out-neighbours."""
        self.ranks: Floats = np.empty(0)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Round 0 counts the vertices, round 1 has the first ranks, the next are of the loop."""
        if round == 0:
            return self._partition.publish_to_all(
                _for_all({_COUNT: float(self._partition.n)})
            ), True
        if round == 1:
            self._n_all += int(sum(batch[VALUE].sum() for batch in messages))
            self.ranks = np.full(self._partition.n, 1.0 / self._n_all)
        else:
            for batch in messages:
                self._receive(contiguous(batch[SLOT]), contiguous(batch[VALUE]))
            self.ranks = self._next_ranks()
        if round > self._rounds:
            return [], False
        return self._pass_on(), True

    def _receive(self, slots: Numbers, values: Floats) -> None:
        """What others' vertices pass on, each at the place of its ghost, and what is for all."""
        if set_values(slots, values, self._partition.n, self._parts):
            self._mass += _mass_of(slots, values)

    def _pass_on(self) -> list[Arrays]:
        partition = self._partition
        parts = self.ranks / self._divisors
        self._parts[: partition.n] = parts
        messages = [partition.publish(value=parts)]
        self._mass = 0
        if self._spread:
            dangling = self.ranks[self._dangling]
            self._mass = int(np.rint(dangling * _UNIT).astype(np.int64).sum())
            halves = divmod(self._mass, 1 << _HALF)
            messages += partition.publish_to_all(
                _for_all(dict(zip((_HIGH, _LOW), halves, strict=True)))
            )
        return messages

    def _next_ranks(self) -> Floats:
        links = self._partition.links[0]
        base = (1.0 - self._damping) + self._damping * (self._mass / _UNIT)
        ranks = sum_lists(links.begins, links.ends, links.others, contiguous(self._parts))
        ranks *= self._damping
        ranks += base / self._n_all
        return ranks

    def result(self) -> Any:
        """Vertices and their ranks."""
        return to_arrow(Arrays({VERTEX: self._partition.vertices, RANK: self.ranks}))


def _for_all(values: dict[int, float]) -> dict[str, Any]:
    return {
        SLOT: np.array(list(values), np.int32),
        VALUE: np.array(list(values.values()), np.float64),
    }


def _mass_of(slots: Any, values: Floats) -> int:
    """The sum of what the others have to spread."""
    highs = int(values[slots == _HIGH].astype(np.int64).sum())
    return (highs << _HALF) + int(values[slots == _LOW].astype(np.int64).sum())
