"""The page of a log: the whole graph, exact counts, and the same shape as that of a program."""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.errors import FileFormatError
from pointstamp.observability.live_view import LiveView
from pointstamp.observability.log_view import N_SLOTS, LogView, _in_slots
from pointstamp.observability.page_view import across_borders, histogram, skew
from pointstamp.runtime.watched_program import read_program

EPOCHS, RECORDS = 3, 10


def halving(worker: ps.Worker) -> None:
    with worker.dataflow("halving") as scope:
        input, stream = scope.new_input("numbers")
        with scope.iterative(name="Halve") as inner:
            loop, cycle = inner.feedback(1)
            numbers = stream.enter(inner).concat(cycle).exchange(lambda x: x)
            done, rest = numbers.branch(lambda x: x > 0)
            loop.connect(rest.map(lambda x: x // 2))
            out = done.leave()
        probe = out.probe()
    for epoch in range(EPOCHS):
        if worker.index == 0:
            for _ in range(RECORDS):
                input.send(8)  # goes round four times
        input.advance_to(epoch + 1)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch + 1))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "run.log"
    ps.execute(halving, workers=2, threads=True, log=ps.Log(folder))
    return folder


def test_the_graph_has_the_streams_across_borders_of_scopes_too(log: Path) -> None:
    view = LogView(log)
    structure = view.structure()
    names = {each["address"]: each["name"] for each in structure["operators"]}
    kinds = {each["name"]: (each["kind"], each["role"]) for each in structure["operators"]}
    assert kinds["halving"] == ("dataflow", "")
    assert kinds["Halve"] == ("scope", "")
    assert kinds["numbers"] == ("operator", "input")
    assert kinds["Probe"] == ("operator", "probe")
    found = {(names[e["source"]], names[e["target"]], e["pact"]) for e in structure["streams"]}
    assert ("numbers", "Halve", "enter") in found
    assert ("Halve", "Concatenate", "pipeline") in found
    assert ("Branch", "Halve", "leave") in found
    assert ("Halve", "Probe", "pipeline") in found
    assert ("Map", "Feedback", "pipeline") in found


def test_each_stream_has_its_records(log: Path) -> None:
    view = LogView(log)
    streams, structure = view.view()["streams"], view.structure()
    names = {each["address"]: each["name"] for each in structure["operators"]}
    records = {
        (names[each["source"]], names[each["target"]]): streams[each["stream"]]["records"]
        for each in structure["streams"]
    }
    n = EPOCHS * RECORDS
    assert records["numbers", "Halve"] == records["Halve", "Concatenate"] == n
    assert records["Map", "Feedback"] == records["Feedback", "Concatenate"] == 4 * n
    assert records["Concatenate", "Exchange"] == 5 * n
    assert records["Branch", "Halve"] == records["Halve", "Probe"] == n


