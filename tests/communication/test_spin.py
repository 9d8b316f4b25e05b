"""Looking before sleeping: for how long, and when it is given up and taken up again."""

from __future__ import annotations

import pytest

from pointstamp.communication import spin
from pointstamp.communication.spin import LONG_SPINS, MAX_SKIPPED, WAKE_UPS_PER_SPIN, Spin


@pytest.fixture
def clock(monkeypatch):
    """What the clock shows before and after the processor is handed over, in turns."""
    late = [0.0]
    shown = [0.0]

    def now():
        return shown[0]

    def hand_over():
        shown[0] += late[0]

    monkeypatch.setattr(spin, "monotonic", now)
    monkeypatch.setattr(spin, "_hand_over", hand_over)
    return late


@pytest.fixture
def two_processors(monkeypatch):
    monkeypatch.setattr(spin, "n_processors", lambda: 2)


def test_a_worker_alone_waits_for_no_answer(two_processors):
    assert not Spin(1).is_due()
    assert Spin(2).is_due()
    assert Spin(8).is_due()


def test_slow_answers_are_waited_for_asleep_until_one_is_quick(two_processors):
    spinning = Spin(2)
    for _ in range(3):
        for _ in range(100):
            spinning.slept(2 * LONG_SPINS * spinning.seconds)
            assert not spinning.is_due()
        spinning.slept(LONG_SPINS * spinning.seconds)
        assert not spinning.is_due()  # neither long nor short
        spinning.slept(spinning.seconds)
        assert spinning.is_due()
        spinning.slept(LONG_SPINS * spinning.seconds)
        assert spinning.is_due()


def test_being_put_to_sleep_once_does_not_make_the_next_wait_too_long_to_look(two_processors):
    """A peer that is woken answers after that and a step: or both would sleep for ever after."""
    spinning = Spin(2)
    spinning.slept(2 * LONG_SPINS * spinning.seconds)
    for wake_up_s in (25e-6, 50e-6, 90e-6):
        for _ in range(100):
            spinning.woken(wake_up_s)
        assert spinning.seconds == pytest.approx(WAKE_UPS_PER_SPIN * wake_up_s, rel=0.01)
        spinning.slept(2 * wake_up_s)
        assert spinning.is_due()


@pytest.mark.parametrize(("said", "believed"), [(0.0, 20e-6), (-1.0, 20e-6), (1.0, 100e-6)])
def test_what_a_wake_up_cannot_cost_is_not_believed(two_processors, said, believed):
    spinning = Spin(2)
    for _ in range(100):
        spinning.woken(said)
    assert spinning.seconds == pytest.approx(WAKE_UPS_PER_SPIN * believed, rel=0.01)


def test_more_workers_than_processors_look_longer_as_they_take_turns(two_processors):
    assert Spin(4).seconds == 2 * Spin(2).seconds == 2 * Spin(3).seconds / 2
    assert Spin(8).seconds == 4 * Spin(2).seconds


def test_where_others_want_the_processor_looking_is_given_up_for_longer_and_longer(
    two_processors, clock
):
    spinning = Spin(2)
    spins = []
    clock[0] = 0.003
    for number in range(5_000):
        if spinning.is_due():
            spins.append(number)
            assert not spinning.hand_over()
        spinning.slept(spinning.seconds)
    assert spins[:5] == [0, 2, 6, 14, 30]
    assert spins[-1] - spins[-2] == MAX_SKIPPED + 1
    clock[0] = 0.0
    while not spinning.is_due():
        pass
    for _ in range(20):  # however often in one spin, that counts once
        assert spinning.hand_over()
    clock[0] = 0.003
    assert not spinning.hand_over()
    assert skipped(spinning) == MAX_SKIPPED
    clock[0] = 0.0
    for _ in range(10):
        assert spinning.hand_over()
        assert spinning.is_due()
    clock[0] = 0.003
    assert not spinning.hand_over()
    assert skipped(spinning) == 1


def skipped(spinning):
    """How many waits begin without a spin from here on."""
    n_skipped = 0
    while not spinning.is_due():
        n_skipped += 1
    return n_skipped


def test_peers_that_hand_the_processor_back_soon_are_no_others(two_processors, clock):
    spinning = Spin(8)
    clock[0] = 3 * spin.LATE_S
    assert spinning.hand_over()
    assert spinning.is_due()
    clock[0] = 4 * spin.LATE_S
    assert not spinning.hand_over()
