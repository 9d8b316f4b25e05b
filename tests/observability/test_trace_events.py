"""Traces of logs: what Perfetto needs to find in them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import FileFormatError
from pointstamp.observability.trace_events import trace_events, write_trace

N_EPOCHS = 3


def rounds(worker: ps.Worker) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        with scope.iterative() as inner:
            stream = stream.exchange().enter(inner).map(lambda x: x).leave()
        probe = stream.probe()
    worker.log("ready")
    for epoch in range(N_EPOCHS):
        for x in range(10):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


@pytest.fixture(scope="module", params=[{}, {"workers": 2, "threads": True}, {"workers": 2}])
def run(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("run")
    ps.execute(rounds, log=ps.Log(folder), **request.param)
    return ps.observability.read(folder)


@pytest.fixture(scope="module")
def events(run: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = tmp_path_factory.mktemp("trace") / "out.json"
    n_events = write_trace(run, path)
    found = json.loads(path.read_text())
    assert found.keys() == {"displayTimeUnit", "traceEvents"}
    assert len(found["traceEvents"]) == n_events
    events: list[Any] = found["traceEvents"]
    return events


def test_each_event_has_what_its_phase_needs(events: list[Any]) -> None:
    needed = {
        "M": {"name", "pid", "args"},
        "X": {"name", "pid", "tid", "ts", "dur"},
        "s": {"name", "cat", "id", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
        "C": {"name", "pid", "ts", "args"},
        "i": {"name", "pid", "tid", "ts", "s"},
    }
    assert {event["ph"] for event in events} == set(needed)
    for event in events:
        assert needed[event["ph"]] <= event.keys(), event
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_each_worker_is_a_process_with_its_activations(run: Any, events: list[Any]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {worker.index: f"worker {worker.index}" for worker in run.workers}
    for worker in run.workers:
        own = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (worker.index, 0)]
        counts = Counter(e["cat"] for e in own)
        assert counts["park"] == len(worker["parks"]["at"])
        assert sum(counts.values()) - counts["park"] == len(worker["schedules"]["at"])
        names = {e["name"] for e in own}
        assert {"numbers", "Exchange", "Map", "Probe", "Iterative", "rounds"} <= names


def test_slices_of_a_track_are_inside_each_other_or_apart(events: list[Any]) -> None:
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in tracks.values():
        around: list[float] = []
        for began, ended in sorted(slices, key=lambda each: (each[0], -each[1])):
            while around and around[-1] <= began + 1e-6:
                around.pop()
            assert not around or ended <= around[-1] + 1e-6
            around.append(ended)


def test_arrows_lead_from_a_sending_to_its_taking(run: Any, events: list[Any]) -> None:
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert begins.keys() == ends.keys()
    takes = [e for e in events if e["ph"] == "X" and e["name"].startswith("take")]
    assert len(ends) == len(takes) > 0
    slices = {(e["pid"], e["ts"]): e["name"] for e in events if e.get("cat") == "message"}
    crossings = set()
    for id, begin in begins.items():
        end = ends[id]
        assert begin["ts"] <= end["ts"]
        assert begin["name"] == end["name"]
        # What an arrow is bound to: a slice at its moment.
        assert (begin["pid"], begin["ts"]) in slices
        assert (end["pid"], end["ts"]) in slices
        crossings.add((begin["pid"], end["pid"]))
    n = len(run.workers)
    assert crossings == {(a, b) for a in range(n) for b in range(n)}


def test_counters_show_the_frontiers(run: Any, events: list[Any]) -> None:
    for worker in run.workers:
        moved = [
            e["args"]["time"]
            for e in events
            if e["ph"] == "C" and e["pid"] == worker.index and "Probe" in e["name"]
        ]
        assert moved == sorted(moved)
        assert moved[-1] == N_EPOCHS


def test_texts_are_marks(events: list[Any]) -> None:
    assert {e["name"] for e in events if e["ph"] == "i"} == {"ready"}


def test_a_simulation_has_a_trace_by_its_ticks(tmp_path: Path) -> None:
    pytest.importorskip("greenlet")
    ps.simulate(rounds, workers=2, seed=1, log=ps.Log(tmp_path))
    found = [e for e in trace_events(ps.observability.read(tmp_path)) if "ts" in e]
    assert all(float(e["ts"]).is_integer() for e in found)
    assert len({e["ts"] for e in found}) > 100


def test_a_trace_that_cannot_be_written_is_an_error(run: Any, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="there is no directory"):
        write_trace(run, tmp_path / "nowhere" / "out.json")
