"""Record batches in which a vertex has a list of values, as many as all others have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import arrow_array


def with_lists(columns: dict[str, npt.NDArray[Any]], name: str, values: npt.NDArray[Any]) -> Any:
    """A `pyarrow.RecordBatch` of columns, [n], and of one of lists: the rows of values, [n, k].

    >>> with_lists({"a": np.array([7])}, "b", np.array([[1, 2]])).to_pydict()
    {'a': [7], 'b': [[1, 2]]}
    """
    import pyarrow as pa

    n, k = values.shape
    starts = arrow_array(np.arange(n + 1, dtype=np.int32) * np.int32(k))
    lists = pa.ListArray.from_arrays(starts, arrow_array(np.ascontiguousarray(values).ravel()))
    arrays = [*map(arrow_array, columns.values()), lists]
    return pa.RecordBatch.from_arrays(arrays, names=[*columns, name])
