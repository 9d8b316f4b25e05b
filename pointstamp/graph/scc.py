"""Strongly connected components: vertices that lead to each other, by trimming and colours.

A loop around three loops; each worker's search goes through them in turn:

    trim    what has no in- or no out-neighbours left is a component of its own
    colour  each vertex takes the least colour of those that lead to it
    mark    a vertex that keeps its own colour is a root: what leads to it within
            its colour is its component

What has its component is closed and counts no more; the rest goes round again. Each
time round, every colour loses at least its root. Colours are hashes of vertices: were they
the vertices, the first component of a chain whose vertices are in order would colour all of
it, and each time round would close one. At last each component learns its least vertex.

Source: S. Orzan, "On distributed verification and verified distribution", 2004;
trimming of W. McLendon et al., "Finding strongly connected components in distributed
graphs", 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.components import COMPONENT
from pointstamp.graph.graph_partition import VALUE, GraphPartition, Links, value_of
from pointstamp.graph.partitioning import partitions
from pointstamp.graph.supersteps import TO, Sent, results, run_supersteps
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.hashing import hash_ints
from pointstamp.kernels.lists import Ints, Numbers, tally
from pointstamp.kernels.peel import peel
from pointstamp.kernels.reach import reach_alike, spread_least
from pointstamp.operators.stream import Stream


def strongly_connected_components(
    edges: Stream[Any], vertices: Stream[Any] | None = None
) -> Stream[Any]:
    """The strongly connected component of each vertex.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Vertices that may have no edges, as for `connected_components`.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `component`, the least vertex of its component;
        each vertex once.

    Notes
    -----
    Work of the order of the edges for each time round, of which real graphs need
    few: most vertices are in one large component, or trimmed. Memory at its
    peak, beside the edges that come in: one and a quarter times what they take as two
    int64 columns.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (5, 6)]
    ...     return strongly_connected_components(scope.to_stream(edges))
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (6, 6)]
    """
    parts = partitions(edges, vertices, ["in", "out"], "push")
    searches = parts.map_batches(lambda batch: [_Search(partition) for partition in batch])
    with edges.scope.iterative(name="Strong components") as outer:
        loop, again = outer.feedback(1)
        searches = searches.enter(outer).concat(again)
        for phase in (_Trim, _Colour, _Mark):
            searches = _run(searches, phase)
        done, rest = searches.branch(_Search.has_open)
        loop.connect(rest)
        found = done.leave()
    return results(_run(found, _Name), _Search.result)


def _run(searches: Stream[Any], phase: Callable[[_Search], Any]) -> Stream[Any]:
    programs = searches.map_batches(lambda batch: [phase(search) for search in batch])
    halted = run_supersteps(programs, phase.__name__.strip("_"))
    return halted.map_batches(lambda batch: [program.search for program in batch])


class _Search:
    """What a worker knows of the components, from one loop to the next.

    Attributes
    ----------
    forward, backward : Links
        To push along the edges, and against them.
    is_open : bool[n_places], what has no component yet
    closed : list of int32 arrays
        Places that were closed by marking and are still counted as neighbours.
    labels : int64[n_places], colours
    components : int64[n], of the rows that are closed
    is_marked : bool[n], whether the component is yet the colour of its root
    """

    def __init__(self, partition: GraphPartition) -> None:
        self.partition = partition
        self.forward, self.backward = partition.links
        self.counts = _counts(self.forward, partition.n)
        self.back_counts = _counts(self.backward, partition.n)
        self.is_open = np.ones(partition.n_places, np.bool_)
        self.closed: list[Numbers] = []
        self.labels = _colours(partition.ids)
        self.components = partition.vertices.copy()
        self.is_marked = np.zeros(partition.n, np.bool_)
        self.queue = np.empty(partition.n_places + 1, np.int32)
        self.queued = np.zeros(partition.n_places, np.bool_)

    def has_open(self) -> bool:
        """Whether a vertex of this worker has no component yet."""
        return bool(self.is_open[: self.partition.n].any())

    def result(self) -> Any:
        """Vertices and their components."""
        return to_arrow(Arrays({VERTEX: self.partition.vertices, COMPONENT: self.components}))


def _colours(vertices: Ints) -> Ints:
    """The colour of each vertex, which no other one has: these hashes of integers are one to one.

    So a worker sees from the colour whose vertex it is.
    """
    return hash_ints(vertices).view(np.int64)


def _counts(links: Links, n: int) -> Any:
    return tally(links.others, n)


class _Trim:
    """Closes what is left without in- or out-neighbours; its component is itself."""

    def __init__(self, search: _Search) -> None:
        self.search = search

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Close what follows from what was closed, here or elsewhere."""
        search, partition = self.search, self.search.partition
        bare: Numbers = np.empty(0, np.int32)
        if round == 0:
            lonely = (search.counts == 0) | (search.back_counts == 0)
            bare = np.flatnonzero(lonely & search.is_open[: partition.n]).astype(np.int32)
            fresh = np.concatenate([bare, *search.closed])
            search.closed = []
        else:
            fresh = partition.places_of_messages(messages).astype(np.int32)
        search.is_open[fresh] = False
        trimmed = np.concatenate([bare, self._peel(fresh)])
        return [partition.publish(trimmed)], False

    def _peel(self, fresh: Numbers) -> Numbers:
        search, forward, backward = self.search, self.search.forward, self.search.backward
        return peel(
            forward.begins,
            forward.ends,
            forward.others,
            backward.begins,
            backward.ends,
            backward.others,
            search.counts,
            search.back_counts,
            search.is_open,
            fresh,
        )


