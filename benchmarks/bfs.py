"""Breadth-first search over an undirected R-MAT graph, from columns of edges to levels."""

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

SCALES = {"tiny": (8,), "small": (14,), "full": (14, 16, 18)}

NUMBA, SCIPY, NETWORKIT = "Numba, one thread", "SciPy", "NetworKit"


def prepare(size: Size) -> None:
    """The graphs."""
    for scale in SCALES[size]:
        graphs.save(f"rmat-{scale}", graphs.rmat(scale))


def ours(worker: ps.Worker, scale: int, *, as_rows: bool = False) -> Run:
    """(reached, the sum of levels) of this worker's vertices."""
    from pointstamp.graph import bfs

    build = partial(bfs, source=_source(scale), directed=False)
    return graphs.solving(worker, f"rmat-{scale}", build, _told, as_rows=as_rows)


def _told(batches: list[Any]) -> list[int]:
    levels = [numbers(batch["level"]) for batch in batches]
    return [sum(map(len, levels)), int(sum(part.sum() for part in levels))]


def _total(parts: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*parts, strict=True)]


def _source(scale: int) -> int:
    """A vertex that has edges: the first edge's."""
    return int(inputs.load(f"rmat-{scale}", "src", 0, 1)[0])


def in_numba(scale: int) -> Run:
    """Rows and a queue."""
    from benchmarks import compiled

    edges = graphs.load(f"rmat-{scale}")
    source = _source(scale)

    def run() -> list[int]:
        levels = compiled.levels(*edges, 1 << scale, source)
        reached = levels >= 0
        return [int(reached.sum()), int(levels[reached].sum())]

    return run


def in_scipy(scale: int) -> Run:
    """Its compiled search; it gives an order and predecessors, not levels."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    sources, targets = graphs.load(f"rmat-{scale}")
    source = _source(scale)
    n = 1 << scale

    def run() -> None:
        matrix = csr_array((np.ones(len(sources), np.int8), (sources, targets)), (n, n))
        breadth_first_order(matrix, source, directed=False)

    return run


def in_networkit(scale: int) -> Run:
    """Its search, one thread."""
    import networkit as nk

    edges = graphs.load(f"rmat-{scale}")
    source = _source(scale)

    def run() -> None:
        graph = nk.GraphFromCoo(edges, n=1 << scale, directed=False)
        nk.distance.BFS(graph, source, storePaths=False).run()

    return run


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four; a growing graph."""
    found = []
    for scale in SCALES[size]:
        at, data = {"scale": scale}, f"scale {scale}"
        found += [
            Case(
                OURS,
                on_workers(ours, scale, workers=workers, total=_total),
                at={**at, "workers": workers},
                data=data,
            )
            for workers in (1, 2, 4)
        ]
        if scale == SCALES[size][0]:
            as_rows = partial(ours, as_rows=True)
            found += [
                Case(
                    OURS,
                    on_workers(as_rows, scale, workers=workers, total=_total),
                    at={**at, "workers": workers, "of": "rows"},
                    data=data,
                )
                for workers in (1, 2)
            ]
        found += [
            *rust.race(
                *("bfs", "of", *graphs.raw(f"rmat-{scale}"), 1 << scale, partial(_source, scale)),
                amount=lambda form: 1,
                at=at,
                data=data,
                answer=rust.pair,
                told="unlike",
            ),
            Case(NUMBA, alone(in_numba, scale), at=at, data=data, needs=("numba",)),
            Case(SCIPY, alone(in_scipy, scale), at=at, needs=("scipy",)),
            Case(NETWORKIT, alone(in_networkit, scale), at=at, needs=("networkit",)),
        ]
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"rmat-{at['scale']}")


BENCHMARK = Benchmark(
    name="bfs",
    title="Breadth-first search, undirected R-MAT, with building",
    about="From columns of edges in memory to a level for each reachable vertex.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    targets=(Target({"scale": 18, "workers": 1}, 0.6, 0.4),),
    ratios=(Ratio({"scale": 18, "workers": 1}, 1.5),),
    axis="scale",
    prepare=prepare,
    input_bytes=input_bytes,
    memory=(Ratio({"scale": 18, "workers": 1}, 6.0),),
)
