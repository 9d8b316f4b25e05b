"""What an operator's code sees of an input's frontier is what the counts of its times say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import TimestampError
from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.few_counts import BEYOND
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.timestamp import Int, Product, Timestamp
from tests.simulation.subsets import Subsets

PAIRS = Product(Int, Int)

NUMBERS = st.integers(0, 4) | st.sampled_from([BEYOND - 1, BEYOND, 2**63, 2**70])
TIMES: dict[Any, Any] = {
    Int: NUMBERS,
    PAIRS: st.tuples(NUMBERS, NUMBERS),
    Subsets(): st.integers(0, 7),
}
CHANGES = st.sampled_from([-2, -1, 1, 1, 1, 3])


@pytest.mark.parametrize("timestamp", TIMES, ids=str)
@given(data=st.data())
def test_it_is_that_of_the_counts_however_they_come(timestamp: Timestamp, data: Any) -> None:
    times = TIMES[timestamp]
    frontier, expected = InputFrontier(timestamp), MutableAntichain(timestamp)
    for delivered in data.draw(st.lists(st.lists(st.tuples(times, CHANGES), max_size=12))):
        batch: ChangeBatch = ChangeBatch(delivered)
        if data.draw(st.booleans()):
            batch.gather()  # as a log does, which reads it before
        frontier.take(batch)
        assert batch.is_empty()
        for time, change in delivered:
            expected.change(time, change)
        frontier.check()
        assert set(frontier.frontier) == set(expected.frontier)
        assert frontier.is_empty() == expected.is_empty()
        asked = data.draw(times)
        assert frontier.less_equal(asked) == expected.less_equal(asked)
        assert frontier.less_than(asked) == expected.less_than(asked)


def test_any_number_may_be_asked_for() -> None:
    frontier = InputFrontier(Int, [(3, 1)])
    assert frontier.less_than(float("inf"))
    assert not frontier.less_equal(2.5)
    assert frontier.less_equal(2**80)
    assert not frontier.less_equal(-(2**80))
    pairs = InputFrontier(PAIRS, [((1, 2), 1)])
    assert pairs.less_than((1, float("inf")))
    assert not pairs.less_equal((2**80, 1))


@pytest.mark.parametrize("time", ["3", None, (1, 2, 3)])
@pytest.mark.parametrize("timestamp", [Int, Product(Int, Int)])
def test_what_is_no_time_is_refused_by_name_when_it_is_asked_for(
    timestamp: Timestamp, time: Any
) -> None:
    frontier = InputFrontier(timestamp, [(timestamp.minimum, 1)])
    for question in (frontier.less_equal, frontier.less_than):
        with pytest.raises(TimestampError, match=r"a time of type .* is a .*; found"):
            question(time)
