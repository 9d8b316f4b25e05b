"""Edge lists of every form give the same edges; what is none says where and why."""

from __future__ import annotations

import gzip
import io
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import FileFormatError
from pointstamp.formats import edge_files
from pointstamp.formats.edge_files import read_edges

EDGES = [(1, 2), (2, 3), (1, 3)]

FORMS = {
    "spaces": b"1 2\n2 3\n1 3\n",
    "tabs": b"1\t2\n2\t3\n1\t3\n",
    "snap": b"# Directed graph: x.txt \n# FromNodeId\tToNodeId\n1\t2\n2\t3\n1\t3\n",
    "percent comments": b"% sym\n1 2\n%% more\n2 3\n1 3\n",
    "runs of blanks": b"  1   2\n2 \t 3  \n\t1\t\t3\t\n",
    "blank lines": b"\n\n1 2\n\n   \n2 3\n1 3\n\n",
    "no newline at the end": b"1 2\n2 3\n1 3",
    "windows": b"1 2\r\n2 3\r\n\r\n1 3\r\n",
    "old mac": b"1 2\r2 3\r1 3\r",
    "utf-8 mark": b"\xef\xbb\xbf1 2\n2 3\n1 3\n",
    "csv": b"1,2\n2,3\n1,3\n",
    "csv with spaces": b"1, 2\n2 ,3\n 1 , 3 \n",
    "csv with header": b"source,target\n1,2\n2,3\n1,3\n",
    "csv with unusual header": b"alpha,beta\n1,2\n2,3\n1,3\n",
    "csv with quotes": b'"1","2"\n"2","3"\n"1","3"\n',
    "csv by name": b"weight,dst,src\n0.5,2,1\n0.1,3,2\n9,3,1\n",
    "semicolons": b"1;2\n2;3\n1;3\n",
    "tsv with header": b"src\tdst\tweight\n1\t2\t0.5\n2\t3\t\n1\t3\t1\n",
    "more columns": b"1 2 1082040961\n2 3 1082155839\n1 3 1082414391\n",
    "plus and zeros": b"+1 002\n2 +3\n01 3\n",
    "matrix market": (
        b"%%MatrixMarket matrix coordinate pattern general\n% note\n3 3 3\n1 2\n2 3\n1 3\n"
    ),
}


def edges_of(edges: edge_files.Edges) -> list[tuple[int, int]]:
    found = []
    for batch in edges.batches():
        assert batch.schema == pa.schema([(name, pa.int64()) for name in edges.columns])
        assert batch.num_rows
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert edges.n_edges == len(found)
    return found


def edges_in(data: bytes, **options) -> list[tuple[int, int]]:
    return edges_of(read_edges(io.BytesIO(data), **options))


def names_in(data: bytes) -> tuple[list[tuple[int, int]], list[str] | None]:
    edges = read_edges(io.BytesIO(data))
    return edges_of(edges), edges.names


@pytest.fixture(params=[None, 7], ids=["whole", "pieces of 7 bytes"])
def piece_bytes(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(edge_files, "_PIECE_BYTES", request.param)


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_every_form_gives_the_same_edges(text):
    assert edges_in(text) == EDGES
    assert edges_in(gzip.compress(text)) == EDGES
    assert read_edges(io.BytesIO(text)).names is None


@pytest.mark.parametrize("form", ["spaces", "snap", "windows", "csv", "runs of blanks"])
def test_pieces_end_between_lines(form, piece_bytes):
    assert edges_in(FORMS[form] * 5) == EDGES * 5


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "Hermitian"])
def test_a_symmetric_matrix_has_each_entry_off_its_diagonal_twice(symmetry, piece_bytes):
    text = f"%%MatrixMarket matrix coordinate real {symmetry}\n% note\n3 3 3\n2 1 9\n3 3 9\n3 2 9\n"
    assert sorted(edges_in(text.encode())) == [(1, 2), (2, 1), (2, 3), (3, 2), (3, 3)]


