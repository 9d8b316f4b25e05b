"""Patterns of graphs that change, and a graph of messages: how long an epoch of changes takes.

*Uniform* is a graph of a hundred thousand vertices and a million edges that go up, whose
triangles are listed; a round inserts some edges and deletes as many. Rust's is the triangles of
differential dataflow, by half joins of its own. *R-MAT* is a graph of scale 18 of which the last
hundred thousand edges come in epochs of a thousand, and whose triangles are counted; the answer is
that of counting those of the whole graph. *CollegeMsg* is the messages between students in the
order in which they were sent, in a thousand epochs, and the components of the graph that they are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks import graphs, triangles
from benchmarks.harness import rust
from benchmarks.harness.case import (
    OURS,
    RUST,
    At,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)
from benchmarks.harness.memory import peaks
from benchmarks.kept_graphs import EDGES, EDGES_OF_A_VERTEX, VERTICES
from benchmarks.kept_tables import CHANGES, Ints, in_rust, kept
from benchmarks.real_graphs import NUMBA, data
from pointstamp.collections.changing_graphs import components
from pointstamp.containers.convert import arrow_array
from pointstamp.containers.words import LONG, record_batch
from pointstamp.formats.edge_files import read_edges

ROUNDS = {"tiny": (2, 2, 2, 2), "small": (50, 20, 10, 5), "full": (500, 100, 30, 10)}
SCALES = {"tiny": 8, "small": 13, "full": 18}
N_LATE = {"tiny": 200, "small": 10_000, "full": 100_000}
EPOCH = {"tiny": 50, "small": 1_000, "full": 1_000}
MESSAGES = "CollegeMsg/CollegeMsg.txt.gz"
N_EPOCHS = 1_000

UNIFORM, GROWS, SENT = "triangles, uniform", "triangles, R-MAT 18", "components, CollegeMsg"
TRIANGLE = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"


def listed(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """The triangles of edges that go up."""
    return ps.motifs(edges.filter(ps.col("src") < ps.col("dst")), TRIANGLE)


def counted(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """How many there are."""
    return ps.motifs(edges, TRIANGLE).agg(triangles=ps.count())


def upward(ends: list[Ints]) -> list[Ints]:
    """Edges from the lower vertex to the higher."""
    return [np.minimum(*ends), np.maximum(*ends)]


def epochs(
    build: Any, first: tuple[Ints, Ints], rest: tuple[Ints, Ints], size: int
) -> Iterator[tuple[float, list[Any]]]:
    """Of each epoch of so many edges: its seconds, and what is there after it."""
    with ps.View(build, edges="src long, dst long") as view:
        view.insert("edges", _columns(*first))
        view.advance()
        gc.collect()
        made = [
            _columns(rest[0][at : at + size], rest[1][at : at + size])
            for at in range(0, len(rest[0]), size)
        ]
        for edges in made:
            began = perf_counter()
            view.insert("edges", edges)
            view.advance()
            yield perf_counter() - began, view.snapshot() if edges is made[-1] else []


def _columns(*ends: Ints) -> Any:
    arrays = [arrow_array(np.ascontiguousarray(column)) for column in ends]
    return record_batch([(name, LONG, False) for name in EDGES["edges"]], arrays)


def growing(n_late: int, size: int) -> Measure:
    """Seconds of each epoch of the R-MAT graph's last edges; the triangles at the end."""

    def measure(effort: Effort) -> Reading:
        sources, targets = graphs.load("rmat")
        at = len(sources) - n_late
        told = list(
            epochs(counted, (sources[:at], targets[:at]), (sources[at:], targets[at:]), size)
        )
        return Reading([s for s, _ in told], peaks(), answer=told[-1][1][0][0])

    return measure


def at_once(n_vertices: int) -> Measure:
    """Seconds of counting the triangles of the whole graph from scratch, by marks."""

    def measure(effort: Effort) -> Reading:
        run = triangles.in_marks("rmat", n_vertices)
        run()
        began = perf_counter()
        answer = run()
        return Reading([perf_counter() - began], peaks(), answer=answer)

    return measure


def messages(effort: Effort) -> Reading:
    """Seconds of each epoch of the messages; how many components there are in the end."""
    batches = list(read_edges(str(data() / MESSAGES)).batches())
    table = [np.concatenate([batch.column(i).to_numpy() for batch in batches]) for i in (0, 1)]
    size = -(-len(table[0]) // N_EPOCHS)
    none = np.empty(0, np.int64)

    def build(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
        return components(edges)

    told = list(epochs(build, (none, none), (table[0], table[1]), size))
    return Reading([s for s, _ in told], peaks(), answer=len({label for _, label in told[-1][1]}))


def _absent() -> str:
    return "" if (data() / MESSAGES).exists() else f"no {MESSAGES} in POINTSTAMP_DATA"


def prepare(size: Size) -> None:
    """The R-MAT graph, its edges from the lower vertex."""
    graphs.save("rmat", graphs.rmat(SCALES[size]))


def cases(size: Size) -> list[Case]:
    """The uniform graph by changes, then the two that grow."""
    n_vertices = VERTICES[size]
    n_edges = EDGES_OF_A_VERTEX * n_vertices
    found = []
    for changes, rounds in zip(CHANGES, ROUNDS[size], strict=True):
        at: At = {"kept": UNIFORM, "in and out": changes}
        rounds_of_ours = max(1, min(rounds, n_edges // changes // 10))
        ours = kept(listed, EDGES, n_edges, changes, rounds_of_ours, n_vertices, of=upward)
        peer = in_rust("triangles", n_edges, changes, rounds, n_vertices)
        found.append(Case(OURS, ours, at=at, samples=3))
        found.append(Case(f"{RUST} differential", peer, at=at, samples=3, absent=rust.absent))
    at = {"kept": GROWS, "in and out": EPOCH[size]}
    found.append(Case(OURS, growing(N_LATE[size], EPOCH[size]), at=at, data=GROWS))
    once = at_once(1 << SCALES[size])
    found.append(Case(f"{NUMBA}, all of it", once, at=at, data=GROWS, needs=("numba",)))
    found.append(Case(OURS, messages, at={"kept": SENT, "in and out": 60}, absent=_absent))
    return found


BENCHMARK = Benchmark(
    name="kept_motifs",
    title="Changing graphs: incremental triangles, and components of messages",
    about="From giving an epoch's edges to knowing what they change. Of the graphs that grow a "
    "sample is an epoch.",
    quantity=Quantity("us per epoch", 1e6),
    cases=cases,
    prepare=prepare,
    baselines=(f"{RUST} differential",),
    targets=(
        Target({"kept": UNIFORM, "in and out": 1}, 100, 50),
        Target({"kept": UNIFORM, "in and out": 100}, 3_000, 1_000),
        Target({"kept": UNIFORM, "in and out": 1_000}, 20_000, 7_000),
        Target({"kept": GROWS, "in and out": 1_000}, 25_000, 10_000),
    ),
    tells_p99=True,
)
