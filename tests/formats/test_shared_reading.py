"""Several readers of one file give its edges once, and find what is wrong where it is."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointstamp.errors import FileFormatError
from pointstamp.formats import edge_files
from pointstamp.formats.edge_files import read_edges
from pointstamp.formats.vertex_set import VertexSet

Pairs = list[tuple[int, int]]

LINES = st.one_of(
    st.tuples(st.integers(0, 200), st.integers(0, 10**9)).map(lambda ends: f"{ends[0]} {ends[1]}"),
    st.sampled_from(["", "# no edge", "   ", "%"]),
)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_files, "_PIECE_BYTES", 7)


def share(path: Path, index: int, readers: int) -> Pairs:
    found: Pairs = []
    for batch in read_edges(path).batches(index, readers):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def shares(path: Path, readers: int) -> list[Pairs]:
    return [share(path, index, readers) for index in range(readers)]


def joined(parts: list[Pairs]) -> Pairs:
    return [pair for part in parts for pair in part]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(LINES, max_size=40), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 5)
)
def test_the_ranges_of_a_text_are_the_text(
    tmp_path: Path, lines: list[str], newline: str, ends: bool, readers: int
) -> None:
    text = newline.join(lines) + newline * ends
    (tmp_path / "edges").write_bytes(text.encode())
    parts = shares(tmp_path / "edges", readers)
    assert joined(parts) == share(tmp_path / "edges", 0, 1)
    assert len(joined(parts)) == sum(line[:1].isdigit() for line in lines)


def test_all_readers_of_a_long_text_have_something_to_read(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("".join(f"{n} {n + 1}\n" for n in range(1000)))
    parts = shares(tmp_path / "edges", 4)
    assert min(map(len, parts)) > 200
    assert joined(parts) == [(n, n + 1) for n in range(1000)]


def test_a_text_with_a_mark_and_a_header_has_neither_in_its_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_files, "_PIECE_BYTES", 64)
    lines = "".join(f"{n},{n + 1}\n" for n in range(100))
    (tmp_path / "edges").write_bytes(b"\xef\xbb\xbf# a comment\nalpha,beta\n" + lines.encode())
    assert joined(shares(tmp_path / "edges", 3)) == [(n, n + 1) for n in range(100)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("at", [3, 50, 97])
def test_a_wrong_line_is_numbered_from_the_start_whoever_reads_it(
    tmp_path: Path, at: int, newline: str
) -> None:
    lines = [f"{n} {n + 1}" for n in range(100)]
    lines[at] = "7 x"
    (tmp_path / "edges").write_bytes(newline.join(["# a comment", *lines]).encode())
    said = []
    for index in range(4):
        try:
            share(tmp_path / "edges", index, 4)
        except FileFormatError as error:
            said.append(str(error))
    assert len(said) == 1
    assert f"line {at + 2}: 'x' is no integer" in said[0]


def test_names_are_read_by_the_first_alone_and_numbered_as_they_appear(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("ann bob\nbob cy\n" * 20)
    assert shares(tmp_path / "edges", 3) == [[(0, 1), (1, 2)] * 20, [], []]
    edges = read_edges(tmp_path / "edges")
    list(edges.batches(0, 3))
    assert edges.names == ["ann", "bob", "cy"]


def test_what_is_read_in_turn_is_read_once(tmp_path: Path) -> None:
    matrix = b"%%MatrixMarket matrix coordinate pattern symmetric\n9 9 20\n" + b"2 1\n" * 20
    for name, data in {"matrix": matrix, "zipped": gzip.compress(b"1 2\n" * 20)}.items():
        (tmp_path / name).write_bytes(data)
        parts = shares(tmp_path / name, 3)
        assert sorted(map(len, parts))[:2] == [0, 0]
        assert joined(parts) == share(tmp_path / name, 0, 1)


def test_a_matrix_that_is_cut_off_is_found_out(tmp_path: Path) -> None:
    text = b"%%MatrixMarket matrix coordinate pattern general\n9 9 20\n" + b"2 1\n" * 19
    (tmp_path / "matrix").write_bytes(text)
    with pytest.raises(FileFormatError, match="says 20 entries, but it holds 19"):
        shares(tmp_path / "matrix", 2)


@pytest.mark.parametrize(("n_groups", "readers"), [(1, 3), (5, 2), (4, 4), (3, 1)])
def test_row_groups_are_dealt(tmp_path: Path, n_groups: int, readers: int) -> None:
    src = np.arange(10 * n_groups)
    pq.write_table(pa.table({"src": src, "dst": src + 1}), tmp_path / "edges", row_group_size=10)
    parts = shares(tmp_path / "edges", readers)
    assert joined(parts) == [(n, n + 1) for n in src]
    assert sum(map(bool, parts)) == min(n_groups, readers)


def test_a_row_is_numbered_from_the_start_whoever_reads_it(tmp_path: Path) -> None:
    src = [*range(37), -1, 38, 39]
    pq.write_table(pa.table({"src": src, "dst": src}), tmp_path / "edges", row_group_size=10)
    assert len(share(tmp_path / "edges", 0, 2)) == 20
    with pytest.raises(FileFormatError, match="row 37, column 'src': -1 is no vertex"):
        share(tmp_path / "edges", 1, 2)


def test_parquet_of_names_is_read_by_the_first_alone(tmp_path: Path) -> None:
    names = pa.array(["a", "b"] * 5)
    table = pa.table({"src": names.dictionary_encode(), "dst": names})
    pq.write_table(table, tmp_path / "edges", row_group_size=2)
    assert [len(part) for part in shares(tmp_path / "edges", 3)] == [10, 0, 0]


def test_the_files_of_a_directory_are_dealt_and_of_one_kind(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(b"%d 9\n" % number))
    (tmp_path / "6").write_text("")
    parts = shares(tmp_path, 3)
    assert sorted(joined(parts)) == [(number, 9) for number in range(6)]
    assert [len(part) for part in parts] == [2, 2, 2]
    (tmp_path / "7").write_text("a b\n")
    for index in range(3):  # whoever reads it
        with pytest.raises(FileFormatError, match="7: vertices are names here, but integers"):
            share(tmp_path, index, 3)


def test_only_the_first_opens_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # to open it would take until somebody writes
    assert share(tmp_path / "pipe", 1, 2) == []


def test_a_reader_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("1 2\n")
    with pytest.raises(FileFormatError, match="no reader 2 of 2"):
        share(tmp_path / "edges", 2, 2)


@given(st.lists(st.lists(st.one_of(st.integers(0, 70_000), st.integers(0, 2**62)), max_size=50)))
def test_a_set_of_vertices_holds_each_once(batches: list[list[int]]) -> None:
    vertices = VertexSet()
    for batch in batches:
        vertices.add(np.array(batch, np.int64))
    expected = sorted({vertex for batch in batches for vertex in batch})
    assert vertices.sorted().tolist() == expected
    assert vertices.count() == len(expected)
