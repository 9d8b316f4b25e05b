"""`pointstamp run`: a program of one's own on workers of this machine, or of several.

The function is called as `ps.execute(main, *args)` calls it: with the worker, and with the words
after `--`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pointstamp.cli.request import LogTo, log_to
from pointstamp.cli.streams import say
from pointstamp.errors import UsageError


def run(
    program: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="What to call.")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARG...", help="What to call it with, as text.")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="How many.")] = 1,
    threads: Annotated[bool, typer.Option("--threads", help="As threads of this process.")] = False,
    process: Annotated[
        int | None,
        typer.Option(metavar="I", help="Be worker I, from 0, of those that --hosts lists."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="HOST:PORT of each worker, a line each; the same everywhere."
        ),
    ] = None,
    secret: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A secret that these workers share.")
    ] = None,
    tls: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Encrypt between them: it has chain.pem, key.pem and roots.pem."
        ),
    ] = None,
    accumulate: Annotated[
        bool,
        typer.Option("--accumulate", help="Add up the progress of the workers of each machine."),
    ] = False,
    connections: Annotated[
        str,
        typer.Option(
            metavar="worker|machine",
            help="With --hosts: each two workers, or each two hosts, have a connection.",
        ),
    ] = "worker",
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Per worker, such as 2GB: what waits beyond it goes to disk."
        ),
    ] = None,
    spill_directory: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where it goes; the system's otherwise.")
    ] = None,
    log: LogTo = None,
) -> None:
    """Run a program of your own: FUNCTION(worker, *ARGS) on each worker."""
    from pointstamp.communication.tcp import PER_WORKER, check_connections
    from pointstamp.runtime.execute import execute
    from pointstamp.runtime.host_file import run_process
    from pointstamp.runtime.program_file import load

    options: dict[str, Any] = {
        "accumulate": accumulate,
        "memory_limit": memory_limit,
        "spill_directory": spill_directory,
        "log": log_to(log),
    }
    check_connections(connections)
    words = args or []
    main = load(program, words)
    if process is None and hosts is None and secret is None and tls is None:
        if connections != PER_WORKER:
            raise UsageError("--connections machine is for several machines: name --hosts")
        execute(main, *words, workers=workers, threads=threads, **options)
        return
    if process is None or hosts is None or secret is None:
        raise UsageError("--process I, --hosts FILE and --secret FILE go together: name all")
    if workers > 1 or threads:
        raise UsageError("each line of --hosts is one worker: leave out --workers and --threads")
    options["connections"] = connections
    run_process(main, words, process, hosts, secret, tls, warn=say, **options)
