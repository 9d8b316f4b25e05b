"""Collatz: a loop in a scope of its own.

Halve what is even, and triple what is odd and add one, until it is 1: how many
steps does each number take? All numbers go round the loop at once. A number that
is done leaves it, and the loop is over when no number is left in it: nobody has
to say how many rounds that takes.

    python examples/collatz.py [UPTO [WORKERS]]
"""

from __future__ import annotations

import sys

import pointstamp as ps


def collatz(worker: ps.Worker, upto: int) -> list[tuple[int, int]]:
    lengths: list[tuple[int, int]] = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream((n, n, 0) for n in range(1 + worker.index, upto, worker.peers))
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            again = numbers.enter(inner).concat(cycle).exchange(lambda x: x[0])
            done, rest = again.branch(lambda x: x[1] != 1)
            loop.connect(rest.map(lambda x: (x[0], after(x[1]), x[2] + 1)))
            done.leave().inspect(lambda x: lengths.append((x[2], x[0])))
    worker.run()
    return lengths


def after(n: int) -> int:
    return n // 2 if n % 2 == 0 else 3 * n + 1


def main(upto: int = 1000, workers: int = 2) -> None:
    lengths = [pair for part in ps.execute(collatz, upto, workers=workers) for pair in part]
    steps, number = max(lengths)
    print(f"of the numbers below {upto}, {number} takes the most steps: {steps}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
