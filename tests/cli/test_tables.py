"""`pointstamp find` and `pointstamp graph`: tables in, a JSON object in each line out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pointstamp.cli.tables import Method
from pointstamp.graph import Graph
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "payments.csv"
    path.write_text("src,dst,amount\nann,bob,100\nbob,cy,90\ncy,ann,80\nbob,ann,\n")
    return path


@pytest.fixture
def vertices(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"id": ["ann", "bob", "cy", "dan"], "age": [30, None, 50, 60]}), path)
    return path


def objects(ran: Ran) -> list[dict[str, object]]:
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_matches_have_attributes_and_meet_conditions(run: Run, edges: Path, vertices: Path) -> None:
    ran = run("find", "(a)-[e]->(b)", edges, "--vertices", vertices, "--where", "b.age > 40")
    assert objects(ran) == [
        {
            "a": {"id": "bob", "age": None},
            "e": {"src": "bob", "dst": "cy", "amount": 90},
            "b": {"id": "cy", "age": 50},
        }
    ]
    counted = run("find", "(a)-[e*2]->(b)", edges, "--where", "_e1.amount > _e2.amount", "--count")
    assert (counted.status, counted.out) == (0, "2\n")
    assert len(objects(run("find", "(a)-[]->(b)", edges, "--limit", 2, "--workers", 2))) == 2
    assert objects(run("find", "(a)-[]->(a)", edges, "--distinct")) == []


def test_columns_may_have_other_names(run: Run, edges: Path, tmp_path: Path) -> None:
    links, people = tmp_path / "links.csv", tmp_path / "people.csv"
    links.write_text("source,target,amount\nann,bob,100\nbob,cy,90\n")
    people.write_text("name,age\nann,30\nbob,40\ncy,50\n")
    named = ["--src", "source", "--dst", "target", "--vertices", people, "--id", "name"]
    assert objects(
        run("find", "(a)-[e]->(b)", links, *named, "--where", "a.id = 'ann' and e.src = a.id")
    ) == [
        {
            "a": {"id": "ann", "age": 30},
            "e": {"src": "ann", "dst": "bob", "amount": 100},
            "b": {"id": "bob", "age": 40},
        }
    ]
    turned = objects(run("graph", "out_degrees", edges, "--src", "dst", "--dst", "src"))
    assert turned == [
        {"id": "ann", "out_degree": 2},
        {"id": "bob", "out_degree": 1},
        {"id": "cy", "out_degree": 1},
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "edges have no column 'src', only 'from', 'to', 'dst'; --src says which it is"),
        (("--src", "form"), "edges have no column 'form', only 'from', 'to', 'dst'"),
        (("--src", "to", "--dst", "to"), "--src and --dst are both the column 'to'"),
        (("--src", "from", "--dst", "to"), "edges have a column 'dst' beside 'to' (--dst)"),
        (("--src", "from", "--id", "name"), "--id is the column of --vertices, and none are"),
    ],
)
def test_columns_that_are_not_there_are_named(
    run: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    links = tmp_path / "links.csv"
    links.write_text("from,to,dst\na,b,c\n")
    ran = run("graph", "degrees", links, *options)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_what_json_has_no_number_for_is_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "weights.parquet"
    weights = [float("nan"), -float("inf"), 0.5]
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 3, 1], "w": weights}), path)
    found = run("find", "(a)-[e]->(b)", path)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in found.out.splitlines()]
    assert [line["e"]["w"] for line in lines] == ["NaN", "-Infinity", 0.5]


def test_algorithms_give_the_vertices_with_a_column(run: Run, edges: Path, vertices: Path) -> None:
    found = objects(run("graph", "connected_components", edges, "--vertices", vertices))
    assert [row["component"] for row in found] == ["ann", "ann", "ann", "dan"]
    ranks = objects(run("graph", "page_rank", edges))
    assert sum(row["pagerank"] for row in ranks) == pytest.approx(3)
    some = objects(run("graph", "degrees", edges, "--where", "amount >= 90"))
    assert some == [
        {"id": "ann", "degree": 1},
        {"id": "bob", "degree": 2},
        {"id": "cy", "degree": 1},
    ]


def test_every_question_of_a_graph_can_be_asked(run: Run, edges: Path, tmp_path: Path) -> None:
    asked = {
        "sssp": ["--source", "ann", "--weight", "amount", "--where", "amount > 0"],
        "shortest_paths": ["--landmark", "ann", "--landmark", "cy"],
        "bfs": ["--from", "id = 'ann'", "--to", "id = 'cy'", "--max-length", 3],
        "page_rank": ["--source", "ann", "--max-iter", 5],
        "parallel_personalized_page_rank": ["--source", "ann", "--source", "cy"],
        "power_iteration_clustering": ["--k", 2],
        "svd_plus_plus": ["--weight", "amount", "--max-value", 200, "--where", "dst = 'cy'"],
        "random_walks": ["--num-walks", 1, "--length", 2, "--seed", 7],
        "detect_cycles": ["--max-length", 2],
        "type_degree": ["--edge-type", "amount", "--where", "amount = 100"],
        "type_in_degree": ["--edge-type", "amount"],
        "type_out_degree": ["--edge-type", "amount"],
    }
    found = {
        method: objects(run("graph", method, edges, *asked.get(method, [])))
        for method in get_args(Method)
    }
    assert all(found.values())
    assert [row["distance"] for row in found["sssp"]] == [0, 100, 190]
    assert found["shortest_paths"][1] == {"id": "bob", "distances": [["ann", 1], ["cy", 1]]}
    assert [row["v1"] for row in found["bfs"]] == [{"id": "bob"}]
    assert sum(row["pagerank"] for row in found["page_rank"]) == pytest.approx(1)
    assert [len(row["pageranks"]) for row in found["parallel_personalized_page_rank"]] == [2] * 3
    assert len(found["random_walks"]) == 3
    assert [row["mean_rating"] for row in found["svd_plus_plus"]] == [None, 90, 90]
    assert found["type_degree"][0] == {"id": "ann", "degrees": {"100": 1}}
    assert found["detect_cycles"] == [{"found_cycles": ["ann", "bob", "ann"]}]
    # What gives another graph, or takes functions, is not for a command.
    others = {"aggregate_messages", "as_undirected", "count", "drop_isolated_vertices", "edges"}
    others |= {"filter_edges", "filter_vertices", "find", "pregel", "reverse", "triplets"}
    others |= {"validate", "vertices"}
    public = {name for name in dir(Graph) if not name.startswith("_")}
    assert public == {*get_args(Method), *others}
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("src,dst\n1,2\n2,3\n")
    of_numbers = objects(run("graph", "sssp", numbers, "--source", "2"))
    assert [row["distance"] for row in of_numbers] == [None, 0, 1]
    ran = run("graph", "sssp", numbers, "--source", "two")
    assert (ran.status, "ids are int64, and 'two' are not" in ran.err) == (2, True)
    numbers.write_text("src,dst\n")
    ran = run("graph", "sssp", numbers, "--source", "two")
    assert (ran.status, "no vertices, so none has the id 'two'" in ran.err) == (2, True)
    assert run("graph", "page_rank", numbers) == Ran(0, "", "")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["find", "(a)->(b)"], "an edge was expected"),
        (["find", "(a)-[e]->(b)", "--where", "e.sum > 1"], "no attribute 'sum'"),
        (["graph", "k_core", "--where", "sum > 1"], "no column 'sum'"),
        (["graph", "k_core", "--tol", "1"], "k_core has no --tol: it takes no option but --where"),
        (["graph", "bfs", "--from", "id = 'ann'"], "bfs needs --to"),
        (["graph", "svd_plus_plus", "--rank", "3"], "svd_plus_plus needs --weight"),
        (["graph", "k_core", "--gamma1", "1"], "k_core has no --gamma1"),
        (["graph", "bfs", "--max-iter", "1"], "it takes --from, --to, --max-length"),
        (["graph", "sssp", "--source", "ann", "--source", "cy"], "has one --source, and 2 are"),
        (["graph", "sssp", "--source", "zed"], "no vertex has the id 'zed'"),
    ],
)
def test_what_is_asked_wrongly_ends_with_2(
    run: Run, edges: Path, asked: list[str], says: str
) -> None:
    ran = run(*asked[:2], edges, *asked[2:])
    assert ran.status == 2
    assert says in ran.err


def test_a_file_that_is_no_table_is_refused(run: Run, tmp_path: Path) -> None:
    ran = run("graph", "k_core", tmp_path / "none.csv")
    assert (ran.status, "there is no such file" in ran.err) == (2, True)
    (tmp_path / "edges.txt").write_text("1 2\n")
    ran = run("graph", "k_core", tmp_path / "edges.txt")
    assert (ran.status, "a table is in a file that ends with" in ran.err) == (2, True)
