"""What the operators of random dataflows do with records and capabilities.

They pass records on at once, keep capabilities for some activations or until a time
is complete, delay and downgrade them to later times, drop them or leave that to the
collector. And they check what they are told: no record may come at a time that
their frontier excluded, or that they were notified of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Product, Timestamp
from tests.simulation.moments import EventProcessing, Moment
from tests.simulation.plans import N_GROUPS, OperatorPlan, Plan, Record
from tests.simulation.subsets import Join, Subsets


def later(timestamp: Timestamp, time: Any, draw: Callable[[], int]) -> Any:
    """A time at or after `time`, each coordinate of it by what `draw` gives."""
    if isinstance(timestamp, Product):
        return (later(timestamp.outer, time[0], draw), later(timestamp.inner, time[1], draw))
    if isinstance(timestamp, EventProcessing):
        return Moment(time.event + draw(), time.processing + draw())
    if isinstance(timestamp, Subsets):
        return time | draw() | (draw() >> 1 << 2)
    return time + draw()


def innermost(timestamp: Timestamp) -> Timestamp:
    """The type of the coordinate that a short form of a summary is of."""
    return timestamp.inner if isinstance(timestamp, Product) else timestamp


def way_of(timestamp: Timestamp, planned: int | None) -> Any:
    """The summary that a plan's number stands for: in a lattice, a way that some times pass."""
    if planned and innermost(timestamp) == Subsets():
        return Join(0b010, barred=0b001)
    return planned


@dataclass
class _Held:
    """A capability that is kept for a while, and what is to be sent with it."""

    capability: Capability
    output: int
    ticks: int
    """Activations to wait; -1: until the time is complete."""
    records: list[Record]
    rounds: int
    """How many times it is downgraded and held again."""
    rng: Random


class Behaviour:
    """What one worker's instance of a free operator does."""

    def __init__(
        self, plan: Plan, own: OperatorPlan, timestamp: Timestamp, info: OperatorInfo
    ) -> None:
        self.plan = plan
        self.own = own
        self.timestamp = timestamp
        self.info = info
        self.held: list[_Held] = []
        self.rng = Random(f"{plan.seed} {own.name} {info.index}")

    def begin(self, capabilities: list[Capability]) -> None:
        """Keep the initial capabilities, as planned."""
        rounds, ticks, n_records = self.own.start
        outputs = [port for port, initial in enumerate(self.own.initial) if initial]
        for port in reversed(outputs):
            capability = capabilities.pop()
            if not rounds:
                capability.drop()
                continue
            rng = Random(f"{self.plan.seed} {self.own.name} {port}")
            # A steady dataflow's records are the same however many workers there are.
            send = n_records and (not self.plan.steady or self.info.index == 0)
            records = [(rng.randrange(1000), 2) for _ in range(n_records)] if send else []
            ticks_ = -1 if ticks == 3 and self.own.interest != Interest.NEVER else ticks
            self.held.append(_Held(capability, port, ticks_, records, rounds, rng))

    def run(self, inputs: list[Input], outputs: list[Output]) -> bool:
        """One activation."""
        for port, input_ in enumerate(inputs):
            for time, batch in input_:
                _check_not_late(self.own.name, [input_], time.time)
                for record in batch:
                    self.treat(time, port, record, outputs)
        return self.release(inputs, outputs)

    def treat(
        self, time: InputCapability, port: int, record: Record, outputs: list[Output]
    ) -> None:
        """Pass a record on, keep it, or lose it."""
        if not self.is_for_me(port, record):
            return
        rng = self.draws(time.time, port, record)
        ways = [
            output
            for output, summaries in enumerate(self.own.summaries)
            if self.passes(time.time, summaries[port])
        ]
        if not ways or record[1] == 0 or not any(self.own.habits):
            return
        output = rng.choice(ways)
        habit = rng.choices(range(5), self.own.habits)[0]
        passed = self.descendants(record, rng)
        if habit == 0 and self.own.summaries[output][port] == 0:
            with outputs[output].session(time) as session:
                session.give_many(passed)
        elif habit in (0, 1, 3):
            self.hold(time.retain(output), output, passed, rng, rounds=int(habit == 3))
        elif habit == 2:
            with time.retain(output) as capability:
                new_time = later(self.timestamp, capability.time, lambda: rng.randrange(3))
                self.hold(capability.delayed(new_time), output, passed, rng)

    def passes(self, time: Any, planned: int | None) -> bool:
        """Whether there is a way, and it lets `time` through."""
        if planned is None:
            return False
        summary = self.timestamp.summary(way_of(self.timestamp, planned))
        return summary.results_in(time) is not None

    def hold(
        self,
        capability: Capability,
        output: int,
        records: list[Record],
        rng: Random,
        rounds: int = 0,
    ) -> None:
        """Keep a capability for some activations, or until its time is complete."""
        ticks = rng.choice([0, 1, 3, -1, -1])
        if ticks < 0 and self.own.interest == Interest.NEVER:
            ticks = 2
        self.held.append(_Held(capability, output, ticks, records, rounds, rng))

    def release(self, inputs: list[Input], outputs: list[Output]) -> bool:
        """Send what is due; whether to be called again without a reason."""
        held, self.held = self.held, []
        for item in held:
            if item.ticks > 0:
                item.ticks -= 1
                self.held.append(item)
            elif item.ticks == -1 and _may_come(inputs, item.capability.time):
                self.held.append(item)
            else:
                self.send(item, outputs)
        return any(
            item.ticks >= 0 or not _may_come(inputs, item.capability.time) for item in self.held
        )

    def send(self, item: _Held, outputs: list[Output]) -> None:
        """Send, and let go of the capability or keep it for later."""
        with outputs[item.output].session(item.capability) as session:
            session.give_many(item.records)
        if item.rounds > 0:
            item.rounds -= 1
            item.ticks = item.rng.choice([0, 2]) if item.ticks >= 0 else -1
            new_time = later(self.timestamp, item.capability.time, lambda: item.rng.randrange(3))
            if item.ticks == -1 and new_time == item.capability.time:
                item.ticks = 1
            item.capability.downgrade(new_time)
            self.held.append(item)
        elif item.rng.random() < 0.7:
            item.capability.drop()
        # else the collector drops it, as the safety net that it is

    def is_for_me(self, port: int, record: Record) -> bool:
        """In a steady dataflow, one worker alone treats what all are sent."""
        is_for_all = self.plan.steady and self.own.pacts[port] == "broadcast"
        return not is_for_all or record[0] % self.info.peers == self.info.index

    def draws(self, time: Any, port: int, record: Record) -> Random:
        """Where to draw from, for one record."""
        if not self.plan.steady:
            return self.rng
        return Random(f"{self.plan.seed} {self.own.name} {time} {port} {record}")

    def descendants(self, record: Record, rng: Random) -> list[Record]:
        """What becomes of a record."""
        number, lives = record
        return [
            ((number * 31 + 7 * k + 1) % 1009, lives - 1)
            for k in range(rng.choice([0, 1, 1, 1, 2]))
        ]


