"""Exchange: columns of 64-bit integers, each sent to the worker that its hash names.

Every worker sends batches of a million, and at most two of them are on their way at
a time. Baselines: what the memory of the machine gives (a copy), and what Python
programs do who have no library for it (NumPy to split, a pipe to send).
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from time import perf_counter

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Elsewhere,
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
IN_FLIGHT = 2

COPY = "NumPy, a copy in memory"
PIPE = "NumPy and a pipe"


def exchange(worker: ps.Worker, n_batches: int, n_records: int) -> Run:
    """Send `n_batches`, and count what arrives."""
    columns = _columns(worker.index, n_records)
    n_arrived = 0

    def note(time: int, batch: Arrays) -> None:
        nonlocal n_arrived
        n_arrived += len(batch)

    with worker.dataflow("exchange") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange("x").inspect_batch(note).probe()

    def run() -> int:
        for i in range(n_batches):
            input.send_batch(Arrays(x=columns[i % len(columns)]))
            input.advance_to(i + 1)
            worker.step_while(lambda: probe.less_than(input.time - IN_FLIGHT))
        input.close()
        worker.run()
        return n_arrived

    return run


def copy(n_batches: int, n_records: int) -> Run:
    """Each batch copied once: the traffic of memory that nobody who sends can be below."""
    columns = _columns(0, n_records)
    target = np.empty_like(columns[0])

    def run() -> int:
        for i in range(n_batches):
            np.copyto(target, columns[i % len(columns)])
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
    columns = _columns(index, n_records)
    seconds = []
    for _ in range(rounds):
        out.send_bytes(b"")
        arriving.recv_bytes()
        began = perf_counter()
        for i in range(n_batches):
            column = columns[i % len(columns)]
            theirs = (column & np.uint64(1)) != index
            mine, away = column[~theirs], column[theirs]
            # In turns, or two full pipes would wait for each other.
            if index:
                out.send_bytes(away)
                found = arriving.recv_bytes()
            else:
                found = arriving.recv_bytes()
                out.send_bytes(away)
            len(mine) + len(np.frombuffer(found, np.uint64))
        seconds.append(perf_counter() - began)
    return seconds


def _columns(index: int, n_records: int) -> list:
    rng = np.random.default_rng(index)
    return [rng.integers(0, 2**64, n_records, np.uint64) for _ in range(4)]


def cases(size: Size) -> list[Case]:
    """Two workers, and more than there are cores; one would keep all that it has."""
    n_batches, n_records = BATCHES[size], BATCH[size]
    return [
        *(
            Case(
                OURS,
                on_workers(exchange, n_batches, n_records, workers=workers, total=sum),
                workers * n_batches * n_records,
                {"workers": workers},
                f"{workers * n_batches} batches",
                in_both_modes=workers == 2,
            )
            for workers in (2, 4)
        ),
        Case(COPY, alone(copy, n_batches, n_records), n_batches * n_records),
        Case(PIPE, through_pipes(n_batches, n_records), 2 * n_batches * n_records, {"workers": 2}),
    ]


BENCHMARK = Benchmark(
    name="exchange",
    title="Exchange of 64-bit integers in batches of a million",
    about="Records sent by all workers together; with two, half of them stay where they are.",
    quantity=Quantity("M records/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(PIPE, COPY),
    floors=(COPY,),
    targets=(Target({"workers": 2}, 100, 250),),
    elsewhere=(Elsewhere("Rust timely, two processes", {"workers": 2}, 48),),
)
