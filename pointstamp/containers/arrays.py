"""Arrays: named NumPy columns of one length, the container of numeric programs.

Its columns are read-only, since a batch that was sent may be held by several workers.
Columns of any dtype travel; those of Python objects by pickle.

A batch is what it was made of, arrays or a block (`kernels/blocks.py`), and an array that can
be read is made of that when a column is asked for: small batches are split, put together and
sent as blocks, by loops over their records, most without an object for a column.

Knows nothing of Arrow; nulls do not exist here.
"""

from __future__ import annotations

import itertools
import pickle
import struct
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.array_fields import n_values, of_integers, read_only
from pointstamp.containers.convert import to_arrow
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import checked_values, column_names, hash_keys
from pointstamp.containers.kind import Buffer, Key, Kind, check_new, columns_of_right
from pointstamp.containers.layouts import ArraysLayout, check_alike, layout_from, layout_of
from pointstamp.containers.rows import dump_records
from pointstamp.errors import ColumnError, ContainerError, KeyHashError, SchemaError
from pointstamp.kernels.blocks import HEAD, MAX_PARTS, MAX_RECORDS, pack_columns, split_columns
from pointstamp.kernels.deal import (
    MAX_DEALT,
    Dealing,
    deal,
    peers_of_hashes,
    peers_of_ints,
)
from pointstamp.kernels.hashing import Hashes, combine_columns, contiguous, hash_column
from pointstamp.kernels.partition import partition
from pointstamp.kernels.permute import Places, gather

Array = npt.NDArray[Any]

_N_RECORDS = struct.Struct("<Q")

BLOCK_BYTES = 1 << 13
"""Columns of more bytes are not copied to be put into one block."""

_AS_BLOCK = 1 << 63
"""Added to the number of records of an encoded batch whose columns are a block."""

_FEW_PLACES = 1 << 10
"""Fewer are taken by NumPy, whose call costs less."""

_ndarray = np.ndarray
_from_buffer = np.frombuffer


class Arrays:
    """A batch of records as named NumPy columns, each of shape [n].

    `len` and iteration are of records (as tuples); names index columns.

    Raises
    ------
    ContainerError
        If the columns differ in length, or one is not one-dimensional.

    >>> edges = Arrays(src=[1, 2], dst=[2, 3])
    >>> len(edges), list(edges), edges["dst"].tolist()
    (2, [(1, 2), (2, 3)], [2, 3])
    """

    __slots__ = ("_block", "_given", "_is_whole", "_layout", "_n_records", "_opened")

    def __init__(
        self, columns: Mapping[str, npt.ArrayLike] | None = None, **more: npt.ArrayLike
    ) -> None:
        given = more if columns is None else {**columns, **more}
        self._n_records = _made_arrays(given)
        # One of the two is None, and Any says so without a question at each use.
        self._given: Any = given
        self._block: Any = None
        self._layout: Any = None
        self._opened: Any = None
        """The columns that were read; None before the first is."""
        self._is_whole = False

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.layout().names if self._given is None else self._given)

    @property
    def n_records(self) -> int:
        """How many records; the same as `len`."""
        return self._n_records

    def keys(self) -> KeysView[str]:
        """The names of the columns, as of a dict: `dict(arrays)` works."""
        return self._whole().keys()

    def items(self) -> ItemsView[str, Array]:
        """Name and column, of each column."""
        return self._whole().items()

    def __getitem__(self, name: str) -> Array:
        try:
            column: Array | None = None if self._opened is None else self._opened.get(name)
            return self._open(name) if column is None else column
        except TypeError:  # of what has no hash
            raise self._no_column(name) from None

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return self._n_records

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.tolist() for column in self._whole().values()), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arrays) or self.names != other.names:
            return False
        return all(np.array_equal(column, other[name]) for name, column in self.items())

    __hash__ = None  # type: ignore[assignment]  # compares by value, like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return (Arrays, (dict(self._whole()),))

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {column.dtype}" for name, column in self.items())
        return f"Arrays({columns}; {self._n_records} records)"

    def layout(self) -> ArraysLayout:
        """What it has in common with other batches, one for all of the same names and dtypes."""
        if self._layout is None:
            self._layout = layout_of(self._given)
        layout: ArraysLayout = self._layout
        return layout

    def source(self) -> list[Array] | bytes:
        """What the loops of `kernels/blocks.py` read it from."""
        return list(self._given.values()) if self._block is None else self._block

    def _open(self, name: str) -> Array:
        """A column that is read for the first time."""
        if self._given is not None:
            given = self._given.get(name)
            if given is None:
                raise self._no_column(name)
            column = read_only(given)
        else:
            place = self._layout.place_of(name)
            if place < 0:
                raise self._no_column(name)
            column = self._column_at(place)
        if self._opened is None:
            self._opened = {}
        self._opened[name] = column
        return column

    def _column_at(self, place: int) -> Array:
        dtype = self._layout.dtypes[place]
        if not self._n_records:
            return read_only(np.empty(0, dtype))
        start = self._layout.starts_in(self._n_records)[place]
        column: Array = _from_buffer(self._block, dtype, self._n_records, start)
        return column

    def _whole(self) -> dict[str, Array]:
        """All columns, in order."""
        if not self._is_whole:
            self._opened = {name: self[name] for name in self.names}
            self._is_whole = True
        whole: dict[str, Array] = self._opened
        return whole

    def _no_column(self, name: object) -> ColumnError:
        return ColumnError(f"there is no column {name!r}, only {self.names}")


