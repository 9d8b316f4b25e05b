"""Flow control: a source that reads on only as fast as its records are dealt with.

Every batch is sent to a service that takes a millisecond, and only reading is quick: what has
been read waits. With `flow_controlled` a probe behind the service tells the source how far
things are, so that no more than `ahead` batches are under way on each worker, and one that has
been read and may not be sent yet, however long the input is.

    python examples/flow_control.py [BATCHES [AHEAD [WORKERS]]]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pointstamp as ps


def consume(worker: ps.Worker, n_batches: int, ahead: int) -> tuple[int, int]:
    """How many batches were read and not dealt with at most; and the sum of the answers."""
    n_read = n_done = most = total = 0

    def read() -> Iterator[tuple[int, list[int]]]:
        """As from a file, or a topic: one batch after the other, each at a time of its own."""
        nonlocal n_read
        for time in range(n_batches):
            n_read += 1
            yield time, [time, worker.index]

    async def ask(batch: list[int]) -> list[int]:
        """A service that we wait for, while the worker goes on."""
        nonlocal n_done, most
        await asyncio.sleep(0.001)
        most = max(most, n_read - n_done)
        n_done += 1
        return [sum(batch)]

    def add(answer: int) -> None:
        nonlocal total
        total += answer

    probe = ps.Probe()
    with worker.dataflow("flow control") as scope:
        batches = scope.flow_controlled(read(), probe, ahead)
        batches.map_batches(ask, concurrency=1).inspect(add).probe_with(probe)
    worker.run()
    return most, total


def main(n_batches: int = 300, ahead: int = 3, workers: int = 2) -> None:
    for so_far in (ahead, n_batches):
        parts = ps.execute(consume, n_batches, so_far, workers=workers)
        most, total = max(most for most, _ in parts), sum(total for _, total in parts)
        print(f"ahead={so_far}: {most} of {n_batches} batches waited at most; the sum is {total}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
