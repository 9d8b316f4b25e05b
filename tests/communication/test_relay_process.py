"""Workers started apart, on what look like two machines, of which relays carry the messages."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.os_processes import OsProcess, is_running, processes
from tests.slowness import slowdown
from tests.waiting import wait_for

PROGRAM = '''
import ctypes, os, signal, sys, time
from pathlib import Path

def note(folder, name, text=""):
    path = Path(folder) / name
    path.with_name(name + ".new").write_text(text)
    path.with_name(name + ".new").rename(path)

def until(folder, *names):
    while not all((Path(folder) / name).exists() for name in names):
        time.sleep(0.01)

def hold(seconds):
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # a call that does not let go of the GIL

def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

def main(worker, folder, busy, way, fails):
    """One worker fails, the one behind it, of the other machine, waits, and the others compute."""
    fails = int(fails)
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()
    if worker.index not in (fails, fails + 1):
        note(folder, f"busy-{worker.index}")
        globals()[busy](600)
    elif worker.index == fails:
        until(folder, f"busy-{2 - fails}", f"busy-{3 - fails}", "waits")
        time.sleep(0.3)
        note(folder, "failed", str(time.monotonic()))
        if way == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("seven")
    else:
        note(folder, "waits")
        try:
            worker.step_while(lambda: probe.less_than(1))
        except BaseException as error:
            note(folder, "heard", f"{time.monotonic()} {error}")
            raise

def sums(worker, *values):
    found = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream([int(value) + worker.index for value in values])
        numbers.exchange(lambda x: x).inspect(found.append)
    worker.run()
    print(sum(found))

def forever(worker):
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()
    print("runs", flush=True)
    worker.step_while(lambda: probe.less_than(1))
'''

Start = Callable[..., subprocess.Popen[str]]

SOON_S = 120.0
"""How long it may take that four interpreters and two relays start, or end, on a busy machine."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts worker I of four; 0 and 2 are of one machine, 1 and 3 of another."""
    places = [f"127.0.0.{1 + worker % 2}" for worker in range(4)]
    lines = [f"{place}:{free_port(place)}" for place in places]
    (tmp_path / "hosts").write_text("\n".join(lines))
    (tmp_path / "program.py").write_text(PROGRAM)
    secret = tmp_path / "secret"
    secret.write_text("a secret of some length\n")
    secret.chmod(0o600)
    started: list[subprocess.Popen[str]] = []

    def start(worker: int, function: str, *args: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "pointstamp", "run", f"{tmp_path}/program.py:{function}"]
        line += ["--process", str(worker), "--hosts", f"{tmp_path}/hosts", "--secret", str(secret)]
        line += ["--connections", "machine", "--", *args]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def relays_of(workers: list[subprocess.Popen[str]]) -> list[OsProcess]:
    """The relays that these workers have started, and that run."""
    pids = [worker.pid for worker in workers]
    program = "from pointstamp.communication.relay import main"
    return [
        each
        for each in processes()
        if each.parent in pids and each.is_running and program in " ".join(each.command)
    ]


@pytest.mark.once
@pytest.mark.parametrize(
    ("busy", "way", "victim"),
    [("hold", "fails", 0), ("hold", "fails", 2), ("hold", "dies", 2), ("compute", "fails", 0)],
)
def test_word_of_a_failure_passes_workers_that_compute(
    start: Start, tmp_path: Path, busy: str, way: str, victim: int
) -> None:
    """All others of the machine, those that started the relays or not, compute for minutes."""
    options = [str(tmp_path), busy, way, str(victim)]
    workers = [start(worker, "main", *options) for worker in range(4)]
    wait_for((tmp_path / "failed").exists, SOON_S)
    wait_for((tmp_path / "heard").exists, SOON_S)
    at, _, said = (tmp_path / "heard").read_text().partition(" ")
    # What is promised is a second, and the machine may be crowded.
    assert float(at) - float((tmp_path / "failed").read_text()) < 5 * slowdown()
    assert [workers[other].poll() for other in (2 - victim, 3 - victim)] == [None, None]
    assert ("ValueError: seven" if way == "fails" else f"lost worker {victim}") in said
    # The relays have done what they are for.
    wait_for(lambda: not relays_of(workers), SOON_S)


@pytest.mark.once
def test_workers_started_apart_get_what_others_sent(start: Start) -> None:
    workers = [start(worker, "sums", *map(str, range(100))) for worker in range(4)]
    said = [worker.communicate(timeout=SOON_S) for worker in workers]
    assert [errors for _, errors in said] == [""] * 4
    assert sum(int(output) for output, _ in said) == sum(4 * n + 6 for n in range(100))


@pytest.mark.once
@pytest.mark.new_interpreters  # relays are found by their command lines
@pytest.mark.parametrize("victim", [0, 2])
def test_relays_end_when_a_worker_is_killed(start: Start, victim: int) -> None:
    workers = [start(worker, "forever") for worker in range(4)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "runs\n"
    relays = relays_of(workers)
    assert len(relays) == 2
    workers[victim].kill()
    for number, worker in enumerate(workers):
        _, errors = worker.communicate(timeout=SOON_S)
        assert worker.returncode != 0
        assert number == victim or f"lost worker {victim}" in errors
    wait_for(lambda: not any(is_running(relay.pid) for relay in relays), SOON_S)


@pytest.mark.once
@pytest.mark.new_interpreters
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_relay_ends_with_its_worker_while_all_are_waited_for(
    start: Start, signal_number: int
) -> None:
    waits = start(0, "forever")
    wait_for(lambda: len(relays_of([waits])) == 1, SOON_S)
    relays = relays_of([waits])
    waits.send_signal(signal_number)
    waits.wait(SOON_S)
    wait_for(lambda: not any(is_running(relay.pid) for relay in relays), SOON_S)
