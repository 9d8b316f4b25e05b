"""The hour of a service: whose memory is looked at, and what is told of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.harness.memory import descendants
from benchmarks.service_soak import JVM, ON_SPARK, PROGRAMS, SERVICE, SPARK, readings

MIB = 2**20


def put(path: Path, looks: list[dict[str, tuple[str, int]]]) -> None:
    """Samples as a program of the soak leaves them, one a second."""
    lines = [json.dumps({"s": s, "processes": found}) for s, found in enumerate(looks, 1)]
    path.write_text("\n".join(lines))


def test_only_processes_that_last_are_counted_and_each_row_is_a_sixth_of_the_time(
    tmp_path: Path,
) -> None:
    python, java = ("python", 10 * MIB), ("java", 100 * MIB)
    # Process 3 is there for a moment, and the service's memory grows by 1 MiB a second.
    growing = [
        {"1": python, "2": ("python", n * MIB)} | ({"3": python} if n == 70 else {})
        for n in range(1, 121)
    ]
    for program in PROGRAMS:
        path = tmp_path / f"{program.replace(' ', '_').replace(',', '')}.jsonl"
        put(path, growing if program == SERVICE else [{"1": python, "2": java}] * 120)
    found = readings(120, tmp_path)
    first = found[f"Pointstamp, service {SERVICE}, seconds 20"]
    assert first.seconds == [10 + n for n in range(1, 21 + 1)]
    assert found[f"Pointstamp, service {SERVICE}, seconds 80"].peaks == [91 * MIB]
    assert first.details["MiB per hour"] == pytest.approx(3600)
    assert set(found[f"Pointstamp, service {ON_SPARK}, seconds 120"].seconds) == {10}
    assert set(found[f"{JVM}, seconds 120"].seconds) == {100}
    flat = found[f"{SPARK}, seconds 120"]
    assert set(flat.seconds) == {110}
    assert flat.details["MiB per hour"] == pytest.approx(0)


def test_processes_that_another_thread_has_started_are_seen_too() -> None:
    started: list[subprocess.Popen[bytes]] = []
    over = threading.Event()

    def start() -> None:
        command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[0].stdout is not None
        started[0].stdout.readline()
        over.set()
        done.wait(60)  # as long as it lives, the process is that thread's child

    done = threading.Event()
    thread = threading.Thread(target=start)
    thread.start()
    try:
        assert over.wait(60)
        assert started[0].pid in descendants()
    finally:
        done.set()
        thread.join()
        with started[0]:
            started[0].kill()
