"""Commands about graphs of tables: names as vertices, attributes, conditions.

What is found goes to standard output, a JSON object in each line.
"""

from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pointstamp.cli.streams import answering, check_open
from pointstamp.errors import UsageError

_Edges = Annotated[
    Path,
    Argument(
        metavar="EDGES",
        help="A table with columns src and dst (or --src, --dst): .parquet, .csv, .tsv.",
    ),
]
_Vertices = Annotated[
    Path | None, Option(metavar="FILE", help="A table of the vertices, with a column id (or --id).")
]
_Src = Annotated[
    str, Option(metavar="COLUMN", help="The edges' column of sources; it is called src then.")
]
_Dst = Annotated[str, Option(metavar="COLUMN", help="Of targets; it is called dst then.")]
_Id = Annotated[
    str, Option(metavar="COLUMN", help="The vertices' column of ids; it is called id then.")
]
_Workers = Annotated[int, Option(metavar="N", min=1, help="Number of workers.")]
_Tuned = Annotated[float | None, Option(metavar="X", help="Of svd_plus_plus.")]

Method = Literal[
    "page_rank",
    "parallel_personalized_page_rank",
    "shortest_paths",
    "sssp",
    "bfs",
    "connected_components",
    "strongly_connected_components",
    "label_propagation",
    "power_iteration_clustering",
    "svd_plus_plus",
    "triangle_count",
    "k_core",
    "clustering",
    "maximal_independent_set",
    "degrees",
    "in_degrees",
    "out_degrees",
    "type_degree",
    "type_in_degree",
    "type_out_degree",
    "detect_cycles",
    "random_walks",
]

_TUNING = ("rank", "min_value", "max_value", "gamma1", "gamma2", "gamma6", "gamma7")
"""Options of svd_plus_plus alone, which has arguments of these names."""

_BY_TYPE = ("type_degree", "type_in_degree", "type_out_degree")
"""Methods that need to know in which column the type of an edge is."""

_TAKES = {
    "page_rank": {"source": "source_id", "max_iter": "max_iter", "tol": "tol", "weight": "weight"},
    "parallel_personalized_page_rank": {
        "source": "source_ids",
        "max_iter": "max_iter",
        "weight": "weight",
    },
    "shortest_paths": {"landmark": "landmarks"},
    "sssp": {"source": "source_id", "weight": "weight"},
    "bfs": {"from": "from_expr", "to": "to_expr", "max_length": "max_path_length"},
    "label_propagation": {"max_iter": "max_iter"},
    "power_iteration_clustering": {"k": "k", "max_iter": "max_iter", "weight": "weight_col"},
    "svd_plus_plus": {name: name for name in ("weight", "max_iter", *_TUNING, "seed")},
    "maximal_independent_set": {"seed": "seed"},
    **{method: {"edge_type": "edge_type_col"} for method in _BY_TYPE},
    "detect_cycles": {"max_length": "max_length"},
    "random_walks": {"num_walks": "num_walks", "length": "length", "seed": "seed"},
}
"""By method, its options, and as which argument each is passed."""

_NEEDS = {
    "parallel_personalized_page_rank": ("source",),
    "shortest_paths": ("landmark",),
    "sssp": ("source",),
    "bfs": ("from", "to"),
    "power_iteration_clustering": ("k",),
    "svd_plus_plus": ("weight",),
    **dict.fromkeys(_BY_TYPE, ("edge_type",)),
}

_OTHERWISE: dict[str, dict[str, Any]] = {
    "page_rank": {"tol": 1e-6},
    "parallel_personalized_page_rank": {"max_iter": 20},
    "sssp": {"weight": None},
    "label_propagation": {"max_iter": 10},
    "power_iteration_clustering": {"max_iter": 20},
}
"""What is passed where nothing else is said."""

_OF_IDS = ("source", "landmark")
_OF_SEVERAL = ("source_ids", "landmarks")


