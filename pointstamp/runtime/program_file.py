"""A program as `FILE.py:FUNCTION`: the function, which `ps.execute(main, *args)` can call.

The file is imported as a module, here and in the workers, so what it does under
`if __name__ == "__main__"` it does not do here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from pointstamp.communication.target import check_main
from pointstamp.errors import UsageError


def file_of(program: str) -> tuple[Path, str]:
    """The file that `program`, `FILE.py:FUNCTION`, names, and the name of the function.

    Raises
    ------
    UsageError
        If there is no such file.
    """
    file, _, name = program.rpartition(":")
    if not file or not name:
        raise UsageError(f"{program!r} is not FILE.py:FUNCTION, as in program.py:main")
    path = Path(file).resolve()
    if path.is_dir():
        raise UsageError(f"{file}: it is a folder, and not a file of Python, as program.py is")
    if not path.is_file():
        raise UsageError(f"{file}: there is no such file (looked from {Path.cwd()})")
    return path, name


def load(program: str, args: list[str], given: str = "worker") -> Callable[..., Any]:
    """The function that `program`, `FILE.py:FUNCTION`, names.

    Parameters
    ----------
    given : str
        What it is called with before `args`: "worker", or "scope" as by `ps.run`.

    Raises
    ------
    UsageError
        If there is none, or it is nothing that workers can call with that.
    """
    path, name = file_of(program)
    file = program.rpartition(":")[0]
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
    _check_arguments(program, main, args, given)
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


def _check_arguments(program: str, main: Callable[..., Any], args: list[str], given: str) -> None:
    """Raise UsageError if `main(worker, *args)`, or as it is given, cannot be called."""
    try:
        taken = signature(main)
    except ValueError:
        return  # of something that says nothing of itself
    try:
        taken.bind(None, *args)
    except TypeError as error:
        raise UsageError(
            f"{program} takes {taken}, and would be called with a {given} and {args}: {error}"
        ) from None
