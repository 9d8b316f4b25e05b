"""Watched: what it costs a program that its live page is open, or that its metrics are scraped.

A page is compared with the same process while none is open: two processes that do the same differ
by more than a page costs, and so does one from one minute to the next. So in each process the
program runs several times: nothing looks at it, then a page that a process asks for each second, as
a browser does, then nothing again, and so on; and what is told is the time of a run in terms of the
mean of the runs before and after it. Metrics are scraped each second, fifteen times as often as
Prometheus does, and a run is told in terms of those of the process before, which counts nothing.
All share the machine: the workers, what serves, and what asks.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from time import monotonic, sleep
from typing import Any

import pointstamp as ps
from benchmarks.exchange import exchange
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Quantity,
    Reading,
    Size,
    Target,
    with_others,
)
from benchmarks.harness.driver import ROOT
from benchmarks.harness.measure import Run, agree, end_sample, meet, timed_between
from benchmarks.record import record
from pointstamp.metrics.peak_memory import peak_bytes
from pointstamp.observability.page_columns import TABLES
from pointstamp.runtime import watched_samples

PROCESSES = {"tiny": 1, "small": 1, "full": 3}
PROGRAMS: dict[str, Any] = {"record": record, "exchange": partial(exchange, n_records=1_000_000)}
AMOUNTS = {
    ("record", 1): {"tiny": 20, "small": 400_000, "full": 1_000_000},
    ("record", 2): {"tiny": 20, "small": 40_000, "full": 120_000},
    ("exchange", 1): {"tiny": 3, "small": 2_000, "full": 6_000},
    ("exchange", 2): {"tiny": 3, "small": 200, "full": 500},
}
"""By program and workers: rounds or batches, so that there are some answers meanwhile."""
WARM_UP = 0.1
"""The part of them that is run before the clock starts."""

PERIOD_S = 1.0
VIEW = "/api/view"
HERE, CALLED, ANSWERED = "here", "called", "answered"
"""Files of the folder that a program and what asks have in common: that it runs, that it shall ask,
and that it was answered."""
LOOK_S = 0.1
LASTS_S = 2 * PERIOD_S
"""What serves a page goes on for so long after the last question; it is longer elsewhere."""

SEEN, UNSEEN = "s", "u"
N_TURNS = {"tiny": 1, "small": 2, "full": 8}
"""How often a page is open in one process."""

_LENGTH = re.compile(rb"(?i)content-length: *([0-9]+)")
_OK = re.compile(rb"HTTP/1\.[01] 200 ")
_MOMENT = re.compile(rb'"at": ?([0-9.e+]+)')

PAGE, SCRAPED = {"seen by": "a page"}, {"seen by": "scrapes"}
MOST = 1.05
"""Times the program that nothing looks at."""


def got(connection: socket.socket, path: str) -> bytes:
    """What is answered there.

    By hand: what a client's library does would be counted, on the program's own processors.
    """
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head, body = b"", bytearray()
    while b"\r\n\r\n" not in body:
        body += _received(connection)
    head, _, body = body.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not _OK.match(head) or length is None:
        raise RuntimeError(f"{path} was answered by {bytes(head)!r}")
    while len(body) < int(length[1]):
        body += _received(connection)
    return bytes(body)


def _received(connection: socket.socket) -> bytes:
    received = connection.recv(1 << 20)
    if not received:
        raise RuntimeError("the connection was closed within an answer")
    return received


def ask(folder: Path, port: int, path: str) -> None:
    """Ask for a path each period while it is called, until this process is killed.

    With the figures of a page go the tables that the page asks for: what is new since the last. As
    browsers do, it keeps its connection.
    """
    connection: socket.socket | None = None
    (folder / HERE).touch()
    since = ""
    while True:
        if not (folder / CALLED).exists():
            if connection is not None:
                connection.close()  # a server closes it by itself some time
            connection = None
            sleep(LOOK_S)
            continue
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", port))
        body = got(connection, path)
        if VIEW in path:
            for name in TABLES:
                got(connection, path.replace(VIEW, f"/api/{name}") + since)
            # As text: what a browser does with it all is not of the program.
            since = f"&since={float(_MOMENT.search(body)[1]) - PERIOD_S}"  # type: ignore[index]
        else:  # what serves metrics closes it after each answer
            connection.close()
            connection = None
        (folder / ANSWERED).touch()
        sleep(PERIOD_S)


def free_port() -> int:
    """One of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def sample(program: str, workers: int, amount: int, turns: str, path: str) -> dict[str, Any]:
    """Seconds of each turn of a program.

    Parameters
    ----------
    turns : str
        By letter, whether something looks meanwhile: `SEEN` or `UNSEEN`.
    path : str
        What is asked for then: that of a page or of metrics; empty if nothing ever looks.

    Returns
    -------
    dict
        `seconds`, by turn, of the last worker; `peaks` of the processes of the workers.
    """
    if not path:
        return _of_workers(ps.execute(_in_turns, program, amount, turns, "", workers=workers))
    port, token = free_port(), secrets.token_urlsafe(16)
    options: dict[str, Any] = {"metrics": port}
    if path == VIEW:
        options = {"dashboard": ps.Dashboard(port, token=token)}
        path = f"{VIEW}?token={token}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", __spec__.name, ask.__name__, folder, str(port), path]
        with subprocess.Popen(command, cwd=ROOT) as asking:
            try:
                given = program, amount, turns, folder
                return _of_workers(ps.execute(_in_turns, *given, workers=workers, **options))
            finally:
                asking.kill()