def find(
    pattern: Annotated[str, Argument(metavar="PATTERN", help="As '(a)-[e]->(b); (b)-[]->(a)'.")],
    edges: _Edges,
    vertices: _Vertices = None,
    src: _Src = "src",
    dst: _Dst = "dst",
    id: _Id = "id",
    where: Annotated[
        str | None, Option(metavar="CONDITION", help="As \"e.amount > 5 and a.kind = 'bank'\".")
    ] = None,
    count: Annotated[bool, Option("--count", help="Only the number of matches.")] = False,
    distinct: Annotated[
        bool, Option("--distinct", help="Different names are different vertices.")
    ] = False,
    limit: Annotated[int | None, Option(metavar="N", min=0, help="Stop after N matches.")] = None,
    workers: _Workers = 1,
) -> None:
    """Find a pattern in a graph of tables, with attributes."""
    graph = _graph(edges, vertices, {"src": src, "dst": dst}, {"id": id}, workers)
    if count:
        n = graph.count(pattern, where, distinct=distinct)
        with answering():
            print(n)
    else:
        _print_rows(graph.find(pattern, where, distinct=distinct, limit=limit))


def graph(
    method: Annotated[Method, Argument(help="The method to call.")],
    edges: _Edges,
    vertices: _Vertices = None,
    src: _Src = "src",
    dst: _Dst = "dst",
    id: _Id = "id",
    where: Annotated[
        str | None, Option(metavar="CONDITION", help="Only these edges: \"kind = 'friend'\".")
    ] = None,
    source: Annotated[
        list[str] | None,
        Option(metavar="ID", help="Source vertex, of sssp and the page ranks."),
    ] = None,
    landmark: Annotated[
        list[str] | None,
        Option(metavar="ID", help="Of shortest_paths: a target; can be repeated."),
    ] = None,
    from_: Annotated[
        str | None,
        Option("--from", metavar="CONDITION", help="Of bfs: where paths begin, \"id = 'ann'\"."),
    ] = None,
    to: Annotated[
        str | None, Option("--to", metavar="CONDITION", help="Of bfs: where they end.")
    ] = None,
    max_iter: Annotated[
        int | None, Option(metavar="N", min=0, help="Number of rounds, of iterative methods.")
    ] = None,
    tol: Annotated[
        float | None,
        Option(metavar="X", help="Of page_rank: stop at this change.", show_default="1e-6"),
    ] = None,
    weight: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Edge weights: of sssp, page ranks, power_iteration_clustering; ratings.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        Option(metavar="N", min=1, help="Of power_iteration_clustering: number of clusters."),
    ] = None,
    edge_type: Annotated[
        str | None,
        Option(metavar="COLUMN", help="Of the degrees by type: the edges' column of types."),
    ] = None,
    max_length: Annotated[
        int | None,
        Option(metavar="N", min=0, help="Of bfs and detect_cycles: maximum number of edges."),
    ] = None,
    num_walks: Annotated[
        int | None, Option(metavar="N", min=1, help="Of random_walks: walks from each vertex.")
    ] = None,
    length: Annotated[
        int | None, Option(metavar="N", min=0, help="Of random_walks: number of steps.")
    ] = None,
    seed: Annotated[
        int | None,
        Option(
            metavar="N", help="Random seed: random_walks, maximal_independent_set, svd_plus_plus."
        ),
    ] = None,
    rank: Annotated[
        int | None, Option(metavar="N", min=1, help="Of svd_plus_plus: number of factors.")
    ] = None,
    min_value: _Tuned = None,
    max_value: _Tuned = None,
    gamma1: _Tuned = None,
    gamma2: _Tuned = None,
    gamma6: _Tuned = None,
    gamma7: _Tuned = None,
    workers: _Workers = 1,
) -> None:
    """Run an algorithm on a graph of tables."""
    given = {
        "source": source,
        "landmark": landmark,
        "from": from_,
        "to": to,
        "max_iter": max_iter,
        "tol": tol,
        "weight": weight,
        "k": k,
        "edge_type": edge_type,
        "max_length": max_length,
        "num_walks": num_walks,
        "length": length,
        "seed": seed,
        "rank": rank,
        "min_value": min_value,
        "max_value": max_value,
        "gamma1": gamma1,
        "gamma2": gamma2,
        "gamma6": gamma6,
        "gamma7": gamma7,
    }
    said = {option: value for option, value in given.items() if value is not None}
    _check(method, said)
    asked = _graph(edges, vertices, {"src": src, "dst": dst}, {"id": id}, workers)
    if where is not None:
        asked = asked.filter_edges(where)
    answer = getattr(asked, method)
    _print_rows(answer(**_arguments(method, said, asked)) if callable(answer) else answer)


