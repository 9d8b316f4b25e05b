"""Triangles of undirected R-MAT graphs, counted, from columns of edges on.

Beside ours: loops over rows, turned to the higher degree, which is what a program for
one core would be (by merging sorted rows, which is the bar, or by marking neighbours);
sparse matrices; two joins in databases; GraphX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.harness import inputs
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Measure,
    Quantity,
    Ratio,
    Size,
    Target,
)
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.sql import in_duckdb, in_spark
from pointstamp.containers.convert import numbers

SCALES = {"tiny": (8,), "small": (14,), "full": (14, 16, 18)}
SLOW_SCALES = {"tiny": (8,), "small": (12,), "full": (14, 16)}
"""For those that would take minutes, or all of the memory, on the largest."""

NUMBA, MARKS = "Numba, merging rows", "Numba, marking"
SCIPY, NETWORKIT = "SciPy", "NetworKit"
DUCKDB, SPARK, GRAPHX = "DuckDB, two joins", "Spark SQL, two joins", "GraphX"

JOINS = """
with ends as (select src as v from edges union all select dst from edges),
degrees as (select v, count(*) as degree from ends group by v),
turned as (
    select case when s.degree < t.degree or (s.degree = t.degree and src < dst)
                then src else dst end as low,
           case when s.degree < t.degree or (s.degree = t.degree and src < dst)
                then dst else src end as high
    from edges join degrees s on src = s.v join degrees t on dst = t.v
)
select count(*) from turned a join turned b on a.high = b.low
join turned c on c.low = a.low and c.high = b.high
"""
"""Edges from the lower to the higher degree, for a fair chance: else paths are many more."""


def prepare(size: Size) -> None:
    """The graphs."""
    for scale in sorted({*SCALES[size], *SLOW_SCALES[size]}):
        graphs.save(f"rmat-{scale}", graphs.rmat(scale))


def ours(worker: ps.Worker, name: str) -> Run:
    """How many this worker knows of; the total is at one of them."""
    from pointstamp.graph import count_triangles

    return graphs.solving(worker, name, count_triangles, n_told)


def n_told(batches: list[Any]) -> int:
    """The sum of a stream of counts."""
    return sum(int(numbers(batch.column(0)).sum()) for batch in batches)


def in_numba(name: str, n: int) -> Run:
    """Merges sorted rows."""
    from benchmarks import compiled

    edges = graphs.load(name)
    return lambda: int(compiled.count_triangles(*edges, n))


def in_marks(name: str, n: int) -> Run:
    """Marks neighbours."""
    from benchmarks import compiled

    edges = graphs.load(name)
    return lambda: int(compiled.count_triangles_by_marks(*edges, n))


def in_scipy(name: str, n: int) -> Run:
    """The product of a triangular matrix with itself, where it has entries."""
    from scipy.sparse import csr_array

    sources, targets = graphs.load(name)

    def run() -> int:
        degrees = np.bincount(sources, minlength=n) + np.bincount(targets, minlength=n)
        turned = degrees[sources] * n + sources < degrees[targets] * n + targets
        low, high = np.where(turned, sources, targets), np.where(turned, targets, sources)
        matrix = csr_array((np.ones(len(low), np.int64), (low, high)), (n, n))
        return int((matrix @ matrix).multiply(matrix).sum())

    return run


def in_networkit(name: str, n: int) -> Run:
    """Its score of edges, on all cores; each triangle is at three edges."""
    import networkit as nk

    edges = graphs.load(name)

    def run() -> int:
        graph = nk.GraphFromCoo(edges, n=n, directed=False)
        graph.indexEdges()
        score = nk.sparsification.TriangleEdgeScore(graph)
        score.run()
        return int(sum(score.scores())) // 3

    return run


def in_graphx(name: str) -> Measure:
    """TriangleCount, from a text file."""
    from benchmarks import graphx

    return graphx.measure(name, graphx.count_triangles)


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and (but for the largest) four; a growing graph."""
    found = []
    for scale in SCALES[size]:
        name, n = f"rmat-{scale}", 1 << scale
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
        found += [
            Case(NUMBA, alone(in_numba, name, n), at=at, data=data, needs=("numba",)),
            Case(MARKS, alone(in_marks, name, n), at=at, data=data, needs=("numba",)),
            Case(
                SCIPY,
                alone(in_scipy, name, n),
                at=at,
                data=data,
                needs=("scipy",),
                samples=1 if scale == 18 else 5,  # each takes 12 s
            ),
            Case(NETWORKIT, alone(in_networkit, name, n), at=at, data=data, needs=("networkit",)),
        ]
    for scale in SLOW_SCALES[size]:
        name = f"rmat-{scale}"
        at, data = {"scale": scale}, name
        found.append(
            Case(DUCKDB, alone(in_duckdb, name, JOINS), at=at, data=data, needs=("duckdb",))
        )
    # Beyond the smallest, those on Spark are in `spark_triangles`.
    name = f"rmat-{SLOW_SCALES[size][0]}"
    on_spark: dict[str, Any] = {
        "at": {"scale": SLOW_SCALES[size][0]},
        "data": name,
        "needs": ("pyspark",),
        "samples": 3,
    }
    found.append(Case(SPARK, in_spark(name, JOINS), **on_spark))
    found.append(Case(GRAPHX, in_graphx(name), **on_spark))
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"rmat-{at['scale']}")


BENCHMARK = Benchmark(
    name="triangles",
    title="Triangles of an undirected R-MAT graph, with building",
    about="From columns of edges in memory, in any order and direction, to the number.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    targets=(
        Target({"scale": 18, "workers": 1}, 10, 5),
        Target({"scale": 18, "workers": 2}, 6, 3),
    ),
    axis="scale",
    prepare=prepare,
    input_bytes=input_bytes,
    memory=(Ratio({"scale": 18, "workers": 1}, 6.0),),
    counted="triangles",
    on_all_cores=(NETWORKIT, DUCKDB, SPARK, GRAPHX),
)
