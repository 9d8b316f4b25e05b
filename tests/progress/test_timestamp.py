"""What timestamps and summaries do beside their laws, which `test_check_timestamp` has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import (
    Advance,
    Both,
    Int,
    Outside,
    Product,
    Unit,
    followed_by,
)

NESTED = Product(Int, Int)

ints = st.integers(0, 6)
advances = st.builds(Advance, st.integers(0, 3), st.none() | st.integers(4, 9))


@given(
    st.tuples(ints, ints),
    advances,
    st.builds(Both, advances, advances),
    st.builds(Both, advances, advances),
)
def test_a_path_outside_leaves_and_enters_again(
    time: tuple[int, int], around: Advance, before: Both, after: Both
) -> None:
    refinement = NESTED.refines(Int)
    assert refinement is not None
    outside = Outside(refinement, around, NESTED.identity)
    path = followed_by(before, outside)
    path = path and followed_by(path, after)
    expected = before.outer.results_in(time[0])
    for summary in (around, after.outer):
        expected = None if expected is None else summary.results_in(expected)
    inner = after.inner.results_in(0)
    if path is None:
        assert expected is None or inner is None
    elif expected is None or inner is None:
        assert path.results_in(time) is None
    else:
        assert path.results_in(time) == (expected, inner)


def test_a_region_refines_its_own_type_and_a_product_its_outer_one() -> None:
    nested = NESTED.refines(Int)
    assert nested is not None
    assert (nested.to_inner(4), nested.to_outer((4, 2))) == ((4, 0), 4)
    same = NESTED.refines(NESTED)
    assert same is not None
    assert same.to_inner((4, 2)) == (4, 2)
    assert NESTED.refines(Unit) is None
    assert Int.refines(NESTED) is None


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(Int, "3"), (Int, -1), (Int, True), (Int, 1.0), (Unit, 0), (NESTED, 3), (NESTED, (1, "a"))],
)
def test_a_time_of_the_wrong_type_is_named(kind: Any, wrong: Any) -> None:
    with pytest.raises(TimestampError, match=r"type (Int|Unit|Product)"):
        kind.check(wrong)


def test_a_bounded_summary_counts_the_limit_from_the_end() -> None:
    # Times below 5 after +1, then below 6 after another +2: so t + 3 < 6.
    both = Advance(1, 5).followed_by(Advance(2, 6))
    assert both == Advance(3, 6)
    assert Advance(4, 5).followed_by(Advance(3, 7)) is None
