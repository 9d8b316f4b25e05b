"""Rows of a few plain values: what is written is read, and all else is left to a pickle."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.small_rows import RowsReader, pack_rows
from pointstamp.errors import SerializationError

ROOM = 1 << 12

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.integers(-200, 200)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.binary(max_size=20),
    lambda parts: st.lists(parts, max_size=4).map(tuple),
    max_leaves=20,
)


def through(tag, batch):
    """What is read of what was written, between other bytes that stay as they are."""
    memory = bytearray(b"\xaa" * (ROOM + 20))
    end = pack_rows(memoryview(memory), 10, 10 + ROOM, tag, batch)
    if end < 0:
        return None
    assert memory[:10] == b"\xaa" * 10
    assert memory[10 + ROOM :] == b"\xaa" * 10
    return RowsReader(memory).read(10, end)


def exact(value):
    """A value with the types of all that is in it, and the sign of zero."""
    if type(value) in (tuple, list):
        return type(value), [exact(part) for part in value]
    return type(value), math.copysign(1, value) if value == 0.0 else value


@given(plain, st.lists(plain, max_size=8))
def test_plain_values_come_out_as_they_went_in(tag, batch):
    found = through(tag, batch)
    assert found is not None
    assert exact(found) == exact((tag, batch))


@pytest.mark.parametrize(
    "value",
    [
        *(
            sign * (1 << bits) + more
            for bits in (6, 7, 31)
            for sign in (1, -1)
            for more in (-1, 0, 1)
        ),
        *(-(1 << 63), (1 << 63) - 1, 0.0, -0.0, math.inf, 5e-324),
        *("", "\0", "ä\U0001f600", b"", b"\xff", (), ((),), tuple(range(255))),
    ],
)
def test_values_at_the_ends_of_their_forms(value):
    found = through(value, [value, value])
    assert exact(found) == exact((value, [value, value]))


class Pair(NamedTuple):
    left: int
    right: int


class Count(int):
    """A number that is more than one."""


@pytest.mark.parametrize(
    "value",
    [
        1 << 63,
        -(1 << 63) - 1,
        1 << 100,
        [1],
        {"a": 1},
        {1},
        1j,
        object(),
        bytearray(b"x"),
        Pair(1, 2),
        Count(1),
        (1, (2, [3])),
        "\ud800",
        tuple(range(256)),
        bytes(1 << 16),
    ],
)
def test_other_values_are_left_to_a_pickle(value):
    assert through(value, []) is None
    assert through(0, [1, value]) is None


def test_values_as_deep_as_a_program_can_make_them_are_left_to_a_pickle():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    assert through(0, [deep]) is None
    while deep:  # or the end of it would take as deep a stack
        (deep,) = deep


@pytest.mark.parametrize("value", [1, 1 << 20, 1 << 40, 1.5, "abc", b"abc", (1, 2), None])
def test_what_has_no_room_is_left_to_a_pickle_and_nothing_is_written_beyond(value):
    memory = bytearray(ROOM)
    end = pack_rows(memoryview(memory), 0, ROOM, value, [value])
    for stop in range(end + 9):
        other = bytearray(b"\xaa" * (ROOM))
        found = pack_rows(memoryview(other), 0, stop, value, [value])
        assert found in (-1, end)
        assert found == -1 or stop >= end
        assert other[stop:] == b"\xaa" * (ROOM - stop)
    assert pack_rows(memoryview(bytearray(ROOM)), 0, end + 9, value, [value]) == end


@given(plain, st.lists(plain, min_size=1, max_size=4), st.data())
def test_what_was_cut_off_or_is_something_else_is_refused(tag, batch, data):
    memory = bytearray(ROOM)
    end = pack_rows(memoryview(memory), 0, ROOM, tag, batch)
    stop = data.draw(st.integers(0, end - 1))
    with pytest.raises(SerializationError, match=r"cut off|unknown code"):
        RowsReader(memory).read(0, stop)
    with pytest.raises(SerializationError, match="before their end"):
        RowsReader(memory).read(0, end + 1)
    memory[0] = 63
    with pytest.raises(SerializationError, match="unknown code 63"):
        RowsReader(memory).read(0, end)
