"""ThrottleTime as times, and when a step may send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import TimestampError
from pointstamp.joins.throttle import WINDOW, Throttle, ThrottleTime, at_end, at_start
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.timestamp import Int, Product, Stay

counters = st.tuples(*[st.integers(0, 3)] * 3)


@given(counters, counters, counters)
def test_turns_are_a_partial_order_that_tuples_extend(a, b, c):
    turns = ThrottleTime(3)
    assert turns.less_equal(turns.minimum, a)
    assert turns.less_equal(a, a)
    if turns.less_equal(a, b):
        assert a <= b
        assert a == b or not turns.less_equal(b, a)
        if turns.less_equal(b, c):
            assert turns.less_equal(a, c)


def test_what_are_no_counters_is_refused():
    assert ThrottleTime(2).check((0, 3)) == (0, 3)
    for wrong in [(1,), (1, 2, 3), (0, -1), 4]:
        with pytest.raises(TimestampError, match="2 counters"):
            ThrottleTime(2).check(wrong)
    assert ThrottleTime(2).summary(0) == Stay()
    with pytest.raises(TimestampError):
        ThrottleTime(2).summary(1)


@given(st.integers(0, 9), counters)
def test_a_join_begins_and_ends_around_all_its_turns(epoch, turns):
    times = Product(Int, ThrottleTime(3))
    time = (epoch, turns)
    assert times.less_equal(at_start(time), time)
    assert times.less_equal(time, at_end(time))
    assert not times.less_equal(at_start((epoch + 1, turns)), at_end(time))


class Seen:
    """A frontier whose elements a test sets."""

    def __init__(self, *elements):
        self.elements = list(elements)

    def less_equal(self, time):
        return any(
            Product(Int, ThrottleTime(2)).less_equal(element, time) for element in self.elements
        )


def paced(turn, *frontiers):
    throttle = Throttle(0, last=False, batch_records=10)
    for frontier in frontiers:
        throttle.watch(frontier)
    for _ in range(turn):
        throttle.next_turn()
    return throttle


def test_the_first_turns_wait_for_nothing():
    under_way = Seen((0, (0, 0)))
    assert all(paced(turn, under_way).may_send((0, (0, 0))) for turn in range(WINDOW))
    assert not paced(WINDOW, under_way).may_send((0, (0, 0)))


def test_a_turn_waits_until_the_one_before_the_window_is_done_everywhere():
    """However far the next step is with it: its own counter does not matter."""
    here, there = Seen((0, (3, 0))), Seen((0, (2, 77)))
    throttle = paced(2 + WINDOW, here, there)
    assert not throttle.may_send((0, (0, 0)))
    there.elements = [(0, (3, 0))]
    assert throttle.may_send((0, (0, 0)))


def test_later_epochs_are_not_waited_for():
    assert paced(50, Seen((1, (0, 0)))).may_send((0, (0, 0)))
    assert not paced(50, Seen((1, (0, 0)))).may_send((1, (0, 0)))


def test_who_has_nothing_in_hand_skips_the_turns_of_others():
    throttle = paced(1, Seen((0, (5, 0)), (0, (4, 9))))
    throttle.catch_up()
    assert throttle.now((0, (0, 0))) == (0, (5, 0))
    throttle.catch_up()
    assert throttle.now((0, (0, 0))) == (0, (5, 0)), "and never goes back"


def test_the_last_level_has_no_turns():
    throttle = Throttle(2, last=True, batch_records=10)
    throttle.watch(Seen((0, (0, 0))))
    throttle.next_turn()
    throttle.catch_up()
    assert throttle.may_send((0, (0, 0)))
    assert throttle.now((0, (3, 4))) == (0, (3, 4))


def test_frontiers_are_of_the_order_of_turns():
    """Two workers at different turns are both least: neither hides the other."""
    times = Product(Int, ThrottleTime(2))
    frontier = Antichain(times.less_equal, [(0, (1, 5)), (0, (2, 0)), (0, (2, 6))])
    assert sorted(frontier) == [(0, (1, 5)), (0, (2, 0))]
