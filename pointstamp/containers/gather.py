"""Some records of a batch, by their places: what grouping and joining do to a batch.

Rows, Arrays and record batches; a kind of the user's own has no places that we know of.
Arrow is imported only when there is a record batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.arrays import Arrays
from pointstamp.containers.keys import column_names
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ColumnError, ContainerError

Places = npt.NDArray[np.int64]
Key = str | Sequence[str]


def take(batch: Any, places: Places) -> Any:
    """The records at `places`, int64[m], in that order, with repetitions.

    >>> take(["a", "b", "c"], np.array([2, 0, 2]))
    ['c', 'a', 'c']
    """
    if type(batch) is list:
        return [batch[place] for place in places.tolist()]
    if isinstance(batch, Arrays):
        return Arrays({name: column[places] for name, column in batch.items()})
    if is_columns(batch):
        from pointstamp.containers.convert import arrow_array

        return batch.take(arrow_array(places))
    raise ContainerError(
        f"records of a batch of {kind_of(batch).name} cannot be chosen one by one; this takes "
        "rows, Arrays and record batches"
    )


def is_columns(batch: Any) -> bool:
    """Whether `batch` is an Arrow record batch."""
    return type(batch) is not list and kind_of(batch).name == "columns"


def column_of(batch: Any, name: str, who: str) -> Any:
    """A column of a record batch or of Arrays.

    Raises
    ------
    ColumnError
        If it is not there, or `batch` has no columns.
    """
    if type(batch) is list:
        raise ColumnError(
            f"{who} is given the column {name!r}, and the stream carries rows: give a function of "
            "a record"
        )
    if isinstance(batch, Arrays):
        return batch[name]
    names = batch.schema.names
    column_names(name, names, f"{who}: a record batch")
    return batch.column(names.index(name))


def with_columns(batch: Any, more: dict[str, Any]) -> Any:
    """A record batch or Arrays, with more columns at the end.

    Raises
    ------
    ColumnError
        If a column of that name is there already.
    """
    names = batch.names if isinstance(batch, Arrays) else batch.schema.names
    known = [name for name in more if name in names]
    if known:
        raise ColumnError(
            f"cannot add the column {known[0]!r}: the batch has one of that name; rename it first"
        )
    if isinstance(batch, Arrays):
        return Arrays({**dict(batch), **more})
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([*batch.columns, *more.values()], names=[*names, *more])
