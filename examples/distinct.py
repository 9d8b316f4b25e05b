"""Distinct: of equal records of an epoch the first one passes, at once.

The operator remembers what has passed, by epoch, and forgets it when the epoch is complete.

    python examples/distinct.py [RECORDS [VALUES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys

import pointstamp as ps


def numbers(index: int, epoch: int, n_records: int, n_values: int) -> list[int]:
    """What a worker sends at an epoch."""
    draw = random.Random(f"{index} {epoch}")
    return [draw.randrange(n_values) for _ in range(n_records)]


def distinct(
    worker: ps.Worker, n_records: int, n_values: int, epochs: int
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    with worker.dataflow("distinct") as scope:
        input, stream = scope.new_input()
        stream.distinct().inspect_time(lambda epoch, x: found.append((epoch, x)))
    for epoch in range(epochs):
        input.send_batch(numbers(worker.index, epoch, n_records, n_values))
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    return found


def main(n_records: int = 1000, n_values: int = 400, epochs: int = 3, workers: int = 2) -> None:
    parts = ps.execute(distinct, n_records, n_values, epochs, workers=workers)
    for epoch in range(epochs):
        shares = [sum(at == epoch for at, _ in part) for part in parts]
        print(f"epoch {epoch}: {sum(shares)} of {n_records * workers} are distinct, {shares}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
