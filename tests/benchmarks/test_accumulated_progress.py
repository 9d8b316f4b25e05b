"""The model of many machines: what it counts is what is sent, and its times follow its costs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.accumulated_progress import COSTS, barrier_round


def test_a_round_that_is_added_up_takes_few_messages() -> None:
    added = barrier_round(8, 2, accumulate=True, rounds=5)
    assert (added.messages, added.between) == (2 * 6 + 2, 2)
    flat = barrier_round(8, 2, accumulate=False, rounds=5)
    assert abs(flat.messages - 8 * 7) <= 8  # rounds of different workers overlap
    assert abs(flat.between - 2 * 4 * 4) <= 8
    assert added.n_bytes < flat.n_bytes / 10


def test_on_one_machine_nothing_is_between() -> None:
    for accumulate in (False, True):
        found = barrier_round(4, 1, accumulate=accumulate, rounds=3)
        assert (found.between, found.n_bytes) == (0, 0)


def test_a_slower_network_makes_longer_rounds_by_its_latency() -> None:
    """Once, as sums of two machines cross at the same time."""
    slow = replace(COSTS, latency_there=COSTS.latency_there + 1e-3)
    for accumulate in (False, True):
        quick, other = (
            barrier_round(4, 2, accumulate=accumulate, rounds=5, costs=costs).seconds
            for costs in (COSTS, slow)
        )
        assert abs(other - quick - 1e-3) < 1e-4
