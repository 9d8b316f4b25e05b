"""PageRank of weighted edges, to a tolerance, and from chosen sources: several at once.

A round passes on the rank of each vertex along its edges, in proportion to their weights, and
adds up what comes in. Edges that repeat count each. Each source has ranks of its own, a column;
all columns travel together.

Sums are added up in the order of the ids, and what is for all as integers, so that ranks do not
depend on the number of workers, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.errors import UsageError
from pointstamp.graph.edges import check_count, check_list, check_share
from pointstamp.graph.graph_partition import SLOT, Floats, GraphPartition, Links, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.graph.vertex_lists import with_lists
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import Numbers, group, positions, starts_of, tally
from pointstamp.kernels.sums import set_values, sum_weighted_lists
from pointstamp.operators.stream import Stream

RANKS = "ranks"

MAX_ROUNDS = 10_000
"""Where a tolerance is given: ranks come nearer by a factor each round, so this is never met."""

# What is for all comes in the place of a slot: how many vertices there are, the two halves of
# the mass that is to be spread, and the largest change of a rank.
_COUNT, _HIGH, _LOW, _CHANGE = -1, -2, -3, -4

_LEAST = np.finfo(np.float64).tiny
"""Weights that add up to less are as none: a rank divided by them would not be finite."""

_UNIT = 2.0**62
_HALF = 31


def weighted_ranks(
    edges: Stream[Any],
    vertices: Stream[Any] | None = None,
    *,
    rounds: int | None = None,
    tolerance: float | None = None,
    damping: float = 0.85,
    sources: Sequence[int] = (),
) -> Stream[Any]:
    """PageRank on weighted edges; personalized, one per source, if sources are given.

    Parameters
    ----------
    edges : Stream
        With weights, as for `sssp`.
    vertices : Stream, optional
        As for `pagerank`.
    rounds, tolerance : optional
        How many rounds; or to go on until no rank changes by more than this in one. Either.
    damping : float
        From 0 to 1.
    sources : sequence of int
        Where walks begin, and go back to: a column of ranks for each, which add up to 1. If
        there are none, walks begin anywhere, and ranks add up to the number of vertices.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64, and `ranks`, lists of a float64 for each source, or of one.

    Notes
    -----
    The rank of a vertex without edges to pass it on along goes back to where walks begin. At
    convergence that is, up to the factor that makes ranks add up, as if it were lost.

    Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking", 1999; from sources,
    T. Haveliwala, "Topic-sensitive PageRank", 2002.

    Examples
    --------
    Of the edges from 1 that to 2 has three quarters of the weight.

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2, 3.0), (1, 3, 1.0)])
    ...     return weighted_ranks(edges, rounds=1, damping=0.5, sources=[1])
    >>> ps.testing.collect(build)
    [(0, (1, [0.5])), (0, (2, [0.375])), (0, (3, [0.125]))]
    """
    check_ranks(rounds, tolerance, damping)
    sources = check_list("weighted_ranks", "source", sources)
    parts = partitions(edges, vertices, ["in", "out"], "push", loops=True, weighted=True)
    start = partial(
        _WeightedRanks,
        rounds=MAX_ROUNDS if rounds is None else rounds,
        tolerance=tolerance,
        damping=damping,
        sources=sources,
    )
    return solve(parts, start, _WeightedRanks.result, "WeightedRanks")


def check_ranks(rounds: int | None, tolerance: float | None, damping: float) -> None:
    """Refuse what ranks cannot be found with, before anything runs; a `UsageError`."""
    if (rounds is None) == (tolerance is None):
        found = "neither was given" if rounds is None else f"found {rounds!r} and {tolerance!r}"
        raise UsageError(f"PageRank needs a number of rounds or a tolerance, and not both; {found}")
    check_share("PageRank", "its damping", damping)
    if rounds is not None:
        check_count("PageRank", "its rounds", rounds, 0)
    elif not isinstance(tolerance, int | float | np.number) or not tolerance > 0:
        raise UsageError(f"PageRank needs a number above 0 as its tolerance, not {tolerance!r}")


class _WeightedRanks:
    """The ranks of a worker's vertices: float64[n, k], a column for each source."""

    def __init__(
        self,
        partition: GraphPartition,
        rounds: int,
        tolerance: float | None,
        damping: float,
        sources: tuple[int, ...],
    ) -> None:
        self._partition = partition
        self._rounds = rounds
        self._tolerance = tolerance
        self._damping = damping
        self._personal = bool(sources)
        self._k = max(1, len(sources))
        heads, self._tails, self._weights = in_order(partition, partition.links[0])
        self._starts = starts_of(tally(heads, partition.n))
        heads, _, weights = in_order(partition, partition.links[1])
        self._out = np.bincount(heads, weights, minlength=partition.n)
        self._parts = np.zeros((self._k, partition.n_places))
        """What each vertex passes on: a row for each source."""
        self._begin = np.zeros((partition.n, self._k))
        """Where walks begin: shares of 1 in each column; of all, once they are counted."""
        for j, source in enumerate(sources):
            self._begin[partition.rows_of(source), j] = 1.0
        self._n_all = partition.n
        self._change = np.inf
        self.ranks: Floats = self._begin

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Round 0 counts the vertices, round 1 has the first ranks, the next are of the loop."""
        if round == 0:
            return self._partition.publish_to_all(self._for_all({_COUNT: [self._n_all]})), True
        if round == 1:
            self._n_all += int(sum(int(batch["value0"].sum()) for batch in messages))
            if not self._personal:
                self._begin = np.full((self._partition.n, 1), 1.0 / self._n_all)
            self.ranks = self._begin.copy()
        else:
            self._receive(messages)
            if self._tolerance is not None and self._change <= self._tolerance / self._scale:
                return [], False
            self._next_ranks()
        if round > self._rounds:
            return [], False
        return self._pass_on(), True

    @property
    def _scale(self) -> float:
        return 1.0 if self._personal else float(self._n_all)

    def _receive(self, messages: list[Arrays]) -> None:
        """What others' vertices pass on, each at the place of its ghost, and what is for all."""
        if not messages:
            return
        slots = value_of(messages, SLOT)
        high, low, change = (slots == slot for slot in (_HIGH, _LOW, _CHANGE))
        for j, parts in enumerate(self._parts):
            values = value_of(messages, f"value{j}")
            set_values(slots, contiguous(values), self._partition.n, parts)
            highs = int(values[high].astype(np.int64).sum())
            self._mass[j] += (highs << _HALF) + int(values[low].astype(np.int64).sum())
            self._change = max(self._change, float(values[change].max(initial=0.0)))

    def _pass_on(self) -> list[Arrays]:
        partition = self._partition
        dangling = self._out < _LEAST
        parts = self.ranks / np.where(dangling, 1.0, self._out)[:, None]
        self._parts[:, : partition.n] = parts.T
        masses = np.rint(self.ranks[dangling] * _UNIT).astype(np.int64)
        self._mass = [int(masses[:, j].sum()) for j in range(self._k)]
        halves = [divmod(mass, 1 << _HALF) for mass in self._mass]
        of_all: dict[int, list[float]] = {
            _HIGH: [high for high, _ in halves],
            _LOW: [low for _, low in halves],
            _CHANGE: [self._change],
        }
        columns = {f"value{j}": contiguous(parts[:, j]) for j in range(self._k)}
        published = partition.publish(None, **columns)
        return [published, *partition.publish_to_all(self._for_all(of_all))]

    def _next_ranks(self) -> None:
        before = self.ranks
        begins = (1.0 - self._damping) + self._damping * (np.array(self._mass) / _UNIT)
        self.ranks = self._begin * begins
        for j, parts in enumerate(self._parts):
            passed = sum_weighted_lists(self._starts, self._tails, self._weights, parts)
            self.ranks[:, j] += self._damping * passed
        self._change = float(np.abs(self.ranks - before).max(initial=0.0))

    def _for_all(self, values: Mapping[int, Sequence[float]]) -> dict[str, Any]:
        """Records for all: what each says in a column for each source; the last is said again."""
        rows = [[*v, *[v[-1]] * (self._k - len(v))] for v in values.values()]
        table = np.array(rows, np.float64)
        columns = {f"value{j}": contiguous(table[:, j]) for j in range(self._k)}
        return {SLOT: np.array(list(values), np.int32), **columns}

    def result(self) -> Any:
        """Vertices and their ranks."""
        return with_lists({VERTEX: self._partition.vertices}, RANKS, self.ranks * self._scale)


