"""A hash join of two streams: ten million records with a million keys.

Both sides come in batches, in turns. Each batch is joined with what has come of the
other side and kept for what will come, so that every pair is found once, as soon as
both are there. The operator is one that a user would write: chained hash tables in
NumPy columns, and three loops compiled by Numba. Engines join both sides as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers import Arrays
from pointstamp.kernels.jit import kernel

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
    """Values by key: chains through columns that double when they are full."""

    def __init__(self) -> None:
        self.n = 0
        self.heads = np.full(1 << 16, -1, np.int32)
        self.keys = np.empty(1 << 16, np.int64)
        self.values = np.empty(1 << 16, np.int64)
        self.next = np.empty(1 << 16, np.int32)

    def add(self, keys: Any, values: Any) -> None:
        """Keep records."""
        n = self.n + len(keys)
        if n > len(self.keys):
            room = 1 << n.bit_length()
            self.keys = np.resize(self.keys, room)
            self.values = np.resize(self.values, room)
            self.next = np.empty(room, np.int32)
            self.heads = np.full(room, -1, np.int32)
            chain(self.heads, self.next, self.keys, 0, self.n)
        self.keys[self.n : n] = keys
        self.values[self.n : n] = values
        chain(self.heads, self.next, self.keys, self.n, n)
        self.n = n

    def pairs(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """(value, value here) of every pair of equal keys."""
        keys, values = np.array(keys), np.array(values)
        n_pairs = count_pairs(self.heads, self.next, self.keys, keys)
        return find_pairs(self.heads, self.next, self.keys, self.values, keys, values, n_pairs)


@kernel
def slot_of(key: int, n_slots: int) -> int:
    """Fibonacci hashing: the high bits of a product. `n_slots` is a power of two."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(n_slots - 1))


@kernel
def chain(heads: Any, following: Any, keys: Any, begin: int, end: int) -> None:
    """Put records `begin` to `end` at the heads of their chains."""
    for i in range(begin, end):
        slot = slot_of(keys[i], len(heads))
        following[i] = heads[slot]
        heads[slot] = i


@kernel
def count_pairs(heads: Any, following: Any, kept: Any, keys: Any) -> int:
    """How many pairs there will be."""
    n = 0
    for key in keys:
        j = heads[slot_of(key, len(heads))]
        while j >= 0:
            n += kept[j] == key
            j = following[j]
    return n


@kernel
def find_pairs(
    heads: Any, following: Any, kept: Any, kept_values: Any, keys: Any, values: Any, n: int
) -> Any:
    """The two values of each pair, int64[n] both."""
    ours, theirs = np.empty(n, np.int64), np.empty(n, np.int64)
    at = 0
    for i in range(len(keys)):
        j = heads[slot_of(keys[i], len(heads))]
        while j >= 0:
            if kept[j] == keys[i]:
                ours[at], theirs[at] = values[i], kept_values[j]
                at += 1
            j = following[j]
    return ours, theirs


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
