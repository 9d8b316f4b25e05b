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
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from pointstamp.cli import streams
from pointstamp.errors import UsageError

Program = Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="What to call.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- ARG...", help="What to call it with, as text.")
]
Workers = Annotated[int, typer.Option(metavar="N", min=1, help="How many.")]
Threads = Annotated[bool, typer.Option("--threads", help="As threads of this process.")]
LogTo = Annotated[
    Path | None,
    typer.Option("--log", metavar="FOLDER", help="Have the workers write down what they do."),
]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")]


def run(
    program: Program,
    args: Arguments = None,
    workers: Workers = 1,
    threads: Threads = False,
    log: LogTo = None,
    traceback: Traceback = False,
) -> None:
    """Run a program of your own: FUNCTION(worker, *ARGS) on each worker."""
    from pointstamp.cli.ending import end_of

    def launch() -> int:
        from pointstamp.observability.log import Log
        from pointstamp.runtime.execute import execute

        main = load(program)
        check_arguments(program, main, args or [])
        options: dict[str, Any] = {} if log is None else {"log": Log(log)}
        execute(main, *(args or []), workers=workers, threads=threads, **options)
        return streams.DONE

    raise typer.Exit(end_of(launch, with_traceback=traceback, left="all workers have ended"))


def load(program: str) -> Callable[..., Any]:
    """The function that `program`, `FILE.py:FUNCTION`, names.

    Raises
    ------
    UsageError
        If there is none, or it is not one that workers can call.
    """
    file, _, name = program.rpartition(":")
    if not file or not name:
        raise UsageError(f"{program!r} is not FILE.py:FUNCTION, as in program.py:main")
    path = Path(file).resolve()
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
    _check_kind(program, main)
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


def _check_kind(program: str, main: Any) -> None:
    if not callable(main):
        raise UsageError(f"{program} is a {type(main).__name__}, and is to be called by workers")
    if iscoroutinefunction(main) or isasyncgenfunction(main):
        raise UsageError(
            f"{program} is an async function: to call it would run nothing; workers call a plain "
            "function, in which operators may be async"
        )
    if isgeneratorfunction(main):
        raise UsageError(
            f"{program} is a generator: to call it would run nothing; let it return a value"
        )


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
