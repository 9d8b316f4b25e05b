"""Numbers for ids where no worker knows all of them: hashes, which each worker makes by itself.

An integer is its own number. Of any other id the stable hash of 64 bits is the number, so that
edges need no look-up; a worker that has all records of a vertex finds out whether two ids have
one number, which for a hundred million of them happens once in some thousand graphs, and says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.columns import hash_arrow
from pointstamp.containers.convert import arrow_array, integer_values
from pointstamp.graph.tables.vertex_ids import check_valid
from pointstamp.graph.vertex_columns import WEIGHT, weighted_columns
from pointstamp.joins.join_operators import SOURCE, TARGET

NUMBER = "_pointstamp_number"
"""The column of a record that has the number of its vertex, or of its edge."""


def hashed_ids(column: Any, what: str) -> npt.NDArray[np.int64]:
    """The number of each id of a column, int64[n]; the same on every worker.

    Raises
    ------
    GraphError
        If one is null.
    KeyHashError
        If ids are of a type without a stable hash (maps, for one).

    >>> hashed_ids(pa.array([7, -1], pa.int16()), "an example").tolist()
    [7, -1]
    """
    check_valid(column, what)
    if pa.types.is_integer(column.type):
        return integer_values(column, "id", what)
    return hash_arrow(column).view(np.int64)


def with_numbers(records: Any, name: str) -> Any:
    """The records with the numbers of the ids in a column, as `NUMBER`."""
    numbers = hashed_ids(records.column(name), f"{name!r} of the vertices")
    return records.append_column(NUMBER, arrow_array(numbers))


def numbered_ends(records: Any, weight: str | None, weighted: bool, signed: bool = False) -> Any:
    """Edges between numbers: `src`, `dst`, and if they are `weighted` a weight, or 1 for each.

    Raises `SchemaError` for what is no weight, which names the column.
    """
    columns = [
        arrow_array(hashed_ids(records.column(name), f"{name!r} of the edges"))
        for name in (SOURCE, TARGET)
    ]
    names = [SOURCE, TARGET]
    if weight is not None:
        own = WEIGHT if weight in names else weight  # by its own name, which errors have
        given = [*columns, records.column(weight)]
        batch = pa.RecordBatch.from_arrays(given, names=[*names, own])
        columns.append(arrow_array(weighted_columns(batch, signed=signed)[WEIGHT]))
        names.append(WEIGHT)
    elif weighted:
        columns.append(arrow_array(np.ones(records.num_rows)))
        names.append(WEIGHT)
    return pa.RecordBatch.from_arrays(columns, names=names)
