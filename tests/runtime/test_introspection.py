"""What the workers of a running program wait for: asked over control connections, or by signal."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.communication.explanations import Explanation, explain_program
from pointstamp.communication.local_door import has_door
from pointstamp.runtime import introspection, signal_handler
from pointstamp.runtime.introspection import ask, find_below, find_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is a door on Linux only")

PROGRAM = """
import os, sys, time
import pointstamp as ps

def main(worker, how):
    def build(capability, info):
        def logic(input, output):
            for time_, batch in input:
                if how in ("busy", "asleep", "in C"):
                    ready()
                while how == "busy":
                    pass
                if how == "asleep":
                    time.sleep(600)
                if how == "in C":
                    sum(range(10**13))
        return logic

    def ready():
        os.write(1, b"ready\\n")

    with worker.dataflow("hello") as scope:
        input, stream = scope.new_input("edges")
        probe = stream.exchange(lambda x: 1).unary(ps.Pipeline(), "Slow", build).probe()
    input.send("x")
    if worker.index:
        input.advance_to(7)
    if how == "own handler":
        import signal
        signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"mine\\n"))
        ready()
    if how == "parked":
        worker.step()
        ready()
    worker.step_while(lambda: probe.less_than(7))

if __name__ == "__main__":
    ps.execute(main, sys.argv[1], workers=int(sys.argv[2]), threads=sys.argv[3:] == ["threads"])
