"""The timeline of a log, against slots worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.observability.reading import LoggedRun
from pointstamp.observability.summary import self_times, summarize
from pointstamp.observability.timeline import innermost, timeline
from tests.observability.test_summary import told

MAP, SCOPE, COUNT = 1, 2, 3
# when it was made, number, scope, dataflow, kind, name, address
MADE = {
    "operators": [
        (0, SCOPE, -1, 0, "dataflow", "rounds", "0"),
        (0, MAP, SCOPE, 0, "operator", "Map", "0.0"),
        (0, COUNT, SCOPE, 0, "operator", "Count", "0.1"),
    ]
}


def drawn(slots: int, *workers: dict[str, list[tuple[Any, ...]]]) -> Any:
    run = LoggedRun(
        Path("log"), "ticks", [told(i, {**MADE, **rows}) for i, rows in enumerate(workers)]
    )
    return timeline(run, summarize(run).operators, slots)


def test_each_slot_shows_what_took_most_of_it() -> None:
    """(at, began, operator): a scope from 0 to 40 that has a map in it and a count after."""
    busy = {"schedules": [(12, 4, MAP), (40, 0, SCOPE), (80, 40, COUNT)], "parks": [(100, 90)]}
    waiting = {"parks": [(50, 10)]}
    found = drawn(10, busy, waiting)
    assert (found.began, found.slot) == (0, 10.0)
    assert found.letters == {"A": "Count", "B": "Map"}
    first, second = found.rows
    assert first.marks == "B+++AAAA-."
    assert first.shares["B"] == [0.6, 0.2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert first.shares["+"] == [0.4, 0.8, 1, 1, 0, 0, 0, 0, 0, 0]
    # The second has no event after its park: it is not known what it did, or it was over.
    assert second.marks == "-....     "
    assert second.shares == {".": [0, 1, 1, 1, 1, 0, 0, 0, 0, 0], "-": [1, *[0] * 9]}


def test_only_those_that_take_longest_have_letters() -> None:
    numbers = range(10, 40)
    made = [(0, n, SCOPE, 0, "operator", f"Op{n}", f"0.{n}") for n in numbers]
    ends = np.cumsum([100 - n for n in numbers]).tolist()
    schedules = [(end, end - (100 - n), n) for end, n in zip(ends, numbers, strict=True)]
    found = drawn(30, {"operators": made, "schedules": schedules})
    assert list(found.letters.values()) == [f"Op{n}" for n in range(10, 36)]
    assert set(found.rows[0].marks) >= {"A", "Z", "o"}


def test_a_log_without_events_has_no_timeline() -> None:
    run = LoggedRun(Path("log"), "ns", [told(0, {})])
    assert timeline(run, [], 10) is None


def test_moments_since_1970_are_told_apart() -> None:
    began = 1_790_000_000_123_456_789
    run = LoggedRun(
        Path("log"),
        "ns",
        [
            told(
                0,
                {"schedules": [(began + 1_000, began, MAP), (began + 2_000, began + 1_000, COUNT)]},
            )
        ],
    )
    found = timeline(run, summarize(run).operators, 4)
    assert found is not None
    (row,) = found.rows
    assert [row.marks[:2] == row.marks[0] * 2, row.marks[2:] == row.marks[2] * 2] == [True, True]
    assert row.marks[0] != row.marks[2]


@st.composite
def nests(draw: Any) -> list[tuple[int, int]]:
    """Activations that nest or are apart, in the order in which they ended."""
    found: list[tuple[int, int]] = []

    def put(at: int, depth: int) -> int:
        for _ in range(draw(st.integers(0, 3))):
            began = at + draw(st.integers(0, 2))
            ended = began + draw(st.integers(0, 2))
            if depth:
                ended = max(ended, put(began, depth - 1))
            found.append((began, ended + draw(st.integers(0, 2))))
            at = found[-1][1]
        return at

    put(draw(st.integers(0, 5)), 3)
    return found


@given(nests())
def test_pieces_are_apart_and_as_long_as_the_self_times(activations: list[tuple[int, int]]) -> None:
    began = np.array([each[0] for each in activations], np.int64)
    ended = np.array([each[1] for each in activations], np.int64)
    starts, ends, operators = innermost(began, ended, np.arange(len(began)))
    assert (starts < ends).all()
    assert (starts[1:] >= ends[:-1]).all()
    lengths = np.zeros(len(began), np.int64)
    np.add.at(lengths, operators, ends - starts)
    assert lengths.tolist() == self_times(ended, began).tolist()


@pytest.mark.parametrize("slots", [1, 7, 1_000])
def test_shares_of_a_slot_add_up(slots: int) -> None:
    busy = {"schedules": [(12, 4, MAP), (40, 0, SCOPE), (80, 40, COUNT)], "parks": [(101, 90)]}
    (row,) = drawn(slots, busy).rows
    assert np.sum(list(row.shares.values()), axis=0) == pytest.approx(np.ones(slots), abs=1e-3)
