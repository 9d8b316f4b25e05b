"""Edge lists from files, as record batches of two int64 columns.

Text (see `edge_text.py`), gzipped text and Parquet are recognized by their first
bytes, not their names, so that standard input works too; only what is named `.parquet`
and is something else is refused. A directory is read as its files in the order of their
names: what Spark writes. Files are streamed, a mebibyte at a time; only Parquet on
standard input is held whole, since its index is at the end.

Where vertices are names, each gets the next integer when it first appears, and
`Edges.names` gives the names back.

Several readers can share the work: `batches(index, readers)` are the edges of one of them. All
look at how each file begins, so that all agree on which reads what.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pointstamp.errors import FileFormatError
from pointstamp.formats import edge_text
from pointstamp.formats.edge_text import Ends, Form
from pointstamp.formats.kept_input import called
from pointstamp.formats.vertices import as_vertices

Source = str | os.PathLike[str] | BinaryIO

_PIECE_BYTES = 1 << 20
_LONGEST_LINE = 1 << 24
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class _Share:
    """What one of several readers reads of a file."""

    index: int
    readers: int

    def of(self, start: int, stop: int) -> tuple[int, int]:
        """Its part of a range; the parts of all readers follow each other."""
        length = stop - start
        begin, end = (-(-length * k // self.readers) for k in (self.index, self.index + 1))
        return start + begin, start + end

    def turned(self, number: int) -> _Share:
        """The same for the file of this number, so that each file begins with another reader."""
        return _Share((self.index - number) % self.readers, self.readers)


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

    def batches(self, index: int = 0, readers: int = 1) -> Iterator[pa.RecordBatch]:
        r"""Read the file from its start: batches of at most `batch_rows` edges, none empty.

        Standard input and open files can be read once.

        Parameters
        ----------
        index, readers
            Which reader of how many this is. Together they give each edge once: of plain text,
            each a range of lines, of Parquet some row groups, of a directory some of the files.
            What can only be read from its start to its end is for one of them; and it is the
            first one that reads names, and what is no regular file.

        Raises
        ------
        FileFormatError
            When the file turns out not to hold edges, with the line or row.

        >>> edges = read_edges(io.BytesIO(b"1 2\n2 3\n"))
        >>> sum(batch.num_rows for k in range(2) for batch in edges.batches(k, 2))
        2
        """
        if not 0 <= index < readers:
            raise FileFormatError(f"there is no reader {index} of {readers}; they count from 0")
        self.n_edges = 0
        self.notes = []
        for number, (where, source) in enumerate(self._files):
            if index and _size_of(source) is None:
                continue
            share = _Share(index, readers).turned(number)
            read = _Reading(where, self.columns, self._batch_rows, index == 0, share, self.notes)
            for ends in read.ends_in(source):
                yield from self._batched(ends, where)

    def _batched(self, ends: Ends, where: str) -> Iterator[pa.RecordBatch]:
        self._check_kind(ends, where)
        if not len(ends[0]):
            return
        whole = pa.RecordBatch.from_arrays(list(self._numbered(ends)), list(self.columns))
        for start in range(0, whole.num_rows, self._batch_rows):
            batch = whole.slice(start, self._batch_rows)
            self.n_edges += batch.num_rows
            yield batch

    def _check_kind(self, ends: Ends, where: str) -> None:
        """Check that all files have names, or none, in whichever reader."""
        named = not pa.types.is_integer(ends[0].type)
        if self._named not in (None, named):
            raise FileFormatError(
                f"{where}: vertices are {'names' if named else 'integers'} here, but "
                f"{'integers' if named else 'names'} in the files before it"
            )
        self._named = named

    def _numbered(self, ends: Ends) -> Ends:
        """The ends as integers: as they are, or by the names' order of appearance."""
        if not self._named:
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
        file names columns and has both. Otherwise those are that it calls by one pair of usual
        names (source and target, from and to, u and v, and the like, in any case), or the first
        two; others are ignored.
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
        return [(called(path), path)]
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    if not files:
        raise FileFormatError(f"{path}: a directory without files (hidden ones do not count)")
    return [(str(file), file) for file in files]


