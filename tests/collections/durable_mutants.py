"""Planted bugs in what clocks, what goes by them, and upserts have in snapshots."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.temporal_programs import orders, stays
from tests.collections.test_durable_clocks import check_restart
from tests.collections.window_programs import windowed

_COUNTS = st.sampled_from([1, 2])


@from_seed(7)
@without_shrinking
@given(st.one_of(stays(), windowed()), _COUNTS, _COUNTS, st.integers(0, 9))
def by_restarts(program: object, before: int, after: int, cut: int) -> None:
    """Temporal filters and windows that go on from a snapshot."""
    check_restart(program, before, after, cut, 1)


@from_seed(9)
@without_shrinking
@given(stays().map(partial(replace, by_epoch=False, counts=False)), st.integers(0, 9))
def by_clocks_again(program: object, cut: int) -> None:
    """Temporal filters by a clock that go on from a snapshot."""
    check_restart(program, 1, 1, cut, 1)


@from_seed(8)
@without_shrinking
@given(orders(), _COUNTS, _COUNTS, st.integers(0, 9))
def by_upserts_again(program: object, before: int, after: int, cut: int) -> None:
    """Upserts that go on from a snapshot."""
    check_restart(program, before, after, cut, 1)


DURABLE_MUTANTS = [
    *_of(
        "collections.clock_input",
        by_clocks_again,
        [
            (
                "A clock of a snapshot is not where it was.",
                "output.session(held).give(state[_KEY])",
                "output.session(held).give(state[_KEY] - 1)",
                2,
            ),
        ],
    ),
    *_of(
        "collections.clocked",
        by_restarts,
        [
            (
                "After a snapshot no epoch is looked at by itself.",
                "await_following(capability)",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.temporal",
        by_restarts,
        [
            (
                "What was there at a snapshot comes again.",
                "self._leaving.add(np.column_stack([ends, rows]))",
                "self._coming.add(np.column_stack([starts, ends, rows]))",
                11,
            ),
            (
                "What will come is not in a snapshot.",
                "self._coming.add(np.column_stack([starts, ends, rows]))",
                "pass",
                11,
            ),
        ],
    ),
    *_of(
        "collections.event_windows",
        by_restarts,
        [
            (
                "Windows that are open at a snapshot never close.",
                "self._closing.add(np.column_stack([self._windows.closes(rows[:, -2]), rows]))",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.upserts",
        by_upserts_again,
        [
            (
                "Keys of a snapshot have no record.",
                "self._records[numbers, 0] = 1",
                "pass",
            ),
            (
                "Texts in records of a snapshot are those of other numbers.",
                'return [StoredPart("records", rows, self.texts)]',
                'return [StoredPart("records", rows)]',
            ),
        ],
    ),
]
