"""Random dataflows on random schedules, under the oracle's eyes.

A `Case` is a plan, a number of workers and the seed of a schedule; `random_case`
makes one of a number, `check_case` runs it. If the plan is *steady*, what comes out
must be the same as on one worker (I9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact, Pipeline
from pointstamp.operators.probe import Probe
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.stream import Stream
from pointstamp.progress.timestamp import Int, Product, Timestamp
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.runtime.worker import Worker
from pointstamp.testing.oracle import Oracle
from tests.simulation import library
from tests.simulation.behaviour import Behaviour, Waiter, innermost, later, way_of
from tests.simulation.moments import EventProcessing
from tests.simulation.plans import (
    N_GROUPS,
    IteratePlan,
    LibraryPlan,
    OperatorPlan,
    Plan,
    ProbePlan,
    Record,
    ScopePlan,
    random_plan,
)
from tests.simulation.subsets import Subsets, once

MAX_DECISIONS = 100_000
"""A random dataflow needs some hundreds; one that needs so many never ends."""

Outputs = Counter[tuple[str, Any, Record]]
"""How often each (stream, time, record) was seen."""

TIMESTAMPS: dict[str, Timestamp] = {
    "Int": Int,
    "Product": Product(Int, Int),
    "EventProcessing": EventProcessing(),
    "Subsets": Subsets(),
}

SCOPES: dict[str, Callable[[Scope], Scope]] = {
    "region": lambda scope: scope.region(),
    "iterative": lambda scope: scope.iterative(),
    "iterative over moments": lambda scope: scope.iterative(EventProcessing()),
    "iterative over subsets": lambda scope: scope.iterative(Subsets()),
}


class AnswerError(AssertionError):
    """What came out depends on the number of workers, or on the schedule (I9)."""


@dataclass(frozen=True)
class Case:
    """A run to be made."""

    plan: Plan
    workers: int
    seed: int
    machines: tuple[int, ...] | None = None
    """By worker, its machine, where the workers of each add up their progress."""


def random_case(seed: int) -> Case:
    """The case of a number; every third is steady."""
    rng = Random(seed)
    plan = random_plan(rng, steady=seed % 3 == 0)
    return Case(plan, rng.choice([1, 2, 2, 3, 3, 4]), seed)


def random_accumulated_case(seed: int) -> Case:
    """The plan of the same number, on workers of some machines that add up their progress."""
    rng = Random(f"machines {seed}")
    workers = rng.choice([2, 3, 3, 4, 4, 5])
    n_machines = rng.choice([1, 2, 2, 3])
    machines = tuple(rng.randrange(n_machines) for _ in range(workers))
    return replace(random_case(seed), workers=workers, machines=machines)


def check_case(case: Case, expected: Outputs | None = None) -> Outputs:
    """Run a case under the oracle, and compare what comes out if it is known.

    Parameters
    ----------
    case : Case
        The plan, the workers, the schedule.
    expected : Counter, optional
        What came out of one worker, see `expected_outputs`.

    Raises
    ------
    SafetyError, LivenessError, AnswerError, StalledError, WorkerError
        What was wrong; the messages have the seed.

    Examples
    --------
    >>> case = random_case(3)
    >>> check_case(case, expected_outputs(case.plan)) == expected_outputs(case.plan)
    True
    """
    found = run_plan(case.plan, case.workers, case.seed, machines=case.machines)
    if expected is not None and found != expected:
        raise AnswerError(
            f"with {case.workers} workers and simulation seed {case.seed}, missing are "
            f"{dict(expected - found)}, too many are {dict(found - expected)}"
        )
    return found


def expected_outputs(plan: Plan) -> Outputs | None:
    """What comes out of a steady plan on one worker; None if the plan is not steady."""
    return run_plan(plan, 1, 0, oracle=False) if plan.steady else None


def plan_main(worker: Worker, plan: Plan) -> Outputs:
    """The program of a plan: build, send, advance, step; what was seen where."""
    seen: Outputs = Counter()
    worker.environment.eager = plan.eager
    for number in range(plan.n_dataflows):
        building = _Building(plan, worker.index, worker.peers, f"{number}", seen)
        with worker.dataflow(f"random {number}", TIMESTAMPS[plan.timestamp]) as scope:
            pairs = [scope.new_input() for _ in plan.root.enters]
            building.fill(scope, plan.root, [stream for _, stream in pairs])
        _feed(worker, plan, [handle for handle, _ in pairs], building.probes)
    return seen


def _feed(worker: Worker, plan: Plan, handles: list[InputHandle], probes: list[Probe]) -> None:
    """Send this worker's share of the records, and step in between."""
    timestamp = TIMESTAMPS[plan.timestamp]
    for records, advance, n_steps, wait in plan.epochs:
        for position, record in enumerate(records if handles else ()):
            if (record[0] + position) % worker.peers == worker.index:
                for _ in range(plan.copies):
                    handles[position % len(handles)].send_batch([record])
        for handle in handles:
            handle.advance_to(later(timestamp, handle.time, lambda: advance // 2))  # noqa: B023
        for _ in range(n_steps):
            worker.step()
        if wait and probes and handles:
            _wait(worker, probes, handles)
    for handle in handles[:1]:
        handle.close()  # the others are left for the worker to close


def _wait(worker: Worker, probes: list[Probe], handles: list[InputHandle]) -> None:
    """Step until the outermost probes have passed what all inputs have passed."""
    time = min(handle.time for handle in handles)
    outer = [probe for probe in probes if all(isinstance(t, int) for t in probe.elements)]
    worker.step_while(lambda: any(probe.less_than(time) for probe in outer))


def run_plan(
    plan: Plan,
    workers: int,
    seed: int,
    *,
    oracle: bool = True,
    serialize: bool = False,
    machines: Sequence[int] | None = None,
) -> Outputs:
    """Run a plan in a simulation, checked all the way by the oracle.

    Parameters
    ----------
    plan : Plan
        The dataflow, and what is sent.
    workers : int
        How many.
    seed : int
        Of the schedule.
    oracle : bool
        Whether to check safety and liveness.
    serialize : bool
        Whether messages are encoded on their way.
    machines : sequence of int, optional
        By worker, its machine, to have the workers of each add up their progress.

    Returns
    -------
    Counter
        How often each (stream, time, record) was seen, over all workers.

    Raises
    ------
    SafetyError, LivenessError, StalledError, WorkerError
        What was wrong; the messages have the seed.
    """
    watcher = Oracle()
    simulation = Simulation(
        workers,
        Schedule(seed),
        observe=watcher.observe if oracle else None,
        serialize=serialize,
        max_decisions=MAX_DECISIONS,
        machines=machines,
    )
    if not oracle:
        return _sum(simulation.run(plan_main, plan))
    with watcher:
        results = simulation.run(plan_main, plan)
        watcher.check_end(simulation)
    return _sum(results)


def _sum(results: Iterable[Outputs]) -> Outputs:
    total: Outputs = Counter()
    for seen in results:
        total.update(seen)
    return total


@dataclass
class _Building:
    """One worker's making of a planned dataflow."""

    plan: Plan
    index: int
    peers: int
    name: str
    seen: Outputs
    probes: list[Probe] = field(default_factory=list)

    def fill(self, scope: Scope, plan: ScopePlan, streams: list[Stream[Any]]) -> list[Stream[Any]]:
        """Make the parts of a scope on the streams that enter; those that leave."""
        loops = []
        for summary, limit, fed_back in plan.loops:
            inner = innermost(scope.timestamp)
            # A user's type of times need not know limits.
            known = limit if inner == Int else None
            around = once(summary) if inner == Subsets() else summary
            loop, stream = scope.feedback(around, known)
            loops.append((loop, fed_back))
            streams.append(stream)
        for part in plan.parts:
            streams.extend(self.part(scope, part, streams))
        for loop, fed_back in loops:
            loop.connect(streams[fed_back].flat_map(_aged))
        for number, stream in enumerate(streams):
            self.watch(f"{self.name} {scope.address} {number}", stream)
        return [streams[number] for number in plan.leaves]

    def watch(self, name: str, stream: Stream[Any]) -> None:
        """Note what flows by."""

        def note(time: Any, batch: Any) -> None:
            for record in batch:
                self.seen[name, time, record] += 1

        stream.inspect_batch(note)

    def part(self, scope: Scope, plan: Any, streams: list[Stream[Any]]) -> list[Stream[Any]]:
        """Make one part; its outputs."""
        if isinstance(plan, ProbePlan):
            self.probes.append(streams[plan.stream].probe())
            return []
        if isinstance(plan, IteratePlan):
            return [self.iterate(plan, streams[plan.stream])]
        if isinstance(plan, LibraryPlan):
            chosen = [streams[number] for number in plan.streams]
            return library.make(plan.kind, scope.timestamp, chosen)
        if isinstance(plan, ScopePlan):
            with SCOPES[plan.kind](scope) as inner:
                entered = [streams[number].enter(inner) for number in plan.enters]
                inside = self.fill(inner, plan, entered)
                return [stream.leave() for stream in inside]
        inputs = [streams[number] for number in plan.inputs]
        if plan.style == "concat":
            return [scope.concatenate(inputs)]
        if plan.style in ("notify", "total"):
            return [self.notify(scope, plan, inputs)]
        return self.free(scope, plan, inputs)

    def iterate(self, plan: IteratePlan, stream: Stream[Any]) -> Stream[Any]:
        """A loop that stops at the latest when no record has a life left."""
        untils: dict[str, dict[str, Any]] = {
            "unchanged": {},
            "every": {"until": lambda record: record[1] <= 2},
            "measure": {"measure": _sum_of_numbers, "until": lambda total: total % 3 == 0},
        }
        function = _calmer if plan.until == "unchanged" else _aged
        return stream.iterate(
            lambda again: again.exchange(lambda record: record[0]).flat_map(function),
            limit=plan.limit,
            name=plan.name,
            **untils[plan.until],
        )

    def free(
        self, scope: Scope, plan: OperatorPlan, streams: Sequence[Stream[Any]]
    ) -> list[Stream[Any]]:
        """An operator that does as it likes."""
        builder: OperatorBuilder[Any] = scope.operator(plan.name)
        for stream, pact in zip(streams, plan.pacts, strict=True):
            builder.new_input(stream, _pact(pact), plan.interest)
        outputs = [
            builder.new_output(
                initial=initial, summaries=[way_of(scope.timestamp, s) for s in summaries]
            )
            for initial, summaries in zip(plan.initial, plan.summaries, strict=True)
        ]

        def build(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
            behaviour = Behaviour(self.plan, plan, scope.timestamp, info)
            behaviour.begin(capabilities)
            return behaviour.run

        builder.build(build)
        return outputs

    def notify(
        self, scope: Scope, plan: OperatorPlan, streams: Sequence[Stream[Any]]
    ) -> Stream[Any]:
        """An operator that sends on what it got when its time, or a later one, is complete."""

        def build(capability: Capability, info: OperatorInfo) -> Callable[..., Any]:
            capability.drop()
            return Waiter(self.plan, plan, scope.timestamp, info).run

        pacts = [_pact(pact) for pact in plan.pacts]
        if len(streams) == 1:
            return streams[0].unary_notify(pacts[0], plan.name, build)
        return streams[0].binary_notify(streams[1], pacts[0], pacts[1], plan.name, build)


def _aged(record: Record) -> list[Record]:
    """The record one life older, if it has one left: what goes around must end."""
    number, lives = record
    return [(number, lives - 1)] if lives else []


def _calmer(record: Record) -> list[Record]:
    """The record one life older, but never without one: after a while nothing changes."""
    number, lives = record
    return [(number, max(lives - 1, 1))] if lives else []


def _sum_of_numbers(batch: list[Record]) -> int:
    return sum(number for number, _ in batch)


def _pact(name: str) -> Pact:
    if name == "exchange":
        return Exchange(lambda record: record[0])
    if name == "grouped":
        return Exchange(lambda record: record[0] % N_GROUPS)
    return Broadcast() if name == "broadcast" else Pipeline()
