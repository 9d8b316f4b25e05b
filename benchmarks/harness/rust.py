"""Programs in Rust as contenders: found, built, run, and their clocks read.

They are no part of this project. A folder of their sources beside the checkout, `../shared/peers`,
or another one that `POINTSTAMP_PEERS` names, has a `build.sh` that builds them without a network
and prints where the programs are; the first time that takes minutes, later it only prints.

Two kinds of programs. `race` has its own clock, begins when all workers are there, and prints
what worker 0 found:

    R us_per_round 3.412 cpu_s 0.102000 wall_s 0.102360 count 4711

The examples of timely dataflow have no clock. They are timed as a whole, and what they take for
hardly any work is subtracted.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from ast import literal_eval
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Timer
from typing import Any, Literal

from benchmarks.harness.case import PART, RUST, At, Case, Effort, Measure, Reading
from benchmarks.harness.memory import peak_of

VARIABLE = "POINTSTAMP_PEERS"
BESIDE = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "peers"

BUILD_LIMIT_S = 1200.0
RUN_LIMIT_S = 120.0
LISTENING_S = 0.1
"""The second process begins so much later: while the first does not listen yet, it would sleep."""

TIMELY = f"{RUST} timely"
THREADS = f"{TIMELY}, threads"

Argument = object | Callable[[], object]
"""What is known only where the case is measured, as the path of an input is, is a function."""


@dataclass(frozen=True)
class Form:
    """How many workers there are, and of what."""

    who: str
    workers: int
    processes: int = 1

    def fewer(self, rounds: int) -> int:
        """How many rounds there is time for, if one worker makes so many.

        >>> Form("Rust", 1).fewer(1_000), Form("Rust", 2, processes=2).fewer(1_000)
        (1000, 50)
        """
        return max(10, rounds // (20 if self.processes > 1 else 5 if self.workers > 1 else 1))

    def options(self, process: int, hosts: Path) -> list[str]:
        """timely's command line for one of the processes.

        >>> Form("Rust", 2).options(0, Path("hosts"))
        ['-w2']
        >>> Form("Rust", 2, processes=2).options(1, Path("hosts"))
        ['-n2', '-p1', '-h', 'hosts']
        """
        if self.processes == 1:
            return [f"-w{self.workers}"]
        return [f"-n{self.processes}", f"-p{process}", "-h", str(hosts)]


ALONE = Form(TIMELY, 1)
TWO_THREADS = Form(THREADS, 2)
TWO_PROCESSES = Form(TIMELY, 2, processes=2)
FORMS = (ALONE, TWO_THREADS, TWO_PROCESSES)

Told = Literal["all", "part", "unlike"]
"""What two workers print of the answer: all of it; what worker 0 of ours has, too; or a part that
worker 0 of ours does not have."""


class Absent(LookupError):
    """Rust was not run; the message says why."""


@cache
def sources() -> Path:
    """The folder with the sources and `build.sh`.

    Raises
    ------
    Absent
        If there is none.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else BESIDE
    if not (folder / "build.sh").exists():
        where = VARIABLE if named else "../shared/peers"  # no path of this machine: it is printed
        raise Absent(f"Rust was not run: its programs are built in {where}, which is not there")
    return folder


@cache
def programs() -> Path:
    """The folder with the programs, built if they are not.

    Raises
    ------
    Absent
        If there are no sources, or they cannot be built here.
    """
    script = sources() / "build.sh"
    if shutil.which("bash") is None:
        raise Absent("Rust was not run: there is no bash to build it with")
    built = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False
    )
    if built.returncode != 0:
        (*_, last) = ["build.sh failed", *built.stderr.split("\n")[:-1]]
        raise Absent(f"Rust was not run: {last[:200]}")
    return Path(built.stdout.split("\n")[-2])


def absent() -> str:
    """Why Rust cannot be run here, or nothing."""
    try:
        programs()
    except Absent as error:
        return str(error)
    return ""


# Answers, as `race` prints them.


def number(text: str) -> int:
    """The last word, a number.

    >>> number("arrived 4000000")
    4000000
    """
    return int(text.split()[-1])


def pair(text: str) -> list[Any]:
    """Two numbers in parentheses.

    >>> pair("(97000, 10000000)"), pair("(0.25, 1.5e-6)")
    ([97000, 10000000], [0.25, 1.5e-06])
    """
    return list(literal_eval(text))


# Cases.


def in_rounds(*arguments: Argument, rounds: int, at: At | None = None) -> list[Case]:
    """Cases of `race` whose last argument is how many rounds it makes, of which one is measured."""
    return [
        case
        for form in FORMS
        for n in [form.fewer(rounds)]
        for case in race(*arguments, n, amount=lambda _, n=n: n, at=at, forms=(form,))
    ]


def race(
    *arguments: Argument,
    amount: Callable[[Form], float],
    at: At | None = None,
    data: str | None = None,
    answer: Callable[[str], Any] | None = None,
    told: Told = "part",
    forms: Sequence[Form] = FORMS,
    name: str = "",
) -> list[Case]:
    """Cases of `race`, which has its own clock.

    Parameters
    ----------
    arguments : of the program, without timely's.
    amount : the pieces of work of all workers.
    at : where the cases are, beside the number of workers.
    data, answer, told : what the answer has to be equal to, how it is read, and how much of
        it two workers print.
    name : of a variant, after "Rust timely".
    """

    def once(form: Form) -> Reading:
        ran = run("race", (*arguments, "--"), form)
        wall_s, rest = clock(ran.lines)
        found = answer(rest) if answer else None
        if form.workers == 1 or told == "all":
            return Reading([wall_s], ran.peaks, found)
        details = {PART: found} if answer and told == "part" else {}
        return Reading([wall_s], ran.peaks, None, details)

    return [
        Case(
            f"{form.who}, {name}" if name else form.who,
            _repeated(partial(once, form)),
            amount(form),
            {**(at or {}), "workers": form.workers},
            data,
            absent=absent,
        )
        for form in forms
    ]


