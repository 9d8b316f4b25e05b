"""Counts, folds, reductions and joins of windows, against a recount of the windows themselves."""

from __future__ import annotations

import collections
import datetime
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import BuildError, ColumnError, SchemaError, UsageError, WorkerError
from pointstamp.operators.event_clock import Watermark
from pointstamp.testing import collect

Record = tuple[int, str, int]
"""Timestamp, key, event time."""

CASES: list[Record] = [
    (0, "a", 3), (0, "b", 4), (2, "a", 12), (9, "b", 0), (9, "a", 7), (12, "a", 9),
    (14, "b", 31), (30, "a", 30), (30, "b", 32),
]  # fmt: skip
WINDOWS = [ps.Tumbling(10), ps.Sliding(10, 4), ps.Sessions(5)]


def is_late(record: Record, lateness: int) -> bool:
    return record[2] < record[0] - lateness


def windows_of(records: list[tuple[str, int]], windows: Any) -> dict[Any, list[tuple[str, int]]]:
    """By (key, start, end), in the order of event time; brute force."""
    found: Any = collections.defaultdict(list)
    for key in {key for key, _ in records}:
        times = sorted(t for k, t in records if k == key)
        if isinstance(windows, ps.Sessions):
            start = last = times[0]
            session: list[Any] = []
            for t in times:
                if t - last >= windows.gap:
                    found[key, start, last + windows.gap] = session
                    session, start = [], t
                session.append((key, t))
                last = t
            found[key, start, last + windows.gap] = session
        else:
            for start in range(times[0] - windows.size, times[-1] + 1):
                members = [(key, t) for t in times if start <= t < start + windows.size]
                if start % windows.slide == 0 and members:
                    found[key, start, start + windows.size] = members
    return found


def run(build: Any, sides: list[list[Record]], workers: int, columns: bool = False) -> Any:
    """What a dataflow gives for records that come in the order of their timestamps."""

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            made = [scope.new_input() for _ in sides]
            streams = build(*[stream for _, stream in made])
            kind_of = ps.containers.kind_of
            streams[0].inspect_batch(
                lambda t, b: out.extend((t, record) for record in kind_of(b).records(b))
            )
        for (input, _), records in zip(made, sides, strict=True):
            mine = records[worker.index :: worker.peers]
            for timestamp, key, event in mine:
                input.advance_to(timestamp)
                if columns:
                    input.send_batch(pa.RecordBatch.from_pydict({"key": [key], "event": [event]}))
                else:
                    input.send((key, event))
                worker.step()
        for input, _ in made:
            input.close()
        worker.run()
        return out

    parts = ps.execute(main, workers=workers, threads=True)
    return sorted((item for part in parts for item in part), key=repr)


def expected(records: list[Record], windows: Any, lateness: int, value: Any) -> list[Any]:
    on_time = [r[1:] for r in records if not is_late(r, lateness)]
    return sorted(
        ((end + lateness, (key, start, end, value(members)))
         for (key, start, end), members in windows_of(on_time, windows).items()),
        key=repr,
    )  # fmt: skip


def flat(found: list[Any]) -> list[Any]:
    return sorted(((time, tuple(result)) for time, result in found), key=repr)


RECORDS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.integers(-10, 20)), max_size=25
).map(lambda found: [(t, k, t + d) for t, k, d in sorted(found)])
ANY_WINDOWS = st.one_of(
    st.builds(ps.Tumbling, st.integers(1, 12)),
    st.integers(1, 12).flatmap(lambda n: st.builds(ps.Sliding, st.just(n), st.integers(1, n))),
    st.builds(ps.Sessions, st.integers(1, 12)),
)


