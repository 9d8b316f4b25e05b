"""Vertices and weights, from what users have to `Arrays`; edges are read in `edges`."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import ColumnError, SchemaError
from pointstamp.graph.edges import edge_columns
from pointstamp.joins.join_operators import SOURCE, TARGET

Floats = npt.NDArray[np.float64]

VERTEX, WEIGHT = "vertex", "weight"

_LARGEST = 1e290
"""A sum of as many of these as there can be edges is finite."""

_EXACT = 2**53
"""Up to here each integer is a float64."""


def vertex_column(batch: Any) -> Arrays:
    """A batch of vertices as `Arrays` of `vertex`, int64.

    Columns: `vertex`, or else `id`, or else the first. Rows: integers.

    Raises
    ------
    ColumnError
        If there are no columns.
    SchemaError
        If vertices are not integers that fit into int64, or are null.

    >>> vertex_column([3, 4])
    Arrays(vertex: int64; 2 records)
    """
    columns = kind_of(batch).as_columns(batch, _vertices_of_rows)
    kind = kind_of(columns)
    names = kind.names(columns)
    if not names:
        raise ColumnError(
            f"vertices need a column, {VERTEX!r} or else the first; the batch has none"
        )
    name = next((n for n in (VERTEX, "id") if n in names), names[0])
    return Arrays({VERTEX: kind.integers(columns, name, "a graph")})


def _vertices_of_rows(rows: list[Any]) -> Arrays:
    return Arrays({VERTEX: edge_columns([(row, row) for row in rows])[SOURCE]})


def weighted_columns(batch: Any, *, signed: bool = False) -> Arrays:
    """A batch of weighted edges as `Arrays` of `src`, `dst` and `weight`, float64.

    Columns: `src`, `dst` and `weight`, or the first three. Rows: triples.

    signed : whether weights may be any finite numbers

    Raises
    ------
    ColumnError
        If there is no third column.
    SchemaError
        If weights are not numbers, or one is null, NaN, less than 0, above 1e290, or an
        integer above 2^53; if they are `signed`, if one is null or not finite, or an integer
        farther than 2^53 from 0.

    >>> weighted_columns([(1, 2, 0.5)])
    Arrays(src: int64, dst: int64, weight: float64; 1 records)
    """
    columns = kind_of(batch).as_columns(batch, _edges_of_rows)
    ends = edge_columns(columns)
    check = _finite if signed else _checked
    return Arrays({**dict(ends.items()), WEIGHT: check(_weight_column(columns))})


def _edges_of_rows(rows: list[Any]) -> Arrays:
    _check_triples(rows)
    ends = edge_columns([row[:2] for row in rows])
    weights = [row[2] for row in rows]
    _check_exact([weight for weight in weights if isinstance(weight, int | np.integer)])
    return Arrays({**dict(ends.items()), WEIGHT: np.array(weights, np.float64)})


def _check_triples(rows: list[Any]) -> None:
    for row in rows:
        is_triple = isinstance(row, tuple | list) and len(row) == 3
        if not (is_triple and isinstance(row[2], int | float | np.number)):
            raise SchemaError(
                "a weighted graph needs triples (source, target, weight), the weight a number, "
                f"not {reprlib.repr(row)}"
            )


def _weight_column(batch: Any) -> Floats:
    kind = kind_of(batch)
    names = list(kind.names(batch))
    named = {SOURCE, TARGET, WEIGHT} <= set(names)
    if not named and len(names) < 3:
        raise ColumnError(
            f"a weighted graph needs three columns, {SOURCE!r}, {TARGET!r} and {WEIGHT!r} or the "
            f"first three; the batch has {names}"
        )
    name = WEIGHT if named else names[2]
    column = kind.column(batch, name, "a graph")
    of_type = getattr(column, "type", None) or column.dtype
    if not isinstance(column, np.ndarray):
        if column.null_count:
            raise SchemaError(
                f"a weighted graph needs a weight for every edge; {column.null_count} of "
                f"{len(column)} in the column {name!r} are null: drop those edges first"
            )
        column = column.to_numpy(zero_copy_only=False)
    if column.dtype.kind not in "iuf":
        raise SchemaError(
            f"a weighted graph needs floats or integers in the column {name!r}, not {of_type}: "
            "cast them"
        )
    if column.dtype.kind in "iu" and len(column):
        _check_exact([column.max(), column.min()])
    weights: Floats = column.astype(np.float64, copy=False)
    return weights


def _check_exact(weights: list[Any]) -> None:
    """Refuse integers that float64, in which distances are added up, would round."""
    wrong = [weight for weight in weights if abs(int(weight)) > _EXACT]
    if wrong:
        raise SchemaError(
            f"a weighted graph adds weights up as float64, which is exact for integers up to 2^53; "
            f"{int(wrong[0])} is larger in absolute value: give weights in a larger unit, or as "
            "floats"
        )


def _finite(weights: Floats) -> Floats:
    wrong = ~np.isfinite(weights)
    if wrong.any():
        raise SchemaError(
            f"ratings are finite numbers; {int(wrong.sum())} of {len(weights)} are not, the first "
            f"of them {weights[wrong][0]}: drop those edges first"
        )
    return weights


def _checked(weights: Floats) -> Floats:
    wrong = ~(weights >= 0)
    if wrong.any():
        raise SchemaError(
            f"a weighted graph needs weights of 0 or more; {int(wrong.sum())} of {len(weights)} "
            f"are not, the first of them {weights[wrong][0]}: paths could get shorter for ever"
        )
    too_large = weights > _LARGEST
    if too_large.any():
        raise SchemaError(
            f"a weighted graph needs weights of at most {_LARGEST:g}, so that sums of them are "
            f"finite; {int(too_large.sum())} of {len(weights)} are larger, the first of them "
            f"{weights[too_large][0]}, and what is reached by them alone would be left out: drop "
            "those edges first"
        )
    return weights
