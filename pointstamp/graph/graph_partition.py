"""A worker's partition of a graph, and which worker gets which of its values.

Every worker owns some vertices by hash, and an edge lies with the owner of its
*head*, the end whose value it helps to work out. The other end, the *tail*, may be
another worker's; then it is a *ghost* here, and its owner sends us its values: once per
worker that has it, however many edges there lead from it (messages is combined before
it travels, and the edges of a vertex of high degree are spread over the workers).

    rows    0 to n - 1, own vertices in order of their ids
    places  the rows, then a place for each ghost: an array over places has a value
            for whatever the edges here name

Because all edges into a vertex are at one worker, and in the order of their tails'
ids, what is added up over them does not depend on the number of workers, to the bit.

Knows nothing of streams: `sharing` makes partitions of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.graph.supersteps import TO
from pointstamp.kernels.group_tables import add_ints
from pointstamp.kernels.hashing import contiguous, hash_ints
from pointstamp.kernels.lists import (
    DenseIds,
    Ints,
    Numbers,
    count_into,
    distinct,
    group,
    group_distinct,
    group_sorted,
    numbers_of,
    packed_pairs,
    place_into,
    positions,
    sorted_pairs,
    starts_of,
    tally,
)
from pointstamp.kernels.permute import gather
from pointstamp.kernels.sorting import sort_numbers

Floats = npt.NDArray[np.float64]
Addresses = npt.NDArray[np.int16]

Direction = Literal["in", "out", "both"]
"""Which edges matter to a vertex, its head: those into it, those out of it, or both as one."""


def followed(directed: bool) -> Direction:
    """The links that lead to a vertex from those that it follows."""
    return "in" if directed else "both"


Form = Literal["pull", "push"]
"""Whether a vertex looks at all its tails, or is looked at from a tail that has changed."""

AT, OF, WEIGHT = "at", "of", "weight"
"""The columns of edges on their way to a partition: head, tail and weight."""

SLOT, VALUE = "slot", "value"

_PIECE = 65_536

_MOST_IDS = 1 << 31
"""So many numbers have 31 bits, which is what half of a packed pair holds."""


@dataclass(frozen=True, eq=False)
class Links:
    """Edges in lists.

    Attributes
    ----------
    begins, ends : int64[k], where each list begins and ends in `others`
    others : int32[m]
        To pull: by row, the places of its tails, in order of their ids, each once.
        To push: by place, the rows of its heads; edges that repeat are repeated.
    weights : float64[m] of edges to push, if they have weights
    """

    begins: Ints
    ends: Ints
    others: Numbers
    weights: Floats | None = None

    @property
    def sizes(self) -> Ints:
        """The lengths of the lists, int64[k]."""
        return self.ends - self.begins


def turned(links: Links, n_places: int) -> Links:
    """Links to push of links to pull."""
    heads = np.repeat(np.arange(len(links.begins), dtype=np.int32), links.sizes)
    starts, others = group(links.others, n_places, heads)
    return Links(contiguous(starts[:-1]), contiguous(starts[1:]), contiguous(others))


@dataclass(frozen=True, eq=False)
class LocalEdges:
    """What a worker knows of its partition before its peers' requests have come.

    Attributes
    ----------
    heads, tails : int64, the ids at either end of edges here, sorted, distinct
    owners : int16[tails]
    counts : int64[tails], in how many lists of the first links each tail is
    lists : list of (lists' numbers, starts, items, weights)
        Of each links. To pull, lists are of heads and items are tails; to push the
        other way round. Lists by their position in `heads` or `tails`, and items too, except
        that those to pull may be by their distance from `low`.
    low : int, optional
        What an item is the distance from, where it is that of a tail's id.
    """

    form: Form
    heads: Ints
    tails: Ints
    owners: Addresses
    counts: Ints
    lists: list[tuple[Numbers, Ints, Numbers, Floats | None]]
    low: int | None = None


def local_edges_of(
    form: Form, edges: list[list[Arrays]], vertices: list[Ints], peers: int
) -> LocalEdges:
    """Put the edges here into lists.

    Parameters
    ----------
    edges : for each links, batches of `AT`, `OF` and, if they have weights, `WEIGHT`
        They are the largest thing there is: never put together, and each batch is
        let go as soon as its edges are in their lists.
    vertices : int64 each, of which there may be no edges
    peers : how many workers own vertices
    """
    if form == "pull":
        n_edges = sum(len(batch) for batches in edges for batch in batches)
        head_low, n_heads = _span_of(_columns(edges, AT))
        tail_low, n_tails = _span_of(_columns(edges, OF))
        # What is kept for each id in between takes less than the edges do.
        if max(n_heads, n_tails) <= min(n_edges // 2 + 64, _MOST_IDS):
            return _near_edges_of(edges, vertices, peers, head_low, n_heads, tail_low, n_tails)
    heads = DenseIds.of(distinct(*_columns(edges, AT), *vertices))
    tails = DenseIds.of(distinct(*_columns(edges, OF)))
    owners = _owners_of(tails.ids, peers)
    put = _lists_to_pull if form == "pull" else _lists_to_push
    lists = [put(heads, tails, batches) for batches in edges]
    counted = lists[0][2] if form == "pull" else np.empty(0, np.int32)
    counts = tally(counted, len(tails.ids))
    return LocalEdges(form, heads.ids, tails.ids, owners, counts, lists)


def _near_edges_of(
    edges: list[list[Arrays]],
    vertices: list[Ints],
    peers: int,
    head_low: int,
    n_heads: int,
    tail_low: int,
    n_tails: int,
) -> LocalEdges:
    """`local_edges_of` to pull, of ids that lie close together.

    An edge is sorted as the pair of its ids, less the least of them, and looked up nowhere:
    where its list begins is the number of its head, and which tails there are is seen from how
    often each is counted.
    """
    found = []
    counts = np.zeros(n_tails, np.int64)
    is_tail = np.zeros(n_tails, np.bool_)
    for i, batches in enumerate(edges):
        parts = [(batch[AT], batch[OF]) for batch in batches]
        batches.clear()
        packed = sorted_pairs(parts, head_low, n_heads, tail_low)
        starts, items = group_sorted(packed, n_heads)
        del packed
        of_links = counts if i == 0 else np.zeros(n_tails, np.int64)
        count_into(of_links, items)
        is_tail |= of_links > 0
        filled = np.flatnonzero(starts[1:] > starts[:-1])
        found.append((filled + head_low, np.append(starts[filled], starts[-1]), items))
    heads = distinct(*(of_lists for of_lists, _, _ in found), *vertices)
    tails = np.flatnonzero(is_tail)
    lists: list[_Lists] = [
        (numbers_of(heads, ids), starts, its, None) for ids, starts, its in found
    ]
    counts = counts[tails]
    tails += tail_low
    return LocalEdges("pull", heads, tails, _owners_of(tails, peers), counts, lists, tail_low)


def _owners_of(ids: Ints, peers: int) -> Addresses:
    return (hash_ints(ids) % np.uint64(peers)).astype(np.int16)


def _span_of(columns: Iterator[Ints]) -> tuple[int, int]:
    """The least id, and how many ids lie from it to the greatest; 0 and 0 if there are none."""
    ends = [(int(column.min()), int(column.max())) for column in columns if len(column)]
    if not ends:
        return 0, 0
    low = min(least for least, _ in ends)
    return low, max(greatest for _, greatest in ends) - low + 1


def _columns(edges: list[list[Arrays]], name: str) -> Iterator[Ints]:
    return (batch[name] for batches in edges for batch in batches)


def _taken(batches: list[Arrays]) -> Iterator[Arrays]:
    """The batches in their order; the list lets go of each."""
    batches.reverse()
    while batches:
        yield batches.pop()


_Lists = tuple[Numbers, Ints, Numbers, Floats | None]


def _lists_to_pull(heads: DenseIds, tails: DenseIds, batches: list[Arrays]) -> _Lists:
    """By head, the distinct tails in order."""
    parts = [(batch[AT], batch[OF]) for batch in batches]
    batches.clear()
    packed = packed_pairs(parts, heads.numbers_of, 32, tails.numbers_of)
    starts, items = group_distinct(packed, len(heads.ids))
    return np.arange(len(heads.ids), dtype=np.int32), starts, items, None


def _lists_to_push(heads: DenseIds, tails: DenseIds, batches: list[Arrays]) -> _Lists:
    """By tail, the heads; the numbers of tails are looked up twice, which is less than to keep."""
    counts = np.zeros(len(tails.ids), np.int64)
    for batch in batches:
        count_into(counts, tails.numbers_of(batch[OF]))
    starts = starts_of(counts)
    items = np.empty(starts[-1], np.int32)
    has_weights = any(WEIGHT in batch for batch in batches)
    weights = np.empty(starts[-1], np.float64) if has_weights else None
    places = starts[:-1].copy()
    places_of_weights = starts[:-1].copy() if has_weights else places
    for batch in _taken(batches):
        of = tails.numbers_of(batch[OF])
        place_into(items, places, of, heads.numbers_of(batch[AT]))
        if weights is not None:
            place_into(weights, places_of_weights, of, batch[WEIGHT])
    return np.arange(len(tails.ids), dtype=np.int32), starts, items, weights


@dataclass(frozen=True, eq=False)
class GraphPartition:
    """A worker's partition of a graph; made by `partition_of`.

    Attributes
    ----------
    index, peers : int
        This worker, and how many there are.
    vertices : int64[n], own vertices, sorted: the id of each row
    ghosts : int64[g], other workers' vertices that are tails here, sorted
    ghost_owners : int16[g]
    degrees : int64[n]
        In how many lists of the first links, of all workers, each row is a tail; of
        links to pull.
    links : list of Links
    listeners : (rows int32[s], to int16[s], slots int32[s])
        Which worker has a ghost of which row, and which of its ghosts it is; by worker.
    """

    index: int
    peers: int
    vertices: Ints
    ghosts: Ints
    ghost_owners: Addresses
    degrees: Ints
    links: list[Links]
    listeners: tuple[Numbers, Addresses, Numbers]

    @property
    def n(self) -> int:
        """How many vertices are owned here."""
        return len(self.vertices)

    @property
    def n_places(self) -> int:
        """How many vertices are named here."""
        return len(self.vertices) + len(self.ghosts)

    @cached_property
    def ids(self) -> Ints:
        """The id of each place, int64[n_places]."""
        return np.concatenate([self.vertices, self.ghosts])

    def rows_of(self, vertex: int) -> Numbers:
        """The row of a vertex if it is owned here, int32[1], or int32[0]."""
        at = int(np.searchsorted(self.vertices, vertex))
        is_here = at < self.n and self.vertices[at] == vertex
        return np.array([at] if is_here else [], np.int32)

    def places_of(self, ids: Ints) -> Numbers:
        """The place of each id, int32; -1 for those not named here."""
        rows, slots = numbers_of(self.vertices, ids), numbers_of(self.ghosts, ids)
        return np.where(slots >= 0, slots + np.int32(self.n), rows)

    # Messages of vertices.

    def publish(self, rows: Numbers | None = None, **values: npt.NDArray[Any]) -> Arrays:
        """Messages of `rows` (of all, if none are given) for all workers that have a ghost of them.

        values : arrays over rows (all rows), of which each listener gets its own
        """
        of, to, slots = self.listeners
        if rows is None:
            values_of = {name: gather(array, self._listened) for name, array in values.items()}
        else:
            chosen = self._listening(rows)
            of, to, slots = of[chosen], to[chosen], slots[chosen]
            values_of = {name: array[of] for name, array in values.items()}
        return Arrays({TO: to, SLOT: slots, **values_of})

    @cached_property
    def is_alone(self) -> bool:
        """Whether no edge leads here from another worker, and none from here to another."""
        return self.n_places == self.n and not len(self.listeners[0])

    @cached_property
    def _listened(self) -> Ints:
        """The rows of all listeners, as they are gathered again and again."""
        return self.listeners[0].astype(np.int64)

    def _listening(self, rows: Numbers) -> Ints:
        """The positions in `listeners` of those that have ghosts of `rows`, by worker."""
        starts, by_row = self._listeners_by_row
        if 8 * len(rows) > self.n:
            chosen = np.zeros(self.n, np.bool_)
            chosen[rows] = True
            return np.flatnonzero(chosen[self.listeners[0]])
        found = by_row[positions(starts[rows], starts[rows + 1])]
        sort_numbers(found)
        return found

    @cached_property
    def _listeners_by_row(self) -> tuple[Ints, Ints]:
        rows = self.listeners[0]
        return group(rows, self.n, np.arange(len(rows)))

    def places_of_messages(self, messages: Sequence[Arrays]) -> Ints:
        """The places that messages is of, int64, in the order of `value_of(messages)`."""
        return np.concatenate([batch[SLOT] for batch in messages]).astype(np.int64) + self.n

    def publish_to_all(self, columns: dict[str, npt.NDArray[Any]]) -> list[Arrays]:
        """The same records for each of the other workers."""
        n = len(next(iter(columns.values())))
        return [
            Arrays({TO: np.full(n, peer, np.int16), **columns})
            for peer in range(self.peers)
            if peer != self.index
        ]


def value_of(messages: Sequence[Arrays], name: str = VALUE) -> npt.NDArray[Any]:
    """A column of all of the messages, at least one batch."""
    return np.concatenate([batch[name] for batch in messages])


def partition_of(
    local: LocalEdges, index: int, peers: int, wanted: GhostRequests
) -> GraphPartition:
    """The partition, once it is known which workers want which vertices.

    The local is not to be used again: its lists become the partition's.
    """
    # Numbers, and no masks: whose vertex one is, is at random, and that a mask looks at each time.
    is_own = local.owners == index
    own, others = np.flatnonzero(is_own), np.flatnonzero(~is_own)
    own_tails, ghosts = gather(local.tails, own), gather(local.tails, others)
    vertices = distinct(np.concatenate([local.heads, own_tails, wanted.vertices]))
    n, n_ghosts = len(vertices), len(others)
    rows_by_id = DenseIds.of(vertices)
    row_of_head = rows_by_id.numbers_of(local.heads)
    row_of_own = rows_by_id.numbers_of(own_tails)
    place_of_tail = np.empty(len(local.tails), np.int32)
    place_of_tail[own] = row_of_own
    place_of_tail[others] = np.arange(n, n + n_ghosts, dtype=np.int32)
    if local.form == "pull":
        place_of_item = _by_distance(local, place_of_tail)
        links = [_placed(row_of_head, place_of_item, n, *parts) for parts in local.lists]
    else:
        links = [_placed(place_of_tail, row_of_head, n + n_ghosts, *ls) for ls in local.lists]
    rows = rows_by_id.numbers_of(wanted.vertices)
    degrees = np.zeros(n, np.int64)
    degrees[row_of_own] = gather(local.counts, own)
    add_ints(contiguous(rows), contiguous(wanted.counts), degrees)
    order = np.argsort(wanted.workers, kind="stable")
    return GraphPartition(
        index,
        peers,
        vertices,
        ghosts,
        gather(local.owners, others),
        degrees,
        links,
        (rows[order], wanted.workers[order], wanted.slots[order]),
    )


def _by_distance(local: LocalEdges, place_of_tail: Numbers) -> Numbers:
    """The place of each item of lists to pull."""
    if local.low is None or not len(local.tails):
        return place_of_tail
    places = np.empty(int(local.tails[-1]) - local.low + 1, np.int32)
    places[local.tails - local.low] = place_of_tail
    return places


def _placed(
    of_list: Numbers,
    of_item: Numbers,
    n_lists: int,
    lists: Numbers,
    starts: Ints,
    items: Numbers,
    weights: Floats | None,
) -> Links:
    begins, ends = np.zeros(n_lists, np.int64), np.zeros(n_lists, np.int64)
    begins[of_list[lists]], ends[of_list[lists]] = starts[:-1], starts[1:]
    _rename(items, of_item)
    return Links(
        contiguous(begins),
        contiguous(ends),
        contiguous(items),
        None if weights is None else contiguous(weights),
    )


def _rename(items: Numbers, names: Numbers) -> None:
    """Put the name of each item in its place, some at a time, since there may be very many."""
    for start in range(0, len(items), _PIECE):
        piece = items[start : start + _PIECE]
        piece[:] = names[piece]


@dataclass(frozen=True, eq=False)
class GhostRequests:
    """Which workers want which vertices, each a record.

    Attributes
    ----------
    vertices : int64[s]
    workers : int16[s], which worker wants them
    slots : int32[s], which of its ghosts that is
    counts : int64[s], see `LocalEdges.counts`
    """

    vertices: Ints
    workers: Addresses
    slots: Numbers
    counts: Ints

    @classmethod
    def of(cls, batches: Sequence[Arrays]) -> GhostRequests:
        """What arrived, put together."""

        def column(name: str, dtype: type) -> Any:
            return np.concatenate([b[name] for b in batches] or [np.empty(0, dtype)])

        return cls(
            column("vertex", np.int64),
            column("worker", np.int16),
            column(SLOT, np.int32),
            column("count", np.int64),
        )


def ghost_requests(local: LocalEdges, index: int) -> Arrays:
    """The requests of this worker, addressed to the owners: see `GhostRequests`."""
    ghosts = np.flatnonzero(local.owners != index)
    owners = gather(local.owners, ghosts)
    order = np.argsort(owners, kind="stable")
    ghosts = gather(ghosts, order)
    return Arrays(
        {
            TO: gather(owners, order),
            "vertex": gather(local.tails, ghosts),
            "worker": np.full(len(ghosts), index, np.int16),
            SLOT: order.astype(np.int32),
            "count": gather(local.counts, ghosts),
        }
    )
