"""Words counted: ten million of 97,000 kinds, as a text has them (few often, many rarely).

The words are Arrow batches in memory when the clock starts. Ours counts on each
worker with Arrow's kernel, sends counts to the worker of the word, and adds up there.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.counting import counted
from benchmarks.harness import inputs
from benchmarks.harness.case import OURS, Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers.convert import numbers

WORDS = {"tiny": 10_000, "small": 1_000_000, "full": 10_000_000}
KINDS = 97_000
FEW = 10
"""Peers that take a minute for all are given one word in so many."""

ARROW, DUCKDB, POLARS = "pyarrow", "DuckDB", "Polars"
COUNTER, BYTEWAX = "Counter of a list", "Bytewax"


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


def words(worker: ps.Worker) -> Run:
    """Count this worker's share; (kinds, all words) that are its own."""
    found: list[Any] = []
    batches = _batches(worker.index, worker.peers)
    with worker.dataflow("words") as scope:
        stream = scope.batches_to_stream(batches)
        counts = counted(stream, "word", _count, _add_up)
        counts.inspect_batch(lambda time, batch: found.append(batch))

    def run() -> tuple[int, int]:
        worker.run()
        return sum(map(len, found)), sum(int(numbers(batch["n"]).sum()) for batch in found)

    return run


def _count(batches: list[Any]) -> Any:
    import pyarrow as pa

    return _one_batch(pa.Table.from_batches(batches), [([], "count_all")])


def _add_up(batches: list[Any]) -> Any:
    import pyarrow as pa

    return _one_batch(pa.Table.from_batches(batches), [("n", "sum")])


def _one_batch(table: Any, aggregates: list[Any]) -> Any:
    # A worker is one core; that there are two is for two workers to show.
    result = (
        table.group_by("word", use_threads=False)
        .aggregate(aggregates)
        .rename_columns(["word", "n"])
    )
    (batch,) = result.combine_chunks().to_batches()
    return batch


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
    return [
        *(
            Case(
                OURS,
                on_workers(words, workers=workers, total=_totals),
                n / 1e7,
                {"workers": workers},
                "words",
            )
            for workers in (1, 2, 4)
        ),
        Case(ARROW, alone(in_arrow), n / 1e7, {}, "words"),
        Case(DUCKDB, alone(in_duckdb), n / 1e7, {}, "words", ("duckdb",)),
        Case(POLARS, alone(in_polars), n / 1e7, {}, "words", ("polars",)),
        Case(COUNTER, alone(in_counter), few / 1e7, {}, note="on a tenth of the words"),
        Case(BYTEWAX, alone(in_bytewax), few / 1e7, {}, None, ("bytewax",), note="on a tenth"),
    ]


def _totals(answers: list[tuple[int, int]]) -> list[int]:
    return [sum(column) for column in zip(*answers, strict=True)]


BENCHMARK = Benchmark(
    name="words",
    title="Ten million words of 97,000 kinds, counted",
    about="From Arrow batches in memory to a count for each word, on the worker of the word.",
    quantity=Quantity("s for 10 M words"),
    cases=cases,
    baselines=(ARROW,),
    targets=(Target({"workers": 1}, 1.0, 0.4),),
    elsewhere=(
        Elsewhere("Rust timely", {"workers": 1}, 3.6),
        Elsewhere("Bytewax", {"workers": 1}, 39),
        Elsewhere("DuckDB", {}, 0.5),
        Elsewhere("pyarrow", {}, 0.7),
    ),
    prepare=prepare,
)
