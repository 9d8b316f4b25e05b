"""Edge lists from files, as record batches of two int64 columns.

Text (see `edge_text.py`), gzipped text and Parquet are recognized by their first
bytes, not their names, so that standard input works too. A directory is read as
its files in the order of their names: what Spark writes. Files are streamed, a
mebibyte at a time; only Parquet on standard input is held whole, since its index
is at the end.

Where vertices are names, each gets the next integer when it first appears, and
`Edges.names` gives the names back.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pointstamp.errors import FileFormatError
from pointstamp.formats import edge_text
from pointstamp.formats.edge_text import Ends, Form
from pointstamp.formats.vertices import as_vertices

Source = str | os.PathLike[str] | BinaryIO

_PIECE_BYTES = 1 << 20
_LONGEST_LINE = 1 << 24
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
_UTF8_MARK = b"\xef\xbb\xbf"


class Edges:
    """The edges of a file; made by `read_edges`.

    Attributes
    ----------
    columns : names of the two columns of each batch
    n_edges : how many edges the latest `batches()` has given so far
    notes : what was taken to mean something, where it could have meant something else
    """

    def __init__(self, source: Source, columns: tuple[str, str], batch_rows: int) -> None:
        self.source = source
        self.columns = columns
        self.n_edges = 0
        self.notes: list[str] = []
        self._batch_rows = batch_rows
        self._ids: dict[str, int] = {}
        self._named: bool | None = None
        self._files = _files_of(source)

    @property
    def names(self) -> list[str] | None:
        """The name of each vertex, by its number; None where vertices are integers.

        Of the batches that were read: complete when `batches()` is exhausted.
        """
        return list(self._ids) if self._named else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file from its start: batches of at most `batch_rows` edges, none empty.

        Standard input and open files can be read once.

        Raises
        ------
        FileFormatError
            When the file turns out not to hold edges, with the line or row.
        """
        self.n_edges = 0
        self.notes = []
        for where, source in self._files:
            for ends in _ends_in(source, where, self.columns, self._batch_rows, self.notes):
                yield from self._batched(ends, where)

    def _batched(self, ends: Ends, where: str) -> Iterator[pa.RecordBatch]:
        if not len(ends[0]):
            return
        whole = pa.RecordBatch.from_arrays(list(self._numbered(ends, where)), list(self.columns))
        for start in range(0, whole.num_rows, self._batch_rows):
            batch = whole.slice(start, self._batch_rows)
            self.n_edges += batch.num_rows
            yield batch

    def _numbered(self, ends: Ends, where: str) -> Ends:
        """The ends as integers: as they are, or by the names' order of appearance."""
        named = not pa.types.is_integer(ends[0].type)
        if self._named not in (None, named):
            raise FileFormatError(
                f"{where}: vertices are {'names' if named else 'integers'} here, but "
                f"{'integers' if named else 'names'} in the files before it"
            )
        self._named = named
        if not named:
            return ends
        n_edges = len(ends[0])
        in_turn = np.arange(2 * n_edges).reshape(2, n_edges).T.ravel()
        both = pa.concat_arrays(list(ends)).take(pa.array(in_turn)).dictionary_encode()
        known = self._ids
        ids = [known.setdefault(name, len(known)) for name in both.dictionary.to_pylist()]
        numbers = np.array(ids, np.int64)[both.indices.to_numpy()]
        return pa.array(numbers[0::2]), pa.array(numbers[1::2])


def read_edges(
    source: Source, columns: tuple[str, str] = ("src", "dst"), batch_rows: int = 65_536
) -> Edges:
    r"""The edges of a file, to be read with `.batches()`.

    Parameters
    ----------
    source
        A path, `-` for standard input, or a binary file: SNAP text, CSV, TSV, Matrix Market
        coordinates (where symmetric, with the edges back), each plain or gzipped, or Parquet;
        or a directory of such files.
    columns
        How the two columns of the batches are called; and which columns are read, where the
        file names columns and has both. Otherwise the first two are; others are ignored.
    batch_rows
        The most edges in a batch.

    Raises
    ------
    FileFormatError
        If there is no such file. What is wrong inside turns up in `batches()`.

    >>> edges = read_edges(io.BytesIO(b"# a triangle\nann bob\nbob cy\nann cy\n"))
    >>> [batch.to_pydict() for batch in edges.batches()]
    [{'src': [0, 1, 0], 'dst': [1, 2, 2]}]
    >>> edges.names, edges.n_edges
    (['ann', 'bob', 'cy'], 3)
    """
    first, second = columns
    if first == second or batch_rows < 1:
        raise FileFormatError(
            f"read_edges needs two different columns and batch_rows of at least 1, not "
            f"{columns!r} and {batch_rows}"
        )
    return Edges(source, (first, second), batch_rows)


def _files_of(source: Source) -> list[tuple[str, Source]]:
    """The files that a source means, each with what errors call it."""
    if source == "-":
        if sys.stdin is None:
            raise FileFormatError("standard input is closed; open it (< FILE), or name a file")
        return [("standard input", source)]
    if source == "":
        raise FileFormatError(
            "the name of the file of edges is empty; name one, or - for standard input"
        )
    if not isinstance(source, (str, os.PathLike)):
        return [(str(getattr(source, "name", "<file>")), source)]
    path = Path(source)
    if not path.exists():
        raise FileFormatError(f"{path}: there is no such file (looked from {Path.cwd()})")
    if not path.is_dir():
        return [(str(path), path)]
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    if not files:
        raise FileFormatError(f"{path}: a directory without files (hidden ones do not count)")
    return [(str(file), file) for file in files]