"""


@contextmanager
def running(
    tmp_path: Path, how: str, workers: Any, *more: str, n_ready: int = 1, shell: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """The program above, once it has said so often that it is where it hangs."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    program = [sys.executable, str(path), how, str(workers), *more]
    process = subprocess.Popen(
        ["sh", "-c", f"{shlex.join(program)}; true"] if shell else program,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for _ in range(n_ready):
            assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def command(process: int, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    words = [str(process), "--timeout", str(timeout_s)]
    return subprocess.run(
        [sys.executable, "-m", "pointstamp", "explain", *words],
        capture_output=True,
        text=True,
        timeout=180,
    )


def asked_beside(process: int, text: str) -> subprocess.CompletedProcess[str]:
    """What it says where one process never answers, and another one, which says so, does."""
    for timeout_s in (0.5, 2, 8, 30):  # on a slow machine it takes longer than the first
        answered = command(process, timeout_s)
        if text in answered.stdout:
            break
    return answered


def asked_until(process: int, text: str, times: int) -> subprocess.CompletedProcess[str]:
    """What it says once that text is in it so often: programs go on a little after a word."""
    for _ in range(20):
        answered = command(process)
        if answered.stdout.count(text) == times:
            break
    return answered


def worker_processes(process: int) -> list[int]:
    """Those of worker 0, worker 1 and so on, as `ps.execute` started them."""
    return sorted(each.process for each in ask(process, 60) or [])


def test_workers_that_are_parked_tell_what_they_wait_for(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 2, n_ready=2) as process:
        answered = asked_until(process.pid, "waits for something to do", 2)
    said = answered.stdout
    assert answered.returncode == 0
    assert "this worker (0) has not advanced input 'edges' [1] beyond 0" in said
    assert "worker 0 has not advanced input 'edges' [1] beyond 0" in said  # so says worker 1
    assert "by 'edges' [1] -> 'Exchange' [2] -> 'Slow' [3] -> 'Probe' [4]" in said
    assert said.count("waits for something to do") == 2
    assert len(re.findall(r"program.py\", line \d+, in main", said)) == 2


def test_any_process_of_the_program_may_be_named(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 2, n_ready=2) as process:
        first, second = worker_processes(process.pid)
        assert process.pid not in (first, second)
        assert find_program(first) == find_program(second) == process.pid
        for each in (first, second):
            said = command(each).stdout
            assert f"process {first}\n" in said
            assert f"process {second}\n" in said


@pytest.mark.parametrize("carrier", [("2",), ("2", "threads")])
@pytest.mark.parametrize("how", ["busy", "asleep"])
def test_an_operator_in_code_of_the_program_is_shown_with_its_stack(
    tmp_path: Path, how: str, carrier: Any
) -> None:
    """The worker that is stuck in it answers all the same, and so does the other."""
    with running(tmp_path, how, *carrier) as process:
        answered = command(process.pid)
    said = answered.stdout
    assert answered.returncode == 0, answered.stderr
    assert said.count("worker 0 of 2") == said.count("worker 1 of 2") == 1
    assert "is in operator 'Slow', at time 0" in said
    assert re.search(r"program.py\", line \d+, in logic", said)
    assert re.search(r"records? at 0 waits? at input 0 of 'Slow' \[3\] of this worker", said)


def test_a_worker_in_a_call_that_lets_no_thread_run_is_named_in_time(tmp_path: Path) -> None:
    with running(tmp_path, "in C", 2) as process:
        answered = asked_beside(process.pid, " of 2")
        stuck = 1 if "worker 0 of 2" in answered.stdout else 0
        assert re.search(rf"worker {stuck} \(process \d+ on .*\) did not answer", answered.stderr)
    assert answered.returncode == 1
    assert f"worker {1 - stuck} of 2" in answered.stdout


def test_a_worker_that_is_stopped_is_named_by_whichever_process_is_asked(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 2, n_ready=2) as process:
        first, second = worker_processes(process.pid)
        os.kill(second, signal.SIGSTOP)
        for named in (process.pid, first, second):
            answered = asked_beside(named, f"process {first}\n")
            assert answered.returncode == 1
            assert f"(process {second} on " in answered.stderr
            assert f"process {first}\n" in answered.stdout
        os.kill(second, signal.SIGCONT)


@pytest.mark.parametrize("carrier", [("1",), ("3", "threads")])
def test_workers_of_one_process_are_all_told_of(tmp_path: Path, carrier: Any) -> None:
    with running(tmp_path, "parked", *carrier, n_ready=int(carrier[0])) as process:
        said = command(process.pid).stdout
    assert said.count("worker 0 of") == said.count(f"worker {int(carrier[0]) - 1} of") == 1
    assert "has not advanced input 'edges' [1] beyond 0" in said


@pytest.mark.parametrize("carrier", [("1",), ("2",), ("2", "threads")])
def test_the_signal_has_it_printed_by_the_process_that_started_them(
    tmp_path: Path, carrier: Any
) -> None:
    with running(tmp_path, "parked", *carrier, n_ready=int(carrier[0])) as process:
        os.kill(process.pid, signal.SIGUSR1)
        assert process.stderr is not None
        seen: set[str] = set()
        while len(seen) < int(carrier[0]):
            line = process.stderr.readline()
            assert line, "it ended before all workers were told of"
            seen.update(re.findall(r"^worker \d of \d", line))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_handler_of_the_program_stays_and_is_not_called(tmp_path: Path, workers: int) -> None:
    with running(tmp_path, "own handler", workers, n_ready=workers) as process:
        answered = command(process.pid)
        assert answered.stdout.count("worker 0 of") == 1
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        assert not process.stdout.readline()
        os.set_blocking(process.stdout.fileno(), True)
        if workers == 1:
            os.kill(process.pid, signal.SIGUSR1)
            assert process.stdout.readline() == "mine\n"
    assert answered.returncode == 0


def test_a_process_without_workers_is_said_to_have_none() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            answered = command(other.pid)
        finally:
            other.kill()
    assert answered.returncode == 2
    assert "runs no workers that can be asked" in answered.stderr


def test_what_runs_below_another_program_is_listed_and_not_asked(tmp_path: Path) -> None:
    """As of a shell; the signal, if it was sent, would end the shell."""
    with running(tmp_path, "parked", 2, n_ready=2, shell=True) as shell:
        assert find_program(shell.pid) != shell.pid
        (program,) = find_below(shell.pid)
        answered = command(shell.pid)
        assert shell.poll() is None
    assert answered.returncode == 2
    assert answered.stdout == ""
    assert f"`pointstamp explain {program}`" in answered.stderr


def test_a_program_that_a_worker_started_is_not_taken_for_a_worker() -> None:
    def main(worker: Any) -> tuple[int, str]:
        with subprocess.Popen(["sleep", "60"]) as child:
            try:
                answered = command(child.pid)
            finally:
                child.kill()
        return answered.returncode, answered.stdout

    assert ps.execute(main) == [(2, "")]


def test_a_handler_that_was_there_is_not_replaced() -> None:
    def own(number: int, frame: Any) -> None:
        raise AssertionError

    signal.signal(signal.SIGUSR1, own)
    try:
        told = ps.execute(lambda worker: signal.getsignal(signal.SIGUSR1) is own)
        assert told == [True]
        assert signal.getsignal(signal.SIGUSR1) is own
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_the_handler_and_the_door_go_with_the_last_worker() -> None:
    def inner(worker: Any) -> bool:
        return signal.getsignal(signal.SIGUSR1) is signal_handler._answer and is_served()

    def outer(worker: Any) -> list[bool]:
        return [inner(worker), *ps.execute(inner), inner(worker)]

    def is_served() -> bool:
        return introspection._listener is not None and has_door(os.getpid())

    assert ps.execute(outer) == [[True] * 3]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert introspection._n_listening == 0


def test_worker_processes_have_no_handler() -> None:
    told = ps.execute(lambda worker: signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL, workers=2)
    assert told == [True, True]


def test_a_process_that_is_stopped_does_not_keep_the_asker(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 1) as process:
        process.send_signal(signal.SIGSTOP)
        assert ask(process.pid, 0.2) is None
        answered = command(process.pid, 0.2)
        process.send_signal(signal.SIGCONT)
    assert answered.returncode == 1
    assert f"process {process.pid} did not answer in 0.2 s" in answered.stderr


def test_the_program_itself_can_ask_its_workers(tmp_path: Path) -> None:
    """As the driver of a job does, over the connections that it has."""
    done = tmp_path / "done"

    def main(worker: Any) -> int:
        while not done.exists():
            time.sleep(0.01)
        return os.getpid()

    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(ps.execute(main, workers=2)))
    thread.start()
    try:
        found: list[Explanation] = []
        while sum(" of 2 " in (each.text or "") for each in found) < 2:
            found = explain_program(60)
    finally:
        done.touch()
        thread.join()
    assert [each.process for each in found] == results
    for index, each in enumerate(found):
        assert f"worker {index} of 2 is in the program, between two steps" in (each.text or "")


def test_a_door_is_not_that_of_a_process_whose_number_begins_so(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 1) as process:
        assert has_door(process.pid)
        assert not has_door(int(str(process.pid)[:-1]))
