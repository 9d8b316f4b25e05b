"""Triangles of real graphs, directed and not, from columns of edges on.

The graphs are not part of the repository: `POINTSTAMP_DATA` says where they are.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

import pointstamp as ps
from benchmarks import graphs
from benchmarks.directed_triangles import counting
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, At, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.triangles import in_networkit, n_told

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt.gz",
    "soc-sign-bitcoin": "soc-sign-bitcoin-otc/soc-sign-bitcoinotc.csv.gz",
    "facebook": "facebook_combined/facebook_combined.txt.gz",
    "p2p-Gnutella24": "p2p-Gnutella24/p2p-Gnutella24.txt.gz",
}
CHOSEN = {"tiny": 1, "small": 2, "full": 4}

NUMBA, NETWORKIT = "Numba, one thread", "NetworKit"

IN_TURN = 5
"""Samples in each turn: the first ones of some milliseconds differ more than those of seconds."""


def data() -> Path:
    """The folder of real graphs, which may not be there."""
    return Path(os.environ.get("POINTSTAMP_DATA") or ROOT.parent / "shared" / "data")


def chosen(size: Size) -> list[str]:
    """The names of the graphs."""
    return list(FILES)[: CHOSEN[size]]


def prepare(size: Size) -> None:
    """Read the files; vertices are numbered from 0, in order."""
    from pointstamp.formats.edge_files import read_edges

    for name in chosen(size):
        path = data() / FILES[name]
        if not path.exists():
            raise FileNotFoundError(f"no {FILES[name]} in POINTSTAMP_DATA: it is needed here")
        ends = [
            np.concatenate(c) for c in zip(*map(_columns, read_edges(path).batches()), strict=True)
        ]
        _, numbers = np.unique(np.concatenate(ends), return_inverse=True)
        sources, targets = np.split(numbers, 2)
        for form, directed in (("directed", True), ("undirected", False)):
            edges = graphs.simple(sources, targets, directed=directed)
            graphs.save(f"{name}-{form}", edges)


def _columns(batch) -> tuple:
    return tuple(np.asarray(column) for column in batch.columns[:2])


def ours(worker: ps.Worker, name: str, form: str) -> Run:
    """How many triangles, or motifs, this worker knows of."""
    return graphs.solving(worker, f"{name}-{form}", counting(form), n_told)


def in_numba(name: str, form: str) -> Run:
    """Merges sorted rows."""
    from benchmarks import compiled

    edges = graphs.load(f"{name}-{form}")
    n = int(max(map(np.max, edges))) + 1
    count = compiled.count_triangles if form == "undirected" else compiled.count_directed
    return lambda: int(count(*edges, n))


def cases(size: Size) -> list[Case]:
    """Each graph in both forms, on one worker and two."""
    found = []
    for name in chosen(size):
        for form in ("undirected", "directed"):
            at, data = {"graph": name, "form": form}, f"{name}, {form}"
            found += [
                Case(
                    OURS,
                    on_workers(ours, name, form, workers=workers, total=sum),
                    at={**at, "workers": workers},
                    data=data,
                    in_turns=True,
                    turn_samples=IN_TURN,
                )
                for workers in (1, 2)
            ]
            peer = partial(Case, at=at, data=data, in_turns=True, turn_samples=IN_TURN)
            found.append(peer(NUMBA, alone(in_numba, name, form), needs=("numba",)))
            if form == "undirected":
                found.append(peer(NETWORKIT, alone(_networkit, name), needs=("networkit",)))
    return found


def _networkit(name: str) -> Run:
    n = int(max(map(np.max, graphs.load(f"{name}-undirected")))) + 1
    return in_networkit(f"{name}-undirected", n)


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"{at['graph']}-{at['form']}")


BENCHMARK = Benchmark(
    name="real_graphs",
    title="Triangles of real graphs, undirected and directed",
    about="Graphs of 35,000 to 100,000 edges: the overhead before the kernels start.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(NUMBA,),
    prepare=prepare,
    input_bytes=input_bytes,
)
