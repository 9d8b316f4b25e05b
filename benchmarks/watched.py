"""Watched: what it costs a program that its live page is open, or that its metrics are scraped.

The same program runs in turns without, with a page that a process asks for each second as a
browser does, and with metrics that a process scrapes each second, fifteen times as often as
Prometheus does. A sample takes seconds, so that there are some answers in each. All share the
machine: the workers, what serves, and what asks.
"""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pointstamp as ps
from benchmarks.exchange import exchange
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Ratio,
    Reading,
    Size,
)
from benchmarks.harness.measure import Run, on_workers
from benchmarks.record import record
from pointstamp.observability.page_columns import TABLES

ROUNDS = {"tiny": 20, "small": 100_000, "full": 1_000_000}
BATCH = {"tiny": 1_000, "small": 1_000_000, "full": 1_000_000}
BATCHES = {"tiny": 3, "small": 100, "full": 4_000}
FEWER = {1: 1, 2: 10}
"""By the number of workers: that many times fewer rounds and batches, as each takes longer."""

PERIOD_S = 1.0
VIEW = "/api/view"

PAGE, SCRAPED = {"seen by": "a page"}, {"seen by": "scrapes"}
WITHOUT = "the same, which nothing looks at"


def got(url: str) -> bytes:
    """What is answered there."""
    with urllib.request.urlopen(url) as answer:
        body: bytes = answer.read()
    return body


def ask(url: str, answered: str) -> None:
    """Ask for a URL each period, until this process is killed; leave a file at the first answer.

    With the figures of a page go the tables that the page asks for: what is new since the last.
    """
    since = ""
    while True:
        try:
            body = got(url)
            if VIEW in url:
                for name in TABLES:
                    got(url.replace(VIEW, f"/api/{name}") + since)
                since = f"&since={json.loads(body)['at'] - PERIOD_S}"
            Path(answered).touch()
        except urllib.error.URLError:  # it is not there yet, or not any more
            sleep(0.02)
        else:
            sleep(PERIOD_S)


@contextmanager
def asking(url: str, answered: Path) -> Iterator[None]:
    """Have a process ask for a URL during the block."""
    command = [sys.executable, "-m", __name__, url, str(answered)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def once_answered(worker: ps.Worker, answered: str, setup: Any, *args: Any) -> Run:
    """What `setup` makes, when there was an answer."""
    while not Path(answered).exists():
        worker.step_or_park(0.02)
    run: Run = setup(worker, *args)
    return run


def free_port() -> int:
    """One of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def watched(at: At, setup: Any, *args: Any, workers: int) -> Measure:
    """Measure `setup` on workers that something looks at, as `at` says."""

    def measure(effort: Effort) -> Reading:
        port, token = free_port(), secrets.token_urlsafe(16)
        options: dict[str, Any] = {"metrics": port}
        path = "metrics"
        if PAGE.items() <= at.items():
            options = {"dashboard": ps.Dashboard(port, token=token)}
            path = f"{VIEW[1:]}?token={token}"
        with tempfile.TemporaryDirectory() as folder:
            answered = Path(folder, "answered")
            with asking(f"http://127.0.0.1:{port}/{path}", answered):
                awaited = str(answered), setup, *args
                return on_workers(once_answered, *awaited, workers=workers, **options)(effort)

    return measure


def cases(size: Size) -> list[Case]:
    """One record at a time, and batches of a million, on one worker and on two."""
    found = []
    for workers, fewer in FEWER.items():
        rounds, n_batches = max(2, ROUNDS[size] // fewer), max(2, BATCHES[size] // fewer)
        programs: list[tuple[str, Any, tuple[int, ...], int]] = [
            ("record", record, (rounds,), rounds),
            ("exchange", exchange, (n_batches, BATCH[size]), n_batches),
        ]
        for name, setup, args, amount in programs:
            at: dict[str, int | str] = {"program": name, "workers": workers}
            without = on_workers(setup, *args, workers=workers)
            found.append(Case(WITHOUT, without, amount, at, in_turns=True))
            for seen_by in (PAGE, SCRAPED):
                ours = {**at, **seen_by}
                measure = watched(ours, setup, *args, workers=workers)
                found.append(Case(OURS, measure, amount, ours, in_turns=True))
    return found


BENCHMARK = Benchmark(
    name="watched",
    title="While a page is open, while metrics are scraped, and without",
    about="Per record and round, or per batch of a million records that each worker sends. The "
    "page and the metrics are asked for once a second by a process of the same machine.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(WITHOUT,),
    ratios=tuple(
        Ratio({"program": program, "workers": workers, **seen_by}, 1.05)
        for program in ("record", "exchange")
        for workers in FEWER
        for seen_by in (PAGE, SCRAPED)
    ),
)

if __name__ == "__main__":
    ask(*sys.argv[1:])
