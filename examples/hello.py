"""Hello: an input, an exchange, a probe.

Worker 0 sends a number per round; each goes to the worker that its hash names; and
nobody begins a round before the one before it is complete everywhere.

    python examples/hello.py [ROUNDS [WORKERS]]
"""

from __future__ import annotations

import sys

import pointstamp as ps


def hello(worker: ps.Worker, rounds: int) -> list[int]:
    seen: list[int] = []
    with worker.dataflow("hello") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).inspect(seen.append).probe()
    for round in range(rounds):
        if worker.index == 0:
            input.send(round)
        input.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return seen


def main(rounds: int = 10, workers: int = 2) -> None:
    for index, seen in enumerate(ps.execute(hello, rounds, workers=workers)):
        print(f"worker {index} saw {seen}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
