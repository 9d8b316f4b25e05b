"""Each row of the documentation's table of GraphFrames' API runs."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from pointstamp.graph import Graph
from pointstamp.graph.tables.algorithms import ABSENT

PAGE = Path(__file__).parents[3] / "docs" / "graphs_of_tables.md"
CODE = r"(?:[Gg]raph|ratings)\b.*?"
ROWS = re.findall(rf"^\| (.*?) ?\| `({CODE})` \|", PAGE.read_text(), re.MULTILINE)
ABSENT_ROWS = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| missing \|", PAGE.read_text(), re.MULTILINE)

PEOPLE = {
    "id": ["a", "b", "c", "d", "e", "f"],
    "name": ["Alice", "Bob", "Charlie", "David", "Esther", "Fanny"],
    "age": [34, 36, 30, 29, 32, 36],
}
KNOWS = {
    "src": ["a", "b", "c", "f", "e", "e", "d"],
    "dst": ["b", "c", "b", "c", "f", "d", "a"],
    "relationship": ["friend", "follow", "follow", "follow", "follow", "friend", "friend"],
}
RATINGS = {"src": ["a", "a", "b"], "dst": ["tea", "ale", "tea"], "weight": [5, 1, 4]}


@pytest.mark.parametrize("code", [code for _, code in ROWS])
def test_a_row_of_the_table_runs(code):
    names = {"Graph": Graph, "people": PEOPLE, "knows": KNOWS, "graph": Graph(PEOPLE, KNOWS)}
    names["ratings"] = Graph(RATINGS)
    found = eval(code, names)
    if isinstance(found, Graph):
        found = found.vertices
    if found is not None and not isinstance(found, int):
        assert isinstance(found, pa.Table)
        assert found.num_rows


def test_all_public_methods_are_in_the_table():
    shown = {re.match(r"[a-z]+\.(\w+)", code)[1] for _, code in ROWS if code[0].islower()}
    public = {name for name in dir(Graph) if not name.startswith("_")}
    assert public - shown == {"edges"}


def test_what_the_table_says_is_not_there_is_an_error_that_names_graphframes():
    names = [name for row in ABSENT_ROWS for name in re.findall(r"\w+", row)]
    assert set(ABSENT) == set(names)
    for name in names:
        with pytest.raises(AttributeError, match=f"Graph has no '{name}', which GraphFrames has: "):
            getattr(Graph(PEOPLE, KNOWS), name)
