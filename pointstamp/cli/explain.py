"""`pointstamp explain PID`: what the workers of a running program wait for.

For a program that seems to hang. PID is that of any of its processes; all that have
workers are asked (see `runtime.introspection`), and go on as if nothing had been. Those that
do not answer in time are named: they are in the middle of something that does not come
back to Python, or stopped. Of a process that is part of no program, such as a shell, the programs
below it are listed, and none is asked.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

FAILED, MISUSED = 1, 2

Pid = Annotated[int, typer.Argument(metavar="PID", min=1, help="Any process of the program.")]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for answers.")
]


def explain(pid: Pid, timeout: Timeout = 5.0) -> None:
    """Ask the workers of a running program what they wait for; needs Linux.

    Exit status: 0 if every process with workers answered, 1 if one did not, 2 if there is none.
    """
    from pointstamp.runtime.introspection import ask, find_below, find_responders

    found = find_responders(pid)
    if not found:
        others = find_below(pid)
        for other in others:
            print(
                f"pointstamp: process {pid} is part of no Pointstamp program, and nothing was "
                f"asked; below it, process {other.pid} runs workers of program {other.program}: "
                f"`pointstamp explain {other.pid}`",
                file=sys.stderr,
            )
        if others:
            raise typer.Exit(MISUSED)
        print(
            f"pointstamp: process {pid} runs no workers that can be asked: none are there at the "
            "moment, or it is another user's, or it uses SIGUSR1 itself; where this is not "
            f"Linux, `kill -USR1 {pid}` has a worker print it to its own standard error",
            file=sys.stderr,
        )
        raise typer.Exit(MISUSED)
    answers = ask(found, timeout)
    for _, answer in sorted(answers.items()):
        if answer is not None:
            print(answer, end="\n\n")
    silent = [number for number, answer in sorted(answers.items()) if answer is None]
    for number in silent:
        print(
            f"pointstamp: process {number} did not answer in {timeout:g} s: it is in a call that "
            "does not come back to Python, or stopped, or has ended",
            file=sys.stderr,
        )
    if silent:
        raise typer.Exit(FAILED)
