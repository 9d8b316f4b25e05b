"""Asking the workers of a running program from outside what they wait for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.runtime import signal_handler
from pointstamp.runtime.introspection import Responder, ask, find_below, find_responders

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="Linux has it")

PROGRAM = """
import os, sys, time
import pointstamp as ps

def main(worker, how):
    def build(capability, info):
        def logic(input, output):
            for time_, batch in input:
                if how in ("busy", "asleep"):
                    ready()
                while how == "busy":
                    pass
                if how == "asleep":
                    time.sleep(600)
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
    tmp_path: Path, how: str, workers: int, *more: str, n_ready: int = 1
) -> Iterator[subprocess.Popen[str]]:
    """The program above, once it has said so often that it is where it hangs."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    process = subprocess.Popen(
        [sys.executable, str(path), how, str(workers), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for _ in range(n_ready):
            assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pointstamp.cli", "explain", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_workers_that_are_parked_tell_what_they_wait_for(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 2, n_ready=2) as process:
        for _ in range(20):  # until they have gone that far
            answered = command(process.pid)
            if answered.stdout.count("waits for something to do") == 2:
                break
    said = answered.stdout
    assert answered.returncode == 0
    assert "this worker (0) has not advanced input 'edges' [1] beyond 0" in said
    assert "worker 0 has not advanced input 'edges' [1] beyond 0" in said  # so says worker 1
    assert "by 'edges' [1] -> 'Exchange' [2] -> 'Slow' [3] -> 'Probe' [4]" in said
    assert said.count("waits for something to do") == 2
    assert len(re.findall(r"program.py\", line \d+, in main", said)) == 2


def test_any_process_of_the_program_may_be_named(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 2, n_ready=2) as process:
        first, second = find_responders(process.pid)
        assert find_responders(second.pid) == find_responders(first.pid) == [first, second]
        assert process.pid not in (first.pid, second.pid)
        answers = ask([second], patience_s=20)
    assert "worker 1 of 2" in (answers[second.pid] or "")


@pytest.mark.parametrize("how", ["busy", "asleep"])
def test_an_operator_in_code_of_the_program_is_shown_with_its_stack(
    tmp_path: Path, how: str
) -> None:
    with running(tmp_path, how, 2) as process:
        said = command(process.pid).stdout
    assert "is in operator 'Slow', at time 0" in said
    assert re.search(r"program.py\", line \d+, in logic", said)
    assert re.search(r"records? at 0 wait at input 0 of 'Slow' \[3\] of this worker", said)


@pytest.mark.parametrize("carrier", [("1",), ("3", "threads")])
def test_workers_of_one_process_are_all_told_of(tmp_path: Path, carrier: Any) -> None:
    with running(tmp_path, "parked", *carrier, n_ready=int(carrier[0])) as process:
        said = command(process.pid).stdout
    assert said.count("worker 0 of") == said.count(f"worker {int(carrier[0]) - 1} of") == 1
    assert "has not advanced input 'edges' [1] beyond 0" in said


def test_the_signal_alone_has_it_printed(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 1) as process:
        os.kill(process.pid, signal.SIGUSR1)
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(6)]
    assert lines[0] == f"process {process.pid}\n"
    assert lines[1].startswith("worker 0 of 1 ")
    assert "has not advanced input 'edges'" in "".join(lines)


def test_a_handler_of_the_program_stays(tmp_path: Path) -> None:
    with running(tmp_path, "own handler", 1) as process:
        answered = command(process.pid, "--timeout", 0.5)
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"
    assert answered.returncode == 1
    assert f"process {process.pid} did not answer" in answered.stderr


def test_a_process_without_workers_is_said_to_have_none() -> None:
    answered = command(os.getpid())
    assert answered.returncode == 2
    assert "runs no workers that can be asked" in answered.stderr


def test_what_runs_below_another_program_is_listed_and_not_signalled(tmp_path: Path) -> None:
    """A shell, or this process: the program below has its own handler, and would say so."""
    with running(tmp_path, "own handler", 1) as process:
        answered = command(os.getpid(), "--timeout", 0.5)
        assert find_responders(os.getpid()) == []
        assert [below.pid for below in find_below(os.getpid())] == [process.pid]
        os.set_blocking(process.stdout.fileno(), False)  # type: ignore[union-attr]  # it is a pipe
        assert not process.stdout.readline()  # type: ignore[union-attr]
    assert answered.returncode == 2
    assert answered.stdout == ""
    assert f"`pointstamp explain {process.pid}`" in answered.stderr


def test_a_child_that_has_inherited_the_file_of_its_parent_is_not_signalled() -> None:
    def main(worker: Any) -> list[int]:
        with subprocess.Popen(["sleep", "60"], pass_fds=own_file()) as child:
            try:
                return [process.pid for process in find_below(child.pid)]
            finally:
                child.kill()

    assert ps.execute(main) == [[]]


def own_file() -> list[int]:
    """The file in memory of this process."""
    assert signal_handler._responder is not None
    return [signal_handler._responder._fd]


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


def test_the_handler_goes_with_the_last_worker() -> None:
    def inner(worker: Any) -> bool:
        return signal.getsignal(signal.SIGUSR1) is signal_handler._answer

    def outer(worker: Any) -> list[bool]:
        return [inner(worker), *ps.execute(inner), inner(worker)]

    assert ps.execute(outer) == [[True] * 3]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert find_responders(os.getpid()) == []


def test_a_question_is_answered_once_and_not_after_its_time() -> None:
    responder = Responder(1)
    try:
        assert responder.pending_question() is None
        os.pwrite(responder._fd, b"?abc 1e18", 0)
        assert responder.pending_question() == "abc"
        responder.answer("abc", "text")
        assert responder.pending_question() is None
        os.ftruncate(responder._fd, 0)
        os.pwrite(responder._fd, b"?abc 0.0", 0)
        assert responder.pending_question() is None
    finally:
        responder.close()


def test_a_process_that_is_stopped_does_not_keep_the_asker(tmp_path: Path) -> None:
    with running(tmp_path, "parked", 1) as process:
        process.send_signal(signal.SIGSTOP)
        assert ask(find_responders(process.pid), patience_s=0.2) == {process.pid: None}
        process.send_signal(signal.SIGCONT)
