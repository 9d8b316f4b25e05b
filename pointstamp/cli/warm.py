"""`pointstamp warm`: compile all kernels now, so that no later run waits for that.

Once per machine, or when an image is built. It shows which kernel it is at: a bar on a
terminal, elsewhere a line every few seconds. Interrupted, it leaves what was compiled
until then, and goes on there the next time.

What is compiled, and how, is the business of `kernels/precompile.py`.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pointstamp.cli import streams

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[str, int, int], None]

FAILED, INTERRUPTED = 1, 130


def warm(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")
    ] = False,
) -> None:
    """Compile all kernels ahead, so that no first run has to."""
    from pointstamp.cli.display import console_for

    n_forms, n_compiled, seconds = _compile(console_for(sys.stderr))
    told = _as_json if json else _in_words
    try:
        print(told(n_forms, n_compiled, seconds), flush=True)
    except OSError as error:
        raise typer.Exit(streams.unwritten(error)) from None


def _compile(console: Console) -> tuple[int, int, float]:
    """How many forms there are, how many had to be compiled, and the seconds that it took."""
    from pointstamp.kernels import precompile as kernels
    from pointstamp.kernels.jit import numba_wanted

    began = time.monotonic()
    if not numba_wanted():
        return 0, 0, time.monotonic() - began
    try:
        with _interruptible(), _shown(console) as report:
            n_compiled = kernels.compile_all(report)
    except KeyboardInterrupt:
        print("pointstamp: interrupted; what was compiled is kept", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        print(f"pointstamp: compiled code cannot be written: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    n_forms = sum(len(forms) for names in kernels.FORMS.values() for forms in names.values())
    return n_forms, n_compiled, time.monotonic() - began


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C raise meanwhile, where it is not to be ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _shown(console: Console) -> Iterator[Report]:
    """What is to be called after each form, and shows how far it is."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if not console.is_terminal:
        yield _logged(console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("warm: {task.completed} of {task.total} forms", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def report(name: str, done: int, n_forms: int) -> None:
            progress.update(task, description=name, completed=done, total=n_forms)

        yield report


def _logged(console: Console) -> Report:
    """Prints a line now and then."""
    from pointstamp.cli.display import LINE_EVERY_S

    began = last = time.monotonic()

    def report(name: str, done: int, n_forms: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_EVERY_S:
            last = now
            console.print(f"warm {now - began:6.1f} s  {done} of {n_forms}, {name}", soft_wrap=True)

    return report


def _as_json(n_forms: int, n_compiled: int, seconds: float) -> str:
    from json import dumps

    told = {"forms": n_forms, "compiled": n_compiled, "seconds": round(seconds, 3)}
    return dumps({"command": "warm", **told})


def _in_words(n_forms: int, n_compiled: int, seconds: float) -> str:
    if not n_forms:
        return (
            "kernels run as plain NumPy here, as POINTSTAMP_NUMBA=0 is set or Numba cannot be "
            "imported: there is nothing to compile"
        )
    if not n_compiled:
        return f"all {n_forms} forms of kernels were compiled before; {seconds:.1f} s"
    return f"compiled {n_compiled} of {n_forms} forms of kernels in {seconds:.1f} s"
