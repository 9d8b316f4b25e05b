"""Planted bugs in spines on disk, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.updates import Rows
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.spilled import check_merge, updates


@from_seed(9)
@without_shrinking
@given(updates, updates, st.sampled_from([1, 200, 3_000]))
def by_merges(left: Rows, right: Rows, limit: int) -> None:
    """Two batches."""
    check_merge(left, right, limit)


SPILL_MUTANTS = _of(
    "collections.spine_memory",
    by_merges,
    [
        (
            "A piece is of rows that lie side by side in both.",
            "left, self._n_left, right, self._n_right, most, left.shape[1] - 1",
            "left, self._n_left, left, self._n_left, most, left.shape[1] - 1",
        ),
        (
            "Records of the same first words are one.",
            "left, self._n_left, right, self._n_right, most, left.shape[1] - 1",
            "left, self._n_left, right, self._n_right, most, left.shape[1]",
        ),
        (
            "What one side still has is not written.",
            "while self.n_read < n_all:",
            "while self._n_left < len(left) and self._n_right < len(right):",
        ),
        (
            "A piece of one side is written again.",
            "self._n_left, self._n_right = i, j",
            "self._n_left, self._n_right = i, j - (0 < j < len(right) and i > self._n_left)",
        ),
        (
            "What is written unfinished is all.",
            "            if self.n_fuel - self.n_read < most:\n                return False",
            "            if self.n_fuel - self.n_read < most:\n                break",
        ),
        (
            "Rows that are kept in pieces lose the first of each.",
            "yield begin, min(begin + n, len(rows))",
            "yield begin + 1, min(begin + n, len(rows))",
        ),
        (
            "What is on disk counts as what is in memory.",
            "n_bytes = sum(rows.nbytes for rows in batches if not is_on_disk(rows))",
            "n_bytes = sum(rows.nbytes for rows in batches)",
        ),
        (
            "What is no more in memory counts still.",
            "self._memory.release(self._held_bytes - n_bytes)",
            "pass",
        ),
    ],
)