def test_a_header_that_could_be_an_edge_is_noted(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes(b"# c\nann bob\n1 2\n2 3\n1 3\n")
    edges = read_edges(path)
    for _ in range(2):
        assert edges_of(edges) == EDGES
        (note,) = edges.notes
        assert "edges.txt: line 2, 'ann bob', was taken for a header and not for an edge" in note


@pytest.mark.parametrize(
    "text", [b"Source,Target\n1,2\n", b"w,dst,src\n1,2,3\n", b"1 2\n", b"a b\nb c\n"]
)
def test_what_can_only_be_meant_one_way_is_not_noted(text):
    edges = read_edges(io.BytesIO(text))
    assert edges_of(edges)
    assert edges.notes == []


@pytest.mark.parametrize(
    "header",
    ["id,Source,Target", ",source,target", "w,dst,src", "rank,U,V", "i,FromNodeId,ToNodeId"],
)
@pytest.mark.parametrize("form", ["text", "parquet"])
def test_the_ends_are_where_the_header_has_them(header, form, tmp_path):
    """As data frames are written, with their index before the columns."""
    names = header.split(",")
    turned = names[1] == "dst"
    rows = [(0, 2, 1) if turned else (0, 1, 2), (1, 3, 2) if turned else (1, 2, 3)]
    path = tmp_path / "edges"
    if form == "text":
        path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    else:
        pq.write_table(pa.table(list(zip(*rows, strict=True)), names), path)
    edges = read_edges(path)
    assert edges_of(edges) == [(1, 2), (2, 3)]
    assert edges.notes == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"target,source\nb,a\n", [("a", "b")]),  # by the words, not by the places
        (b"from,to,source,target\na,b,c,d\n", [("a", "b")]),  # which pair is meant is not said
        (b"head,tail\na,b\n", [("a", "b")]),  # either may be the source
    ],
)
def test_which_end_is_the_source_is_as_the_header_says(text, expected):
    edges = read_edges(io.BytesIO(text))
    found = edges_of(edges)
    assert [(edges.names[a], edges.names[b]) for a, b in found] == expected


def test_the_note_of_an_odd_header_says_which_columns_were_read():
    edges = read_edges(io.BytesIO(b",a,b\n0,1,2\n1,2,3\n"))
    assert edges_of(edges) == [(0, 1), (1, 2)]
    assert edges.notes[0].endswith("since integers follow; the first two columns were read")


def test_gzip_of_several_members_is_read_to_the_end():
    assert edges_in(gzip.compress(b"1 2\n2 3\n") + gzip.compress(b"1 3\n")) == EDGES


def test_batches_have_at_most_the_rows_asked_for():
    text = b"".join(b"%d %d\n" % (n, n + 1) for n in range(10))
    batches = list(read_edges(io.BytesIO(text), batch_rows=4).batches())
    assert [batch.num_rows for batch in batches] == [4, 4, 2]


def test_columns_name_the_result():
    batch = next(read_edges(io.BytesIO(b"1 2\n"), columns=("u", "v")).batches())
    assert batch.to_pydict() == {"u": [1], "v": [2]}


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), min_size=1))
def test_every_vertex_in_range_is_read(edges):
    for separator in (" ", "\t", ","):
        text = "".join(f"{src}{separator}{dst}\n" for src, dst in edges)
        assert edges_in(text.encode()) == edges


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"# nothing\n", b"src,dst\n", gzip.compress(b"", mtime=0)]
)
def test_a_file_without_edges_has_none(text):
    assert edges_in(text) == []


def test_names_are_numbered_as_they_appear(piece_bytes):
    text = b"ann bob\nbob cy\ndan ann\ncy \xc3\xa9va\n"
    expected = [(0, 1), (1, 2), (3, 0), (2, 4)], ["ann", "bob", "cy", "dan", "éva"]
    assert names_in(text) == expected
    assert names_in(text.replace(b" ", b", ")) == expected
    assert names_in(b"# who knows whom\n" + text.replace(b" ", b"\t")) == expected