def _ends_in(
    source: Source, where: str, columns: tuple[str, str], batch_rows: int, notes: list[str]
) -> Iterator[Ends]:
    try:
        with _opened(source) as file:
            start = file.peek(len(_PARQUET))
            if not start and where.endswith(".parquet"):
                raise FileFormatError(
                    f"{where}: this Parquet file is empty, without even its index: what wrote it "
                    "did not finish"
                )
            if start.startswith(_PARQUET):
                yield from _ends_in_parquet(_seekable(file, source), where, columns, batch_rows)
            elif start.startswith(_GZIP):
                with gzip.GzipFile(fileobj=file) as unzipped:
                    yield from _ends_in_text(cast("BinaryIO", unzipped), where, columns, notes)
            else:
                yield from _ends_in_text(cast("BinaryIO", file), where, columns, notes)
    except EOFError:
        raise FileFormatError(
            f"{where}: this gzip file is truncated: it ends before its end-of-stream mark; "
            "fetch or compress it again"
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(f"{where}: this gzip file is damaged: {error}") from error
    except OSError as error:
        raise FileFormatError(f"{where}: cannot be read: {error}") from error


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[io.BufferedReader]:
    """The bytes of a source, which can be peeked at; what we did not open stays open."""
    if source == "-":
        source = sys.stdin.buffer
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as file:
            yield file
        return
    reader: io.BufferedReader = io.BufferedReader(cast("Any", source))
    try:
        yield reader
    finally:
        reader.detach()


def _seekable(file: io.BufferedReader, source: Source) -> Any:
    """What Arrow can jump around in: the file itself, or all its bytes."""
    if source != "-" and isinstance(source, (str, os.PathLike)):
        return pa.OSFile(os.fspath(source), "rb")
    return pa.BufferReader(file.read())


# Text.


def _ends_in_text(
    file: BinaryIO, where: str, columns: tuple[str, str], notes: list[str]
) -> Iterator[Ends]:
    form: Form | None = None
    first_line, n_entries = 1, 0
    before = b""  # comments, until the first line of data shows the form
    for piece in _pieces(file, where):
        if form is None:
            piece = before + piece
            form = edge_text.detect(piece, columns, where, first_line)
            if form is None:
                before = piece
                continue
            notes.extend(_notes_of(form, where))
            # Skipping by emptying the lines keeps the numbers of those that follow.
            piece = _without_lines(piece, form.n_skipped)
        ends = edge_text.parse(piece, form, where, first_line)
        n_entries += len(ends[0])
        mirrored = form.matrix is not None and form.matrix.mirrored
        yield edge_text.with_mirrored(ends) if mirrored else ends
        first_line += piece.count(b"\n")
    if form is None:
        edge_text.check_empty(before, where)
    elif form.matrix is not None:
        edge_text.check_complete(form.matrix, n_entries, where)


def _notes_of(form: Form, where: str) -> Iterator[str]:
    if form.odd_header is not None:
        yield (
            f"{where}: line {form.n_skipped}, {form.odd_header!r}, was taken for a header and not "
            "for an edge, since integers follow"
        )


def _pieces(file: BinaryIO, where: str) -> Iterator[bytes]:
    """Whole lines, about a mebibyte at a time, that end in a newline but for the last."""
    rest = b""
    at_start = True
    while block := file.read(_PIECE_BYTES):
        if at_start:
            block, at_start = block.removeprefix(_UTF8_MARK), False
        lines, newline, after = block.rpartition(b"\n")
        if newline:
            yield _with_newlines(rest + lines + newline)
            rest = after
        else:
            rest += block
        if len(rest) > _LONGEST_LINE:
            raise FileFormatError(
                f"{where}: a line of more than {_LONGEST_LINE >> 20} MiB; this is no edge list"
            )
    if rest:
        yield _with_newlines(rest)


def _with_newlines(piece: bytes) -> bytes:
    return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in piece else piece


def _without_lines(piece: bytes, n_lines: int) -> bytes:
    """The piece with its first lines made empty."""
    stop = 0
    for _ in range(n_lines):
        end = piece.find(b"\n", stop)
        stop = len(piece) if end < 0 else end + 1
    return b"\n" * n_lines + piece[stop:]


# Parquet.


def _ends_in_parquet(
    file: Any, where: str, columns: tuple[str, str], batch_rows: int
) -> Iterator[Ends]:
    try:
        with pq.ParquetFile(file) as parquet:
            names = _chosen_columns(parquet.schema_arrow, columns, where)
            n_before = 0
            for batch in parquet.iter_batches(batch_size=batch_rows, columns=names):
                src, dst = (as_vertices(batch.column(n), n, where, n_before) for n in names)
                if src.type != dst.type:
                    raise FileFormatError(
                        f"{where}: column {names[0]!r} holds {_said(src)} and {names[1]!r} "
                        f"{_said(dst)}; write all vertices as integers, or none"
                    )
                yield src, dst
                n_before += batch.num_rows
    except pa.ArrowException as error:
        raise FileFormatError(f"{where}: this Parquet file cannot be read: {error}") from error


def _chosen_columns(schema: pa.Schema, columns: tuple[str, str], where: str) -> list[str]:
    named = all(name in schema.names for name in columns)
    chosen = list(columns) if named else schema.names[:2]
    if len(chosen) < 2:
        raise FileFormatError(
            f"{where}: an edge needs two columns, but this Parquet file has {schema.names}"
        )
    for name in chosen:
        if schema.names.count(name) > 1:
            raise FileFormatError(
                f"{where}: which column {name!r} is an end of the edges? This Parquet file has "
                f"{schema.names}; give its columns different names"
            )
    return chosen


def _said(ends: Any) -> str:
    return "integers" if pa.types.is_integer(ends.type) else "names"
