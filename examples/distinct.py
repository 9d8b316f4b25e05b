"""Distinct: of equal records of an epoch the first one passes, at once.

The operator remembers what has passed, by epoch. It sends before the epoch is complete,
with the capability that comes with each batch; what it waits for is the moment when it
may forget: when it is notified that nothing more can come at that epoch.

    python examples/distinct.py [RECORDS [VALUES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pointstamp as ps

Logic = Callable[[ps.Input, ps.Output, ps.Notificator], None]


def first_of_each(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    capability.drop()
    passed: dict[int, set[int]] = {}

    def logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None:
        for time, batch in input:
            if time.time not in passed:
                passed[time.time] = set()
                notificator.notify_at(time.retain())
            new = set(batch) - passed[time.time]
            passed[time.time] |= new
            with output.session(time) as session:
                session.give_many(new)
        for cap in notificator:
            with cap:
                del passed[cap.time]

    return logic


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
        once = stream.unary_notify(ps.Exchange(lambda x: x), "Distinct", first_of_each)
        once.inspect_batch(lambda epoch, batch: found.extend((epoch, x) for x in batch))
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
