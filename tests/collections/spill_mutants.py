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
            "A piece is of all that was looked at, and its records are not together.",
            "yield merge(parts[0][:n_left], parts[1][:n_right])",
            "n_left, n_right = map(len, parts)\n            yield merge(*parts)",
        ),
        (
            "A piece ends with the later of two records.",
            "last = min(_record(part[-1]) for part in parts if len(part))",
            "last = max(_record(part[-1]) for part in parts if len(part))",
        ),
        (
            "What one side still has is not written.",
            "while i < len(left) or j < len(right):",
            "while i < len(left) and j < len(right):",
        ),
        (
            "A piece of one side is written again.",
            "i, j = i + n_left, j + n_right",
            "i, j = i + n_left, j + max(n_right - 1, 0 if n_left else 1)",
        ),
        (
            "Records of the same first words are one.",
            "return tuple(row[:-1].tolist())",
            "return tuple(row[:-2].tolist())",
        ),
        (
            "Records of other diffs are others.",
            "return tuple(row[:-1].tolist())",
            "return tuple(row.tolist())",
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
