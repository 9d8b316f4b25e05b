"""Ids of any type, and the numbers that stand for them inside: 0, 1, 2, ... in their order.

That numbers are in the order of ids makes the least number of some vertices their least id, so
that what an algorithm decides by the least vertex does not depend on where a record stood.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
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
        try:
            keys = _keys_of(values)
            distinct = pc.unique(keys)
            order = pc.sort_indices(distinct)
        except pa.ArrowException as error:
            raise SchemaError(
                f"ids are numbers, text, bytes, times or structs of those, and these are "
                f"{values.type}, which Arrow cannot order: cast them to text, for one"
            ) from error
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
    if pa.types.is_null(column.type) and not len(column):  # such as an empty list
        return pa.array([], kind)
    if is_zoned(column.type) != is_zoned(kind):
        raise SchemaError(
            f"{what}: ids are {kind}, and these are {column.type}: a time with a zone is a moment, "
            "and one without is none; give both a zone, or neither"
        )
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


def one_type(kinds: Sequence[Any]) -> Any:
    """The type that ids in columns of these types have together: of integers the narrowest for all.

    That of the first column where they are not all integers. As no type has the values of uint64
    and of one that is signed, these are uint64, and `cast_ids` refuses those below 0.

    >>> one_type([pa.int8(), pa.int32()]), one_type([pa.uint8(), pa.int8()])
    (DataType(int32), DataType(int16))
    >>> one_type([pa.int8(), pa.uint64()])
    DataType(uint64)
    """
    if len(set(kinds)) == 1 or not all(map(pa.types.is_integer, kinds)):
        return kinds[0]
    wide = (kind for kind in _INTEGERS if all(_has_all_of(kind, one) for one in kinds))
    return next(wide, pa.uint64())


_INTEGERS = (
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16()),
    *(pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
)


def _has_all_of(kind: Any, other: Any) -> bool:
    """Whether an integer type has all values of another."""
    if pa.types.is_signed_integer(kind) == pa.types.is_signed_integer(other):
        return bool(kind.bit_width >= other.bit_width)
    return pa.types.is_signed_integer(kind) and bool(kind.bit_width > other.bit_width)


def array_of_ids(ids: Sequence[Any], kind: Any) -> Any:
    """Ids as an Arrow array of their type; what Arrow or this raises, if they are not of it.

    A time without a zone is none of those that have one, and Arrow would take it for one of UTC;
    nor is 1.5 an integer, for which it would take 1.
    """
    if pa.types.is_timestamp(kind):
        wrong = [one for one in ids if _is_time(one) and (one.tzinfo is None) == is_zoned(kind)]
        if wrong:
            raise ValueError("times with a zone and without one are not the same")
    found = pa.array(list(ids), kind)
    if not pa.types.is_floating(kind) and _is_changed(list(ids), found):
        raise ValueError("not all of them are of that type")
    return found


def _is_changed(ids: list[Any], found: Any) -> bool:
    """Whether numbers or times among ids became others, as a time does that becomes a day."""
    try:
        given = pa.array(ids)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False  # which have no type that all of them are of
    if not (pa.types.is_floating(given.type) or pa.types.is_temporal(given.type)):
        return False
    # Of times finer than Arrow takes Python's for by itself, that much is compared.
    return not found.cast(given.type, safe=False).equals(given)


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime.datetime)


def check_valid(column: Any, what: str) -> None:
    """Refuse nulls, which are no ids."""
    if column.null_count:
        raise GraphError(
            f"{what} needs an id in every record, and {column.null_count} of {len(column)} are "
            "null: drop those records first"
        )


def plain_type(kind: Any) -> Any:
    """The Arrow type that ids of another one have inside: of values, not of how they are kept."""
    return _plain(pa.array([], kind)).type


def is_zoned(kind: Any) -> bool:
    """Whether values of an Arrow type are times with a zone."""
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _plain(column: Any) -> Any:
    """A column as one array, neither dictionary, nor runs, nor view."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunks, in some versions
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        column = pc.call_function("run_end_decode", [column])
    if column.type in (pa.string_view(), pa.large_string()):
        column = column.cast(pa.string())
    return column


def _keys_of(values: Any) -> Any:
    """What Arrow can look up: the ids themselves, or what is as good.

    Of structs and lists that is a text of each; of UUIDs and the like what they are stored as; of
    short floats and decimals, which Arrow cannot order, longer ones; and of floats 0.0 for -0.0.
    """
    if isinstance(values.type, pa.BaseExtensionType):
        return _keys_of(values.storage)
    if pa.types.is_floating(values.type):
        short = pa.types.is_float16(values.type)
        return pc.add(values.cast(pa.float32()) if short else values, 0.0)
    if pa.types.is_decimal(values.type) and values.type.bit_width < 128:
        return values.cast(pa.decimal128(values.type.precision, values.type.scale))
    if pa.types.is_nested(values.type):
        counted = values.cast(_counted(values.type))
        return pa.array([repr(value) for value in counted.to_pylist()], pa.string())
    return values


def _counted(kind: Any) -> Any:
    """A type with nanoseconds, which Python's times have not, as counts of them."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_counted(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    return pa.int64() if getattr(kind, "unit", None) == "ns" else kind