def _made_arrays(given: dict[str, Any]) -> int:
    """Put arrays in the place of columns that are none; how many records there are."""
    n_records = -1
    is_ragged = False
    for name, column in given.items():
        array = column
        if type(column) is not _ndarray:
            array = of_integers(column) if type(column) is list else None
            if array is None:
                # The module of those is imported when it is used, hence the first question.
                if isinstance(column, _ndarray) and isinstance(column, np.ma.MaskedArray):
                    raise ContainerError(
                        f"column {name!r} is a masked array, and a column has a value in each "
                        "record: give what stands for those that are masked, as "
                        "column.filled(value), or send a record batch of Arrow, which has nulls"
                    )
                array = np.asarray(column)
            given[name] = array  # a key that is there, so the loop goes on
        n = n_values(array)
        if n < 0:
            raise ContainerError(
                f"column {name!r} has shape {array.shape}; a column is one-dimensional, "
                "one value per record"
            )
        if n_records < 0:
            n_records = n
        elif n != n_records:
            is_ragged = True
    if is_ragged:
        lengths = {name: len(array) for name, array in given.items()}
        raise ContainerError(f"columns of one batch need one length, but these have {lengths}")
    return max(n_records, 0)


def of_block(layout: ArraysLayout, block: bytes) -> Arrays:
    """The batch whose columns are in a block.

    >>> a = Arrays(a=[1, 2])
    >>> of_block(a.layout(), pack_columns([a.source()], a.layout().widths)) == a
    True
    """
    n_records = 0
    for k in range(8):
        n_records |= block[k] << 8 * k
    batch = Arrays.__new__(Arrays)
    batch._given = None
    batch._block = block
    batch._layout = layout
    batch._opened = None
    batch._is_whole = False
    batch._n_records = n_records
    return batch


