"""Workers outlive a daemon of Spark's that is started anew, and nothing else that ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pointstamp.spark
from tests.os_processes import is_running
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.new_interpreters,  # of forks all have one command line
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone"),
]

JAVA = """
import subprocess, sys
daemons = []
for line in sys.stdin:
    if line == "start\\n":
        daemons.append(subprocess.Popen([sys.executable, *sys.argv[1:]]))
    elif line == "stop\\n":
        daemons[-1].terminate()
"""

DAEMON = """
import os, signal, sys, time
from pathlib import Path
from pointstamp.spark import daemon_restarts

def stop(number, frame):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(0, signal.SIGHUP)
    sys.exit(1)

os.setpgid(0, 0)
Path(sys.argv[2], str(os.getpid())).touch()
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    daemon_restarts.FOLLOW_S = 0.5
    with daemon_restarts.outliving_restarts():
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(120)
    os._exit(0)
while True:
    signal.pause()
"""


class Java:
    """What starts daemons, each of which forks one worker."""

    def __init__(self, folder: Path) -> None:
        (folder / "daemon.py").write_text(DAEMON)
        self._folder, self._daemons = folder / "workers", folder / "daemons"
        for made in (self._folder, self._daemons):
            made.mkdir()
        daemon = [str(folder / "daemon.py"), str(self._folder), str(self._daemons)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", JAVA, *daemon],
            stdin=subprocess.PIPE,
            text=True,
        )

    def say(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{word}\n" for word in words))
        self.process.stdin.flush()

    def worker(self) -> int:
        """The worker that is there next."""
        known = set(self.workers)
        return wait_for(lambda: next(iter(set(self.workers) - known), None))

    def end_daemons(self) -> None:
        """End those that are left: Spark's end with Java, by what they read from it."""
        for daemon in self._daemons.iterdir():
            with suppress(ProcessLookupError):
                os.kill(int(daemon.name), signal.SIGKILL)

    @property
    def workers(self) -> list[int]:
        return [int(path.name) for path in self._folder.iterdir()]


@pytest.fixture
def java(tmp_path: Path) -> Iterator[Java]:
    with suppress(BrokenPipeError):
        java = Java(tmp_path)
        with java.process:
            yield java
            java.process.kill()
        wait_for(lambda: not any(map(is_running, java.workers)))
        java.end_daemons()


def test_a_worker_outlives_a_daemon_that_another_one_follows_and_ends_with_java(java: Java) -> None:
    java.say("start")
    first = java.worker()
    java.say("stop", "start")
    second = java.worker()
    time.sleep(1.0)  # longer than another daemon is waited for
    assert is_running(first)
    assert is_running(second)
    java.process.kill()
    wait_for(lambda: not is_running(first) and not is_running(second))


def test_a_worker_ends_with_a_daemon_that_no_other_one_follows(java: Java) -> None:
    java.say("start")
    worker = java.worker()
    java.say("stop")
    wait_for(lambda: not is_running(worker))


def test_outside_a_worker_ends_with_its_daemon_as_ever(java: Java, tmp_path: Path) -> None:
    script = (tmp_path / "daemon.py").read_text()
    ended = script.replace("        time.sleep(120)\n", "    time.sleep(120)\n")
    assert ended != script
    (tmp_path / "daemon.py").write_text(ended)
    java.say("start")
    first = java.worker()
    time.sleep(0.2)
    java.say("stop", "start")
    wait_for(lambda: not is_running(first))
    second = java.worker()
    java.say("stop")
    wait_for(lambda: not is_running(second))


def stop_daemons(spark: Any) -> None:
    """As Spark does it where it takes a daemon for lost."""
    context = spark.sparkContext
    of_environment = context._jvm.java.lang.Class.forName("org.apache.spark.SparkEnv")
    field = of_environment.getDeclaredField("pythonWorkers")
    field.setAccessible(True)
    factories = field.get(context._jsc.sc().env()).values().iterator()
    while factories.hasNext():
        factories.next().stop()


def test_a_service_goes_on_when_spark_starts_its_daemon_anew(spark: Any, tmp_path: Path) -> None:
    def build(scope: Any, t: Any) -> Any:
        (tmp_path / f"{os.getpid()} {os.getppid()}").touch()
        return t

    with pointstamp.spark.serve(build, spark, 1, collections={"t": "a long"}) as service:
        rows = spark.range(2).selectExpr("id as a")
        assert service.input("t").load(rows) == 0
        started = [tuple(map(int, path.name.split())) for path in tmp_path.iterdir()]
        ((worker, daemon),) = [each for each in started if each[0] != os.getpid()]
        stop_daemons(spark)  # and what needs a Python next has another one started
        assert service.input("t").load(rows) == 1
        time.sleep(0.2)
        assert is_running(worker)
        assert not is_running(daemon)
        assert service.output().snapshot(1) == [(0,), (0,), (1,), (1,)]
