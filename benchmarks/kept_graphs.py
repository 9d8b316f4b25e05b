"""Graphs that change: components and breadth-first search, kept up to date in loops.

A graph of ten directed edges to a vertex, both ends drawn at random, is there when the clock
starts. A round inserts some edges and deletes as many, and is over when the changes of the result
are out. What is told is the median of the rounds of a sample. Rust's components are those of
differential dataflow, whose vertices have 32 bits and ours 64; its labels enter by their size,
too.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks.harness import rust
from benchmarks.harness.case import OURS, RUST, At, Benchmark, Case, Quantity, Size, Target
from benchmarks.kept_tables import CHANGES, in_rust, kept
from pointstamp.collections import changing_graphs as graphs

VERTICES = {"tiny": 100, "small": 10_000, "full": 100_000}
ROUNDS = {"tiny": (2, 2, 2, 2), "small": (50, 20, 10, 5), "full": (300, 100, 30, 10)}
EDGES_OF_A_VERTEX = 10

EDGES = {"edges": ["src", "dst"]}


def components(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """The least vertex of each one's component."""
    return graphs.components(edges)


def bfs(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """The steps to each vertex from vertex 0, which has an edge at any time."""
    roots = edges.filter(ps.col("src") == 0).select(node="src").distinct()
    return graphs.bfs(edges, roots)


QUESTIONS: dict[str, tuple[Any, str | None]] = {
    "components": (components, "cc"),
    "breadth-first search": (bfs, None),
}


def cases(size: Size) -> list[Case]:
    """Both questions, with one to a thousand edges each way."""
    n_vertices = VERTICES[size]
    n_edges = EDGES_OF_A_VERTEX * n_vertices
    found = []
    for question, (build, program) in QUESTIONS.items():
        for changes, rounds in zip(CHANGES, ROUNDS[size], strict=True):
            at: At = {"kept": question, "in and out": changes}
            rounds_of_ours = max(1, min(rounds, n_edges // changes // 10))
            ours = kept(build, EDGES, n_edges, changes, rounds_of_ours, n_vertices)
            found.append(Case(OURS, ours, at=at, samples=3))
            if program is not None:
                peer = in_rust(program, n_edges, changes, rounds, n_vertices)
                found.append(
                    Case(f"{RUST} differential", peer, at=at, samples=3, absent=rust.absent)
                )
    return found


BENCHMARK = Benchmark(
    name="kept_graphs",
    title="Changing graphs: incremental components and breadth-first search",
    about="From inserting some edges and deleting as many to knowing what that changes; the "
    "median of the rounds of a sample.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(f"{RUST} differential",),
    targets=(
        Target({"kept": "components", "in and out": 1}, 150, 80),
        Target({"kept": "components", "in and out": 100}, 3_000, 1_500),
        Target({"kept": "components", "in and out": 1_000}, 25_000, 12_000),
        Target({"kept": "breadth-first search", "in and out": 1}, 65, 40),
    ),
)
