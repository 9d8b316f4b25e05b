"""Windows of event time against a count by brute force: who is in, who is late, and when."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import ColumnError, DataError, UsageError, WorkerError
from pointstamp.testing import collect

Record = tuple[int, str, int]
"""Timestamp, key, event time."""
Found = list[tuple[int, int, int, list[tuple[str, int]]]]
"""(timestamp of release, start, end, (key, event time) of the records), of each key's window."""


def as_rows(records: list[Record]) -> Any:
    return [(key, event) for _, key, event in records]


def as_columns(records: list[Record]) -> Any:
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([key for _, key, _ in records], pa.string()),
            "event": pa.array([event for _, _, event in records], pa.int64()),
        }
    )


def as_arrays(records: list[Record]) -> Any:
    return Arrays(
        key=np.array([key for _, key, _ in records], "U1"),
        event=np.array([event for _, _, event in records], np.int64),
    )


MAKES = [as_rows, as_columns, as_arrays]
CONTAINERS = [pytest.param(make, id=make.__name__) for make in MAKES]


def run(
    make: Callable[[list[Record]], Any],
    records: list[Record],
    windows: Any,
    keyed: bool,
    lateness: int,
    workers: int,
) -> tuple[Found, list[Record]]:
    """What the operator makes of records that come in the order of their timestamps."""
    is_rows = make is as_rows
    time: Any = (lambda record: record[1]) if is_rows else "event"
    key: Any = ((lambda record: record[0]) if is_rows else "key") if keyed else None

    def main(worker: Any) -> tuple[list[Any], list[Any]]:
        done: list[Any] = []
        late: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            results, latecomers = stream.window(windows, time, key, lateness)
            results.inspect_batch(lambda t, b: done.extend((t, r) for r in _records(b)))
            latecomers.inspect_batch(lambda t, b: late.extend((t, *r) for r in _records(b)))
        mine = collections.defaultdict(list)
        for i, record in enumerate(records):
            if i % worker.peers == worker.index:
                mine[record[0]].append(record)
        for timestamp in sorted(mine):
            input.advance_to(timestamp)
            input.send_batch(make(mine[timestamp]))
            worker.step()
        return done, late

    parts = ps.execute(main, workers=workers, threads=True)
    done = [item for part, _ in parts for item in part]
    late = sorted(item for _, part in parts for item in part)
    return _by_window(done, keyed), late


def _records(batch: Any) -> Any:
    return ps.containers.kind_of(batch).records(batch)


def _by_window(done: list[Any], keyed: bool) -> Found:
    """Windows of rows and of columns in one form."""
    found: Any = collections.defaultdict(list)
    for time, record in done:
        if isinstance(record, ps.Window):
            assert record.key == (record.records[0][0] if keyed else None)
            group = (time, record.start, record.end, record.key)
            assert group not in found
            found[group].extend(record.records)
        else:
            key, event, start, end = record
            found[time, start, end, key if keyed else None].append((key, event))
    return sorted((time, start, end, sorted(of)) for (time, start, end, _), of in found.items())


def oracle(
    records: list[Record], windows: Any, keyed: bool, lateness: int
) -> tuple[Found, list[Record]]:
    """The same, from all records at once."""
    late = [r for r in records if r[2] < r[0] - lateness]
    groups = collections.defaultdict(list)
    for timestamp, key, event in records:
        if event >= timestamp - lateness:
            groups[key if keyed else None].append((event, key))
    found = []
    for group in groups.values():
        for start, end, members in _windows_of(sorted(group), windows):
            found.append((end + lateness, start, end, sorted((k, e) for e, k in members)))
    return sorted(found), sorted(late)


def _windows_of(group: list[tuple[int, str]], windows: Any) -> Any:
    if isinstance(windows, ps.Sessions):
        sessions: list[list[tuple[int, str]]] = []
        for item in group:
            if sessions and item[0] - sessions[-1][-1][0] < windows.gap:
                sessions[-1].append(item)
            else:
                sessions.append([item])
        for session in sessions:
            yield session[0][0], session[-1][0] + windows.gap, session
    else:
        first, last = group[0][0] - windows.size, group[-1][0]
        for start in range(first, last + 1):
            members = [item for item in group if start <= item[0] < start + windows.size]
            if (start - windows.offset) % windows.slide == 0 and members:
                yield start, start + windows.size, members


