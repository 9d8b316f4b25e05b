"""Union-find: components of a graph whose edges go by once.

Each worker keeps forests of the edges that it has, and one worker makes one forest of them. The
answer of all contenders is how many edges connect two trees, which is the number of vertices
less that of components.

Source: timely-dataflow `examples/unionfind.rs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.harness import inputs, rust
from benchmarks.harness.case import OURS, At, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers.convert import numbers

EDGES = {"tiny": 1_000, "small": 500_000, "full": 10_000_000}
FEW = 20
"""Rows are a graph of so many times fewer edges, and vertices."""

SCIPY, NETWORKIT = "SciPy", "NetworKit"


def prepare(size: Size) -> None:
    """Two edges for each vertex, so that there are many components, and one large one."""
    for name, n_edges in (("edges", EDGES[size]), ("few", EDGES[size] // FEW)):
        graphs.save(name, graphs.uniform(n_edges // 2, n_edges))


def merges(worker: ps.Worker) -> Run:
    """Columns, by the package's components."""
    from pointstamp.graph import connected_components

    return graphs.solving(worker, "edges", connected_components, _merges)


def _merges(batches: list[Any]) -> int:
    """Of these vertices, those that are not the least of their component."""
    return sum(
        int((numbers(batch["vertex"]) != numbers(batch["component"])).sum()) for batch in batches
    )


def merges_of_rows(worker: ps.Worker) -> Run:
    """Rows, by an operator of the user's own: the program of timely's example."""
    n_merges = 0
    sources, targets = graphs.load("few", worker.index, worker.peers)
    edges = list(zip(sources.tolist(), targets.tolist(), strict=True))

    def note(time: int, batch: list[Any]) -> None:
        nonlocal n_merges
        n_merges += len(batch)

    def run() -> int:
        with worker.dataflow("union-find") as scope:
            stream = scope.to_stream(edges)
            here = stream.unary(ps.Pipeline(), "Here", union_find)
            of_all = here.unary(ps.Exchange(lambda edge: 0), "OfAll", union_find)
            of_all.inspect_batch(note)
        worker.run()
        return n_merges

    return run


def union_find(capability: ps.Capability, info: Any) -> Any:
    """Passes on the edges that connect two trees, by rank."""
    capability.drop()
    roots: dict[int, int] = {}
    ranks: dict[int, int] = {}

    def root(vertex: int) -> int:
        while (above := roots.setdefault(vertex, vertex)) != vertex:
            vertex = above
        return vertex

    def joins(edge: tuple[int, int]) -> bool:
        low, high = root(edge[0]), root(edge[1])
        if low == high:
            return False
        ranks_of = ranks.get(low, 0), ranks.get(high, 0)
        if ranks_of[0] > ranks_of[1]:
            low, high = high, low
        roots[low] = high
        if ranks_of[0] == ranks_of[1]:
            ranks[high] = ranks_of[1] + 1
        return True

    def logic(input: Any, output: Any) -> None:
        for time, batch in input:
            with output.session(time) as session:
                session.give_many([edge for edge in batch if joins(edge)])

    return logic


def in_scipy(n: int) -> Run:
    """Its components, of a sparse matrix."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    sources, targets = graphs.load("edges")

    def run() -> int:
        matrix = csr_array((np.ones(len(sources), np.int8), (sources, targets)), (n, n))
        return n - int(connected_components(matrix, directed=False)[0])

    return run


def in_networkit(n: int) -> Run:
    """Its components, on all cores."""
    import networkit as nk

    edges = graphs.load("edges")

    def run() -> int:
        graph = nk.GraphFromCoo(edges, n=n, directed=False)
        components = nk.components.ParallelConnectedComponents(graph, False)
        components.run()
        return n - int(components.numberOfComponents())

    return run


def cases(size: Size) -> list[Case]:
    """Ours on one worker and two; rows; others."""
    n = EDGES[size]

    def ours(program: Any, workers: int, n: int, **at: str) -> Case:
        measure = on_workers(program, workers=workers, total=sum)
        return Case(OURS, measure, n, {"workers": workers, **at}, f"{n} edges")

    return [
        *(ours(merges, workers, n) for workers in (1, 2)),
        *(ours(merges_of_rows, workers, n // FEW, of="rows") for workers in (1, 2)),
        *rust.race(
            *("unionfind", "of", *graphs.raw("edges")),
            amount=lambda form: n,
            data=f"{n} edges",
            answer=rust.number,
            told="all",
        ),
        Case(SCIPY, alone(in_scipy, n // 2), n, {}, f"{n} edges", ("scipy",)),
        Case(NETWORKIT, alone(in_networkit, n // 2), n, {}, f"{n} edges", ("networkit",)),
    ]


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes("few" if at.get("of") == "rows" else "edges")


BENCHMARK = Benchmark(
    name="union_find",
    title="Union-find: ten million edges of five million vertices",
    about="From edges in memory to a spanning forest on one worker; of columns, on to a component "
    "for each vertex. Rows are a twentieth of the edges.",
    quantity=Quantity("M edges/s", 1e-6, is_rate=True),
    cases=cases,
    prepare=prepare,
    input_bytes=input_bytes,
)
