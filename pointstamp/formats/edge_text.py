"""Edge lists as text: which form a text has, and the edges of a piece of it.

What people call an edge list: SNAP's files (`#` comments, tabs or spaces), CSV
and TSV with or without a header, Matrix Market coordinates (`%` comments, a line
of sizes). The first lines show the form; then each piece goes to Arrow's CSV
reader whole, cleaned by regular expressions only where it needs it. When Arrow
refuses a piece, we read that piece again line by line, which names the line that is wrong: one
with a field that is no vertex, or with another number of fields than the lines before it.

*Rules.* A line whose first character is `#` or `%` is a comment, blank lines are
nothing. Vertices are integers from 0 to 2**63 - 1, or else names, for the whole
file. Where a Matrix Market file says that its matrix is symmetric (skew-symmetric,
Hermitian), it lists each entry off the diagonal once for two: both are edges. Its line of
sizes has to agree with what follows. A header may say where the vertices are ("id,source,target");
else they are the first two fields. A first line of two names before lines of integers is
a header, whatever the names; where they are none that headers have, the form says so, so
that no edge is lost unawares. Knows nothing of files: pieces of bytes in, arrays out.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from pointstamp.errors import FileFormatError
from pointstamp.formats.vertices import RANGE

# The source and target vertices of some edges: two int64 or two string arrays of
# one length. Any, since the stubs give each type of array a class of its own.
Ends = tuple[Any, Any]

_N_SAMPLE = 100
_GREATEST = (1 << 63) - 1

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_COMMENTS = re.compile(rb"^[ \t]*[#%].*\n?", re.MULTILINE)
_BLANKS = re.compile(rb"  +")
_EDGE_BLANKS = re.compile(rb"^ | $", re.MULTILINE)

# What headers call the two ends of an edge, where the words say which one is the source.
_HEADER_PAIRS = tuple(
    tuple(pair.split("/"))
    for pair in """
    src/dst source/target source/destination source/dest origin/destination from/to start/end
    source_id/target_id fromnodeid/tonodeid from_node/to_node from_id/to_id id1/id2
    node1/node2 node_1/node_2 u/v
    """.split()  # noqa: SIM905 - a list of words is read more easily without quotes
)

# What the header of a file of names may call its ends.
_HEADER_WORDS = frozenset(["head", "tail", *(word for pair in _HEADER_PAIRS for word in pair)])


_BANNER = b"%%matrixmarket"

# What a Matrix Market file that has only one triangle of its matrix is called.
_SYMMETRIES = frozenset({b"symmetric", b"skew-symmetric", b"hermitian"})


@dataclass(frozen=True)
class Matrix:
    """The line of sizes of a Matrix Market file, and whether it lists one triangle alone."""

    n_rows: int
    n_columns: int
    n_entries: int
    mirrored: bool


@dataclass(frozen=True)
class Form:
    """How a text writes its edges."""

    delimiter: str
    """One character; a space stands for any run of spaces and tabs."""
    named: bool
    """Whether vertices are names rather than integers."""
    positions: tuple[int, int]
    """The fields that hold the two vertices."""
    n_skipped: int
    """How many lines at the start of the piece are no data: a header, sizes."""
    n_fields: int
    """How many fields each line has."""
    matrix: Matrix | None = None
    """What a Matrix Market file says of itself."""
    odd_header: str | None = None
    """The header, where only the integers after it made us take it for one."""


@dataclass(frozen=True)
class TextLine:
    """A line of data: its index in the piece, and its fields."""

    index: int
    fields: list[bytes]


def detect(piece: bytes, columns: tuple[str, str], where: str, first_line: int) -> Form | None:
    """The form of a text, from whole lines at its start; None if they hold no data.

    Parameters
    ----------
    piece : whole lines
    columns : the two columns to read where a header has both; else those that it calls by names
        such as "source" and "target", or the first two
    where, first_line : name of the text and number of its line at the start, for errors

    Raises
    ------
    FileFormatError
        If this is no edge list: bytes that are no text, JSON, one column, prose.
    """
    if b"\0" in piece:
        raise FileFormatError(
            f"{where}: this is no text (it has zero bytes); edge lists are read as UTF-8 text, "
            "plain or .gz, or as Parquet"
        )
    lines = _sample(piece)
    matrix = _matrix_of(piece, lines, where, first_line)
    n_skipped = 0
    if matrix is not None:
        n_skipped = lines.pop(0).index + 1
    if not lines:
        return None
    if _is_json(lines[0].fields[0]):
        raise FileFormatError(
            f"{where}: line {first_line + lines[0].index}: this is JSON, "
            f"{_shown(lines[0].fields[0])}; edge lists are read as text with two vertices in each "
            "line, or as Parquet: write it as one of these (pyarrow.json.read_json reads lines of "
            "JSON as a table)"
        )
    delimiter = _delimiter_of(
        [line.fields[0] for line in lines], where, first_line + lines[0].index
    )
    rows = [TextLine(line.index, _fields_of(line.fields[0], delimiter)) for line in lines]
    positions, header = _header_of(rows, columns)
    data = rows if header is None else rows[1:]
    if header is not None:
        n_skipped = rows[0].index + 1
    n_integers = sum(_are_integers(row.fields, positions) for row in data)
    named = bool(data) and 2 * n_integers < len(data)
    if named:
        _check_even(data, where, first_line)
    odd_header = None if header is None or _is_usual(header, columns) else delimiter.join(header)
    n_fields = len((data or rows)[0].fields)
    return Form(delimiter, named, positions, n_skipped, n_fields, matrix, odd_header)


def check_empty(piece: bytes, where: str) -> None:
    """Raise FileFormatError if a text without edges says that it has some."""
    if piece[: len(_BANNER)].lower() != _BANNER:
        return
    matrix = _matrix_of(piece, _sample(piece), where, 1)
    if matrix is None:
        raise FileFormatError(
            f"{where}: a Matrix Market file needs a line of sizes, 'rows columns entries', and "
            "this one ends without"
        )
    check_complete(matrix, 0, where)


def check_complete(matrix: Matrix, n_entries: int, where: str) -> None:
    """Raise FileFormatError if a matrix holds another number of entries than it says."""
    if n_entries != matrix.n_entries:
        raise FileFormatError(
            f"{where}: its line of sizes says {matrix.n_entries} entries, but it holds "
            f"{n_entries}: cut off, or put together wrongly"
        )


def parse(piece: bytes, form: Form, where: str, first_line: int) -> Ends:
    """The ends of the edges in whole lines of a text, int64 or string.

    Raises
    ------
    FileFormatError
        For a line that is no edge of this form, with its number.
    """
    cleaned = _cleaned(piece, form)
    if not cleaned.strip():
        empty = pa.array([], pa.string() if form.named else pa.int64())
        return empty, empty
    first = cleaned.lstrip(b"\n").partition(b"\n")[0]
    if len(_fields_of(first, form.delimiter)) != form.n_fields:
        return _parse_lines(piece, form, where, first_line)
    try:
        ends = _parse_whole(cleaned, form)  # refuses lines with other numbers of fields
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return _parse_lines(piece, form, where, first_line)
    return ends if _are_valid(ends, form) else _parse_lines(piece, form, where, first_line)


def with_mirrored(ends: Ends) -> Ends:
    """The edges, and after them those back; a loop is its own."""
    src, dst = ends
    proper = pc.not_equal(src, dst)
    return pa.concat_arrays([src, dst.filter(proper)]), pa.concat_arrays([dst, src.filter(proper)])


def _sample(piece: bytes) -> list[TextLine]:
    """The first lines that are not blank and no comment, in one field."""
    found = []
    for index, line in _data_lines(piece):
        found.append(TextLine(index, [line]))
        if len(found) == _N_SAMPLE:
            break
    return found


def _data_lines(piece: bytes) -> Iterator[tuple[int, bytes]]:
    start = index = 0
    while start < len(piece):
        stop = piece.find(b"\n", start)
        stop = len(piece) if stop < 0 else stop
        line = piece[start:stop].strip(b" \r")
        if line.strip() and line.lstrip()[:1] not in (b"#", b"%"):
            yield index, line
        start, index = stop + 1, index + 1


def _matrix_of(
    piece: bytes, lines: Sequence[TextLine], where: str, first_line: int
) -> Matrix | None:
    """What a Matrix Market file says of itself; None of another text."""
    banner = piece.partition(b"\n")[0].lower().split()
    if not banner or banner[0] != _BANNER:
        return None
    if b"coordinate" not in banner:
        raise FileFormatError(
            f"{where}: line 1: a Matrix Market file of edges is of format 'coordinate', "
            f"found {b' '.join(banner[1:]).decode(errors='replace')!r}"
        )
    if not lines:
        return None  # the line of sizes is still to come
    sizes = lines[0].fields[0].split()
    if len(sizes) != 3 or not all(size.isdigit() for size in sizes):
        raise FileFormatError(
            f"{where}: line {first_line + lines[0].index}: a Matrix Market file needs a line of "
            f"sizes, 'rows columns entries', before its entries, found {_shown(lines[0].fields[0])}"
        )
    n_rows, n_columns, n_entries = map(int, sizes)
    return Matrix(n_rows, n_columns, n_entries, not _SYMMETRIES.isdisjoint(banner))


def _delimiter_of(lines: Sequence[bytes], where: str, line_number: int) -> str:
    """The delimiter that most lines have; of those with as many, the strictest."""
    counts = {char: sum(char.encode() in line for line in lines) for char in (",", ";", "\t")}
    counts[" "] = sum(len(line.split()) > 1 for line in lines)
    best = max(counts, key=lambda char: counts[char])
    if not counts[best]:
        found = lines[0].decode(errors="replace")[:60]
        raise FileFormatError(
            f"{where}: line {line_number}: one column, {found!r}, where an edge needs two "
            "vertices, separated by a space, tab, comma or semicolon"
        )
    if best == "\t" and 2 * sum(_are_integers(line.split(), (0, 1)) for line in lines) >= len(
        lines
    ):
        # Integers hold no spaces, so runs and mixtures of blanks can be allowed.
        return " "
    return best


def _is_json(line: bytes) -> bool:
    """Whether a line is an object of JSON, alone or as the first of an array."""
    try:
        return isinstance(json.loads(line.strip().removeprefix(b"[").strip(b" ,]")), dict)
    except (ValueError, RecursionError):  # what is nested so deeply is no edge either
        return False


def _fields_of(line: bytes, delimiter: str) -> list[bytes]:
    if delimiter == " ":
        return line.split()
    if b'"' in line:
        text = line.decode("utf-8", "surrogateescape")
        fields = next(csv.reader([text], delimiter=delimiter), [])
        return [field.strip().encode("utf-8", "surrogateescape") for field in fields]
    return [field.strip() for field in line.split(delimiter.encode())]


def _are_integers(fields: Sequence[bytes], positions: tuple[int, int]) -> bool:
    if len(fields) <= max(positions):
        return False
    return all(_INTEGER.fullmatch(fields[at]) is not None for at in positions)


def _header_of(
    rows: Sequence[TextLine], columns: tuple[str, str]
) -> tuple[tuple[int, int], list[str] | None]:
    """The positions of the two ends; the fields of the first row, if it is a header."""
    first = [field.decode(errors="replace") for field in rows[0].fields]
    if (named := named_ends(first, columns)) is not None:
        return named, first
    positions = (0, 1)
    if _are_integers(rows[0].fields, positions):
        return positions, None
    n_integers = sum(_are_integers(row.fields, positions) for row in rows[1:])
    no_integer = not any(_INTEGER.fullmatch(field) for field in rows[0].fields[:2])
    before_integers = no_integer and 0 < len(rows) - 1 <= 2 * n_integers
    return positions, first if _is_usual(first, columns) or before_integers else None


def named_ends(header: Sequence[str], columns: tuple[str, str]) -> tuple[int, int] | None:
    """The places of the two ends by their names; None where these do not say which they are.

    header : the names of all columns
    columns : two names that come first, before what people call the ends of edges
    """
    if all(name in header for name in columns):
        return header.index(columns[0]), header.index(columns[1])
    words = [name.lower() for name in header]
    found = [(a, b) for a, b in _HEADER_PAIRS if words.count(a) == words.count(b) == 1]
    # Of several pairs each could be the one that is meant.
    return (words.index(found[0][0]), words.index(found[0][1])) if len(found) == 1 else None


def _is_usual(header: Sequence[str], columns: tuple[str, str]) -> bool:
    """Whether a line calls two columns what people call the ends of edges."""
    if named_ends(header, columns) is not None:
        return True
    return len(header) > 1 and all(word.lower() in _HEADER_WORDS for word in header[:2])


def _check_even(rows: Sequence[TextLine], where: str, first_line: int) -> None:
    """Refuse prose: in a list of named vertices, all lines have as many fields."""
    expected = len(rows[0].fields)
    for row in rows:
        if len(row.fields) != expected:
            raise FileFormatError(
                f"{where}: line {first_line + row.index}: {len(row.fields)} fields where line "
                f"{first_line + rows[0].index} has {expected}; this does not look like an edge "
                "list (two vertices per line, then what you like)"
            )


def _cleaned(piece: bytes, form: Form) -> bytes:
    """The piece as strict delimited text; the same bytes where it is already."""
    if b"#" in piece or b"%" in piece:
        piece = _COMMENTS.sub(b"", piece)
    if form.delimiter != " ":
        return piece
    if b"\t" in piece:
        piece = piece.replace(b"\t", b" ")
    if b"  " in piece or b"\n " in piece or b" \n" in piece or _is_blank_at_ends(piece):
        piece = _EDGE_BLANKS.sub(b"", _BLANKS.sub(b" ", piece))
    return piece


def _is_blank_at_ends(piece: bytes) -> bool:
    return piece.startswith(b" ") or piece.endswith(b" ")


def _parse_whole(cleaned: bytes, form: Form) -> Ends:
    names = [f"f{at}" for at in form.positions]
    kind = pa.string() if form.named else pa.int64()
    text: Any = pa.BufferReader(cleaned)  # whose threads call no Python
    table = pa_csv.read_csv(
        text,
        read_options=pa_csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 24),
        parse_options=pa_csv.ParseOptions(
            delimiter=form.delimiter, quote_char=False if form.delimiter == " " else '"'
        ),
        convert_options=pa_csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, kind),
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    src, dst = (_one_array(table.column(name)) for name in names)
    if form.named and form.delimiter != " ":
        return pc.utf8_trim_whitespace(src), pc.utf8_trim_whitespace(dst)
    return src, dst


def _one_array(column: Any) -> Any:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _are_valid(ends: Ends, form: Form) -> bool:
    if form.named:
        return not any(pc.any(pc.equal(end, pa.scalar(""))).as_py() for end in ends)
    sizes, least = (_GREATEST, _GREATEST), 0
    if form.matrix is not None:
        sizes, least = (form.matrix.n_rows, form.matrix.n_columns), 1
    return all(
        least <= end.to_numpy().min() and end.to_numpy().max() <= size
        for end, size in zip(ends, sizes, strict=True)
    )


def _parse_lines(piece: bytes, form: Form, where: str, first_line: int) -> Ends:
    read = _name_in if form.named else _integer_in
    ends: list[list[Any]] = [[], []]
    for index, line in _data_lines(piece):
        at = f"{where}: line {first_line + index}"
        fields = _fields_of(line, form.delimiter)
        if len(fields) <= max(form.positions):
            raise FileFormatError(
                f"{at}: {len(fields)} column(s), {_shown(line)}, where an edge needs two vertices, "
                f"in columns {form.positions[0] + 1} and {form.positions[1] + 1}"
            )
        # Where blanks separate, a field that is left empty between tabs counts all the same.
        if form.n_fields not in (len(fields), len(line.split(b"\t"))):
            raise FileFormatError(
                f"{at}: {len(fields)} fields, {_shown(line)}, where the lines before it have "
                f"{form.n_fields}; write what belongs to an edge in each line, or in none"
            )
        for end, position in zip(ends, form.positions, strict=True):
            end.append(_read(read, fields[position], at))
        if form.matrix is not None:
            _check_entry(ends[0][-1], ends[1][-1], form.matrix, at)
    kind = pa.string() if form.named else pa.int64()
    return pa.array(ends[0], kind), pa.array(ends[1], kind)


def _check_entry(row: int, column: int, matrix: Matrix, at: str) -> None:
    if not (1 <= row <= matrix.n_rows and 1 <= column <= matrix.n_columns):
        raise FileFormatError(
            f"{at}: entry ({row}, {column}) is outside of the matrix, which by its line of sizes "
            f"has rows 1 to {matrix.n_rows} and columns 1 to {matrix.n_columns}"
        )


def _read(read: Callable[[bytes], Any], field: bytes, at: str) -> Any:
    try:
        return read(field)
    except ValueError as error:
        raise FileFormatError(f"{at}: {_shown(field)} {error}") from None


def _integer_in(field: bytes) -> int:
    if not _INTEGER.fullmatch(field):
        raise ValueError(
            "is no integer, but vertices of this file are (its first lines say so); "
            "write all vertices as integers, or none"
        )
    value = int(field)
    if value < 0:
        raise ValueError("is negative; " + RANGE)
    if value > _GREATEST:
        raise ValueError("is too large; " + RANGE)
    return value


def _name_in(field: bytes) -> str:
    if not field:
        raise ValueError("is no name of a vertex: it is empty")
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8 text; convert the file (iconv -t utf-8)") from None


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