ENOUGH_ROUNDS = 20_000
"""So many rounds of an example, of some microseconds, that its start does not count."""


def example(program: str, *arguments: Argument, rounds: int) -> list[Case]:
    """Cases of an example of timely's, whose first argument is how many rounds it makes."""

    def often(form: Form) -> int:
        return max(ENOUGH_ROUNDS, form.fewer(20 * rounds))

    def once(form: Form) -> Reading:
        nothing = run(program, (2, *arguments), form)
        whole = run(program, (often(form), *arguments), form)
        return Reading([whole.wall_s - nothing.wall_s])

    return [
        Case(
            form.who,
            _repeated(partial(once, form)),
            often(form) - 2,
            {"workers": form.workers},
            absent=absent,
        )
        for form in FORMS
    ]


def _repeated(once: Callable[[], Reading]) -> Measure:
    """As many runs as are wanted, or one where that takes long."""

    def measure(effort: Effort) -> Reading:
        first = once()
        is_short = first.seconds[0] < effort.patience_s
        readings = [first, *(once() for _ in range(effort.samples - 1 if is_short else 0))]
        if any(each.answer != first.answer or each.details != first.details for each in readings):
            raise RuntimeError(f"answers differ from run to run: {readings}")
        return Reading(
            [each.seconds[0] for each in readings],
            max((each.peaks for each in readings), key=sum),
            first.answer,
            first.details,
        )

    return measure


def clock(lines: Sequence[str]) -> tuple[float, str]:
    """The seconds by the program's clock, and what follows them.

    >>> clock(["R us_per_round 3.4 cpu_s 0.102 wall_s 0.105 count 4711"])
    (0.105, 'count 4711')
    """
    for line in lines:
        if line.startswith("R "):
            _, _, after = line.partition(" wall_s ")
            seconds, _, rest = after.partition(" ")
            return float(seconds), rest.strip()
    raise RuntimeError(f"the program printed no result: {' '.join(lines)[:200]!r}")


# Running.


@dataclass
class Ran:
    """Seconds of the whole, what the first process printed, peak bytes of each process."""

    wall_s: float
    lines: list[str]
    peaks: list[int]


def run(program: str, arguments: Sequence[Argument], form: Form) -> Ran:
    """Run a program once, in one process or several.

    Raises
    ------
    RuntimeError
        If it fails, or is not done after two minutes.
    """
    given = [str(each() if callable(each) else each) for each in arguments]
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="pointstamp-bench-")))
        hosts = folder / "hosts"
        hosts.write_text("\n".join(_free_addresses(form.processes)) + "\n")
        processes: list[subprocess.Popen[str]] = []
        for process in range(form.processes):
            if process:
                time.sleep(LISTENING_S)
            command = [str(programs() / program), *given, *form.options(process, hosts)]
            began = time.perf_counter()
            started = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            processes.append(held.enter_context(started))
        held.callback(_kill, processes)
        limit = Timer(RUN_LIMIT_S, _kill, [processes])
        limit.start()
        held.callback(limit.cancel)
        lines, peaks = _read(processes)
        statuses = [process.wait() for process in processes]
        wall_s = time.perf_counter() - began
    if any(statuses):
        # Without the arguments, which name files: the page has it.
        raise RuntimeError(f"{program} {given[0]} ended with {statuses}: {' '.join(lines)[-200:]}")
    return Ran(wall_s, lines, peaks)


def _read(processes: Sequence[subprocess.Popen[str]]) -> tuple[list[str], list[int]]:
    """What the first process prints; and at its result, before it ends, how large all have been."""
    lines: list[str] = []
    peaks: list[int] = []
    assert processes[0].stdout is not None
    for line in processes[0].stdout:
        if line.startswith("R "):
            found = [peak_of(process.pid) for process in processes]
            peaks = found if all(found) else []  # one of them has ended already
        lines.append(line.strip())
    for other in processes[1:]:
        assert other.stdout is not None
        other.stdout.read()
    return lines, peaks


def _kill(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End what still runs."""
    for process in processes:
        if process.poll() is None:
            process.kill()


def _free_addresses(n: int) -> list[str]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(n)]
        return [f"localhost:{each.getsockname()[1]}" for each in sockets]


def versions() -> dict[str, str]:
    """The versions of the crates, by what their sources say; nothing where they are not there."""
    import tomllib

    try:
        rust = sources() / "rust"
    except Absent:
        return {}
    manifests = {
        "timely": "timely/timely/Cargo.toml",
        "differential-dataflow": "differential/differential-dataflow/Cargo.toml",
    }
    found = {}
    for crate, manifest in manifests.items():
        if (rust / manifest).exists():
            package = tomllib.loads((rust / manifest).read_text())["package"]
            found[f"{crate} ({RUST})"] = str(package["version"])
    return found
