"""Counts what progress costs, and writes the tables of docs/how_it_is_made.md.

    python docs/count_progress.py            writes the tables
    python docs/count_progress.py --check    ends with 1 if those there are others

Everything is counted in simulations in which workers take turns, so the numbers are the
same on every machine. What is turned off for comparison is replaced here, in methods of
the sources; so they run interpreted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ["POINTSTAMP_COMPILED"] = "0"
# The simulations are those of the tests, which are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pointstamp as ps
from pointstamp.dataflow.operator import Operator
from pointstamp.progress.subgraph import Subgraph
from pointstamp.runtime import progress_exchange
from tests.simulation.outside import told_of_all
from tests.simulation.traffic import count_traffic

# As it is after the first steps, where steps are short: in a simulation they take no time.
progress_exchange.N_URGENT = 0

PAGE = Path(__file__).resolve().parent / "how_it_is_made.md"

FEW, MANY = 4, 12
"""Rounds of two runs, whose difference is divided by that of their rounds: no set-up counts."""

RECORDS = 32
"""In each round, over all workers."""


# Programs: each of so many rounds.


def epochs(worker: ps.Worker, rounds: int) -> None:
    """In each epoch all workers send, exchange, and count."""
    with worker.dataflow("epochs") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().count().probe()
    for epoch in range(rounds):
        for x in range(worker.index, RECORDS, worker.peers):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


def loop(worker: ps.Worker, rounds: int) -> None:
    """Records go round a loop in a scope, each to the worker of its key."""
    with worker.dataflow("loop") as scope:
        start = scope.to_stream(range(worker.index, RECORDS, worker.peers))
        with scope.iterative() as inner:
            ring, again = inner.feedback(1, limit=rounds)
            ring.connect(start.enter(inner).concat(again).exchange().map(lambda x: x + 1))


def rounds_in_step(worker: ps.Worker, rounds: int) -> None:
    """The same, but each round waits until the one before is complete everywhere."""
    with worker.dataflow("iterate") as scope:
        start = scope.to_stream(range(worker.index, RECORDS, worker.peers))
        start.iterate(
            lambda again: again.exchange().map(lambda x: x + 1), until=_never, limit=rounds
        )


def _never(record: int) -> bool:
    return False


def nested(worker: ps.Worker, rounds: int) -> None:
    """Records go round a loop, and in each round of it three times round one in there."""
    with worker.dataflow("nested") as scope:
        start = scope.to_stream(range(worker.index, RECORDS, worker.peers))
        with scope.iterative(name="outer") as outer:
            ring, again = outer.feedback(1, limit=rounds)
            with outer.iterative(name="inner") as inner:
                inner_ring, inner_again = inner.feedback(1, limit=3)
                entered = start.enter(outer).concat(again).enter(inner)
                inner_ring.connect(entered.concat(inner_again).exchange().map(lambda x: x + 1))
                totals = entered.count().leave()
            ring.connect(totals.exchange(lambda n: 0).count())


def barrier(depth: int) -> Callable[[ps.Worker, int], None]:
    """A loop that carries only time, around an operator in so many scopes."""

    def build(rounds: int) -> Any:
        def make(capability: ps.Capability, info: Any) -> Any:
            def logic(input: Any, output: Any, notificator: Any) -> None:
                for cap in notificator:
                    if cap.time + 1 < rounds:
                        notificator.notify_at(cap.delayed(cap.time + 1))

            return logic

        return make

    def main(worker: ps.Worker, rounds: int) -> None:
        with worker.dataflow("barrier") as scope:
            loop, stream = scope.feedback(1)
            scopes = []
            for _ in range(depth):
                scopes.append(stream.scope.region())
                stream = stream.enter(scopes[-1])
            stream = stream.unary_notify(ps.Pipeline(), "Barrier", build(rounds), initial=[0])
            for inner in reversed(scopes):
                stream = stream.leave()
                inner.close()
            loop.connect(stream)

    return main


# Counting.


class Cost(NamedTuple):
    """What a round costs, over all workers."""

    messages: float
    """Of progress."""
    n_bytes: float
    data: float
    """Messages of records."""
    steps: float
    operators: float
    """Visits of them."""
    scopes: float


def cost(program: Callable[..., None], workers: int, progress: str = "demand") -> Cost:
    """Count two runs, and divide what one of them has more."""
    few, many = (_counts(program, workers, progress, rounds) for rounds in (FEW, MANY))
    return Cost(*((b - a) / (MANY - FEW) for a, b in zip(few, many, strict=True)))


def _counts(program: Callable[..., None], workers: int, progress: str, rounds: int) -> Cost:
    with _counted(Operator) as operators, _counted(Subgraph) as scopes:
        traffic = count_traffic(program, rounds, workers=workers, progress=progress)
    sent = (traffic.n_progress, traffic.progress_bytes, traffic.n_data, traffic.n_steps)
    return Cost(*sent, operators[0], scopes[0])


@contextmanager
def _counted(owner: Any) -> Iterator[list[int]]:
    """How often an operator, or a scope, is visited."""
    pull = owner.pull_internal_progress
    n = [0]

    def count(self: Any) -> Any:
        n[0] += 1
        return pull(self)

    owner.pull_internal_progress = count
    try:
        yield n
    finally:
        owner.pull_internal_progress = pull


# Tables.

PEERS = (1, 2, 4, 8, 16)


def modes() -> str:
    """Demand and eager, from 1 to 16 workers."""
    rows = [
        "| | workers | data messages | progress messages, on demand | eager | progress bytes, on "
        "demand | eager |",
        "|---|---|---|---|---|---|---|",
    ]
    programs = {"epochs": epochs, "a loop": loop, "`iterate`": rounds_in_step}
    for name, program in programs.items():
        for workers in PEERS:
            demand = cost(program, workers)
            eager = cost(program, workers, "eager")
            numbers = [demand.data, demand.messages, eager.messages, demand.n_bytes, eager.n_bytes]
            cells = [name, str(workers), *map(_number, numbers)]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def outside() -> str:
    """What scopes in loops cost, given the pointstamps outside of them alone, and all."""
    rows = [
        "| | workers | given pointstamps outside: steps | scope visits | progress messages | "
        "given all pointstamps: steps | scope visits | progress messages |",
        "|---|---|---|---|---|---|---|---|",
    ]
    programs = {"barrier in a scope": barrier(1), "in three": barrier(3), "a loop in it": nested}
    for name, program in programs.items():
        for workers in PEERS[:3]:
            costs = [cost(program, workers)]
            with told_of_all():
                costs.append(cost(program, workers))
            numbers = [n for c in costs for n in (c.steps, c.scopes, c.messages)]
            rows.append(f"| {' | '.join([name, str(workers), *map(_number, numbers)])} |")
    return "\n".join(rows)


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


TABLES = {"modes": modes, "outside": outside}


def with_tables(page: str) -> str:
    """The page with its tables made again."""
    for name, table in TABLES.items():
        pattern = rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end of {name} -->)"
        page, n = re.subn(pattern, lambda m: m[1] + table() + m[2], page, flags=re.DOTALL)  # noqa: B023
        assert n == 1, f"the page has {n} places for the table {name!r}"
    return page


def main() -> int:
    """Write the tables, or see whether they are up to date."""
    page = PAGE.read_text()
    made = with_tables(page)
    if "--check" in sys.argv[1:]:
        return int(made != page)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
