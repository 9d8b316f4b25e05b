"""A dataflow in a process of its own, as one operator of another.

The operator sends lines to a program, and a mark at the end of each epoch; when the program
sends the mark back, the epoch is complete there, and so it can be here. The program
is a dataflow again, with a loop: what it reads goes into an input, and it answers a mark
when its probe has passed the epoch. So progress goes in as a mark and comes out as a
mark, and neither side knows what the other is made of.

    python examples/subgraph_in_another_process.py [UPTO [EPOCHS [WORKERS]]]
"""

from __future__ import annotations

import sys

import pointstamp as ps

MARK = "complete"


def inside(worker: ps.Worker) -> None:
    """Steps of Collatz's problem: a number on each line, answered by it and its steps."""
    with worker.dataflow("inside") as scope:
        input, numbers = scope.new_input("standard input")
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            again = numbers.enter(inner).concat(cycle)
            rest, done = again.branch(lambda x: x[1] == 1)
            loop.connect(rest.map(lambda x: (x[0], after(x[1]), x[2] + 1)))
            probe = done.leave().inspect(lambda x: print(x[0], x[2])).probe()
    for line in sys.stdin:
        if line.strip() == MARK:
            input.advance_to(input.time + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            print(MARK, flush=True)
        else:
            input.send((int(line), int(line), 0))


def after(n: int) -> int:
    return n // 2 if n % 2 == 0 else 3 * n + 1


def outside(worker: ps.Worker, upto: int, n_epochs: int) -> list[tuple[int, tuple[int, int]]]:
    """(epoch, (steps, number)) of the numbers that one of the programs was asked for."""
    found: list[tuple[int, tuple[int, int]]] = []

    def note(epoch: int, batch: list[str]) -> None:
        for line in batch:
            number, steps = map(int, line.split())
            found.append((epoch, (steps, number)))

    with worker.dataflow("outside") as scope:
        input, numbers = scope.new_input("numbers")
        program = [sys.executable, __file__, "inside"]
        probe = numbers.map(str).command(program, marker=MARK).inspect_batch(note).probe()
    for epoch in range(n_epochs):
        for n in range(1 + epoch + n_epochs * worker.index, upto, n_epochs * worker.peers):
            input.send(n)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return found


def main(upto: int = 1000, n_epochs: int = 3, workers: int = 2) -> None:
    parts = ps.execute(outside, upto, n_epochs, workers=workers)
    for epoch in range(n_epochs):
        answers = [answer for part in parts for at, answer in part if at == epoch]
        steps, number = max(answers, default=(0, 1))
        print(f"epoch {epoch}: of {len(answers)} numbers, {number} takes the most steps: {steps}")


if __name__ == "__main__":
    if sys.argv[1:] == ["inside"]:
        ps.execute(inside)
    else:
        main(*map(int, sys.argv[1:]))
