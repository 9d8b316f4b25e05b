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
from pointstamp.progress.timestamp import Int, Product, Timestamp
from tests.simulation.behaviour import later
from tests.simulation.subsets import Subsets

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
    timestamp = TIMESTAMPS[seed % 3]
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


def check_notifications(seed: int) -> None:
    """A `Notificator` gives out each time once, when it is complete, and forgets none.

    Times are asked for often, complete ones among them, and several between two activations.
    """
    rng = Random(seed)
    timestamp = TIMESTAMPS[seed % 3]
    is_early = rng.random() < 0.3
    holdings = CapabilityCounts("op", 0, timestamp, lambda: None)
    inputs = [[timestamp.minimum] for _ in range(rng.choice([1, 1, 2]))]
    counts = [MutableAntichain(timestamp, [(timestamp.minimum, 1)]) for _ in inputs]
    notificator = Notificator(timestamp, [Frontier(c) for c in counts], early=is_early)
    waiting: set[Any] = set()
    is_late = False

    def is_complete(time: Any) -> bool:
        return not any(
            timestamp.less_equal(t, time) and not (is_early and t == time)
            for times in inputs
            for t in times
        )

    def ask(time: Any) -> bool:
        for _ in range(rng.choice([1, 1, 2, 20])):
            notificator.notify_at(holdings.add(time))
        waiting.add(time)
        return is_complete(time)

    for _ in range(40):
        for _ in range(rng.choice([0, 1, 2, 12])):
            time = later(timestamp, timestamp.minimum, lambda: rng.randrange(8))
            is_late |= ask(time)
        assert len(notificator) == len(waiting) == holdings.n_held
        is_some_complete = any(map(is_complete, waiting))
        assert notificator.overlooked() == (is_late and is_some_complete)
        is_late = False
        if rng.random() < 0.4:  # otherwise it is not run, or does not look
            keys = []
            for capability in notificator:
                assert is_complete(capability.time)
                keys.append(timestamp.key(capability.time))
                waiting.remove(capability.time)
                capability.drop()
                if len(keys) < 30 and rng.random() < 0.3:
                    is_late |= ask(later(timestamp, capability.time, lambda: rng.randrange(3)))
            if timestamp.total:
                assert keys == sorted(keys)
            assert not any(map(is_complete, waiting))
        which = rng.randrange(len(inputs))
        for time in inputs[which]:
            counts[which].change(time, -1)
        inputs[which] = [
            later(timestamp, time, lambda: rng.choice([0, 0, 1])) for time in inputs[which]
        ]
        for time in inputs[which]:
            counts[which].change(time, +1)
