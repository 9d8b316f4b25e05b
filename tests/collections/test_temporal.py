"""Temporal filters and clocks: what is there while a clock is between a start and an end."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections.temporal import Calendar, Presence
from pointstamp.errors import BuildError, DataError, InputError, SchemaError
from tests.collections.temporal_programs import Stays, check_program, stays
from tests.conftest import examples


@settings(max_examples=examples(200))
@given(stays(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 7]), st.integers(0, 1 << 20))
def test_a_temporal_filter_is_what_recomputing_gives(
    program: Stays, workers: int, at_a_time: int, seed: int
) -> None:
    check_program(program, workers, at_a_time, seed)


def test_clicks_of_ten_minutes() -> None:
    def trending(scope: Any, clicks: Any, now: Any) -> Any:
        recent = clicks.temporal_filter("at", col("at") + timedelta(minutes=10), clock=now)
        return recent.group_by("page").agg(n=ps.count())

    view = ps.View(trending, clicks="page string, at timestamp", now=ps.ClockInput())
    view.insert("clicks", [("a", datetime(2026, 1, 1, 12, 0)), ("a", datetime(2026, 1, 1, 12, 6))])
    assert view.advance(now=datetime(2026, 1, 1, 12, 7)) == [(("a", 2), 1)]
    assert view.advance(now=datetime(2026, 1, 1, 12, 12)) == [(("a", 1), 1), (("a", 2), -1)]
    assert view.advance() == []
    assert view.advance(now=datetime(2026, 1, 1, 12, 16)) == [(("a", 1), -1)]
    view.close()


def _interval(rows: Any) -> tuple[Any, Any, Any]:
    return rows[:, 0], rows[:, 1], None


def test_what_has_left_is_not_kept() -> None:
    presence = Presence(_interval, leaves=True)
    for now in range(1_000):
        presence.move(now)
        presence.add(np.array([[now, now + 10, 1], [now + 5, now + 10, 1]]))
        assert len(presence) <= 20
    presence.move(2_000)
    assert len(presence) == 0
    assert presence.first() is None


def test_what_is_there_for_ever_is_not_kept() -> None:
    presence = Presence(_interval, leaves=False)
    presence.move(5)
    assert len(presence.add(np.array([[4, 1 << 62, 1]]))) == 1
    assert len(presence) == 0


def test_what_has_no_end_is_there_at_the_greatest_clock() -> None:
    def build(scope: Any, stays: Any, now: Any) -> Any:
        return stays.temporal_filter("a", None, clock=now)

    last = (1 << 63) - 1
    with ps.View(build, stays="k long, a long", now=ps.ClockInput("long")) as view:
        view.insert("stays", [(1, 5), (2, last)])
        assert list(view.advance(now=last - 1)) == [((1, 5), 1)]
        assert list(view.advance(now=last)) == [((2, last), 1)]
        view.insert("stays", [(3, 7)])
        view.delete("stays", [(1, 5)])
        assert list(view.advance()) == [((1, 5), -1), ((3, 7), 1)]


def test_a_deletion_cancels_what_waits() -> None:
    presence = Presence(_interval, leaves=True)
    presence.move(0)
    for diff in (1, -1):
        presence.add(np.array([[0, 9, diff], [5, 9, diff]]))
    assert len(presence) == 0


def test_a_calendar_lets_go_of_what_was_taken() -> None:
    calendar = Calendar()
    calendar.add(np.array([[at, 0, 1] for at in range(1_000)]))
    calendar.take(899)
    (rows,) = calendar._kept.rows
    assert len(rows) == 100
    assert rows.base is None


def test_a_clock_does_not_go_back() -> None:
    def build(scope: Any, stays: Any, now: Any) -> Any:
        return stays.temporal_filter("a", "b", clock=now)

    view = ps.View(build, stays="a date, b date", now=ps.ClockInput("date"))
    view.insert("stays", [(date(2026, 1, 1), date(2026, 1, 3))])
    assert view.advance() == []  # the clock has no value yet
    assert len(view.advance(now=date(2026, 1, 2))) == 1
    with pytest.raises(InputError, match="'now' is at 2026-01-02 and cannot go back to 2026-01-01"):
        view.advance(now=date(2026, 1, 1))
    with pytest.raises(DataError, match="is no date"):
        view.advance(now=7)
    with pytest.raises(InputError, match=r"no clock 'then'; there are \['now'\]"):
        view.advance(then=date(2026, 1, 4))
    with pytest.raises(InputError, match="'now' is a clock"):
        view.insert("now", [1])
    assert view.epoch == 2
    assert len(view.advance(now=date(2026, 1, 3))) == 1
    assert list(view.snapshot()) == []
    view.close()


def _refused(build: Any, **inputs: Any) -> None:
    ps.View(build, **inputs)


def test_what_does_not_fit_is_refused_when_built() -> None:
    with pytest.raises(SchemaError, match="is string, and its clock is timestamp"):
        _refused(
            lambda scope, t, now: t.temporal_filter("s", None, clock=now),
            t="s string",
            now=ps.ClockInput(),
        )
    with pytest.raises(SchemaError, match="its clock is long"):
        _refused(lambda scope, t: t.temporal_filter("at", None), t="at timestamp")
    with pytest.raises(BuildError, match="neither a start nor an end"):
        _refused(lambda scope, t: t.temporal_filter(None, None), t="a long")
    with pytest.raises(BuildError, match="is given clock='now'"):
        _refused(lambda scope, t: t.temporal_filter("a", None, clock="now"), t="a long")
    with pytest.raises(BuildError, match="not there in loops"):
        _refused(
            lambda scope, t: t.iterate(lambda u: u.temporal_filter("a", None).distinct()),
            t="a long",
        )
    with pytest.raises(SchemaError, match="cannot be string"):
        ps.ClockInput("string")