class Waiter(Behaviour):
    """What one worker's instance of a notified operator does."""

    def __init__(
        self, plan: Plan, own: OperatorPlan, timestamp: Timestamp, info: OperatorInfo
    ) -> None:
        super().__init__(plan, own, timestamp, info)
        self.waiting: dict[Any, list[Record]] = {}
        self.notified: list[Any] = []
        self.n_again = 0

    def run(self, *handles: Any) -> bool:
        """One activation."""
        *inputs, output, notificator = handles
        for port, input_ in enumerate(inputs):
            for time, batch in input_:
                _check_not_late(self.own.name, [input_], time.time)
                self.check_not_complete(time.time)
                for record in batch:
                    self.keep(time, port, record, notificator)
        complete: list[Capability] = []
        for capability in notificator:
            self.notified.append(capability.time)
            with output.session(capability) as session:
                session.give_many(self.answer(self.waiting.pop(capability.time, [])))
            complete.append(capability)
        for capability in complete:
            self.ask_again(capability, notificator)
            capability.drop()
        return False

    def ask_again(self, capability: Capability, notificator: Notificator) -> None:
        """Ask for a complete time once more, and then for one that is not complete.

        There is no frontier to move for the first: it must not be forgotten for the second.
        """
        if self.n_again < self.plan.again:
            self.n_again += 1
            time = capability.time
            notificator.notify_at(capability.delayed(time))
            notificator.notify_at(capability.delayed(later(self.timestamp, time, lambda: 1)))

    def keep(
        self, time: InputCapability, port: int, record: Record, notificator: Notificator
    ) -> None:
        """Keep a record until its time, or a later one, is complete."""
        if not self.is_for_me(port, record) or record[1] == 0:
            return
        rng = self.draws(time.time, port, record)
        new_time = later(self.timestamp, time.time, lambda: rng.choice([0, 0, 1, 2]))
        self.waiting.setdefault(new_time, []).append(record)
        for _ in range(self.plan.requests):
            notificator.notify_at(time.delayed(new_time))

    def answer(self, records: list[Record]) -> list[Record]:
        """What is sent of all that was kept for a time."""
        if self.own.style == "total":
            return _totals(records)
        return [(number * 31 % 1009, lives - 1) for number, lives in records]

    def check_not_complete(self, time: Any) -> None:
        """Nothing may come at or before a time of which there was a notification."""
        for complete in self.notified:
            if self.timestamp.less_equal(time, complete):
                raise AssertionError(
                    f"operator {self.own.name!r} was notified of {complete}, and got a record of "
                    f"{time} after that"
                )


def _totals(records: Iterable[Record]) -> list[Record]:
    """One record for each group of numbers, which says how many there were of which sum."""
    totals: dict[int, tuple[int, int, int]] = {}
    for number, lives in records:
        n, total, longest = totals.get(number % N_GROUPS, (0, 0, 0))
        totals[number % N_GROUPS] = (n + 1, total + number, max(longest, lives))
    return [((total * 31 + n) % 1009, lives - 1) for n, total, lives in totals.values()]


def _may_come(inputs: Iterable[Input], time: Any) -> bool:
    return any(input_.frontier.less_equal(time) for input_ in inputs)


def _check_not_late(name: str, inputs: Iterable[Input], time: Any) -> None:
    if not _may_come(inputs, time):
        raise AssertionError(
            f"operator {name!r} got a record of {time}, which its frontier said cannot come"
        )
