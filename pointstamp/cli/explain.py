"""`pointstamp explain PID`: what the workers of a running program wait for.

For a program that seems to hang. PID is that of the process that started the workers, or of
any of them on the same machine; the process that started them is asked, and asks each (see
`runtime.introspection`). Of a process that is part of no program, such as a shell, the programs
below it are named, and none is asked. No process is signalled.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from pointstamp.cli.streams import answering
from pointstamp.errors import CommunicationError, UsageError


def explain(
    pid: Annotated[int, typer.Argument(metavar="PID", min=1, help="Any process of the program.")],
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for answers.")
    ] = 5.0,
) -> None:
    """Ask the workers of a running program what they wait for; needs Linux.

    Exit status: 0 if every process with workers answered, 1 if one did not, 2 if there is none.
    """
    from pointstamp.runtime.introspection import ask, find_below, find_program
    from pointstamp.runtime.signal_handler import in_words

    _become_user_of(pid)
    program = find_program(pid)
    found = None if program is None else ask(program, timeout)
    if program == pid and found is None:
        raise CommunicationError(
            f"process {pid} did not answer in {timeout:g} s: it is in a call that lets no other "
            "thread run, or stopped, or has ended"
        )
    if not found or pid not in (program, *(each.process for each in found)):
        if below := ", ".join(f"`pointstamp explain {other}`" for other in find_below(pid)):
            raise UsageError(
                f"process {pid} is part of no Pointstamp program, and nothing was asked; below "
                f"it there is one for each of {below}"
            )
        raise UsageError(
            f"process {pid} runs no workers that can be asked: none are there at the moment, "
            "or it is another user's; where this is not Linux, `kill -USR1` of the process "
            "that started the workers has it print this to its own standard error"
        )
    with answering():
        for each in found:
            if each.text is not None:
                print(in_words(each), end="\n\n")
    silent = [in_words(each) for each in found if each.text is None]
    if silent:
        raise CommunicationError("\n".join(silent))


def _become_user_of(pid: int) -> None:
    """As root, be the user of that process from now on: what it answers is unpickled."""
    try:
        owner = Path(f"/proc/{pid}").stat()
    except OSError:
        return
    if os.geteuid() == 0 != owner.st_uid:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