@given(RECORDS, ANY_WINDOWS, st.integers(0, 12), st.sampled_from([1, 2, 4]))
def test_counts_folds_and_reductions_are_those_of_the_records(
    records: Any, windows: Any, lateness: int, workers: int
) -> None:
    time, key = (lambda r: r[1]), (lambda r: r[0])

    def count(stream: Any) -> Any:
        return stream.count_window(windows, time, key, lateness)

    def fold(stream: Any) -> Any:
        def add(key: str, record: Any, events: Any) -> Any:
            return (*events, record[1])

        return stream.fold_window(add, windows, time, key, lateness, default=())

    def reduce(stream: Any) -> Any:
        return stream.reduce_window(max, windows, time, key, lateness)

    assert flat(run(count, [records], workers)) == expected(records, windows, lateness, len)
    # In the order of event times, whatever order they come in.
    assert flat(run(fold, [records], workers)) == expected(
        records, windows, lateness, lambda members: tuple(t for _, t in members)
    )
    assert flat(run(reduce, [records], workers)) == expected(records, windows, lateness, max)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_columns_are_counted_and_aggregated_by_name(windows: Any, workers: int) -> None:
    def count(stream: Any) -> Any:
        return stream.count_window(windows, "event", "key", 3)

    def aggregate(stream: Any) -> Any:
        how = [("event", "sum"), ("event", "max")]
        return stream.fold_window(how, windows, "event", "key", 3)

    def mean(stream: Any) -> Any:
        return stream.fold_window([("event", "mean")], windows, "event", "key", 3)

    def reordered(found: Any, n: int) -> Any:
        return sorted(
            ((t, (r[0], r[-2], r[-1], r[1] if n == 1 else r[1:-2])) for t, r in found), key=repr
        )

    def events(members: Any) -> list[int]:
        return [t for _, t in members]

    assert reordered(run(count, [CASES], workers, True), 1) == expected(CASES, windows, 3, len)
    assert reordered(run(aggregate, [CASES], workers, True), 2) == expected(
        CASES, windows, 3, lambda m: (sum(events(m)), max(events(m)))
    )
    assert reordered(run(mean, [CASES], workers, True), 1) == expected(
        CASES, windows, 3, lambda m: sum(events(m)) / len(m)
    )


def test_without_a_key_all_records_are_counted_together() -> None:
    batch = pa.RecordBatch.from_pydict({"event": [1, 2, 11]})

    def rows(scope: Any) -> Any:
        return scope.to_stream([1, 2, 11]).count_window(ps.Tumbling(10), lambda x: x)[0]

    def columns(scope: Any) -> Any:
        return scope.batches_to_stream([batch]).count_window(ps.Tumbling(10), "event")[0]

    def total(scope: Any) -> Any:
        stream = scope.batches_to_stream([batch])
        return stream.fold_window([("event", "sum")], ps.Tumbling(10), "event")[0]

    assert [(t, tuple(w)) for t, w in collect(rows)] == [
        (10, (None, 0, 10, 2)), (20, (None, 10, 20, 1))]  # fmt: skip
    assert collect(columns) == [(10, (2, 0, 10)), (20, (1, 10, 20))]
    assert collect(total) == [(10, (3, 0, 10)), (20, (11, 10, 20))]


def test_many_records_of_a_window_are_kept_as_their_counts(monkeypatch: Any) -> None:
    from pointstamp.operators import window_state

    monkeypatch.setattr(window_state, "COMBINE_FROM", 4)
    kept: list[int] = []
    add = window_state.Pane.add

    def adding(self: Any, *args: Any) -> None:
        add(self, *args)
        kept.append(sum(len(part) for parts in self.parts for part in parts))

    monkeypatch.setattr(window_state.Pane, "add", adding)

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.count_window(ps.Tumbling(1000), lambda x: x, lambda x: x % 2)[0].inspect(
                out.append
            )
        for number in range(100):
            input.send_batch([number, number + 1])
            worker.step()
        input.close()
        worker.run()
        return out

    [out] = ps.execute(main)
    assert sorted((w.key, w.value) for w in out) == [(0, 100), (1, 100)]
    assert max(kept) <= 8


HOWS = ["inner", "left", "right", "full", "semi", "anti"]


def pairs_of(left: Any, right: Any, how: str) -> list[Any]:
    if how == "semi":
        return left if right else []
    if how == "anti":
        return [] if right else left
    found = [(a, b) for a in left for b in right]
    if not right and how in ("left", "full"):
        found += [(a, None) for a in left]
    if not left and how in ("right", "full"):
        found += [(None, b) for b in right]
    return found


@given(RECORDS, RECORDS, ANY_WINDOWS, st.integers(0, 12), st.sampled_from([1, 2]),
       st.sampled_from(HOWS))  # fmt: skip
