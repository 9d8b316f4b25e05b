"""Planted bugs in what is asserted of collections, append-only ones, and error policies."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.appending import check_insertions, insertions
from tests.collections.asserting import check_asserting, pairs_of_collections
from tests.collections.failing import Failing, check_failing, failing_programs
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of

_WORKERS, _AT_A_TIME = st.sampled_from([1, 2]), st.sampled_from([1, 3])
_SCHEDULES = st.integers(0, 1 << 20)


@from_seed(21)
@without_shrinking
@given(failing_programs, _WORKERS, _AT_A_TIME, _SCHEDULES)
def by_failing(program: Failing, workers: int, at_a_time: int, schedule: int) -> None:
    """Expressions and functions that fail on some records."""
    check_failing(program, workers, at_a_time, schedule)


@from_seed(22)
@without_shrinking
@given(pairs_of_collections(), _WORKERS, _AT_A_TIME, _SCHEDULES)
def by_asserting(sides: Any, workers: int, at_a_time: int, schedule: int) -> None:
    """Collections that are equal up to some epoch."""
    check_asserting(sides, workers, at_a_time, schedule)


@from_seed(23)
@without_shrinking
@given(insertions, _WORKERS, _AT_A_TIME, _SCHEDULES)
def by_insertions(epochs: Any, workers: int, at_a_time: int, schedule: int) -> None:
    """Collections of which nothing is deleted."""
    check_insertions(epochs, workers, at_a_time, schedule)


POLICY_MUTANTS = [
    *_of(
        "collections.row_errors",
        by_failing,
        [
            (
                "An error is there as often as its record is.",
                '.distinct(name=f"{name}Errors")',
                '.consolidate(name=f"{name}Errors")',
            ),
            (
                "A record that is deleted is one more error.",
                "self._policy.note((record, int(rows[0, -1])), error)",
                "self._policy.note((record, 1), error)",
                4,
            ),
            (
                "Of a batch that fails the last part is left out.",
                "for begin in range(0, len(rows), size):",
                "for begin in range(0, max(1, len(rows) - size), size):",
            ),
        ],
    ),
    *_of(
        "collections.by_record",
        by_failing,
        [
            (
                "What a function gives of a record is there once.",
                "yield each, diff",
                "yield each, min(diff, 1)",
            ),
        ],
    ),
    *_of(
        "collections.assertions",
        by_asserting,
        [
            (
                "It is looked at before an epoch is complete.",
                'collection.consolidate(name=f"{name}Changes").stream, name, look, of_updates',
                "collection.stream, name, look, of_updates",
            ),
            (
                "The other collection is added.",
                'there.negate(name=f"{name}Negate")',
                "there",
            ),
        ],
    ),
    *_of(
        "collections.seen_records",
        by_insertions,
        [
            (
                "A record that was there comes again.",
                "return self._once(n_before)",
                "return self._once(0)",
                3,
            ),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_insertions,
        [
            (
                "A first value is looked for where none is.",
                "batches.restart([new])",
                "batches.restart([new[:0]])",
            ),
        ],
    ),
]
