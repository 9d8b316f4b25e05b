"""Large tables that change, and small epochs: what a round costs where there is much, or little.

Each case is a round of so many inserts and as many deletes, from giving them to knowing what they
change, beside what was loaded before: ten million records counted by key, or joined with ten
million; a million values of one group, of which the greatest goes; the degrees of a graph of ten
million edges, and how often each is there; breadth-first search on that graph. *Epochs of ten* are
records that come, are indexed, and are counted by key, on one worker and on two.
"""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
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
from benchmarks.harness.measure import Run, on_workers
from benchmarks.harness.memory import peaks
from benchmarks.kept_graphs import EDGES, bfs
from benchmarks.kept_tables import count, in_rust, join, kept

RECORDS = {"tiny": 1_000, "small": 100_000, "full": 10_000_000}
GROUP = {"tiny": 1_000, "small": 100_000, "full": 1_000_000}
SHARE = {"tiny": 50, "small": 10, "full": 1}
"""Small sizes have so many times fewer rounds."""
EPOCHS = {"tiny": 20, "small": 500, "full": 3_000}
EDGES_OF_A_VERTEX = 10

COUNT, JOIN, DEGREES = "a count by key", "a join", "degrees, and how often"
GREATEST, SEARCH, TEN = "the greatest of a group", "breadth-first search", "epochs of ten"


def degrees(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """How many vertices have each number of edges out."""
    by_vertex = edges.group_by("src").agg(degree=ps.count())
    return by_vertex.group_by("degree").agg(vertices=ps.count())


def greatest(n_records: int, rounds: int) -> Measure:
    """Seconds of deleting the greatest value of one group."""

    def measure(effort: Effort) -> Reading:
        seconds = []
        for _ in range(effort.samples + 1):
            values = np.random.default_rng(1).permutation(n_records).tolist()
            build = lambda scope, t: t.group_by("k").agg(v=ps.max("v"))  # noqa: E731
            with ps.View(build, t="k long, v long") as view:
                view.insert("t", [(0, value) for value in values])
                view.advance()
                gc.collect()
                sample = []
                for value in range(n_records - 1, n_records - 1 - rounds, -1):
                    began = perf_counter()
                    view.delete("t", [(0, value)])
                    changes = view.advance()
                    sample.append(perf_counter() - began)
                    assert changes[0] == ((0, value - 1), 1)
                seconds.append(median(sample))
        return Reading(seconds[1:], peaks())

    return measure


def epochs_of_ten(worker: ps.Worker, n_epochs: int) -> Run:
    """Ten records from the first worker, indexed and counted by key; how many there are."""
    choose = np.random.default_rng(1)
    epochs = [
        list(map(tuple, rows.tolist())) for rows in choose.integers(0, 100, (n_epochs, 10, 2))
    ]
    seen: list[Any] = []

    with worker.dataflow("epochs of ten") as scope:
        updates, collection = scope.new_collection("k long, v long")
        collection.arrange("k")
        result = collection.group_by("k").count()
        probe = result.each_batch(lambda time, batch: seen.append(batch.rows)).probe()

    def run() -> int:
        for epoch, rows in enumerate(epochs):
            if worker.index == 0:
                updates.insert(rows)
            updates.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(updates.time))
        return sum(int(rows[:, 1] @ rows[:, -1]) for rows in seen)

    return run


def cases(size: Size) -> list[Case]:
    """Each question with one change each way and more."""
    n_records, share = RECORDS[size], SHARE[size]

    def many(rounds: int, changes: int) -> int:
        return max(1, min(rounds // share, n_records // changes // 10))

    questions: list[tuple[str, Any, dict[str, list[str]], str, list[tuple[int, int]]]] = [
        (COUNT, count, {"a": ["k"]}, "count", [(1, 1_000), (100, 100), (1_000, 50)]),
        (
            *(JOIN, join, {"a": ["k", "x"], "b": ["k", "y"]}, ""),
            [(1, 500), (1_000, 50), (100_000, 3)],
        ),
    ]
    found = []
    for question, build, inputs, program, each in questions:
        for changes, rounds in each:
            if changes > n_records:
                continue
            at: At = {"kept": question, "in and out": changes}
            ours = kept(build, inputs, n_records, changes, many(rounds, changes))
            found.append(Case(OURS, ours, at=at, samples=3))
            if program:
                peer = in_rust(program, n_records, changes, rounds)
                who = f"{RUST} differential"
                found.append(Case(who, peer, at=at, samples=3, absent=rust.absent))
    n_vertices = n_records // EDGES_OF_A_VERTEX
    graphs = [(DEGREES, degrees, 500, 100), (SEARCH, bfs, 1, 500)]
    for question, build, changes, rounds in graphs:
        ours = kept(build, EDGES, n_records, changes, many(rounds, changes), n_vertices)
        found.append(Case(OURS, ours, at={"kept": question, "in and out": changes}, samples=3))
    at = {"kept": GREATEST, "in and out": 1}
    found.append(Case(OURS, greatest(GROUP[size], max(1, 500 // share)), at=at, samples=3))
    for workers in (1, 2):
        n_epochs = EPOCHS[size]
        measure = on_workers(epochs_of_ten, n_epochs, workers=workers, total=sum)
        at = {"kept": TEN, "in and out": 10, "workers": workers}
        found.append(Case(OURS, measure, n_epochs, at=at, data=TEN))
    return found


BENCHMARK = Benchmark(
    name="kept_large",
    title="Large tables that change, and small epochs",
    about="From the input changes of a round to the changes of the result.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(f"{RUST} differential",),
    targets=(
        Target({"kept": COUNT, "in and out": 1}, 13, 8),
        Target({"kept": COUNT, "in and out": 100}, 200, 100),
        Target({"kept": COUNT, "in and out": 1_000}, 1_500, 700),
        Target({"kept": JOIN, "in and out": 1}, 16, 8),
        Target({"kept": JOIN, "in and out": 1_000}, 800, 400),
        Target({"kept": JOIN, "in and out": 100_000}, 80_000, 40_000),
        Target({"kept": DEGREES, "in and out": 500}, 1_250, 667),
        Target({"kept": SEARCH, "in and out": 1}, 75, 45),
        Target({"kept": GREATEST, "in and out": 1}, 20, 10),
        Target({"kept": TEN, "in and out": 10, "workers": 1}, 20, 12),
        Target({"kept": TEN, "in and out": 10, "workers": 2}, 55, 35),
    ),
)