def test_joins_of_windows_pair_what_is_in_the_same_window(
    left: Any, right: Any, windows: Any, lateness: int, workers: int, how: Any
) -> None:
    time, key = (lambda r: r[1]), (lambda r: r[0])

    def build(one: Any, other: Any) -> Any:
        return one.join_window(other, windows, time, key, lateness=lateness, how=how)

    tagged = [(*r[1:], 0) for r in left if not is_late(r, lateness)]
    tagged += [(*r[1:], 1) for r in right if not is_late(r, lateness)]
    together = windows_of([(k, t) for k, t, _ in tagged], windows)
    wanted = []
    for key_, start, end in together:
        sides = [
            [(k, t) for k, t, side in tagged if k == key_ and start <= t < end and side == wanted_]
            for wanted_ in (0, 1)
        ]
        wanted += [(end + lateness, (key_, start, end, pair)) for pair in pairs_of(*sides, how)]
    assert flat(run(build, [left, right], workers)) == sorted(wanted, key=repr)


def test_columns_of_windows_are_joined_with_nulls() -> None:
    left = pa.RecordBatch.from_pydict({"k": ["a", "b"], "at": [1, 2]})
    right = pa.RecordBatch.from_pydict({"k": ["b", "c"], "at": [3, 14]})

    def build(scope: Any) -> Any:
        streams = [scope.batches_to_stream([batch]) for batch in (left, right)]
        return streams[0].join_window(streams[1], ps.Tumbling(10), "at", "k", how="full")[0]

    assert collect(build) == [
        (10, ("a", 1, None, 0, 10)),
        (10, ("b", 2, 3, 0, 10)),
        (20, ("c", None, 14, 10, 20)),
    ]


# Times of the calendar.

NOON = datetime.datetime(2026, 3, 1, 12)
MINUTE = datetime.timedelta(minutes=1)


def at(minutes: float, zone: Any = None) -> datetime.datetime:
    return NOON.replace(tzinfo=zone) + minutes * MINUTE


@pytest.mark.parametrize("zone", [None, datetime.UTC])
@pytest.mark.parametrize("windows", [ps.Tumbling(10 * MINUTE), ps.Sessions(5 * MINUTE)], ids=repr)
def test_datetimes_in_windows_of_timedelta(windows: Any, zone: Any) -> None:
    records = [at(3, zone), at(4, zone), at(17.5, zone)]

    def build(scope: Any) -> Any:
        return scope.to_stream(records).window(windows, lambda x: x)[0]

    found = [(w.start, w.end, sorted(w.records)) for _, w in collect(build)]
    bounds = ((0, 10), (10, 20)) if isinstance(windows, ps.Sliding) else ((3, 9), (17.5, 22.5))
    assert found == [
        (at(bounds[0][0], zone), at(bounds[0][1], zone), records[:2]),
        (at(bounds[1][0], zone), at(bounds[1][1], zone), records[2:]),
    ]


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (pa.timestamp("s"), pa.timestamp("s")),
        (pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.duration("ms"), pa.duration("ms")),
        (pa.date32(), pa.timestamp("us")),
        (pa.date64(), pa.timestamp("us")),
    ],
)
def test_arrow_times_in_windows_of_timedelta(kind: Any, bound: Any) -> None:
    is_date = pa.types.is_date(kind)
    is_duration = pa.types.is_duration(kind)
    hours = datetime.timedelta(hours=1)
    start = datetime.timedelta(0) if is_duration else datetime.datetime(2026, 1, 1)
    if pa.types.is_timestamp(kind) and kind.tz:
        start = start.replace(tzinfo=datetime.UTC)
    times = [start, start + (24 if is_date else 3) * hours]
    batch = pa.RecordBatch.from_pydict({"when": pa.array(times, kind)})
    out: list[Any] = []

    def build(scope: Any) -> Any:
        done, _ = scope.batches_to_stream([batch]).window(ps.Tumbling(2 * hours), "when")
        return done.inspect_batch(lambda time, b: out.append(b))

    collect(build)
    assert [b.schema.field("window_end").type for b in out] == [bound, bound]
    lows = [b["window_start"].to_pylist()[0] for b in out]
    assert lows == [start, start + (24 if is_date else 2) * hours]


