"""Loops at times of a user's own, under the oracle: pairs, products in products, lattices.

Records go round a loop, one life less each time, at the time that the type's own summary
says, if it says one. What is at which time is known from that alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.progress.timestamp import Advance, Both, Product
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle, check_timestamp
from tests.conftest import shared_out
from tests.simulation.moments import EventProcessing, Moment, Shift
from tests.simulation.subsets import Join, Subsets, once

THREE_DEEP = Product(Product(Product(ps.Int, ps.Int), ps.Int), ps.Int)


@dataclass(frozen=True)
class Kind:
    """A type of times, loops at them, and what is sent when, in the order of time."""

    timestamp: Any
    loops: tuple[Any, ...]
    sent: tuple[tuple[Any, int], ...]
    end: Any
    """A time that is not before any that is sent."""


KINDS = {
    "pair": Kind(
        EventProcessing(),
        (Shift(0, 1), Shift(1, 0)),
        ((Moment(0, 0), 2), (Moment(0, 1), 1), (Moment(2, 1), 3)),
        Moment(3, 3),
    ),
    "three deep": Kind(
        THREE_DEEP,
        (1, (1, 0), ((1, 0), 0), (((1, 0), 0), 0)),
        (((((0, 0), 0), 0), 2), ((((0, 1), 0), 2), 2), ((((1, 1), 0), 2), 1)),
        (((2, 2), 2), 2),
    ),
    "partial": Kind(
        Product(ps.Int, ps.Int),
        (Both(Advance(0), Advance(1, limit=2)), Both(Advance(2, limit=4), Advance(0))),
        (((0, 0), 4), ((0, 1), 3), ((3, 1), 4)),
        (4, 4),
    ),
    "lattice": Kind(
        Subsets(),
        (once(0), once(1), once(2), Join(0b110, barred=0b010)),
        ((0b000, 4), (0b010, 2), (0b011, 5)),
        0b111,
    ),
    "lattice in epochs": Kind(
        Product(ps.Int, Subsets()),
        (once(0), Both(Advance(1, limit=3), Join(0b100))),
        (((0, 0), 3), ((1, 0), 3), ((1, 0b001), 2)),
        (2, 0b001),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def everything(kind: Kind) -> Counter[tuple[Any, int]]:
    """The oracle: how many records of so many lives there are at each time."""
    loops = [kind.timestamp.summary(loop) for loop in kind.loops]
    found: Counter[tuple[Any, int]] = Counter()
    work = list(kind.sent)
    while work:
        time, lives = work.pop()
        found[time, lives] += 1
        for loop in loops if lives else []:
            later = loop.results_in(time)
            if later is not None:
                work.append((later, lives - 1))
    return found


def main(worker: Any, kind: Kind) -> Any:
    """What was seen at each time, and the numbers that were complete then."""
    seen: list[Any] = []
    counts: list[Any] = []
    with worker.dataflow(timestamp=kind.timestamp) as scope:
        input, stream = scope.new_input()
        loops = [scope.feedback(summary) for summary in kind.loops]
        both = stream.concat(*(again for _, again in loops)).exchange(lambda lives: lives)
        for loop, _ in loops:
            loop.connect(both.flat_map(lambda lives: [lives - 1] if lives else []))
        both.inspect_batch(lambda time, batch: seen.extend((time, x) for x in batch))
        with scope.region() as region:
            numbers = both.enter(region).exchange(lambda lives: 0).count().leave()
        numbers.inspect_batch(lambda time, batch: counts.extend((time, n) for n in batch))
        probe = numbers.probe()
    for time, lives in kind.sent:
        input.advance_to(time)
        if worker.index == 0:
            input.send(lives)
        worker.step()
    input.advance_to(kind.end)
    worker.step_while(lambda: any(probe.less_equal(time) for time, _ in kind.sent))
    return seen, counts


def check(found: Any, kind: Kind) -> None:
    seen = Counter(x for part, _ in found for x in part)
    assert seen == everything(kind)
    totals: Counter[Any] = Counter()
    for (time, _), n in everything(kind).items():
        totals[time] += n
    # Counted when complete: each time once, with all that it ever had.
    assert Counter(x for _, part in found for x in part) == dict.fromkeys(totals.items(), 1)


@pytest.mark.parametrize("seed", shared_out(1, range(4)))
@pytest.mark.parametrize("progress", ["demand", "eager"])
def test_under_the_oracle(kind: Kind, workers: int, seed: int, progress: str) -> None:
    with Oracle() as oracle:
        simulation = Simulation(
            workers, Schedule(seed), observe=oracle.observe, serialize=seed == 1, progress=progress
        )
        check(simulation.run(main, kind), kind)
        oracle.check_end(simulation)
    assert oracle.n_checked > 0


def test_on_threads(kind: Kind, workers: int) -> None:
    check(ps.execute(main, kind, workers=workers, threads=True), kind)


@pytest.mark.once
def test_on_processes(kind: Kind) -> None:
    check(ps.execute(main, kind, workers=2), kind)


def test_these_types_keep_the_laws(kind: Kind) -> None:
    times = [time for time, _ in everything(kind)]
    check_timestamp(kind.timestamp, [*times, kind.end], kind.loops)
