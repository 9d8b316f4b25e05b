"""Processes: results come back, and whatever ends one of them ends all, with the first cause.

What workers do is written as functions inside of tests, which travel by value.
Nothing here waits for a time to pass, except for the sleeps that stand for user
code which must be interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from pointstamp.communication import processes, publishing
from pointstamp.communication.launch import run_threads
from pointstamp.communication.parent_death import ORPHANED_STATUS, die_with_parent
from pointstamp.communication.processes import run_processes
from pointstamp.errors import (
    CommunicationError,
    OperatorError,
    SerializationError,
    UsageError,
    WorkerError,
)
from tests.communication.runners import all_gather
from tests.os_processes import is_running

pytestmark = pytest.mark.new_interpreters

STOP_S = 60.0
"""The second that is promised, starting three interpreters, and a busy machine."""

LONG_S = 600
"""How long code of the program goes on that nothing interrupts."""


def failing(target, workers=3):
    """The error that comes of running `target`, which must come soon."""
    began = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        run_processes(target, workers)
    assert time.monotonic() - began < STOP_S
    return caught.value


def test_results_come_in_the_order_of_workers():
    def target(communicator):
        return communicator.index, communicator.peers, os.getpid()

    results = run_processes(target, 3)
    assert [result[:2] for result in results] == [(0, 3), (1, 3), (2, 3)]
    assert len({os.getpid(), *(pid for _, _, pid in results)}) == 4


def test_what_starts_workers_may_answer_messages_of_its_own():
    received = []

    def answer(connection, message):
        received.append((connection.worker, message))
        return message * 2

    def target(communicator):
        return publishing.request(communicator.index + 10).result(60)

    assert run_processes(target, 2, {int: answer}) == [20, 22]
    assert sorted(received) == [(0, 10), (1, 11)]
    with pytest.raises(CommunicationError, match="this process has no control connection"):
        publishing.request(1)


def test_a_large_closure_and_a_large_result_travel():
    large = os.urandom(1 << 20) * 40

    def target(communicator):
        return large

    assert run_processes(target, 2) == [large, large]


def test_workers_have_the_path_directory_and_environment_of_their_parent(monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("VALUE = 7")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POINTSTAMP_TEST", "here")

    def target(communicator):
        import only_here

        return only_here.VALUE, os.getcwd(), os.environ["POINTSTAMP_TEST"]  # noqa: PTH109

    assert run_processes(target, 1) == [(7, str(tmp_path), "here")]


@pytest.mark.parametrize("chosen", [None, "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_workers_share_the_processors_unless_the_environment_says_how_many(monkeypatch, chosen):
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    if chosen is not None:
        monkeypatch.setenv(chosen, "7")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    expected = str(max(1, usable // 2)) if chosen is None else "7"
    other = "OMP_NUM_THREADS" if chosen != "OMP_NUM_THREADS" else "OPENBLAS_NUM_THREADS"

    def target(communicator):
        return os.environ[chosen or "OPENBLAS_NUM_THREADS"], os.environ.get(other)

    assert run_processes(target, 2) == [(expected, None)] * 2


def test_an_exception_comes_with_its_worker_cause_and_traceback():
    def target(communicator):
        if communicator.index == 1:
            raise LookupError("no such thing")
        while True:
            communicator.park()

    error = failing(target)
    assert str(error) == "worker 1 failed: LookupError: no such thing"
    assert error.worker == 1
    assert isinstance(error.__cause__, LookupError)
    assert 'raise LookupError("no such thing")' in error.original
    assert error.original in error.__notes__[0]


def test_an_operators_error_gives_its_name_and_time():
    def target(communicator):
        if communicator.index == 2:
            try:
                raise LookupError("no such thing")
            except LookupError as cause:
                raise OperatorError(
                    "operator 'map' failed at time (1, 2)", "map", (1, 2)
                ) from cause
        while True:
            communicator.park()

    error = failing(target)
    assert (error.worker, error.operator, error.time) == (2, "map", (1, 2))
    assert isinstance(error.__cause__, LookupError)


def test_an_exception_that_cannot_be_pickled_is_told_as_text():
    def target(communicator):
        class Odd(Exception):
            def __reduce__(self):
                raise TypeError("cannot")

        raise Odd("odd")

    error = failing(target, 1)
    assert str(error) == "worker 0 failed: Odd: odd"
    assert error.__cause__ is None


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda: sys.exit(3), "worker 1 called sys.exit(3) before it had a result"),
        (lambda: sys.exit(), "worker 1 called sys.exit(None) before it had a result"),
        (lambda: os._exit(3), "worker 1 exited with status 3 before it had a result"),
        (lambda: os._exit(0), "worker 1 exited with status 0 before it had a result"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "worker 1 was killed by SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "worker 1 was killed by SIGTERM"),
        (lambda: os.abort(), "worker 1 was killed by SIGABRT"),
    ],
    ids=["sys.exit", "sys.exit without status", "_exit", "_exit 0", "KILL", "TERM", "abort"],
)
def test_a_worker_that_ends_is_named(end, said):
    def target(communicator):
        all_gather(communicator, None)
        if communicator.index == 1:
            end()
        while True:
            communicator.park()

    assert str(failing(target)) == said


@pytest.mark.parametrize("signals", ["heeds", "ignores"])
def test_workers_that_are_busy_when_another_dies_are_stopped(signals):
    def target(communicator):
        if signals == "ignores":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        all_gather(communicator, None)
        if communicator.index == 1:
            os._exit(3)
        time.sleep(LONG_S)

    assert str(failing(target)) == "worker 1 exited with status 3 before it had a result"


def test_the_first_of_several_failures_is_reported():
    def target(communicator):
        all_gather(communicator, None)
        if communicator.index == 1:
            raise LookupError("first")
        try:
            while True:
                communicator.park()
        finally:
            raise ValueError("while cleaning up")

    assert str(failing(target)) == "worker 1 failed: LookupError: first"


def test_a_worker_with_children_of_its_own_that_hold_its_sockets_is_missed_all_the_same():
    def target(communicator):
        all_gather(communicator, None)
        if communicator.index == 1:
            if os.fork() == 0:
                time.sleep(1.5)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        communicator.park()

    assert str(failing(target)) == "worker 1 was killed by SIGKILL"


def test_programs_that_a_worker_starts_do_not_get_its_sockets():
    def target(communicator):
        listing = subprocess.run(
            ["ls", "-l", f"/proc/{os.getpid()}/fd", "/proc/self/fd"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        mine, its = listing.split("/proc/self/fd:")
        return mine.count("socket:"), its.count("socket:")

    [(mine, its), _] = run_processes(target, 2)
    # The control and the peer; two that wake a parked worker, two the thread of the control.
    assert mine == 6
    assert its == 0


def test_a_result_that_cannot_be_pickled_names_its_worker():
    def target(communicator):
        if communicator.index == 1:
            return (number for number in range(3))
        return None

    with pytest.raises(SerializationError, match="the result of worker 1, of type generator"):
        run_processes(target, 2)


def test_a_target_that_cannot_be_pickled_is_refused():
    generator = (number for number in range(3))

    def target(communicator):
        return generator

    with pytest.raises(SerializationError, match="target cannot be pickled"):
        run_processes(target, 2)


def test_a_module_that_workers_cannot_import_is_a_failure(tmp_path):
    def target(communicator):
        import there_is_no_such_module

        return there_is_no_such_module

    error = failing(target, 2)
    assert isinstance(error.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("run", [run_processes, run_threads])
def test_there_is_at_least_one_worker(run):
    with pytest.raises(UsageError, match="at least one worker; 0"):
        run(lambda communicator: None, 0)


def test_a_worker_whose_threads_do_not_end_is_ended_after_its_result(monkeypatch):
    monkeypatch.setattr(processes, "EXIT_S", 0.3)

    def target(communicator):
        import threading

        threading.Thread(target=time.sleep, args=(LONG_S,)).start()
        return "result"

    assert run_processes(target, 1) == ["result"]


def test_an_interrupt_in_the_middle_of_looking_at_a_process_leaves_none(monkeypatch):
    seen = []

    def interrupted(children, events):
        seen.extend(child.process for child in children)
        for process in seen:
            process._waitpid_lock.acquire()  # as `Popen.poll` does, before its `try`
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_processes(lambda communicator: time.sleep(LONG_S), 2)
    assert all(process.returncode is not None for process in seen)


def script(text, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def environment():
    """In which a script finds what this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


