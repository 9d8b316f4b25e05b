"""Streams of edges: from what users have to the two int64 columns of a join.

Edges come as Arrow batches, with columns `src` and `dst` or, where
there are none, the first two; or as rows, pairs of integers. From here on they
are `Arrays` with `src` and `dst`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import BuildError, ColumnError, SchemaError, UsageError
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.operators.stream import Stream

Ints = npt.NDArray[np.int64]


def directed(edges: Stream[Any]) -> Stream[Arrays]:
    """The edges as `Arrays` of `src` and `dst`; repeated ones and loops are still there."""
    return checked_stream(edges, "edges").map_batches(edge_columns)


def proper_edges(edges: Stream[Any]) -> Stream[Arrays]:
    """`directed`, without loops."""
    return checked_stream(edges, "edges").map_batches(proper_columns)


def proper_columns(batch: Any) -> Arrays | None:
    """`edge_columns`, without loops; None if there is nothing else."""
    return without_loops(edge_columns(batch))


def checked_stream(stream: Any, what: str) -> Stream[Any]:
    """`stream`, if it is one, of edges or of vertices.

    Raises
    ------
    BuildError
        If it is none, as a list or a table of them.
    """
    if not isinstance(stream, Stream):
        raise BuildError(
            f"an algorithm of graphs reads a stream of {what}, and {stream!r:.200} is none: "
            "scope.to_stream(...) makes one of rows and tables; pointstamp.graph.Graph has "
            "algorithms of tables"
        )
    return stream


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
    columns = kind_of(batch).as_columns(batch, _of_rows)
    kind = kind_of(columns)
    source, target = _names_of_ends(kind.names(columns))
    sources = kind.integers(columns, source, "a graph")
    targets = kind.integers(columns, target, "a graph")
    return Arrays({SOURCE: sources, TARGET: targets})


def _names_of_ends(names: Sequence[str]) -> tuple[str, str]:
    if SOURCE in names and TARGET in names:
        return SOURCE, TARGET
    if len(names) < 2:
        raise ColumnError(
            f"a graph needs two columns, {SOURCE!r} and {TARGET!r} or the first two; the batch has "
            f"{list(names)}"
        )
    return names[0], names[1]


def _of_rows(rows: list[Any]) -> Arrays:
    for row in rows:
        if not (isinstance(row, tuple | list) and len(row) == 2 and all(map(_is_vertex, row))):
            raise SchemaError(
                "a graph needs pairs (source, target) of integers of at most 64 bits, not "
                f"{reprlib.repr(row)}"
            )
    table = np.array(rows, np.int64).reshape(-1, 2)
    return Arrays({SOURCE: table[:, 0], TARGET: table[:, 1]})


def _is_vertex(value: Any) -> bool:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and -(2**63) <= value < 2**63


def check_integers(method: str, what: str, values: Iterable[Any]) -> None:
    """Raise unless all are integers: vertices that are no integers are in no graph here.

    Raises
    ------
    UsageError
    """
    for value in values:
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise UsageError(f"{method} needs an integer as {what}, not {value!r}")


def check_count(method: str, what: str, value: Any, least: int) -> None:
    """Raise unless it is an integer from `least` on.

    Raises
    ------
    UsageError
    """
    check_integers(method, what, [value])
    if value < least:
        raise UsageError(f"{method} needs {least} or more as {what}, not {value!r}")


def check_share(method: str, what: str, value: Any) -> None:
    """Raise unless it is a number from 0 to 1.

    Raises
    ------
    UsageError
    """
    if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise UsageError(f"{method} needs a number from 0 to 1 as {what}, not {value!r}")


def check_list(method: str, what: str, values: Any) -> tuple[Any, ...]:
    """The vertices of a list; raises unless it is one, and of integers.

    Raises
    ------
    UsageError
    """
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise UsageError(f"{method} needs a list of {what}s, not {values!r}")
    found = tuple(values)
    check_integers(method, f"each {what}", found)
    return found


def without_loops(edges: Arrays) -> Arrays | None:
    """The edges that lead from one vertex to another; None if there are none."""
    proper = edges[SOURCE] != edges[TARGET]
    if proper.all():
        return edges if len(edges) else None
    if not proper.any():
        return None
    return Arrays({name: column[proper] for name, column in edges.items()})


_SMALL, _AT_ONCE = 4096, 64
"""Fewer records make a batch small; so many small ones are put together."""


def joined(batches: list[Arrays]) -> list[Arrays]:
    """The batches, of which small ones are put together: each costs some microseconds."""
    small = [batch for batch in batches if len(batch) < _SMALL]
    parts = [small[i : i + _AT_ONCE] for i in range(0, len(small), _AT_ONCE)]
    return [b for b in batches if len(b) >= _SMALL] + [kind_of(p[0]).concat(p) for p in parts]
