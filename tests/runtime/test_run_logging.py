"""What runs log by the standard library, wherever their workers are."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.communication.log_forwarding import levels
from pointstamp.errors import WorkerError
from pointstamp.observability import JsonFormatter


def rounds(worker: ps.Worker) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().probe()
    for epoch in range(2):
        input.send(epoch)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


CARRIERS = [{}, {"workers": 2, "threads": True}, {"workers": 2}]


@pytest.mark.parametrize("options", CARRIERS)
def test_a_run_logs_its_start_its_dataflows_and_its_end(
    options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pointstamp")
    ps.execute(rounds, **options)
    n_workers = options.get("workers", 1)
    found = [
        (r.levelname, r.getMessage()) for r in caplog.records if r.name == "pointstamp.runtime"
    ]
    assert {level for level, _ in found} == {"INFO"}
    texts = [text for _, text in found]
    assert texts[0].startswith(f"rounds starts on {n_workers} worker")
    assert texts[-1].startswith("rounds has ended after")
    for worker in range(n_workers):
        own = [text for text in texts if text.startswith(f"worker {worker} ")]
        assert own[0] == f"worker {worker} of {n_workers} is connected"
        assert own[1:3] == [
            f"worker {worker} has built dataflow 'rounds'",
            f"worker {worker} has completed dataflow 'rounds'",
        ]
        assert "1 dataflows in" in own[3]
        assert len(own) == 4


def test_a_run_with_sources_is_called_by_the_function_that_builds_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def turnover(scope: ps.Scope, folder: Path) -> None:
        scope.source(ps.FileSource(folder)).probe()

    caplog.set_level(logging.INFO, "pointstamp")
    ps.run(partial(turnover, folder=tmp_path))
    ends = [record.getMessage() for record in caplog.records if hasattr(record, "program")]
    assert [text.rpartition("<locals>.")[2].partition(" ")[0] for text in ends] == ["turnover"] * 2


@pytest.mark.parametrize("options", CARRIERS)
def test_epochs_are_logged_at_debug(options: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pointstamp.runtime")
    ps.execute(rounds, **options)
    found = [record for record in caplog.records if record.levelno == logging.DEBUG]
    for worker in range(options.get("workers", 1)):
        own = [record for record in found if record.worker == worker]
        assert [record.epoch for record in own] == [0, 1, None]
        assert {record.probe for record in own} == {"Probe"}
        assert all(record.seconds > 0 for record in own)


def test_a_worker_that_is_lost_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pointstamp")

    def fails(worker: ps.Worker) -> None:
        raise ValueError("on purpose")

    with pytest.raises(WorkerError):
        ps.execute(fails, workers=2)
    last = caplog.records[-1].getMessage()
    assert "has failed after" in last
    assert "on purpose" in last


def test_nothing_is_logged_where_nothing_is_configured(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    ps.execute(rounds, workers=2)
    assert not caplog.records
    assert capfd.readouterr().err == ""


def test_a_worker_whose_program_configures_logging_keeps_its_records(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "pointstamp")

    def configured(worker: ps.Worker, folder: Path) -> None:
        logging.basicConfig(filename=folder / f"{worker.index}.log", level=logging.INFO)
        rounds(worker)

    ps.execute(configured, tmp_path, workers=2)
    assert not any("has built" in record.getMessage() for record in caplog.records)
    assert "worker 1 has built" in (tmp_path / "1.log").read_text()


def test_levels_are_those_of_this_process(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "pointstamp.checkpoint")
    assert levels()["pointstamp.checkpoint"] == logging.ERROR
    assert levels()["pointstamp"] == logging.WARNING


def test_importing_configures_no_logging() -> None:
    program = (
        "import logging, pointstamp as ps; ps.execute; ps.serve; ps.observability.Log\n"
        "from pointstamp.metrics import server\n"
        "found = [n for n, l in logging.root.manager.loggerDict.items()\n"
        "         if n.startswith('pointstamp') and getattr(l, 'handlers', [])]\n"
        "assert not found and not logging.root.handlers, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_json_has_what_is_said_beside_the_message() -> None:
    record = logging.makeLogRecord({"msg": "%s", "args": ("x",), "worker": 1, "odd": {1}})
    try:
        raise KeyError("here")
    except KeyError:
        record.exc_info = sys.exc_info()
    found = json.loads(JsonFormatter().format(record))
    assert (found["message"], found["worker"], found["odd"]) == ("x", 1, "{1}")
    assert "KeyError: 'here'" in found["exception"]
