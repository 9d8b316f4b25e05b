"""Watched: what it costs a program that its live page is open, or that its metrics are scraped.

Each sample is a process of its own. Its workers run the program twice: first nothing looks at it,
then a page that a process asks for each second, as a browser does, or metrics that it scrapes each
second, fifteen times as often as Prometheus does. So what a page that is open costs is measured
within one process: two processes that do the same differ by more than that, by where their memory
lies. Programs without a page and without metrics take turns with the others. All share the machine:
the workers, what serves, and what asks.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import product
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
    Quantity,
    Ratio,
    Reading,
    Size,
)
from benchmarks.harness.driver import ROOT
from benchmarks.harness.measure import Run, agree, meet, timed
from benchmarks.harness.memory import peaks
from benchmarks.record import record
from pointstamp.observability.page_columns import TABLES

SAMPLES = {"tiny": 1, "small": 2, "full": 6}
PROGRAMS: dict[str, Any] = {"record": record, "exchange": partial(exchange, n_records=1_000_000)}
AMOUNTS = {
    ("record", 1): {"tiny": 20, "small": 400_000, "full": 1_200_000},
    ("record", 2): {"tiny": 20, "small": 40_000, "full": 200_000},
    ("exchange", 1): {"tiny": 3, "small": 2_000, "full": 8_000},
    ("exchange", 2): {"tiny": 3, "small": 200, "full": 800},
}
"""By program and workers: rounds or batches, so that there are some answers meanwhile."""
WARM_UP = 0.1
"""The part of them that is run before the clock starts."""

PERIOD_S = 1.0
VIEW = "/api/view"
CALL, HERE, ANSWERED = "call", "here", "answered"
"""What is in the folder that a program and what asks have in common: a pipe that says when to
begin, and files that say that what asks runs, and that it was answered."""

PAGE, SCRAPED = {"seen by": "a page"}, {"seen by": "scrapes"}
ALONE = "the same, without page or metrics"
UNSEEN = "the same process, before the page is opened"


def got(connection: HTTPConnection, path: str) -> bytes:
    """What is answered there."""
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != HTTPStatus.OK:
        raise RuntimeError(f"{path} was answered by {answer.status}: {body!r}")
    return body


def ask(folder: Path, port: int, path: str) -> None:
    """When called, ask for a path each period until this process is killed.

    With the figures of a page go the tables that the page asks for: what is new since the last. As
    browsers do, and Prometheus, it keeps its connection.
    """
    connection = HTTPConnection("127.0.0.1", port)
    (folder / HERE).touch()
    (folder / CALL).read_bytes()  # ends when the other end was opened and closed
    since = ""
    while True:
        body = got(connection, path)
        if VIEW in path:
            for name in TABLES:
                got(connection, path.replace(VIEW, f"/api/{name}") + since)
            since = f"&since={json.loads(body)['at'] - PERIOD_S}"
        (folder / ANSWERED).touch()
        sleep(PERIOD_S)


def free_port() -> int:
    """One of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def sample(program: str, workers: int, amount: int, seen_by: str) -> dict[str, Any]:
    """Seconds of the program while nothing looks, and then while something does if it shall.

    Returns
    -------
    dict
        `seconds`, two of them; `peaks` of this process and of the workers that are processes.
    """
    if not seen_by:
        return _of_workers(ps.execute(_twice, program, amount, "", workers=workers))
    port, token = free_port(), secrets.token_urlsafe(16)
    options: dict[str, Any] = {"metrics": port}
    path = "/metrics"
    if seen_by in PAGE.values():
        options = {"dashboard": ps.Dashboard(port, token=token)}
        path = f"{VIEW}?token={token}"
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(Path(folder, CALL))
        command = [sys.executable, "-m", __spec__.name, ask.__name__, folder]
        with subprocess.Popen([*command, str(port), path], cwd=ROOT) as asking:
            try:
                return _of_workers(
                    ps.execute(_twice, program, amount, folder, workers=workers, **options)
                )
            finally:
                asking.kill()