def test_names_may_hold_spaces_and_commas():
    assert names_in(b'source,target\n"Lee, Ann",New York\nNew York,Oslo\n') == (
        [(0, 1), (1, 2)],
        ["Lee, Ann", "New York", "Oslo"],
    )
    assert names_in(b"New York\tOslo\nOslo\tLa Paz\n")[1] == ["New York", "Oslo", "La Paz"]


@pytest.mark.parametrize(
    "text", [b"a b\nb c\nc a 17\n", b"1 2\n2 3\n3 1 17\n", b"1,2,5\n2,3,6\n3,1\n"]
)
def test_ragged_lines_are_refused(text, monkeypatch, piece_bytes):
    monkeypatch.setattr(edge_files.edge_text, "_N_SAMPLE", 2)
    with pytest.raises(
        FileFormatError, match=r"line 3: \d fields, .* where the lines before it have"
    ):
        edges_in(text)


BANNER = b"%%MatrixMarket matrix coordinate pattern general\n% note\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BANNER + b"3 3 4\n1 2\n2 3\n1 3\n", "says 4 entries, but it holds 3"),
        (BANNER + b"3 3 2\n1 2\n2 3\n1 3\n", "says 2 entries, but it holds 3"),
        (BANNER + b"3 3 1\n", "says 1 entries, but it holds 0"),
        (BANNER + b"1 2\n2 3\n", "line 3: .* needs a line of sizes.* found '1 2'"),
        (BANNER, "needs a line of sizes.* ends without"),
        (BANNER + b"3 3 2\n1 2\n4 3\n", r"line 5: entry \(4, 3\) is outside of the matrix"),
        (BANNER + b"3 2 2\n1 2\n2 3\n", r"line 5: entry \(2, 3\) .*columns 1 to 2"),
        (BANNER + b"3 3 2\n1 2\n0 3\n", r"line 5: entry \(0, 3\) .*rows 1 to 3"),
    ],
)
def test_a_matrix_that_its_sizes_do_not_fit_is_refused(text, message, piece_bytes):
    with pytest.raises(FileFormatError, match=f"(?s){message}"):
        edges_in(text)


def test_a_matrix_without_entries_has_no_edges():
    assert edges_in(BANNER + b"3 3 0\n") == []


def test_an_empty_parquet_file_is_refused(tmp_path):
    path = tmp_path / "edges.parquet"
    path.touch()
    with pytest.raises(FileFormatError, match=r"edges.parquet: this Parquet file is empty"):
        edges_of(read_edges(path))


