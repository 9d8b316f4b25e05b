"""Many windows that are complete together: what each costs, and what each keeps."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import named_aggregates
from pointstamp.containers.arrow_groups import aggregated, combined
from pointstamp.containers.columns import ColumnsKind
from pointstamp.operators import window_state
from pointstamp.operators.window_functions import Collect
from pointstamp.testing import collect

N = 1000


class Bounds:
    """Of a session; counts how often they are read."""

    n_read = 0

    def __init__(self, start: int) -> None:
        self._start = start

    @property
    def start(self) -> int:
        Bounds.n_read += 1
        return self._start

    @property
    def end(self) -> int:
        Bounds.n_read += 1
        return self._start + 5


def test_the_sessions_of_a_key_are_not_all_looked_at_for_each_stretch() -> None:
    sessions = window_state._SessionsOfKey()
    sessions.panes = [Bounds(10 * number) for number in range(10_000)]
    assert sessions.touched(50_004, 50_011) == slice(5000, 5002)
    assert sessions.touched(50_005, 50_010) == slice(5001, 5001)
    assert Bounds.n_read < 100


def test_sessions_that_are_over_are_not_touched() -> None:
    sessions = window_state._SessionsOfKey()
    sessions.panes = [Bounds(0), Bounds(10), Bounds(20), Bounds(30), Bounds(40)]
    assert sessions.drop_first()
    assert sessions.panes[0] is None
    assert sessions.touched(0, 100) == slice(1, 5)
    for left in (3, 2, 1):
        assert sessions.drop_first()
        assert sum(pane is not None for pane in sessions.panes) == left
    assert not sessions.drop_first()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that Arrow grouped."""
    found: list[int] = []

    def count(batch: Any, *args: Any) -> Any:
        found.append(batch.num_rows)
        return aggregated(batch, *args)

    def count_parts(parts: Any, *args: Any) -> Any:
        found.append(sum(part.num_rows for part in parts))
        return combined(parts, *args)

    monkeypatch.setattr(named_aggregates, "aggregated", count)
    monkeypatch.setattr(named_aggregates, "combined", count_parts)
    return found


@pytest.mark.parametrize("windows", [ps.Sessions(5), ps.Tumbling(10), ps.Sliding(10, 5)])
@pytest.mark.parametrize("key", [None, "key", ["key", "batch"]])
@pytest.mark.parametrize("of", ["count", "sum", "mean"])
def test_windows_of_columns_that_are_complete_together_are_grouped_together(
    windows: Any, key: Any, of: str, calls: list[int]
) -> None:
    if of == "mean" and key is None:
        pytest.skip("has functions that Arrow has of a whole batch alone")
    columns = {"key": np.arange(N) % 3, "batch": np.zeros(N, np.int64), "t": np.arange(N) * 10}

    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream(pa.table(columns))
        by = {"time": "t", "key": key, "clock": ps.EventClock()}
        if of == "count":
            return stream.count_window(windows, **by)[0]
        return stream.fold_window([("t", of)], windows, **by)[0]

    found = [record for _, record in collect(build)]
    overlap = 2 if windows == ps.Sliding(10, 5) else 1
    starts = sorted(start for x in range(N) for start in (10 * x, 10 * x - 5)[:overlap])
    assert sorted(record[-2] for record in found) == starts
    for record in found:
        *of_key, value, start, end = record
        t = -(-start // 10) * 10
        assert value == (1 if of == "count" else t)
        assert start <= t < end
        assert of_key == [] if key is None else of_key[0] == t // 10 % 3
    assert len(calls) <= 4


def test_a_session_that_stays_open_keeps_its_own_records_only() -> None:
    state = window_state.open_windows(ps.Sessions(10), ["key"], Collect("key"))
    keys = np.append(np.zeros(5, np.int64), np.arange(1, 10_000))
    for round in range(3):
        times = np.append(np.arange(5) + 5 * round, np.full(len(keys) - 5, -1000))
        state.add(0, pa.RecordBatch.from_pydict({"key": keys, "t": times}), times)
        while state.pop(-990):
            pass
    [pane] = state.pop(1000)
    assert (pane.start, pane.end, pane.n_records) == (0, 24, 15)
    assert sum(part.get_total_buffer_size() for part in pane.parts[0]) == 15 * 16


def test_a_session_that_grows_is_kept_once_while_another_one_ends_before_it() -> None:
    state = window_state.open_windows(ps.Sessions(10), [lambda record: record[0]], Collect(None))
    state.add(0, [("b", 0)], np.zeros(1, np.int64))
    tracemalloc.start()
    try:
        for time in range(2000):
            state.add(0, [("a", time)], np.full(1, time))
            assert state.least_end() == 10
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_bytes < 2000 * 1000  # of each record its batch, and no list of those before it
    # Two sessions that become one, and end where the later of them did.
    for time in (-30, -45, -38):
        state.add(0, [("a", time)], np.full(1, time))
    found = [(pane.key, pane.start, pane.end, pane.n_records) for pane in state.pop(5000)]
    assert found == [("a", -45, -20, 3), ("b", 0, 10, 1), ("a", 0, 2009, 2000)]
    assert state.least_end() is None


def test_large_windows_are_not_all_sent_as_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_state, "TOGETHER", 25)
    sizes: list[int] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            rows = scope.to_stream(pa.table({"t": np.arange(100)}))
            done, _ = rows.window(ps.Tumbling(10), "t", clock=ps.EventClock())
            done.inspect_batch(lambda time, batch: sizes.append(len(batch)))
        worker.run()

    ps.execute(main)
    assert sum(sizes) == 100
    assert max(sizes) == 30


@pytest.mark.parametrize("key", ["key", ["key", "batch"]])
def test_a_session_is_not_grouped_by_key_before_it_is_folded(
    key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped: list[int] = []
    group = ColumnsKind.group

    def counting(self: Any, batch: Any, *args: Any) -> Any:
        grouped.append(len(batch))
        return group(self, batch, *args)

    monkeypatch.setattr(ColumnsKind, "group", counting)
    columns = {"key": np.arange(N) % 3, "batch": np.ones(N, np.int64), "t": np.arange(N) * 10}

    def build(scope: ps.Scope) -> Any:
        return scope.to_stream(pa.table(columns)).fold_window(
            lambda key, batch, n: n + batch["t"][0].as_py(),
            ps.Sessions(5), "t", key, clock=ps.EventClock(), default=0,
        )[0]  # fmt: skip

    found = [record for _, record in collect(build)]
    keys = [x % 3 if key == "key" else (x % 3, 1) for x in range(N)]
    assert sorted(found, key=lambda w: w.start) == [
        (keys[x], 10 * x, 10 * x + 5, 10 * x) for x in range(N)
    ]
    assert not grouped
