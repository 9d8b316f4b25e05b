"""Epochs of columns: input, exchange, map, filter and count, until the epoch is complete.

Every worker sends a batch per epoch and waits until the probe says that the epoch is
over, everywhere. Small epochs show what an epoch costs, large ones what a record does.
The batches are made before the clock starts, and the map and the filter read each record.
An epoch of more than 65,536 records is sent as batches of so many, so that what one function
makes is in the processor's cache still when the next one reads it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.columns import columns, row_batches
from benchmarks.harness import rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers import Arrays

SIZES = {
    "tiny": (100,),
    "small": (1_000, 100_000),
    "full": (100, 1_000, 10_000, 100_000, 1_000_000),
}
RECORDS = {"tiny": 1_000, "small": 5_000_000, "full": 20_000_000}
MOST_EPOCHS = 2_000
BATCH = 65_536
MOST_ROWS = 100_000
"""Rows take some hundred times as long: epochs of them are no larger, and a twentieth as many."""

NUMPY, ARROW, POLARS = "NumPy, no dataflow", "pyarrow, no dataflow", "Polars, no dataflow"


def epochs(worker: ps.Worker, n_epochs: int, n_records: int) -> Run:
    """`n_epochs`, each a batch of `n_records` from every worker."""
    return _counting(
        *(worker, n_epochs, _sources(worker.index, n_records)),
        lambda stream: stream.exchange("x").map_batches(_plus_one).map_batches(_even),
    )


def epochs_of_rows(worker: ps.Worker, n_epochs: int, n_records: int) -> Run:
    """The same with Python's integers, and a function call for each."""
    return _counting(
        *(worker, n_epochs, [[rows] for rows in row_batches(worker.index, n_records)]),
        lambda stream: stream.exchange().map(lambda x: x + 1).filter(lambda x: not x & 1),
    )


def _sources(index: int, n_records: int) -> list[list[Arrays]]:
    """The batches of an epoch, of which there are some to take in turns."""
    return [
        [Arrays(x=column[start : start + BATCH]) for start in range(0, n_records, BATCH)]
        for column in columns(index, n_records)
    ]


def _counting(worker: ps.Worker, n_epochs: int, sources: list[list[Any]], build: Any) -> Run:
    counts: list[int] = []
    with worker.dataflow("epochs") as scope:
        input, stream = scope.new_input()
        probe = build(stream).count().inspect(counts.append).probe()

    def run() -> int:
        for epoch in range(n_epochs):
            for batch in sources[epoch % len(sources)]:
                input.send_batch(batch)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        return sum(counts)

    return run


def _plus_one(batch: Arrays) -> Arrays:
    return Arrays(x=batch["x"] + np.uint64(1))


def _even(batch: Arrays) -> Arrays:
    x = batch["x"]
    return Arrays(x=np.compress((x & np.uint64(1)) == 0, x))  # a third of the time of x[mask]


def in_numpy(n_epochs: int, n_records: int) -> Run:
    """The same functions in a loop."""
    sources = _sources(0, n_records)

    def run() -> int:
        return sum(
            len(_even(_plus_one(batch)))
            for epoch in range(n_epochs)
            for batch in sources[epoch % len(sources)]
        )

    return run


def in_arrow(n_epochs: int, n_records: int) -> Run:
    """The same with Arrow's kernels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sources = [pa.array(column) for column in columns(0, n_records)]
    one, zero = pa.scalar(1, pa.uint64()), pa.scalar(0, pa.uint64())

    def run() -> int:
        n_found = 0
        for epoch in range(n_epochs):
            x = pc.add(sources[epoch % len(sources)], one)
            n_found += len(x.filter(pc.equal(pc.bit_wise_and(x, one), zero)))
        return n_found

    return run


def in_polars(n_epochs: int, n_records: int) -> Run:
    """The same as a lazy query per epoch; Polars may use all cores."""
    import polars as pl

    frames = [pl.DataFrame({"x": column}) for column in columns(0, n_records)]
    next_x = pl.col("x") + 1
    query = [f.lazy().select(next_x).filter(pl.col("x") % 2 == 0).select(pl.len()) for f in frames]

    def run() -> int:
        return sum(query[epoch % len(query)].collect().item() for epoch in range(n_epochs))

    return run


def cases(size: Size) -> list[Case]:
    """Sizes of epochs, and workers; columns and rows."""
    found = []
    for n_records in SIZES[size]:
        n_epochs = max(2, min(MOST_EPOCHS, RECORDS[size] // n_records))
        at = {"epoch": n_records}
        args = (n_epochs, n_records)
        data = f"{n_epochs} epochs of {n_records}"
        found += [
            Case(
                OURS,
                on_workers(epochs, *args, workers=workers, total=sum),
                workers * n_epochs * n_records,
                {**at, "workers": workers},
                f"{data}, {workers} workers",
                in_both_modes=n_records == 100_000,
            )
            for workers in ((1, 2, 4) if n_records == 100_000 else (1, 2))
        ]
        found += [
            case
            for form in rust.FORMS
            for case in rust.race(
                *("epochs", n_records, n_epochs, "batch"),
                amount=lambda form, n=n_epochs * n_records: form.workers * n,
                at=at,
                data=f"{data}, {form.workers} workers",
                answer=rust.number,
                forms=(form,),
            )
        ]
        if n_records <= MOST_ROWS:
            few = max(2, n_epochs // 20)
            found += [
                Case(
                    OURS,
                    on_workers(epochs_of_rows, few, n_records, workers=workers, total=sum),
                    workers * few * n_records,
                    {**at, "workers": workers, "of": "rows"},
                    f"{few} epochs of {n_records}, {workers} workers",
                )
                for workers in (1, 2)
            ]
        found += [
            Case(NUMPY, alone(in_numpy, *args), n_epochs * n_records, at, f"{data}, 1 workers"),
            Case(ARROW, alone(in_arrow, *args), n_epochs * n_records, at, f"{data}, 1 workers"),
            Case(
                POLARS,
                alone(in_polars, *args),
                n_epochs * n_records,
                at,
                f"{data}, 1 workers",
                ("polars",),
            ),
        ]
    return found


BENCHMARK = Benchmark(
    name="epochs",
    title="Epochs of columns: input, exchange, map, filter, count",
    about="Records of all workers together; each sends its share of an epoch, and awaits its end.",
    quantity=Quantity("M records/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(NUMPY,),
    floors=(NUMPY, ARROW),
    targets=(
        Target({"epoch": 100_000, "workers": 1}, 100, 250),
        Target({"epoch": 100_000, "workers": 2}, 60, 200),
    ),
    axis="epoch",
)
