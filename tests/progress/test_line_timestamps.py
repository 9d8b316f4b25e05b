"""Integers below zero, durations and dates as times: their laws, and dataflows over them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import TimestampError
from pointstamp.progress.line_timestamps import Later
from pointstamp.progress.timestamp import Advance
from pointstamp.testing import check_timestamp
from tests.conftest import once_from

DAY = timedelta(days=1)
CASES: dict[str, Any] = {
    "SignedInt": (
        ps.SignedInt,
        [-(2**63), -5, -1, 0, 3, 2**40],
        [0, 1, Advance(7)],
        [-(2**63) - 1, 0.5, True, "1"],
    ),
    "Duration": (
        ps.Duration,
        [timedelta(0), timedelta(microseconds=1), 3 * DAY, timedelta.max],
        [timedelta(0), timedelta(seconds=1), DAY, timedelta.max],
        [-DAY, 3, datetime(2024, 1, 1)],
    ),
    "DateTime": (
        ps.DateTime,
        [ps.DateTime.minimum, datetime(2024, 2, 28, 23), datetime(9999, 12, 31, 23, 59, 59)],
        [timedelta(seconds=1), Later(DAY)],
        [datetime(2024, 1, 1, tzinfo=UTC), 3, DAY],
    ),
    "DateTimeUTC": (
        ps.DateTimeUTC,
        [datetime(2024, 2, 28, 23, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
        [timedelta(seconds=1), DAY],
        [datetime(2024, 1, 1), 3, DAY],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_laws_hold(name: str) -> None:
    kind, times, summaries, wrong = CASES[name]
    check_timestamp(kind, times, summaries, wrong=wrong)


def test_a_date_of_another_zone_is_the_same_moment_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    found = ps.DateTimeUTC.check(datetime(2024, 1, 1, 1, tzinfo=east))
    assert found == datetime(2023, 12, 31, 23, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_a_negative_step_is_refused() -> None:
    for kind, step in ((ps.SignedInt, -1), (ps.Duration, -DAY), (ps.SignedInt, Advance(1, 5))):
        with pytest.raises(TimestampError, match=f"a summary for {kind.name}"):
            kind.summary(step)


@pytest.mark.parametrize("workers", once_from(2, [1, 2]))
@pytest.mark.parametrize("name", CASES)
def test_a_loop_over_such_times_ends_and_counts_by_time(name: str, workers: int) -> None:
    kind, times, _, _ = CASES[name]
    step = 2 if kind is ps.SignedInt else timedelta(hours=1)
    first = times[1 if name == "SignedInt" else 0]
    limit = kind.summary(step).results_in(kind.summary(step).results_in(first))

    def main(worker: ps.Worker) -> Any:
        out: list[Any] = []
        with worker.dataflow("line", kind) as scope:
            input, stream = scope.new_input()
            loop, again = scope.feedback(step)
            turned = stream.concat(again).exchange(lambda x: x)
            rest = turned.unary(ps.Pipeline(), "Before", before)
            loop.connect(rest)
            counted = turned.count()
            counted.inspect_batch(lambda time, batch: out.append((time, list(batch))))
            probe = counted.probe()
        input.advance_to(first)
        if worker.index == 0:
            input.send(1)
        input.close()
        worker.run()
        return out, probe.done

    def before(capability: Any, info: Any) -> Any:
        capability.drop()

        def logic(input: Any, output: Any) -> None:
            for time, batch in input:
                if time.time < limit:
                    output.session(time).give_batch(batch)

        return logic

    parts = ps.execute(main, workers=workers)
    assert all(done for _, done in parts)
    found = {time for out, _ in parts for time, batch in out if sum(batch)}
    middle = kind.summary(step).results_in(first)
    assert found == {first, middle, limit}
