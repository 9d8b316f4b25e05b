"""What the answers of a question become: Arrow columns of ids, numbers, lists and maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.graph.tables.vertex_question import ValueKind


def type_of(kind: ValueKind, of_ids: Any) -> Any:
    """The Arrow type of what answers become.

    >>> type_of("doubles", pa.string())
    ListType(list<item: double>)
    """
    if kind == "distances":
        return pa.map_(of_ids, pa.int64())
    types: dict[ValueKind, Any] = {
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "id": of_ids,
        "only": pa.float64(),
        "doubles": pa.list_(pa.float64()),
    }
    return types[kind]


def as_values(kind: ValueKind, values: Any, landmarks: Any = None) -> Any:
    """A column of answers, of which some may be null, as what it becomes; ids are put back before.

    landmarks : the ids of the landmarks, an Arrow array, where values are distances

    >>> as_values("only", pa.array([[0.5], None])).to_pylist()
    [0.5, None]
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if kind == "boolean":
        return values.cast(pa.bool_())
    if kind == "only":
        return pc.list_element(values, 0)
    if kind == "distances":
        return _maps(values, landmarks)
    return values


def _maps(lists: Any, landmarks: Any) -> Any:
    """Maps from landmarks to distances, of lists of distances; -1 is none."""
    k = len(landmarks)
    filled = pc.fill_null(lists, pa.scalar([-1] * k, lists.type)) if lists.null_count else lists
    distances = numbers(pc.list_flatten(filled))
    reached = distances >= 0
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(reached.reshape(-1, k).sum(axis=1), out=starts[1:])
    keys = landmarks.take(arrow_array(np.tile(np.arange(k), len(lists))[reached]))
    items = arrow_array(distances[reached].astype(np.int64))
    return pa.MapArray.from_arrays(arrow_array(starts), keys, items)
