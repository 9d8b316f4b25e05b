"""A Spark cluster of this machine: a master, two workers, and programs that use them.

Both workers are processes of this machine. They call themselves 127.0.0.1 and 127.0.0.2,
so that for everybody who asks where they are they are two machines.

The Python of the tasks has everything but Pointstamp: it is the one that runs us,
without what belongs to its environment, and with a folder of links to the packages.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

from pyspark.find_spark_home import _find_spark_home

from pointstamp.spark import java
from tests.os_processes import processes

ROOT = Path(__file__).resolve().parents[2]
MARK = "POINTSTAMP_TEST_CLUSTER"
"""Is in the environment of every process of a cluster, to find those that are left."""

CORES = 2
"""Of each worker."""

STOP_S = 60.0


@dataclass(frozen=True)
class Cluster:
    """Where a master listens, and the Pythons that its executors may have."""

    master: str
    environment: dict[str, str]
    """Of a program that uses it: its tasks have `bare`, if it says nothing else."""
    plain: str
    """A Python that has Pointstamp."""
    bare: str
    """One that has not."""
    other: str
    """Another one that has not, nor any of the processes of the first."""
    poor: str
    """One that has not, nor a library that it needs."""


@contextmanager
def cluster(folder: Path, java_options: str) -> Iterator[Cluster]:
    """A cluster with its files in `folder`; of its processes none is left afterwards."""
    mark = uuid.uuid4().hex
    bare = python_without(folder / "bare", "pointstamp")
    other = python_without(folder / "other", "pointstamp")
    poor = python_without(folder / "poor", "pointstamp", "cloudpickle")
    with ExitStack() as running:
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
            "JAVA_HOME": str(running.enter_context(java.for_spark())),
            "SPARK_HOME": _find_spark_home(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_JAVA_OPTS": java_options,
            "SPARK_LAUNCHER_OPTS": os.environ["SPARK_LAUNCHER_OPTS"],
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": bare,
            MARK: mark,
        }
        running.callback(end_all, mark)
        master = daemon(running, environment, "master.Master", "--host", "127.0.0.1", "--port", "0")
        url = said(master, r"Starting Spark master at (spark://\S+)")
        for n in (1, 2):
            worker = daemon(
                running,
                {**environment, "SPARK_LOCAL_IP": f"127.0.0.{n}"},
                *("worker.Worker", url, "--host", f"127.0.0.{n}", "--cores", str(CORES)),
                *("--memory", "2g", "--work-dir", str(folder / f"worker-{n}")),
            )
            said(worker, r"(Successfully registered) with master")
        yield Cluster(url, environment, sys.executable, bare, other, poor)


def python_without(folder: Path, *packages: str) -> str:
    """A command that is this Python, to which `packages` are not known."""
    links = folder / "packages"
    links.mkdir(parents=True)
    for entry in Path(next(p for p in sys.path if Path(p, "pyspark").is_dir())).iterdir():
        if not entry.name.startswith((*packages, "__editable__")):
            (links / entry.name).symlink_to(entry)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{links}" exec "{sys.executable}" -S "$@"\n')
    command.chmod(0o755)
    return str(command)


def daemon(
    running: ExitStack, environment: dict[str, str], name: str, *args: str
) -> subprocess.Popen[str]:
    """A process of Spark's own cluster manager, which is ended with the cluster."""
    process = subprocess.Popen(
        [
            str(Path(environment["SPARK_HOME"], "bin", "spark-class")),
            f"org.apache.spark.deploy.{name}",
            *args,
            *("--webui-port", "0"),
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running.callback(end, process)
    return process


def said(process: subprocess.Popen[str], pattern: str) -> str:
    """What it says first that fits `pattern`; what else it says is read and forgotten."""
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        found = re.search(pattern, line)
        if found is not None:
            threading.Thread(
                target=_hear_out, args=(process.stderr,), name="what-spark-says", daemon=True
            ).start()
            return found[1]
    raise AssertionError("it ended, and said: " + "".join(heard))


def _hear_out(stream: IO[str]) -> None:
    with stream:
        for _ in stream:
            pass


def end(process: subprocess.Popen[str]) -> None:
    """End it and wait for it, however it takes that."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_all(mark: str) -> None:
    """See that none of a cluster's processes is left; if one is, it is ended, and an error."""
    until = time.monotonic() + STOP_S
    while (left := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"the cluster left processes behind: {left}"


def marked(mark: str) -> dict[int, str]:
    """The processes that have the mark of a cluster, with their command lines."""
    wanted = f"{MARK}={mark}".encode()
    return {
        process.pid: " ".join(process.command)
        for process in processes()
        if wanted in process.read("environ").split(b"\0")
    }


class Program:
    """Another Python with a Spark session of its own, which calls functions that take it."""

    def __init__(self, environment: dict[str, str], master: str, settings: dict[str, str]) -> None:
        self._pool = ProcessPoolExecutor(
            1, get_context("spawn"), initializer=_begin, initargs=(environment, master, settings)
        )

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function gives for the session and `args`; Raised with what it raises.

        Spark's own exceptions cannot always be pickled, so of any only the text comes.
        """
        kind, value = self._pool.submit(_call, function, args).result()
        if kind:
            raise Raised(kind, value)
        return value

    def close(self) -> None:
        """Stop the session and end the process."""
        self._pool.submit(_stop).result()
        self._pool.shutdown()


class Raised(Exception):
    """What was raised in another program: the name of its type, and its text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")


@contextmanager
def program(
    environment: dict[str, str], master: str, settings: dict[str, str] | None = None
) -> Iterator[Program]:
    """A program with a session of `master`."""
    running = Program(environment, master, settings or {})
    try:
        running.call(_is_there)
        yield running
    finally:
        running.close()


def _begin(environment: dict[str, str], master: str, settings: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(
        [*(f"--conf {key}={value}" for key, value in settings.items()), "pyspark-shell"]
    )
    from pointstamp.spark import session

    global _spark
    _spark = session(master)


_spark: Any = None


def _is_there(spark: Any) -> None:
    pass


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "", function(_spark, *args)
    except Exception as error:  # noqa: BLE001  (whoever called is told of it)
        return type(error).__name__, "\n".join([str(error), *getattr(error, "__notes__", [])])


def _stop() -> None:
    _spark.stop()