EXAMPLE: list[Record] = [
    (0, "a", 3),
    (0, "b", 4),
    (2, "a", 12),
    (9, "b", 0),  # nine behind
    (9, "a", 7),  # two behind
    (12, "a", 9),  # three behind, in a window that is over without lateness
    (14, "b", 31),
    (30, "a", 30),
]
WINDOWS = [ps.Tumbling(10), ps.Tumbling(7, offset=3), ps.Sliding(10, 5), ps.Sliding(10, 4),
           ps.Sliding(3, 8, has_gaps=True), ps.Sessions(5), ps.Sessions(1)]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_windows_are_those_of_the_oracle(make: Any, windows: Any, workers: int) -> None:
    for keyed in (False, True):
        for lateness in (0, 3):
            found = run(make, EXAMPLE, windows, keyed, lateness, workers)
            assert found == oracle(EXAMPLE, windows, keyed, lateness)


RECORDS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.integers(-10, 20)), max_size=25
).map(lambda found: [(t, k, t + d) for t, k, d in sorted(found)])
SIZES = st.integers(1, 12)


@given(
    RECORDS,
    st.one_of(
        st.builds(ps.Tumbling, SIZES, st.integers(-5, 5)),
        st.builds(ps.Sliding, SIZES, SIZES, st.integers(-5, 5), st.just(True)),
        st.builds(ps.Sessions, SIZES),
    ),
    st.booleans(),
    st.integers(0, 12),
    st.sampled_from([1, 2]),
    st.sampled_from(MAKES),
)
def test_any_records_in_any_windows(
    records: Any, windows: Any, keyed: bool, lateness: int, workers: int, make: Any
) -> None:
    assert run(make, records, windows, keyed, lateness, workers) == oracle(
        records, windows, keyed, lateness
    )


def test_examples_worked_out_by_hand() -> None:
    done, late = run(as_rows, EXAMPLE, ps.Tumbling(10), True, 2, 1)
    assert done == [
        (12, 0, 10, [("a", 3), ("a", 7)]),
        (12, 0, 10, [("b", 4)]),
        (22, 10, 20, [("a", 12)]),
        (42, 30, 40, [("a", 30)]),
        (42, 30, 40, [("b", 31)]),
    ]
    assert late == [(9, "b", 0), (12, "a", 9)]
    done, late = run(as_rows, EXAMPLE, ps.Sessions(5), True, 2, 1)
    assert done == [
        (14, 3, 12, [("a", 3), ("a", 7)]),
        (11, 4, 9, [("b", 4)]),
        (19, 12, 17, [("a", 12)]),
        (37, 30, 35, [("a", 30)]),
        (38, 31, 36, [("b", 31)]),
    ] or done == sorted(
        [
            (14, 3, 12, [("a", 3), ("a", 7)]),
            (11, 4, 9, [("b", 4)]),
            (19, 12, 17, [("a", 12)]),
            (37, 30, 35, [("a", 30)]),
            (38, 31, 36, [("b", 31)]),
        ]
    )


@pytest.mark.parametrize("seed", range(10))
def test_windows_do_not_depend_on_timing(seed: int) -> None:
    def main(worker: Any) -> tuple[list[Any], list[Any]]:
        done: list[Any] = []
        late: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            results, latecomers = stream.window(
                ps.Sessions(4), lambda r: r[1], lambda r: r[0], lateness=2
            )
            results.inspect_batch(lambda t, b: done.extend((t, r) for r in b))
            latecomers.inspect_batch(lambda t, b: late.extend((t, *r) for r in b))
        for timestamp, key, event in EXAMPLE[worker.index :: worker.peers]:
            input.advance_to(timestamp)
            input.send((key, event))
            worker.step()
        return done, late

    parts = ps.simulate(main, workers=3, seed=seed)
    done = _by_window([item for part, _ in parts for item in part], keyed=True)
    late = sorted(item for _, part in parts for item in part)
    assert (done, late) == oracle(EXAMPLE, ps.Sessions(4), True, 2)


@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(4)], ids=repr)
def test_a_window_is_released_as_soon_as_it_is_complete_and_not_before(
    make: Any, windows: Any
) -> None:
    """The window of event time 6 ends at 10, and is complete 3 later."""
    is_rows = make is as_rows

    def main(worker: Any) -> None:
        released: list[int] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            done, _ = stream.window(windows, (lambda r: r[1]) if is_rows else "event", lateness=3)
            probe = done.inspect_batch(lambda time, batch: released.append(time)).probe()
        input.send_batch(make([(0, "a", 6)]))
        for timestamp in (5, 12, 13):
            assert released == []
            input.advance_to(timestamp)
            for _ in range(10):
                worker.step()
            # Nothing of the past is held back: the next release is at 13.
            assert probe.elements == [timestamp]
        assert released == [13]

    ps.execute(main)


