"""The page of a running program: what its workers are asked, and what is made of it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import pointstamp as ps
from pointstamp.errors import CommunicationError, UsageError
from pointstamp.observability.live_view import LiveView
from pointstamp.runtime import watched_program, watched_samples
from pointstamp.runtime.dashboards import dashboard_options
from pointstamp.runtime.watched_program import ReadWorkers, read_program
from tests.waiting import wait_for

LIMIT_S = 60.0


def counting(worker: ps.Worker, is_over: threading.Event) -> int:
    """Sends ten records in each epoch, half of which go round a loop once."""
    worker.environment.lines = {}
    with worker.dataflow("counting") as scope:
        input, stream = scope.new_input("numbers")
        with scope.iterative(name="Loop") as inner:
            loop, cycle = inner.feedback(1)
            numbers = stream.enter(inner).concat(cycle).exchange(lambda x: x)
            odd, even = numbers.branch(lambda x: x % 2 == 0)
            loop.connect(even.map(lambda x: x + 1))
            out = odd.leave()
        probe = out.probe(name="counted")
    epoch = 0
    while not is_over.is_set():
        for x in range(10):
            input.send(x)
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch))
    return epoch


def watched(look: Callable[[LiveView], Any], workers: int = 2, main: Any = counting) -> Any:
    """What `look` finds in a program that runs meanwhile, on threads."""
    is_over, found = threading.Event(), []

    def looking() -> None:
        try:
            view = LiveView(read_program, "test")
            wait_for(lambda: len(read_program(ReadWorkers("structure"))) == 1)
            wait_for(lambda: _has_built(workers))
            found.append(look(view))
        except BaseException as error:  # noqa: BLE001  (raised by the test's own thread)
            found.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=looking)
    thread.start()
    ps.execute(main, is_over, workers=workers, threads=True)
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _has_built(workers: int) -> bool:
    (answer,) = read_program(ReadWorkers("structure")) or [{"workers": []}]
    return len(answer["workers"]) == workers and all(w["operators"] for w in answer["workers"])


def test_streams_have_rates_and_frontiers_and_grow() -> None:
    def look(view: LiveView) -> Any:
        first = view.view()

        def grown() -> Any:
            view._read_s = 0.0
            found = view.view()
            # By so much that what is under way at the moment makes no difference.
            return all(
                each["records"] > first["streams"][name]["records"] + 300 and each["rate"] > 0
                for name, each in found["streams"].items()
            ) and (view.structure(), first, found)

        return wait_for(grown)

    structure, first, second = watched(look)
    names = {each["address"]: each["name"] for each in structure["operators"]}
    found = {
        (names[each["source"]], names[each["target"]]): each["stream"]
        for each in structure["streams"]
    }
    assert {("numbers", "Loop"), ("Branch", "Loop"), ("Loop", "counted")} <= found.keys()
    for name in found.values():
        assert second["streams"][name]["records"] > first["streams"][name]["records"]
        assert second["streams"][name]["frontier"]
    records = {pair: second["streams"][name]["records"] for pair, name in found.items()}
    # What leaves the loop is what was sent to its border; of ten records five go round.
    assert records["Loop", "counted"] == records["Branch", "Loop"]
    assert records["numbers", "Loop"] == pytest.approx(2 * records["Map", "Feedback"], rel=0.2)
    assert json.loads(json.dumps(second))["mode"] == "live"


def test_workers_are_side_by_side_with_what_they_took() -> None:
    def look(view: LiveView) -> Any:
        def measured() -> Any:
            view._read_s = 0.0
            found = view.view()
            return (
                all(
                    each["taken"] > 300
                    and sum(each[p] for p in ("operators", "progress", "parked"))
                    for each in found["workers"]
                )
                and found
            )

        return wait_for(measured)

    view = watched(look)
    assert [each["worker"] for each in view["workers"]] == [0, 1]
    assert all(each["taken"] > 0 and each["memory"] > 1e6 for each in view["workers"])
    (exchange,) = [each for each in view["exchanges"] if each["name"] == "Exchange"]
    assert exchange["skew"] == pytest.approx(1, abs=0.3)  # ten numbers, five of each remainder
    for row in view["timeline"]["rows"]:
        for began, ended, what in row["segments"]:
            assert began < ended
            assert what in (*view["operators"], "parked", "program", "progress")


def test_epochs_are_sampled() -> None:
    def look(view: LiveView) -> Any:
        def measured() -> Any:
            time.sleep(0.25)  # looks that follow each other keep the worker from its short epochs
            view._read_s = 0.0
            found = view.view()
            # Between two looks there may be no end of an epoch; then the next look has one.
            is_measured = found["latencies"]["n"] > 5 and found["latencies"]["rate"] > 0
            return found if is_measured else None

        return wait_for(measured)

    view = watched(look, workers=1)
    assert 1e-6 < view["latencies"]["p50"] <= view["latencies"]["p99"]


def slow(worker: ps.Worker, is_over: threading.Event) -> None:
    """Worker 1 takes a tenth of a second for what worker 0 sends in each epoch."""
    with worker.dataflow("slow") as scope:
        input, stream = scope.new_input()
        sleepy = stream.exchange(to=lambda x: 1).map(lambda x: time.sleep(0.2), name="Sleepy")
        probe = sleepy.probe()
    epoch = 0
    while not is_over.is_set():
        if worker.index == 0:
            input.send(epoch)
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch))


def test_the_slowest_epoch_has_a_path_as_the_samples_have_it() -> None:
    def look(view: LiveView) -> Any:
        def measured() -> Any:
            view._read_s = 0.0
            return view.view()["critical"]

        return wait_for(measured)

    critical = watched(look, main=slow)
    assert critical["dataflow"] == "slow"
    assert critical["latency"] > 0.12
    assert "40 ms" in critical["note"]
    longest = critical["sums"][0]
    assert (longest["kind"], longest["name"]) == ("operator", "Sleepy")
    assert longest["seconds"] > 0.5 * critical["latency"]
    assert {each["worker"] for each in critical["parts"] if each["name"] == "Sleepy"} == {1}
    assert critical["parts"][0]["from"] == critical["from"]
    assert critical["parts"][-1]["to"] == critical["to"]


def test_a_click_explains_with_the_path_and_the_line() -> None:
    def look(view: LiveView) -> Any:
        structure = view.structure()
        address = {each["name"]: each["address"] for each in structure["operators"]}
        found = wait_for(
            lambda: [
                holder
                for worker in view.explain(address["counted"])["workers"]
                for holder in worker["holders"]
                if holder["path"][1:]
            ]
        )
        return structure, address, found

    structure, address, holders = watched(look)
    operators = {each["address"]: each for each in structure["operators"]}
    for holder in holders:
        assert holder["path"][-1] == address["counted"]
        assert holder["operator"] in operators
        assert set(holder["path"]) <= operators.keys()
    lines = {each["name"]: each["line"] for each in structure["operators"]}
    file, _, line = lines["Map"].rpartition(":")
    assert Path(file) == Path(__file__)
    assert "loop.connect(even.map" in Path(__file__).read_text().splitlines()[int(line) - 1]


def test_rounds_under_way_are_of_the_loop() -> None:
    def look(view: LiveView) -> Any:
        def rounds() -> Any:
            view._read_s = 0.0
            return [each for each in view.view()["loops"] if each["rounds"]]

        return wait_for(rounds)

    (loop,) = watched(look)
    assert loop["name"] == "Loop"
    assert all(re.fullmatch(r"\(\d+, [01]\)", time) for time, _ in loop["rounds"])


def test_the_sampler_ends_with_the_workers() -> None:
    watched(lambda view: view.view())
    wait_for(lambda: watched_program._sampler._thread is None)
    assert "pointstamp-sampler" not in {each.name for each in threading.enumerate()}


def test_a_worker_is_given_back_its_own_calls_after_a_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watched_samples, "IDLE_S", 0.2)
    seen: list[Any] = []

    def main(worker: ps.Worker) -> None:
        own = worker._receive, worker._flush
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.probe()

        def is_in_a_burst() -> bool:
            read_program(ReadWorkers("figures"))  # there is one in each second in which it is asked
            return worker._receive != own[0] and worker._flush != own[1]

        seen.append(wait_for(is_in_a_burst))
        while watched_program._sampler._thread is not None:
            input.advance_to(input.time + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        seen.append((worker._receive, worker._flush) == own)

    ps.execute(main)
    assert seen == [True, True]


def test_arrangements_and_checkpoints_are_there(tmp_path: Path) -> None:
    found: list[Any] = []

    def main(worker: ps.Worker) -> None:
        checkpoint = ps.checkpoint.Checkpoint(tmp_path / "kept")
        with worker.dataflow("joined") as scope:
            edges, pairs = scope.new_collection("src long, dst long", name="edges")
            pairs.arrange("dst").join(pairs.arrange("src"))
        edges.insert([(1, 2), (2, 3)])
        edges.advance_to(1)
        worker.step()
        with worker.dataflow("sums", durable=ps.checkpoint.Durable(checkpoint)) as scope:
            input, stream = scope.new_input()
            stream.state_machine(lambda key, x, sum: (sum + x, []), default=0)
        snapshot = worker.snapshot(0)
        input.send(("a", 1))
        input.advance_to(1)
        worker.step_while(lambda: not snapshot.done)
        found.append(LiveView(read_program, "test").view())

    ps.execute(main)
    (view,) = found
    found = {tuple(each["key"]): each for each in view["arrangements"]}
    assert found.keys() == {("src",), ("dst",)}
    assert all(each["updates"] == 2 and each["bytes"] > 0 for each in found.values())
    assert all(each["batches"] >= 1 and each["upper"] == ["1"] for each in found.values())
    (checkpoint,) = view["checkpoints"]
    assert (checkpoint["epoch"], checkpoint["is_done"], checkpoint["parts"]) == (0, True, 1)
    assert checkpoint["bytes"] > 0
    assert 0 <= checkpoint["age"] < LIMIT_S
    assert sum(checkpoint["rows"].values()) == 1  # one key, in one key range


PROGRAM = """
import re, sys, urllib.request
import pointstamp as ps