class _Colour:
    """Gives each open vertex the least colour of the open vertices that lead to it."""

    def __init__(self, search: _Search) -> None:
        self.search = search

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Spread what is new along the edges."""
        search, partition, links = self.search, self.search.partition, self.search.forward
        if round == 0:
            search.labels[:] = _colours(partition.ids)
            fresh = np.flatnonzero(search.is_open).astype(np.int32)
        else:
            fresh = partition.places_of_messages(messages).astype(np.int32)
            search.labels[fresh] = value_of(messages, VALUE)
        changed = spread_least(
            links.begins,
            links.ends,
            links.others,
            search.labels,
            search.is_open,
            fresh,
            search.queue,
            search.queued,
        )
        return [partition.publish(changed, value=search.labels)], False


class _Mark:
    """Closes what leads to a root within its colour: the component of that root."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self._reached = ~search.is_open

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """From what is marked, here or elsewhere, against the edges."""
        search, partition, links = self.search, self.search.partition, self.search.backward
        roots: Numbers = np.empty(0, np.int32)
        if round == 0:
            is_root = search.is_open[: partition.n] & (
                search.labels[: partition.n] == _colours(partition.vertices)
            )
            fresh = roots = np.flatnonzero(is_root).astype(np.int32)
            self._reached[roots] = True
        else:
            fresh = partition.places_of_messages(messages).astype(np.int32)
            self._close(fresh)
        found = reach_alike(
            links.begins, links.ends, links.others, search.labels, self._reached, fresh
        )
        marked = np.concatenate([roots, found])
        self._close(marked)
        search.components[marked] = search.labels[marked]
        search.is_marked[marked] = True
        return [partition.publish(marked)], False

    def _close(self, places: Numbers) -> None:
        self.search.is_open[places] = False
        self.search.closed.append(places)


class _Name:
    """Gives components that were marked the name of their least vertex.

    Each worker sends its least of each component to the owner of its root, which answers with
    the least of all.
    """

    def __init__(self, search: _Search) -> None:
        self.search = search
        self._rows = np.flatnonzero(search.is_marked)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Send the least here, answer with the least of all, take what is answered."""
        search, rows = self.search, self._rows
        if round == 0:
            if not len(rows):
                return [], False
            # Rows are in the order of their vertices, so the first one is the least.
            colours, first = np.unique(search.components[rows], return_index=True)
            peers = np.uint64(search.partition.peers)
            owners = (colours.view(np.uint64) % peers).astype(np.int16)
            here = np.full(len(colours), search.partition.index, np.int16)
            return [
                self._message(owners, colours, search.partition.vertices[rows[first]], here)
            ], False
        colours, vertices = (value_of(messages, name) for name in (_COLOUR, VERTEX))
        distinct, numbers = np.unique(colours, return_inverse=True)
        least = np.full(len(distinct), np.iinfo(np.int64).max)
        np.minimum.at(least, numbers, vertices)
        if round == 1:
            asked = value_of(messages, _ASKED_BY)
            return [self._message(asked, colours, least[numbers], asked)], False
        search.components[rows] = least[np.searchsorted(distinct, search.components[rows])]
        return [], False

    def _message(self, to: Any, colours: Ints, vertices: Ints, asked_by: Any) -> Arrays:
        return Arrays({TO: to, _COLOUR: colours, VERTEX: vertices, _ASKED_BY: asked_by})


_COLOUR, _ASKED_BY = "colour", "asked by"
