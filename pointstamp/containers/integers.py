"""One integer for each record of a batch of columns: a column, or what an expression makes.

A route over columns says where each record goes, and a delay when it arrives; both
are integers, and both are given as a column's name or as an Arrow expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import int64_column
from pointstamp.containers.expressions import evaluate, is_expression
from pointstamp.containers.keys import check_rows_key
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ColumnError


def integers_of(batch: Any, chosen: Any, what: str) -> npt.NDArray[np.int64]:
    """The integer of each record, int64[n].

    Parameters
    ----------
    batch : Arrays or pyarrow.RecordBatch
    chosen : str or pyarrow.compute.Expression
        A column's name, or (for a record batch) an expression.
    what : str
        Who wants it, for the message of an error.

    Raises
    ------
    ColumnError
        For a column that is not there, and for rows, which have none.
    ContainerError
        For an expression on what is no record batch.
    SchemaError
        If the values are no integers below 2^63, or some are null.

    >>> from pointstamp.containers import Arrays
    >>> integers_of(Arrays(at=[3, 4]), "at", "an example").tolist()
    [3, 4]
    """
    if is_expression(chosen):
        return int64_column(evaluate(batch, chosen), str(chosen), what)
    if not isinstance(chosen, str):
        raise ColumnError(
            f"{what} takes a function of a record, the name of a column or an Arrow expression; "
            f"it was given {chosen!r} ({type(chosen).__name__})"
        )
    if type(batch) is list:
        check_rows_key(chosen, batch[0] if batch else None)
    return int64_column(batch, chosen, what)


def split_by_value(batch: Any, values: npt.NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """Each distinct value, least first, and its records, in their order.

    Cost: one sort of the values, and one gather per column unless all are the same.
    """
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        yield int(ordered[0]), batch
        return
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    numbers = np.searchsorted(distinct, values).astype(np.uint64)
    parts = kind_of(batch).split(batch, numbers, len(distinct))
    yield from zip(distinct.tolist(), parts, strict=True)
