"""Words counted: ten million of 97,000 kinds, as a text has them (few often, many rarely).

The words are Arrow batches in memory when the clock starts, or for rows strings. Two ways: each
worker counts the words that it has, and sends counts to the worker of the word (before the
exchange); or it sends the words, which are counted where they arrive (after the exchange).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness import inputs, rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers.convert import numbers

WORDS = {"tiny": 10_000, "small": 1_000_000, "full": 10_000_000}
KINDS = 97_000
FEW = 10
"""Peers that take a minute for all are given one word in so many."""

ARROW, DUCKDB, POLARS = "pyarrow", "DuckDB", "Polars"
COUNTER, BYTEWAX = "Counter of a list", "Bytewax"

BEFORE, AFTER = {"counted": "before the exchange"}, {"counted": "after the exchange"}
COUNT = [("word", "count")]


def prepare(size: Size) -> None:
    """Words of 3 to 12 letters, drawn by Zipf's law."""
    import pyarrow as pa

    rng = np.random.default_rng(7)
    letters = rng.integers(ord("a"), ord("z") + 1, (2 * KINDS, 12), np.uint8)
    lengths = rng.integers(3, 13, len(letters))
    kinds = {bytes(row[:n]).decode() for row, n in zip(letters, lengths, strict=True)}
    vocabulary = pa.array(sorted(kinds)[:KINDS])
    share = 1 / np.arange(1, KINDS + 1)
    drawn = rng.choice(KINDS, WORDS[size], p=share / share.sum())
    words = vocabulary.take(pa.array(rng.permutation(KINDS)[drawn]))
    table = pa.table({"word": words})
    with pa.OSFile(str(_path()), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)


def _path() -> Any:
    return inputs.folder() / "words.arrow"


def _batches(index: int = 0, peers: int = 1, one_in: int = 1) -> list[Any]:
    """The batches of a worker, in memory of its own."""
    import pyarrow as pa

    with pa.OSFile(str(_path())) as file:
        reader = pa.ipc.open_file(file)
        n = reader.num_record_batches // one_in or 1
        return [reader.get_batch(i) for i in range(n) if i % peers == index]


def words(worker: ps.Worker, counted: Callable[[Any], Any]) -> Run:
    """Count this worker's share; (kinds, all words) that are its own."""
    found: list[Any] = []
    batches = _batches(worker.index, worker.peers)

    def run() -> tuple[int, int]:
        with worker.dataflow("words") as scope:
            counts = counted(scope.batches_to_stream(batches))
            counts.inspect_batch(lambda time, batch: found.append(batch))
        worker.run()
        n = sum(int(numbers(batch["word_count"]).sum()) for batch in found)
        return sum(map(len, found)), n

    return run


def words_as_rows(worker: ps.Worker, counted: Callable[[Any], Any]) -> Run:
    """The same with strings, a tenth of them."""
    found: list[Any] = []
    ours = _batches(one_in=FEW)[worker.index :: worker.peers]
    batches = [batch["word"].to_pylist() for batch in ours]

    def run() -> tuple[int, int]:
        with worker.dataflow("words") as scope:
            counts = counted(scope.batches_to_stream(batches))
            counts.inspect_batch(lambda time, batch: found.extend(batch))
        worker.run()
        return len(found), sum(n for _, n in found)

    return run


def before(stream: Any) -> Any:
    """Columns: what aggregates by name do by themselves."""
    return stream.aggregate(COUNT, key="word")


def after(stream: Any) -> Any:
    """Columns: they are at their worker already when they are counted."""
    return stream.exchange("word").aggregate(COUNT, key="word")


def rows_before(stream: Any) -> Any:
    """Rows: a reduction reduces each batch before it is exchanged."""
    return stream.map(lambda word: (word, 1)).reduce(add)


def rows_after(stream: Any) -> Any:
    """Rows: a fold is of single records, and so after the exchange."""
    return stream.aggregate(lambda word, _, n: n + 1, key=lambda word: word, default=0)


def _raw(part: str) -> Path:
    """The bytes of all words, or where each begins and the last one ends, for Rust."""
    import pyarrow as pa

    path = inputs.folder() / f"words.{part}.raw"
    if not path.exists():
        column = pa.Table.from_batches(_batches())["word"].combine_chunks()
        _, offsets, data = column.cast(pa.large_string()).buffers()
        path.write_bytes(data if part == "data" else memoryview(offsets)[: 8 * len(column) + 8])
    return path


