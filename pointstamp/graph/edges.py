"""Streams of edges: from what users have to the two int64 columns of a join.

Edges come as Arrow batches or `Arrays`, with columns `src` and `dst` or, where
there are none, the first two; or as rows, pairs of integers. From here on they
are `Arrays` with `src` and `dst`.

`undirected` makes a simple graph of them, each edge once and turned so that it
leads from the vertex of lower degree to that of higher degree. So turned, no
vertex has more than sqrt(2 m) out-neighbours, of m edges, however many neighbours
it has, which is what bounds the work of finding cliques.

Source: the order by degree is of N. Chiba, T. Nishizeki, "Arboricity and subgraph
listing algorithms", SIAM J. Comput. 1985.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays, kind_of
from pointstamp.containers.convert import int64_column
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stream import Stream
from pointstamp.errors import ColumnError, SchemaError
from pointstamp.joins.adjacency import Adjacency
from pointstamp.joins.operators import SOURCE, TARGET, from_index, index, with_graph
from pointstamp.joins.tactics import Pieces

Ints = npt.NDArray[np.int64]

PIECE_RECORDS = 65_536

_DEGREE = "degree"


def directed(edges: Stream[Any]) -> Stream[Arrays]:
    """The edges as `Arrays` of `src` and `dst`; repeated ones and loops are still there."""
    return edges.map_batches(edge_columns)


def edge_columns(batch: Any) -> Arrays:
    """A batch of edges as `Arrays` of `src` and `dst`, int64.

    Raises
    ------
    ColumnError
        If it has fewer than two columns.
    SchemaError
        If vertices are not integers that fit into int64, or are null.

    >>> edge_columns([(1, 2), (2, 3)])
    Arrays(src: int64, dst: int64; 2 records)
    """
    if kind_of(batch).name == "rows":
        sources, targets = _of_rows(batch)
    else:
        names = batch.names if isinstance(batch, Arrays) else batch.schema.names
        source, target = _names_of_ends(names)
        sources = int64_column(batch, source, "a graph")
        targets = int64_column(batch, target, "a graph")
    return Arrays({SOURCE: sources, TARGET: targets})


def _names_of_ends(names: list[str]) -> tuple[str, str]:
    if SOURCE in names and TARGET in names:
        return SOURCE, TARGET
    if len(names) < 2:
        raise ColumnError(
            f"a graph needs two columns, {SOURCE!r} and {TARGET!r} or the first two; the batch has "
            f"{list(names)}"
        )
    return names[0], names[1]


def _of_rows(rows: list[Any]) -> tuple[Ints, Ints]:
    for row in rows:
        if not (isinstance(row, tuple | list) and len(row) == 2 and all(map(_is_vertex, row))):
            raise SchemaError(
                "a graph needs pairs (source, target) of integers of at most 64 bits, not "
                f"{reprlib.repr(row)}"
            )
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _is_vertex(value: Any) -> bool:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and -(2**63) <= value < 2**63


def undirected(edges: Stream[Any]) -> Stream[Arrays]:
    """The simple graph of the edges, each edge once, from lower to higher degree.

    Loops are dropped; edges that repeat, in either direction, are one. Of vertices
    of equal degree, the lower id comes first.
    """
    neighbours = index(directed(edges).map_batches(_both_ways), "forward")
    pairs = from_index(neighbours, "Degrees", _pairs_with_degree)
    by_target = Exchange(TARGET)
    return with_graph(pairs, neighbours, by_target, "Orient", _oriented, nothing=_nothing)


def _nothing(index: int, peers: int) -> Adjacency:
    """What a worker knows that owns no vertex."""
    none = np.empty(0, np.int64)
    return Adjacency.build("forward", none, none)


def _both_ways(batch: Arrays) -> Arrays | None:
    sources, targets = batch[SOURCE], batch[TARGET]
    proper = sources != targets
    sources, targets = sources[proper], targets[proper]
    if not len(sources):
        return None
    return Arrays(
        {
            SOURCE: np.concatenate([sources, targets]),
            TARGET: np.concatenate([targets, sources]),
        }
    )


def _pairs_with_degree(neighbours: Adjacency) -> Iterator[Arrays]:
    """Each edge once, from its lower to its higher id, with the degree of the lower."""
    for sources, targets, degrees in neighbours.edges(PIECE_RECORDS):
        once = sources < targets
        yield Arrays({SOURCE: sources[once], TARGET: targets[once], _DEGREE: degrees[once]})


def _oriented(neighbours: Adjacency, pairs: Arrays) -> Pieces:
    """Turn the edges whose `dst`, whose row is here, has the lower degree."""
    sources, targets = pairs[SOURCE], pairs[TARGET]
    begins, ends = neighbours.spans(targets)
    turned = ends - begins < pairs[_DEGREE]
    yield Arrays(
        {
            SOURCE: np.where(turned, targets, sources),
            TARGET: np.where(turned, sources, targets),
        }
    )