def test_what_is_open_at_the_end_of_input_is_released() -> None:
    def build(scope: Any) -> Any:
        return scope.to_stream([1, 25, 1000]).window(ps.Tumbling(10), lambda x: x)[0]

    assert [(time, window.records) for time, window in collect(build)] == [
        (10, [1]), (30, [25]), (1010, [1000])]  # fmt: skip


def test_without_a_time_the_timestamp_is_the_event_time() -> None:
    events = [ps.Messages(t, [f"at {t}"]) for t in (0, 4, 5, 11)] + [ps.Progress([(0, -1)])]

    def build(scope: Any) -> Any:
        return scope.replay([events]).window(ps.Tumbling(5))[0]

    assert [(time, window.records) for time, window in collect(build)] == [
        (5, ["at 0", "at 4"]), (10, ["at 5"]), (15, ["at 11"])]  # fmt: skip


def test_a_clock_says_what_event_times_timestamps_stand_for() -> None:
    """Timestamps count minutes from 600 s on."""
    clock = ps.TimestampClock(lambda t: 600 + 60 * t, lambda e: max(0, -((600 - e) // 60)))
    events = [
        ps.Messages(0, [610, 650]),
        ps.Messages(1, [655, 640, 661]),  # the second lies behind by more than 10 s
        ps.Progress([(2, 1), (0, -1)]),
        ps.Messages(3, [900]),
        ps.Progress([(2, -1)]),
    ]

    def build(side: int) -> Callable[[Any], Any]:
        return lambda scope: scope.replay([events]).window(
            ps.Tumbling(60), lambda x: x, lateness=10, clock=clock
        )[side]

    assert [(time, w.start, sorted(w.records)) for time, w in collect(build(0))] == [
        (2, 600, [610, 650, 655]), (3, 660, [661]), (7, 900, [900])]  # fmt: skip
    assert collect(build(1)) == [(1, 640)]


DAYS = [datetime.date(1970, 1, day) for day in (2, 10, 12)]
SECONDS = [datetime.datetime(1970, 1, 1, 0, 0, second) for second in (1, 9, 11)]


@pytest.mark.parametrize(
    ("times", "ten"),
    [
        (pa.array(DAYS, pa.date32()), datetime.date(1970, 1, 11)),
        (pa.array(SECONDS, pa.timestamp("s")), datetime.datetime(1970, 1, 1, 0, 0, 10)),
    ],
)
def test_arrow_times_are_event_times_in_their_unit(times: Any, ten: Any) -> None:
    batch = pa.RecordBatch.from_pydict({"when": times})
    found: list[Any] = []

    def build(scope: Any) -> Any:
        done, _ = scope.batches_to_stream([batch]).window(ps.Tumbling(10), "when")
        return done.inspect_batch(lambda time, batch: found.append((time, batch)))

    collect(build)
    (first, before), (second, after) = found
    assert (first, before.num_rows, second, after.num_rows) == (10, 2, 20, 1)
    assert before["window_end"].to_pylist() == [ten, ten]
    assert after["window_start"].to_pylist() == [ten]


# What is wrong is named.


def test_windows_that_cannot_be_are_refused() -> None:
    for make in (lambda: ps.Tumbling(0), lambda: ps.Sliding(5, -1), lambda: ps.Sessions(1.5)):
        with pytest.raises(UsageError, match="positive integer"):
            make()
    with pytest.raises(WorkerError, match="lateness"):
        collect(lambda scope: scope.to_stream([1]).window(ps.Tumbling(1), lateness=-1)[0])


def test_event_times_must_be_integers(first_cause: Any) -> None:
    with pytest.raises(WorkerError, match="integers as event times") as raised:
        collect(lambda scope: scope.to_stream([1.5]).window(ps.Tumbling(1), lambda x: x)[0])
    assert isinstance(first_cause(raised.value), DataError)
    batch = pa.RecordBatch.from_pydict({"x": pa.array([1, None], pa.int64())})
    with pytest.raises(WorkerError, match="1 of 2 are null"):
        collect(lambda scope: scope.batches_to_stream([batch]).window(ps.Tumbling(1), "x")[0])
    with pytest.raises(WorkerError, match="given NaTType, such as NaT"):
        collect(lambda scope: scope.to_stream([pd.NaT]).window(ps.Tumbling(DAY), lambda x: x)[0])


NOON, DAY = datetime.datetime(2024, 5, 1, 12), datetime.timedelta(days=1)


@pytest.mark.parametrize("good", [3, DAY, NOON, NOON.replace(tzinfo=datetime.UTC)])
@pytest.mark.parametrize("bad", [None, "5", 2.5, True])
def test_what_is_no_time_among_times_is_named(good: Any, bad: Any, first_cause: Any) -> None:
    # Which of the kinds of a batch a set gives first is another one in each process.
    windows = ps.Tumbling(10) if good == 3 else ps.Tumbling(DAY)
    for values in ([good, bad], [bad, good]):
        with pytest.raises(WorkerError) as raised:
            collect(
                lambda scope, values=values: scope.to_stream(values).window(windows, lambda x: x)[0]
            )
        assert f"was given {type(bad).__name__}, such as {bad!r}" in str(first_cause(raised.value))


def test_integers_of_several_types_are_event_times(first_cause: Any) -> None:
    values = [np.int64(3), np.uint64(2**60 + 1), 12]
    found = collect(lambda scope: scope.to_stream(values).window(ps.Tumbling(4), lambda x: x)[0])
    assert [window.start for _, window in found] == [0, 12, 2**60]
    with pytest.raises(WorkerError, match="counts event times in 63 bits; some do not fit"):
        collect(lambda scope: scope.to_stream([3, 2**64]).window(ps.Tumbling(4), lambda x: x)[0])


def test_a_clock_is_a_clock_and_not_its_class() -> None:
    with pytest.raises(WorkerError, match=r"needs a clock such as ps.EventClock\(\).*EventClock'>"):
        collect(lambda s: s.to_stream([1]).window(ps.Tumbling(1), clock=ps.EventClock)[0])


def test_a_window_whose_end_no_timestamp_stands_for_is_refused(first_cause: Any) -> None:
    last = datetime.datetime.max.replace(tzinfo=datetime.UTC) - DAY
    clock = ps.TimestampClock(lambda timestamp: last, lambda event_time: 0)

    def build(scope: Any) -> Any:
        return scope.to_stream([1]).window(ps.Tumbling(DAY), lateness=9 * DAY, clock=clock)[0]

    with pytest.raises(WorkerError, match="no timestamp stands for its end") as raised:
        collect(build)
    assert isinstance(first_cause(raised.value), DataError)


@pytest.mark.parametrize("windows", [ps.Tumbling(10), ps.Sessions(4)], ids=repr)
def test_a_key_or_time_that_does_not_fit_the_container_is_named(
    windows: Any, first_cause: Any
) -> None:
    def rows(**options: Any) -> None:
        collect(lambda scope: scope.to_stream([(1, 2)]).window(windows, **options)[0])

    def columns(**options: Any) -> None:
        batch = as_columns([(0, "a", 1)])
        collect(lambda scope: scope.batches_to_stream([batch]).window(windows, **options)[0])

    for call in (
        lambda: rows(time="event"),
        lambda: rows(time=lambda r: r[0], key="key"),
        lambda: columns(time="no such"),
    ):
        with pytest.raises(WorkerError) as raised:
            call()
        assert isinstance(first_cause(raised.value), ColumnError)


def test_timestamps_that_are_no_line_or_have_no_clock_are_refused() -> None:
    def nested(worker: Any) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            with scope.iterative() as inner:
                stream.enter(inner).window(ps.Tumbling(1))

    def unit(worker: Any) -> None:
        with worker.dataflow(timestamp=ps.Unit) as scope:
            scope.to_stream([1]).window(ps.Tumbling(1))

    with pytest.raises(WorkerError, match="timestamps in one line"):
        ps.execute(nested)
    with pytest.raises(WorkerError, match="needs a clock"):
        ps.execute(unit)


def test_columns_of_the_names_of_the_bounds_are_an_error() -> None:
    batch = pa.RecordBatch.from_pydict({"window_start": [1]})
    with pytest.raises(WorkerError, match=r"'window_start'.*rename it first"):
        collect(lambda s: s.batches_to_stream([batch]).window(ps.Tumbling(1))[0])


FIRST = datetime.datetime.min.replace(tzinfo=datetime.UTC)
AT_THE_ENDS = [
    (ps.Tumbling(3), [2**63 - 1], None),
    (ps.Tumbling(3), [-(2**63)], None),
    (ps.Sessions(3), pa.record_batch({"t": [2**63 - 2]}), None),
    (ps.Tumbling(DAY), [datetime.datetime.max.replace(tzinfo=datetime.UTC)], None),
    (ps.Sliding(2 * DAY, DAY), [FIRST], None),
    (ps.Tumbling(DAY), [datetime.timedelta.max], "63 bits"),
    (ps.Tumbling(DAY), pa.record_batch({"t": pa.array([2**63 - 1], pa.timestamp("ns"))}), None),
    (ps.Tumbling(DAY), Arrays(t=np.array([2**62], "M8[s]")), "63 bits"),
    (ps.Tumbling(DAY), Arrays(t=np.array([-(2**45)], "m8[s]")), "63 bits"),
    (ps.Tumbling(DAY), Arrays(t=np.array([2**63 - 1], "M8[ns]")), None),
    (ps.Tumbling(DAY), Arrays(t=np.array([2**63 - 1], "M8[ps]")), None),
]


@pytest.mark.parametrize(("windows", "batch", "words"), AT_THE_ENDS)
def test_a_time_whose_windows_have_no_bounds_is_refused(
    windows: Any, batch: Any, words: str | None, first_cause: Any
) -> None:
    """And not put into a window that is another one, or into none."""

    def build(scope: Any) -> Any:
        time = (lambda record: record) if isinstance(batch, list) else "t"
        return scope.batches_to_stream([batch]).window(windows, time, clock=ps.EventClock())[0]

    with pytest.raises(WorkerError) as raised:
        collect(build)
    cause = first_cause(raised.value)
    assert isinstance(cause, DataError)
    assert (words or "no times any more") in str(cause)


@pytest.mark.parametrize("size", [86_400, DAY])
@pytest.mark.parametrize("dtype", [">M8[s]", ">m8[s]"])
def test_numpy_times_may_have_either_order_of_bytes(size: Any, dtype: str) -> None:
    times = np.array([1_577_836_800, 1_577_836_801], dtype)
    found: list[Any] = []

    def build(scope: Any) -> Any:
        done, _ = scope.batches_to_stream([Arrays(t=times)]).window(ps.Tumbling(size), "t")
        return done.inspect_batch(lambda time, batch: found.append(batch))

    collect(build)
    (batch,) = found
    assert np.array_equal(batch["t"], times)
    assert batch["window_start"].astype(np.int64).tolist() == [1_577_836_800] * 2
    assert batch["window_end"].astype(np.int64).tolist() == [1_577_923_200] * 2


def test_months_and_years_are_event_times() -> None:
    for unit, day in (("M", datetime.datetime(1970, 4, 1)), ("Y", datetime.datetime(1973, 1, 1))):
        batch = Arrays(t=np.array([3], f"M8[{unit}]"))

        def build(scope: Any, batch: Any = batch) -> Any:
            return scope.batches_to_stream([batch]).window(ps.Tumbling(DAY), "t")[0]

        assert collect(build) == [(0, (day.date(), day, day + DAY))]


def test_a_zone_is_no_unit() -> None:
    zone = pa.timestamp("us", "Africa/Kinshasa")
    batch = pa.record_batch({"t": pa.array([2**55], pa.int64()).view(zone)})
    found = collect(lambda s: s.batches_to_stream([batch]).window(ps.Tumbling(DAY), "t")[0])
    assert [record[0].year for _, record in found] == [3111]


def test_a_session_ends_where_the_next_record_is_further_away_than_int64_holds() -> None:
    for times in ([-(2**62) - 10, 2**62 + 10], [5 - 2**63, 2**63 - 100]):

        def build(scope: Any, times: list[int] = times) -> Any:
            clock = ps.EventClock()
            return scope.to_stream(times).window(ps.Sessions(10), lambda x: x, clock=clock)[0]

        assert [window.records for _, window in collect(build)] == [[time] for time in times]


def test_the_first_day_of_the_calendar_has_a_window() -> None:
    for offset in (datetime.timedelta(), -9 * DAY):
        windows = ps.Tumbling(DAY, offset)
        build = lambda scope: scope.to_stream([FIRST]).window(windows, lambda time: time)[0]  # noqa: B023, E731
        assert [(w.start, w.end) for _, w in collect(build)] == [(FIRST, FIRST + DAY)]


def test_windows_too_wide_for_event_times_are_refused() -> None:
    for make in (
        lambda: ps.Tumbling(2**62),
        lambda: ps.Sessions(2**63),
        lambda: ps.Tumbling(1, 2**62),
    ):
        with pytest.raises(UsageError, match="too wide"):
            make()
