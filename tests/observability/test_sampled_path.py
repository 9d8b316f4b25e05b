"""Critical paths from samples: by hand, and of any samples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.observability.sampled_path import (
    SHORTEST_S,
    SampledEpoch,
    sampled_path,
    slowest,
)
from pointstamp.runtime.watched_samples import PARKED, PROGRAM, PROGRESS

NAMES = {"0/1": "Slow", "0/2": "Quick"}


def path(began: float, ended: float, worker: int, rows: Any) -> list[tuple[Any, ...]]:
    found = sampled_path(SampledEpoch("d", 7, began, ended, worker), rows, NAMES)
    assert (found["epoch"], found["dataflow"]) == ("7", "d")
    return [
        (each["kind"], each["name"], each["worker"], each["from"], each["to"])
        for each in found["parts"]
    ]


def test_a_worker_that_waits_leads_to_the_one_that_was_at_work() -> None:
    rows = {
        0: [(0.0, 1.0, "0/2"), (1.0, 5.0, PARKED), (5.0, 6.0, "0/2")],
        1: [(0.0, 4.0, "0/1"), (4.0, 6.0, PARKED)],
    }
    assert path(0.5, 6.0, 0, rows) == [
        ("operator", "Slow", 1, 0.5, 4.0),
        ("message", "", 1, 4.0, 5.0),
        ("operator", "Quick", 0, 5.0, 6.0),
    ]


def test_where_all_wait_it_is_a_wait() -> None:
    rows = {
        0: [(0.0, 2.0, "0/1"), (2.0, 9.0, PARKED)],
        1: [(0.0, 3.0, "0/2"), (3.0, 9.0, PROGRESS)],
    }
    # Worker 1 was last at work, until 3.
    assert path(1.0, 9.0, 0, rows) == [
        ("operator", "Quick", 1, 1.0, 3.0),
        ("message", "", 1, 3.0, 9.0),
    ]
    nothing = {0: [(0.0, 9.0, PARKED)], 1: [(0.0, 9.0, PARKED)]}
    assert path(1.0, 9.0, 0, nothing) == [("worker", PARKED, 0, 1.0, 9.0)]
    assert path(1.0, 9.0, 0, {}) == [("worker", PARKED, 0, 1.0, 9.0)]


def test_code_of_the_program_is_a_part_and_an_operator_comes_before_it() -> None:
    rows = {
        0: [(0.0, 4.0, PARKED), (4.0, 5.0, PROGRAM)],
        1: [(0.0, 4.0, PROGRAM)],
        2: [(0.0, 4.0, "0/1")],
    }
    assert path(0.0, 5.0, 0, rows) == [
        ("operator", "Slow", 2, 0.0, 4.0),
        ("worker", PROGRAM, 0, 4.0, 5.0),
    ]


def test_what_is_alike_is_added_up_longest_first() -> None:
    rows = {0: [(0.0, 1.0, "0/1"), (1.0, 2.0, "0/2"), (2.0, 4.0, "0/1")]}
    found = sampled_path(SampledEpoch("d", 7, 0.0, 4.0, 0), rows, NAMES)
    assert found["latency"] == 4.0
    assert [(each["name"], each["n"], each["seconds"]) for each in found["sums"]] == [
        ("Slow", 2, 3.0),
        ("Quick", 1, 1.0),
    ]


def test_the_slowest_epoch_is_from_the_last_that_left_it_to_the_last_that_saw_its_end() -> None:
    seen = [
        SampledEpoch("d", 1, 0.0, 3.0, 0),
        SampledEpoch("d", 1, 2.0, 2.9, 1),
        SampledEpoch("d", 2, 3.0, 5.0, 0),
        SampledEpoch("e", 2, 3.0, 4.0, 0),
    ]
    assert slowest(seen) == SampledEpoch("d", 2, 3.0, 5.0, 0)
    assert slowest(seen[:2]) == SampledEpoch("d", 1, 2.0, 3.0, 0)
    assert slowest([]) is None
    assert slowest([SampledEpoch("d", 1, 0.0, 0.9 * SHORTEST_S, 0)]) is None


@st.composite
def samples(draw: st.DrawFn) -> tuple[SampledEpoch, dict[int, list[Any]]]:
    rows: dict[int, list[Any]] = {}
    for worker in range(draw(st.integers(1, 3))):
        moment, row = 0.0, []
        for _ in range(draw(st.integers(0, 6))):
            moment += draw(st.sampled_from([0.0, 0.5]))  # a gap
            ended = moment + draw(st.sampled_from([0.25, 1.0, 2.0]))
            what = draw(st.sampled_from([PARKED, PROGRESS, PROGRAM, "0/1", "0/2"]))
            row.append((moment, ended, what))
            if draw(st.booleans()):  # read twice while it went on
                row.insert(-1, (moment, (moment + ended) / 2, what))
            moment = ended
        rows[worker] = row
    began = draw(st.sampled_from([0.0, 0.3, 1.0]))
    ended = began + draw(st.sampled_from([0.1, 1.0, 4.0, 9.0]))
    worker = draw(st.integers(0, len(rows) - 1))
    return SampledEpoch("d", 1, began, ended, worker), rows


@given(samples())
def test_parts_follow_each_other_and_add_up_to_the_epoch(drawn: Any) -> None:
    epoch, rows = drawn
    parts = sampled_path(epoch, rows, NAMES)["parts"]
    assert parts[0]["from"] == epoch.began
    assert parts[-1]["to"] == epoch.ended
    for before, after in pairwise(parts):
        assert before["to"] == after["from"]
    assert sum(each["to"] - each["from"] for each in parts) == pytest.approx(
        epoch.ended - epoch.began
    )
    # An operator is one that the worker was seen in.
    for each in parts:
        if each["kind"] == "operator":
            middle = (each["from"] + each["to"]) / 2
            (address,) = (key for key, name in NAMES.items() if name == each["name"])
            assert any(a <= middle <= b and w == address for a, b, w in rows[each["worker"]])
