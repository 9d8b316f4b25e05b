"""`pointstamp warm`: compile all kernels now, so that no later run waits for that.

Once per machine, or when an image is built. It prints a line every few seconds. Interrupted, it
leaves what was compiled until then, and goes on there the next time. What is compiled, and how,
is the business of `kernels/precompile.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from pointstamp.cli import streams

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")]


def warm(json: Json = False) -> None:
    """Compile all kernels ahead, so that no first run has to."""
    from pointstamp.cli.display import console_for
    from pointstamp.cli.ending import raising_signals

    began = time.monotonic()
    try:
        with raising_signals():
            n_forms, n_compiled = _compile(console_for(sys.stderr))
    except KeyboardInterrupt:
        print("pointstamp: interrupted; what was compiled is kept", file=sys.stderr)
        raise typer.Exit(streams.INTERRUPTED) from None
    except OSError as error:
        print(f"pointstamp: compiled code cannot be written: {error}", file=sys.stderr)
        raise typer.Exit(streams.FAILED) from None
    said = _as_json if json else _in_words
    try:
        print(said(n_forms, n_compiled, time.monotonic() - began), flush=True)
    except OSError as error:
        raise typer.Exit(streams.unwritten(error)) from None


def _compile(console: Console) -> tuple[int, int]:
    """How many forms of kernels there are, and how many had to be compiled."""
    from pointstamp.kernels import precompile
    from pointstamp.kernels.jit import numba_wanted

    if not numba_wanted():
        return 0, 0
    n_compiled = precompile.compile_all(reporting(console))
    n_forms = sum(len(forms) for names in precompile.FORMS.values() for forms in names.values())
    return n_forms, n_compiled


def reporting(console: Console) -> Callable[[str, int, int], None]:
    """What is to be called after each form; prints a line now and then."""
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

    counts = {"forms": n_forms, "compiled": n_compiled, "seconds": round(seconds, 3)}
    return dumps({"command": "warm", **counts})


def _in_words(n_forms: int, n_compiled: int, seconds: float) -> str:
    if not n_forms:
        return (
            "kernels run as plain NumPy here, as POINTSTAMP_NUMBA=0 is set or Numba cannot be "
            "imported: there is nothing to compile"
        )
    if not n_compiled:
        return f"all {n_forms} forms of kernels were compiled before; {seconds:.1f} s"
    return f"compiled {n_compiled} of {n_forms} forms of kernels in {seconds:.1f} s"
