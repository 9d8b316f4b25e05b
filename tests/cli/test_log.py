"""`pointstamp log`: tables for people, one object for programs, and errors in a line."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pointstamp as ps
from pointstamp.cli import following
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


def rounds(worker: Any) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.exchange().probe()
    worker.log("ready")
    for epoch in range(3):
        for x in range(10):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    ps.execute(rounds, workers=2, threads=True, log=ps.Log(tmp_path / "run.log"))
    return tmp_path / "run.log"


def test_the_summary_has_workers_operators_channels_and_a_path(run: Run, logged: Path) -> None:
    ran = run("log", logged)
    assert (ran.status, ran.err) == (0, "")
    for what in (
        "run.log: 2 workers",
        "self time per operator",
        "rounds (dataflow)",
        "records per channel",
        "numbers -> Exchange  exchange",
        "4 epochs, from input to probe: median",
        "of rounds, ",
        "texts of the program",
        "worker 1  ready",
    ):
        assert what in ran.out
    records = [line.split()[0] for line in ran.out.splitlines() if " -> " in line]
    assert records == ["60", "60"]


def test_the_object_has_all_of_it(run: Run, logged: Path) -> None:
    ran = run("log", logged, "--json", "--epoch", "1")
    told = json.loads(ran.out)
    assert (ran.status, told["command"], told["log"]) == (0, "log", str(logged))
    assert (told["unit"], told["missing"]) == ("ns", [])
    assert [c["records"] for c in told["channels"]] == [60, 60]
    assert {o["name"] for o in told["operators"]} == {"rounds", "numbers", "Exchange", "Probe"}
    assert [w["worker"] for w in told["workers"]] == [0, 1]
    assert all(0 <= w["idle_share"] <= 1 for w in told["workers"])
    assert [e["time"] for e in told["epochs"]] == ["0", "1", "2", "3"]
    path = told["critical"]
    assert path["epoch"]["time"] == "1"
    spent = sum(part["ended"] - part["began"] for part in path["parts"])
    assert spent == told["epochs"][1]["latency"]
    assert told["texts"] == [[0, "ready"], [1, "ready"]] or told["texts"][0][0] == 1


def test_the_timeline_has_a_row_for_each_worker(run: Run, logged: Path) -> None:
    out = run("log", logged, "--slots", 40).out.splitlines()
    (title,) = [line for line in out if line.startswith("timeline, 40 slots of ")]
    rows = out[out.index(title) + 1 :][:2]
    assert [row.split("|")[0].split() for row in rows] == [["worker", "0"], ["worker", "1"]]
    assert [len(row.split("|")[1]) for row in rows] == [40, 40]
    timeline = json.loads(run("log", logged, "--slots", 40, "--json").out)["timeline"]
    assert [row["marks"] for row in timeline["rows"]] == [row.split("|")[1] for row in rows]
    assert set(timeline["letters"].values()) <= {"numbers", "Exchange", "Probe"}
    known = {*timeline["letters"], *"o+.- "}
    assert all(set(row["marks"]) <= known for row in timeline["rows"])


def test_top_says_how_many_there_are(run: Run, logged: Path) -> None:
    out = run("log", logged, "--top", 1).out
    assert "self time per operator, the first 1 of 4" in out
    assert "records per channel, the first 1 of 2" in out


def test_a_truncated_log_is_summed_up_and_said(run: Run, logged: Path) -> None:
    path = logged / "worker-1" / "messages.arrows"
    path.write_bytes(path.read_bytes()[:-20])
    ran = run("log", logged)
    assert ran.status == 0
    assert ran.err.startswith("pointstamp: worker-1/messages.arrows ends without its end mark")
    assert "records per channel" in ran.out


def test_what_is_no_log_is_an_error_in_a_line(run: Run, logged: Path) -> None:
    for args, message in (
        ([logged / "absent"], "this is no log: there is no such folder"),
        ([logged, "--epoch", "77"], "the log has no epoch '77'"),
    ):
        ran = run("log", *args)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith("pointstamp: ")
        assert message in ran.err
        assert len(ran.err.splitlines()) == 1


def test_a_long_name_is_whole_where_there_is_no_terminal(run: Run, tmp_path: Path) -> None:
    name = "a very long name of an operator " * 3

    def main(worker: Any) -> None:
        with worker.dataflow(name.strip()) as scope:
            scope.to_stream([1]).probe()

    ps.execute(main, log=ps.Log(tmp_path / "log"))
    assert f"{name.strip()} (dataflow)" in run("log", tmp_path / "log").out


def test_a_search_writes_the_log_that_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n2 3\n1 3\n")
    log = tmp_path / "run.log"
    ran = run(
        "triangles", tmp_path / "edges.txt", "--count", "--workers", "1",
        "--log", log, "--progress", "eager",
    )  # fmt: skip
    assert (ran.status, ran.out) == (0, "1\n")
    read = run("log", log)
    assert (read.status, "search (dataflow)" in read.out) == (0, True)


def test_a_folder_with_something_else_in_it_is_no_place_for_a_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n")
    ran = run("triangles", tmp_path / "edges.txt", "--workers", "1", "--log", tmp_path)
    assert (ran.status, "edges.txt, which is of no log" in ran.err) == (2, True)
    assert (tmp_path / "edges.txt").read_text() == "1 2\n"


def test_a_trace_is_written_in_place_of_the_summary(run: Run, logged: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    ran = run("log", logged, "--trace", path)
    assert (ran.status, ran.err) == (0, "")
    events = json.loads(path.read_text())["traceEvents"]
    assert ran.out == f"{path}: {len(events):,} events; open it at https://ui.perfetto.dev\n"
    ran = run("log", logged, "--trace", path, "--json")
    found = json.loads(ran.out)
    assert (found["events"], found["trace"], found["missing"]) == (len(events), str(path), [])
    ran = run("log", logged, "--trace", tmp_path)
    assert ran.status == 2
    assert "this is a directory" in ran.err


def test_a_flame_graph_is_drawn_in_place_of_the_summary_or_beside_a_trace(
    run: Run, logged: Path, tmp_path: Path
) -> None:
    flame, trace = tmp_path / "out.svg", tmp_path / "out.json"
    ran = run("log", logged, "--flame", flame, "--trace", trace)
    assert (ran.status, ran.err) == (0, "")
    assert ElementTree.parse(flame).getroot().tag.endswith("svg")
    said = ran.out.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"{trace}: ")
    # Of two workers a dataflow with three operators, the time parked, and the rest.
    n_parked = sum(len(each["parks"]["at"]) > 0 for each in ps.observability.read(logged).workers)
    n_boxes = 1 + 2 * (1 + 4 + 1) + n_parked
    assert said[1] == f"{flame}: {n_boxes} boxes; open it in a browser"
    found = json.loads(run("log", logged, "--flame", flame, "--json").out)
    assert (found["flame"], found["boxes"], "trace" in found) == (str(flame), n_boxes, False)


def test_a_log_is_followed_until_its_end(
    run: Run, logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "AGAIN_S", 0.01)
    path = logged / "worker-1" / "messages.arrows"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    # Once a line is made of what is there, there is more: in the end all of it.
    lengths, made = iter([-10, len(whole)]), following.progress_line

    def line(*summaries: Any) -> str:
        path.write_bytes(whole[: next(lengths)])
        return made(*summaries)

    monkeypatch.setattr(following, "progress_line", line)
    with path.open("rb") as writer:  # which a worker has open as long as it is there
        fcntl.flock(writer, fcntl.LOCK_SH)
        ran = run("log", logged, "--follow")
    first_line, second = ran.err.splitlines()
    assert ": 4 epochs, 4 of them new, of which the slowest took " in first_line
    assert "records/s over all streams; " in first_line
    assert ": 4 epochs" in second
    assert "new" not in second
    assert ran.out == run("log", logged).out
    assert run("log", logged, "--follow").err == ""  # of one that is over
    # That of a worker that was killed has no end mark, and is over.
    path.write_bytes(whole[:-20])
    ran = run("log", logged, "--follow")
    assert ran.err.startswith(
        "pointstamp: worker-1/messages.arrows ends without its end mark: the "
    )
    assert "worker was stopped" in ran.err
    path.write_bytes(whole)
    # What is there later is waited for; what is no log is refused.
    later = logged.with_name("later.log")
    mover = threading.Timer(0.1, logged.rename, [later])
    mover.start()
    ran = run("log", later, "--follow")
    mover.join()
    assert ran.err == f"{later}: no worker has written there yet\n"
    assert "4 epochs, from input to probe" in ran.out
    assert run("log", later / "worker-0" / "texts.arrows", "--follow").status == 2


def test_a_run_that_has_just_begun_is_followed(
    run: Run, logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = logged.with_name("begun.log")
    for worker in ("worker-0", "worker-1"):
        (begun / worker).mkdir(parents=True)  # before there are events

    def wait(seconds: float) -> None:
        shutil.copytree(logged, begun, dirs_exist_ok=True)

    monkeypatch.setattr(following.time, "sleep", wait)
    ran = run("log", begun, "--follow")
    assert ran.err == f"{begun}: no worker has written there yet\n"
    assert "4 epochs, from input to probe" in ran.out


def test_a_run_whose_workers_were_killed_before_they_had_events_is_over(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, killed = tmp_path / "run.log", tmp_path / "killed.log"

    def main(worker: Any) -> None:
        assert ps.observability.reading.is_written(log)
        shutil.copytree(log, killed)  # which nothing has open, as after a kill

    def wait(seconds: float) -> None:
        raise AssertionError("waited for a run that is over")

    ps.execute(main, log=ps.Log(log))
    monkeypatch.setattr(following.time, "sleep", wait)
    ran = run("log", killed, "--follow")
    assert (ran.status, ran.err) == (
        0,
        "pointstamp: worker-0/operators.arrows ends without its end mark: the worker was stopped; "
        "the 0 events of whole batches are here\n",
    )
    assert "killed.log: 1 worker" in ran.out
