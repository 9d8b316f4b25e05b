"""`pointstamp watch`: the page of a log, of a program that knows nothing of it, and of a page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import pointstamp as ps
from tests.cli.conftest import Ran
from tests.waiting import wait_for

LIMIT_S = 60.0

PROGRAM = """
import pathlib, sys, time
import pointstamp as ps

def main(worker, stop):
    with worker.dataflow("watched") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.exchange().probe()
    while not pathlib.Path(stop).exists():
        input.send(1)
        input.advance_to(input.time + 1)
        worker.step_while(lambda: probe.less_than(input.time))
        time.sleep(0.01)

if __name__ == "__main__":
    ps.execute(main, sys.argv[1], workers=2)
"""


@contextmanager
def watching(*arguments: object) -> Iterator[str]:
    """The address that `pointstamp watch` says, as long as it serves."""
    command = [sys.executable, "-m", "pointstamp", "watch", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        try:
            found = re.search(r"http://\S+", said)
            assert found is not None, said + process.stderr.read()
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 130
            assert "interrupted" in process.stderr.read()


def answer(url: str, what: str) -> dict[str, Any]:
    with urlopen(url.replace("/?", f"/api/{what}?"), timeout=LIMIT_S) as found:
        given: dict[str, Any] = json.load(found)
        return given


def names(url: str) -> set[str]:
    try:
        return {each["name"] for each in answer(url, "structure")["operators"]}
    except OSError:
        return set()


def await_names(url: str, wanted: set[str]) -> None:
    wait_for(lambda: wanted <= names(url))


def workers(url: str) -> list[int]:
    """Those that have answered in time."""
    try:
        return [each["worker"] for each in answer(url, "view")["workers"]]
    except OSError:
        return []


def test_a_log_is_served_until_it_is_interrupted(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("logged") as scope:
            scope.to_stream([1, 2]).exchange().probe()

    ps.execute(main, log=ps.Log(tmp_path / "run.log"))
    with watching(tmp_path / "run.log") as url:
        assert {"logged", "ToStream", "Exchange", "Probe"} <= names(url)
        view = answer(url, "view")
        assert (view["mode"], view["is_over"], view["notes"]) == ("log", True, [])


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, as `pointstamp explain` does")
def test_a_program_is_watched_by_its_process_and_its_page_from_elsewhere(tmp_path: Path) -> None:
    program, stop = tmp_path / "program.py", tmp_path / "stop"
    program.write_text(PROGRAM)
    # The workers are to find the package as this process has.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, program, stop], env=environment) as running:
        try:
            wait_for(lambda: _is_watchable(running.pid))
            with watching(running.pid) as url:
                await_names(url, {"watched", "numbers", "Exchange", "Probe"})
                wait_for(lambda: workers(url) == [0, 1])
                with watching(url) as second:
                    await_names(second, {"watched"})
        finally:
            stop.touch()
        assert running.wait(LIMIT_S) == 0


def _is_watchable(process: int) -> bool:
    from pointstamp.runtime.watched_program import ReadWorkers, ask_program

    return bool(ask_program(process, ReadWorkers("structure")))


def test_what_cannot_be_watched_is_said(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("watch", tmp_path)
    assert (ran.status, "this is no log" in ran.err) == (2, True)
    ran = run("watch", os.getpid() + 4_000_000)
    assert (ran.status, "runs no workers that can be asked" in ran.err) == (2, True)
    ran = run("watch", "http://127.0.0.1:1/")
    assert (ran.status, "has no token" in ran.err) == (2, True)
    ran = run("watch", "http://127.0.0.1:1/?token=abc")
    assert (ran.status, "does not answer" in ran.err) == (1, True)
