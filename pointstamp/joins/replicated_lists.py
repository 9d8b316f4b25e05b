"""The lists that every worker knows: those of the hubs, and in small graphs all.

A list that lies with one worker has to be visited: prefixes travel to count it and
to be extended by it, and a vertex of very high degree has all its prefixes, and so
all the work, at one worker. A list that all workers have costs neither. So the
longest lists are sent to all workers, as many as `REPLICATED_ITEMS` neighbours allow:

    own index --+--> sizes --> to all --+
                +---------------------> offer lists --> to all --+
                +----------------------------------------------> graph

Workers add up how many neighbours there are in lists of each size, by powers of two,
and so agree, without asking, from which length on lists are offered.

Why not leave them where they are, and send less? On R-MAT graphs of scale 18, two
workers that sent each other prefixes and lists took longer than one alone, however
the prefixes were batched: with each edge a prefix, counting, proposing and extending
move five columns three times, and the graph is one column of half the width. Why
not send everything to all? Because then no graph is larger than one worker's
memory; so a limit, above which only hubs are known, which is where it matters.

Knows nothing of prefixes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.joins.adjacency import Adjacency
from pointstamp.joins.candidates import LIST, PrefixesWithCandidates
from pointstamp.joins.plan import Direction
from pointstamp.kernels.csr import Pairs
from pointstamp.kernels.lists import Ints, positions

REPLICATED_ITEMS = 1 << 24
"""How many neighbours, in each direction, all workers may know: 64 MB in a graph."""

PIECE_ITEMS = 1 << 17

DIRECTIONS: tuple[Direction, ...] = ("forward", "reverse")

DIRECTION, BITS, N_ITEMS, KEY = "direction", "bits", "n_items", "key"

_MOST_BITS = 64


def sizes_of(adjacency: Adjacency) -> Arrays:
    """How many neighbours there are in lists of `2^bits` neighbours or more, but fewer than twice.

    >>> index = Adjacency.build("forward", np.array([1, 1, 1, 2]), np.array([5, 6, 7, 5]))
    >>> [record for record in sizes_of(index) if record[2]]
    [(0, 0, 1), (0, 1, 3)]
    """
    sizes = np.diff(adjacency.starts)
    bits = _bits_of(sizes)
    n_items = np.bincount(bits, sizes, _MOST_BITS).astype(np.int64)
    direction = np.full(_MOST_BITS, DIRECTIONS.index(adjacency.direction), np.int8)
    return Arrays({DIRECTION: direction, BITS: np.arange(_MOST_BITS), N_ITEMS: n_items})


def least_bits(sizes: Sequence[Arrays], direction: Direction, replicated_items: int) -> int:
    """From which size on all lists together have at most `replicated_items` neighbours, as bits.

    64 where none are to be known, of `sizes` of all workers.
    """
    totals = np.zeros(_MOST_BITS, np.int64)
    for batch in sizes:
        mine = batch[DIRECTION] == DIRECTIONS.index(direction)
        np.add.at(totals, batch[BITS][mine], batch[N_ITEMS][mine])
    at_least = np.cumsum(totals[::-1])[::-1]
    return int((at_least > replicated_items).sum())


def offers(adjacency: Adjacency, bits: int) -> Iterator[PrefixesWithCandidates]:
    """The lists of `2^bits` neighbours or more with their keys, some in a piece."""
    rows = np.flatnonzero(_bits_of(np.diff(adjacency.starts)) >= bits)
    begins, ends = adjacency.starts[rows], adjacency.starts[rows + 1]
    before = np.cumsum(ends - begins) - (ends - begins)
    cuts = np.flatnonzero(np.diff(before // PIECE_ITEMS, prepend=-1))
    direction = DIRECTIONS.index(adjacency.direction)
    for start, stop in itertools.pairwise([*cuts.tolist(), len(rows)]):
        which = slice(start, stop)
        n = stop - start
        keys = Arrays(
            {
                DIRECTION: np.full(n, direction, np.int8),
                BITS: np.full(n, bits, np.int8),
                KEY: adjacency.keys[rows[which]],
                LIST: np.arange(n),
            }
        )
        starts, values = _end_to_end(adjacency.values, begins[which], ends[which])
        yield PrefixesWithCandidates(keys, starts, values)


def replicated_with(
    own: Adjacency | None, offered: list[PrefixesWithCandidates], direction: Direction
) -> tuple[Adjacency, int]:
    """The lists of one direction that this worker has or was sent, of a graph with offers.

    Returns the index, and from which length on lists are known to every worker;
    -1 if none are. What is `offered` is let go of.
    """
    number = DIRECTIONS.index(direction)
    mine = [batch for batch in offered if batch[DIRECTION][0] == number]
    offered[:] = [batch for batch in offered if batch[DIRECTION][0] != number]
    if not mine:
        return own or Adjacency.of(direction, Pairs()), -1
    bits = int(mine[0][BITS][0])
    # A key is at one worker, so the lists are those of other keys each, and ordered already.
    parts = [(batch[KEY], batch.starts, batch.values) for batch in mine]
    if own is not None and bits > 0:
        light = np.flatnonzero(_bits_of(np.diff(own.starts)) < bits)
        starts, values = _end_to_end(own.values, own.starts[light], own.starts[light + 1])
        parts.append((own.keys[light], starts, values))
    return Adjacency.of_lists(direction, parts), 1 << bits


def _end_to_end(values: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Some of the lists in `values`: where each begins, and they; a view where they lie so."""
    starts = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=starts[1:])
    if len(begins) and ends[-1] - begins[0] == starts[-1]:
        return starts, values[begins[0] : ends[-1]]
    return starts, values[positions(begins, ends)]


def _bits_of(sizes: Ints) -> Ints:
    """The exponent of the greatest power of two in each size, which is at least 1."""
    return np.frexp(sizes)[1].astype(np.int64) - 1
