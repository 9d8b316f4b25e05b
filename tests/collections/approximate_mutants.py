"""Planted bugs in sums of floats in two words, one line each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.test_approximate_sums import (
    NARROW,
    WIDE,
    FloatChanges,
    changes_of,
    check_again,
    check_floats,
)


@from_seed(41)
@without_shrinking
@given(changes_of(NARROW), st.sampled_from([1, 2]))
def by_exact_sums(program: FloatChanges, workers: int) -> None:
    """Values whose sums fit into two words."""
    check_floats(program, workers, 1, exact=True)


@from_seed(42)
@without_shrinking
@given(changes_of(WIDE), st.sampled_from([1, 2]))
def by_rounded_sums(program: FloatChanges, workers: int) -> None:
    """Values whose sums do not."""
    check_floats(program, workers, 1, exact=False)


@from_seed(43)
@without_shrinking
@given(changes_of([1e300, 1.0, 0.1]), st.integers(0, 20))
def by_lives_of_sums(program: FloatChanges, cut: int) -> None:
    """The same, begun again with a snapshot."""
    check_again(program, cut)


APPROXIMATE_MUTANTS = [
    *_of(
        "collections.approximate_sums",
        by_exact_sums,
        [
            (
                "What is rounded away is lost.",
                "    return _two_sum(total, error + rest_error)",
                "    return total, np.zeros_like(error)",
            ),
            (
                "A value counts once, however often it comes.",
                "times = diffs.astype(np.float64)",
                "times = np.sign(diffs).astype(np.float64)",
            ),
            (
                "Of an odd number of values of a group the last is lost.",
                "has_next = left + 1 < np.repeat(starts + lengths, lengths)[left]",
                "has_next = left + 1 < len(numbers)",
                7,
            ),
            (
                "A group of as many deletions as insertions is empty.",
                "empty = self._counts.is_empty(groups.astype(np.int64)) & error",
                "empty = self._counts.is_empty(groups.astype(np.int64))",
                8,
            ),
        ],
    ),
    *_of(
        "collections.approximate_sums",
        by_rounded_sums,
        [
            (
                "An infinity is added like others.",
                "finite = np.isfinite(values)",
                "finite = np.isfinite(values) | (values > 0)",
            ),
        ],
    ),
    *_of(
        "collections.approximate_sums",
        by_lives_of_sums,
        [
            (
                "The lower word is not in a snapshot.",
                "self._lower[:n].view(np.int64), self._greatest[:n]]",
                "0 * self._lower[:n].view(np.int64), self._greatest[:n]]",
                6,
            ),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_lives_of_sums,
        [
            (
                "What was rounded is made anew of the updates that came.",
                "is_exact = not state.is_approximate",
                "is_exact = True",
                1,
            ),
        ],
    ),
]
