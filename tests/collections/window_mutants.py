"""Planted bugs in windows of event time, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.checks import MERGES, merging
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.temporal_programs import check_program
from tests.collections.window_programs import windowed


@from_seed(6)
@without_shrinking
@given(windowed(), st.sampled_from([1, 2]), st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def by_windows(program: object, workers: int, at_a_time: int, schedule: int) -> None:
    """Windows of event time, and what follows them; every other time merged by single rows."""
    with merging(MERGES[schedule % 2]):
        check_program(program, workers, at_a_time, schedule)


WINDOW_MUTANTS = [
    *_of(
        "collections.event_windows",
        by_windows,
        [
            (
                "A window closes a moment late.",
                "is_open = closes > self.now",
                "is_open = closes >= self.now",
            ),
            (
                "Late updates are not left out.",
                "rows, closes = rows[is_open], closes[is_open]",
                "pass",
            ),
            (
                "What closes comes again.",
                "return [negated(",
                "return [(",
            ),
            (
                "Copies of a record that close are not added up.",
                "consolidate(np.ascontiguousarray(closed[:, 1:]))",
                "closed[:, 1:]",
                10,
            ),
            (
                "Results go when their window closes.",
                "return lasting",
                "return rows",
            ),
            (
                "The last changes of a window are left out.",
                "+ self._after) > self.now]",
                "+ self._after) > self.now + 1]",
            ),
            (
                "Results of a window whose end is a key last by its start.",
                "after = 0 if by_end else self.windows.size",
                "after = self.windows.size",
            ),
            (
                "Results of a window whose start is a key last until then.",
                "after = 0 if by_end else self.windows.size",
                "after = 0",
            ),
            (
                "The lateness is not waited for.",
                "_GREATEST - self._lateness) + self._lateness",
                "_GREATEST - self._lateness)",
            ),
            (
                "Deletions that are late count against insertions.",
                "late[:, -1] = np.abs(late[:, -1])",
                "pass",
                1,
            ),
            (
                "What is at the moment of closing is no late update.",
                "closes(rows[:, -2]) <= self.now]",
                "closes(rows[:, -2]) < self.now]",
            ),
            (
                "The end of a window is its start.",
                "starts, starts + self.size, rows[:, -1]",
                "starts, starts, rows[:, -1]",
            ),
            (
                "A bound that has another name is the other bound.",
                "start, end = (found.get(each)",
                "end, start = (found.get(each)",
                3,
            ),
        ],
    ),
    *_of(
        "collections.general_reduce",
        by_windows,
        [
            (
                "The rows of a function go when their window closes.",
                "if lasting is not None:",
                "if False:",
                1,
            ),
        ],
    ),
    *_of(
        "collections.clocked",
        by_windows,
        [
            (
                "A record of no time is in the window of 0.",
                "rows, times = rows[there], times[there]",
                "pass",
            ),
            (
                "Windows are behind their clock.",
                "parts = engine.move(now)",
                "parts = engine.move(now - 1)",
                5,
            ),
        ],
    ),
]