def _of_workers(parts: list[tuple[float, float, list[int]]]) -> dict[str, Any]:
    unseen, seen, peaks_ = zip(*parts, strict=True)
    return {"seconds": [max(unseen), max(seen)], "peaks": [part[0] for part in peaks_]}


def _twice(
    worker: ps.Worker, program: str, amount: int, folder: str
) -> tuple[float, float, list[int]]:
    """Run a program twice; call what asks in between, and await its first answer."""
    _once(worker, program, max(1, round(WARM_UP * amount)))
    if folder:
        _await(worker, Path(folder, HERE))
    unseen = _once(worker, program, amount)
    if folder:
        if not worker.index:
            Path(folder, CALL).write_bytes(b"")
        _await(worker, Path(folder, ANSWERED))
    return unseen, _once(worker, program, amount), peaks()


def _once(worker: ps.Worker, program: str, amount: int) -> float:
    run: Run = PROGRAMS[program](worker, amount)
    meet(worker)
    seconds, _ = timed(run)
    worker.close_inputs()
    worker.run()
    return seconds


def _await(worker: ps.Worker, file: Path) -> None:
    """Go on stepping until a file is there, and all workers know it."""
    while not file.exists():
        worker.step_or_park(0.02)
    agree(worker, 0.0)


def together(size: Size) -> Mapping[str, Reading]:
    """Measure all programs, in turns."""
    found: dict[str, Reading] = {}

    def keep(who: str, at: At, seconds: list[float], peaks_: list[int]) -> None:
        key = Case(who, _nothing, at=at).key
        reading = found.setdefault(key, Reading([], peaks_))
        reading.seconds += seconds
        reading.peaks = max(reading.peaks, peaks_, key=sum)

    for _, (program, workers) in product(range(SAMPLES[size]), AMOUNTS):
        at: At = {"program": program, "workers": workers}
        for seen_by in ("", *PAGE.values(), *SCRAPED.values()):
            one = _in_a_process(program, workers, AMOUNTS[program, workers][size], seen_by)
            unseen, seen = one["seconds"]
            there = {**at, "seen by": seen_by}
            if not seen_by:
                keep(ALONE, at, [unseen, seen], one["peaks"])
                continue
            if seen_by in PAGE.values():
                keep(UNSEEN, there, [unseen], one["peaks"])
            keep(OURS, there, [seen], one["peaks"])
    return found


def _in_a_process(*args: Any) -> dict[str, Any]:
    """What `sample` gives there."""
    command = [sys.executable, "-m", __spec__.name, sample.__name__, json.dumps(args)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    one: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return one


def _nothing(effort: Effort) -> Reading:
    raise NotImplementedError("programs that are watched are measured together")


def cases(size: Size) -> list[Case]:
    """One record at a time, and batches of a million, on one worker and on two."""
    found = []
    for (program, workers), amounts in AMOUNTS.items():
        at: At = {"program": program, "workers": workers}
        contenders = [
            (ALONE, at),
            (UNSEEN, {**at, **PAGE}),
            (OURS, {**at, **PAGE}),
            (OURS, {**at, **SCRAPED}),
        ]
        found += [Case(who, _nothing, amounts[size], there) for who, there in contenders]
    return found


BENCHMARK = Benchmark(
    name="watched",
    title="While a page is open, while metrics are scraped, and without",
    about="Per record and round, or per batch of a million records that each worker sends. The "
    "page and the metrics are asked for once a second by a process of the same machine. A page "
    "that is open is compared with the same process before it was opened; metrics with a program "
    "that counts nothing.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(UNSEEN, ALONE),
    ratios=tuple(
        Ratio({"program": program, "workers": workers, **seen_by}, 1.05)
        for program, workers in AMOUNTS
        for seen_by in (PAGE, SCRAPED)
    ),
    together=together,
)

if __name__ == "__main__":
    if sys.argv[1] == ask.__name__:
        ask(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        print(json.dumps(sample(*json.loads(sys.argv[2]))))
