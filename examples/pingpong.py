"""Ping-pong: balls that go from worker to worker, round after round.

In each round every ball flies on to the next worker, and comes back into the loop one
round later. With one ball a round is one message and the counting of it, so this measures
what a hop takes; `barrier.py` measures agreement alone, without a message.

    python examples/pingpong.py [ROUNDS [BALLS [WORKERS]]]
"""

from __future__ import annotations

import sys
import time

import pointstamp as ps


def pingpong(worker: ps.Worker, rounds: int, balls: int) -> tuple[float, list[tuple[int, int]]]:
    """Seconds for each round; and (ball, hits) of those that ended here."""
    ended: list[tuple[int, int]] = []
    neighbour = (worker.index + 1) % worker.peers
    began = time.monotonic()
    with worker.dataflow("pingpong") as scope:
        loop, returned = scope.feedback(1)
        served = scope.to_stream([(ball, 0) for ball in range(worker.index, balls, worker.peers)])
        arrived = served.concat(returned).distribute(lambda round, batch: neighbour)
        hit = arrived.map(lambda ball: (ball[0], ball[1] + 1))
        going, over = hit.branch_when(lambda round: round == rounds - 1)
        loop.connect(going)
        over.inspect(ended.append)
    worker.run()
    return (time.monotonic() - began) / rounds, ended


def main(rounds: int = 1000, balls: int = 1, workers: int = 2) -> None:
    parts = ps.execute(pingpong, rounds, balls, workers=workers)
    for index, (_, ended) in enumerate(parts):
        print(f"worker {index} ends with {sorted(ended)}")
    slowest = max(seconds for seconds, _ in parts)
    print(f"{rounds} rounds on {workers} workers, {slowest * 1e6:.0f} us each")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
