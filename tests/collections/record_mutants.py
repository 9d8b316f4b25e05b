"""Planted bugs in collections without a schema, which random programs of records catch."""

from __future__ import annotations

from hypothesis import given, seed
from hypothesis import strategies as st

from tests.collections.hunting import planted_in as _of
from tests.collections.hunting import without_shrinking
from tests.collections.record_programs import (
    RecordProgram,
    check_records,
    check_records_in_view,
    record_programs,
)


@seed(12)
@without_shrinking
@given(record_programs())
def by_records(program: RecordProgram) -> None:
    """Programs of one worker."""
    check_records_in_view(program)


@seed(13)
@without_shrinking
@given(record_programs(), st.sampled_from([2, 4]), st.integers(0, 1 << 20))
def by_records_of_workers(program: RecordProgram, workers: int, schedule: int) -> None:
    """Programs whose records are exchanged."""
    check_records(program, workers, 7, schedule)


RECORD_MUTANTS = [
    *_of(
        "containers.dictionary",
        by_records,
        [
            (
                "A NaN is equal to itself alone.",
                "self._enter(canonical_key(value)) if number is None",
                "self._enter(value) if number is None",
            ),
        ],
    ),
    *_of(
        "collections.grouped_records",
        by_records,
        [
            (
                "A group has each record once.",
                'ANY.values(copied(rows[:, 1], rows[:, 2], "groups"))',
                "ANY.values(rows[:, 1])",
            ),
            (
                "The least come first where the greatest should.",
                "sorted(records, key=by, reverse=descending)[:k]",
                "sorted(records, key=by)[:k]",
            ),
            (
                "Answers are of the group before.",
                "records[begin:end], name)",
                "records[max(begin - 1, 0):end], name)",
            ),
        ],
    ),
    *_of(
        "collections.records",
        by_records_of_workers,
        [
            (
                "One predicate is enough.",
                "all(true(record) for true in predicates) for record",
                "any(true(record) for true in predicates) for record",
                1,
            ),
        ],
    ),
    *_of(
        "collections.by_record",
        by_records_of_workers,
        [
            (
                "What a function makes comes once, however often its record does.",
                "yield each, diff",
                "yield each, diff and (1 if diff > 0 else -1)",
                1,
            ),
        ],
    ),
]
