"""Arrays: named NumPy columns of one length, the container of numeric programs.

Its columns are read-only views, since a batch that was sent may be held by
several workers. Columns of any dtype travel; those of Python objects by pickle.

Knows nothing of Arrow; nulls do not exist here.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import struct
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import to_arrow
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import checked_values, column_names, hash_keys
from pointstamp.containers.kind import Buffer, Key, Kind, check_new, columns_of_right
from pointstamp.containers.rows import dump_records
from pointstamp.errors import ColumnError, ContainerError
from pointstamp.kernels.hashing import Hashes, combine_columns, hash_column
from pointstamp.kernels.partition import partition
from pointstamp.kernels.permute import gather

Array = npt.NDArray[Any]

_Named = tuple[tuple[str, "np.dtype[Any] | None"], ...]
"""Columns by name and dtype; None for one of Python objects."""

_N_RECORDS = struct.Struct("<Q")


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

    __slots__ = ("_columns", "_n_records")

    def __init__(
        self, columns: Mapping[str, npt.ArrayLike] | None = None, **more: npt.ArrayLike
    ) -> None:
        given = {**(columns or {}), **more}
        self._columns: dict[str, Array] = {n: _frozen(n, column) for n, column in given.items()}
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ContainerError(f"columns of one batch need one length, but these have {lengths}")
        self._n_records = next(iter(lengths.values()), 0)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    @property
    def n_records(self) -> int:
        """How many records; the same as `len`."""
        return self._n_records

    def keys(self) -> KeysView[str]:
        """The names of the columns, as of a dict: `dict(arrays)` works."""
        return self._columns.keys()

    def items(self) -> ItemsView[str, Array]:
        """Name and column, of each column."""
        return self._columns.items()

    def __getitem__(self, name: str) -> Array:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise ColumnError(f"no column {name!r} in Arrays: it has {self.names}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return self._n_records

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.tolist() for column in self._columns.values()), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arrays) or self.names != other.names:
            return False
        return all(np.array_equal(column, other[name]) for name, column in self.items())

    __hash__ = None  # type: ignore[assignment]  # compares by value, like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return (Arrays, (dict(self._columns),))

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {column.dtype}" for name, column in self.items())
        return f"Arrays({columns}; {self._n_records} records)"


class ArraysKind(Kind[Arrays]):
    """What can be done with `Arrays`."""

    name = "arrays"
    has_columns = True

    def length(self, batch: Arrays) -> int:
        """How many records."""
        return batch.n_records

    def n_bytes(self, batch: Arrays) -> int:
        """The bytes of all columns."""
        return sum(column.nbytes for _, column in batch.items())

    def schema(self, batch: Arrays) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """Names and dtypes of the columns."""
        return tuple((name, column.dtype) for name, column in batch.items())

    def records(self, batch: Arrays) -> Iterator[tuple[Any, ...]]:
        """The records as tuples."""
        return iter(batch)

    def slice(self, batch: Arrays, start: int, stop: int) -> Arrays:
        """A view of some records."""
        return Arrays({name: column[start:stop] for name, column in batch.items()})

    def concat(self, batches: Sequence[Arrays]) -> Arrays:
        """One batch of several."""
        names = batches[0].names
        return Arrays({name: np.concatenate([b[name] for b in batches]) for name in names})

    def names(self, batch: Arrays) -> list[str]:
        """The names of the columns."""
        return batch.names

    def column(self, batch: Arrays, chosen: Any, operator: str) -> Array:
        """A column, or what a function makes of the batch."""
        if is_expression(chosen):
            super().column(batch, chosen, operator)
        if callable(chosen):
            return np.asarray(checked_values(chosen(batch), len(batch), chosen))
        column_names(chosen, batch.names, f"{operator}: a batch of Arrays")
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

    def take(self, batch: Arrays, places: npt.NDArray[np.int64]) -> Arrays:
        """One gather per column."""
        return Arrays({name: column[places] for name, column in batch.items()})

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
        names = column_names(key, batch.names, "a batch of Arrays")
        if not names:
            return np.zeros(len(batch), np.uint64)
        return combine_columns([hash_array(batch[name]) for name in names])

    def split(self, batch: Arrays, numbers: Hashes, n_parts: int) -> list[Arrays]:
        """One gather per column, then views."""
        if n_parts == 1:
            return [batch]
        order, starts = partition(numbers, n_parts)
        ordered = Arrays({name: gather(column, order) for name, column in batch.items()})
        bounds = starts.tolist()
        return [self.slice(ordered, *span) for span in itertools.pairwise(bounds)]

    def encode(self, batch: Arrays) -> list[Buffer]:
        """A header, then the bytes of each column (objects are pickled)."""
        named = [(name, None if _is_objects(c) else c.dtype) for name, c in batch.items()]
        return [
            _N_RECORDS.pack(batch.n_records) + _packed(tuple(named)),
            *[_column_bytes(column) for _, column in batch.items()],
        ]

    def decode(self, buffers: Sequence[Buffer]) -> Arrays:
        """Columns that are views of `buffers`."""
        header = memoryview(buffers[0])
        (n_records,) = _N_RECORDS.unpack_from(header)
        columns = {}
        named = _unpacked(bytes(header[_N_RECORDS.size :]))
        for (name, dtype), buffer in zip(named, buffers[1:], strict=True):
            columns[name] = _column_of(buffer, dtype, n_records)
        return Arrays(columns)


def hash_array(values: Array) -> Hashes:
    """The stable hash of each item of a NumPy array, of objects and text too, uint64[n]."""
    if values.dtype.kind in "OSU":
        return hash_keys(values.tolist())
    return hash_column(values)


def _frozen(name: str, column: npt.ArrayLike) -> Array:
    array = np.asarray(column)
    if array.ndim != 1:
        raise ContainerError(
            f"column {name!r} has shape {array.shape}; a column is one-dimensional, "
            "one value per record"
        )
    view = array.view()
    view.flags.writeable = False
    return view


# Names and dtypes are those of the batch before, nearly always.
@functools.lru_cache(maxsize=256)
def _packed(named: _Named) -> bytes:
    return pickle.dumps(named, protocol=5)


@functools.lru_cache(maxsize=256)
def _unpacked(packed: bytes) -> _Named:
    named: _Named = pickle.loads(packed)
    return named


def _is_objects(column: Array) -> bool:
    return bool(column.dtype.hasobject)


def _column_bytes(column: Array) -> Buffer:
    if _is_objects(column):
        return dump_records(column.tolist())
    # Times have no buffer of their own in NumPy, hence the view of bytes.
    return np.ascontiguousarray(column).view(np.uint8).data if len(column) else b""


def _column_of(buffer: Buffer, dtype: np.dtype[Any] | None, n_records: int) -> Array:
    if dtype is None:
        column = np.empty(n_records, object)
        column[:] = pickle.loads(buffer)
        return column
    if not n_records:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, np.uint8).view(dtype)
