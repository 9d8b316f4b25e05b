"""A table of columns: integers as keys, and numbers for each, in arrays.

What operators on columns keep: a row for each key, found for a whole batch at once, and
the numbers of all rows side by side. Kernels and NumPy change them in place, and say which
rows they changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.checkpoint.bins import N_BINS, is_for
from pointstamp.checkpoint.deltas import BinDelta, TableDelta
from pointstamp.checkpoint.keyed_state import MOST_MORE
from pointstamp.errors import BuildError, ColumnError
from pointstamp.kernels.hash_join import add_values, find_values, no_values
from pointstamp.kernels.hashing import hash_ints
from pointstamp.kernels.key_tables import with_room
from pointstamp.kernels.lists import distinct
from pointstamp.kernels.partition import partition
from pointstamp.kernels.permute import gather

Ints = npt.NDArray[np.int64]


class KeyedColumns:
    """Numbers by key, in columns, whose changes are known.

    Parameters
    ----------
    columns : mapping of str to str
        The dtype of each column by name. The first is the key, int64; the others are of
        numbers of any width.

    Notes
    -----
    Keys are not taken away. A delta costs a pass over one byte for each row, and a gather of
    the rows that have changed; now and then, of all: so what is stored is at most about one
    and a half times what is kept.

    >>> counts = KeyedColumns({"word": "int64", "n": "int64"})
    >>> rows = counts.rows(np.array([7, 9, 7]))
    >>> np.add.at(counts["n"], rows, 1)
    >>> counts.touch(rows)
    >>> counts["word"].tolist(), counts["n"].tolist()
    ([7, 9], [2, 1])
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        names = list(columns)
        dtypes = [np.dtype(columns[name]) for name in names]
        if not names or dtypes[0] != np.int64 or any(dtype.kind not in "iuf" for dtype in dtypes):
            raise BuildError(
                "a table of columns has a key, int64, and then columns of numbers; found "
                f"{dict(columns)}"
            )
        self.kind = "columns " + ", ".join(
            f"{name}: {dtype}" for name, dtype in zip(names, dtypes, strict=True)
        )
        self._columns: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(0, dtype) for name, dtype in zip(names, dtypes, strict=True)
        }
        self._key = names[0]
        self._rows = no_values()
        self._n = 0
        self._is_changed = np.zeros(0, np.bool_)
        self._n_more = 0
        self._is_anew = True

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column of all rows, [n], to be changed in place until the next call of `rows`."""
        if name not in self._columns:
            raise ColumnError(f"a table has no column {name!r}; there are {list(self._columns)}")
        return self._columns[name][: self._n]

    def rows(self, keys: Ints) -> Ints:
        """The row of each key, int64[m]; of a key that is new, another one of zeros.

        Parameters
        ----------
        keys : int64[m], with repetitions
        """
        places, rows = find_values(self._rows, keys)
        if len(rows) < len(keys):
            is_new = np.ones(len(keys), np.bool_)
            is_new[places] = False
            new = distinct(keys[is_new])
            if len(new) == len(keys):  # each is new, and comes once, as when it is restored
                self._add(keys)
                return np.arange(self._n - len(keys), self._n)
            self._add(new)
            _, rows = find_values(self._rows, keys)
        return rows.astype(np.int64)

    def touch(self, rows: Ints) -> None:
        """Say that what is in `rows` has changed."""
        self._is_changed[rows] = True

    def _add(self, keys: Ints) -> None:
        first, self._n = self._n, self._n + len(keys)
        self._rows = add_values(self._rows, keys, np.arange(first, self._n))
        for name, column in self._columns.items():
            larger = with_room(column, first, len(keys))
            larger[first : self._n] = keys if name == self._key else 0
            self._columns[name] = larger
        self._is_changed = with_room(self._is_changed, first, len(keys))
        self._is_changed[first : self._n] = True

    def begin_anew(self) -> None:
        """See `tables.Table`."""
        self._is_anew = True

    def take_delta(self) -> TableDelta:
        """See `tables.Table`."""
        changed = np.flatnonzero(self._is_changed[: self._n])
        n_more = self._n_more + len(changed)
        is_whole = self._is_anew or n_more * MOST_MORE > self._n
        self._n_more = 0 if is_whole else n_more
        self._is_changed[: self._n] = False
        self._is_anew = False
        rows = np.arange(self._n) if is_whole else changed
        return TableDelta(self.kind, self._binned(rows, is_whole), is_whole)

    def _binned(self, rows: Ints, is_whole: bool) -> dict[int, BinDelta]:
        # Here and not above: programs whose tables are not stored do without Arrow.
        import pyarrow as pa

        from pointstamp.containers.convert import arrow_array

        order, starts = partition(hash_ints(gather(self[self._key], rows)), N_BINS)
        chosen = gather(rows, order)
        columns = [arrow_array(gather(self[name], chosen)) for name in self._columns]
        whole = pa.RecordBatch.from_arrays(columns, names=list(self._columns))
        return {
            bin: BinDelta(whole.slice(starts[bin], starts[bin + 1] - starts[bin]), is_whole)
            for bin in range(N_BINS)
            if starts[bin] < starts[bin + 1]
        }

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """See `tables.Table`."""
        from pointstamp.containers.convert import numbers

        n_stored = 0
        for batch in batches:
            keys = numbers(batch.column(0))
            ours = np.flatnonzero(is_for(hash_ints(keys), index, peers))
            rows = self.rows(gather(keys, ours))
            n_stored += len(rows)
            for name, column in zip(list(self._columns)[1:], batch.columns[1:], strict=True):
                self[name][rows] = gather(numbers(column), ours)
        self._is_changed[: self._n] = False
        self._n_more = n_stored - self._n
        self._is_anew = False
