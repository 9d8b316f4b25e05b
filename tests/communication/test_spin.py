"""Looking before sleeping is learned, and not done where it takes a processor from a peer."""

from __future__ import annotations

from pointstamp.communication import spin
from pointstamp.communication.spin import Spin


def test_spinning_is_given_up_when_it_does_not_pay(monkeypatch):
    monkeypatch.setattr(spin, "n_processors", lambda: 2)
    learner = Spin(2)
    spins = []
    for number in range(200):
        if learner.is_due():
            spins.append(number)
            learner.learn(paid=False)
    assert spins == [0, 2, 6, 14, 30, 62, 126, 190]
    while not learner.is_due():
        pass
    learner.learn(paid=True)
    assert learner.is_due()
    assert learner.is_due()


def test_more_workers_than_processors_do_not_spin(monkeypatch):
    monkeypatch.setattr(spin, "n_processors", lambda: 2)
    assert not Spin(3).is_due()
    assert not Spin(1).is_due()
