"""Integers counted: ten million of a million kinds.

NumPy columns in memory when the clock starts; counts at the worker of the integer
when it stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.counting import counted
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers import Arrays

RECORDS = {"tiny": 10_000, "small": 1_000_000, "full": 10_000_000}
BATCH = 65_536

NUMPY, ARROW, DUCKDB, POLARS = "NumPy, unique", "pyarrow", "DuckDB", "Polars"


def prepare(size: Size) -> None:
    """Kinds that are anywhere in 64 bits, each as likely."""
    rng = np.random.default_rng(7)
    kinds = rng.integers(-(2**62), 2**62, RECORDS[size] // 10)
    inputs.save("integers", x=kinds[rng.integers(0, len(kinds), RECORDS[size])])


def integers(worker: ps.Worker) -> Run:
    """Count this worker's share; (kinds, all records) that are its own."""
    found: list[Any] = []
    x = inputs.load("integers", "x", worker.index, worker.peers)
    with worker.dataflow("integers") as scope:
        batches = (Arrays(x=x[start : start + BATCH]) for start in range(0, len(x), BATCH))
        counts = counted(scope.batches_to_stream(batches), "x", _count, _add_up)
        counts.inspect_batch(lambda time, batch: found.append(batch))

    def run() -> tuple[int, int]:
        worker.run()
        return sum(map(len, found)), sum(int(batch["n"].sum()) for batch in found)

    return run


def _count(batches: list[Arrays]) -> Arrays:
    keys = np.sort(np.concatenate([batch["x"] for batch in batches]))
    starts = _starts(keys)
    return Arrays(x=keys[starts], n=np.diff(starts, append=len(keys)))


def _add_up(batches: list[Arrays]) -> Arrays:
    keys = np.concatenate([batch["x"] for batch in batches])
    order = np.argsort(keys)
    keys = keys[order]
    starts = _starts(keys)
    counts = np.concatenate([batch["n"] for batch in batches])[order]
    return Arrays(x=keys[starts], n=np.add.reduceat(counts, starts))


def _starts(keys: Any) -> Any:
    first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return np.flatnonzero(first)


def in_numpy() -> Run:
    """Sort and compare neighbours, which is what it does."""
    x = inputs.load("integers", "x")

    def run() -> list[int]:
        kinds, counts = np.unique(x, return_counts=True)
        return [len(kinds), int(counts.sum())]

    return run


def in_arrow() -> Run:
    """Arrow's grouped count, on all cores."""
    import pyarrow as pa

    table = pa.table({"x": inputs.load("integers", "x")})

    def run() -> list[int]:
        counts = table.group_by("x").aggregate([([], "count_all")])
        return [len(counts), int(np.sum(counts["count_all"]))]

    return run


def in_duckdb() -> Run:
    """SQL over the same column, on all cores."""
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    connection.register("integers", pa.table({"x": inputs.load("integers", "x")}))

    def run() -> list[int]:
        query = "select x, count(*) as n from integers group by x"
        counts = connection.execute(query).to_arrow_table()
        return [len(counts), int(np.sum(counts["n"]))]

    return run


def in_polars() -> Run:
    """Polars over the same column, on all cores."""
    import polars as pl

    frame = pl.DataFrame({"x": inputs.load("integers", "x")})

    def run() -> list[int]:
        counts = frame.group_by("x").len()
        return [len(counts), int(counts["len"].sum())]

    return run


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four, and engines on columns."""
    n = RECORDS[size] / 1e7
    return [
        *(
            Case(
                OURS, on_workers(integers, workers=w, total=_totals), n, {"workers": w}, "integers"
            )
            for w in (1, 2, 4)
        ),
        Case(NUMPY, alone(in_numpy), n, {}, "integers"),
        Case(ARROW, alone(in_arrow), n, {}, "integers"),
        Case(DUCKDB, alone(in_duckdb), n, {}, "integers", ("duckdb",)),
        Case(POLARS, alone(in_polars), n, {}, "integers", ("polars",)),
    ]


def _totals(answers: list[tuple[int, int]]) -> list[int]:
    return [sum(column) for column in zip(*answers, strict=True)]


BENCHMARK = Benchmark(
    name="integers",
    title="Ten million integers of a million kinds, counted",
    about="From NumPy columns in memory to a count for each, on the worker of the integer.",
    quantity=Quantity("s for 10 M integers"),
    cases=cases,
    baselines=(NUMPY,),
    targets=(Target({"workers": 1}, 0.6, 0.25),),
    elsewhere=(
        Elsewhere("Rust timely", {"workers": 1}, 1.5),
        Elsewhere("Rust timely", {"workers": 2}, 0.74),
        Elsewhere("NumPy", {}, 0.29),
        Elsewhere("pyarrow", {}, 0.93),
    ),
    prepare=prepare,
)
