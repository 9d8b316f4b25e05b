"""Windows of event time: they close, what is kept of them goes, and their results stay."""

from __future__ import annotations

import gc
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import group_answers
from pointstamp.collections.aggregate import GroupState, SummedState
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.collection import WindowedCollection
from pointstamp.collections.event_windows import WindowedRecords
from pointstamp.collections.session_windows import SessionRecords
from pointstamp.collections.spine import Spine
from pointstamp.errors import BuildError, ColumnError, OperatorError, SchemaError, UsageError
from tests.collections.temporal_programs import check_program
from tests.collections.window_programs import Windowed, windowed
from tests.conftest import examples

HOUR = timedelta(hours=1)


@settings(max_examples=examples(150))
@given(windowed(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 7]), st.integers(0, 1 << 20))
def test_windows_are_what_recomputing_gives(
    program: Windowed, workers: int, at_a_time: int, seed: int
) -> None:
    check_program(program, workers, at_a_time, seed)


def test_clicks_per_hour() -> None:
    def build(scope: Any, clicks: Any, now: Any) -> Any:
        hours = clicks.window(
            ps.Tumbling(HOUR), time="at", lateness=timedelta(minutes=1), clock=now
        )
        return {"hourly": hours.group_by("window_start").count(), "late": hours.late().count()}

    def at(hour: int, minute: int) -> datetime:
        return datetime(2026, 1, 1, hour, minute)

    view = ps.View(build, clicks="page string, at timestamp", now=ps.ClockInput())
    view.insert("clicks", [("a", at(12, 0)), ("b", at(12, 59)), ("a", at(13, 0))])
    noon, one = at(12, 0), at(13, 0)
    assert view.advance(now=at(13, 0)) == {
        "hourly": [((noon, 2), 1), ((one, 1), 1)],
        "late": [((0,), 1)],
    }
    view.delete("clicks", [("b", at(12, 59))])
    assert view.advance()["hourly"] == [((noon, 1), 1), ((noon, 2), -1)]
    # What comes at the very epoch at which the window closes is late.
    view.insert("clicks", [("c", at(12, 30)), ("c", at(13, 30))])
    view.delete("clicks", [("a", noon)])
    assert view.advance(now=at(13, 1)) == {
        "hourly": [((one, 1), -1), ((one, 2), 1)],
        "late": [((0,), -1), ((2,), 1)],
    }
    assert view.advance(now=at(18, 0)) == {"hourly": [], "late": []}
    assert list(view.snapshot("hourly")) == [(noon, 1), (one, 2)]
    view.close()


@pytest.mark.parametrize(
    ("kind", "windows", "lateness", "when", "start", "end"),
    [
        (
            *("date", ps.Tumbling(timedelta(days=7), timedelta(days=4)), timedelta(days=1)),
            *(date(2026, 1, 8), date(2026, 1, 5), date(2026, 1, 12)),
        ),
        (
            *("timestamp_utc", ps.Tumbling(HOUR), HOUR),
            *(datetime(2026, 1, 1, *hour, tzinfo=UTC) for hour in ((5, 30), (5,), (6,))),
        ),
        ("int", ps.Tumbling(10, 5), 3, -6, -15, -5),
    ],
)
def test_the_bounds_of_windows_are_of_the_type_of_the_clock(
    kind: str, windows: Any, lateness: Any, when: Any, start: Any, end: Any
) -> None:
    def build(scope: Any, t: Any, now: Any) -> Any:
        return t.window(windows, time=col("at"), lateness=lateness, clock=now)

    view = ps.View(build, t=f"at {kind}?", now=ps.ClockInput(kind))
    view.insert("t", [(when,), (None,)])
    assert view.advance(now=end) == [((when, start, end), 1)]
    view.insert("t", [(when,)])
    assert view.advance(now=end + lateness) == []
    view.close()


