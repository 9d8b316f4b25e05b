"""Both sides of a join, in tables of their own and in one, against dicts."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import record_numbers
from pointstamp.containers.record_numbers import RecordNumbers

HASHES = st.lists(st.integers(-2, 4), max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "find", "meet"]), st.integers(0, 1), HASHES), max_size=12
)


def expected(numbers: dict[int, list[int]], hashes: list[int]) -> list[tuple[int, int]]:
    return [(i, number) for i, key in enumerate(hashes) for number in numbers[key]]


@given(STEPS, st.sampled_from([1, 5]), st.sampled_from([1, 4]), st.sampled_from([15, 2**31 - 1]))
def test_whatever_is_shared_and_when_it_is_what_came(
    steps: list[tuple[str, int, list[int]]], many: int, times: int, limit: int
) -> None:
    """Beyond the limit each has a table of its own again."""
    sides = RecordNumbers(), RecordNumbers()
    came: list[dict[int, list[int]]] = [collections.defaultdict(list) for _ in sides]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_numbers, "_MANY", many)
        patch.setattr(record_numbers, "_TIMES", times)
        patch.setattr(record_numbers, "LIMIT", limit)
        for what, side, hashes in steps:
            own, other = sides[side], sides[1 - side]
            keys = np.array(hashes, np.int64)
            if what == "add":
                own.add(keys)
            else:
                found = other.find(keys) if what == "find" else own.meet(keys, other)
                pairs = list(zip(*map(np.ndarray.tolist, found), strict=True))
                assert pairs == expected(came[1 - side], hashes)
            if what != "find":
                first = sum(map(len, came[side].values()))
                for number, key in enumerate(hashes, first):
                    came[side][key].append(number)
                assert own.n == first + len(hashes)


def test_two_sides_share_a_table_when_both_have_many_and_not_before() -> None:
    left, right = RecordNumbers(), RecordNumbers()
    for first in range(0, 6_000, 1_000):
        keys = np.arange(first, first + 1_000)
        for own, other in ((left, right), (right, left)):
            both_have = min(left.n, right.n)
            own.meet(keys, other)
            assert (own._kept is other._kept) == (both_have > 4_096)


def test_sides_that_seldom_meet_keep_tables_of_their_own() -> None:
    left, right = RecordNumbers(), RecordNumbers()
    for first in range(0, 100_000, 10_000):
        for own, other, start in ((left, right, first), (right, left, first + 4_000)):
            own.meet(np.arange(start, start + 5_000), other)
    assert left._kept is not right._kept
    left.meet(np.arange(4_000, 9_000), right)
    left.meet(np.arange(4_000, 9_000), right)
    assert left._kept is right._kept


def test_one_side_that_is_far_larger_keeps_a_table_of_its_own() -> None:
    left, right = RecordNumbers(), RecordNumbers()
    left.add(np.arange(100_000))
    for first in range(0, 30_000, 5_000):
        right.meet(np.arange(first, first + 5_000), left)
        assert (left._kept is right._kept) == (4 * first >= 100_000)
