"""Capture here, replay there: a stream from one computation into another, as it flows.

One computation, of two workers in processes of another program, captures a stream: its batches
with their times, and which times are complete. Over a socket for each of these workers this
goes to a computation of three, which replays it: an epoch is complete there when it is so
on all workers here. Both know a secret, since what comes over a socket is unpickled.

    python examples/capture_and_replay.py [EPOCHS [CAPTURING [REPLAYING]]]
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pointstamp as ps

SECRET = "EXAMPLE_SECRET"
"""The environment variable that has it: arguments could be seen by others."""


def capture(worker: ps.Worker, port: int, secret: bytes, n_epochs: int) -> None:
    """Send the numbers of each epoch to where somebody listens."""
    with worker.dataflow("here") as scope:
        input, numbers = scope.new_input("numbers")
        numbers.map(lambda x: x * x).capture(ps.Connect("127.0.0.1", port, secret=secret))
    for epoch in range(n_epochs):
        for x in range(10 * epoch + worker.index, 10 * (epoch + 1), worker.peers):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step()


def replay(worker: ps.Worker, listen: ps.Accept, n_parts: int) -> list[tuple[int, int]]:
    """(epoch, sum) of what came, once it was complete."""
    sums: list[tuple[int, int]] = []
    mine = range(worker.index, n_parts, worker.peers)
    with worker.dataflow("there") as scope:
        squares = scope.replay([listen for _ in mine])
        totals = squares.aggregate(
            lambda key, x, total: total + x, lambda key, total: total, key=lambda x: 0, default=0
        )
        totals.inspect_batch(lambda epoch, batch: sums.extend((epoch, x) for x in batch))
    worker.run()
    return sums


def main(n_epochs: int = 5, capturing: int = 2, replaying: int = 3) -> None:
    secret = secrets.token_hex(16)
    with ps.Accept(secret=secret.encode()) as listen:
        here = [sys.executable, __file__, "capture", *map(str, (listen.address[1], n_epochs))]
        environment = {**os.environ, SECRET: secret}
        with subprocess.Popen([*here, str(capturing)], env=environment) as program:
            parts = ps.execute(replay, listen, capturing, workers=replaying, threads=True)
    if program.returncode:
        raise SystemExit(program.returncode)
    for epoch, total in sorted(item for part in parts for item in part):
        print(f"epoch {epoch} is complete there: the squares add up to {total}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["capture"]:
        port, n_epochs, workers = map(int, sys.argv[2:])
        ps.execute(capture, port, os.environ[SECRET].encode(), n_epochs, workers=workers)
    else:
        main(*map(int, sys.argv[1:]))
