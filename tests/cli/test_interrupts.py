"""Being stopped: at any moment, by a terminal that closes, and what a killed worker is called."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pointstamp.formats.edge_files import Edges
from tests.cli.conftest import END_S, Ran, a_long_search
from tests.os_processes import of_group
from tests.waiting import wait_for

Run = Callable[..., Ran]

ON_SPARK = ["--on", "spark", "--workers", "2"]
spark = [pytest.mark.spark, pytest.mark.xdist_group("own spark")]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--workers", "1"], id="one worker"),
        pytest.param(["--workers", "2"], id="two workers"),
        pytest.param(ON_SPARK, id="on Spark", marks=spark),
    ],
)
def test_a_terminal_that_closes_ends_all_and_leaves_no_file(
    command: list[str], tmp_path: Path, options: list[str]
) -> None:
    with a_long_search(command, tmp_path, options, "edges read") as running:
        os.killpg(running.pid, signal.SIGHUP)  # as a terminal does: to all of them
        assert running.wait(END_S) == 129


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
def test_ctrl_c_stops_the_spark_job_and_leaves_no_file(command: list[str], tmp_path: Path) -> None:
    with a_long_search(command, tmp_path, ON_SPARK, "searching: edges read") as running:
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does; of them Java ignores it
        assert running.wait(END_S) == 130


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
def test_a_signal_while_java_starts_leaves_no_java(command: list[str], tmp_path: Path) -> None:
    with a_long_search(command, tmp_path, ON_SPARK, "starting Spark") as running:
        # The name of the launcher's last incarnation; there are Javas before that say
        # what they are, or how to call the next.
        wait_for(lambda: _is_gateway(running.pid), what="Java does not start")
        running.send_signal(signal.SIGTERM)
        assert running.wait(END_S) == 143


def _is_gateway(group: int) -> bool:
    commands = [process.command for process in of_group(group)]
    return any("org.apache.spark.deploy.SparkSubmit" in one and "-cp" in one for one in commands)


@pytest.mark.parametrize("is_ignored", [True, False], ids=["nohup", "heard"])
def test_a_hangup_is_heard_unless_we_are_told_to_ignore_it(
    run: Run, graph: Path, monkeypatch: pytest.MonkeyPatch, is_ignored: bool
) -> None:
    batches = Edges.batches

    def hung_up(self: Edges, index: int, readers: int) -> Iterator[pa.RecordBatch]:
        signal.raise_signal(signal.SIGHUP)
        return batches(self, index, readers)

    monkeypatch.setattr(Edges, "batches", hung_up)
    ours = signal.SIG_IGN if is_ignored else lambda number, frame: None
    before = signal.signal(signal.SIGHUP, ours)
    try:
        ran = run("triangles", graph, "--workers", 1, "--count")
        assert signal.getsignal(signal.SIGHUP) is ours
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (ran.status, ran.out) == ((0, "2\n") if is_ignored else (129, ""))
