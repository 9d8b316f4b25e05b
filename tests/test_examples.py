"""Every example runs, as it stands and with other arguments, and says what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

# Collatz by hand: 9 goes 28, 14, 7, 22, 11, 34, 17, 52, 26, 13, 40, 20, 10, 5, 16, 8, 4, 2, 1.
SAID = {
    "hello.py": [("4", "1"), "worker 0 saw [0, 1, 2, 3]"],
    "barrier.py": [("50", "3"), "50 rounds on 3 workers"],
    "collatz.py": [("10", "3"), "of the numbers below 10, 9 takes the most steps: 19"],
    "wordcount.py": [(), "0 2 be\n0 2 to\n0 1 is\n"],
    "sales_report.py": [("100", "2"), "epoch 1: 100 sales come, 10 go, 8 rows change\n"],
    "datalog.py": [(), "heap: (101, 7, 102)\npoints: 3 less\nheap: 1 less"],
    "motifs_of_a_file.py": [(), "2 matches of (a)-[]->(b); (b)-[]->(a) with a < b"],
    # From worker 0 to 1, to 0, to 1.
    "pingpong.py": [("3", "1"), "worker 1 ends with [(0, 3)]\n3 rounds on 2 workers"],
    # The third line comes, with "sleep" and twice "to", and the first goes, with twice "to".
    "wordcount_with_retractions.py": [
        (),
        "2 -1 be 2\n2 +1 dream 1\n2 -1 not 1\n2 -1 or 1\n2 +1 perchance 1\n"
        "2 -1 sleep 1\n2 +1 sleep 2\n3 ",
    ],
    "distinct.py": [("500", "3", "1"), "epoch 0: 3 of 1000 are distinct"],
    "hash_join.py": [("30", "1"), "by hand: 900 pairs of 2 x 30 records"],
    "bfs.py": [("20", "400"), "distance 0: 1 vertices\ndistance 1: 1"],
    "unionfind.py": [("10", "1000"), "2000 edges, of which 18 were passed on and 9 kept\n1 comp"],
    "event_driven.py": [("5", "2", "20"), "dataflows: 5, busy: 1, an event takes"],
    "open_loop.py": [("50", "500"), "half of 50 took below "],
    "flow_control.py": [("20", "2"), "ahead=20: "],
    # 0 to 9 squared; the others are in a test of their own.
    "capture_and_replay.py": [
        ("1", "1", "1"),
        "epoch 0 is complete there: the squares add up to 285",
    ],
    "subgraph_in_another_process.py": [("10", "1"), "of 9 numbers, 9 takes the most steps: 19"],
    "pagerank.py": [("10", "0", "2"), "epoch 1: 0 ranks are new, by 0 changes passed on"],
    "service.py": [
        ("20", "4"),
        "the second service begins at epoch 2\n20 vertices have degrees as a recount says",
    ],
    # All edges of 10 vertices: each 3 of them, in any order, are a triangle.
    "changing_motifs.py": [("10", "90", "1"), "90 edges change, 720 triangles appear and 0 vanish"],
    # Of twenty edges at 2 vertices, some are no loops.
    "changing_components.py": [
        ("2", "20", "2", "1"),
        "epoch 0: 2 vertices moved, 1 components of 2 vertices\nepoch 1: 0 vertices moved, 1 comp",
    ],
}

# These are given a file, or a Spark session, by tests of their own; one is with the pages.
APART = {"import_graph.py", "growing_triangles.py", "triangles_on_spark.py", "stream_on_spark.py"}


def run(name: str, *args: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", SAID)
def test_an_example_says_what_it_should(name: str) -> None:
    args, said = SAID[name]
    assert str(said) in run(name, *args)


def test_the_rounds_of_hello_are_shared_and_in_order() -> None:
    seen = [eval(line.partition("saw ")[2]) for line in run("hello.py").splitlines()]
    assert sorted(round for part in seen for round in part) == list(range(10))
    assert all(part == sorted(part) for part in seen)


def test_motifs_are_found_in_a_file_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "edges.tsv"
    path.write_text("5\t6\n6\t7\n5\t7\n")
    pattern = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"
    assert "the first of them [(5, 6, 7)]" in run("motifs_of_a_file.py", str(path), pattern, "3")


def test_triangles_of_a_file_are_counted_as_its_edges_come(tmp_path: Path) -> None:
    path = tmp_path / "edges.tsv"
    # A triangle, two of its edges once more, and a loop; then a vertex with edges to all three.
    path.write_text("1\t2\n2\t3\n1\t3\n3\t1\n1\t2\n2\t2\n1\t4\n4\t2\n4\t3\n3\t4\n4\t4\n4\t1\n")
    said = run("growing_triangles.py", str(path), "2", "1")
    assert said == "epoch 0: 1 triangles\nepoch 1: 4 triangles\n"


@pytest.mark.parametrize(("capturing", "replaying"), [(2, 3), (3, 1)])
def test_what_is_captured_here_is_replayed_there(capturing: int, replaying: int) -> None:
    said = run("capture_and_replay.py", "4", str(capturing), str(replaying))
    sums = [sum(x * x for x in range(10 * epoch, 10 * epoch + 10)) for epoch in range(4)]
    assert [int(line.rpartition(" ")[2]) for line in said.splitlines()] == sums


def test_no_example_is_left_out() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SAID, *APART}
