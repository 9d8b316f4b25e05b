"""Directed triangles, (a)->(b), (b)->(c), (a)->(c), of directed R-MAT graphs, counted.

The generic join finds them; the bar is a loop that merges the sorted rows of the two
ends of each edge, on one core. Another marks the neighbours of one end, and is quicker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pointstamp as ps
from benchmarks import graphs
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, At, Benchmark, Case, Quantity, Ratio, Size
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.sql import in_duckdb, in_spark
from benchmarks.triangles import n_told

SCALES = {"tiny": (8,), "small": (12,), "full": (14, 16, 18)}
JOINED = 14
"""The largest scale for joins of pairs, of which the first makes all paths of two edges."""
PATTERN = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"

NUMBA, MARKS = "Numba, merging rows", "Numba, marking"
DUCKDB, SPARK = "DuckDB, two joins", "Spark SQL, two joins"

JOINS = """
select count(*) from edges a join edges b on a.dst = b.src
join edges c on c.src = a.src and c.dst = b.dst
"""


def prepare(size: Size) -> None:
    """The graphs."""
    for scale in SCALES[size]:
        graphs.save(f"directed-{scale}", graphs.rmat(scale, directed=True))


def counting(form: str) -> Callable[[Any], Any]:
    """What counts the triangles of a stream of edges, "undirected" or "directed"."""
    from pointstamp.graph import count_motifs, count_triangles

    return count_triangles if form == "undirected" else partial(count_motifs, pattern=PATTERN)


def ours(worker: ps.Worker, name: str) -> Run:
    """How many this worker knows of."""
    return graphs.solving(worker, name, counting("directed"), n_told)


def in_numba(name: str, n: int) -> Run:
    """Merges sorted rows."""
    from benchmarks import compiled

    edges = graphs.load(name)
    return lambda: int(compiled.count_directed(*edges, n))


def in_marks(name: str, n: int) -> Run:
    """Marks what a vertex leads to, and looks up what those lead to."""
    from benchmarks import compiled

    edges = graphs.load(name)
    return lambda: int(compiled.count_directed_by_marks(*edges, n))


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four; a growing graph."""
    found = []
    for scale in SCALES[size]:
        name, n = f"directed-{scale}", 1 << scale
        at, data = {"scale": scale}, name
        found += [
            Case(
                OURS,
                on_workers(ours, name, workers=workers, total=sum),
                at={**at, "workers": workers},
                data=data,
            )
            for workers in ((1, 2, 4) if scale < 18 else (1, 2))
        ]
        found.append(Case(NUMBA, alone(in_numba, name, n), at=at, data=data, needs=("numba",)))
        found.append(Case(MARKS, alone(in_marks, name, n), at=at, data=data, needs=("numba",)))
        if scale <= JOINED:
            found.append(
                Case(DUCKDB, alone(in_duckdb, name, JOINS), at=at, data=data, needs=("duckdb",))
            )
            found.append(Case(SPARK, in_spark(name, JOINS), at=at, data=data, needs=("pyspark",)))
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"directed-{at['scale']}")


BENCHMARK = Benchmark(
    name="directed_triangles",
    title="Directed triangles by the generic join, with building",
    about="The motif `(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)`, counted, on directed R-MAT graphs.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    ratios=(Ratio({"scale": 18, "workers": 1}, 2.0),),
    axis="scale",
    prepare=prepare,
    input_bytes=input_bytes,
    counted="triangles",
    on_all_cores=(DUCKDB, SPARK),
)