@dataclass(frozen=True)
class _Reading:
    """One reader's pass over one file."""

    where: str
    columns: tuple[str, str]
    batch_rows: int
    is_first: bool
    """Whether this is the reader that reads names."""
    share: _Share
    notes: list[str]

    def ends_in(self, source: Source) -> Iterator[Ends]:
        """The ends of this reader's edges; at times none, which say of what kind they are."""
        where = self.where
        try:
            with _opened(source) as file:
                start = file.peek(len(_PARQUET))
                _check_named_as(start, where)
                if start.startswith(_PARQUET):
                    yield from self._ends_in_parquet(_seekable(file, source))
                elif start.startswith(_GZIP):
                    with gzip.GzipFile(fileobj=file) as unzipped:
                        yield from self._ends_in_text(cast("BinaryIO", unzipped), None)
                else:
                    yield from self._ends_in_text(cast("BinaryIO", file), _size_of(source))
        except EOFError:
            raise FileFormatError(
                f"{where}: this gzip file is truncated: it ends before its end-of-stream mark; "
                "fetch or compress it again"
            ) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{where}: this gzip file is damaged: {error}") from error
        except OSError as error:
            raise FileFormatError(f"{where}: cannot be read: {error}") from error

    def _reads_alone(self, form_is_named: bool) -> bool:
        """Whether this is the one that reads what cannot be shared."""
        return self.is_first if form_is_named else self.share.index == 0

    # Text.

    def _ends_in_text(self, file: BinaryIO, size: int | None) -> Iterator[Ends]:
        """Of a text of `size` bytes; or of an unknown number."""
        pieces = _pieces(file, self.where)
        head, n_bytes = b"", 0  # comments, until the first line of data shows the form
        form: Form | None = None
        while form is None and (piece := next(pieces, None)) is not None:
            head += _with_newlines(piece if n_bytes else piece.removeprefix(_UTF8_MARK))
            n_bytes += len(piece)
            form = edge_text.detect(head, self.columns, self.where, 1)
        if form is None:
            edge_text.check_empty(head, self.where)
            return
        self.notes.extend(_notes_of(form, self.where))
        # Skipping by emptying the lines keeps the numbers of those that follow.
        head = _without_lines(head, form.n_skipped)
        in_turn = form.named or form.matrix is not None
        if not in_turn and size is not None and size - n_bytes >= _PIECE_BYTES:
            if self.share.index == 0:
                yield edge_text.parse(head, form, self.where, 1)
            yield from self._ends_in_range(file, form, *self.share.of(n_bytes, size))
        elif self._reads_alone(form.named):
            yield from self._ends_in_turn(chain([head], map(_with_newlines, pieces)), form)
        else:
            yield edge_text.parse(b"", form, self.where, 1)

    def _ends_in_turn(self, pieces: Iterator[bytes], form: Form) -> Iterator[Ends]:
        first_line, n_entries = 1, 0
        for piece in pieces:
            ends = edge_text.parse(piece, form, self.where, first_line)
            n_entries += len(ends[0])
            mirrored = form.matrix is not None and form.matrix.mirrored
            yield edge_text.with_mirrored(ends) if mirrored else ends
            first_line += piece.count(b"\n")
        if form.matrix is not None:
            edge_text.check_complete(form.matrix, n_entries, self.where)

    def _ends_in_range(self, file: BinaryIO, form: Form, start: int, stop: int) -> Iterator[Ends]:
        """Of the lines that begin in a range of bytes."""
        file.seek(start - 1)
        start += len(file.readline()) - 1
        for piece in _pieces(file, self.where, max(0, stop - start)):
            try:
                yield edge_text.parse(_with_newlines(piece), form, self.where, 0)
            except FileFormatError:
                file.seek(0)
                before = _pieces(file, self.where, start)
                first_line = 1 + sum(_with_newlines(lines).count(b"\n") for lines in before)
                edge_text.parse(_with_newlines(piece), form, self.where, first_line)
                raise
            start += len(piece)

    # Parquet.

    def _ends_in_parquet(self, file: Any) -> Iterator[Ends]:
        try:
            with pq.ParquetFile(file) as parquet:
                schema = parquet.schema_arrow
                names = _chosen_columns(schema, self.columns, self.where)
                if parquet.metadata.num_rows == 0:
                    return
                none = [pa.array([], schema.field(name).type) for name in names]
                kind = self._checked(none, names, 0)
                yield kind
                groups = self._groups(parquet, pa.types.is_string(kind[0].type))
                n_before = sum(parquet.metadata.row_group(n).num_rows for n in range(groups.start))
                for batch in parquet.iter_batches(
                    batch_size=self.batch_rows, row_groups=[*groups], columns=names
                ):
                    yield self._checked([batch.column(n) for n in names], names, n_before)
                    n_before += batch.num_rows
        except pa.ArrowException as error:
            raise FileFormatError(
                f"{self.where}: this Parquet file cannot be read: {error}"
            ) from error

    def _groups(self, parquet: pq.ParquetFile, named: bool) -> range:
        """The row groups of this reader."""
        n_groups = parquet.num_row_groups
        if named:
            return range(n_groups if self.is_first else 0)
        return range(*self.share.of(0, n_groups))

    def _checked(self, ends: list[Any], names: list[str], n_before: int) -> Ends:
        src, dst = (
            as_vertices(end, name, self.where, n_before)
            for end, name in zip(ends, names, strict=True)
        )
        if src.type != dst.type:
            raise FileFormatError(
                f"{self.where}: column {names[0]!r} holds {_said(src)} and {names[1]!r} "
                f"{_said(dst)}; write all vertices as integers, or none"
            )
        return src, dst