def in_arrow() -> Run:
    """Arrow's grouped count, on all cores."""
    import pyarrow as pa

    table = pa.Table.from_batches(_batches())

    def run() -> list[int]:
        counts = table.group_by("word").aggregate([([], "count_all")])
        return [len(counts), int(np.sum(counts["count_all"]))]

    return run


def in_duckdb() -> Run:
    """SQL over the same Arrow table, on all cores."""
    import duckdb
    import pyarrow as pa

    words = pa.Table.from_batches(_batches())
    connection = duckdb.connect()
    connection.register("words", words)

    def run() -> list[int]:
        query = "select word, count(*) as n from words group by word"
        counts = connection.execute(query).to_arrow_table()
        return [len(counts), int(np.sum(counts["n"]))]

    return run


def in_polars() -> Run:
    """Polars over the same table, on all cores."""
    import polars as pl
    import pyarrow as pa

    frame = pl.from_arrow(pa.Table.from_batches(_batches()))

    def run() -> list[int]:
        counts = frame.group_by("word").len()
        return [len(counts), int(counts["len"].sum())]

    return run


def in_counter() -> Run:
    """A list of strings and the standard library."""
    words = [word for batch in _batches(one_in=FEW) for word in batch["word"].to_pylist()]
    return lambda: Counter(words).total() and None


def in_bytewax() -> Run:
    """Words as strings, counted by its own operator."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    words = [word for batch in _batches(one_in=FEW) for word in batch["word"].to_pylist()]
    out: list[Any] = []
    flow = Dataflow("words")
    stream = op.input("in", flow, TestingSource(words, batch_size=10_000))
    op.output("out", op.count_final("count", stream, lambda word: word), TestingSink(out))
    return lambda: run_main(flow)


def cases(size: Size) -> list[Case]:
    """Ours on one worker, two and four; engines on columns; what is slow on a tenth."""
    n = WORDS[size]
    few = min(n, max(1, -(-n // 65_536) // FEW) * 65_536)

    def ours(program: Any, how: Any, workers: int, n: int, **at: str) -> Case:
        measure = on_workers(program, how, workers=workers, total=_totals)
        return Case(OURS, measure, n / 1e7, {"workers": workers, **at}, f"{n} words")

    def in_rust(how: str, at: dict[str, str]) -> list[Case]:
        # Strings are hashed otherwise there, so on two workers they are counted elsewhere.
        return rust.race(
            *("words", how, partial(_raw, "data"), partial(_raw, "offsets")),
            amount=lambda form: n / 1e7,
            at=at,
            data=f"{n} words",
            answer=rust.pair,
            told="unlike",
        )

    return [
        *(ours(words, before, workers, n, **BEFORE) for workers in (1, 2, 4)),
        *(ours(words_as_rows, rows_before, w, few, **BEFORE, of="rows") for w in (1, 2)),
        *in_rust("pre", BEFORE),
        *(ours(words, after, workers, n, **AFTER) for workers in (1, 2)),
        *(ours(words_as_rows, rows_after, w, few, **AFTER, of="rows") for w in (1, 2)),
        *in_rust("each", AFTER),
        Case(ARROW, alone(in_arrow), n / 1e7, {}, f"{n} words"),
        Case(DUCKDB, alone(in_duckdb), n / 1e7, {}, f"{n} words", ("duckdb",)),
        Case(POLARS, alone(in_polars), n / 1e7, {}, f"{n} words", ("polars",)),
        Case(COUNTER, alone(in_counter), few / 1e7, {}, note="on a tenth of the words"),
        Case(BYTEWAX, alone(in_bytewax), few / 1e7, {}, None, ("bytewax",), note="on a tenth"),
    ]


def _totals(answers: list[tuple[int, int]]) -> list[int]:
    return [sum(column) for column in zip(*answers, strict=True)]


BENCHMARK = Benchmark(
    name="words",
    title="Word count: ten million words, 97,000 distinct",
    about="From Arrow batches in memory to a count for each word, on the worker of the word. Rows "
    "are strings, a tenth of them.",
    quantity=Quantity("s for 10 M words"),
    cases=cases,
    baselines=(ARROW,),
    targets=(Target({**BEFORE, "workers": 1}, 1.0, 0.4),),
    prepare=prepare,
)
