"""Random use of what counts times, against counting from scratch."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.dataflow.handles import Frontier
from pointstamp.dataflow.notificator import Notificator
from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.few_counts import FewCounts
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.staircase import Staircase
from pointstamp.progress.timestamp import Int, Product, Timestamp
from tests.simulation.behaviour import later
from tests.simulation.subsets import Subsets

DEEP = Product(Product(Int, Int), Int)
TIMESTAMPS: tuple[Timestamp, ...] = (Int, Product(Int, Int), Subsets())


def least(timestamp: Timestamp, times: set[Any]) -> set[Any]:
    """The times that no other of them is before."""
    return {
        time
        for time in times
        if not any(other != time and timestamp.less_equal(other, time) for other in times)
    }


def check_counts(seed: int) -> None:
    """A `MutableAntichain` has the counts that were given, and the least of them as frontier.

    Tens of times at once, each counted up to some tens, and mostly given up from the first.
    """
    rng = Random(seed)
    timestamp = (*TIMESTAMPS, DEEP)[seed % 4]
    counted, expected = MutableAntichain(timestamp), Counter[Any]()
    batch, added = ChangeBatch(), Counter[Any]()
    time = timestamp.minimum
    n_actions, is_tide = rng.choice([20, 200]), rng.random() < 0.5
    for number in range(n_actions):
        action = rng.random()
        if is_tide:  # first many come, then they go
            action = 0.5 * action if number < n_actions / 2 else 0.55 + 0.4 * action
        if action < 0.55 or not expected:
            time = later(timestamp, time, lambda: rng.choice([0, 1, 1, 2]))
            change = rng.choice([1, 1, 2, 7, 30, -1])
        else:
            is_first = action < 0.93
            time = min(expected, key=timestamp.key) if is_first else rng.choice([*expected])
            change = -expected[time] if rng.random() < 0.8 else rng.choice([-1, -3, 5])
        before = set(counted.frontier)
        changes = counted.update(time, change)
        expected[time] += change
        if not expected[time]:
            del expected[time]
        frontier = least(timestamp, {t for t, n in expected.items() if n > 0})
        assert dict(counted) == dict(expected)
        assert set(counted.frontier) == frontier
        assert dict(changes) == {t: (t in frontier) - (t in before) for t in before ^ frontier}
        assert all(counted.count(t) == n for t, n in expected.items())
        probe = later(timestamp, time, lambda: rng.randrange(2))
        for asked in (probe, timestamp.minimum):
            at_or_before = {t for t in frontier if timestamp.less_equal(t, asked)}
            assert counted.less_equal(asked) == bool(at_or_before)
            assert counted.less_than(asked) == bool(at_or_before - {asked})
        batch.update(time, change)
        added[time] += change
        if rng.random() < 0.1:
            assert dict(batch.drain()) == {t: n for t, n in added.items() if n}
            added.clear()
        if rng.random() < 0.1 and not is_tide:
            time = timestamp.minimum


def check_few_counts(seed: int) -> None:
    """`FewCounts` has the counts that were given, and says how their frontier moved.

    Of mostly up to a handful of times, and now and then of more; some have counts below zero.
    """
    rng = Random(seed)
    timestamp = (Int, Product(Int, Int))[seed % 2]
    counted, expected = FewCounts(timestamp), Counter[Any]()
    for _ in range(400):
        goes = len(expected) > rng.choice([1, 3, 5, 9])
        outer, inner = rng.randrange(4) if timestamp.pairs else 0, rng.randrange(6)
        change = rng.choice([1, 1, 2, -1])
        if goes:
            gone = rng.choice([*expected])
            outer, inner = gone if timestamp.pairs else (0, gone)
            change = -expected[gone]
        time: Any = (outer, inner) if timestamp.pairs else inner
        before = set(counted.frontier)
        sign = counted.change(outer, inner, change)
        expected[time] += change
        if not expected[time]:
            del expected[time]
        frontier = least(timestamp, {t for t, n in expected.items() if n > 0})
        assert dict(counted) == dict(expected)
        assert set(counted.frontier) == frontier
        assert sign == (time in frontier) - (time in before)
        if sign:
            others = (before ^ frontier) - {time}
            assert counted.others.n == len(others)
            if counted.many is None and hasattr(counted.others, "outers"):  # compiled, arrays of C
                outers, inners = counted.others.outers, counted.others.inners
                told = {(outers[at], inners[at]) for at in range(counted.others.n)}
                assert told == {t if timestamp.pairs else (0, t) for t in others}
        asked = (rng.randrange(4) if timestamp.pairs else 0, rng.randrange(6))
        time = asked if timestamp.pairs else asked[1]
        at_or_before = {t for t in frontier if timestamp.less_equal(t, time)}
        assert counted.count(*asked) == expected[time]
        assert counted.less_equal(*asked) == bool(at_or_before)
        assert counted.less_than(*asked) == bool(at_or_before - {time})
        counted.check()


def check_staircase(seed: int) -> None:
    """A `Staircase` of hundreds of pairs has the counts that were given, and the least as frontier.

    They come anywhere, along the frontier, or one after the other, and go from anywhere or from
    the frontier; some have counts below zero for long.
    """
    rng = Random(seed)
    counted, expected = Staircase(), Counter[Any]()
    width, moves_on = rng.choice([3, 20, 60]), rng.random() < 0.5
    n_actions = 700
    for number in range(n_actions):
        goes = rng.random() < (0.3 if number < n_actions / 2 else 0.8)
        if goes and expected:
            several = counted.frontier if counted.frontier and rng.random() < 0.7 else [*expected]
            time = rng.choice(several)
            change = -expected[time]
        else:
            place = rng.randrange(width)
            time = (place, rng.choice([width - place, rng.randrange(width)]))
            change = rng.choice([1, 1, 1, 1, 2, -1, -2])
        changes = [(time, change)]
        if moves_on and change < 0 and rng.random() < 0.5:
            changes.append(((time[0], time[1] + 1), 1))
        for each in changes:
            _count_pair(counted, expected, *each)
        asked = (rng.randrange(width), rng.randrange(width))
        at_or_before = {t for t in counted.frontier if t[0] <= asked[0] and t[1] <= asked[1]}
        assert counted.less_equal(asked) == bool(at_or_before)
        assert counted.less_than(asked) == bool(at_or_before - {asked})
        assert counted.is_minimal(asked) == (asked in counted.frontier)
        assert counted.count(asked) == expected[asked]
    counted.check()
    assert dict(counted) == {time: n for time, n in expected.items() if n}


def _count_pair(counted: Staircase, expected: Counter[Any], time: Any, change: int) -> None:
    before = set(counted.frontier)
    has_changed = counted.change(time, change)
    expected[time] += change
    if not expected[time]:
        del expected[time]
    frontier, lowest = set(), None
    for outer, inner in sorted(time for time, n in expected.items() if n > 0):
        if lowest is None or inner < lowest:
            frontier.add((outer, inner))
            lowest = inner
    assert set(counted.frontier) == frontier
    assert len(counted.frontier) == len(frontier)
    assert has_changed == (frontier != before)
    if has_changed:
        assert len(counted.gone) + len(counted.came) == len(frontier ^ before)
        assert set(counted.gone) == before - frontier
        assert set(counted.came) == frontier - before
    assert counted.n_times == len(expected)


def check_notifications(seed: int) -> None:
    """A `Notificator` gives out each request when it is complete, least first, and forgets none.

    Times are asked for often, complete ones among them, several between two activations, and
    some with capabilities that are later than what they wait for.
    """
    _Notified(seed).run()


class _Notified:
    """A notificator, and what was asked of it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.timestamp = TIMESTAMPS[seed % 3]
        self.is_early = rng.random() < 0.3
        self.held = CapabilityCounts("op", 0, self.timestamp, lambda: None)
        least = self.timestamp.minimum
        self.inputs = [[least] for _ in range(rng.choice([1, 1, 2]))]
        self.counts = [InputFrontier(self.timestamp, [(least, 1)]) for _ in self.inputs]
        frontiers = [Frontier(each) for each in self.counts]
        self.notificator = Notificator(self.timestamp, frontiers, early=self.is_early)
        self.waiting = Counter[Any]()
        """How often each time was asked for."""
        self.required: dict[Any, list[Any]] = {}
        """Times of capabilities, by the time that each waits for."""
        self.is_late = False
        self.has_requirements = rng.random() < 0.5

    def run(self) -> None:
        for _ in range(40):
            for _ in range(self.rng.choice([0, 1, 2, 12])):
                self.ask(self.later(self.timestamp.minimum, 8))
            self.check()
            if self.rng.random() < 0.4:  # otherwise it is not run, or does not look
                self.take()
            self.advance()

    def later(self, time: Any, most: int) -> Any:
        most = min(most, 4) if self.timestamp == Subsets() else most
        return later(self.timestamp, time, lambda: self.rng.randrange(most))

    def is_complete(self, time: Any) -> bool:
        return not any(
            self.timestamp.less_equal(t, time) and not (self.is_early and t == time)
            for times in self.inputs
            for t in times
        )

    def ask(self, time: Any) -> None:
        self.is_late |= self.is_complete(time)
        if self.has_requirements and self.rng.random() < 0.5:
            after = self.later(time, 3)
            self.notificator.notify_at(self.held.add(after), time)
            if after != time:
                self.required.setdefault(time, []).append(after)
            else:
                self.waiting[time] += 1
            return
        for _ in range(self.rng.choice([1, 1, 2, 20])):
            self.notificator.notify_at(self.held.add(time))
            self.waiting[time] += 1

    def check(self) -> None:
        """What is waited for, and whether some of it needs another activation."""
        n_required = sum(map(len, self.required.values()))
        assert len(self.notificator) == len(self.waiting) + n_required == self.held.n_held
        pending = Counter({time: len(afters) for time, afters in self.required.items()})
        assert dict(self.notificator.pending()) == pending + self.waiting
        is_some = any(map(self.is_complete, [*self.waiting, *self.required]))
        assert self.notificator.overlooked() == (self.is_late and is_some)
        self.is_late = False

    def take(self) -> None:
        """Take what is complete, and ask for more meanwhile."""
        is_counted = self.rng.random() < 0.5
        given: Any = self.notificator.counted() if is_counted else self.notificator
        for n_taken, found in enumerate(given):
            capability, n_requests = found if is_counted else (found, None)
            time, n = self.expected()
            assert capability.time == time
            assert n_requests in (None, n)
            capability.drop()
            if n_taken < 30 and self.rng.random() < 0.3:
                self.ask(self.later(time, 3))
        assert not any(map(self.is_complete, [*self.waiting, *self.required]))

    def expected(self) -> tuple[Any, int]:
        """The least that is complete: its capability's time, and how often it was asked for."""
        key = self.timestamp.key
        own = min(filter(self.is_complete, self.waiting), key=key, default=None)
        other = min(filter(self.is_complete, self.required), key=key, default=None)
        if other is None or (own is not None and key(own) <= key(other)):
            assert own is not None
            return own, self.waiting.pop(own)
        after = self.required[other].pop(0)
        if not self.required[other]:
            del self.required[other]
        return after, 1

    def advance(self) -> None:
        """Let one of the frontiers go on."""
        which = self.rng.randrange(len(self.inputs))
        for time in self.inputs[which]:
            self.counts[which].change(time, -1)
        self.inputs[which] = [
            later(self.timestamp, time, lambda: self.rng.choice([0, 0, 1]))
            for time in self.inputs[which]
        ]
        for time in self.inputs[which]:
            self.counts[which].change(time, +1)
