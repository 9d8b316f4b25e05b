"""Graphs for the benchmarks: made from a seed, saved as columns, read by worker.

R-MAT graphs have few vertices with very many neighbours, as real ones do: edge
factor 16 and probabilities .57, .19, .19, .05; loops and repeated edges are removed.
Uniform graphs have none.

Source: D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a recursive model for graph
mining", SDM 2004; the parameters are those of the Graph 500 benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import pointstamp as ps
from benchmarks.harness import inputs
from pointstamp.containers import Arrays

Ints = npt.NDArray[np.int64]

EDGE_FACTOR = 16
BATCH = 65_536


def rmat(scale: int, *, directed: bool = False) -> tuple[Ints, Ints]:
    """The edges of an R-MAT graph, each once; without directions, from the lower vertex."""
    rng = np.random.default_rng(scale)
    n = EDGE_FACTOR << scale
    sources, targets = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for _ in range(scale):
        drawn = rng.random(n)
        down = drawn >= 0.57 + 0.19
        right = ((drawn >= 0.57) & ~down) | (drawn >= 0.57 + 0.19 + 0.19)
        sources = 2 * sources + down
        targets = 2 * targets + right
    # Vertices are renamed, so that low numbers do not mean high degrees.
    names = rng.permutation(1 << scale)
    return simple(names[sources], names[targets], directed=directed)


def uniform(n_vertices: int, n_edges: int) -> tuple[Ints, Ints]:
    """Directed edges between vertices drawn uniformly, each edge once."""
    rng = np.random.default_rng(n_vertices)
    sources, targets = rng.integers(0, n_vertices, (2, n_edges))
    return simple(sources, targets, directed=True)


def simple(sources: Ints, targets: Ints, *, directed: bool) -> tuple[Ints, Ints]:
    """The edges without loops and repetitions, in random order."""
    if not directed:
        sources, targets = np.minimum(sources, targets), np.maximum(sources, targets)
    packed = np.unique((sources << 32 | targets)[sources != targets])
    np.random.default_rng(0).shuffle(packed)
    return packed >> 32, packed & 0xFFFFFFFF


def save(name: str, edges: tuple[Ints, Ints]) -> None:
    """Write a graph where the cases of this run find it."""
    inputs.save(name, src=edges[0], dst=edges[1])


def load(name: str, index: int = 0, peers: int = 1) -> tuple[Ints, Ints]:
    """The edges, or the share of them that worker `index` of `peers` has."""
    return inputs.load(name, "src", index, peers), inputs.load(name, "dst", index, peers)


def raw(name: str) -> tuple[Callable[[], Path], Callable[[], Path]]:
    """Where a program in Rust finds the columns, in a run in which they are there."""
    return partial(inputs.raw, name, "src"), partial(inputs.raw, name, "dst")


def batches(name: str, worker: ps.Worker) -> Iterator[Arrays]:
    """A worker's share, in batches; read at once, before the clock starts."""
    sources, targets = load(name, worker.index, worker.peers)
    return (
        Arrays(src=sources[start : start + BATCH], dst=targets[start : start + BATCH])
        for start in range(0, len(sources), BATCH)
    )


def solving(worker: ps.Worker, name: str, build: Any, tell: Any, *, as_rows: bool = False) -> Any:
    """What builds `build(stream of edges)` on a graph and runs it, and gives `tell(batches)`.

    A source begins as soon as it is built, so that is done when the clock runs.
    """
    found: list[Any] = []
    edges: list[Any] = list(batches(name, worker))
    if as_rows:
        edges = [list(zip(b["src"].tolist(), b["dst"].tolist(), strict=True)) for b in edges]

    def run() -> Any:
        with worker.dataflow("graph") as scope:
            build(scope.batches_to_stream(edges)).inspect_batch(lambda time, b: found.append(b))
        worker.run()
        return tell(found)

    return run