@pytest.mark.parametrize("name", ["edges.parquet", "edges.PARQUET"])
@pytest.mark.parametrize("data", [b"src,dst\n1,2\n", gzip.compress(b"1 2\n")], ids=["text", "gzip"])
def test_what_is_named_parquet_and_is_none_is_refused(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as raised:
        edges_of(read_edges(path))
    assert f"{name}: a Parquet file was expected, which begins with b'PAR1'; found " in str(
        raised.value
    )
    assert repr(data[:4]) in str(raised.value)


def test_some_integers_do_not_make_a_file_of_names_one_of_integers():
    assert names_in(b"A1 17\nB2 C3\n17 A1\n")[1] == ["A1", "17", "B2", "C3"]


def test_a_file_can_be_read_twice(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes(b"a b\nb c\n")
    edges = read_edges(path)
    assert edges_of(edges) == edges_of(edges) == [(0, 1), (1, 2)]
    assert edges.names == ["a", "b", "c"]


def parquet(**columns) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def parquet_of(names: list[str]) -> bytes:
    """Columns of a one each, of any names, which may be the same."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * len(names), names), sink)
    return sink.getvalue()


def test_parquet_is_read_by_name_or_else_by_place(tmp_path):
    for data in (
        parquet(src=[1, 2, 1], dst=[2, 3, 3]),
        parquet(a=pa.array([1, 2, 1], pa.uint8()), b=pa.array([2, 3, 3], pa.int32()), c=[0, 0, 0]),
        parquet(dst=[2, 3, 3], weight=[0.5, 1, 2], src=[1, 2, 1]),
    ):
        path = tmp_path / "edges.dat"
        path.write_bytes(data)
        assert edges_of(read_edges(str(path))) == edges_in(data) == EDGES


def test_a_dot_in_the_name_of_a_parquet_column_is_part_of_the_name():
    assert edges_in(parquet(**{"x.y": [1, 2, 1], "x.z": [2, 3, 3], "x": [0, 0, 0]})) == EDGES


def test_parquet_of_names_gives_them_back():
    data = parquet(src=pa.array(["a", "b"]).dictionary_encode(), dst=["b", "c"])
    assert names_in(data) == ([(0, 1), (1, 2)], ["a", "b", "c"])


def test_parquet_comes_in_batches_and_may_be_empty():
    data = parquet(src=np.arange(10), dst=np.arange(10))
    assert [b.num_rows for b in read_edges(io.BytesIO(data), batch_rows=4).batches()] == [4, 4, 2]
    assert edges_in(parquet(src=pa.array([], pa.int64()), dst=pa.array([], pa.int64()))) == []


def test_a_directory_is_read_as_its_files(tmp_path):
    (tmp_path / "part-1.txt").write_bytes(b"2 3\n1 3\n")
    (tmp_path / "part-0.parquet").write_bytes(parquet(src=[1], dst=[2]))
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".part-0.crc").write_bytes(b"crc\0")
    assert edges_of(read_edges(tmp_path)) == EDGES
    (tmp_path / "part-2.txt").write_bytes(b"a b\n")
    with pytest.raises(FileFormatError, match=r"part-2\.txt.*names here, but integers"):
        edges_of(read_edges(tmp_path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_read(monkeypatch, pack):
    stdin = types.SimpleNamespace(buffer=io.BytesIO(pack(FORMS["csv"])))
    monkeypatch.setattr("sys.stdin", stdin)
    assert edges_of(read_edges("-")) == EDGES
    assert not stdin.buffer.closed


def test_parquet_on_standard_input_is_read(monkeypatch):
    stdin = types.SimpleNamespace(buffer=io.BytesIO(parquet(src=[1], dst=[2])))
    monkeypatch.setattr("sys.stdin", stdin)
    assert edges_of(read_edges("-")) == [(1, 2)]


WRONG = {
    "one column": (b"# c\n17\n18\n", r"line 2: one column, '17'"),
    "one field in a line": (b"1 2\n2 3\n17\n1 3\n", r"line 3: 1 column\(s\), '17'"),
    "one field in a csv": (b"1,2\n\n# c\n3\n", r"line 4: 1 column\(s\), '3'"),
    "a name among integers": (b"1 2\n2 3\nx 3\n1 4\n", r"line 3: 'x' is no integer"),
    "a fraction": (b"1 2\n2 3.5\n3 4\n", r"line 2: '3\.5' is no integer"),
    "an empty field": (b"1,2\n2,\n3,4\n", r"line 2: '' is no integer"),
    "a negative vertex": (b"# c\n1 2\n\n2 -3\n", r"line 4: '-3' is negative"),
    "a huge vertex": (b"1 2\n2 9223372036854775808\n", r"line 2: '9223372036854775808' is too"),
    "an empty name": (b"a,b\n,c\n", r"line 2: '' is no name"),
    "a name that is no utf-8": (b"a b\nb \xff\n", r"line 2: .* UTF-8"),
    "prose": (
        b"First Citizen:\nBefore we go any further\n",
        r"line 2: 5 fields where line 1 has 2",
    ),
    "zeros": (b"1 2\n\0\0\n", r"no text"),
    "lines of JSON": (b'{"src":1,"dst":2}\n{"src":2,"dst":3}\n', r"line 1: this is JSON"),
    "array of JSON": (
        b'\n[{"src": 1, "dst": 2},\n {"src": 2, "dst": 3}]\n',
        r"line 2: this is JSON",
    ),
    "nested deeply": (b"[" * 100_000, r"line 1: one column"),
    "dense matrix": (
        b"%%MatrixMarket matrix array real general\n2 2\n1\n",
        r"line 1: .*coordinate",
    ),
    "parquet column": (parquet(src=[1]), r"two columns.*\['src'\]"),
    "parquet null": (parquet(src=[1, 2, None], dst=[1, 2, 3]), r"row 2, column 'src': null"),
    "parquet negative": (parquet(src=[1, 2], dst=[1, -2]), r"row 1, column 'dst': -2 is no vertex"),
    "parquet huge": (
        parquet(src=[1], dst=pa.array([2**63], pa.uint64())),
        r"row 0, column 'dst': 9223372036854775808",
    ),
    "parquet floats": (parquet(src=[1.5], dst=[1]), r"'src' is of type double"),
    "parquet of both": (
        parquet(src=[1], dst=["a"]),
        r"'src' holds integers and 'dst' names; write all",
    ),
    "parquet twice": (
        parquet_of(["src", "src", "dst"]),
        r"which column 'src' .* has \['src', 'src', 'dst'\]",
    ),
    "parquet twice by place": (parquet_of(["u", "u"]), r"which column 'u' "),
    "parquet cut off": (parquet(src=[1], dst=[2])[:-9], r"Parquet file cannot be read"),
    "gzip cut off": (gzip.compress(b"1 2\n" * 99)[:-12], r"gzip file is truncated"),
    "gzip damaged": (gzip.compress(b"1 2\n" * 99)[:-8] + b"damaged!", r"gzip file is damaged"),
    "gzip garbled": (b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 40, r"gzip file is damaged"),
}


@pytest.mark.parametrize(("data", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_edge_list_says_where_and_why(tmp_path, data, message):
    path = tmp_path / "edges"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=rf"(?s)edges: .*{message}"):
        edges_of(read_edges(path))


def test_a_wrong_line_far_into_the_file_is_numbered_from_its_start(piece_bytes):
    text = b"# c\n" + b"1 2\n" * 50 + b"1 x\n"
    with pytest.raises(FileFormatError, match="line 52: 'x'"):
        edges_in(text)


def test_a_wrong_line_after_a_header_is_numbered_from_the_start():
    with pytest.raises(FileFormatError, match="line 4: 'x'"):
        edges_in(b"# c\nsrc,dst\n1,2\nx,3\n1,2\n")


def test_what_was_right_before_a_wrong_line_of_a_later_piece_was_given(monkeypatch):
    monkeypatch.setattr(edge_files, "_PIECE_BYTES", 8)
    edges = read_edges(io.BytesIO(b"1 2\n2 3\n1 x\n"))
    with pytest.raises(FileFormatError):
        list(edges.batches())
    assert edges.n_edges == 2


def test_a_line_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(edge_files, "_PIECE_BYTES", 16)
    monkeypatch.setattr(edge_files, "_LONGEST_LINE", 64)
    with pytest.raises(FileFormatError, match="a line of more than"):
        edges_in(b"1 " * 100)


def test_a_missing_file_is_refused_at_once(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere\.txt: there is no such file"):
        read_edges(tmp_path / "nowhere.txt")
    with pytest.raises(FileFormatError, match="directory without files"):
        read_edges(tmp_path)


def test_nonsense_options_are_refused():
    with pytest.raises(FileFormatError, match="two different columns"):
        read_edges(io.BytesIO(b""), columns=("a", "a"))
    with pytest.raises(FileFormatError, match="batch_rows"):
        read_edges(io.BytesIO(b""), batch_rows=0)


@pytest.mark.parametrize(
    ("path", "n_edges", "n_vertices"),
    [
        (("ca-GrQc", "ca-GrQc.txt.gz"), 28_980, 5_242),
        (("wiki-Vote", "wiki-Vote.txt.gz"), 103_689, 7_115),
        (("soc-sign-bitcoin-otc", "soc-sign-bitcoinotc.csv.gz"), 35_592, 5_881),
        (("lagraph-small", "karate.mtx.gz"), 2 * 78, 34),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else None,
)
def test_real_graphs_have_their_published_sizes(data, path, n_edges, n_vertices):
    batches = list(read_edges(data(*path)).batches())
    assert sum(batch.num_rows for batch in batches) == n_edges
    assert len({v for batch in batches for end in batch.columns for v in end.to_pylist()}) == (
        n_vertices
    )