def _size_of(source: Source) -> int | None:
    """The bytes of a file that several can read at once, from where they like; else None."""
    if source == "-" or not isinstance(source, (str, os.PathLike)):
        return None
    path = Path(source)
    return path.stat().st_size if path.is_file() else None


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


def _check_named_as(start: bytes, where: str) -> None:
    """Raise if a file is called Parquet and does not begin as one does."""
    if not where.lower().endswith(".parquet") or start.startswith(_PARQUET):
        return
    if not start:
        raise FileFormatError(
            f"{where}: this Parquet file is empty, without even its index: what wrote it did not "
            "finish"
        )
    raise FileFormatError(
        f"{where}: a Parquet file was expected, which begins with {_PARQUET!r}; found "
        f"{start[: len(_PARQUET)]!r}: if it is text, name it so, such as .csv or .txt"
    )


# Text.


def _notes_of(form: Form, where: str) -> Iterator[str]:
    if form.odd_header is not None:
        yield (
            f"{where}: line {form.n_skipped}, {form.odd_header!r}, was taken for a header and not "
            "for an edge, since integers follow"
            + ("; the first two columns were read" if form.n_fields > 2 else "")
        )


def _pieces(file: BinaryIO, where: str, n_bytes: int | None = None) -> Iterator[bytes]:
    """Whole lines, about a mebibyte at a time, that end in a newline but for the last.

    Those that begin in the next `n_bytes`, or all there are.
    """
    rest = b""
    left = n_bytes
    while block := file.read(_PIECE_BYTES if left is None else min(_PIECE_BYTES, left)):
        if left is not None:
            left -= len(block)
            if not left and not block.endswith(b"\n"):
                block += file.readline(_LONGEST_LINE)
        lines, newline, after = block.rpartition(b"\n")
        if newline:
            yield rest + lines + newline
            rest = after
        else:
            rest += block
        if len(rest) > _LONGEST_LINE:
            raise FileFormatError(
                f"{where}: a line of more than {_LONGEST_LINE >> 20} MiB; this is no edge list"
            )
    if rest:
        yield rest


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


def _chosen_columns(schema: pa.Schema, columns: tuple[str, str], where: str) -> list[str]:
    places = edge_text.named_ends(schema.names, columns)
    chosen = schema.names[:2] if places is None else [schema.names[at] for at in places]
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
