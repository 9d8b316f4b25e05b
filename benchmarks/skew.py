"""Skew: a star with a million leaves, whose hub no single worker should be left with.

Each leaf also leads to the next, so that there is a triangle for each pair of
neighbours on the rim, and all of them are at the hub.
"""

from __future__ import annotations

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.directed_triangles import counting
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, At, Benchmark, Case, Quantity, Ratio, Size
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.triangles import n_told

LEAVES = {"tiny": 1_000, "small": 100_000, "full": 1_000_000}

NUMBA = "Numba, one thread"


def prepare(size: Size) -> None:
    """Half of the leaves lead to the hub, and it leads to the other half."""
    n = LEAVES[size]
    leaves = 1 + np.random.default_rng(7).permutation(n)
    hub, n_in = np.zeros(n, np.int64), n // 2
    sources = np.concatenate([leaves[:n_in], hub[n_in:], leaves[:-1]])
    targets = np.concatenate([hub[:n_in], leaves[n_in:], leaves[1:]])
    order = np.random.default_rng(8).permutation(len(sources))
    graphs.save("star", (sources[order], targets[order]))


def ours(worker: ps.Worker, form: str) -> Run:
    """How many this worker knows of."""
    return graphs.solving(worker, "star", counting(form), n_told)


def in_numba(form: str, n: int) -> Run:
    """Merges sorted rows: the hub's, too, for each leaf that leads to it."""
    from benchmarks import compiled

    edges = graphs.load("star")
    count = compiled.count_triangles if form == "undirected" else compiled.count_directed
    return lambda: int(count(*edges, n + 1))


def cases(size: Size) -> list[Case]:
    """On one worker, two and four, as a graph without directions and with."""
    found = []
    for form in ("undirected", "directed"):
        at = {"form": form}
        found += [
            Case(
                OURS,
                on_workers(ours, form, workers=workers, total=sum),
                at={**at, "workers": workers},
                data=form,
            )
            for workers in (1, 2, 4)
        ]
        # Without an order by degree, a merge with the hub's row costs a million each time.
        n = LEAVES[size]
        if form == "undirected" or n <= 10_000:
            in_loops = alone(in_numba, form, n)
            found.append(Case(NUMBA, in_loops, at=at, data=form, needs=("numba",)))
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes("star")


BENCHMARK = Benchmark(
    name="skew",
    title="A star with a million leaves: triangles at one vertex",
    about="Two million edges, half of them at one vertex. Peak memory is per worker.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(NUMBA,),
    prepare=prepare,
    input_bytes=input_bytes,
    memory=(Ratio({"form": "undirected", "workers": 1}, 6.0),),
)
