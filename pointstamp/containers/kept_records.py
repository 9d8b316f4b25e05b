"""Records that are kept by number, as they come: one side of a join of columns.

Columns of fixed width grow at their end, each in an array with room, so that any records are
read with one look each. Where there are others, or nulls, batches are kept: two neighbours become
one when they are of about the same length, so that each record is moved a logarithmic number
of times; records are then taken from each batch, in the order of the batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.registry import kind_of
from pointstamp.kernels.key_tables import with_room
from pointstamp.kernels.permute import Places, gather

Ints = npt.NDArray[np.int64]
Plain = Mapping[str, npt.NDArray[Any]]


class KeptRecords:
    """Records of batches of one kind with columns; the first has the number 0.

    Parameters
    ----------
    batch
        The first.

    >>> from pointstamp.containers import Arrays
    >>> kept = KeptRecords(Arrays(a=[5, 6]))
    >>> kept.add(Arrays(a=[7]))
    >>> kept.take(np.array([2, 0]))
    (None, Arrays(a: int64; 2 records))
    """

    def __init__(self, batch: Any) -> None:
        self.container = type(batch)
        """The type of all batches."""
        self._kind = kind_of(batch)
        self._kept: _Columns | _Batches = _kept(self._kind, batch)

    def add(self, batch: Any) -> None:
        """Keep more, which get the next numbers."""
        if self._kept.add(batch):
            return
        # Columns of another type, or with nulls: those that there are become a batch like others.
        batches = _Batches(self._kind)
        for of in self._kept.batches():
            batches.add(of)
        batches.add(batch)
        self._kept = batches

    def has_plain(self, name: str) -> bool:
        """Whether the column is an array of signed integers, so that `take` can be spared it."""
        return self._kept.has_plain(name)

    def take(
        self, rows: Places, known: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> tuple[Ints | None, Any]:
        """The records of these numbers, int32[m] or int64[m], m > 0, and the order they come in.

        Parameters
        ----------
        known : mapping of str to array, optional
            Values of columns which `has_plain`, of just these records: integers of any width, so
            that they need not be read here and there.

        Returns
        -------
        (order, batch) : (int64[m] or None, container)
            The records `rows[order]`; None: `rows`.
        """
        return self._kept.take(rows, known or {})

    def batches(self) -> list[Any]:
        """All records, in the order of their numbers."""
        return self._kept.batches()


def _kept(kind: Any, batch: Any) -> _Columns | _Batches:
    plain = kind.plain_columns(batch)
    if plain is not None:
        return _Columns(kind, batch, plain)
    batches = _Batches(kind)
    batches.add(batch)
    return batches


class _Columns:
    """Columns of fixed width without nulls, with room."""

    def __init__(self, kind: Any, batch: Any, plain: Plain) -> None:
        self._kind = kind
        self._schema = kind.schema(batch)
        self._like = kind.take(batch, np.empty(0, np.int64))  # a slice would keep all of it
        self._columns = {name: np.empty(0, column.dtype) for name, column in plain.items()}
        self._of_name = dict(zip(kind.names(batch), plain, strict=True))
        """What `plain_columns` calls a column, which of Arrow's is not its name."""
        self._n = 0
        self.add(batch)

    def add(self, batch: Any) -> bool:
        """Keep a batch, and say whether that was possible."""
        if self._kind.schema(batch) != self._schema:
            return False
        plain = self._kind.plain_columns(batch)
        if plain is None:
            return False
        n_more = self._kind.length(batch)
        for name, column in plain.items():
            kept = with_room(self._columns[name], self._n, n_more)
            kept[self._n : self._n + n_more] = column
            self._columns[name] = kept
        self._n += n_more
        return True

    def has_plain(self, name: str) -> bool:
        """Of those of signed integers."""
        of = self._of_name.get(name)
        return of is not None and self._columns[of].dtype.kind == "i"

    def take(self, rows: Places, known: Plain) -> tuple[None, Any]:
        """In the same order."""
        n = self._n
        known = {self._of_name[name]: values for name, values in known.items()}
        taken = {
            name: known[name].astype(column.dtype, copy=False)
            if name in known
            else gather(column[:n], rows)
            for name, column in self._columns.items()
        }
        return None, self._kind.of_plain(taken, self._like)

    def batches(self) -> list[Any]:
        """One, whose columns are views."""
        columns = {name: column[: self._n] for name, column in self._columns.items()}
        return [self._kind.of_plain(columns, self._like)]


class _Batches:
    """Batches of any columns."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._batches: list[Any] = []
        self._begins: list[int] = []
        self._n = 0

    def add(self, batch: Any) -> bool:
        """Keep a batch, which is always possible."""
        kind, batches = self._kind, self._batches
        batches.append(batch)
        self._begins.append(self._n)
        self._n += kind.length(batch)
        while len(batches) > 1 and 2 * kind.length(batches[-1]) > kind.length(batches[-2]):
            last = batches.pop()
            self._begins.pop()
            batches[-1] = kind.concat([batches[-1], last])
        return True

    def has_plain(self, name: str) -> bool:
        """None."""
        return False

    def take(self, rows: Places, known: Plain) -> tuple[Ints | None, Any]:
        """From each batch after the other."""
        kind = self._kind
        if len(self._batches) == 1:
            return None, kind.take(self._batches[0], rows)
        places = np.searchsorted(self._begins, rows, side="right") - 1
        order = np.argsort(places, kind="stable")
        rows = rows[order]
        ends = np.searchsorted(places[order], np.arange(len(self._batches) + 1))
        parts = [
            kind.take(kept, rows[ends[i] : ends[i + 1]] - self._begins[i])
            for i, kept in enumerate(self._batches)
            if ends[i] < ends[i + 1]
        ]
        return order, kind.concat(parts)

    def batches(self) -> list[Any]:
        """As they were put together."""
        return self._batches