def test_windows_are_made_of_what_is_selected_and_are_forgotten_without_their_bounds() -> None:
    def build(scope: Any, t: Any) -> Any:
        windows = t.window(ps.Sliding(4, 2), time="at")
        assert isinstance(windows, WindowedCollection)
        assert isinstance(windows.with_columns(b=col("a") + 1).drop("window_end"), type(windows))
        assert isinstance(windows.rename({"window_end": "until"}), WindowedCollection)
        for other in (
            windows.select("a"),
            windows.select("a", window_start=col("window_start") + 1),
            windows.map(lambda row: row, windows.schema),
            windows.join(t.select("a"), on="a"),
            windows.distinct(),
        ):
            assert not isinstance(other, WindowedCollection)
        with pytest.raises(ColumnError, match="'window_middle'"):
            windows.group_by("window_middle")
        return windows.select("window_end").late()

    view = ps.View(build, t="a long, at long")
    for _ in range(4):
        view.advance()
    view.insert("t", [(7, 1), (8, 2)])
    assert view.advance() == [((2,), 1), ((4,), 2)]
    view.close()


def alive() -> dict[int, Any]:
    """What operators keep something in, of all programs that there are."""
    gc.collect()
    kinds = (WindowedRecords, SessionRecords, SummedState, GroupState, Spine)
    return {id(each): each for each in gc.get_objects() if isinstance(each, kinds)}


@pytest.mark.parametrize("by_epoch", [False, True])
def test_what_is_kept_of_closed_windows_is_let_go(monkeypatch: Any, by_epoch: bool) -> None:
    before = alive()
    answers: list[Any] = []

    def series() -> BatchSeries:
        answers.append(BatchSeries())
        return answers[-1]  # type: ignore[no-any-return]  # as above

    monkeypatch.setattr(group_answers, "BatchSeries", series)

    def build(scope: Any, t: Any, now: Any) -> Any:
        tens = t.window(
            ps.Tumbling(10), time="at", lateness=5, clock=None if by_epoch else now
        ).group_by("window_start", "k")
        return {
            "sums": tens.agg(n=ps.count(), v=ps.sum("v")),
            "least": tens.agg(v=ps.min("v"), f=ps.count_distinct("v")),
            "top": tens.top_k(2, "v"),
            "rows": tens.reduce(lambda key, rows: [(*key, len(rows))], "s long, k long, n long"),
        }

    view = ps.View(build, t="k long, at long, v long", now=ps.ClockInput("long"))
    made = [each for key, each in alive().items() if key not in before]
    (windows,) = (each for each in made if isinstance(each, WindowedRecords))
    states = [each for each in made if isinstance(each, (SummedState, GroupState))]
    spines = [each for each in made if isinstance(each, Spine)]
    n_epochs, n_keys = 400, 3
    for epoch in range(n_epochs):
        view.insert("t", [(k, epoch, v) for k in range(n_keys) for v in (k, -epoch)])
        view.advance(now=epoch)
        # Two windows are open: of each epoch and key there are two records.
        assert len(windows) <= 2 * n_keys * 25
    for _ in range(20):
        n_epochs += 1
        view.advance(now=n_epochs)
    assert len(windows) == 0
    assert len(states) == 2
    assert len(spines) >= 2
    assert len(answers) == 2
    assert [sum(len(rows) for _, rows in spine.listed()) for spine in spines] == [0] * len(spines)
    assert [each.n_updates for each in answers] == [0, 0]
    # Groups without records are forgotten when others come.
    assert all(len(state) <= 64 for state in states)
    n_results = 40 * n_keys
    assert len(view.snapshot("sums")) == len(view.snapshot("least")) == n_results
    assert len(view.snapshot("rows")) == n_results
    assert len(view.snapshot("top")) == 2 * n_results
    view.close()


def _refused(build: Any, **inputs: Any) -> None:
    ps.View(build, **inputs)


