"""A hash join of two streams: ten million records with a million keys.

Both sides come in batches, in turns. Each batch is joined with what has come of the
other side and kept for what will come, so that every pair is found once, as soon as
both are there. The operator is one of a user's own, on tables of the package. Engines join
both sides as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers import Arrays
from pointstamp.kernels.hash_join import add_values, find_values, no_values

RECORDS = {"tiny": 20_000, "small": 1_000_000, "full": 10_000_000}
BATCH = 100_000
PIECE = 65_536
"""Pairs leave in containers of this size."""

DUCKDB, ARROW, POLARS = "DuckDB", "pyarrow", "Polars"


def prepare(size: Size) -> None:
    """Half of the records on each side; a tenth as many keys, each as likely."""
    rng = np.random.default_rng(7)
    n = RECORDS[size]
    for side in ("left", "right"):
        inputs.save(side, key=rng.integers(0, n // 10, n // 2), value=rng.integers(0, n, n // 2))


def hash_join(worker: ps.Worker) -> Run:
    """Feed both sides in turns; (pairs, a sum over the pairs)."""
    sides = [_batches(side, worker.index, worker.peers) for side in ("left", "right")]
    totals = np.zeros(2, np.int64)

    def note(time: int, pairs: Arrays) -> None:
        totals[0] += len(pairs)
        totals[1] += (pairs["left"] ^ pairs["right"]).sum()

    with worker.dataflow("join") as scope:
        left, left_stream = scope.new_input("left")
        right, right_stream = scope.new_input("right")
        by_key = ps.Exchange("key")
        pairs = left_stream.binary(right_stream, by_key, by_key, "Join", join)
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
        return totals.tolist()

    return run


def join(capability: ps.Capability, info: Any) -> Any:
    """Keep both sides in tables, and look each batch up in the other's."""
    capability.drop()
    tables = [Table(), Table()]

    def logic(left: Any, right: Any, output: Any) -> None:
        for input, mine, theirs, turned in ((left, *tables, False), (right, *tables[::-1], True)):
            for time, batch in input:
                keys, values = batch["key"], batch["value"]
                mine.add(keys, values)
                found, others = theirs.pairs(keys, values)
                with output.session(time) as session:
                    for start in range(0, len(found), PIECE):
                        own, other = found[start : start + PIECE], others[start : start + PIECE]
                        pair = (other, own) if turned else (own, other)
                        session.give_batch(Arrays(left=pair[0], right=pair[1]))

    return logic


class Table:
    """Values by key, of one side."""

    def __init__(self) -> None:
        self.kept = no_values()

    def add(self, keys: Any, values: Any) -> None:
        """Keep records."""
        self.kept = add_values(self.kept, keys, values)

    def pairs(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """(value, value here) of every pair of equal keys."""
        records, others = find_values(self.kept, keys)
        return values[records], others


def _batches(side: str, index: int, peers: int) -> list[Arrays]:
    key, value = (inputs.load(side, column, index, peers) for column in ("key", "value"))
    return [
        Arrays(key=key[start : start + BATCH], value=value[start : start + BATCH])
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
    return [
        *(
            Case(OURS, on_workers(hash_join, workers=w, total=_totals), n, {"workers": w}, "join")
            for w in (1, 2, 4)
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
    about="Batches of 100,000, each joined when it comes; all pairs are made. Engines join once.",
    quantity=Quantity("s for 10 M records"),
    cases=cases,
    baselines=(DUCKDB, ARROW),
    targets=(Target({"workers": 1}, 6, 2),),
    elsewhere=(
        Elsewhere("Rust timely, its example", {"workers": 1}, 34),
        Elsewhere("Rust timely, its example", {"workers": 2}, 15),
    ),
    prepare=prepare,
)