def _of_workers(parts: list[tuple[list[float], int]]) -> dict[str, Any]:
    seconds, peaks = zip(*parts, strict=True)
    return {"seconds": [max(each) for each in zip(*seconds, strict=True)], "peaks": list(peaks)}


def _in_turns(
    worker: ps.Worker, program: str, amount: int, turns: str, folder: str
) -> tuple[list[float], int]:
    """Run a program while nothing looks, and while something does, as `turns` say."""
    watched_samples.IDLE_S = LASTS_S
    _once(worker, program, max(1, round(WARM_UP * amount)))
    if folder:
        _await(worker, Path(folder, HERE).exists)
    seconds, is_seen = [], False
    for turn in turns:
        if turn == SEEN and not is_seen:
            if not worker.index:
                Path(folder, CALLED).touch()
            _await(worker, Path(folder, ANSWERED).exists)
        elif turn == UNSEEN and is_seen:
            if not worker.index:
                Path(folder, CALLED).unlink()
            over = monotonic() + PERIOD_S + LASTS_S
            _await(worker, lambda over=over: monotonic() > over)
            if not worker.index:
                Path(folder, ANSWERED).unlink()
        is_seen = turn == SEEN
        seconds.append(_once(worker, program, amount))
    return seconds, peak_bytes()


def _once(worker: ps.Worker, program: str, amount: int) -> float:
    run: Run = PROGRAMS[program](worker, amount)
    seconds, _ = timed_between(run, lambda: meet(worker), lambda: end_sample(worker))
    return seconds


def _await(worker: ps.Worker, is_so: Callable[[], bool]) -> None:
    """Go on stepping until something is so, and all workers know it."""
    while not is_so():
        worker.step_or_park(0.02)
    agree(worker, 0.0)


def together(size: Size) -> Mapping[str, Reading]:
    """Measure all programs, in turns."""
    found: dict[str, Reading] = {}
    for _, (program, workers) in product(range(PROCESSES[size]), AMOUNTS):
        given = program, workers, AMOUNTS[program, workers][size]
        alone = _in_a_process(*given, 2 * UNSEEN, "")
        scraped = _in_a_process(*given, 2 * SEEN, "/metrics")
        paged = _in_a_process(*given, UNSEEN + N_TURNS[size] * (SEEN + UNSEEN), VIEW)
        at: At = {"program": program, "workers": workers}
        _add(found, {**at, **PAGE}, in_terms_of_both(paged["seconds"]), paged)
        unseen = fmean(alone["seconds"])
        _add(found, {**at, **SCRAPED}, [s / unseen for s in scraped["seconds"]], scraped)
    return found


def in_terms_of_both(seconds: list[float]) -> list[float]:
    """Each second one in terms of the mean of that before it and that after it.

    >>> in_terms_of_both([0.9, 1.1, 1.1, 3.0, 2.9])
    [1.1, 1.5]
    """
    seen, unseen = seconds[1::2], pairwise(seconds[::2])
    return [one / fmean(two) for one, two in zip(seen, unseen, strict=True)]


def _add(found: dict[str, Reading], at: At, ratios: list[float], one: dict[str, Any]) -> None:
    reading = found.setdefault(Case(OURS, with_others, at=at).key, Reading([]))
    reading.seconds += ratios
    reading.peaks = max(reading.peaks, one["peaks"], key=sum)


def _in_a_process(*args: Any) -> dict[str, Any]:
    """What `sample` gives there."""
    command = [sys.executable, "-m", __spec__.name, sample.__name__, json.dumps(args)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    one: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return one


def cases(size: Size) -> list[Case]:
    """One record at a time, and batches of a million, on one worker and on two."""
    return [Case(OURS, with_others, at=at) for at in _seen()]


def _seen() -> list[At]:
    return [
        {"program": program, "workers": workers, **seen_by}
        for program, workers in AMOUNTS
        for seen_by in (PAGE, SCRAPED)
    ]


BENCHMARK = Benchmark(
    name="watched",
    title="While a page is open, and while metrics are scraped",
    about="A record and round, or a batch of a million records that each worker sends. The page "
    "and the metrics are asked for once a second by a process of the same machine. The time while "
    "a page is open is in terms of that of the same process just before and after; with metrics, "
    "of a program that counts nothing.",
    quantity=Quantity("x the time unwatched"),
    cases=cases,
    targets=tuple(Target(at, MOST) for at in _seen()),
    together=together,
)

if __name__ == "__main__":
    if sys.argv[1] == ask.__name__:
        ask(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        print(json.dumps(sample(*json.loads(sys.argv[2]))))
