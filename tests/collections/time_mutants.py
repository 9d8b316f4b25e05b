"""Planted bugs in how times of a user's lattice are words, one line each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.test_user_times import CASES, Update, check, updates_drawn


@from_seed(45)
@without_shrinking
@given(st.sampled_from(CASES), updates_drawn(), updates_drawn(), st.booleans())
def by_user_times(step: str, updates: list[Update], later: list[Update], looped: bool) -> None:
    """Operators at times of a version and a set of regions."""
    check(step, updates, later, looped, 1, 0)


TIME_MUTANTS = [
    *_of(
        "collections.lattice",
        by_user_times,
        [
            (
                "The words of a product are those of its first type.",
                "return _encoded(timestamp.outer, time[0]) + _encoded(timestamp.inner, time[1])",
                "return _encoded(timestamp.outer, time[0]) + (0,) * timestamp.inner.n_words",
            ),
        ],
    ),
]
