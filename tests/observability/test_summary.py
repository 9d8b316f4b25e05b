"""The sums of a log, and the critical path of an epoch, against numbers worked out by hand."""

from __future__ import annotations

from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.errors import UsageError
from pointstamp.observability import EVENTS, Log, LoggedRun, read, summarize
from pointstamp.observability.path import critical_path, epochs
from pointstamp.observability.reading import WorkerEvents
from pointstamp.observability.summary import self_times

Rows = dict[str, list[tuple[Any, ...]]]


def told(index: int, rows: Rows) -> WorkerEvents:
    """A worker that told `rows`, in the order of each type's columns."""
    columns: dict[str, Any] = {}
    for name, of in EVENTS.items():
        by_column = list(zip(*rows.get(name, []), strict=True)) or [()] * len(of.columns)
        columns[name] = {
            column: list(values) if kind == "string" else np.array(values, kind)
            for (column, kind), values in zip(of.columns.items(), by_column, strict=True)
        }
    return WorkerEvents(index, columns)


# A program of one worker, by a clock that ticks when it is looked at.


def tiny(worker: Any) -> None:
    """Three records from a source through a map to a probe."""
    with worker.dataflow("tiny") as scope:
        scope.to_stream([1, 2, 3]).map(lambda x: x).probe()
    worker.run()


@pytest.fixture
def of_tiny(tmp_path: Path) -> Any:
    ps.execute(tiny, log=Log(tmp_path, ticks=partial(next, count())))
    return summarize(read(tmp_path))


def test_records_and_batches_are_those_of_the_program(of_tiny: Any) -> None:
    found = [(c.source, c.target, c.batches, c.records, c.received) for c in of_tiny.channels]
    assert found == [("ToStream", "Map", 1, 3, 3), ("Map", "Probe", 1, 3, 3)]
    assert [c.to_others for c in of_tiny.channels] == [0, 0]


def test_self_times_are_those_of_the_looks_at_the_clock(of_tiny: Any) -> None:
    """An activation takes a tick, and one more for each event in it.

    The source sends its batch and then drops its capability; the map takes and sends a
    batch; the probe takes one, and is then told that nothing comes.
    """
    found = {o.name: (o.kind, o.activations, o.self_time) for o in of_tiny.operators}
    assert found.pop("tiny")[0] == "dataflow"
    assert found == {
        "ToStream": ("operator", 2, 2 + 2),
        "Map": ("operator", 1, 3),
        "Probe": ("operator", 2, 2 + 1),
    }
    assert sum(o.share for o in of_tiny.operators) == pytest.approx(1)
    (worker,) = of_tiny.workers
    assert worker.operators == 10
    assert worker.parks == worker.parked == worker.progress_sent == 0
    assert worker.elapsed == worker.operators + worker.scopes + worker.rest


def test_self_times_are_without_what_is_inside() -> None:
    began = np.array([0, 10, 12, 30, 60, 100, 110])
    ended = np.array([100, 50, 20, 40, 70, 110, 110])
    assert self_times(ended, began).tolist() == [100 - 40 - 10, 40 - 8 - 10, 8, 10, 10, 10, 0]


# Two workers, as they might have told. Operators: 0 the dataflow, 1 its input, 2 a map that
# the records are exchanged to, 3 a probe.

OPERATORS = [
    (0, 0, -1, 0, "dataflow", "two", "0"),
    (0, 1, 0, 0, "operator", "Input", "0/1"),
    (0, 2, 0, 0, "operator", "Map", "0/2"),
    (0, 3, 0, 0, "operator", "Probe", "0/3"),
]
CHANNELS = [(0, 0, 0, 1, 0, 2, 0, "exchange"), (0, 1, 0, 2, 0, 3, 0, "pipeline")]


def two_workers(busy: list[tuple[int, int, int]]) -> LoggedRun:
    """Worker 0 sends records at 15, which worker 1 takes at 32; `busy`: what it does else."""
    zero: Rows = {
        "operators": OPERATORS,
        "channels": CHANNELS,
        "schedules": [(20, 10, 1), (57, 55, 3), (60, 8, 0)],
        "messages": [(14, 0, 3, 0, 1, True, "0"), (15, 0, 2, 0, 1, True, "0")],
        "capabilities": [(9, 1, 0, 1, "0"), (18, 1, 0, -1, "0")],
        "frontiers": [(55, 3, 0, -1, "0")],
        "progress": [(19, 0, 4, 0, 1, True), (50, 0, 7, 1, 0, False)],
        "parks": [(50, 21)],
        "texts": [(58, "end")],
    }
    one: Rows = {
        "operators": OPERATORS,
        "channels": CHANNELS,
        "schedules": [(40, 30, 2), (53, 52, 3), *busy],
        "messages": [(32, 0, 5, 0, 1, False, "0"), (38, 1, 5, 1, 1, True, "0")],
        "capabilities": [(3, 1, 0, 1, "0"), (5, 1, 0, -1, "0")],
        "frontiers": [(52, 3, 0, -1, "0")],
        "progress": [(45, 0, 7, 1, 0, True), (48, 0, 4, 0, 1, False)],
        "parks": [(29, 6)],
        "texts": [(4, "begin")],
    }
    return LoggedRun(Path(), "ticks", [told(0, zero), told(1, one)])


