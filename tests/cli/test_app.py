"""What the command line prints, where, and with which status it ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from pointstamp.formats.edge_files import Edges
from tests.cli.conftest import EDGES, END_S, Ran, a_long_search
from tests.slowness import slowdown

Run = Callable[..., Ran]

TRIANGLES = [(1, 2, 3), (2, 3, 4)]
PATH = "(x)-[]->(y); (y)-[]->(z)"


def lines(text: str) -> list[str]:
    return text.splitlines()


# Answers.


def test_the_first_matches_go_to_standard_output_and_the_rest_to_standard_error(
    run: Run, graph: Path
) -> None:
    ran = run("triangles", graph, "--workers", 1)
    assert ran.status == 0
    assert lines(ran.out) == ["a\tb\tc", "1\t2\t3", "2\t3\t4"]
    for told in ("triangles in", "vertices", "edges", "matches", "total", "peak memory"):
        assert told in ran.err


def test_a_count_is_a_number_alone(run: Run, graph: Path) -> None:
    assert run("triangles", graph, "--workers", 1, "--count").out == "2\n"
    assert run("cliques", 2, graph, "--workers", 1, "--count").out == "6\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_json_has_everything_in_one_object(run: Run, graph: Path, workers: int) -> None:
    ran = run("motifs", "(x)-[]->(y); (y)-[]->(x)", graph, "--workers", workers, "--json")
    assert ran.status == 0
    told = json.loads(ran.out)
    seconds, per_worker = told.pop("seconds"), told.pop("per_worker")
    assert list(seconds) == ["start", "read", "search", "total"]
    assert all(second >= 0 for second in seconds.values())
    assert sum(seconds.values()) == pytest.approx(2 * seconds["total"], abs=0.2)
    assert [each["worker"] for each in per_worker] == list(range(workers))
    assert sum(each["edges"] for each in per_worker) == 7
    assert sum(each["found"] for each in per_worker) == 2
    assert all(each["peak_bytes"] > 1_000_000 for each in per_worker)
    assert told == {
        "command": "motifs",
        "query": "matches of (x)-[]->(y); (y)-[]->(x)",
        "source": str(graph),
        "on": "local",
        "workers": workers,
        "vertices": 5,
        "edges": 7,
        "matches": 2,
        "columns": ["x", "y"],
        "first": [[1, 2], [2, 1]],
    }


def test_distinct_vertices_are_a_choice(run: Run, graph: Path) -> None:
    # 1-2-1 and 2-1-2 are paths that come back to where they began.
    assert run("motifs", PATH, graph, "--workers", 1, "--count").out == "9\n"
    assert run("motifs", PATH, graph, "--workers", 1, "--count", "--distinct").out == "7\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_all_matches_are_written_to_one_file(run: Run, graph: Path, workers: int) -> None:
    out = graph.parent / "found.parquet"
    out.write_text("an older file")
    ran = run("triangles", graph, "--workers", workers, "--out", out)
    assert (ran.status, ran.out) == (0, "")
    table = pq.read_table(out)
    assert table.schema == pa.schema([(name, pa.int64()) for name in "abc"])
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == TRIANGLES
    assert sorted(file.name for file in graph.parent.iterdir()) == ["found.parquet", "graph.txt"]


def test_no_match_is_a_file_without_records(run: Run, graph: Path) -> None:
    out = graph.parent / "none.parquet"
    assert run("cliques", 5, graph, "--workers", 1, "--out", out).status == 0
    assert pq.read_table(out).to_pydict() == {name: [] for name in "abcde"}
    assert run("cliques", 5, graph, "--workers", 1).out == "a\tb\tc\td\te\n"


def test_names_of_vertices_are_shown_and_written(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "names.csv", tmp_path / "names.parquet"
    path.write_text("source,target\nann,bob\nbob,cy\ncy,ann\n")
    assert lines(run("triangles", path, "--workers", 1).out) == ["a\tb\tc", "ann\tbob\tcy"]
    assert run("triangles", path, "--workers", 1, "--out", out).status == 0
    assert pq.read_table(out).to_pydict() == {"a": ["ann"], "b": ["bob"], "c": ["cy"]}


@pytest.mark.parametrize("form", ["text", "gzip", "csv", "tsv", "parquet"])
def test_every_form_of_input_is_read(run: Run, tmp_path: Path, form: str) -> None:
    pairs = [line.split() for line in lines(EDGES)[1:]]
    path = tmp_path / f"graph.{form}"
    if form == "parquet":
        ends = zip(*pairs, strict=True)
        columns = {name: [int(x) for x in end] for name, end in zip("uv", ends, strict=True)}
        pq.write_table(pa.table(columns), path)
    elif form in ("csv", "tsv"):
        path.write_text("\n".join((",", "\t")[form == "tsv"].join(pair) for pair in pairs))
    else:
        path.write_bytes(gzip.compress(EDGES.encode()) if form == "gzip" else EDGES.encode())
    assert run("triangles", path, "--workers", 1, "--count").out == "2\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_standard_input_is_a_dash(command: list[str], workers: int) -> None:
    args = [*command, "triangles", "-", "--workers", str(workers), "--count"]
    ran = subprocess.run(args, input=EDGES, capture_output=True, text=True, check=True)
    assert ran.stdout == "2\n"
    assert "standard input" in ran.stderr
    wrong = subprocess.run(args, input="1,2\n1", capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "standard input: line 2" in wrong.stderr
    assert "pointstamp-stdin-" not in wrong.stderr


def test_version_and_help_answer(command: list[str], run: Run) -> None:
    from pointstamp import __version__, build_info

    ran = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"pointstamp {__version__} ({build_info()})\n"
    assert run("--version").out == ran.stdout
    for name in ("motifs", "triangles", "cliques"):
        told = run(name, "--help")
        assert told.status == 0
        for option in ("--workers", "--on", "--master", "--out", "--count", "--json"):
            assert option in told.out


@pytest.mark.new_interpreters
def test_help_imports_neither_arrow_nor_numba_nor_spark(command: list[str]) -> None:
    program = (
        "import sys; sys.argv = ['pointstamp', 'motifs', '--help']\n"
        "from pointstamp.cli import main\n"
        "try: main()\n"
        "except SystemExit: print({'numba', 'numpy', 'pyarrow', 'pyspark'} & {*sys.modules})"
    )
    ran = subprocess.run([command[0], "-c", program], capture_output=True, text=True, check=True)
    assert lines(ran.stdout)[-1] == "set()"


# Failures.


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["motifs", "(a)-[]->(b); (b)-[]>(c)", "{graph}"], "'->' was expected here"),
        (["motifs", "(a)-[]->(b); (c)-[]->(d)", "{graph}"], "connected"),
        (["motifs", "()-[]->()", "{graph}"], "names no vertex"),
        (["cliques", "1", "{graph}"], "from 2 to 26"),
        (["triangles", "{folder}/nothing.txt"], "nothing.txt: there is no such file"),
        (["triangles", "{graph}", "--workers", "0"], "--workers"),
        (["triangles", "{graph}", "--on", "mars"], "--on"),
        (["triangles", "{graph}", "--count", "--out", "{folder}/x"], "--count makes no matches"),
        (["triangles", "{graph}", "--out", "{folder}/no/x"], "there is no directory"),
        (["triangles", "{graph}", "--out", "{folder}"], "this is a directory"),
        (["triangles", "{graph}", "--out", "{folder}/x.csv"], "as Parquet, and not as .csv; name"),
        (["squares"], "squares"),
    ],
)
def test_what_is_asked_wrongly_ends_with_2_and_one_message(
    run: Run, graph: Path, args: list[str], said: str
) -> None:
    ran = run(*(arg.format(graph=graph, folder=graph.parent) for arg in args))
    assert ran.status == 2
    assert ran.out == ""
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_caret_points_at_the_fault_of_a_pattern(run: Run, graph: Path) -> None:
    *_, pattern, caret = lines(run("motifs", "(a)-[]->(b); (b)-[]>(c)", graph).err)
    assert pattern[caret.index("^") :] == ">(c)"


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_ends_with_2_names_the_line_and_leaves_no_file(
    run: Run, tmp_path: Path, workers: int
) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("1 2\n2 3\n3\n")
    ran = run("triangles", path, "--workers", workers, "--out", tmp_path / "out.parquet")
    assert ran.status == 2
    assert "bad.txt: line 3" in ran.err
    assert "Traceback" not in ran.err
    assert [file.name for file in tmp_path.iterdir()] == ["bad.txt"]


def test_a_failed_computation_ends_with_1_and_leaves_the_old_file(
    run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = graph.parent / "out.parquet"
    out.write_text("an older file")

    def fail(*args: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(Edges, "batches", fail)
    ran = run("triangles", graph, "--workers", 1, "--out", out)
    assert ran.status == 1
    assert "none left" in lines(ran.err)[-1]
    assert out.read_text() == "an older file"
    assert sorted(file.name for file in graph.parent.iterdir()) == ["graph.txt", "out.parquet"]


def test_where_an_error_came_from_is_shown_when_asked_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("1 2\n3\n")
    ran = run("triangles", path, "--workers", 1, "--traceback")
    assert ran.status == 2
    assert "Traceback" in ran.err


def test_a_closed_pipe_is_no_traceback(command: list[str], graph: Path) -> None:
    ran = subprocess.Popen(
        [*command, "triangles", str(graph), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stdout is not None
    ran.stdout.close()
    assert ran.stderr is not None
    with ran.stderr:
        assert "Traceback" not in ran.stderr.read()
    assert ran.wait() == 141


@pytest.mark.parametrize("of", ["--help", "log"])
def test_a_reader_that_is_gone_ends_help_and_the_table_of_a_log_with_141(
    command: list[str], tmp_path: Path, of: str
) -> None:
    ps.execute(lambda worker: None, log=ps.Log(tmp_path / "run.log"))
    reading, writing = os.pipe()
    os.close(reading)
    args = [of] if of == "--help" else [of, str(tmp_path / "run.log")]
    ran = subprocess.run(
        [*command, *args], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


# Being stopped.


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "kill"]
)
def test_a_signal_stops_everything_at_once_and_leaves_no_file(
    command: list[str], tmp_path: Path, workers: int, sent: signal.Signals, status: int
) -> None:
    with a_long_search(command, tmp_path, ["--workers", str(workers)], "edges read") as running:
        assert running.stderr is not None
        began = time.monotonic()
        if sent == signal.SIGINT:
            os.killpg(running.pid, sent)  # as a terminal does: to the workers too
        else:
            running.send_signal(sent)
        said = running.stderr.read()
        assert running.wait(END_S) == status
        assert time.monotonic() - began < 10 * slowdown()
        assert "Traceback" not in said


@pytest.mark.parametrize(
    ("asked", "title"), [(["cliques", 3], "cliques of 3 in"), (["triangles"], "triangles in")]
)
def test_the_summary_says_what_was_asked_for(
    run: Run, graph: Path, asked: list[object], title: str
) -> None:
    assert f"\n{title}" in run(*asked, graph, "--workers", 1).err