WAITING = """
    import os, sys, time
    from pointstamp.communication.processes import run_processes

    def target(communicator):
        os.write(1, b"at work\\n")  # at once: an unbuffered print writes the end of a line apart
        if sys.argv[1:] == ["busy"]:
            time.sleep(600)
        while True:
            communicator.park()

    run_processes(target, 2)
"""


@contextlib.contextmanager
def started(path, *arguments):
    """The script, when both of its workers are at work."""
    with subprocess.Popen(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        process_group=0,
    ) as process:
        try:
            said = [process.stdout.readline() for _ in range(2)]
            assert said == ["at work\n"] * 2
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


OWN_CLASSES = """
from pointstamp.communication.processes import run_processes

FACTOR = 10

class Record:
    def __init__(self, value):
        self.value = value

def target(communicator):
    return Record(communicator.index * FACTOR)
"""


def ran(path, *arguments):
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )


def test_a_script_needs_no_main_guard(tmp_path):
    end = "print([record.value for record in run_processes(target, 2)])\n"
    found = ran(script(OWN_CLASSES + end, tmp_path))
    assert (found.returncode, found.stdout, found.stderr) == (0, "[0, 10]\n", "")


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_process_of_multiprocessing_starts_workers_with_functions_of_its_script(tmp_path, method):
    end = """
if __name__ == "__main__":
    import sys
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context(sys.argv[1])) as pool:
        found = pool.submit(run_processes, target, 2).result()
        print([record.value for record in found if type(record) is Record])
"""
    found = ran(script(OWN_CLASSES + end, tmp_path), method)
    assert found.stdout == "[0, 10]\n", found.stderr