def test_a_log_is_over_when_the_last_that_wrote_to_it_is_gone(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it has not grown since: a worker that is killed writes nothing more."""
    monkeypatch.setattr("pointstamp.observability.log_view.AGAIN_S", 0.0)
    copied = tmp_path / "cut"
    shutil.copytree(log, copied)
    file = next(copied.glob("worker-0/schedules*"))
    file.write_bytes(file.read_bytes()[:-8])  # without its end mark
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        view = LogView(copied)
        assert not view.view()["is_over"]
    until = time.monotonic() + 60
    while not view.view()["is_over"]:
        assert time.monotonic() < until


def test_the_view_has_all_panels_and_is_json(log: Path) -> None:
    view = json.loads(json.dumps(LogView(log).view()))
    assert view["is_over"]
    n_epochs = EPOCHS + 1  # the last one begins and ends when the inputs are closed
    assert view["latencies"]["n"] == n_epochs
    assert sum(view["latencies"]["counts"]) == n_epochs
    assert view["latencies"]["p50"] <= view["latencies"]["p99"] == view["latencies"]["most"]
    assert view["critical"]["latency"] == pytest.approx(view["latencies"]["most"])
    assert view["critical"]["from"] < view["critical"]["to"] <= view["at"]
    (loop,) = view["loops"]
    assert loop["name"] == "Halve"
    assert loop["rounds"] == [[str(n), EPOCHS * RECORDS] for n in range(4)]
    (exchange,) = [each for each in view["exchanges"] if each["name"] == "Exchange"]
    assert sum(exchange["taken"]) == 5 * EPOCHS * RECORDS
    assert exchange["skew"] >= 1
    assert [row["worker"] for row in view["timeline"]["rows"]] == [0, 1]
    parts = ("parked", "program", "progress", "operators")
    assert [sum(each[part] for part in parts) for each in view["workers"]] == pytest.approx([1, 1])
    # All that was sent was taken, and crossing a border is neither.
    ways = {each["stream"]: each["pact"] for each in LogView(log).structure()["streams"]}
    assert sum(each["taken"] for each in view["workers"]) == sum(
        each["records"]
        for name, each in view["streams"].items()
        if ways[name] not in ("enter", "leave")
    )


def test_a_loop_in_the_outermost_scope_is_one(tmp_path: Path) -> None:
    found = []

    def rounds(worker: ps.Worker) -> None:
        with worker.dataflow("rounds") as scope:
            input, stream = scope.new_input("numbers")
            loop, cycle = scope.feedback(10, name="Again")
            loop.connect(stream.concat(cycle).filter(lambda x: x > 0).map(lambda x: x - 1))
        input.send(2)
        input.advance_to(1)
        worker.step()
        found.append(LiveView(read_program, "test").view()["loops"])

    ps.execute(rounds, log=ps.Log(tmp_path))
    # At 0 and 10 there are 2 and 1.
    loop = {"address": "0", "name": "rounds"}
    assert found == [[{**loop, "under_way": 1, "rounds": [["0", 1]]}]]
    (logged,) = LogView(tmp_path).view()["loops"]
    assert logged == {
        **loop, "under_way": None, "n_rounds": 2, "rounds": [["0", 1], ["10", 1]],
    }  # fmt: skip


def test_pieces_of_a_timeline_follow_each_other(log: Path) -> None:
    for row in LogView(log).view()["timeline"]["rows"]:
        assert row["segments"]
        for (began, ended, _), (later, _, _) in zip(
            row["segments"], row["segments"][1:], strict=False
        ):
            assert began <= ended <= later + 1e-9


def test_a_long_timeline_is_cut_into_slots() -> None:
    n = 100_000
    began = np.arange(n, dtype=np.float64)
    what = np.where(began < n / 2, 0, 1)
    starts, stops, chosen = _in_slots(began, began + 1, what, float(n))
    assert chosen.tolist() == [0, 1]
    assert starts.tolist() == [0, n / 2]
    assert stops.tolist() == [n / 2, n]
    # One piece that is longer than many slots is in all of them.
    starts, stops, chosen = _in_slots(np.array([0.0]), np.array([10.0]), np.array([3]), 10.0)
    assert (starts.tolist(), stops.tolist(), chosen.tolist()) == ([0.0], [10.0], [3])
    assert N_SLOTS > 100


def test_what_a_worker_that_died_held_is_explained(tmp_path: Path) -> None:
    folder = tmp_path / "run.log"

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("stops") as scope:
            input, stream = scope.new_input("numbers")
            stream.map(abs).probe()
        input.advance_to(7)
        worker.step()
        raise ArithmeticError

    with pytest.raises(ps.errors.WorkerError):
        ps.execute(main, log=ps.Log(folder))
    view = LogView(folder)
    addresses = {each["name"]: each["address"] for each in view.structure()["operators"]}
    (worker,) = view.explain(addresses["Probe"])["workers"]
    (holder,) = worker["holders"]
    assert holder["time"] == "7"
    assert holder["path"] == [addresses[name] for name in ("numbers", "Map", "Probe")]
    assert view.explain(addresses["numbers"])["workers"][0]["holders"][0]["count"] == 1


def test_a_log_that_grows_is_read_again(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run.log"
    copy.mkdir()
    worker = copy / "worker-0"
    worker.mkdir()
    for each in (log / "worker-0").iterdir():
        if each.name != "messages.arrows":
            (worker / each.name).write_bytes(each.read_bytes())
    view = LogView(copy)
    assert not any(each["records"] for each in view.view()["streams"].values())
    (worker / "messages.arrows").write_bytes((log / "worker-0/messages.arrows").read_bytes())
    assert not any(each["records"] for each in view.view()["streams"].values())  # not so soon
    view._next_s = 0.0
    assert any(each["records"] for each in view.view()["streams"].values())


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="this is no log"):
        LogView(tmp_path)


def test_what_crosses_borders_is_what_came_to_them() -> None:
    def stream(name: str, scope: str, source: str, target: str) -> dict[str, object]:
        ports = {"source_port": 0, "target_port": 0}
        return {"stream": name, "scope": scope, "source": source, "target": target, **ports}

    streams = [
        stream("in", "0", "0/1", "0/2"),
        stream("inside", "0/2", "0/2", "0/2/1"),
        stream("to the border", "0/2", "0/2/1", "0/2"),
        stream("out", "0", "0/2", "0/3"),
    ]
    counts = {"in": 5, "inside": None, "to the border": 7, "out": None}
    assert across_borders(streams, counts) == {
        "in": 5, "inside": 5, "to the border": 7, "out": 7
    }  # fmt: skip


def test_quantiles_are_latencies_that_were_measured() -> None:
    values = [i / 1000 for i in range(1, 101)]
    found = histogram(values)
    assert (found["p50"], found["p99"], found["most"], found["n"]) == (0.05, 0.099, 0.1, 100)
    assert sum(found["counts"]) == 100
    weighted = histogram([0.001, 0.1], [99, 1])
    assert (weighted["p50"], weighted["p99"]) == (0.001, 0.001)
    assert histogram([0.001, 0.1], [98, 2])["p99"] == 0.1
    assert skew([4, 0, 0, 0]) == 4
