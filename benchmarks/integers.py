"""Integers counted: ten million of a million kinds.

NumPy columns in memory when the clock starts, or for rows Python's integers; counts at the
worker of the integer when it stops. As of words, they are counted before the exchange or after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness import inputs, rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.words import AFTER, BEFORE, FEW, rows_after, rows_before
from pointstamp.containers import Arrays
from pointstamp.containers.convert import numbers

RECORDS = {"tiny": 10_000, "small": 1_000_000, "full": 10_000_000}
BATCH = 65_536
COUNT = [("x", "count")]

NUMPY, ARROW, DUCKDB, POLARS = "NumPy, unique", "pyarrow", "DuckDB", "Polars"


def prepare(size: Size) -> None:
    """Kinds that are anywhere in 64 bits, each as likely."""
    rng = np.random.default_rng(7)
    kinds = rng.integers(-(2**62), 2**62, RECORDS[size] // 10)
    inputs.save("integers", x=kinds[rng.integers(0, len(kinds), RECORDS[size])])


def integers(worker: ps.Worker, counted: Callable[[Any], Any]) -> Run:
    """Count this worker's share; (kinds, all records) that are its own."""
    found: list[Any] = []
    x = inputs.load("integers", "x", worker.index, worker.peers)
    batches = [Arrays(x=x[start : start + BATCH]) for start in range(0, len(x), BATCH)]

    def run() -> tuple[int, int]:
        with worker.dataflow("integers") as scope:
            counts = counted(scope.batches_to_stream(batches))
            counts.inspect_batch(lambda time, batch: found.append(batch))
        worker.run()
        n = sum(int(numbers(batch["x_count"]).sum()) for batch in found)
        return sum(map(len, found)), n

    return run


def integers_as_rows(worker: ps.Worker, counted: Callable[[Any], Any]) -> Run:
    """The same with Python's integers, a tenth of them."""
    found: list[Any] = []
    few = inputs.load("integers", "x", 0, FEW)
    x = few[len(few) * worker.index // worker.peers : len(few) * (worker.index + 1) // worker.peers]
    batches = [x[start : start + BATCH].tolist() for start in range(0, len(x), BATCH)]

    def run() -> tuple[int, int]:
        with worker.dataflow("integers") as scope:
            counts = counted(scope.batches_to_stream(batches))
            counts.inspect_batch(lambda time, batch: found.extend(batch))
        worker.run()
        return len(found), sum(n for _, n in found)

    return run


def before(stream: Any) -> Any:
    """Columns: what aggregates by name do by themselves."""
    return stream.aggregate(COUNT, key="x")


def after(stream: Any) -> Any:
    """Columns: they are at their worker already when they are counted."""
    return stream.exchange("x").aggregate(COUNT, key="x")


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
    """Ours on one worker, two and four, engines on columns, and rows on a tenth."""
    n = RECORDS[size]

    def ours(program: Any, how: Any, workers: int, n: int, **at: str) -> Case:
        measure = on_workers(program, how, workers=workers, total=_totals)
        return Case(OURS, measure, n / 1e7, {"workers": workers, **at}, f"{n} integers")

    return [
        *(ours(integers, before, workers, n, **BEFORE) for workers in (1, 2, 4)),
        *(ours(integers_as_rows, rows_before, w, n // FEW, **BEFORE, of="rows") for w in (1, 2)),
        *(ours(integers, after, workers, n, **AFTER) for workers in (1, 2)),
        *(ours(integers_as_rows, rows_after, w, n // FEW, **AFTER, of="rows") for w in (1, 2)),
        *rust.race(
            *("ints", "fx", partial(inputs.raw, "integers", "x")),
            amount=lambda form: n / 1e7,
            at=AFTER,
            data=f"{n} integers",
            answer=rust.pair,
        ),
        Case(NUMPY, alone(in_numpy), n / 1e7, {}, f"{n} integers"),
        Case(ARROW, alone(in_arrow), n / 1e7, {}, f"{n} integers"),
        Case(DUCKDB, alone(in_duckdb), n / 1e7, {}, f"{n} integers", ("duckdb",)),
        Case(POLARS, alone(in_polars), n / 1e7, {}, f"{n} integers", ("polars",)),
    ]


def _totals(answers: list[tuple[int, int]]) -> list[int]:
    return [sum(column) for column in zip(*answers, strict=True)]


BENCHMARK = Benchmark(
    name="integers",
    title="Counting ten million integers, a million distinct",
    about="From NumPy columns in memory to a count for each, on the worker of the integer. Rows "
    "are a tenth of them.",
    quantity=Quantity("s for 10 M integers"),
    cases=cases,
    baselines=(NUMPY,),
    targets=(Target({**BEFORE, "workers": 1}, 0.6, 0.25),),
    prepare=prepare,
)