def main(worker):
    with worker.dataflow("served") as scope:
        input, stream = scope.new_input("numbers")
        stream.exchange().probe()
    worker.step()
    print("built", flush=True)
    while worker.index == 0 and sys.stdin.readline():
        pass
    input.close()

if __name__ == "__main__":
    ps.execute(main, workers=int(sys.argv[1]), dashboard=True)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_serves_its_page_as_long_as_it_runs(tmp_path: Path, workers: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("sys.stdin.readline()", "not stop.exists()").replace(
        "import pointstamp as ps",
        f"import time, pathlib, pointstamp as ps\nstop = pathlib.Path({str(tmp_path / 'stop')!r})",
    ).replace("        pass", "        time.sleep(0.01)"))  # fmt: skip
    with subprocess.Popen(
        [sys.executable, program, str(workers)], stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", said)
        assert found is not None, said
        url = found[0].replace("/?", "/api/structure?")

        def names() -> set[str]:
            try:
                with urlopen(url, timeout=LIMIT_S) as answer:
                    structure = json.load(answer)
            except OSError:
                return set()  # it is starting
            return {each["name"] for each in structure["operators"]}

        wait_for(lambda: {"served", "numbers", "Exchange", "Probe"} <= names())
        (tmp_path / "stop").touch()
        assert process.wait(LIMIT_S) == 0, process.stderr.read()
    with pytest.raises(OSError, match="refused"):
        urlopen(url, timeout=LIMIT_S)


def test_without_a_dashboard_nothing_of_it_is_imported(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, pointstamp as ps\n"
        "def main(worker):\n"
        "    parts = 'watched', 'page', 'http.server'\n"
        "    ours = [m for m in sys.modules if m.startswith(('pointstamp', 'http'))]\n"
        "    return [m for m in ours if any(part in m for part in parts)]\n"
        "print(ps.execute(main))\n"
    )
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[[]]"


def test_a_service_serves_its_page(capfd: pytest.CaptureFixture[str]) -> None:
    def build(scope: Any, sales: Any) -> Any:
        return sales.join(sales.group_by("shop").agg(n=ps.count()), on="shop")

    token = "a token of the test's own"
    with ps.serve(
        build, 2, threads=True, collections={"sales": "shop long"},
        dashboard=ps.Dashboard(token=token),
    ) as service:  # fmt: skip
        service.input("sales").insert([(1,), (2,)])
        service.output().snapshot(service.advance())
        url = re.search(r"http://\S+", capfd.readouterr().err)
        assert url is not None
        with urlopen(url[0].replace("/?", "/api/view?"), timeout=LIMIT_S) as answer:
            view = json.load(answer)
        assert [each["worker"] for each in view["workers"]] == [0, 1]
        assert view["arrangements"]
        with urlopen(url[0].replace("/?", "/api/structure?"), timeout=LIMIT_S) as answer:
            lines = {each["line"] for each in json.load(answer)["operators"]}
        assert any(line.startswith(__file__) for line in lines)
        assert not any(line.startswith("<string>") for line in lines)
    with pytest.raises(OSError, match="refused"):
        urlopen(url[0], timeout=LIMIT_S)


def test_what_has_ended_is_said() -> None:
    with pytest.raises(CommunicationError, match="no worker of the program answers"):
        LiveView(lambda request: [], "test").view()
    with pytest.raises(CommunicationError, match="no worker of the program answers"):
        LiveView(lambda request: None, "test").structure()


def test_the_last_view_stays_and_says_that_it_is_the_last() -> None:
    def look(view: LiveView) -> LiveView:
        assert not view.view()["is_over"]
        return view

    view = watched(look)
    view._read_s = 0.0
    assert view.view()["is_over"]
    assert view.view()["streams"]


@pytest.mark.parametrize("dashboard", ["yes", 8080, object()])
def test_what_is_no_dashboard_is_refused(dashboard: Any) -> None:
    with pytest.raises(UsageError, match=r"give True, or ps\.Dashboard"):
        ps.execute(len, dashboard=dashboard)
    assert dashboard_options(None) is None


def test_unknown_questions_are_refused() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(UsageError, match="not secrets"):
            read_program(ReadWorkers("secrets"))

    ps.execute(main)


def test_a_page_that_cannot_be_served_is_said_before_anything_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        seen: list[int] = []
        with pytest.raises(CommunicationError, match=f"port {port}: .*in use; name another one"):
            ps.execute(lambda worker: seen.append(1), dashboard=ps.Dashboard(port=port))
        assert seen == []

        def build(scope: Any, sales: Any) -> Any:
            return sales

        with pytest.raises(CommunicationError, match="in use"):
            ps.serve(
                build, threads=True, collections={"sales": "shop long"},
                dashboard=ps.Dashboard(port=port),
            )  # fmt: skip
