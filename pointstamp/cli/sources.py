"""Where edges come from: a file, standard input, or the import graph.

A source is a value that travels to whoever reads it. A `Reading` is one pass over
it, which keeps count: edges, vertices, names, and when it began and ended.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.cli.import_graph import import_graph
from pointstamp.errors import FileFormatError

Ints = npt.NDArray[np.int64]

COLUMNS = ("src", "dst")
_PIECE_RECORDS = 65_536


@dataclass
class Facts:
    """What is known of a graph once it has been read.

    Attributes
    ----------
    edges, vertices : int
    names : list of str, by vertex, where vertices have names
    n_files, n_skipped : source files read, and those that could not be parsed, where it
        was source files that were read
    notes : what was taken to mean something, where it could have meant something else
    began, ended : seconds of the machine's monotonic clock
    """

    edges: int = 0
    vertices: int = 0
    names: list[str] | None = None
    n_files: int = 0
    n_skipped: int = 0
    notes: list[str] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0


Told = Callable[[int], None]


class Source(Protocol):
    """Gives edges, as record batches of the int64 columns `src` and `dst`."""

    @property
    def title(self) -> str:
        """What to call it."""

    def batches(self, facts: Facts, told: Told) -> Iterator[Any]:
        """The edges; fills in the names and files of `facts` at the end.

        `told` is called with the number of source files read so far, where it is those.
        """


@dataclass(frozen=True)
class FileSource:
    """An edge list: a file, or `-` for standard input."""

    path: str

    @property
    def title(self) -> str:
        """What to call it."""
        return "standard input" if self.path == "-" else self.path

    def check(self) -> None:
        """Raise FileFormatError if there is no such file."""
        if self.path == "-" and sys.stdin is None:
            raise FileFormatError("standard input is closed; open it (< FILE), or name a file")
        if not self.path:
            raise FileFormatError("the name of the file of edges is empty; name one, or none")
        if self.path != "-" and not Path(self.path).exists():
            raise FileFormatError(f"{self.path}: there is no such file (looked from {Path.cwd()})")

    def batches(self, facts: Facts, told: Told) -> Iterator[Any]:
        """See `Source`."""
        # Arrow is imported here and not above: it takes a while, and --help needs none.
        from pointstamp.formats.edge_files import read_edges

        edges = read_edges(self.path, COLUMNS)
        yield from edges.batches()
        facts.names, facts.notes = edges.names, edges.notes


@dataclass(frozen=True)
class ImportSource:
    """Which module imports which; see `import_graph`."""

    folders: tuple[Path, ...] | None = None

    @property
    def title(self) -> str:
        """What to call it."""
        version = ".".join(map(str, sys.version_info[:3]))
        return f"the imports of Python {version} and the packages installed with it"

    def batches(self, facts: Facts, told: Told) -> Iterator[Any]:
        """See `Source`."""
        from pointstamp.containers import Arrays
        from pointstamp.containers.convert import to_arrow

        graph = import_graph(self.folders, told)
        for start in range(0, len(graph.sources), _PIECE_RECORDS):
            piece = slice(start, start + _PIECE_RECORDS)
            ends = (graph.sources[piece], graph.targets[piece])
            yield to_arrow(Arrays(dict(zip(COLUMNS, ends, strict=True))))
        facts.names, facts.n_files = graph.names, graph.n_files
        facts.n_skipped = graph.n_skipped


@contextlib.contextmanager
def at_hand(source: Source) -> Iterator[Source]:
    """A source that any process of this machine can read: standard input goes to a file."""
    if not isinstance(source, FileSource) or source.path != "-":
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="pointstamp-stdin-") as folder:
        path = Path(folder, "standard input")
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise FileFormatError(
                f"standard input: cannot be read, or not be kept in {folder}: {error.strerror}"
            ) from error
        yield FileSource(str(path))


@dataclass
class Reading:
    """One pass over a source; `facts` are complete when it is exhausted."""

    source: Source
    told: Told = lambda n: None
    facts: Facts = field(default_factory=Facts)

    def __iter__(self) -> Iterator[Any]:
        facts, vertices = self.facts, VertexSet()
        facts.began = time.monotonic()
        for batch in self.source.batches(facts, self.told):
            facts.edges += batch.num_rows
            for column in batch.columns:
                vertices.add(column.to_numpy())
            yield batch
        facts.vertices = vertices.count()
        facts.ended = time.monotonic()


class VertexSet:
    """Counts different integers, a batch at a time.

    Sorted pieces are merged when they are as large as what was merged before, so
    that each integer is sorted a logarithmic number of times.

    >>> vertices = VertexSet()
    >>> vertices.add(np.array([3, 1]))
    >>> vertices.add(np.array([1, 2]))
    >>> vertices.count()
    3
    """

    def __init__(self, merge_at: int = 1 << 20) -> None:
        self._merge_at = merge_at
        self._merged = np.empty(0, np.int64)
        self._pieces: list[Ints] = []
        self._n_waiting = 0

    def add(self, vertices: Ints) -> None:
        """Take some integers, int64[n] in any order."""
        piece = np.unique(vertices)
        self._pieces.append(piece)
        self._n_waiting += len(piece)
        if self._n_waiting > max(len(self._merged), self._merge_at):
            self._merge()

    def count(self) -> int:
        """How many different ones there were."""
        self._merge()
        return len(self._merged)

    def _merge(self) -> None:
        self._merged = np.unique(np.concatenate([self._merged, *self._pieces]))
        self._pieces, self._n_waiting = [], 0
