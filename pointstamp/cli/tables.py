"""Commands about graphs of tables: names as vertices, attributes, conditions.

What is found goes to standard output, a JSON object in each line.
"""

from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pointstamp.cli.streams import answering

_Edges = Annotated[
    Path, Argument(metavar="EDGES", help="A table with columns src and dst: .parquet, .csv, .tsv.")
]
_Vertices = Annotated[
    Path | None, Option(metavar="FILE", help="A table of the vertices, with a column id.")
]
_Workers = Annotated[int, Option(metavar="N", min=1, help="How many.")]

Method = Literal[
    "connected_components",
    "strongly_connected_components",
    "page_rank",
    "label_propagation",
    "triangle_count",
    "k_core",
    "clustering",
    "maximal_independent_set",
    "degrees",
    "detect_cycles",
]

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "page_rank": {"tol": 1e-6},
    "label_propagation": {"max_iter": 10},
}
"""What is asked where nothing else is said."""


def find(
    pattern: Annotated[str, Argument(metavar="PATTERN", help="As '(a)-[e]->(b); (b)-[]->(a)'.")],
    edges: _Edges,
    vertices: _Vertices = None,
    where: Annotated[
        str | None, Option(metavar="CONDITION", help="As \"e.amount > 5 and a.kind = 'bank'\".")
    ] = None,
    count: Annotated[bool, Option("--count", help="Only how many there are.")] = False,
    distinct: Annotated[
        bool, Option("--distinct", help="Different names are different vertices.")
    ] = False,
    limit: Annotated[int | None, Option(metavar="N", min=0, help="So many are enough.")] = None,
    workers: _Workers = 1,
) -> None:
    """Find a pattern in a graph of tables, with attributes."""
    graph = _graph(edges, vertices, workers)
    if count:
        answer = str(graph.count(pattern, where, distinct=distinct))
    else:
        answer = _lines(graph.find(pattern, where, distinct=distinct, limit=limit))
    _print(answer)


def graph(
    method: Annotated[Method, Argument(help="What is asked.")],
    edges: _Edges,
    vertices: _Vertices = None,
    where: Annotated[
        str | None, Option(metavar="CONDITION", help="Only these edges: \"kind = 'friend'\".")
    ] = None,
    workers: _Workers = 1,
) -> None:
    """Ask an algorithm about each vertex of a graph of tables."""
    asked = _graph(edges, vertices, workers)
    if where is not None:
        asked = asked.filter_edges(where)
    answer = getattr(asked, method)
    _print(_lines(answer(**_ARGUMENTS.get(method, {})) if callable(answer) else answer))


def _graph(edges: Path, vertices: Path | None, workers: int) -> Any:
    # Arrow and the algorithms are imported when a command runs, not when it is listed.
    from pointstamp.formats.table_files import read_table
    from pointstamp.graph import Graph

    if vertices is None:
        return Graph(read_table(edges), workers=workers)
    return Graph(read_table(vertices), read_table(edges), workers=workers)


def _lines(table: Any) -> str:
    return "\n".join(dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist())


def _print(answer: str) -> None:
    if answer:
        with answering():
            print(answer)
