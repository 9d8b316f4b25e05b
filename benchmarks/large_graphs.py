"""R-MAT graphs of 16 and 32 million edges: triangles, 4-cliques and PageRank, time and memory.

The graphs and the contenders are those of `triangles` and `pagerank`, at scales at which memory
is what may be short. A case has one run, and the harness gives it up after five minutes.
"""

from __future__ import annotations

from functools import partial
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
    Size,
)
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.pagerank import DAMPING, ROUNDS
from benchmarks.sql import in_duckdb
from benchmarks.triangles import DUCKDB, JOINS, NETWORKIT, NUMBA, in_networkit, in_numba, n_told
from pointstamp.containers.convert import numbers

SCALES = {"tiny": (8,), "small": (14,), "full": (20, 21)}
CLIQUE_SCALES = {"tiny": (8,), "small": (12,), "full": (16, 20)}
"""A graph of scale 20 has so many cliques that what counts them one by one may give up."""

DUCKDB_MEMORY = "6GB"
"""Beyond which it spills; ours have no limit, as what they build has to be in memory."""


def prepare(size: Size) -> None:
    """The graphs."""
    for scale in sorted({*SCALES[size], *CLIQUE_SCALES[size]}):
        graphs.save(f"rmat-{scale}", graphs.rmat(scale))


def triangles(worker: ps.Worker, name: str) -> Run:
    """How many this worker knows of."""
    from pointstamp.graph import count_triangles

    return graphs.solving(worker, name, count_triangles, n_told)


def cliques(worker: ps.Worker, name: str) -> Run:
    """How many of four vertices this worker knows of."""
    from pointstamp.graph import count_cliques

    return graphs.solving(worker, name, partial(count_cliques, k=4), n_told)


def ranks(worker: ps.Worker, name: str) -> Run:
    """The sum of the ranks of this worker's vertices; edges lead from the lower vertex."""
    from pointstamp.graph import pagerank

    build = partial(pagerank, rounds=ROUNDS, damping=DAMPING, dangling="drop")
    return graphs.solving(worker, name, build, _sum_of_ranks)


def _sum_of_ranks(batches: list[Any]) -> float:
    return sum(float(numbers(batch["rank"]).sum()) for batch in batches)


def ranks_in_numba(name: str, n: int) -> Run:
    """A plain loop, of the vertices that have edges."""
    from benchmarks import compiled

    edges = graphs.load(name)

    def run() -> float:
        ids, ends = np.unique(np.concatenate(edges), return_inverse=True)
        sources, targets = np.split(ends, 2)
        return float(compiled.pagerank(sources, targets, len(ids), ROUNDS, DAMPING).sum())

    return run


def ranks_in_networkit(name: str, n: int) -> Run:
    """Its own, whose rule for vertices without edges out is another."""
    import networkit as nk

    edges = graphs.load(name)

    def run() -> None:
        graph = nk.GraphFromCoo(edges, n=n, directed=True)
        solver = nk.centrality.PageRank(graph, DAMPING, 0.0)
        solver.maxIterations = ROUNDS
        solver.run()

    return run


def cases(size: Size) -> list[Case]:
    """Each question of each graph, on one worker and on two, and by others."""
    found = []
    for scale in SCALES[size]:
        name, n = f"rmat-{scale}", 1 << scale
        for what, build, total, others in (
            ("triangles", triangles, sum, _of_triangles(name, n)),
            ("PageRank", ranks, _rounded, _of_ranks(name, n)),
        ):
            found += _of(what, scale, partial(on_workers, build, name, total=total), others)
    for scale in CLIQUE_SCALES[size]:
        name = f"rmat-{scale}"
        found += _of("4-cliques", scale, partial(on_workers, cliques, name, total=sum), ())
    return found


def _rounded(parts: list[float]) -> float:
    return round(sum(parts), 6)


def _of_triangles(name: str, n: int) -> list[tuple[str, Measure, str, bool]]:
    return [
        (NUMBA, alone(in_numba, name, n), "numba", True),
        (NETWORKIT, alone(in_networkit, name, n), "networkit", True),
        (DUCKDB, alone(in_duckdb, name, JOINS, DUCKDB_MEMORY), "duckdb", True),
    ]


def _of_ranks(name: str, n: int) -> list[tuple[str, Measure, str, bool]]:
    def rounded(name: str, n: int) -> Run:
        run = ranks_in_numba(name, n)
        return lambda: round(run(), 6)

    return [
        (NUMBA, alone(rounded, name, n), "numba", True),
        (NETWORKIT, alone(ranks_in_networkit, name, n), "networkit", False),
    ]


def _of(what: str, scale: int, ours: Any, others: Any) -> list[Case]:
    at: dict[str, Any] = {"question": what, "scale": scale}
    data = f"{what} of scale {scale}"
    found = [
        Case(OURS, ours(workers=w), at={**at, "workers": w}, data=data, samples=1) for w in (1, 2)
    ]
    for contender, measure, needs, has_answer in others:
        compared = data if has_answer else None
        found.append(Case(contender, measure, at=at, data=compared, needs=(needs,), samples=1))
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"rmat-{at['scale']}")


BENCHMARK = Benchmark(
    name="large_graphs",
    title="R-MAT graphs of 16 and 32 million edges",
    about="From columns of edges in memory to the answer, once each; what takes longer than five "
    "minutes is aborted. It takes long, and so runs only when named.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    prepare=prepare,
    input_bytes=input_bytes,
    on_all_cores=(NETWORKIT, DUCKDB),
    when_named=True,
)
