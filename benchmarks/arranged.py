"""Updates into an index: ten million records, in epochs of a hundred thousand and of a thousand.

Keys are drawn from a million, values from 2^40, both of 64 bits. A worker sends its share of each
epoch as columns, which are made before the clock starts; an epoch is over when it is in the index.
Rates are of all workers.
"""

from __future__ import annotations

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, on_workers
from pointstamp.containers.convert import arrow_array
from pointstamp.containers.words import LONG, record_batch

RECORDS = {"tiny": 10_000, "small": 1_000_000, "full": 10_000_000}
EPOCHS_OF = (100_000, 1_000)
KEYS, VALUES = 1_000_000, 1 << 40
WORKERS = (1, 2)
ASKED = 100
"""Of so many keys the records are counted in the end, so that they are known to be there."""


def arrange(worker: ps.Worker, n_records: int, of: int) -> Run:
    """Send all records, epoch by epoch; how many of the first keys the index of a worker has."""
    choose = np.random.default_rng(worker.index)
    n_here = n_records // worker.peers
    columns = {"k": choose.integers(0, KEYS, n_here), "v": choose.integers(0, VALUES, n_here)}
    records = record_batch(
        [(name, LONG, False) for name in columns], list(map(arrow_array, columns.values()))
    )
    size = max(1, min(of, n_records) // worker.peers)
    epochs = [records.slice(at, size) for at in range(0, n_here, size)]
    with worker.dataflow("arrange") as scope:
        updates, collection = scope.new_collection("k long, v long")
        handle = collection.arrange("k").trace()
        probe = collection.probe()

    def run() -> int:
        for epoch, batch in enumerate(epochs):
            updates.insert(batch)
            updates.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(updates.time) or handle.upper < updates.time)
            handle.allow_compaction(epoch)
        index = handle.as_of(len(epochs) - 1)
        found = sum(len(index.lookup(k=key)) for key in range(ASKED))
        handle.close()
        return found

    return run


def cases(size: Size) -> list[Case]:
    """On one worker and on two, in epochs of two sizes."""
    n_records = RECORDS[size]
    found = []
    for workers in WORKERS:
        for of in EPOCHS_OF:
            measure = on_workers(arrange, n_records, of, workers=workers, total=sum)
            at = {"workers": workers, "epochs of": of}
            found.append(Case(OURS, measure, n_records, at=at, samples=3, data=f"{workers}"))
    return found


BENCHMARK = Benchmark(
    name="arranged",
    title="Ten million updates into an index",
    about="Two 64-bit columns, with a million keys; an epoch ends when it is in the index.",
    quantity=Quantity("M updates/s", 1e-6, is_rate=True),
    cases=cases,
    targets=(
        Target({"workers": 1, "epochs of": 100_000}, 4.0, 6.0),
        Target({"workers": 1, "epochs of": 1_000}, 2.0, 3.0),
        Target({"workers": 2, "epochs of": 100_000}, 5.6, 10.2),
    ),
)