class ArraysKind(Kind[Arrays]):
    """What can be done with `Arrays`."""

    name = "arrays"
    has_columns = True
    is_internal = True

    def called(self) -> str:
        """Columns of NumPy arrays."""
        return "columns of NumPy arrays"

    def length(self, batch: Arrays) -> int:
        """How many records."""
        return batch.n_records

    def n_bytes(self, batch: Arrays) -> int:
        """The bytes of all columns."""
        return batch.n_records * batch.layout().record_bytes

    def schema(self, batch: Arrays) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """Names and dtypes of the columns."""
        return batch.layout().schema

    def records(self, batch: Arrays) -> Iterator[tuple[Any, ...]]:
        """The records as tuples."""
        return iter(batch)

    def slice(self, batch: Arrays, start: int, stop: int) -> Arrays:
        """A view of some records."""
        return Arrays({name: column[start:stop] for name, column in batch.items()})

    def concat(self, batches: Sequence[Arrays]) -> Arrays:
        """One batch of several; of small ones a block.

        Raises
        ------
        SchemaError
            If what is put together would not have the values of all.
        """
        layout = batches[0].layout()
        if layout.is_flat:
            n_records = 0
            is_one = True
            for batch in batches:
                n_records += batch.n_records
                is_one = is_one and batch.layout() is layout
            if is_one and n_records * layout.record_bytes <= BLOCK_BYTES:
                return of_block(layout, pack_columns([b.source() for b in batches], layout.widths))
        # The columns of one without records may be of any dtype: an empty list has none to go by.
        full = [batch for batch in batches if batch.n_records] or list(batches)
        check_alike([batch.layout() for batch in full])
        return Arrays({name: _one_column([b[name] for b in full], name) for name in full[0].names})

    def names(self, batch: Arrays) -> list[str]:
        """The names of the columns."""
        return batch.names

    def column(self, batch: Arrays, chosen: Any, operator: str) -> Array:
        """A column, or what a function makes of the batch."""
        if is_expression(chosen):
            super().column(batch, chosen, operator)
        if callable(chosen):
            return np.asarray(checked_values(chosen(batch), len(batch), chosen))
        column_names(chosen, batch.names, f"{operator}: a batch of NumPy arrays", "give")
        return batch[chosen]

    def with_columns(self, batch: Arrays, more: Mapping[str, Any]) -> Arrays:
        """More columns at the end."""
        check_new(more, batch.names)
        return Arrays({**dict(batch), **more})

    def select(self, batch: Arrays, names: Sequence[str]) -> Arrays:
        """The same columns."""
        return Arrays({name: batch[name] for name in names})

    def to_arrow(self, batch: Arrays) -> Any:
        """The same columns, of numbers without a copy."""
        return to_arrow(dict(batch))

    def paired(self, left: Arrays, right: Arrays, key: Sequence[str], suffix: str) -> Arrays:
        """The columns of both sides."""
        return self.with_columns(left, columns_of_right(self, left, right, key, suffix))

    def take(self, batch: Arrays, places: Places) -> Arrays:
        """One gather per column."""
        if len(places) < _FEW_PLACES:
            return Arrays({name: column[places] for name, column in batch.items()})
        return Arrays({name: gather(column, places) for name, column in batch.items()})

    def plain_columns(self, batch: Arrays) -> dict[str, Array] | None:
        """The columns, unless some are of Python objects."""
        columns = dict(batch.items())
        return None if any(map(_is_objects, columns.values())) else columns

    def of_plain(self, columns: Mapping[str, Array], like: Arrays) -> Arrays:
        """The same columns."""
        return Arrays(columns)

    def hashes(self, batch: Arrays, key: Key) -> Hashes:
        """Hashes of the columns, or of the keys, that `key` chooses."""
        if callable(key):
            return hash_array(self.column(batch, key, "exchange"))
        names = column_names(key, batch.names, "a batch of NumPy arrays")
        if not names:
            return np.zeros(len(batch), np.uint64)
        return combine_columns([hash_array(batch[name]) for name in names])

    def exchange(self, batch: Arrays, key: Key, peers: int) -> list[Arrays]:
        """As `split` by `hashes`; a small batch in one go."""
        if batch.n_records <= MAX_RECORDS and 1 < peers <= MAX_PARTS:
            layout = batch.layout()
            keys = layout.keys_of(key)
            if keys is not None:
                blocks = split_columns(batch.source(), layout.kinds, layout.widths, keys, peers)
                return [of_block(layout, block) for block in blocks]
        if 1 < peers <= MAX_DEALT and not callable(key):
            names = column_names(key, batch.names, "a batch of NumPy arrays")
            if len(names) == 1 and batch[names[0]].dtype.kind in "iu":
                return _dealt(batch, peers_of_ints(batch[names[0]], peers))
        return super().exchange(batch, key, peers)

    def split(self, batch: Arrays, numbers: Hashes, n_parts: int) -> list[Arrays]:
        """Each column dealt, or for many parts gathered; then views."""
        if n_parts == 1:
            return [batch]
        if n_parts <= MAX_DEALT:
            return _dealt(batch, peers_of_hashes(contiguous(numbers), n_parts))
        order, starts = partition(numbers, n_parts)
        ordered = Arrays({name: gather(column, order) for name, column in batch.items()})
        bounds = starts.tolist()
        return [self.slice(ordered, *span) for span in itertools.pairwise(bounds)]

    def encode(self, batch: Arrays) -> list[Buffer]:
        """A header, then the bytes of each column (objects are pickled), or a block of them."""
        layout = batch.layout()
        packed = self.pack_small(batch)
        if packed is not None:
            return [_N_RECORDS.pack(batch.n_records | _AS_BLOCK) + packed[0], packed[1]]
        return [
            _N_RECORDS.pack(batch.n_records) + layout.header(),
            *[_column_bytes(column) for _, column in batch.items()],
        ]

    def decode(self, buffers: Sequence[Buffer]) -> Arrays:
        """Columns that are views of `buffers`."""
        header = memoryview(buffers[0])
        (n_records,) = _N_RECORDS.unpack_from(header)
        layout = layout_from(bytes(header[_N_RECORDS.size :]))
        if n_records & _AS_BLOCK:
            return _unpacked(layout, bytes(buffers[1]))
        columns = {}
        for (name, dtype), buffer in zip(layout.schema, buffers[1:], strict=True):
            columns[name] = _column_of(buffer, dtype, n_records)
        return Arrays(columns)

    def pack_small(self, batch: Arrays) -> tuple[bytes, bytes] | None:
        """Its layout, and its block."""
        layout = batch.layout()
        if not layout.is_flat or batch.n_records * layout.record_bytes > BLOCK_BYTES:
            return None
        source = batch.source()
        if type(source) is not bytes:
            source = pack_columns([source], layout.widths)
        return layout.header(), source

    def unpack_small(self, header: bytes, block: bytes) -> Arrays:
        """Of its layout and its block."""
        return _unpacked(layout_from(header), block)


