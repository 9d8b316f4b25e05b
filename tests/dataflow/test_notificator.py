"""Notificators alone, against a list of what was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.dataflow.handles import Frontier
from pointstamp.dataflow.notificator import Notificator
from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.timestamp import Int, Product

NESTED = Product(Int, Int)
TYPES = [
    pytest.param(Int, st.integers(0, 6), id="Int"),
    pytest.param(NESTED, st.tuples(st.integers(0, 3), st.integers(0, 3)), id="Product"),
]


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_each_time_is_given_once_when_it_is_complete(kind: Any, times: Any, data: Any) -> None:
    capabilities = CapabilityCounts("op", 0, kind, lambda: None)
    counts = MutableAntichain(kind, [(kind.minimum, 1)])
    notificator = Notificator(kind, [Frontier(counts)])
    frontier, waiting = kind.minimum, set[Any]()
    for time, is_frontier in data.draw(st.lists(st.tuples(times, st.booleans()), max_size=20)):
        if is_frontier:
            counts.change(time, 1)
            counts.change(frontier, -1)
            frontier = time
            complete = {t for t in waiting if not kind.less_equal(frontier, t)}
            given_out = []
            for capability in notificator:
                given_out.append(capability.time)
                capability.drop()
            assert sorted(given_out) == sorted(complete)
            if kind is Int:
                assert given_out == sorted(complete)
            waiting -= complete
        else:
            notificator.notify_at(capabilities.add(time))
            waiting.add(time)
        assert len(notificator) == len(waiting) == capabilities.n_held


def test_a_capability_given_twice_is_kept_and_another_of_its_time_is_dropped() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [Frontier(MutableAntichain(Int, [(0, 1)]))])
    for time in (5, 3, 7):
        first, second = capabilities.add(time), capabilities.add(time)
        for capability in (first, second, first):
            notificator.notify_at(capability)
        assert (first.live, second.live) == (True, False)
    assert len(notificator) == capabilities.n_held == 3


def test_a_time_asked_for_when_it_is_complete_is_overlooked_until_given_out() -> None:
    capabilities = CapabilityCounts("op", 0, Int, lambda: None)
    notificator = Notificator(Int, [Frontier(MutableAntichain(Int, [(4, 1)]))])
    notificator.notify_at(capabilities.add(9))
    assert not notificator.overlooked()
    notificator.notify_at(capabilities.add(2))
    assert notificator.overlooked()
    notificator.notify_at(capabilities.add(3))
    assert [capability.time for capability in notificator] == [2, 3]
    assert not notificator.overlooked()
    assert len(notificator) == 1
