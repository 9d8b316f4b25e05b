"""Events in a buffer come out as they went in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.observability.buffer import CAPACITY, Buffer
from pointstamp.observability.clock import LogClock
from pointstamp.observability.event_types import (
    CAPABILITIES,
    MESSAGES,
    PARKS,
    PROGRESS,
    REACHABILITY,
    SCHEDULES,
    own_type,
)

INTS = st.integers(-(2**31), 2**31 - 1)
TIMES = st.integers() | st.booleans() | st.tuples(st.integers(0, 9), st.integers()) | st.text()
CLOCK = LogClock(count().__next__)  # whose moments are what was read


def columns(of: Any, numbers: list[int]) -> dict[str, Any]:
    """What an event of these numbers is read as."""
    kinds = {"int32": int, "int64": int, "bool": bool}
    return {
        name: kinds[kind](number)
        for (name, kind), number in zip(of.numbers.items(), numbers, strict=False)
    }


@pytest.mark.parametrize("of", [SCHEDULES, PARKS, PROGRESS], ids=lambda of: of.name)
@given(st.lists(st.lists(INTS, min_size=6, max_size=6), min_size=1, max_size=20))
def test_numbers_are_in_their_columns(of: Any, events: list[list[int]]) -> None:
    buffer = Buffer(of, CLOCK, lambda buffer: None)
    for _ in range(2):  # the second time over what was there
        for numbers in events:
            n = len(of.numbers)
            buffer.add(*numbers[:n], *[0] * (6 - n))
        assert buffer.last == events[-1][0]
        assert buffer.take().to_pylist() == [columns(of, numbers) for numbers in events]
        assert buffer.n == 0


@pytest.mark.parametrize("of", [CAPABILITIES, MESSAGES, REACHABILITY], ids=lambda of: of.name)
@given(st.lists(st.tuples(TIMES, st.lists(INTS, min_size=6, max_size=6)), max_size=20))
def test_times_are_texts_whatever_they_are(of: Any, events: list[Any]) -> None:
    buffer = Buffer(of, CLOCK, lambda buffer: None)
    for _ in range(2):
        for time, numbers in events:
            buffer.add_at(time, *numbers)
        assert buffer.take().to_pylist() == [
            {**columns(of, numbers), "time": str(time)} for time, numbers in events
        ]


NUMBERS = st.sampled_from([0, 9, 10, -1, -9, -10, 2**63 - 1, -(2**63)]) | st.integers(
    -(2**63), 2**63 - 1
)


def near(times: list[Any]) -> Iterator[Any]:
    """Each with times that are soon after it, as most are of those that follow each other."""
    for time in times:
        *outer, inner = time if type(time) is tuple else (time,)
        for later in (inner, inner + 1, inner, inner + 2):
            if later < 2**63:
                yield (*outer, later) if outer else later


PAIRED = st.sampled_from([0, 9, 10, -1, 2**61 - 1, 1 - 2**61]) | st.integers(1 - 2**61, 2**61 - 1)


@given(st.lists(NUMBERS | st.just(7) | st.tuples(PAIRED, PAIRED) | st.just((7, 6)), max_size=30))
def test_times_that_are_all_numbers_are_written_as_texts(times: list[Any]) -> None:
    buffer = Buffer(CAPABILITIES, CLOCK, lambda buffer: None)
    times = list(near(times))
    for _ in range(2):
        for time in times:
            if type(time) is int:
                buffer.add_number(time, 1, 2, 3, 4, 0, 0)
            else:
                buffer.add_pair(*time, 1, 2, 3, 4, 0, 0)
        batch = buffer.take()
        batch.validate(full=True)
        assert batch.column("time").to_pylist() == [str(time) for time in times]


def test_a_buffer_is_open_to_the_collector_but_in_other_threads_and_while_it_makes_objects() -> (
    None
):
    open_at: list[bool] = []

    class Nosy:
        def __str__(self) -> str:
            open_at.append(buffer.is_open())
            return "nosy"

    buffer = Buffer(CAPABILITIES, CLOCK, lambda buffer: None)
    assert buffer.is_open()
    buffer.add_at(Nosy(), 1, 2, 3, 4, 0, 0)
    assert buffer.is_open()
    assert buffer.take().column("time").to_pylist() == ["nosy"]
    other = Thread(target=lambda: open_at.append(buffer.is_open()))
    other.start()
    other.join()
    assert open_at == [False, False]
    while buffer.n < CAPACITY - 1:
        buffer.add(1, 2, 3, 4, 0, 0)
    assert not buffer.is_open()  # the next one would have it emptied


def test_a_buffer_that_is_full_says_so_and_takes_more() -> None:
    taken: list[Any] = []
    buffer = Buffer(REACHABILITY, CLOCK, lambda buffer: taken.append(buffer.take()))
    for number in range(2 * CAPACITY + 3):
        buffer.add_at(number, number, 1, 2, 3, 0, -number)
    taken.append(buffer.take())
    assert [batch.num_rows for batch in taken] == [CAPACITY, CAPACITY, 3]
    rows = [row for batch in taken for row in batch.to_pylist()]
    assert [(row["at"], row["change"], row["time"]) for row in rows] == [
        (number, -number, str(number)) for number in range(2 * CAPACITY + 3)
    ]
    assert {row["is_input"] for row in rows} == {False}


def test_what_does_not_fit_in_its_column_is_refused_and_leaves_nothing() -> None:
    kinds = ["int32", "float64", "bool", "int64", "int64", "int64", "int64", "string"]
    of = own_type("wide", {f"c{i}": kind for i, kind in enumerate(kinds)})
    buffer = Buffer(of, CLOCK, lambda buffer: None)
    buffer.add_with(("x",), 1, 2, 0.25, True, 3, -4, 5, 2**62)
    for wrong in (2**31, "1", None):
        with pytest.raises(struct.error):
            buffer.add_with(("y",), 1, wrong, 0.25, True, 3, 4, 5, 6)
    buffer.add_with((7,), 2, -2, -1e300, False, 0, 0, 0, -(2**62))
    values = [list(row.values()) for row in buffer.take().to_pylist()]
    assert values == [
        [1, 2, 0.25, True, 3, -4, 5, 2**62, "x"],
        [2, -2, -1e300, False, 0, 0, 0, -(2**62), "7"],
    ]


def test_a_column_of_the_program_is_no_moment_whatever_it_is_called() -> None:
    clock = LogClock()
    buffer = Buffer(own_type("trips", {"began": "int64"}), clock, lambda buffer: None)
    buffer.add_with((), clock.now(), 7)
    assert buffer.take().column("began").to_pylist() == [7]