def test_kinds_of_times_that_do_not_go_together_are_named(first_cause: Any) -> None:
    def failure(records: Any, windows: Any, **options: Any) -> Any:
        with pytest.raises(WorkerError) as raised:
            collect(lambda s: s.to_stream(records).window(windows, lambda x: x, **options)[0])
        return first_cause(raised.value)

    hour = ps.Tumbling(60 * MINUTE)
    for records in ([at(1), at(1, datetime.UTC)], [at(1), MINUTE]):
        assert "of one kind" in str(failure(records, hour))
    assert "such as 3; give its sizes as integers" in str(failure([3], hour))
    assert "give the sizes of its windows as timedelta" in str(failure([at(1)], ps.Tumbling(60)))
    assert "all integers or all timedeltas" in str(failure([at(1)], hour, lateness=3))
    for make in (lambda: ps.Sliding(MINUTE, 5), lambda: ps.Tumbling(MINUTE, 5)):
        with pytest.raises(UsageError, match="all integers or all timedeltas"):
            make()

    def in_turn(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.window(hour, lambda x: x)
        input.send(at(1))
        input.advance_to(1)
        input.send(at(2, datetime.UTC))

    with pytest.raises(WorkerError, match="no common order"):
        ps.execute(in_turn)
    day = pa.RecordBatch.from_pydict({"t": pa.array([datetime.time(12)], pa.time64("us"))})
    with pytest.raises(WorkerError, match="a time of day has no date"):
        collect(lambda s: s.batches_to_stream([day]).window(hour, "t")[0])


def test_windows_that_leave_gaps_have_to_be_asked_for() -> None:
    with pytest.raises(UsageError, match="has_gaps=True"):
        ps.Sliding(5, 10)
    sample = ps.Sliding(5, 10, has_gaps=True)
    found = collect(lambda s: s.to_stream([3, 7, 12]).window(sample, lambda x: x)[0])
    assert [window.records for _, window in found] == [[3], [12]]


# A clock that records advance.


def by_records(
    worker: Any, epochs: list[list[Any]], windows: Any, **options: Any
) -> tuple[list[Any], list[Any]]:
    done: list[Any] = []
    late: list[Any] = []
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        results, latecomers = stream.window(
            windows, lambda r: r[1], lambda r: r[0], clock=ps.EventClock(), **options
        )
        results.inspect_batch(
            lambda t, b: done.extend((t, w.key, w.start, w.end, sorted(w.records)) for w in b)
        )
        latecomers.inspect_batch(lambda t, b: late.extend((t, r) for r in b))
    for epoch, records in enumerate(epochs):
        for record in records[worker.index :: worker.peers]:
            input.send(record)
        worker.step()
        input.advance_to(epoch + 1)
    return done, late


def expected_by_records(
    epochs: list[list[Any]], windows: Any, lateness: int
) -> tuple[list[Any], list[Any]]:
    """Without the epochs at which windows are released."""
    mark, on_time, late = None, [], []
    for epoch, records in enumerate(epochs):
        for record in records:
            if mark is not None and record[1] < mark - lateness:
                late.append((epoch, record))
            else:
                on_time.append(record)
        mark = max([t for _, t in records] + ([] if mark is None else [mark]), default=None)
    found = windows_of(on_time, windows)
    return sorted((*of, sorted(members)) for of, members in found.items()), sorted(late)


EPOCHS = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=5), max_size=8
)


@given(EPOCHS, ANY_WINDOWS, st.integers(0, 5), st.sampled_from([1, 2, 3]), st.integers(0, 99))
def test_a_clock_by_records_answers_alike_on_any_number_of_workers(
    epochs: Any, windows: Any, lateness: int, workers: int, seed: int
) -> None:
    parts = ps.simulate(
        lambda worker: by_records(worker, epochs, windows, lateness=lateness),
        workers=workers,
        seed=seed,
    )
    done = sorted(item[1:] for part, _ in parts for item in part)
    late = sorted(item for _, part in parts for item in part)
    assert (done, late) == expected_by_records(epochs, windows, lateness)


def test_windows_are_released_in_the_epoch_that_moves_the_clock_past_them() -> None:
    epochs = [[("a", 1), ("a", 14)], [("a", 5), ("b", 12)], [("a", 25)], [("a", 26)]]

    def main(worker: Any) -> Any:
        return by_records(worker, epochs, ps.Tumbling(10), lateness=2)

    for workers in (1, 2):
        parts = ps.execute(main, workers=workers, threads=True)
        done = sorted(item for part, _ in parts for item in part)
        assert [item[:4] for item in done if item[0] < 3] == [
            (0, "a", 0, 10), (2, "a", 10, 20), (2, "b", 10, 20)]  # fmt: skip
        assert [item[1:] for item in done if item[0] >= 3] == [
            ("a", 20, 30, [("a", 25), ("a", 26)])]  # fmt: skip
        assert sorted(r for _, part in parts for r in part) == [(1, ("a", 5))]


