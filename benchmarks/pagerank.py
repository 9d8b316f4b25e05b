"""PageRank: twenty rounds over uniform edges, from columns of edges to ranks.

It starts at 1/N, damping is 0.85, and the rank of vertices without out-edges is
dropped. NetworKit's rule for those differs a little; its time is what is compared.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.harness import inputs, rust
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Quantity,
    Ratio,
    Size,
    Target,
)
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers.convert import numbers

EDGES = {"tiny": (1_000,), "small": (1_000_000,), "full": (300_000, 1_000_000, 10_000_000)}
ROUNDS, DAMPING = 20, 0.85

NUMBA, SCIPY, NETWORKIT = "Numba, one thread", "SciPy", "NetworKit"
GRAPHX = "GraphX"


def prepare(size: Size) -> None:
    """A tenth as many vertices as edges."""
    for n_edges in EDGES[size]:
        graphs.save(f"uniform-{n_edges}", graphs.uniform(n_edges // 10, n_edges))


def ours(worker: ps.Worker, n_edges: int, *, as_rows: bool = False) -> Run:
    """The sum of the ranks of this worker's vertices, and the greatest."""
    from pointstamp.graph import pagerank

    build = partial(pagerank, rounds=ROUNDS, damping=DAMPING, dangling="drop")
    return graphs.solving(worker, f"uniform-{n_edges}", build, _told, as_rows=as_rows)


def _told(batches: list[Any]) -> list[float]:
    ranks = np.concatenate([numbers(batch["rank"]) for batch in batches])
    return [float(ranks.sum()), float(ranks.max())]


def _total(parts: list[list[float]]) -> list[float]:
    return _rounded(sum(part[0] for part in parts), max(part[1] for part in parts))


def _rounded(total: float, greatest: float) -> list[float]:
    return [round(total, 6), float(f"{greatest:.5g}")]


def in_numba(n_edges: int) -> Run:
    """Rows by target, pulled from in a loop."""
    from benchmarks import compiled

    edges = graphs.load(f"uniform-{n_edges}")

    def run() -> list[float]:
        ranks = compiled.pagerank(*edges, n_edges // 10, ROUNDS, DAMPING)
        return _rounded(ranks.sum(), ranks.max())

    return run


def in_scipy(n_edges: int) -> Run:
    """A sparse matrix times a vector."""
    from scipy.sparse import csr_array

    sources, targets = graphs.load(f"uniform-{n_edges}")
    n = n_edges // 10

    def run() -> list[float]:
        matrix = csr_array((np.ones(len(sources)), (targets, sources)), (n, n))
        degrees = np.bincount(sources, minlength=n)
        share = np.divide(1, degrees, out=np.zeros(n), where=degrees > 0)
        ranks = np.full(n, 1 / n)
        for _ in range(ROUNDS):
            ranks = (1 - DAMPING) / n + DAMPING * (matrix @ (ranks * share))
        return _rounded(ranks.sum(), ranks.max())

    return run


def in_networkit(n_edges: int) -> Run:
    """Its own, on all cores."""
    import networkit as nk

    edges = graphs.load(f"uniform-{n_edges}")

    def run() -> None:
        graph = nk.GraphFromCoo(edges, n=n_edges // 10, directed=True)
        solver = nk.centrality.PageRank(graph, DAMPING, 0.0)
        solver.maxIterations = ROUNDS
        solver.run()

    return run


def in_graphx(n_edges: int) -> Any:
    """Its own, on all cores; from a text file, since Python cannot give it columns."""
    from benchmarks import graphx

    return graphx.measure(f"uniform-{n_edges}", partial(graphx.pagerank, rounds=ROUNDS))


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and (but for the largest) four; a growing graph."""
    found = []
    for n_edges in EDGES[size]:
        at, data = {"edges": n_edges}, f"{n_edges} edges"
        found += [
            Case(
                OURS,
                on_workers(ours, n_edges, workers=workers, total=_total),
                at={**at, "workers": workers},
                data=data,
            )
            for workers in ((1, 2, 4) if n_edges < 10_000_000 else (1, 2))
        ]
        if n_edges == EDGES[size][0]:
            as_rows = partial(ours, as_rows=True)
            found += [
                Case(
                    OURS,
                    on_workers(as_rows, n_edges, workers=workers, total=_total),
                    at={**at, "workers": workers, "of": "rows"},
                    data=data,
                )
                for workers in (1, 2)
            ]
        found += [
            *rust.race(
                *("pagerank", "of", *graphs.raw(f"uniform-{n_edges}"), n_edges // 10, ROUNDS),
                amount=lambda form: 1,
                at=at,
                data=data,
                answer=lambda text: _rounded(*rust.pair(text)),
                told="unlike",
            ),
            Case(NUMBA, alone(in_numba, n_edges), at=at, data=data, needs=("numba",)),
            Case(SCIPY, alone(in_scipy, n_edges), at=at, data=data, needs=("scipy",)),
            Case(NETWORKIT, alone(in_networkit, n_edges), at=at, needs=("networkit",), samples=3),
        ]
    smallest = EDGES[size][0]
    found.append(
        Case(GRAPHX, in_graphx(smallest), at={"edges": smallest}, needs=("pyspark",), samples=3)
    )
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"uniform-{at['edges']}")


BENCHMARK = Benchmark(
    name="pagerank",
    title="PageRank, 20 rounds, ten edges per vertex, with building",
    about="From columns of edges in memory to a rank for each vertex.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    targets=(
        Target({"edges": 10_000_000, "workers": 1}, 5.0),
        Target({"edges": 10_000_000, "workers": 2}, 5.0, 3.0),
    ),
    ratios=(Ratio({"edges": 10_000_000, "workers": 1}, 1.25),),
    axis="edges",
    prepare=prepare,
    input_bytes=input_bytes,
    memory=(Ratio({"edges": 10_000_000, "workers": 1}, 6.0),),
)
