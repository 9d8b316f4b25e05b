"""Many dataflows on one worker, of which one moves in a round: what the others cost it.

The cost of a round should be that of what happens in it. Where it is always the same dataflow
that moves, all that it needs is in the processor's cache; where all have their turn, nothing is.
With a record and without: then only time advances.

Source: timely-dataflow `examples/event_driven.rs`, in which they take turns.
"""

from __future__ import annotations

import itertools
from typing import Any

import pointstamp as ps
from benchmarks.harness import rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, on_workers

COUNTS = {"tiny": (1, 3), "small": (1, 100, 1_000), "full": (1, 10, 100, 1_000)}
ROUNDS = {"tiny": 10, "small": 2_000, "full": 20_000}

LAST, IN_TURN = "the last moves", "each in turn"
RECORD, NOTHING = "a record", "only time"


def dataflows(
    worker: ps.Worker, n_dataflows: int, length: int, rounds: int, moves: str, sends: str
) -> Run:
    """A round is one of `n_dataflows`, with `length` maps each, that gets a time, and a record."""
    built = [_dataflow(worker, length) for _ in range(n_dataflows)]
    # What has just been built has something to do; only afterwards it is idle.
    while worker.has_work:
        worker.step()
    moving = built[-1:] if moves == LAST else built
    times = itertools.count(1)

    def run() -> None:
        for time in itertools.islice(times, rounds):
            _move(worker, *moving[time % len(moving)], time, sends == RECORD)

    return run


def _move(worker: ps.Worker, input: Any, probe: ps.Probe, time: int, sends: bool) -> None:
    if sends:
        input.send(time)
    input.advance_to(time)
    worker.step_while(lambda: probe.less_than(time))


def _dataflow(worker: ps.Worker, length: int) -> tuple[Any, ps.Probe]:
    with worker.dataflow("one of many") as scope:
        input, stream = scope.new_input()
        with scope.region() as inner:
            stream = stream.enter(inner)
            for _ in range(length):
                stream = stream.map(lambda x: x)
            return input, stream.leave().probe()


def moving(
    n_dataflows: int, length: int, rounds: int, at: dict[str, Any], samples: int = 5
) -> list[Case]:
    """Ours and Rust's at one point of the curve."""
    found = []
    for moves in (LAST, IN_TURN):
        for sends in (RECORD, NOTHING):
            here = {**at, "moves": moves, "sends": sends}
            program = ("event", n_dataflows, length, "record" if sends == RECORD else "none")
            turn = "last" if moves == LAST else "rotate"
            found += [
                Case(
                    OURS,
                    on_workers(
                        *(dataflows, n_dataflows, length, rounds, moves, sends),
                        workers=1,
                        once=True,
                    ),
                    rounds,
                    {**here, "workers": 1},
                    in_both_modes=length == 1 and moves == LAST and sends == RECORD,
                    samples=samples,
                ),
                *rust.race(
                    *(*program, rounds, turn),
                    amount=lambda form: rounds,
                    at=here,
                    forms=(rust.ALONE,),
                ),
            ]
    return found


def cases(size: Size) -> list[Case]:
    """From one to a thousand."""
    return [
        case
        for n_dataflows in COUNTS[size]
        for case in moving(n_dataflows, 1, ROUNDS[size], {"dataflows": n_dataflows})
    ]


def _at(moves: str) -> dict[str, int | str]:
    return {"dataflows": 1_000, "moves": moves, "sends": RECORD, "workers": 1}


BENCHMARK = Benchmark(
    name="many_dataflows",
    title="1 to 1,000 dataflows, one of them active in a round",
    about="Per round: input, a map in a region, probe of the active one.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    axis="dataflows",
    growth=(Target(_at(LAST), 2.5, 1.2), Target(_at(IN_TURN), 2.5)),
)