def parts(run: LoggedRun) -> list[tuple[Any, ...]]:
    found = critical_path(run, epochs(run))
    assert found is not None
    return [(p.kind, p.name, p.worker, p.began, p.ended) for p in found.parts]


def test_an_epoch_is_from_the_last_input_to_the_last_probe() -> None:
    (epoch,) = epochs(two_workers([]))
    assert (epoch.dataflow, epoch.time, epoch.worker) == ("two", "0", 0)
    assert (epoch.began, epoch.ended, epoch.latency) == (18, 55, 37)


def test_the_critical_path_ends_though_activations_overlap_in_a_damaged_log() -> None:
    found = parts(two_workers([(100, 1, 2)]))
    assert (found[0][3], found[-1][4]) == (18, 55)
    assert sum(ended - began for *_, began, ended in found) == 37


def test_the_critical_path_goes_from_worker_to_worker() -> None:
    """Back from 55: told by 1 at 45, which had ended its map at 40, begun when records came."""
    assert parts(two_workers([])) == [
        ("message", "to Map", 0, 18, 30),  # sent at 15, before the epoch began
        ("operator", "Map", 1, 30, 40),
        ("worker", "", 1, 40, 45),
        ("progress", "two", 1, 45, 55),
    ]


def test_what_keeps_a_worker_busy_is_on_the_path() -> None:
    """The records were there at 15, and the worker was at something else from 20 to 28."""
    assert parts(two_workers([(28, 20, 2)])) == [
        ("worker", "", 1, 18, 20),
        ("operator", "Map", 1, 20, 28),
        ("worker", "", 1, 28, 30),
        ("operator", "Map", 1, 30, 40),
        ("worker", "", 1, 40, 45),
        ("progress", "two", 1, 45, 55),
    ]


def test_sums_over_workers() -> None:
    found = summarize(two_workers([]))
    assert {o.name: (o.activations, o.self_time) for o in found.operators} == {
        "two": (1, 52 - 10 - 2),
        "Input": (1, 10),
        "Map": (1, 10),
        "Probe": (2, 2 + 1),
    }
    first, second = found.channels
    assert (first.source, first.target, first.pact) == ("Input", "Map", "exchange")
    assert (first.batches, first.records, first.to_others, first.received) == (2, 5, 5, 5)
    assert (second.batches, second.records, second.to_others, second.received) == (1, 5, 0, 0)
    zero, one = found.workers
    assert (zero.elapsed, zero.operators, zero.scopes, zero.parked) == (60, 12, 40, 29)
    assert (one.elapsed, one.operators, one.scopes, one.parked) == (53, 11, 0, 23)
    assert one.rest == 53 - 11 - 23
    assert one.idle_share == pytest.approx(23 / 53)
    assert (zero.progress_sent, zero.progress_received, zero.updates_sent) == (1, 1, 4)
    assert found.texts == [(1, "begin"), (0, "end")]


def test_an_epoch_that_was_not_seen_is_an_error_that_names_some() -> None:
    with pytest.raises(UsageError, match=r"no epoch '7' .*; the last ones are 0"):
        summarize(two_workers([]), "7")


def test_the_parts_of_a_path_follow_each_other_and_add_up(tmp_path: Path) -> None:
    """Of what runs: whatever the times were."""

    def main(worker: Any) -> None:
        with worker.dataflow("real") as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().map(lambda x: x).exchange(lambda x: x + 1).probe()
        for epoch in range(20):
            for x in range(10):
                input.send(x)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    for name, run in (
        ("threads", lambda log: ps.execute(main, workers=2, threads=True, log=log)),
        ("simulated", lambda log: ps.simulate(main, workers=3, seed=11, log=log)),
    ):
        run(Log(tmp_path / name))
        logged = read(tmp_path / name)
        found = epochs(logged)
        assert {str(epoch) for epoch in range(20)} <= {each.time for each in found}
        for epoch in found:
            path = critical_path(logged, [epoch])
            assert path is not None
            assert sum(part.duration for part in path.parts) == epoch.latency
            ends = [(part.began, part.ended) for part in path.parts]
            assert ends[0][0] == epoch.began
            assert ends[-1][1] == epoch.ended
            assert all(a[1] == b[0] for a, b in pairwise(ends))
            assert sum(time for *_, time in path.by_name()) == epoch.latency


def test_a_log_of_nothing_has_empty_sums() -> None:
    found = summarize(LoggedRun(Path(), "ns", [told(0, {})]))
    assert (found.operators, found.channels, found.epochs, found.critical) == ([], [], [], None)
    assert found.workers[0].elapsed == 0
