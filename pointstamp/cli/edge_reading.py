"""Edges as the command line reads them: counted, and standard input kept in a file.

An `EdgeReading` is one pass over a file of edges, which keeps count: edges, vertices, names, and
when it began and ended.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import FileFormatError
from pointstamp.formats.edge_files import read_edges

Ints = npt.NDArray[np.int64]

COLUMNS = ("src", "dst")


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
    """Record batches of the int64 columns `src` and `dst`; `facts` are complete at the end."""

    path: str
    facts: Facts = field(default_factory=Facts)

    def __iter__(self) -> Iterator[Any]:
        facts, vertices = self.facts, VertexSet()
        facts.began = time.monotonic()
        edges = read_edges(self.path, COLUMNS)
        for batch in edges.batches():
            facts.edges += batch.num_rows
            for column in batch.columns:
                vertices.add(column.to_numpy())
            yield batch
        facts.names, facts.notes = edges.names, edges.notes
        facts.vertices = vertices.count()
        facts.ended = time.monotonic()


class VertexSet:
    """Counts different integers, a batch at a time.

    Sorted pieces are merged when they are about as large as each other, so that each integer is
    sorted a logarithmic number of times.

    >>> vertices = VertexSet()
    >>> vertices.add(np.array([3, 1]))
    >>> vertices.add(np.array([1, 2]))
    >>> vertices.count()
    3
    """

    def __init__(self) -> None:
        self._pieces: list[Ints] = [np.empty(0, np.int64)]

    def add(self, vertices: Ints) -> None:
        """Take some integers, int64[n] in any order."""
        piece = np.unique(vertices)
        while self._pieces and len(self._pieces[-1]) <= 2 * len(piece):
            piece = np.unique(np.concatenate([self._pieces.pop(), piece]))
        self._pieces.append(piece)

    def count(self) -> int:
        """How many different ones there were."""
        return len(np.unique(np.concatenate(self._pieces)))
