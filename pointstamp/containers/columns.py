"""Columns: Arrow record batches, the container of everything that comes from Spark.

A batch stays Arrow from scan to write. Keys are hashed on its buffers; only
types without a vectorised hash (decimals, lists, structs) go through Python
values. Splitting is one permutation, a gather per column, and slices without a copy.

The one file of containers that must import pyarrow, and imported only when the
first record batch turns up (`registry.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.arrays import hash_array
from pointstamp.containers.arrow_groups import grouped
from pointstamp.containers.convert import arrow_array, numbers, one_batch
from pointstamp.containers.expressions import evaluate, filter_batch, is_expression
from pointstamp.containers.flat import is_flat, put_together, take_apart
from pointstamp.containers.keys import checked_values, column_names, hash_keys
from pointstamp.containers.kind import Buffer, Key, Kind, check_new, columns_of_right
from pointstamp.containers.small_columns import SmallSplits
from pointstamp.containers.texts import is_text, text_array, text_parts
from pointstamp.errors import ContainerError, KeyHashError, SchemaError
from pointstamp.kernels.deal import MAX_DEALT, Dealing, deal, peers_of_hashes, peers_of_ints
from pointstamp.kernels.hashing import (
    NULL_HASH,
    Hashes,
    combine_columns,
    contiguous,
    hash_bytes,
    hash_column,
    hash_slices,
    hash_times,
)
from pointstamp.kernels.partition import partition
from pointstamp.kernels.permute import Places, gather, gather_texts

# Any, since the stubs of pyarrow give each type of column a class of its own, without
# the buffers that are read here.
ArrowArray = Any

_INTEGERS = {32: pa.int32(), 64: pa.int64()}
"""What times of so many bits are counted in."""

APART_BYTES = 1 << 15
"""From this size on, what a copy costs counts."""

APART_RECORDS = 1 << 10
"""Of fewer records even the size is not asked for, as that takes as long as copying them."""


class ColumnsKind(Kind[pa.RecordBatch]):
    """What can be done with a `pyarrow.RecordBatch`.

    Parameters
    ----------
    takes_apart : bool
        Encode large batches as the buffers that they consist of, for what sends
        several buffers without putting them together; else always as one Arrow IPC
        stream, for what stores them.
    """

    name = "columns"
    has_columns = True

    def called(self) -> str:
        """Record batches."""
        return "record batches"

    def __init__(self, *, takes_apart: bool = False) -> None:
        self._takes_apart = takes_apart
        self._small_splits = SmallSplits()

    def length(self, batch: pa.RecordBatch) -> int:
        """How many rows."""
        return batch.num_rows

    def n_bytes(self, batch: pa.RecordBatch) -> int:
        """The bytes that the batch refers to."""
        width = self._small_splits.record_bytes(batch)
        return batch.nbytes if width is None else width * batch.num_rows

    def schema(self, batch: pa.RecordBatch) -> pa.Schema:
        """The Arrow schema."""
        return batch.schema

    def records(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        """The records as tuples."""
        if not batch.num_columns:
            return itertools.repeat((), batch.num_rows)
        return zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def slice(self, batch: pa.RecordBatch, start: int, stop: int) -> pa.RecordBatch:
        """A view of some records."""
        return batch.slice(start, stop - start)

    def concat(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One batch of several."""
        whole: pa.RecordBatch = batches[0] if len(batches) == 1 else one_batch(batches)
        return whole

    def names(self, batch: pa.RecordBatch) -> list[str]:
        """The names of the columns."""
        return batch.schema.names

    def column(self, batch: pa.RecordBatch, chosen: Any, operator: str) -> Any:
        """A column, the values of an expression, or what a function makes of the batch."""
        if is_expression(chosen):
            return evaluate(batch, chosen).column(0)
        if callable(chosen):
            return _array_of(checked_values(chosen(batch), batch.num_rows, chosen))
        names = batch.schema.names
        column_names(chosen, names, f"{operator}: a record batch", "give")
        return batch.column(names.index(chosen))

    def with_columns(self, batch: pa.RecordBatch, more: Mapping[str, Any]) -> pa.RecordBatch:
        """More columns at the end."""
        names = batch.schema.names
        check_new(more, names)
        columns = [arrow_array(c) if isinstance(c, np.ndarray) else c for c in more.values()]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], names=[*names, *more])

    def select(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Without a copy."""
        chosen: pa.RecordBatch = batch.select(list(dict.fromkeys(names)))
        return chosen

    def to_arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch itself."""
        return batch

    def paired(
        self, left: pa.RecordBatch, right: pa.RecordBatch, key: Sequence[str], suffix: str
    ) -> pa.RecordBatch:
        """The columns of both sides."""
        return self.with_columns(left, columns_of_right(self, left, right, key, suffix))

    def outer_paired(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        places: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        keys: tuple[Sequence[str], Sequence[str]],
        suffix: str,
    ) -> pa.RecordBatch:
        """With nulls where there is no record."""
        import pyarrow.compute as pc

        indices: list[ArrowArray] = [pa.array(side, mask=side < 0) for side in places]
        at_left, at_right = indices
        is_left = pa.array(places[0] >= 0)
        # The names of columns that are no key may repeat, as in an inner join.
        names = list(left.schema.names)
        columns: list[Any] = [_take(left, place, at_left) for place in range(len(names))]
        for mine, theirs in zip(*keys, strict=True):
            other = _take(right, right.schema.names.index(theirs), at_right)
            place = names.index(mine)
            kind = columns[place].type
            try:
                columns[place] = pc.if_else(is_left, columns[place], other.cast(kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SchemaError(
                    f"a join cannot put the key {theirs!r} of type {other.type} of records without "
                    f"a partner into the column {mine!r} of type {kind}: {error}; make them one "
                    "type"
                ) from error
        more = columns_of_right(self, left, right, keys[1], suffix)
        columns += [column.take(at_right) for column in more.values()]
        return pa.RecordBatch.from_arrays(columns, names=[*names, *more])

    def empty(self, schema: pa.Schema) -> pa.RecordBatch:
        """Columns of length 0."""
        columns = [pa.array([], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(columns, names=schema.names)

    def take(self, batch: pa.RecordBatch, places: Places) -> pa.RecordBatch:
        """One gather per column."""
        return _gathered(batch, arrow_array(places))

    def plain_columns(self, batch: pa.RecordBatch) -> dict[str, npt.NDArray[Any]] | None:
        """Numbers without nulls, and times as their integers; the names of columns may repeat."""
        if not batch.num_columns:
            return None  # which say how many records there are
        plain = {}
        for place, column in enumerate(batch.columns):
            if column.null_count or not (_is_number(column.type) or _is_temporal(column.type)):
                return None
            if not _is_number(column.type):
                column = column.view(_INTEGERS[column.type.bit_width])
            plain[str(place)] = numbers(column)
        return plain

    def of_plain(
        self, columns: Mapping[str, npt.NDArray[Any]], like: pa.RecordBatch
    ) -> pa.RecordBatch:
        """The same columns; times are times again."""
        arrays = [
            arrow_array(column) if _is_number(kind) else arrow_array(column).view(kind)
            for column, kind in zip(columns.values(), like.schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=like.schema)

    def filter(
        self, batch: pa.RecordBatch, chosen: Any, operator: str, *, keep: bool = True
    ) -> pa.RecordBatch:
        """By Arrow where it is an expression."""
        if is_expression(chosen):
            found: pa.RecordBatch = filter_batch(batch, chosen, keep=keep)
            return found
        return super().filter(batch, chosen, operator, keep=keep)

    def keyed(self, batch: pa.RecordBatch, key: Key, operator: str) -> Iterator[tuple[Any, Any]]:
        """Nothing: what folds records one by one takes rows."""
        raise ContainerError(
            f"{operator} was given {self.called()} and the key {key!r}: name the columns of the "
            "key, as key='user' or key=['user', 'day']"
        )

    def group(
        self, batch: pa.RecordBatch, key: Key, operator: str
    ) -> Iterator[tuple[Any, pa.RecordBatch]]:
        """One grouping of the key's columns by Arrow, and one gather per column."""
        return grouped(batch, key, operator)

    def hashes(self, batch: pa.RecordBatch, key: Key) -> Hashes:
        """Hashes of the columns, or of the keys, that `key` chooses."""
        if callable(key) or is_expression(key):
            return _hash_values_of(self.column(batch, key, "exchange"))
        # Where none is named there may be several of one name.
        chosen: list[Any] = batch.columns
        if key is not None:
            names = column_names(key, batch.schema.names, "a record batch")
            chosen = [batch.column(name) for name in names]
        if not chosen:
            return np.zeros(batch.num_rows, np.uint64)
        return combine_columns(list(map(hash_arrow, chosen)))

    def exchange(self, batch: pa.RecordBatch, key: Key, peers: int) -> list[pa.RecordBatch]:
        """As `split` by `hashes`; a small batch in one go."""
        parts = self._small_splits.split(batch, key, peers)
        if parts is not None:
            return parts
        is_named = not (callable(key) or is_expression(key))
        if is_named and 1 < peers <= MAX_DEALT and _is_dealt(batch):
            names = column_names(key, batch.schema.names, "a record batch")
            if len(names) == 1 and pa.types.is_integer(batch.schema.field(names[0]).type):
                return _dealt(batch, peers_of_ints(numbers(batch.column(names[0])), peers))
        return super().exchange(batch, key, peers)

    def split(self, batch: pa.RecordBatch, numbers: Hashes, n_parts: int) -> list[pa.RecordBatch]:
        """Each column dealt, or where they are not all numbers gathered; then views."""
        if n_parts == 1:
            return [batch]
        if n_parts <= MAX_DEALT and _is_dealt(batch):
            return _dealt(batch, peers_of_hashes(contiguous(numbers), n_parts))
        order, starts = partition(numbers, n_parts)
        ordered = _taken(batch, order)
        bounds = starts.tolist()
        return [self.slice(ordered, *span) for span in itertools.pairwise(bounds)]

    def encode(self, batch: pa.RecordBatch) -> list[Buffer]:
        """One Arrow IPC stream, in which dictionaries come along; or a large batch's buffers."""
        is_large = (
            self._takes_apart and batch.num_rows >= APART_RECORDS and batch.nbytes >= APART_BYTES
        )
        if is_large and is_flat(batch.schema):
            return take_apart(batch)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return [memoryview(sink.getvalue())]

    def decode(self, buffers: Sequence[Buffer]) -> pa.RecordBatch:
        """The batch, whose columns are views of `buffers`."""
        if len(buffers) > 1:
            return put_together(buffers)
        with pa.ipc.open_stream(pa.py_buffer(buffers[0])) as reader:
            return reader.read_next_batch()


def _is_dealt(batch: pa.RecordBatch) -> bool:
    """Whether there are columns, and all of numbers without nulls."""
    return batch.num_columns > 0 and not any(
        column.null_count or not _is_number(column.type) for column in batch.columns
    )


def _dealt(batch: pa.RecordBatch, dealing: Dealing) -> list[pa.RecordBatch]:
    """The records of each part."""
    columns = [deal(numbers(column), dealing) for column in batch.columns]
    parts = [list(map(arrow_array, part)) for part in zip(*columns, strict=True)]
    return [pa.RecordBatch.from_arrays(part, schema=batch.schema) for part in parts]


def _taken(batch: pa.RecordBatch, order: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The records of `batch` in another order; numbers and texts quicker than Arrow takes them."""
    indices = arrow_array(order)
    if not batch.num_columns:
        return _gathered(batch, indices)  # of arrays there would be no records

    def taken(place: int) -> ArrowArray:
        column = batch.column(place)
        if not column.null_count and is_text(column.type) and len(column):
            bounds, data = text_parts(column)
            return text_array(column.type, *gather_texts(contiguous(bounds), data, order))
        if column.null_count or not _is_number(column.type):
            return _take(batch, place, indices)
        return arrow_array(gather(numbers(column), order))

    columns = list(map(taken, range(batch.num_columns)))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _gathered(batch: pa.RecordBatch, indices: ArrowArray) -> pa.RecordBatch:
    """The records at `indices`."""
    try:
        taken: pa.RecordBatch = batch.take(indices)
    except pa.ArrowNotImplementedError:
        for place in range(batch.num_columns):
            _take(batch, place, indices)  # says which column it is
        raise
    return taken


def _take(batch: pa.RecordBatch, place: int, indices: ArrowArray) -> ArrowArray:
    """The values at `indices` of one column.

    Raises
    ------
    SchemaError
        If Arrow cannot take values of its type, as those of views of text.
    """
    try:
        return batch.column(place).take(indices)
    except pa.ArrowNotImplementedError as error:
        field = batch.schema.field(place)
        raise SchemaError(
            f"the column {field.name!r} is of type {field.type}, of which Arrow cannot choose "
            "records: cast it to another type before it is sent, such as large_string for a "
            "view of text, or decode it"
        ) from error


def hash_arrow(column: ArrowArray) -> Hashes:
    """The stable hash of each value of an Arrow column, uint64[n].

    Raises
    ------
    KeyHashError
        For a type whose values have no stable hash (maps, for one).
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _hash_dictionary(column)
    if pa.types.is_null(kind):
        return np.full(len(column), NULL_HASH, np.uint64)
    hashes = _hash_values(column, kind)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = NULL_HASH
    return hashes


def _hash_values(column: ArrowArray, kind: pa.DataType) -> Hashes:
    """The hashes of values; those of nulls are anything."""
    if pa.types.is_boolean(kind):
        return hash_column(numbers(column.cast(pa.uint8())))
    if _is_number(kind):
        return hash_column(numbers(column))
    if _is_temporal(kind):
        return _hash_temporal(column, kind)
    if pa.types.is_fixed_size_binary(kind):
        return _hash_fixed(column, kind.byte_width)
    if _is_text(kind):
        return _hash_texts(column)
    return hash_keys([_as_key(value, kind) for value in column.to_pylist()])


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_temporal(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def _hash_temporal(column: ArrowArray, kind: Any) -> Hashes:
    """Days of dates, microseconds of everything else: as for Python's own types."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    values = numbers(column.view(width))
    if pa.types.is_date32(kind):
        return hash_column(values)
    if pa.types.is_date64(kind):
        return hash_column(values // 86_400_000)
    return hash_times(values.astype(np.int64).view(f"m8[{kind.unit}]"))


def _is_text(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)


def _hash_texts(column: ArrowArray) -> Hashes:
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    bounds, data = text_parts(column)
    return hash_bytes(bounds, data)


def _hash_fixed(column: ArrowArray, width: int) -> Hashes:
    starts = (column.offset + np.arange(len(column))) * width
    return hash_slices(starts, starts + width, np.frombuffer(column.buffers()[1] or b"", np.uint8))


def _hash_dictionary(column: ArrowArray) -> Hashes:
    """Each distinct value hashed once; the last entry stands for null indices."""
    of_values = np.append(hash_arrow(column.dictionary), np.uint64(NULL_HASH))
    indices = column.indices.cast(pa.int64()).fill_null(len(column.dictionary))
    hashes: Hashes = of_values[numbers(indices)]
    return hashes


def _as_key(value: Any, kind: pa.DataType) -> Any:
    """A hashable value of what Arrow gives for nested types: tuples."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(_as_key(value[field.name], field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return tuple(_as_key(item, kind.value_type) for item in value)
    if pa.types.is_map(kind):
        raise KeyHashError(
            f"a column of Arrow type {kind} cannot be a key, since the order of its entries is "
            "arbitrary; use numbers, text, binaries, times, decimals, or lists and structs of these"
        )
    return value


def _array_of(values: Any) -> Any:
    """What a function gave for a batch, as an Arrow or a NumPy array."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.chunks else pa.nulls(0)
    return values if isinstance(values, pa.Array) else np.asarray(values)


def _hash_values_of(values: Any) -> Hashes:
    return hash_arrow(values) if isinstance(values, pa.Array) else hash_array(values)
