"""`pointstamp run` with metrics, and with what it logs on standard error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.metrics.scraping import PATIENCE_S, await_ready, scrape

PROGRAM = """
def main(worker, gate):
    import pathlib
    with worker.dataflow("numbers") as scope:
        scope.to_stream(range(100)).map(lambda x: x).probe()
    while not pathlib.Path(gate).exists():
        worker.step_or_park(0.02)
"""


def command(folder: Path, *options: str) -> list[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    run = [sys.executable, "-m", "pointstamp", "run", f"{program}:main", *options]
    return [*run, "--", str(folder / "gate")]


def test_metrics_of_a_program_are_where_it_says(tmp_path: Path) -> None:
    words = command(tmp_path, "--workers", "2", "--metrics", "0")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"pointstamp: metrics at (http://127.0.0.1:\d+)/metrics\n", line)
            assert found, line
            await_ready(found[1])
            until = time.monotonic() + PATIENCE_S
            while _taken(found[1]) < 200:
                assert time.monotonic() < until
        finally:
            (tmp_path / "gate").touch()
    assert process.returncode == 0


def _taken(url: str) -> float:
    """By the workers that answer in time."""
    found = scrape(url).all("stream_taken_records_total", target="Map")
    return sum(each.value for each in found)


def test_what_is_logged_can_be_json(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    words = command(tmp_path, "--workers", "2", "--log-format", "json")
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    built = {line["worker"] for line in lines if "has built" in line["message"]}
    assert built == {0, 1}
    assert {line["level"] for line in lines} == {"INFO"}


def test_epochs_are_logged_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    words = command(tmp_path, "--log-level", "info")
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "INFO pointstamp.runtime: worker 0 has built dataflow 'numbers'" in ran.stderr


CONFIGURED = """
import logging

logging.basicConfig({where}format="mine %(message)s")

def main(worker):
    with worker.dataflow("numbers") as scope:
        scope.to_stream([1]).probe()
"""


@pytest.mark.parametrize("options", [["--threads", "--workers", "2"], ["--log-format", "json"]])
def test_a_line_is_logged_once_where_the_program_logs_to_the_same_place(
    tmp_path: Path, options: list[str]
) -> None:
    program = tmp_path / "configured.py"
    program.write_text(CONFIGURED.format(where=""))
    words = ["run", f"{program}:main", "--log-level", "info", *options]
    words = [sys.executable, "-m", "pointstamp", *words]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    built = [line for line in ran.stderr.splitlines() if "worker 0 has built" in line]
    assert built == ["mine worker 0 has built dataflow 'numbers'"]


def test_a_line_is_logged_to_a_file_of_the_program_and_to_standard_error(tmp_path: Path) -> None:
    program, file = tmp_path / "configured.py", tmp_path / "log.txt"
    program.write_text(CONFIGURED.format(where=f"filename={str(file)!r}, "))
    words = [sys.executable, "-m", "pointstamp", "run", f"{program}:main", "--log-level", "info"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "INFO pointstamp.runtime: worker 0 has built dataflow 'numbers'" in ran.stderr
    assert "mine worker 0 has built dataflow 'numbers'\n" in file.read_text()


@pytest.mark.parametrize("place", ["http", "127.0.0.1:", "70000", ":9"])
def test_what_is_no_place_for_metrics_is_refused(tmp_path: Path, place: str) -> None:
    words = command(tmp_path, "--metrics", place)
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "metrics" in ran.stderr
    assert place in ran.stderr


TRACED = """
import atexit
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
atexit.register(lambda: print(sorted(each.name for each in spans.get_finished_spans())))

def main(worker):
    with worker.dataflow("traced") as scope:
        input, stream = scope.new_input()
        stream.probe()
    input.send(1)
"""


@pytest.mark.parametrize("options", [[], ["--telemetry"]])
def test_telemetry_goes_to_the_providers_that_a_program_sets(
    tmp_path: Path, options: list[str]
) -> None:
    program = tmp_path / "traced.py"
    program.write_text(TRACED)
    words = [sys.executable, "-m", "pointstamp", "run", f"{program}:main", *options]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    wanted = ["pointstamp.epoch", "pointstamp.epoch.worker"] if options else []
    assert ran.stdout == f"{wanted}\n"


def test_how_far_a_run_is_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    words = command(tmp_path, "--progress-bar", "--workers", "2")
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    line = r"pointstamp: \d+\.\d s, done: 200 records, [\d,]+/s, 100 % read\n"
    last = ran.stderr.splitlines(True)[-1]  # on a slow machine there are others before
    assert re.fullmatch(line, last), ran.stderr


def test_a_live_page_of_a_program_is_where_it_says(tmp_path: Path) -> None:
    with subprocess.Popen(
        command(tmp_path, "--dashboard"), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stderr.readline()
            found = re.fullmatch(
                r"pointstamp: the live page is at (http://127.0.0.1:\d+/\S+)\n", line
            )
            assert found, line
            with urlopen(found[1]) as page:
                assert b"<html" in page.read()
        finally:
            (tmp_path / "gate").touch()
    assert process.returncode == 0


@pytest.mark.parametrize("option", ["--progress-bar", "--dashboard"])
def test_what_shows_a_run_is_for_workers_that_the_command_starts(
    tmp_path: Path, option: str
) -> None:
    for name in ("hosts", "secret"):
        (tmp_path / name).touch()
    elsewhere = ("--hosts", f"{tmp_path}/hosts", "--secret", f"{tmp_path}/secret")
    words = command(tmp_path, option, "--process", "0", *elsewhere)
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert option in ran.stderr


def test_a_flow_is_logged_by_the_name_of_its_function(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import pointstamp as ps\n"
        "def turnover(scope, folder):\n"
        "    scope.source(ps.FileSource(folder)).probe()\n"
    )
    (tmp_path / "in").mkdir()
    words = ["run", f"{program}:turnover", "--epoch-s", "0", "--log-level", "info", "--"]
    ran = subprocess.run(
        [sys.executable, "-m", "pointstamp", *words, str(tmp_path / "in")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "turnover starts on 1 worker: here" in ran.stderr.splitlines()[0]