def test_open_windows_do_not_hold_epochs_back() -> None:
    def main(worker: Any) -> list[Any]:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            done, _ = stream.window(ps.Tumbling(MINUTE), lambda x: x)
            probe = done.probe()
        input.send(at(0))
        input.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        input.advance_to(7)
        worker.step_while(lambda: probe.less_than(7))
        return probe.elements

    assert ps.execute(main) == [[7]]


def test_a_clock_by_records_goes_on_with_the_systems_clock_when_idle() -> None:
    """In a simulation the system's clock is the schedule's: nothing sleeps."""
    clock = ps.EventClock(idle_after=datetime.timedelta(seconds=5))

    def main(worker: Any) -> Any:
        out: list[Any] = []
        began = worker.timers.now()
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            done, _ = stream.window(ps.Tumbling(MINUTE), lambda x: x, clock=clock)
            done.inspect(lambda w: out.append((w.start, worker.timers.now() - began)))
        input.send(at(0.5))
        input.advance_to(1)
        worker.step_while(lambda: not out)
        return out

    [[(start, after_s)]] = ps.simulate(main, workers=1, seed=1)
    assert start == at(0)
    assert 30 <= after_s < 31


@pytest.mark.parametrize("seed", range(3))
def test_an_idle_clock_needs_no_end_of_input(seed: int) -> None:
    clock = ps.EventClock(idle_after=datetime.timedelta(seconds=1))

    def main(worker: Any) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            done, _ = stream.count_window(
                ps.Sessions(MINUTE), lambda r: r[1], lambda r: r[0], clock=clock
            )
            done.inspect(lambda w: out.append((w.key, w.value)))
        if worker.index == 0:
            for n, key in enumerate("abca"):
                input.send((key, at(n / 10)))
        input.advance_to(1)
        end = worker.timers.now() + 120
        while worker.timers.now() < end:
            worker.step_or_park(0.5)
        return out

    parts = ps.simulate(main, workers=2, seed=seed)
    assert sorted(item for part in parts for item in part) == [("a", 2), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("is_first", [True, False], ids=["has stopped", "never began"])
def test_a_side_of_a_join_without_records_does_not_hold_back_the_other(is_first: bool) -> None:
    clock = ps.EventClock(idle_after=datetime.timedelta(seconds=5))

    def main(worker: Any) -> Any:
        out: list[Any] = []
        began = worker.timers.now()
        with worker.dataflow() as scope:
            busy, of_busy = scope.new_input()
            quiet, of_quiet = scope.new_input()
            done, _, _ = of_busy.join_window(
                of_quiet, ps.Tumbling(MINUTE), lambda x: x, lambda x: 0, how="left", clock=clock
            )
            done.inspect(lambda w: out.append((w.start, w.value, worker.timers.now() - began)))
        if is_first:
            quiet.send(at(0))
        epoch = 0
        while not out and worker.timers.now() < began + 300:
            busy.send(at((worker.timers.now() - began) / 60))
            epoch += 1
            busy.advance_to(epoch)
            quiet.advance_to(epoch)
            while worker.timers.now() < began + epoch:
                worker.step_or_park(0.5)
        return list(out)

    [out] = ps.simulate(main, workers=1, seed=1)
    assert {start for start, _, _ in out} == {at(0)}
    assert len(out) >= 55
    assert 60 <= out[0][2] < 70


def test_a_clock_of_two_streams_is_at_the_earlier_of_theirs() -> None:
    mark = Watermark(2, idle_after_s=10.0)
    assert mark.seconds_until(0, 0.0) is None
    mark.advance(0, 5_000_000, 100.0)
    assert mark.value(109.0) is None
    assert mark.seconds_until(5_000_000, 101.0) == 9.0
    mark.advance(1, 3_000_000, 109.0)
    assert mark.value(109.0) == 3_000_000
    # The first is idle, and the second is not; and then the other way round.
    assert mark.value(112.0) == 3_000_000
    mark.advance(0, 30_000_000, 118.0)
    assert mark.value(118.0) == 3_000_000
    assert mark.value(119.0) == 13_000_000
    assert mark.seconds_until(23_000_000, 119.0) == pytest.approx(10.0, abs=1e-5)
    # Not back, whatever comes.
    mark.advance(1, 1_000_000, 120.0)
    assert mark.value(120.0) == 14_000_000


def test_a_stream_that_begins_late_does_not_set_the_clock_back() -> None:
    mark = Watermark(2, idle_after_s=10.0)
    mark.advance(0, 5_000_000, 100.0)
    mark.advance(0, 50_000_000, 110.0)
    assert mark.value(110.0) == 50_000_000
    mark.advance(1, 1_000_000, 111.0)
    assert mark.value(111.0) == 50_000_000


def test_clocks_that_do_not_fit_are_refused() -> None:
    def made(**options: Any) -> None:
        collect(lambda s: s.to_stream([1]).window(**options)[0])

    idle = ps.EventClock(idle_after=MINUTE)
    with pytest.raises(WorkerError, match="whose unit is not known"):
        made(windows=ps.Tumbling(5), time=lambda x: x, clock=idle)
    with pytest.raises(WorkerError, match="say what the time of a record is"):
        made(windows=ps.Tumbling(5), clock=ps.EventClock())
    with pytest.raises(WorkerError, match="needs a clock"):
        made(windows=ps.Tumbling(MINUTE))
    with pytest.raises(UsageError, match="positive timedelta"):
        ps.EventClock(idle_after=5)  # type: ignore[arg-type]


def test_a_timestamp_clock_of_the_calendar() -> None:
    """Timestamps count minutes from noon on."""
    clock = ps.TimestampClock(
        lambda t: NOON + t * MINUTE, lambda moment: -(-(moment - NOON) // MINUTE)
    )

    def build(scope: Any) -> Any:
        stream = scope.replay(
            [[ps.Messages(0, [at(3)]), ps.Messages(7, [at(12)]), ps.Progress([(0, -1)])]]
        )
        return stream.window(ps.Tumbling(10 * MINUTE), lambda x: x, clock=clock)[0]

    assert [(t, w.start) for t, w in collect(build)] == [(10, at(0)), (20, at(10))]


# What is wrong is named; what fails goes where it was asked to.


def test_a_fold_that_fails_is_routed_with_its_record() -> None:
    def fold(key: Any, record: int, value: int) -> int:
        return value + 12 // record

    def build(side: int, on_error: Any) -> Any:
        def make(scope: Any) -> Any:
            streams = scope.to_stream([0, 3, 12, 20]).fold_window(
                fold, ps.Tumbling(10), lambda x: x, default=0, on_error=on_error
            )
            return streams[side]

        return make

    results = [(t, w.start, w.value) for t, w in collect(build(0, "route"))]
    assert results == [(10, 0, 4), (20, 10, 1), (30, 20, 0)]
    [(time, failed)] = collect(build(2, "route"))
    assert (time, failed.record, failed.operator) == (10, 0, "FoldWindow")
    assert isinstance(failed.error, ZeroDivisionError)
    assert [(t, w.value) for t, w in collect(build(0, "drop"))] == [(10, 4), (20, 1), (30, 0)]


def test_what_is_of_columns_or_rows_only_is_said(first_cause: Any) -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1]})

    def cause(build: Any) -> Any:
        with pytest.raises(WorkerError) as raised:
            collect(lambda scope: build(scope)[0])
        return first_cause(raised.value)

    wanted = cause(lambda s: s.batches_to_stream([batch]).reduce_window(max, ps.Tumbling(2), "x"))
    assert isinstance(wanted, ColumnError)
    assert "fold_window" in str(wanted)
    by_name = cause(
        lambda s: s.to_stream([1]).fold_window([("x", "sum")], ps.Tumbling(2), lambda x: x)
    )
    assert isinstance(by_name, ColumnError)
    of_a_function = cause(
        lambda s: s.batches_to_stream([batch]).fold_window(
            [("x", "sum")], ps.Tumbling(2), "x", key=lambda batch: batch["x"]
        )
    )
    assert isinstance(of_a_function, BuildError)
    assert "name those of the key" in str(of_a_function)
    with pytest.raises(WorkerError, match="how='outer'"):
        collect(lambda s: s.to_stream([1]).join_window(s.empty(), ps.Tumbling(1), how="outer")[0])


