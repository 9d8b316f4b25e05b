"""`pointstamp run`: a program of one's own on workers of this machine, or of several.

The program is a file and a function in it, `program.py:main`, which is called as
`ps.execute(main, *args)` calls it: with the worker, and with the words after `--`. The file
is imported as a module, here and in the workers, so what it does under
`if __name__ == "__main__"` it does not do here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from pointstamp.cli.request import LogTo, log_option
from pointstamp.errors import UsageError

Program = Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="What to call.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- ARG...", help="What to call it with, as text.")
]
Workers = Annotated[int, typer.Option(metavar="N", min=1, help="How many.")]
Process = Annotated[
    int | None,
    typer.Option(metavar="I", help="Be worker I, from 0, of those that --hosts lists."),
]
Hosts = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="HOST:PORT of each worker, a line each; the same everywhere."
    ),
]
Secret = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A secret that these workers share.")
]
Tls = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Encrypt between them: it has chain.pem, key.pem and roots.pem."
    ),
]
Accumulate = Annotated[
    bool,
    typer.Option("--accumulate", help="Add up the progress of the workers of each machine."),
]
Connections = Annotated[
    str,
    typer.Option(
        metavar="worker|machine",
        help="With --hosts: each two workers, or each two hosts, have a connection.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Per worker, such as 2GB: what waits beyond it goes to disk."
    ),
]
SpillTo = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Where it goes; the system's otherwise.")
]
Threads = Annotated[bool, typer.Option("--threads", help="As threads of this process.")]


def run(
    program: Program,
    args: Arguments = None,
    workers: Workers = 1,
    threads: Threads = False,
    process: Process = None,
    hosts: Hosts = None,
    secret: Secret = None,
    tls: Tls = None,
    accumulate: Accumulate = False,
    connections: Connections = "worker",
    memory_limit: Memory = None,
    spill_directory: SpillTo = None,
    log: LogTo = None,
) -> None:
    """Run a program of your own: FUNCTION(worker, *ARGS) on each worker."""
    from pointstamp.runtime.execute import execute
    from pointstamp.runtime.host_file import run_process

    options = {
        "accumulate": accumulate,
        "memory_limit": memory_limit,
        "spill_directory": spill_directory,
        **log_option(log),
    }
    from pointstamp.communication.tcp import PER_WORKER, check_connections

    check_connections(connections)
    main, words = load(program), args or []
    check_arguments(program, main, words)
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
    run_process(main, words, process, hosts, secret, tls, warn=_warn, **options)


def _warn(what: str) -> None:
    print(f"pointstamp: {what}", file=sys.stderr, flush=True)


def load(program: str) -> Callable[..., Any]:
    """The function that `program`, `FILE.py:FUNCTION`, names.

    Raises
    ------
    UsageError
        If there is none, or it is not one that workers can call.
    """
    from pointstamp.communication.target import check_main

    file, _, name = program.rpartition(":")
    if not file or not name:
        raise UsageError(f"{program!r} is not FILE.py:FUNCTION, as in program.py:main")
    path = Path(file).resolve()
    if path.is_dir():
        raise UsageError(f"{file}: it is a folder, and not a file of Python, as program.py is")
    if not path.is_file():
        raise UsageError(f"{file}: there is no such file (looked from {Path.cwd()})")
    module = _imported(path)
    if not hasattr(module, name):
        functions = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        there = f"there are {', '.join(functions)}" if functions else "there is no function in it"
        raise UsageError(f"{file} has no {name!r}; {there}")
    main = getattr(module, name)
    if not callable(main):
        raise UsageError(f"{program} is of type {type(main).__name__}, which cannot be called")
    check_main(main)
    return main  # type: ignore[no-any-return]


def _imported(path: Path) -> Any:
    """The module of a file, under its own name, by which the workers find it too."""
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise UsageError(f"{path.name} is imported as a module: name it like one, as program.py")
    sys.path.insert(0, str(path.parent))
    module = import_module(path.stem)
    if Path(module.__file__ or "").resolve() != path:
        raise UsageError(
            f"{path.name} is imported as the module {path.stem!r}, and that is another here "
            f"({module.__file__ or 'built in'}); give the file another name"
        )
    return module


def check_arguments(program: str, main: Callable[..., Any], args: list[str]) -> None:
    """Raise UsageError if `main(worker, *args)` cannot be called."""
    try:
        taken = signature(main)
    except ValueError:
        return  # of something that says nothing of itself
    try:
        taken.bind(None, *args)
    except TypeError as error:
        raise UsageError(
            f"{program} takes {taken}, and would be called with a worker and {args}: {error}"
        ) from None
