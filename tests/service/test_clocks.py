"""Clocks of services: set by programs, or going by themselves; and what a replay makes of them."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import BuildError, InputError, SchemaError, StoppedError, UsageError
from pointstamp.service import clocks
from pointstamp.service.checkpoint_config import COLLECTIONS

BOOKINGS = "room string, begins timestamp_utc, ends timestamp_utc"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TICK = timedelta(milliseconds=10)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def build(scope: Any, bookings: Any, now: Any) -> Any:
    hours = bookings.window(ps.Tumbling(timedelta(hours=1)), time="begins", clock=now)
    return {
        "active": bookings.temporal_filter("begins", "ends", clock=now).select("room"),
        "hourly": hours.group_by("window_start").count(),
        "late": hours.late().select("room"),
    }


def serve(workers: int, clock: ps.ClockInput, **options: Any) -> ps.Service:
    collections = {"bookings": BOOKINGS, "now": clock}
    return ps.serve(build, workers, threads=True, collections=collections, **options)


@contextmanager
def wall(monkeypatch: pytest.MonkeyPatch, minutes: float) -> Iterator[list[float]]:
    """The wall time is so many minutes after noon, which may be changed."""
    shown = [minutes]

    def wall_time_us() -> int:
        return int(at(shown[0]).timestamp() * 1_000_000)

    with monkeypatch.context() as patched:
        patched.setattr(clocks, "wall_time_us", wall_time_us)
        yield shown


def await_rows(service: ps.Service, output: str, rows: list[Any], after: int = -1) -> int:
    """Wait until an output has just these rows, after an epoch; the one as of which."""
    for epoch in range(after + 1, after + 2_000):
        service.output(output).probe.wait(epoch, 60)
        if service.output(output).snapshot(epoch)[:] == rows:
            return epoch
    raise AssertionError(f"{output} never has {rows}")


@pytest.mark.parametrize("threads", [True, False])
def test_a_clock_is_set_with_an_epoch(threads: bool) -> None:
    collections = {"bookings": BOOKINGS, "now": ps.ClockInput("timestamp_utc")}
    with ps.serve(build, 2, threads=threads, collections=collections) as service:
        bookings, now = service.input("bookings"), service.input("now")
        bookings.insert([("blue", at(0), at(10)), ("red", at(5), at(70))])
        active, hourly = service.output("active"), service.output("hourly")
        assert active.changes(service.advance()) == []
        now.set(at(5))
        now.set(at(6))
        assert active.changes(service.advance()) == [(("blue",), 1), (("red",), 1)]
        assert active.changes(service.advance()) == []
        now.set(at(60))
        assert active.changes(service.advance()) == [(("blue",), -1)]
        bookings.insert([("green", at(59), at(80))])
        epoch = service.advance()
        assert service.output("late").snapshot(epoch) == [("green",)]
        assert hourly.snapshot(epoch) == [(NOON, 2)]
        with pytest.raises(InputError, match=r"'now' is at 2026-01-01 13:00.* cannot go back to"):
            now.set(at(59))
        with pytest.raises(ps.errors.DataError, match="should have a zone"):
            now.set(at(90).replace(tzinfo=None))
        assert repr(now) == f"ClockFeed('now', {collections['now']!r})"
    with pytest.raises(StoppedError):
        now.set(at(90))


def test_records_come_and_go_while_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        wall(monkeypatch, 0) as shown,
        serve(2, ps.ClockInput("timestamp_utc", every=TICK)) as service,
    ):
        service.input("bookings").insert([("blue", at(0), at(10)), ("red", at(5), at(70))])
        service.advance()
        await_rows(service, "active", [("blue",)])
        shown[0] = 7
        await_rows(service, "active", [("blue",), ("red",)])
        # A wall that goes back holds the clock where it is.
        shown[0] = 1
        epoch = service.advance()
        assert service.output("active").snapshot(epoch) == [("blue",), ("red",)]
        shown[0] = 75
        epoch = await_rows(service, "active", [], epoch)
        assert service.output("hourly").snapshot(epoch) == [(NOON, 2)]
        with pytest.raises(UsageError, match=r"'now' goes by itself, every 0:00:00\.01"):
            service.input("now").set(at(80))
    assert not [t for t in threading.enumerate() if t.name == "pointstamp-clock"]


@pytest.mark.parametrize("every", [None, 2])
def test_a_replay_repeats_the_time_that_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, every: int | None
) -> None:
    clock = ps.ClockInput("timestamp_utc", every=TICK)
    options = {"checkpoint": tmp_path, "snapshot_every": every}
    with wall(monkeypatch, 0) as shown:
        service = serve(1, clock, **options)
        service.input("bookings").insert(
            [("blue", at(0), at(10)), ("red", at(5), at(70)), ("grey", at(65), at(99))]
        )
        epoch = await_rows(service, "active", [("blue",)], service.advance())
        shown[0] = 61
        last = await_rows(service, "active", [("red",)], epoch)
        changes = {name: dict(service.output(name).read(last)) for name in ("active", "hourly")}
        if every is not None:
            service.await_snapshot(last)
        service.abort()
        logged = [record.epoch for record in Checkpoint(tmp_path).records(COLLECTIONS, -1)]
        assert len(logged) > 2
        # Begun again by a wall that is behind, on more workers, the clock is where it was.
        shown[0] = 1
        with serve(3, clock, **options) as service:
            for name in ("active", "hourly"):
                assert dict(service.output(name).read(last)) == changes[name]
            service.input("bookings").insert([("late", at(10), at(90))])
            epoch = service.advance()
            assert service.output("active").snapshot(epoch) == [("late",), ("red",)]
            assert service.output("late").snapshot(epoch) == [("late",)]
            shown[0] = 80
            epoch = await_rows(service, "active", [("grey",), ("late",)], epoch)
            assert service.output("hourly").snapshot(epoch) == [(NOON, 2), (at(60), 1)]


def test_what_is_sent_goes_with_its_own_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        wall(monkeypatch, 0) as shown,
        serve(1, ps.ClockInput("timestamp_utc", every=TICK)) as service,
    ):
        service.input("bookings").insert([("blue", at(9), at(10))])
        first = service.input("bookings").time
        for _ in range(3):
            service.output("active").probe.wait(first, 60)
            first = service.input("bookings").time
        shown[0] = 9
        service.input("bookings").insert([("red", at(8), at(10))])
        # Ticks have gone by, and none of them took what waits for `advance`.
        assert service.output("active").snapshot(first - 1) == []
        epoch = service.advance()
        service.output("active").probe.wait(epoch, 60)
        await_rows(service, "active", [("blue",), ("red",)], epoch)


def test_a_service_that_is_let_go_of_is_not_kept_by_its_clock() -> None:
    service = serve(1, ps.ClockInput("timestamp_utc", every=timedelta(hours=1)))
    alive = weakref.ref(service)
    service.output("active").probe.wait(0, 60)
    del service
    with pytest.warns(ResourceWarning):
        gc.collect()
    assert alive() is None
    for thread in threading.enumerate():
        if thread.name == "pointstamp-clock":
            thread.join(60)
            assert not thread.is_alive()


def test_clocks_that_cannot_be_are_refused() -> None:
    with pytest.raises(BuildError, match="needs a timedelta above 0"):
        ps.ClockInput(every=timedelta(0))
    with pytest.raises(BuildError, match="is given every=5"):
        ps.ClockInput(every=5)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(SchemaError, match="a clock of long cannot go by itself"):
        ps.ClockInput("long", every=TICK)
    with pytest.raises(BuildError, match=re.escape("the clock 'now' of a view cannot go by")):
        ps.View(build, bookings=BOOKINGS, now=ps.ClockInput("timestamp_utc", every=TICK))
