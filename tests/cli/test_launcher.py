"""`pointstamp run`: a program of one's own, its arguments, and what is refused by name."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pointstamp.communication.tls import Certificates
from tests.cli.conftest import Ran
from tests.free_ports import free_port

Run = Callable[..., Ran]

PROGRAM = r"""
import json
import sys
import pointstamp as ps
import helper

VALUE = 3

def main(worker, upto, *more):
    seen = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(worker.index, int(upto), worker.peers))
        numbers.exchange(lambda n: n).inspect(lambda n: seen.append(helper.square(n)))
    worker.run()
    # In one piece: lines of several workers may meet in the pipe.
    sys.stdout.write(json.dumps([worker.index, worker.peers, sum(seen), more]) + "\n")
    sys.stdout.flush()

async def later(worker):
    raise AssertionError

def items(worker):
    yield worker

async def both(worker):
    yield worker

def waits(worker, folder):
    received = 0
    def note(time, batch):
        nonlocal received
        received += len(batch)
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        stream.exchange().inspect_batch(note)
    for _ in range(20):
        input.send_batch(list(range(10_000)))
    input.close()
    worker.run()
    memory = worker.environment.memory
    sys.stdout.write(json.dumps([received, memory.spilled_bytes > 0, memory.peak_bytes]) + "\n")

def prints(worker):
    for i in range(100_000):
        print(worker.index, i, flush=True)

def breaks(worker):
    raise BrokenPipeError("of another pipe")

def fails(worker):
    raise RuntimeError("no luck")

def leaves(worker):
    if worker.index == 1:
        sys.exit(0)
    with worker.dataflow() as scope:
        scope.to_stream([1]).exchange(lambda n: n).probe()
    worker.run()

