"""The clock of a log: readings become moments, in order, as the system's clock has them."""

from __future__ import annotations

from itertools import count, pairwise
from time import sleep, time_ns

import numpy as np

from pointstamp.observability.clock import LogClock

NEAR_NS = 1_000_000_000
"""More than there is between two looks at clocks, unless the machine is very busy."""


def test_moments_are_those_of_the_system_and_in_the_order_of_the_readings() -> None:
    clock = LogClock()
    readings, before, after = [], [], []
    for pause_s in (0, 0, 0.01, 0, 0.002):
        sleep(pause_s)
        before.append(time_ns())
        readings.append(clock.now())
        after.append(time_ns())
        moments = clock.moments(np.array(readings)).tolist()
        # What was given once stays, whatever both clocks say later.
        assert moments == [clock.moment_of(reading) for reading in readings]
    assert all(first < second for first, second in pairwise(moments))
    for earliest, moment, latest in zip(before, moments, after, strict=True):
        assert earliest - NEAR_NS < moment < latest + NEAR_NS
    assert moments[3] - moments[0] > 9_000_000


def test_what_was_forgotten_does_not_change_what_follows() -> None:
    clock = LogClock()
    for _ in range(5):
        clock.moment()
    first = clock.now()
    moment = clock.moment_of(first)
    clock.forget()
    assert clock.moment_of(first) == moment
    assert clock.moment() > moment


def test_far_between_two_looks_a_moment_is_as_far_between() -> None:
    clock = LogClock()
    clock.moment()
    long_after = clock.now() + 2**45  # where the product of a reading and nanoseconds has 90 bits
    near, far = clock.moments(np.array([clock.last, long_after])).tolist()
    assert 2**41 < far - near < 2**47


def test_in_a_simulation_readings_are_moments() -> None:
    clock = LogClock(count(3).__next__)
    assert [clock.now(), clock.recent(), clock.moment()] == [3, 4, 5]
    assert clock.moments(np.array([1, 2])).tolist() == [1, 2]