KEYED = pa.RecordBatch.from_pydict({"k": [1, 2], "at": [3, 4]})
TEXTS = pa.RecordBatch.from_pydict({"k": ["a"], "at": [3]})


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(5)], ids=repr)
@pytest.mark.parametrize(
    ("other", "key", "on_error", "error", "text"),
    [
        (KEYED, None, "raise", ColumnError, "the key's column, or of several; found None"),
        (KEYED, None, "drop", ColumnError, "the key's column, or of several; found None"),
        (KEYED, lambda record: 0, "raise", ColumnError, "column, or"),
        (TEXTS, "k", "raise", SchemaError, "int64 with string"),
        ([(1, 3)], None, "raise", (ColumnError, SchemaError), "columns"),
    ],
)
def test_columns_that_cannot_be_joined_are_refused_with_the_first_batch(
    windows: Any, other: Any, key: Any, on_error: Any, error: Any, text: str, first_cause: Any
) -> None:
    def build(scope: Any) -> Any:
        one = scope.batches_to_stream([KEYED])
        is_rows = isinstance(other, list)
        two = scope.to_stream(other) if is_rows else scope.batches_to_stream([other])
        time = (lambda record: record[1]) if is_rows else "at"
        joined = one.join_window(two, windows, "at", key, time, on_error=on_error)
        return joined[0]

    with pytest.raises(WorkerError, match="operator 'JoinWindow' failed at time 0") as raised:
        collect(build)
    assert isinstance(first_cause(raised.value), error)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"schemas": (KEYED.schema, None)}, "has the key None, and schemas= has the columns"),
        ({"key": "k", "other_key": "z", "schemas": (None, KEYED.schema)}, "'z'.* of the right"),
        ({"key": "k", "other_key": ["k", "at"]}, "has keys of 1 and 2 columns"),
        ({"key": "k", "schemas": KEYED.schema}, r"takes schemas=\(left, right\)"),
        ({"key": "k", "schemas": (KEYED.schema,)}, r"takes schemas=\(left, right\)"),
    ],
)
@pytest.mark.parametrize("is_windowed", [True, False])
def test_a_join_that_cannot_be_is_refused_when_it_is_built(
    given: Any, text: str, is_windowed: bool, first_cause: Any
) -> None:
    def build(scope: Any) -> Any:
        one, two = scope.empty(), scope.empty()
        if is_windowed:
            return one.join_window(two, ps.Tumbling(10), "at", **given)[0]
        return one.join(two, **given)

    with pytest.raises(WorkerError, match=text) as raised:
        collect(build)
    assert isinstance(first_cause(raised.value), BuildError)