def asks(worker):
    raise ps.errors.UsageError("not like this")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my_program.py"
    path.write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("def square(n): return n * n")
    yield path
    for name in ("my_program", "helper"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("form", [["--workers", "2"], ["--workers", "2", "--threads"], []])
def test_a_program_runs_on_workers_with_its_arguments(
    command: list[str], program: Path, form: list[str]
) -> None:
    args = [*command, "run", f"{program}:main", *form, "--", "10", "--workers", "x"]
    ran = subprocess.run(args, capture_output=True, text=True, check=True, cwd=program.parent)
    said = sorted(map(json.loads, ran.stdout.splitlines()))
    peers = 2 if form else 1
    assert [line[:2] for line in said] == [[index, peers] for index in range(peers)]
    assert sum(line[2] for line in said) == sum(n * n for n in range(10))
    assert all(line[3] == ["--workers", "x"] for line in said)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("nope.py:main", [], "nope.py: there is no such file (looked from"),
        (".:main", [], ".: it is a folder, and not a file of Python"),
        ("nope/:main", [], "nope/: there is no such file (looked from"),
        ("my_program.py", [], "'my_program.py' is not FILE.py:FUNCTION"),
        ("my_program.py:mian", ["1"], "has no 'mian'; there are main, later, items, both"),
        ("my_program.py:VALUE", [], "is of type int, which cannot be called"),
        ("my_program.py:later", [], "is an async function"),
        ("my_program.py:both", [], "is an asynchronous generator"),
        ("my_program.py:items", [], "is a generator"),
        ("my_program.py:main", [], "missing a required argument: 'upto'"),
        ("my_program.py:fails", ["1"], "too many positional arguments"),
        ("my_program.py:asks", [], "not like this"),
        ("my-program.py:main", [], "name it like one, as program.py"),
        ("json.py:main", [], "is imported as the module 'json', and that is another here"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(
    run: Run, program: Path, name: str, args: list[str], said: str
) -> None:
    (program.parent / "my-program.py").write_text("def main(worker): pass")
    (program.parent / "json.py").write_text("def main(worker): pass")
    ran = run("run", name, "--", *args)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_program_that_fails_ends_with_1_and_the_first_cause(run: Run, program: Path) -> None:
    ran = run("run", f"{program}:fails")
    assert ran.status == 1
    assert "no luck" in ran.err


@pytest.mark.parametrize("form", ["one", "processes", "threads", "place"])
@pytest.mark.parametrize("function", ["in_main", "in_operator"])
def test_a_program_that_fails_shows_its_own_frames_and_none_of_ours(
    command: list[str], program: Path, hosts: Path, form: str, function: str
) -> None:
    program.with_name("failing.py").write_text(
        "def deeper(n):\n"
        "    raise ValueError(f'no {n}')\n"
        "def in_main(worker):\n"
        "    deeper(3)\n"
        "def in_operator(worker):\n"
        "    with worker.dataflow() as scope:\n"
        "        scope.to_stream([3]).map(lambda n: deeper(n))\n"
        "    worker.run()\n"
    )
    hosts.write_text(hosts.read_text().rpartition("\n")[0])  # of one worker
    options = {
        "one": [],
        "processes": ["--workers", "2"],
        "threads": ["--workers", "2", "--threads"],
        "place": PLACE,
    }[form]

    def said(*more: str) -> str:
        line = [*command, "run", f"failing.py:{function}", *options, *more]
        ran = subprocess.run(line, capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        return ran.stderr

    own = said()
    assert own.startswith("Traceback (most recent call last):\n  File ")
    assert 'failing.py", line 2, in deeper' in own
    assert "ValueError: no 3\n" in own
    assert own.count("Traceback") == 1
    assert "pointstamp/" not in own
    assert own.splitlines()[-1].startswith("pointstamp: ")
    whole = said("--traceback")
    assert 'failing.py", line 2, in deeper' in whole
    assert "pointstamp/cli/programs.py" in whole


# Over several machines; here, ports of this one.


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """A file of two workers, and a secret beside it."""
    lines = [f"127.0.0.1:{free_port()}  # a worker" for _ in range(2)]
    path, secret = tmp_path / "hosts", tmp_path / "secret"
    path.write_text("\n".join(["# two workers", "", *lines]))
    secret.write_text("a secret of some length\n")
    secret.chmod(0o600)
    return path


@pytest.fixture
def tls(tmp_path: Path, certificates: Certificates) -> Path:
    """A folder of certificates."""
    folder = tmp_path / "tls"
    folder.mkdir()
    for name in ("chain", "key", "roots"):
        (folder / f"{name}.pem").write_bytes(getattr(certificates, name))
    (folder / "key.pem").chmod(0o600)
    return folder


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_processes_that_are_started_apart_are_workers_of_one_program(
    command: list[str], program: Path, hosts: Path, tls: Path, is_encrypted: bool
) -> None:
    own = ["--hosts", str(hosts), "--secret", str(hosts.with_name("secret"))]
    own += ["--tls", str(tls)] if is_encrypted else []
    started = [
        subprocess.Popen(
            [*command, "run", f"{program}:main", "--process", str(index), *own, "--", "10"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    said = [json.loads(each.communicate(timeout=120)[0]) for each in started]
    assert [line[:2] for line in said] == [[0, 2], [1, 2]]
    assert sum(line[2] for line in said) == sum(n * n for n in range(10))
    assert [each.returncode for each in started] == [0, 0]


def test_a_worker_that_is_started_apart_and_exits_has_failed(
    command: list[str], program: Path, hosts: Path
) -> None:
    """It ended with the status that it gave, 0, and the others with 1."""
    own = ["--hosts", str(hosts), "--secret", str(hosts.with_name("secret"))]
    started = [
        subprocess.Popen(
            [*command, "run", f"{program}:leaves", "--process", str(index), *own],
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    said = [each.communicate(timeout=120)[1] for each in started]
    assert [each.returncode for each in started] == [1, 1]
    for text in said:
        assert "worker 1 called sys.exit(0) before it had a result" in text


def test_a_worker_that_waits_says_once_who_came_with_another_secret(
    command: list[str], program: Path, hosts: Path
) -> None:
    other = hosts.with_name("other")
    other.write_text("another secret of some length\n")
    other.chmod(0o600)

    def started(index: int, secret: Path) -> subprocess.Popen[str]:
        own = ["--process", str(index), "--hosts", str(hosts), "--secret", str(secret)]
        line = [*command, "run", f"{program}:main", *own, "--", "10"]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    waits = started(0, hosts.with_name("secret"))
    for _ in range(2):
        refused = started(1, other)
        assert "called worker 0" in refused.communicate(timeout=120)[1]
        assert refused.returncode == 1
    comes = started(1, hosts.with_name("secret"))
    assert [comes.communicate(timeout=120)[1], comes.returncode] == ["", 0]
    [said] = waits.communicate(timeout=120)[1].splitlines()
    assert said.startswith("pointstamp: refused what called from 127.0.0.1, port ")
    assert "as worker 1" in said
    assert "secret" in said
    assert waits.returncode == 0


def test_the_error_of_a_port_that_is_taken_advises_what_a_hosts_file_allows(
    run: Run, program: Path, hosts: Path
) -> None:
    last = hosts.read_text().splitlines()[-1].partition("#")[0].strip()
    with socket.create_server(("127.0.0.1", int(last.rpartition(":")[2]))):
        ran = run("run", "my_program.py:main", *PLACE[:1], "1", *PLACE[2:], "--", "10")
    assert ran.status == 1
    assert ran.err.endswith("and the port must be free\n")


PLACE = ["--process", "0", "--hosts", "hosts", "--secret", "secret"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--process", "0"], "--process I, --hosts FILE and --secret FILE go together"),
        (["--process", "2", "--hosts", "hosts", "--secret", "secret"], "lists 2 workers, 0 to 1"),
        (["--process", "0", "--hosts", "nope", "--secret", "secret"], "nope: cannot be read: No"),
        (["--process", "0", "--hosts", "my_program.py", "--secret", "secret"], "is not HOST:PORT"),
        (["--process", "0", "--hosts", "hosts", "--secret", "short"], "at least 16 bytes, found 5"),
        (["--process", "0", "--hosts", "hosts", "--secret", "open"], "others can read this secret"),
        ([*PLACE, "--tls", "none"], "chain.pem: cannot be read: No"),
        ([*PLACE, "--tls", "damaged"], "no certificates that can be used"),
        (["--tls", "tls"], "--process I, --hosts FILE and --secret FILE go together"),
        (
            ["--process", "0", "--hosts", "hosts", "--secret", "secret", "--workers", "2"],
            "each line of --hosts is one worker",
        ),
    ],
)
def test_places_that_cannot_be_are_refused(
    run: Run, program: Path, hosts: Path, tls: Path, args: list[str], said: str
) -> None:
    (tls.parent / "damaged").mkdir()
    for file in tls.iterdir():
        (tls.parent / "damaged" / file.name).write_text("no certificate")
        (tls.parent / "damaged" / file.name).chmod(0o600)
    hosts.with_name("short").write_text("short")
    hosts.with_name("open").write_text("a secret of some length\n")
    hosts.with_name("open").chmod(0o644)
    ran = run("run", "my_program.py:main", *args, "--", "10")
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_what_waits_goes_to_disk_beyond_a_limit(run: Run, program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "spilled"
    folder.mkdir()
    limited = ["--memory-limit", "1MB", "--spill-directory", str(folder)]
    ran = run("run", f"{program}:waits", *limited, "--", "x")
    received, has_spilled, peak_bytes = json.loads(ran.out)
    assert (received, has_spilled) == (200_000, True)
    assert peak_bytes <= 1_000_000
    assert not list(folder.iterdir())


def test_a_limit_that_is_no_size_is_named(run: Run, program: Path) -> None:
    ran = run("run", f"{program}:waits", "--memory-limit", "much", "--", "x")
    assert ran.status == 2
    assert "memory_limit='much' is no size" in ran.err


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_whose_output_nothing_reads_any_more_ends_silently(
    program: Path, workers: int
) -> None:
    command = [sys.executable, "-m", "pointstamp", "run", f"{program}:prints"]
    with subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert ran.stdout.readline().endswith(" 0\n")
        ran.stdout.close()
        assert ran.wait() == 141
        assert ran.stderr.read() == ""


def test_a_pipe_that_breaks_elsewhere_is_an_error(run: Run, program: Path) -> None:
    ran = run("run", f"{program}:breaks")
    assert ran.status == 1
    assert "of another pipe" in ran.err


def test_a_program_that_starts_workers_when_it_is_imported_is_refused(tmp_path: Path) -> None:
    """Each of its workers started workers, which started workers."""
    path = tmp_path / "starting.py"
    path.write_text(
        "import pointstamp as ps\n\ndef main(worker):\n    return worker.index\n\n"
        "print(ps.execute(main, workers=2))\n"
    )
    words = [sys.executable, path]  # as a script, nothing imports it
    assert subprocess.run(words, capture_output=True, text=True).stdout == "[0, 1]\n"
    words = [sys.executable, "-m", "pointstamp", "run", f"{path}:main"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 2
    assert "a module that workers import starts workers itself" in ran.stderr
    assert "if __name__ == '__main__'" in ran.stderr
