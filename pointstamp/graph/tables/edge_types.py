"""How many edges of each type a vertex has, where a column of the edges says which type each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.convert import arrow_array
from pointstamp.errors import GraphError, SchemaError, UsageError
from pointstamp.graph.tables.argument_checks import repeated_names

Ints = npt.NDArray[np.int64]

MOST_TYPES = 1_000
"""Of more types no struct is made: each is a field of all records."""


def names_of_types(types: Sequence[Any]) -> list[str]:
    """The fields of a struct that has one for each type, as Spark names columns of a pivot.

    Raises
    ------
    UsageError
        If there are none, or more than `MOST_TYPES`, or two have one name.

    >>> names_of_types(["friend", None, True, 1.0])
    ['friend', 'null', 'true', '1.0']
    """
    if not 0 < len(types) <= MOST_TYPES:
        raise UsageError(
            f"degrees by type have a field for each type of edges, from 1 to {MOST_TYPES}, and "
            f"there are {len(types)}: name those that are wanted in edge_types="
        )
    names = [_name_of(value) for value in types]
    if repeated := repeated_names(names):
        raise UsageError(f"two types of edges are called {repeated[0]!r}: name one in edge_types=")
    return names


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def array_of_types(types: Sequence[Any], kind: Any) -> Any:
    """The types as an array of the column's Arrow type; a `GraphError` if they are of another."""
    try:
        return pa.array(types, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"types of edges are {kind}, and {list(types)!r} are not") from error


def degrees_by_type(
    ends: Sequence[Ints], n: int, column: Any, edge_types: Sequence[Any] | None
) -> tuple[Ints, Any]:
    """The vertices of any edge, and how many edges of each type they have.

    Parameters
    ----------
    ends : of int64[m] each
        The numbers of the vertices that edges are counted at.
    n : int
        How many vertices there are.
    column : pyarrow.ChunkedArray
        The type of each edge, of m values.
    edge_types : sequence, optional
        Those that are counted; all that there are, in order, null first, if not given.

    Returns
    -------
    vertices : int64[v], in order
    counts : pyarrow.StructArray
        Of v records, with a field of int64 for each type.

    >>> types = pa.chunked_array([["friend", "follow", "friend"]])
    >>> vertices, counts = degrees_by_type([np.array([0, 0, 2])], 3, types, None)
    >>> vertices.tolist(), counts.to_pylist()
    ([0, 2], [{'follow': 1, 'friend': 1}, {'follow': 0, 'friend': 1}])
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if edge_types is None:
            found = pc.unique(column)
            types = found.take(pc.array_sort_indices(found, null_placement="at_start"))
        else:
            types = array_of_types(edge_types, column.type)
        number = pc.index_in(column, value_set=types).combine_chunks()
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(f"types of edges are text or numbers, not {column.type}") from error
    names = names_of_types(types.to_pylist())
    type_of = np.asarray(pc.fill_null(number, -1)).astype(np.int64)
    is_counted = type_of >= 0
    vertices = np.flatnonzero(np.bincount(np.concatenate(ends), minlength=n))
    place = np.zeros(n, np.int64)
    place[vertices] = np.arange(len(vertices))
    cells = [place[end[is_counted]] * len(names) + type_of[is_counted] for end in ends]
    counts = np.bincount(np.concatenate(cells), minlength=len(vertices) * len(names))
    columns = counts.reshape(len(vertices), len(names)).T
    fields = [arrow_array(np.ascontiguousarray(one)) for one in columns]
    return vertices, pa.StructArray.from_arrays(fields, names)
