"""Edges as the command line reads them: counted, and standard input kept in a file.

An `EdgeReading` is one pass over a file of edges, or a reader's part of it, which keeps count:
edges, vertices, names, and when it began and ended.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import FileFormatError
from pointstamp.formats.edge_files import read_edges

Ints = npt.NDArray[np.int64]

COLUMNS = ("src", "dst")

_BYTES_A_VERTEX = 8
"""The marks of a set of vertices may have so many for each that was added."""


@dataclass
class Facts:
    """What is known of a graph once it has been read.

    Attributes
    ----------
    edges, vertices : int
    names : list of str, by vertex, where vertices have names
    notes : what was taken to mean something, where it could have meant something else
    began, ended : seconds of the machine's monotonic clock
    """

    edges: int = 0
    vertices: int = 0
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0


@contextlib.contextmanager
def at_hand(path: str) -> Iterator[str]:
    """A path that any process of this machine can read: standard input goes to a file."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="pointstamp-stdin-") as folder:
        kept = Path(folder, "standard input")
        try:
            with kept.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise FileFormatError(
                f"standard input: cannot be read, or not be kept in {folder}: {error.strerror}"
            ) from error
        yield str(kept)


@dataclass
class EdgeReading:
    """Record batches of the int64 columns `src` and `dst`; `facts` are complete at the end.

    Of several readers, the facts are of what this one read; `vertices` are the different ones.
    """

    path: str
    index: int = 0
    readers: int = 1
    facts: Facts = field(default_factory=Facts)
    vertices: VertexSet = field(default_factory=lambda: VertexSet())

    def __iter__(self) -> Iterator[Any]:
        facts = self.facts
        facts.began = time.monotonic()
        edges = read_edges(self.path, COLUMNS)
        for batch in edges.batches(self.index, self.readers):
            facts.edges += batch.num_rows
            for column in batch.columns:
                self.vertices.add(column.to_numpy())
            yield batch
        facts.names, facts.notes = edges.names, edges.notes
        facts.vertices = self.vertices.count()
        facts.ended = time.monotonic()


def together(facts: Sequence[Facts]) -> Facts:
    """What several readers know of one graph, of which each knows other vertices."""
    first = facts[0]
    return Facts(
        sum(of.edges for of in facts),
        sum(of.vertices for of in facts),
        first.names,
        first.notes,
        max(of.began for of in facts),
        max(of.ended for of in facts),
    )


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
