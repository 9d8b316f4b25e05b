"""Programs that wait to be scraped, and scrapes as Prometheus does them."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

import pointstamp as ps
from pointstamp.metrics import server
from pointstamp.metrics.endpoint import MetricsEndpoint

PATIENCE_S = 60.0

# A scrape has the workers that answer in two seconds, which is for Prometheus: a busy machine may
# stand still for longer, and what a test asks for is to be there.
server.ANSWER_S = PATIENCE_S / 2


class Scrape:
    """The samples of one scrape, as prometheus_client's own parser reads them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def all(self, name: str, **labels: str) -> list[Any]:
        """Those of a name, with these labels among theirs."""
        return [
            sample
            for sample in self.samples
            if sample.name == f"pointstamp_{name}" and labels.items() <= sample.labels.items()
        ]

    def sum(self, name: str, **labels: str) -> float:
        """What they add up to."""
        found = self.all(name, **labels)
        assert found, f"no {name} with {labels} in\n{self.text}"
        return sum(sample.value for sample in found)


def get(url: str, accept: str = "application/openmetrics-text") -> tuple[int, str, str]:
    """(status, type, body)."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.headers["Content-Type"], refusal.read().decode()


def scrape(url: str) -> Scrape:
    """One scrape."""
    status, content_type, text = get(f"{url}/metrics")
    assert status == 200
    assert content_type.startswith("application/openmetrics-text")
    return Scrape(text)


def await_sums(url: str, name: str, of_workers: dict[str, float]) -> Scrape:
    """The first scrape in which a name has these sums."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = scrape(url)
        samples = {worker: found.all(name, worker=worker) for worker in of_workers}
        sums = {worker: sum(sample.value for sample in samples[worker]) for worker in samples}
        if sums == of_workers:
            return found
        assert time.monotonic() < until, f"{name}: {sums}, not {of_workers}"
        time.sleep(0.02)


def say(url: str, what: str) -> dict[str, Any]:
    """What /health or /ready says."""
    return json.loads(get(f"{url}/{what}")[2])


def await_ready(url: str) -> None:
    """Wait until /ready says so."""
    until = time.monotonic() + PATIENCE_S
    while get(f"{url}/ready")[0] != 200:
        assert time.monotonic() < until, get(f"{url}/ready")
        time.sleep(0.02)


def await_files(folder: Path, pattern: str, n: int) -> None:
    """Wait until a folder has so many of a pattern: what workers have said."""
    until = time.monotonic() + PATIENCE_S
    while len(list(folder.glob(pattern))) < n:
        assert time.monotonic() < until, f"{pattern} is not there {n} times"
        time.sleep(0.005)


@contextmanager
def executing(
    main: Any, *args: Any, before: Callable[[str], object] = lambda url: None, **options: Any
) -> Iterator[str]:
    """Run `ps.execute(main, *args, metrics=...)` on a thread during the block; its URL.

    `before(url)` is called before a worker is started.
    """
    urls: SimpleQueue[str] = SimpleQueue()
    failures: list[BaseException] = []

    def announce(url: str) -> None:
        before(url)
        urls.put(url)

    def run() -> None:
        try:
            ps.execute(main, *args, metrics=MetricsEndpoint(announce=announce), **options)
        except BaseException as error:  # noqa: BLE001  (raised below)
            failures.append(error)
            urls.put("")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield urls.get(timeout=PATIENCE_S)
    finally:
        thread.join(PATIENCE_S)
    if failures:
        raise failures[0]


def wait_for(worker: ps.Worker, gate: Path) -> None:
    """Go on stepping until a file is there."""
    while not gate.exists():
        worker.step_or_park(0.02)
