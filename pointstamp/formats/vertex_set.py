"""A set of vertices, collected as edges are read: which there are, and how many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_BYTES_A_VERTEX = 8
"""The marks of a set of vertices may have so many for each that was added."""


class VertexSet:
    """Different integers, collected a batch at a time.

    Marked in an array as long as it is no larger than they are; those of a wider range are in
    sorted pieces, which are merged when they are about as large as each other, so that each
    integer is sorted a logarithmic number of times.

    >>> vertices = VertexSet()
    >>> vertices.add(np.array([3, 1]))
    >>> vertices.add(np.array([1, 2]))
    >>> vertices.sorted(), vertices.count()
    (array([1, 2, 3]), 3)
    """

    def __init__(self) -> None:
        self._marks: npt.NDArray[np.bool_] | None = np.zeros(1 << 16, np.bool_)
        self._pieces: list[Ints] = []
        self._n_added = 0

    def adding(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same record batches, of columns of vertices, all of which are added."""
        for batch in batches:
            for column in batch.columns:
                self.add(column.to_numpy())
            yield batch

    def add(self, vertices: Ints) -> None:
        """Take some integers from 0, int64[n] in any order."""
        if not len(vertices):
            return
        self._n_added += len(vertices)
        if self._marks is not None and self._has_room(int(vertices.max())):
            self._marks[vertices] = True
            return
        piece = np.unique(vertices)
        while self._pieces and len(self._pieces[-1]) <= 2 * len(piece):
            piece = np.unique(np.concatenate([self._pieces.pop(), piece]))
        self._pieces.append(piece)

    def _has_room(self, greatest: int) -> bool:
        """Whether the marks reach so far, or can; if not, what they mark becomes a piece."""
        marks = self._marks
        assert marks is not None
        if greatest < len(marks):
            return True
        if greatest < _BYTES_A_VERTEX * self._n_added:
            self._marks = np.zeros(2 * greatest, np.bool_)
            self._marks[: len(marks)] = marks
            return True
        self._pieces, self._marks = [np.flatnonzero(marks)], None
        return False

    def sorted(self) -> Ints:
        """All of them, int64[n]."""
        if self._marks is not None:
            return np.flatnonzero(self._marks)
        return np.unique(np.concatenate(self._pieces))

    def count(self) -> int:
        """How many there are."""
        if self._marks is not None:
            return int(np.count_nonzero(self._marks))
        return len(self.sorted())
