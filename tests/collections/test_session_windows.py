"""Sessions of collections: they join and part, close, and what is kept of them goes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections.session_windows import SessionRecords
from pointstamp.errors import OperatorError
from tests.collections.session_programs import InSessions, in_sessions
from tests.collections.temporal_programs import check_program
from tests.collections.test_event_windows import alive
from tests.conftest import examples

SESSION = ("user", "window_start", "window_end")


@settings(max_examples=examples(150))
@given(
    in_sessions(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 7]), st.integers(0, 1 << 20)
)
def test_sessions_are_what_recomputing_gives(
    program: InSessions, workers: int, at_a_time: int, seed: int
) -> None:
    check_program(program, workers, at_a_time, seed)


def view_of(gap: int, lateness: int) -> ps.View:
    def build(scope: Any, t: Any, now: Any) -> Any:
        sessions = t.window(ps.Sessions(gap), time="at", key="user", lateness=lateness, clock=now)
        return {"n": sessions.group_by(*SESSION).count(), "late": sessions.late()}

    return ps.View(build, t="at long, user string?", now=ps.ClockInput("long"))


def test_sessions_join_and_part() -> None:
    view = view_of(gap=5, lateness=2)
    view.insert("t", [(10, "x"), (15, "x"), (11, None), (12, "y")])
    assert view.advance()["n"] == [
        ((None, 11, 16, 1), 1),
        (("x", 10, 15, 1), 1),
        (("x", 15, 20, 1), 1),
        (("y", 12, 17, 1), 1),
    ]
    view.insert("t", [(14, "x")])
    joined = [(("x", 10, 15, 1), -1), (("x", 10, 20, 3), 1), (("x", 15, 20, 1), -1)]
    assert view.advance()["n"] == joined
    view.delete("t", [(14, "x")])
    assert view.advance()["n"] == [(row, -n) for row, n in joined]


def test_what_a_deletion_leaves_may_be_over() -> None:
    view = view_of(gap=5, lateness=2)
    view.insert("t", [(10, "x"), (14, "x"), (18, "x")])
    assert view.advance(now=17)["n"] == [(("x", 10, 23, 3), 1)]
    view.delete("t", [(14, "x")])
    parted = [(("x", 10, 15, 1), 1), (("x", 10, 23, 3), -1), (("x", 18, 23, 1), 1)]
    assert view.advance()["n"] == parted
    # The first is closed: what would join it begins anew, and what would be in it alone is late.
    view.insert("t", [(14, "x"), (10, "x")])
    assert view.advance() == {
        "n": [(("x", 10, 23, 3), 1), (("x", 18, 23, 1), -1)],
        "late": [],
    }
    view.insert("t", [(3, "x")])
    view.delete("t", [(9, "x")])
    late = [((3, "x", 3, 8), 1), ((9, "x", 9, 14), 1)]
    assert view.advance() == {"n": [], "late": late}
    assert view.advance(now=100) == {"n": [], "late": []}
    assert list(view.snapshot("n")) == [("x", 10, 15, 1), ("x", 10, 23, 3)]


def test_sessions_of_timestamps() -> None:
    def at(minute: int) -> datetime:
        return datetime(2026, 1, 1, 12, minute)

    def build(scope: Any, t: Any, now: Any) -> Any:
        gap = ps.Sessions(timedelta(minutes=10))
        visits = t.window(gap, time="at", key=["user", "site"], clock=now)
        return visits.group_by("site", *SESSION).agg(pages=ps.collect_list("page"))

    view = ps.View(build, t="page string, at timestamp, user string, site int", now=ps.ClockInput())
    view.insert("t", [("a", at(0), "x", 1), ("b", at(9), "x", 1), ("c", at(9), "x", 2)])
    assert view.advance(now=at(1)) == [
        ((1, "x", at(0), at(19), ("a", "b")), 1),
        ((2, "x", at(9), at(19), ("c",)), 1),
    ]


@pytest.mark.parametrize("by_epoch", [False, True])
def test_what_is_kept_of_closed_sessions_is_let_go(by_epoch: bool) -> None:
    before = alive()
    engines: list[SessionRecords] = []

    def build(scope: Any, t: Any, now: Any) -> Any:
        clock = None if by_epoch else now
        sessions = t.window(ps.Sessions(3), time="at", key="user", lateness=2, clock=clock)
        groups = sessions.group_by(*SESSION)
        return {"sums": groups.agg(n=ps.count()), "top": groups.top_k(1, "v")}

    view = ps.View(build, t="user long, at long, v long", now=ps.ClockInput("long"))
    made = [each for key, each in alive().items() if key not in before]
    engines += [each for each in made if isinstance(each, SessionRecords)]
    (engine,) = engines
    n_epochs = 120
    for epoch in range(n_epochs):
        user = epoch // 7
        view.insert("t", [(user, epoch, 1), (user, epoch, 2), (-1, epoch, 0)])
        if epoch % 3 == 1:  # what comes back after a time, what never was, and what parts them
            view.delete("t", [(user, epoch, 2), (user, epoch, 9)])
        if epoch > 2:
            view.delete("t", [(-1, epoch - 2, 0)])
        view.advance(now=epoch)
        assert len(engine) < 100
    for epoch in range(n_epochs, n_epochs + 20):
        view.advance(now=epoch)
    assert len(engine) == 0
    spines = [each for each in made if hasattr(each, "listed")]
    assert [sum(len(rows) for _, rows in spine.listed()) for spine in spines] == [0] * len(spines)
    assert len(view.snapshot("sums")) == len(view.snapshot("top")) > n_epochs // 7
    view.close()


@pytest.mark.parametrize("at", [(1 << 63) - 1, (1 << 63) - 3])
def test_a_session_beyond_the_type_of_the_clock_is_an_error(at: int) -> None:
    view = view_of(gap=5, lateness=0)
    view.insert("t", [(at, "x")])
    with pytest.raises(OperatorError, match=f"the session of {at} goes beyond what long has"):
        view.advance()


def test_records_at_both_ends_of_time_are_of_two_sessions() -> None:
    view = view_of(gap=5, lateness=(1 << 63) - 1)
    least, greatest = -(1 << 63), (1 << 63) - 6
    view.insert("t", [(least, "x"), (greatest, "x")])
    assert view.advance()["n"] == [
        (("x", least, least + 5, 1), 1),
        (("x", greatest, greatest + 5, 1), 1),
    ]
