"""Windows of columns that a function folds: their bounds, and the order of their records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import WorkerError
from pointstamp.testing import collect

NOON = datetime(2026, 1, 1, 12)
HOUR = timedelta(hours=1)


def bounds(column: pa.Array, size: timedelta = HOUR) -> list[Any]:
    """(start, end) of the windows of a column of event times, folded by a function."""

    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream(pa.table({"t": column}))
        count = lambda key, batch, n: n + len(batch)  # noqa: E731
        return stream.fold_window(count, ps.Tumbling(size), "t", default=0)[0]

    return [(window.start, window.end) for _, window in collect(build)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome", "+02:00"])
def test_bounds_are_datetimes_in_the_zone_of_the_column(unit: str, zone: str | None) -> None:
    time = NOON if zone is None else NOON.replace(tzinfo=UTC)
    [(start, end)] = bounds(pa.array([time, time + HOUR / 2]).cast(pa.timestamp(unit, zone)))
    assert (start, end) == (time, time + HOUR)
    assert type(start) is datetime
    zones = {"UTC": ZoneInfo("UTC"), "Europe/Rome": ZoneInfo("Europe/Rome")}
    assert start.tzinfo in (zones.get(str(zone)), zone and timezone(timedelta(hours=2)))


def test_bounds_of_dates_are_datetimes() -> None:
    days = bounds(pa.array([date(2026, 1, 1)]), timedelta(days=1))
    assert days == [(datetime(2026, 1, 1), datetime(2026, 1, 2))]


def test_bounds_of_durations_are_timedeltas() -> None:
    assert bounds(pa.array([timedelta(minutes=90)])) == [(HOUR, 2 * HOUR)]


def test_bounds_beyond_the_years_of_datetime_are_of_numpy() -> None:
    [(start, end)] = bounds(pa.array([np.datetime64("12026-01-01T12:30", "us")]))
    assert start == np.datetime64("12026-01-01T12", "us")
    assert end == np.datetime64("12026-01-01T13", "us")


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(10)])
@pytest.mark.parametrize("epoch", [2**63 - 8, 2**63 - 1, 2**63])
def test_epochs_whose_windows_end_beyond_all_event_times_are_refused(
    windows: ps.Sliding | ps.Sessions, epoch: int
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.window(windows)
        input.advance_to(epoch)
        input.send("a")

    with pytest.raises(WorkerError, match=f"was given the event time {epoch}, whose windows"):
        ps.execute(main)


@pytest.mark.parametrize("make", [pa.table, lambda columns: Arrays(**columns)])
@pytest.mark.parametrize("windows", [ps.Tumbling(20), ps.Sessions(5)], ids=repr)
def test_records_of_columns_are_folded_in_the_order_of_event_times(make: Any, windows: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        times = ([7, 10, 8], [9, 6, 4])
        parts = [make({"t": np.array(part), "k": np.zeros(3, np.int64)}) for part in times]
        listed = lambda key, batch, found: [*found, *np.asarray(batch["t"]).tolist()]  # noqa: E731
        streams = [scope.to_stream(part) for part in parts]
        return streams[0].concat(streams[1]).fold_window(listed, windows, "t", "k", default=[])[0]

    [(_, window)] = collect(build)
    assert window.value == [4, 6, 7, 8, 9, 10]
