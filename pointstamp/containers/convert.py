"""The named places where Arrow becomes NumPy and NumPy becomes Arrow.

Free for int64 columns without nulls, which is what vertices are: both sides see
the same memory. Other integers are widened, and that is a copy; anything else is
refused rather than copied in silence.

`pa.array`, `to_numpy` of an Arrow array and in some versions `to_pandas_dtype` of its
type have pyarrow import pandas where that is installed, the first time: a sixth of a
second and 33 MiB of every process, for nothing. So numbers go from one side to the
other as the buffers that they are.
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Sequence
from contextlib import suppress
from functools import cache
from operator import index
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.errors import SchemaError


class NumpyColumns(Protocol):
    """NumPy columns by name: a dict, or `Arrays`."""

    def items(self) -> ItemsView[str, npt.NDArray[Any]]:
        """Names and columns."""


def to_arrow(batch: NumpyColumns) -> Any:
    """The `pyarrow.RecordBatch` with the columns of `batch`, without a copy.

    >>> to_arrow({"a": np.array([1, 2])}).to_pydict()
    {'a': [1, 2]}
    """
    import pyarrow as pa

    columns = {name: arrow_array(column) for name, column in batch.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def arrow_array(column: npt.NDArray[Any]) -> Any:
    """The `pyarrow.Array` with the values of `column`, [n]; of numbers, without a copy.

    >>> arrow_array(np.array([1, 2], np.int8)).type
    DataType(int8)
    """
    import pyarrow as pa

    # Bools are bits in Arrow, no time is a null there, and the rest is not of fixed width.
    is_plain = column.dtype.kind in "iuf" and column.dtype.isnative
    if is_plain and column.flags.c_contiguous and column.flags.aligned:
        data: Any = column  # whose buffer the stubs do not see
        kind = _arrow_type(column.dtype)
        return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(data)])
    return pa.array(column)


@cache
def _arrow_type(dtype: np.dtype[Any]) -> Any:
    import pyarrow as pa

    return pa.from_numpy_dtype(dtype)


_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""What NumPy calls the types of numbers that it has other names for than Arrow."""


def numbers(column: Any) -> npt.NDArray[Any]:
    """The values of a `pyarrow.Array` of numbers, [n] of its type, read-only, without a copy.

    Where it has nulls, they are anything.

    >>> numbers(arrow_array(np.arange(4)).slice(1, 2))
    array([1, 2])
    """
    name = str(column.type)
    dtype: np.dtype[Any] = np.dtype(_FLOATS.get(name, name))
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty(0, dtype)
    start = column.offset * dtype.itemsize
    values = np.frombuffer(data, dtype, count=len(column), offset=start)
    values.flags.writeable = False
    return values


def one_zero(column: Any) -> Any:
    """An Arrow array of floats with 0.0 for each -0.0, and one NaN; any other array as it is.

    Of a dictionary each value is there once, and null is none of them: so that keys that are
    equal are one to Arrow, too.

    >>> one_zero(arrow_array(np.array([-0.0]))).to_pylist()
    [0.0]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        if not pa.types.is_floating(column.type.value_type):
            return _distinct_values(column)
        column = column.dictionary_decode()
    if not pa.types.is_floating(column.type):
        return column
    if pa.types.is_float16(column.type):
        return one_zero(column.cast(pa.float32())).cast(pa.float16())
    # The sum of -0.0 and 0.0 is 0.0, and of others with it themselves. Arrow groups by bits, and
    # of NaNs there are many: that of x86 by 0.0 / 0.0 has a sign, and Python's has none.
    summed = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(summed), pa.scalar(math.nan, column.type), summed)


def plain_values(values: Any) -> Any:
    """An Arrow array without a dictionary, and texts in place of views of them."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.type == pa.string_view():
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if values.type == pa.binary_view() else values


def typed_nulls(values: Any, wanted: Any) -> Any:
    """An Arrow array without a value, also in lists, as one of a type; None if it has values.

    None too if it cannot be of that type.
    """
    import pyarrow as pa

    kind = values.type
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        with suppress(pa.ArrowException):
            return values.cast(wanted)
    return None


