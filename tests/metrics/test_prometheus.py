"""Prometheus itself, where the machine has one, is asked what the documentation asks it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

import pointstamp as ps
from tests.free_ports import free_port
from tests.metrics.scraping import await_ready, executing

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def rounds(worker: ps.Worker, folder: Path) -> None:
    """Epochs until it is to end; the probe is some of them behind."""
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.map(lambda x: x + 1).exchange().probe(name="done")
    epoch = 0
    while not (folder / "go on").exists():
        input.send_batch(list(range(100)))
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda epoch=epoch: probe.less_than(epoch - 2))
        time.sleep(0.01)


def questions_of_page() -> list[str]:
    page = (ROOT / "docs" / "operating.md").read_text()
    block = page.partition("Three queries to begin with:\n\n```\n")[2].partition("\n```")[0]
    return block.splitlines()


def test_the_page_has_three_queries() -> None:
    # Where there is no Prometheus, too: to none that is found none would have an answer.
    assert [query.count("pointstamp_") for query in questions_of_page()] == [1, 1, 2]


@pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs prometheus, which is not installed here"
)
def test_prometheus_scrapes_a_program_and_answers_the_questions_of_the_page(tmp_path: Path) -> None:
    there = f"http://127.0.0.1:{free_port()}"
    with executing(rounds, tmp_path, workers=2, threads=True) as url:
        try:
            await_ready(url)
            settings = tmp_path / "prometheus.yml"
            settings.write_text(
                "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
                "scrape_configs: [{job_name: pointstamp, static_configs: "
                f"[{{targets: ['{url.removeprefix('http://')}']}}]}}]\n"
            )
            lag, longest, waiting = asked_of_prometheus(there, settings, questions_of_page())
        finally:
            (tmp_path / "go on").touch()
    assert [each["metric"] for each in lag] == [{"probe": "done"}]
    assert {each["metric"]["operator"] for each in longest} == {
        "numbers", "Map", "Exchange", "done",
    }  # fmt: skip
    assert all(float(each["value"][1]) >= 0 for each in (*lag, *longest, *waiting))
    assert len(waiting) == 3


def asked_of_prometheus(there: str, settings: Path, questions: list[str]) -> list[Any]:
    """What it answers, once it has scraped enough for the last of them."""
    command = ["prometheus", f"--config.file={settings}", f"--storage.tsdb.path={settings}.kept"]
    with subprocess.Popen(
        [*command, f"--web.listen-address={there.removeprefix('http://')}"],
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    answers = [answer(there, question) for question in questions]
                    if all(answers):
                        (target,) = ask(there, "targets")["activeTargets"]
                        assert (target["health"], target["lastError"]) == ("up", "")
                        return answers
                except OSError:
                    pass  # it has not begun to listen
                assert time.monotonic() < until, ask(there, "targets")
                time.sleep(0.1)
        finally:
            running.terminate()


def answer(there: str, question: str) -> list[Any]:
    return ask(there, f"query?{urlencode({'query': question})}")["result"]


def ask(there: str, what: str) -> Any:
    with urlopen(f"{there}/api/v1/{what}", timeout=60) as found:
        return json.load(found)["data"]
