"""The other graph algorithms, on one R-MAT graph, next to SciPy's or NetworKit's.

Where neither has the same algorithm there is ours alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, At, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, alone, on_workers

SCALE = {"tiny": 8, "small": 14, "full": 17}

SCIPY, NETWORKIT = "SciPy", "NetworKit"


def _graph_functions() -> dict[str, Callable[[Any], Any]]:
    from pointstamp import graph

    return {
        "components": graph.connected_components,
        "labels": graph.components_by_labels,
        "scc": graph.strongly_connected_components,
        "clustering": partial(graph.local_clustering, directed=False),
        "communities": partial(graph.communities, rounds=10, directed=False),
        "core": graph.core_numbers,
    }


ALGORITHMS = ("components", "labels", "scc", "clustering", "communities", "core")


def prepare(size: Size) -> None:
    """One graph; strongly connected components take its edges as directed."""
    graphs.save("rmat", graphs.rmat(SCALE[size], directed=True))


def ours(worker: ps.Worker, algorithm: str) -> Run:
    """How many vertices this worker has an answer for."""
    build = _graph_functions()[algorithm]
    return graphs.solving(worker, "rmat", build, lambda batches: sum(map(len, batches)))


def in_scipy(algorithm: str, n: int) -> Run:
    """Components, weak or strong."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    sources, targets = graphs.load("rmat")

    def run() -> None:
        matrix = csr_array((np.ones(len(sources), np.int8), (sources, targets)), (n, n))
        connection = "strong" if algorithm == "scc" else "weak"
        connected_components(matrix, directed=True, connection=connection)

    return run


def in_networkit(algorithm: str, n: int) -> Run:
    """Its own, on all cores."""
    import networkit as nk

    edges = graphs.load("rmat")
    directed = algorithm == "scc"

    def run() -> None:
        graph = nk.GraphFromCoo(edges, n=n, directed=directed)
        if algorithm == "scc":
            nk.components.StronglyConnectedComponents(graph).run()
        elif algorithm == "components":
            nk.components.ParallelConnectedComponents(graph, False).run()
        elif algorithm == "communities":
            nk.community.PLP(graph, maxIterations=10).run()
        else:
            # Both want each edge once.
            graph.removeSelfLoops()
            graph.removeMultiEdges()
            if algorithm == "core":
                nk.centrality.CoreDecomposition(graph).run()
            else:
                nk.centrality.LocalClusteringCoefficient(graph, True).run()

    return run


def cases(size: Size) -> list[Case]:
    """Each algorithm on one worker and two, and who else has it."""
    n = 1 << SCALE[size]
    found = []
    for algorithm in ALGORITHMS:
        at = {"algorithm": algorithm}
        found += [
            Case(
                OURS,
                on_workers(ours, algorithm, workers=workers, total=sum),
                at={**at, "workers": workers},
                data="vertices",
            )
            for workers in (1, 2)
        ]
        if algorithm in ("components", "scc"):
            found.append(Case(SCIPY, alone(in_scipy, algorithm, n), at=at, needs=("scipy",)))
        if algorithm != "labels":
            found.append(
                Case(NETWORKIT, alone(in_networkit, algorithm, n), at=at, needs=("networkit",))
            )
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes("rmat")


BENCHMARK = Benchmark(
    name="algorithms",
    title="Other graph algorithms, R-MAT of scale 17, with building",
    about="From columns of edges in memory to a result for each vertex with edges.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NETWORKIT, SCIPY),
    prepare=prepare,
    input_bytes=input_bytes,
)
