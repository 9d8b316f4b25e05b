"""Exchange: columns of 64-bit integers, each sent to the worker that its hash names.

Every worker sends batches of a million, and at most two of them are on their way at
a time. The columns are made before the clock starts, and each record is read when it arrives.
Baselines: what the memory of the machine gives (a copy), and what Python
programs do that have no library for it (NumPy to split, a pipe to send).
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.columns import columns, row_batches
from benchmarks.harness import rust
from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.harness.memory import peaks
from pointstamp.containers import Arrays

BATCH = {"tiny": 1_000, "small": 1_000_000, "full": 1_000_000}
BATCHES = {"tiny": 3, "small": 8, "full": 40}
ROW_BATCH = {"tiny": 1_000, "small": 100_000, "full": 100_000}
IN_FLIGHT = 2

COPY = "NumPy, a copy in memory"
PIPE = "NumPy and a pipe"


def exchange(worker: ps.Worker, n_batches: int, n_records: int) -> Run:
    """Send `n_batches` of columns, and add up what arrives."""
    batches = [Arrays(x=column) for column in columns(worker.index, n_records)]
    return _exchanging(worker, batches, n_batches, "x", lambda batch: int(batch["x"].sum()))


def exchange_rows(worker: ps.Worker, n_batches: int, n_records: int) -> Run:
    """The same with Python's integers."""
    batches = row_batches(worker.index, n_records)
    return _exchanging(worker, batches, n_batches, None, sum)


def _exchanging(worker: ps.Worker, batches: list[Any], n_batches: int, key: Any, read: Any) -> Run:
    n_arrived = total = 0

    def note(time: int, batch: Any) -> None:
        nonlocal n_arrived, total
        n_arrived += len(batch)
        total += read(batch)

    with worker.dataflow("exchange") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(key).inspect_batch(note).probe()

    def run() -> int:
        for i in range(n_batches):
            input.send_batch(batches[i % len(batches)])
            input.advance_to(i + 1)
            worker.step_while(lambda: probe.less_than(input.time - IN_FLIGHT))
        input.close()
        worker.run()
        return n_arrived

    return run


def copy(n_batches: int, n_records: int) -> Run:
    """Each batch copied once: the traffic of memory that no program that sends can be below."""
    sources = columns(0, n_records)
    target = np.empty_like(sources[0])

    def run() -> int:
        for i in range(n_batches):
            np.copyto(target, sources[i % len(sources)])
        return n_batches * n_records

    return run


def through_pipes(n_batches: int, n_records: int) -> Measure:
    """Two processes: half of each batch goes over a pipe to the other."""

    def measure(effort: Effort) -> Reading:
        context = multiprocessing.get_context("spawn")
        (to_other, of_us), (to_us, of_other) = context.Pipe(), context.Pipe()
        rounds = effort.samples + 1
        other = context.Process(
            target=_partner, args=(1, to_us, of_us, n_batches, n_records, rounds)
        )
        other.start()
        seconds = _partner(0, to_other, of_other, n_batches, n_records, rounds)
        found = peaks()
        other.join()
        return Reading(seconds[1:], found, 2 * n_batches * n_records)

    return measure


def _partner(
    index: int, out: Connection, arriving: Connection, n_batches: int, n_records: int, rounds: int
) -> list[float]:
    sources = columns(index, n_records)
    seconds = []
    for _ in range(rounds):
        out.send_bytes(b"")
        arriving.recv_bytes()
        began = perf_counter()
        for i in range(n_batches):
            column = sources[i % len(sources)]
            theirs = (column & np.uint64(1)) != index
            mine, away = column[~theirs], column[theirs]
            # In turns, or two full pipes would wait for each other.
            if index:
                out.send_bytes(away)
                found = arriving.recv_bytes()
            else:
                found = arriving.recv_bytes()
                out.send_bytes(away)
            int(mine.sum()) + int(np.frombuffer(found, np.uint64).sum())
        seconds.append(perf_counter() - began)
    return seconds


def cases(size: Size) -> list[Case]:
    """One worker, which keeps all that it has, two, and more than there are cores."""
    n_batches, n_records, n_rows = BATCHES[size], BATCH[size], ROW_BATCH[size]

    def ours(program: Any, n_records: int, workers: int, **at: str) -> Case:
        return Case(
            OURS,
            on_workers(program, n_batches, n_records, workers=workers, total=sum),
            workers * n_batches * n_records,
            {"workers": workers, **at},
            f"{workers * n_batches} batches of {n_records}",
            in_both_modes=workers == 2 and not at,
        )

    def in_rust(kind: str, name: str) -> list[Case]:
        return [
            case
            for form in rust.FORMS
            for case in rust.race(
                *("exch", n_records, n_batches, kind),
                amount=lambda form: form.workers * n_batches * n_records,
                data=f"{form.workers * n_batches} batches of {n_records}",
                answer=rust.number,
                forms=(form,),
                name=name,
            )
        ]

    return [
        *(ours(exchange, n_records, workers) for workers in (1, 2, 4)),
        *(ours(exchange_rows, n_rows, workers, of="rows") for workers in (1, 2)),
        *in_rust("batch", ""),
        *in_rust("col", "columnar"),
        Case(COPY, alone(copy, n_batches, n_records), n_batches * n_records),
        Case(PIPE, through_pipes(n_batches, n_records), 2 * n_batches * n_records, {"workers": 2}),
    ]


BENCHMARK = Benchmark(
    name="exchange",
    title="Exchange of 64-bit integers in batches of a million",
    about="Records sent by all workers together; with two, half of them stay where they are. Ours "
    "adds up what arrives, Rust's counts it, which reads it only where it comes from another "
    "process. Rows come in batches of 100,000.",
    quantity=Quantity("M records/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(PIPE, COPY),
    floors=(COPY,),
    targets=(Target({"workers": 2}, 100, 250),),
)