@dataclass(frozen=True)
class Tick:
    """A time that Python cannot compare by `<`."""

    number: int


@dataclass(frozen=True)
class Later:
    """Advances a tick."""

    by: int

    @property
    def advances(self) -> bool:
        return self.by > 0

    def results_in(self, time: Tick) -> Tick:
        return Tick(time.number + self.by)

    def followed_by(self, other: Later) -> Later:
        return Later(self.by + other.by)

    def less_equal(self, other: Later) -> bool:
        return self.by <= other.by


@dataclass(frozen=True)
class Ticks(ps.Timestamp):
    """Ticks, in one line."""

    name = "Ticks"
    minimum = Tick(0)
    total = True

    @property
    def identity(self) -> Later:
        return Later(0)

    def less_equal(self, a: Tick, b: Tick) -> bool:
        return a.number <= b.number

    def key(self, time: Tick) -> int:
        return time.number

    def check(self, time: Any) -> Tick:
        return time

    def summary(self, value: Any) -> Later:
        return value if isinstance(value, Later) else Later(value)


@pytest.mark.parametrize("clock", [
    ps.TimestampClock(lambda tick: tick.number, Tick),
    ps.EventClock(),
])  # fmt: skip
def test_timestamps_of_a_type_of_ones_own_need_no_order_of_pythons(clock: Any) -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow(timestamp=Ticks()) as scope:
            input, stream = scope.new_input()
            done, _ = stream.window(ps.Tumbling(10), lambda x: x, lateness=5, clock=clock)
            done.inspect(lambda w: out.append((w.start, sorted(w.records))))
        for number, events in ((0, [25, 3]), (7, [14, 4]), (30, [31, 27])):
            input.advance_to(Tick(number))
            input.send_batch(events)
            worker.step()
        return out

    [found] = ps.execute(main)
    if isinstance(clock, ps.EventClock):
        # The clock is at 25 when epoch 7 begins, so 14 and 4 are late there.
        assert sorted(found) == [(0, [3]), (20, [25, 27]), (30, [31])]
    else:
        assert sorted(found) == [(0, [3, 4]), (10, [14]), (20, [25, 27]), (30, [31])]