def in_order(partition: GraphPartition, *links: Links) -> tuple[Numbers, Numbers, Floats]:
    """The rows of heads, the places of tails and the weights of all links, in the order of ids.

    Of links between the same two vertices, in the order of weights; those of `links` together.
    """
    by_id = np.argsort(partition.ids).astype(np.int32)  # places have ghosts last
    others = [each.others for each in links]
    firsts = np.cumsum([0, *map(len, others[:-1])])
    begins, ends = (
        np.stack([bound[by_id] + first for bound, first in zip(bounds, firsts, strict=True)], 1)
        for bounds in zip(*((each.begins, each.ends) for each in links), strict=True)
    )
    tails = np.repeat(by_id, (ends - begins).sum(axis=1))
    found = positions(begins.ravel(), ends.ravel())
    heads = np.concatenate(others)[found]
    weights = np.concatenate(
        [np.ones(len(each.others)) if each.weights is None else each.weights for each in links]
    )[found]
    counts = tally(heads, partition.n)
    _, tails = group(heads, partition.n, tails)
    _, weights = group(heads, partition.n, weights)
    heads = np.repeat(np.arange(partition.n, dtype=np.int32), counts)
    _order_repeated(heads, tails, weights)
    return heads, tails, weights


def _order_repeated(heads: Numbers, tails: Numbers, weights: Floats) -> None:
    """Order the weights of links between the same two vertices, which follow each other."""
    again = (heads[1:] == heads[:-1]) & (tails[1:] == tails[:-1])
    if not again.any() or weights.min() == weights.max():
        return
    pairs = np.zeros(len(heads), np.int64)
    np.cumsum(~again, out=pairs[1:])
    is_repeated = np.append(False, again)
    is_repeated[:-1] |= again
    repeated = np.flatnonzero(is_repeated)
    order = np.lexsort((weights[repeated], pairs[repeated]))
    weights[repeated] = weights[repeated[order]]