def hash_array(values: Array) -> Hashes:
    """The stable hash of each item of a NumPy array, of objects and text too, uint64[n].

    Raises
    ------
    KeyHashError
        If some have no stable hash, or the array is not one-dimensional.
    """
    if values.ndim != 1:
        raise KeyHashError(
            "keys of a batch of columns are one value for each record, and these have shape "
            f"{values.shape}: name several columns for a key of several parts"
        )
    if values.dtype.kind in "OSU":
        return hash_keys(values.tolist())
    return hash_column(values)


def _unpacked(layout: ArraysLayout, block: bytes) -> Arrays:
    """A batch of a block that came from elsewhere."""
    batch = of_block(layout, block)
    size = layout.starts_in(batch.n_records)[-1] if batch.n_records <= len(block) else 0
    last = batch.n_records * layout.widths[-1]
    if len(block) != size + last + -last % HEAD:
        raise ContainerError(
            f"a block of {len(block)} bytes has no {batch.n_records} records of {layout.schema}"
        )
    return batch


def _dealt(batch: Arrays, dealing: Dealing) -> list[Arrays]:
    """The records of each part."""
    columns = {name: deal(column, dealing) for name, column in batch.items()}
    n_parts = len(dealing[1]) - 1
    return [
        Arrays({name: parts[part] for name, parts in columns.items()}) for part in range(n_parts)
    ]


def _one_column(columns: list[Array], name: str) -> Array:
    if any(column.dtype.kind in "mM" for column in columns):
        dtype = np.result_type(*columns)
        for column in columns:
            if dtype.kind in "mM" and column.dtype != dtype and not _are_whole(column, dtype):
                raise SchemaError(
                    f"batches cannot be put together: the column {name!r} has {column.dtype}, of "
                    f"which some do not fit into {dtype}; cast them to one unit before they "
                    "are sent"
                )
    whole: Array = np.concatenate(columns)
    return whole


def _are_whole(times: Array, dtype: np.dtype[Any]) -> bool:
    """Whether times are the same in another unit.

    What does not fit into a finer one NumPy refuses, or before 2.5 begins again at the other end.
    """
    try:
        again = times.astype(dtype).astype(times.dtype).view(np.int64)
    except OverflowError:
        return False
    return bool(np.array_equal(again, times.view(np.int64)))


def _is_objects(column: Array) -> bool:
    return bool(column.dtype.hasobject)


def _column_bytes(column: Array) -> Buffer:
    if _is_objects(column):
        return dump_records(column.tolist())
    # Times have no buffer of their own in NumPy, hence the view of bytes.
    return np.ascontiguousarray(column).view(np.uint8).data if len(column) else b""


def _column_of(buffer: Buffer, dtype: np.dtype[Any], n_records: int) -> Array:
    if dtype.hasobject:
        column = np.empty(n_records, object)
        column[:] = pickle.loads(buffer)
        return column
    if not n_records:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, np.uint8).view(dtype)
