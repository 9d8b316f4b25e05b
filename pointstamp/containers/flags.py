"""Batches of columns divided by a column of booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from pointstamp.containers.convert import bool_column
from pointstamp.containers.keys import check_rows_key
from pointstamp.containers.registry import kind_of


def split_by_flag(batch: Any, name: str, what: str) -> list[Any]:
    """The records for which the column `name` is not true (null counts as that), and the others.

    Parameters
    ----------
    what : str
        Who divides, for the message of an error.

    Raises
    ------
    ColumnError
        If there is no such column, as in rows.
    SchemaError
        If it is not of booleans.

    >>> from pointstamp.containers import Arrays
    >>> list(map(list, split_by_flag(Arrays(x=[1, 2], ok=[True, False]), "ok", "an example")))
    [[(2, False)], [(1, True)]]
    """
    if type(batch) is list:
        check_rows_key(name, batch[0] if batch else None)
    return kind_of(batch).split(batch, bool_column(batch, name, what).astype(np.uint64), 2)
