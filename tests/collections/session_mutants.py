"""Planted bugs in sessions of event time, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from tests.collections.checks import MERGES, merging
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.session_programs import in_sessions
from tests.collections.temporal_programs import check_program
from tests.collections.test_durable_clocks import check_restart

_COUNTS = st.sampled_from([1, 2])


@from_seed(6)
@without_shrinking
@given(in_sessions(), _COUNTS, st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def by_sessions(program: object, workers: int, at_a_time: int, schedule: int) -> None:
    """Sessions, and what follows them; every other time merged by single rows."""
    with merging(MERGES[schedule % 2]):
        check_program(program, workers, at_a_time, schedule)


@from_seed(7)
@without_shrinking
@given(in_sessions(), _COUNTS, _COUNTS, st.integers(0, 9))
def by_sessions_again(program: object, before: int, after: int, cut: int) -> None:
    """Sessions that go on from a snapshot."""
    check_restart(program, before, after, cut, 1)


def _sessions_of(by: tuple[str, ...]) -> ps.View:
    """How many records sessions have, by some columns."""
    return ps.View(
        lambda scope, t, now: (
            t.window(ps.Sessions(30), time="at", key="user", lateness=0, clock=now)
            .group_by(*by)
            .agg(n=ps.count())
        ),
        t="user string, at long",
        now=ps.ClockInput("long"),
    )


def by_a_deletion_that_comes_first() -> None:
    """One of a record that comes later, and then once more."""
    with _sessions_of(("user", "window_start", "window_end")) as view:
        view.delete("t", [("Ada", 100)])
        view.advance(now=0)
        for expected in ([], [("Ada", 100, 130, 1)], [("Ada", 100, 130, 2)]):
            view.insert("t", [("Ada", 100)])
            view.advance()
            assert view.snapshot() == expected


def by_a_session_that_begins_again() -> None:
    """One that begins where another did that a deletion left over."""
    with _sessions_of(("user", "window_start")) as view:
        view.insert("t", [("Ada", 100), ("Ada", 120)])
        view.advance(now=140)
        view.delete("t", [("Ada", 120)])
        view.advance()
        view.insert("t", [("Ada", 100), ("Ada", 120)])
        view.advance()
        assert view.snapshot() == [("Ada", 100, 3)]


SESSION_MUTANTS = [
    *_of(
        "collections.clocked",
        by_sessions,
        [
            (
                "A record of no time is at 0.",
                "rows, times = rows[there], times[there]",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.session_windows",
        by_sessions,
        [
            (
                "Records that are a gap apart are of one session.",
                "unsigned[1:] - unsigned[:-1] >= np.uint64",
                "unsigned[1:] - unsigned[:-1] > np.uint64",
            ),
            (
                "A session ends with its last record.",
                "return times[first][session], last[session] + self.gap",
                "return times[first][session], last[session]",
            ),
            (
                "Sessions of all keys are of one.",
                "begins = is_first(timed, self.n_key)",
                "begins = is_first(timed, 0)",
            ),
            (
                "A session closes a moment late.",
                "self._form.closes(ends) <= self.now",
                "self._form.closes(ends) < self.now",
            ),
            (
                "The lateness of sessions is not waited for.",
                "_GREATEST - self.lateness) + self.lateness",
                "_GREATEST - self.lateness)",
            ),
            (
                "What comes late is in a session.",
                "after, starts, ends = after[~late], starts[~late], ends[~late]",
                "pass",
            ),
            (
                "A late deletion takes something away.",
                "left = _added([before, goes[~is_late]])",
                "left = _added([before, goes])",
                11,
            ),
            (
                "A deletion is late that is of an open session.",
                "self._are_over(self._alone(goes)) & ~_are_among(goes, before)",
                "self._are_over(self._alone(goes))",
                1,
            ),
            (
                "What a deletion leaves and is over is no result.",
                "found += [of_before, parted, form.given",
                "found += [of_before, form.given",
                1,
            ),
            (
                "What a deletion leaves and is over stays open.",
                "after = _added([left[~over], comes])",
                "after = _added([left, comes])",
                1,
            ),
            (
                "What is deleted before it comes is forgotten.",
                "self._missing = _added([self._missing, *parts])",
                "pass",
            ),
            (
                "What closes is not marked.",
                "starts[over], ends[over], CLOSES))",
                "starts[over], ends[over], LASTS))",
            ),
            (
                "What was over when it was made is not marked.",
                "parted[:, -2] = CLOSES",
                "pass",
                3,
            ),
            (
                "Records of a session that closed are kept.",
                "self._kept.insert(closed)",
                "pass",
            ),
            (
                "Only the first session of a key closes.",
                "self._await(rows[~over], ends[~over])",
                "pass",
            ),
            (
                "Results go when their session closes.",
                "rows = rows[~_are_among(rows[:, places]",
                "_ = rows[~_are_among(rows[:, places]",
            ),
            (
                "Late records are in the collection.",
                "lambda marks: marks != LATE",
                "lambda marks: marks >= 0",
            ),
            (
                "Closings are late records.",
                "lambda marks: marks == LATE",
                "lambda marks: marks >= CLOSES",
            ),
            (
                "Late deletions count against late insertions.",
                "rows[:, -1] = np.abs(rows[:, -1])",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.session_windows",
        by_sessions_again,
        [
            (
                "A snapshot is without the records of sessions.",
                'yield StoredPart("open", rows, texts)',
                "pass",
            ),
            (
                "A session of a snapshot never closes.",
                "self._await(rows, self._form.bounds(rows)[1])",
                "pass",
                5,
            ),
        ],
    ),
    *_of(
        "collections.session_windows",
        by_a_deletion_that_comes_first,
        [
            (
                "What is missing is taken off twice.",
                "self._missing = self._missing[~are_of]",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.session_windows",
        by_a_session_that_begins_again,
        [
            (
                "A group without the end of its session is let go.",
                "return all(name in columns for name in self.names)",
                "return all(name in columns for name in self.names[:-1])",
            ),
        ],
    ),
]
