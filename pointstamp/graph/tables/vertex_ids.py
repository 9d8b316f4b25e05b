"""Ids of any type, and the numbers that stand for them inside: 0, 1, 2, ... in their order.

That numbers are in the order of ids makes the least number of some vertices their least id, so
that what an algorithm decides by the least vertex does not depend on where a record stood.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.convert import numbers
from pointstamp.errors import GraphError, SchemaError

Ints = npt.NDArray[np.int64]


class VertexIds:
    """The distinct ids of a graph, in order; the position of each is its number.

    >>> ids = VertexIds.of(pa.array(["b", "a", "c"]))
    >>> ids.numbers_of(pa.array(["c", "x"]), "an example").tolist()
    [2, -1]
    >>> ids.take(np.array([0, 2])).to_pylist()
    ['a', 'c']
    """

    def __init__(self, values: Any, keys: Any) -> None:
        self.values = values
        """An Arrow array of the ids."""
        self._keys = keys

    @classmethod
    def of(cls, *columns: Any) -> VertexIds:
        """The ids in columns of one type, in which they may repeat, without nulls."""
        values = pa.concat_arrays([_plain(column) for column in columns])
        keys = _keys_of(values)
        distinct = pc.unique(keys)
        order = pc.sort_indices(distinct)
        first = pc.index_in(distinct.take(order), keys) if keys is not values else None
        distinct = distinct.take(order)
        return cls(distinct if first is None else values.take(first), distinct)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def type(self) -> Any:
        """The Arrow type of the ids."""
        return self.values.type

    def numbers_of(self, column: Any, what: str) -> Ints:
        """The number of each id of a column, int64[n]; -1 for those that are not there.

        Raises
        ------
        SchemaError
            If the column is of a type that does not become that of the ids.
        """
        found = pc.index_in(_keys_of(cast_ids(column, self.type, what)), self._keys)
        return numbers(found.fill_null(-1)).astype(np.int64)

    def take(self, found: Ints) -> Any:
        """The ids with these numbers, an Arrow array; null for those below 0."""
        return self.values.take(pa.array(found, mask=found < 0))


def cast_ids(column: Any, kind: Any, what: str) -> Any:
    """A column of ids as an array of type `kind`, where no value changes by it."""
    column = _plain(column)
    if column.type == kind:
        return column
    try:
        found = column.cast(kind)
        changed = not pa.types.is_floating(kind) and not found.cast(column.type).equals(column)
    except (pa.ArrowException, TypeError) as error:
        raise SchemaError(
            f"{what}: ids are {kind}, and these are {column.type}: {str(error).splitlines()[0]}"
        ) from error
    if changed:  # such as times that become days
        raise SchemaError(f"{what}: ids are {kind}, and not all of these {column.type} are any")
    return found


def check_valid(column: Any, what: str) -> None:
    """Refuse nulls, which are no ids."""
    if column.null_count:
        raise GraphError(
            f"{what} needs an id in every record, and {column.null_count} of {len(column)} are "
            "null: drop those records first"
        )


def _plain(column: Any) -> Any:
    """A column as one array, neither dictionary nor view."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunks, in some versions
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type in (pa.string_view(), pa.large_string()):
        column = column.cast(pa.string())
    return column


def _keys_of(values: Any) -> Any:
    """What Arrow can look up: the ids themselves, or of structs and lists a text of each."""
    if pa.types.is_nested(values.type):
        return pa.array([repr(value) for value in values.to_pylist()], pa.string())
    return values