def _check(method: str, said: dict[str, Any]) -> None:
    """Raise if an option is not of that method, or one that it needs is missing."""
    takes = _TAKES.get(method, {})
    for option in said:
        if option not in takes:
            listed = ", ".join(map(_dashed, takes))
            raise UsageError(
                f"{method} has no {_dashed(option)}: it takes {listed or 'no option but --where'}"
            )
    for option in _NEEDS.get(method, ()):
        if option not in said:
            raise UsageError(f"{method} needs {_dashed(option)}")
    if len(said.get("source", ())) > 1 and takes["source"] not in _OF_SEVERAL:
        raise UsageError(f"{method} has one --source, and {len(said['source'])} are named")


def _dashed(option: str) -> str:
    return "--" + option.replace("_", "-")


def _arguments(method: str, said: dict[str, Any], asked: Any) -> dict[str, Any]:
    """What a method is called with, ids as those of the table are."""
    from pointstamp.formats.table_files import values_of

    found = {}
    for option, value in said.items():
        name = _TAKES[method][option]
        if option in _OF_IDS:
            value = values_of(value, asked.vertices.column("id").type)
            value = value if name in _OF_SEVERAL else value[0]
        found[name] = value
    otherwise = _OTHERWISE.get(method, {})
    if "max_iter" in found:  # either
        otherwise = {name: value for name, value in otherwise.items() if name != "tol"}
    return otherwise | found


def _graph(
    edges: Path, vertices: Path | None, ends: dict[str, str], ids: dict[str, str], workers: int
) -> Any:
    check_open()
    # Arrow and the algorithms are imported when a command runs, not when it is listed.
    from pointstamp.formats.table_files import read_table
    from pointstamp.graph import Graph

    links = _renamed(read_table(edges), "edges", ends)
    if vertices is None:
        if ids != {"id": "id"}:
            raise UsageError("--id is the column of --vertices, and none are given")
        return Graph(links, workers=workers)
    return Graph(_renamed(read_table(vertices), "vertices", ids), links, workers=workers)


def _renamed(table: Any, what: str, chosen: dict[str, str]) -> Any:
    """The table with chosen columns by the names that a graph has for them.

    chosen : the column by the name that it gets
    """
    new = {column: name for name, column in chosen.items()}
    for name, column in chosen.items():
        if column not in table.column_names:
            listed = ", ".join(map(repr, table.column_names))
            raise UsageError(
                f"{what} have no column {column!r}, only {listed}; --{name} says which it is"
            )
        if new[column] != name:
            raise UsageError(f"--{name} and --{new[column]} are both the column {column!r}")
    names = [new.get(column, column) for column in table.column_names]
    for name, column in chosen.items():
        if column != name and names.count(name) > 1:
            raise UsageError(
                f"{what} have a column {name!r} beside {column!r} (--{name}): rename it, or leave "
                f"out --{name}"
            )
    return table.rename_columns(names)


def _print_rows(table: Any) -> None:
    with answering():
        for batch in table.to_batches(max_chunksize=_AT_ONCE):
            for row in batch.to_pylist():
                print(_line(row))


_AT_ONCE = 1 << 14
"""So many records are objects of Python at a time."""


def _line(row: Any) -> str:
    try:
        return dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        from pointstamp.formats.json_types import without_nan

        return dumps(without_nan(row), ensure_ascii=False, default=str)
