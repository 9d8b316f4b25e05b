"""The parts of the command line: top matches, vertex counts, reports of progress, displays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pointstamp.cli.display import Display
from pointstamp.cli.progress import Report
from pointstamp.cli.search import N_SHOWN, merged_top, top_columns, top_matches
from pointstamp.communication.processes import run_processes
from pointstamp.errors import FileFormatError, WorkerError
from pointstamp.formats.edge_files import read_edges
from pointstamp.formats.parquet import write_parquet
from pointstamp.formats.vertex_set import VertexSet
from pointstamp.spark.failures import error_of
from pointstamp.testing import collect

small = st.integers(0, 6)
records = st.lists(st.tuples(small, small), max_size=60)


# Top matches.


@given(st.lists(records, min_size=1, max_size=3))
def test_the_top_matches_of_many_workers_are_those_of_all_records(
    shares: list[list[tuple[int, int]]],
) -> None:
    def build(scope: Any) -> Any:
        halves = (shares[scope.index][::2], shares[scope.index][1::2])
        columns = [np.array(half, np.int64).reshape(-1, 2).T for half in halves if half]
        batches = [pa.record_batch(list(each), ["a", "b"]) for each in columns]
        return top_matches(scope.batches_to_stream(batches), 2)

    found = [record for _, record in collect(build, workers=len(shares))]
    assert len(found) <= len(shares) * N_SHOWN
    batches = [pa.record_batch([[x] for x in record], top_columns(2)) for record in found]
    rows, n_matches = merged_top(batches, 2)
    every = sorted(record for share in shares for record in share)
    assert n_matches == len(every)
    assert [tuple(row) for row in rows.tolist()] == every[:N_SHOWN]


# Readings.


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), max_size=30), max_size=6))
def test_vertices_are_counted_once_each(pieces: list[list[int]]) -> None:
    vertices = VertexSet()
    for piece in pieces:
        vertices.add(np.array(piece, np.int64))
    assert vertices.count() == len({vertex for piece in pieces for vertex in piece})


def test_a_reading_keeps_the_facts(graph: Path) -> None:
    edges, vertices = read_edges(str(graph)), VertexSet()
    assert sum(batch.num_rows for batch in vertices.adding(edges.batches())) == 7
    assert (edges.n_edges, vertices.count(), edges.names) == (7, 5, None)


# Reports.


def silent(workers: int) -> Display:
    return Display("triangles", workers, Console(file=io.StringIO()))


def test_the_latest_report_of_each_worker_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.cli.display.LAST_REPORTS_S", 0.01)
    display = silent(2)
    with display.working("searching"):
        reporters = [Report(index) for index in range(2)]
        reporters[1].note("found", 5)
        reporters[1].finish()
        assert display.last_reports() == []  # one has not reported
        assert display.reports[0] == Report(0)
        assert display.reports[1].found == 5
        assert display.reports[1].peak_bytes > 0
        reporters[0].note("edges", 3)
        reporters[0].finish()
        assert [report.edges for report in display.last_reports()] == [3, 0]


def test_reports_of_worker_processes_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(communicator: Any) -> None:
        Report(communicator.index).finish()

    monkeypatch.setattr("pointstamp.cli.display.LAST_REPORTS_S", 60.0)
    display = silent(2)
    with display.working("searching"):
        run_processes(work, 2)
        assert [report.done for report in display.last_reports()] == [True, True]


def test_a_worker_whose_reports_nothing_takes_works_on() -> None:
    reporter = Report(0)
    reporter.note("found", 2)
    reporter.finish()
    assert reporter.found == 2


def test_a_report_of_a_worker_that_is_not_ours_is_ignored() -> None:
    display = silent(1)
    with display.working("searching"):
        Report(7).finish()
        assert display.reports == [Report(0)]


# Showing.


def test_elsewhere_than_on_a_terminal_changed_counts_are_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pointstamp.cli.display.LINE_EVERY_S", 0.0)
    monkeypatch.setattr("pointstamp.cli.display.FRAMES_PER_S", 0.01)  # here, when it is called
    written = io.StringIO()
    display = Display("triangles", 2, Console(file=written, force_terminal=False, width=200))
    with display.working("searching"):
        display.take(Report(0, edges=10, found=3))
        display.take(Report(1, prefixes=2000, found=4))
        display.tick()
        display.tick()  # the same counts, no line
    _, line = written.getvalue().splitlines()
    assert line.endswith("searching: edges read 10, prefixes extended 2,000, found 7 (3 + 4)")


def test_on_a_terminal_a_table_is_drawn_and_vanishes() -> None:
    written = io.StringIO()
    display = Display("triangles", 2, Console(file=written, force_terminal=True, width=100))
    with display.working("searching"):
        display.take(Report(0, edges=10, found=3))
        display.take(Report(1, found=4))
    drawn = written.getvalue()
    assert "triangles: searching" in drawn
    assert "edges read" in drawn
    assert "prefixes extended" not in drawn  # there are none
    assert "\x1b[2K" in drawn  # lines are erased


# Files.


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "found.parquet"

    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1]})
        assert not path.exists()
        yield pa.RecordBatch.from_pydict({"a": [0]})

    assert write_parquet(path, batches(), ["a"], names=["zero", "one"]) == 2
    assert pq.read_table(path).to_pydict() == {"a": ["one", "zero"]}
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1]})
        raise OSError("disk full")

    with pytest.raises(FileFormatError, match=r"found\.parquet: cannot be written: disk full"):
        write_parquet(tmp_path / "found.parquet", batches(), ["a"])
    assert list(tmp_path.iterdir()) == []


# Spark's words.


class Thrown:
    """As Py4J shows a throwable of Java."""

    def __init__(self, said: str, cause: Thrown | None = None) -> None:
        self._said, self._cause = said, cause

    def toString(self) -> str:  # noqa: N802 (Java names it)
        return self._said

    def getCause(self) -> Thrown | None:  # noqa: N802 (Java names it)
        return self._cause


def test_where_no_worker_failed_the_innermost_cause_is_named() -> None:
    error = ValueError("a wall of text")
    error._origin = Thrown("A: b", Thrown("D: e", Thrown("G: h\n at i")))  # type: ignore[attr-defined]  # as PySpark's have
    assert isinstance(error_of(error), WorkerError)
    assert str(error_of(error)) == "the Spark job failed: G: h"
    assert str(error_of(ValueError("gone"))) == "the Spark job failed: gone"
