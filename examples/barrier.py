"""The barrier: a loop that carries nothing but time.

No record is ever sent. Each worker asks to be notified when a round is complete,
which is when all workers have asked for the next; so this measures what agreeing
on a time costs.

    python examples/barrier.py [ROUNDS [WORKERS]]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pointstamp as ps

Logic = Callable[[ps.Input, ps.Output, ps.Notificator], None]


def barrier(worker: ps.Worker, rounds: int) -> float:
    began = time.monotonic()

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
        def logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None:
            for cap in notificator:
                if cap.time + 1 < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    with worker.dataflow("barrier") as scope:
        loop, stream = scope.feedback(1)
        loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))
    worker.run()
    return (time.monotonic() - began) / rounds


def main(rounds: int = 1000, workers: int = 2) -> None:
    slowest = max(ps.execute(barrier, rounds, workers=workers))
    print(f"{rounds} rounds on {workers} workers, {slowest * 1e6:.0f} us each")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