def test_what_does_not_fit_is_refused_when_built() -> None:
    def of(windows: Any, clock: Any = None, **named: Any) -> Any:
        if clock is None:
            return lambda scope, t: t.window(windows, **{"time": "at", **named})
        return lambda scope, t, now: t.window(windows, time="at", clock=now, **named)

    now = ps.ClockInput
    with pytest.raises(SchemaError, match="is timestamp, and its clock is long"):
        _refused(of(ps.Tumbling(5)), t="at timestamp")
    with pytest.raises(SchemaError, match="its clock is long, whose windows are of integers"):
        _refused(of(ps.Tumbling(HOUR)), t="at long")
    with pytest.raises(SchemaError, match="its clock is timestamp, whose windows are of timedel"):
        _refused(of(ps.Tumbling(5), now), t="at timestamp", now=now())
    with pytest.raises(SchemaError, match="windows and lateness are of whole days"):
        _refused(of(ps.Tumbling(HOUR), now), t="at date", now=now("date"))
    day = ps.Tumbling(timedelta(days=1))
    with pytest.raises(SchemaError, match="windows and lateness are of whole days"):
        _refused(of(day, now, lateness=HOUR), t="at date", now=now("date"))
    with pytest.raises(UsageError, match="lateness is an integer"):
        _refused(of(ps.Tumbling(5), lateness=-1), t="at long")
    with pytest.raises(UsageError, match="windows and lateness are to be all integers"):
        _refused(of(ps.Tumbling(5), lateness=HOUR), t="at long")
    with pytest.raises(BuildError, match=r"and a collection has ps\.Tumbling"):
        _refused(of(5), t="at long")
    with pytest.raises(BuildError, match=r"given no key=, and sessions are of .* of a key"):
        _refused(of(ps.Sessions(5)), t="at long")
    with pytest.raises(BuildError, match=r"given key='at', which is of ps\.Sessions"):
        _refused(of(ps.Tumbling(5), key="at"), t="at long")
    with pytest.raises(ColumnError, match="is given the column 'k'"):
        _refused(of(ps.Sessions(5), key="k"), t="at long")
    with pytest.raises(SchemaError, match="its clock is long, whose windows are of integers"):
        _refused(of(ps.Sessions(HOUR), key="at"), t="at long")
    with pytest.raises(SchemaError, match="two columns are called 'window_end'"):
        _refused(of(ps.Sessions(5), key="at"), t="at long, window_end long")
    with pytest.raises(BuildError, match="is given clock='now'"):
        _refused(lambda scope, t: t.window(ps.Tumbling(5), time="at", clock="now"), t="at long")
    with pytest.raises(SchemaError, match="two columns are called 'window_end'"):
        _refused(of(ps.Tumbling(5)), t="at long, window_end long")

    def in_a_loop(scope: Any, t: Any) -> Any:
        return t.iterate(lambda u: u.window(ps.Tumbling(5), time="at").select("at").distinct())

    with pytest.raises(BuildError, match="not there in loops"):
        _refused(in_a_loop, t="at long")


@pytest.mark.parametrize("at", [-(1 << 63), (1 << 63) - 1])
def test_a_window_beyond_the_type_of_the_clock_is_an_error(at: int) -> None:
    view = ps.View(lambda scope, t: t.window(ps.Tumbling(10), time="at"), t="at long")
    view.insert("t", [(at,)])
    with pytest.raises(OperatorError, match=f"the windows of {at} go beyond what long has"):
        view.advance()


def test_a_clock_at_the_end_of_its_type_closes_all() -> None:
    last = (1 << 63) - 1
    view = ps.View(
        lambda scope, t, now: t.window(ps.Tumbling(10), time="at", lateness=last // 2, clock=now),
        t="at long",
        now=ps.ClockInput("long"),
    )
    view.insert("t", [(last - 20,)])
    assert len(view.advance(now=last - 1)) == 1
    view.insert("t", [(last - 20,)])
    assert view.advance(now=last) == []
    view.close()


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sliding(10, 5), ps.Sessions(10)])
def test_what_cancels_within_an_epoch_is_not_late(windows: Any) -> None:
    def build(scope: Any, t: Any, now: Any) -> Any:
        return t.window(windows, time="at", key=_key_of(windows), clock=now).late()

    view = ps.View(build, t="k long, at long", now=ps.ClockInput("long"))
    view.advance(now=100)
    view.insert("t", [(1, 5)])
    view.delete("t", [(1, 5)])
    assert view.advance() == []
    view.insert("t", [(1, 5), (1, 5), (1, 5)])
    view.delete("t", [(1, 5)])
    assert {diff for _, diff in view.advance()} == {2}
    view.delete("t", [(1, 5)])
    assert {diff for _, diff in view.advance()} == {1}
    view.close()


def _key_of(windows: Any) -> str | None:
    return "k" if isinstance(windows, ps.Sessions) else None