def one_batch(batches: Sequence[Any]) -> Any:
    """One `pyarrow.RecordBatch` of several of one schema, whose dictionaries become one.

    Raises
    ------
    SchemaError
        If their schemas differ, or a dictionary would have more values than its indices can say.
    """
    import pyarrow as pa

    try:
        return pa.concat_batches(batches)  # type: ignore[attr-defined]  # newer than the stubs
    except pa.ArrowInvalid as error:
        for other in batches:
            if not other.schema.equals(batches[0].schema):
                found = [
                    ", ".join(f"{field.name}: {field.type}" for field in batch.schema)
                    for batch in (batches[0], other)
                ]
                raise SchemaError(
                    f"batches cannot be put together: columns ({found[0]}) and ({found[1]}); cast "
                    "them to one schema before they are sent"
                ) from error
        kinds = {f.name: str(f.type) for f in batches[0].schema if pa.types.is_dictionary(f.type)}
        if not kinds:
            raise
        try:
            # Arrow makes none of several in which null is a value.
            return pa.concat_batches(list(map(_without_null_values, batches)))  # type: ignore[attr-defined]
        except pa.ArrowInvalid:
            raise SchemaError(
                "batches cannot be put together, as the dictionaries of their columns cannot: "
                f"{error}; they are {kinds}: cast them to their values, or to wider indices, "
                "before they are sent"
            ) from error


def _without_null_values(batch: Any) -> Any:
    import pyarrow as pa

    columns = [
        _distinct_values(column) if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _distinct_values(column: Any) -> Any:
    """An array of a dictionary of the same type, in whose dictionary values are once."""
    import pyarrow as pa

    values = column.dictionary
    # One that is larger than the array is not gone through; the array is, then.
    if len(values) <= len(column) and not values.null_count and len(values.unique()) == len(values):
        return column
    found = column.dictionary_decode().dictionary_encode()
    indices = found.indices.cast(column.type.index_type)
    is_ordered = column.type.ordered
    return pa.DictionaryArray.from_arrays(indices, found.dictionary, ordered=is_ordered)


def integer_values(values: Any, name: str, what: str) -> npt.NDArray[np.int64]:
    """Integers of a list, a NumPy array or a `pyarrow.Array`, as int64[n].

    Parameters
    ----------
    name, what : str
        What they are called, and what needs them, for the message of an error.

    Raises
    ------
    SchemaError
        If they are not integers that fit into int64, or some are null.

    >>> integer_values(np.array([1, 2], np.int8), "a", "an example")
    array([1, 2])
    """
    if isinstance(values, list):
        return _integers_of_rows(values, name, what)
    if isinstance(values, np.ndarray):
        return _widened(values, name, what)
    if values.null_count:
        raise SchemaError(
            f"{what} needs a value in every record of the column {name!r}; {values.null_count} of "
            f"{len(values)} are null: drop those records first"
        )
    import pyarrow as pa

    if not pa.types.is_integer(values.type):
        raise SchemaError(_not_integers(name, what, values.type))
    return _widened(numbers(values), name, what)


def boolean_values(values: Any, name: str, what: str) -> npt.NDArray[np.bool_]:
    """Booleans of a list, a NumPy array or a `pyarrow.Array`, as bool[n]; null is False.

    Of a list what Python takes for true is.

    Raises
    ------
    SchemaError
        If they are not booleans.

    >>> boolean_values(np.array([True, False]), "a", "an example")
    array([ True, False])
    """
    if isinstance(values, list):
        return np.fromiter(map(bool, values), np.bool_, len(values))
    if isinstance(values, np.ndarray):
        if values.dtype != np.bool_:
            raise SchemaError(_not_booleans(name, what, values.dtype))
        return values
    import pyarrow as pa

    if not pa.types.is_boolean(values.type):
        raise SchemaError(_not_booleans(name, what, values.type))
    flags: npt.NDArray[np.bool_] = numbers(values.fill_null(False).cast(pa.uint8())).view(np.bool_)
    return flags


def _integers_of_rows(values: list[Any], name: str, what: str) -> npt.NDArray[np.int64]:
    try:
        return np.fromiter(map(index, values), np.int64, len(values))
    except (TypeError, OverflowError) as error:
        raise SchemaError(f"{what} needs integers of 64 bits of {name}: {error}") from error


def _widened(column: npt.NDArray[Any], name: str, what: str) -> npt.NDArray[np.int64]:
    if column.dtype.kind not in "iu":
        raise SchemaError(_not_integers(name, what, column.dtype))
    if column.dtype == np.uint64 and len(column) and column.max() > np.iinfo(np.int64).max:
        raise SchemaError(
            f"{what} needs values below 2^63 in the column {name!r}; the largest is {column.max()}"
        )
    return column.astype(np.int64, copy=False)


def _not_booleans(name: str, what: str, kind: object) -> str:
    return f"{what} needs booleans in the column {name!r}, not {kind}"


def _not_integers(name: str, what: str, kind: object) -> str:
    return (
        f"{what} needs integers in the column {name!r}, not {kind}: number what they stand for "
        "first"
    )