@pytest.mark.parametrize("how", ["parked", "busy"])
def test_workers_end_when_their_parent_is_killed(tmp_path, how):
    with started(script(WAITING, tmp_path), how) as process:
        killed = time.monotonic()
        process.kill()
        # The workers hold the other ends of these pipes: they end when both have.
        assert process.communicate(timeout=STOP_S) == ("", "")
        assert time.monotonic() - killed < STOP_S


@pytest.mark.parametrize("how", ["parked", "busy"])
def test_an_interrupt_stops_the_workers(tmp_path, how):
    with started(script(WAITING, tmp_path), how) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=STOP_S)
    assert out == ""
    assert err.rstrip().endswith("KeyboardInterrupt")
    # The parent's, which may have looked for messages in vain just then, and none of the workers.
    assert err.count("Traceback") == 1 + err.count("During handling of the above exception")
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)


def test_a_process_that_a_worker_forks_off_does_not_answer_for_it(capfd):
    def target(communicator):
        child = os.fork()
        if child == 0 and communicator.index == 0:
            print("from the child")
            return "of a child"
        if child == 0:
            raise ValueError("of a child")
        _, status = os.waitpid(child, 0)
        return "of the worker", os.waitstatus_to_exitcode(status)

    assert run_processes(target, 2) == [("of the worker", 0), ("of the worker", 1)]
    printed = capfd.readouterr()
    assert printed.out.count("from the child") == 1
    assert printed.err.count("ValueError: of a child") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such signal")
def test_workers_in_code_that_holds_the_interpreter_die_with_their_killed_parent(tmp_path):
    """Their thread that reads the control connection does not get to run."""
    program = textwrap.dedent(
        """
        import ctypes, os, sys
        from pathlib import Path
        from pointstamp.communication.processes import run_processes

        def target(communicator):
            Path(sys.argv[1], f"{communicator.index}").write_text(str(os.getpid()))
            ctypes.PyDLL(None).sleep(600)

        run_processes(target, 2)
        """
    ).replace("sys.argv[1]", repr(str(tmp_path)))
    parent = subprocess.Popen([sys.executable, "-c", program])
    try:
        until = time.monotonic() + STOP_S
        files = [tmp_path / "0", tmp_path / "1"]
        while not all(file.exists() and file.read_text() for file in files):
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        parent.kill()
        parent.wait()
    died = time.monotonic()
    pids = [int(file.read_text()) for file in files]
    while alive := [pid for pid in pids if is_running(pid)]:
        if time.monotonic() > died + STOP_S:
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
            pytest.fail("workers outlived their parent")
        time.sleep(0.02)


def test_a_worker_whose_parent_died_before_it_asked_ends(monkeypatch):
    """The system would say nothing any more."""
    child = os.fork()
    if child == 0:
        die_with_parent(os.getpid())  # not the parent: as if that had died, and init is it
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == ORPHANED_STATUS


def test_a_worker_has_imported_what_carries_before_questions_can_reach_it():
    """What answers is a thread that imports, too, and two that import one package fail."""
    program = textwrap.dedent(
        """
        import sys
        from pointstamp.communication import worker_process

        def connection(*_):
            containers = sys.modules.get("pointstamp.containers")
            print(hasattr(containers, "kind_of"))
            sys.exit()

        worker_process.die_with_parent = worker_process._adopt = lambda _: None
        worker_process.ControlClient = connection
        worker_process.main(0, 1, 0, {}, None, 0)
        """
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n", "")


def test_workers_of_more_open_files_than_usual_are_started_or_the_limit_is_named() -> None:
    """64 workers took more than the 1024 that a process may have by default."""
    program = textwrap.dedent(
        """
        import resource
        from pointstamp.communication.processes import run_processes

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for hard in (hard, 20):
            resource.setrlimit(resource.RLIMIT_NOFILE, (20, hard))
            try:
                print(run_processes(lambda communicator: communicator.index, 6))
            except Exception as error:
                print(type(error).__name__, error)
        """
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    started, refused = ran.stdout.splitlines()
    assert started == "[0, 1, 2, 3, 4, 5]"
    assert refused.startswith("CommunicationError to start 6 worker processes takes up to 42 open")
    assert "this process may have 20: raise the hard limit" in refused
