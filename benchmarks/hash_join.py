"""A hash join of two streams: five million records on each side, a million keys, 25 million pairs.

Both sides come in batches, in turns. Each batch is joined with what has come of the
other side and kept for what will come, so that every pair is found once, as soon as
both are there. Each pair is read. Records are made before the clock starts. Engines join
both sides as a whole.
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
from pointstamp.containers import Arrays

RECORDS = {"tiny": 20_000, "small": 1_000_000, "full": 10_000_000}
FEW = 20
"""Rows are a part of the records, and of the keys, so that each record has as many partners."""
BATCH = 100_000

DUCKDB, ARROW, POLARS = "DuckDB", "pyarrow", "Polars"


def prepare(size: Size) -> None:
    """Half of the records on each side; a tenth as many keys, each as likely."""
    rng = np.random.default_rng(7)
    for some, n in (("", RECORDS[size]), ("few-", RECORDS[size] // FEW)):
        for side in ("left", "right"):
            key, value = rng.integers(0, n // 10, n // 2), rng.integers(0, n, n // 2)
            inputs.save(f"{some}{side}", key=key, value=value)


def hash_join(worker: ps.Worker) -> Run:
    """Of columns; (pairs, a sum over the pairs)."""
    sides = [
        [Arrays(key=keys, value=values) for keys, values in _batches(side, worker)]
        for side in ("left", "right")
    ]

    def read(pairs: Arrays) -> int:
        return int((pairs["value"] ^ pairs["value_right"]).sum())

    return _joining(worker, sides, "key", read)


def hash_join_of_rows(worker: ps.Worker) -> Run:
    """Of tuples, as many as there are time for."""
    sides = [
        [
            list(zip(keys.tolist(), values.tolist(), strict=True))
            for keys, values in _batches(f"few-{side}", worker)
        ]
        for side in ("left", "right")
    ]

    def read(pairs: list[Any]) -> int:
        return sum(left[1] ^ right[1] for left, right in pairs)

    return _joining(worker, sides, lambda record: record[0], read)


def _joining(
    worker: ps.Worker, sides: list[list[Any]], key: Any, read: Callable[[Any], int]
) -> Run:
    """Feed both sides in turns."""
    n_pairs = total = 0

    def note(time: int, pairs: Any) -> None:
        nonlocal n_pairs, total
        n_pairs += len(pairs)
        total += read(pairs)

    with worker.dataflow("join") as scope:
        left, left_stream = scope.new_input("left")
        right, right_stream = scope.new_input("right")
        pairs = left_stream.join(right_stream, key, retain=True)
        probe = pairs.inspect_batch(note).probe()

    def run() -> list[int]:
        for i in range(max(map(len, sides))):
            for input, side in zip((left, right), sides, strict=True):
                if i < len(side):
                    input.send_batch(side[i])
                input.advance_to(i + 1)
            worker.step_while(lambda: probe.less_than(left.time - 2))
        left.close()
        right.close()
        worker.run()
        return [n_pairs, total]

    return run


def _batches(side: str, worker: ps.Worker) -> list[tuple[Any, Any]]:
    key, value = (
        inputs.load(side, column, worker.index, worker.peers) for column in ("key", "value")
    )
    return [
        (key[start : start + BATCH], value[start : start + BATCH])
        for start in range(0, len(key), BATCH)
    ]


def _sides() -> list[dict[str, Any]]:
    return [
        {column: inputs.load(side, column) for column in ("key", "value")}
        for side in ("left", "right")
    ]


QUERY = """
select count(*), sum(xor(l.value, r.value))
from left_side l join right_side r on l.key = r.key
"""


def in_duckdb() -> Run:
    """SQL, on all cores."""
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    for name, side in zip(("left_side", "right_side"), _sides(), strict=True):
        connection.register(name, pa.table(side))
    return lambda: [int(x) for x in connection.execute(QUERY).fetchone()]


def in_arrow() -> Run:
    """Arrow's join of two tables, on all cores."""
    import pyarrow as pa
    import pyarrow.compute as pc

    left, right = map(pa.table, _sides())
    right = right.rename_columns(["key", "other"])

    def run() -> list[int]:
        pairs = left.join(right, "key", join_type="inner")
        return [len(pairs), pc.sum(pc.bit_wise_xor(pairs["value"], pairs["other"])).as_py()]

    return run


def in_polars() -> Run:
    """Polars' join, on all cores."""
    import polars as pl

    left, right = map(pl.DataFrame, _sides())

    def run() -> list[int]:
        pairs = left.join(right, on="key")
        return [len(pairs), int((pairs["value"] ^ pairs["value_right"]).sum())]

    return run


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four, and engines on both sides at once."""
    n = RECORDS[size] / 1e7

    def ours(program: Any, workers: int, n: float, data: str, **at: str) -> Case:
        measure = on_workers(program, workers=workers, total=_totals)
        return Case(OURS, measure, n, {"workers": workers, **at}, data)

    return [
        *(ours(hash_join, workers, n, "join") for workers in (1, 2, 4)),
        *(ours(hash_join_of_rows, w, n / FEW, "join of few", of="rows") for w in (1, 2)),
        *rust.race(
            *("join", "fx"),
            *(
                partial(inputs.raw, side, column)
                for side in ("left", "right")
                for column in ("key", "value")
            ),
            amount=lambda form: n,
            data="join",
            answer=rust.pair,
        ),
        Case(DUCKDB, alone(in_duckdb), n, {}, "join", ("duckdb",)),
        Case(ARROW, alone(in_arrow), n, {}, "join"),
        Case(POLARS, alone(in_polars), n, {}, "join", ("polars",)),
    ]


def _totals(answers: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*answers, strict=True)]


BENCHMARK = Benchmark(
    name="hash_join",
    title="Hash join of two streams: ten million records, a million keys",
    about="Batches of 100,000, each joined when it comes; all 25 M pairs are made and read. "
    "Engines join once. Rows are a twentieth of the records.",
    quantity=Quantity("s for 10 M records"),
    cases=cases,
    baselines=(DUCKDB, ARROW),
    targets=(Target({"workers": 1}, 6, 2),),
    prepare=prepare,
)
