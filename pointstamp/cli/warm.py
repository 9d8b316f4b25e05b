"""`pointstamp warm`: compile all kernels now, so that no later run waits for that.

Once per machine, or when an image is built. It prints a line every few seconds. Interrupted, it
leaves what was compiled until then, and goes on there the next time. What is compiled, and how,
is the business of `kernels/precompile.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pointstamp.cli.request import Json
from pointstamp.cli.streams import answering
from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from rich.console import Console


def warm(json: Json = False) -> None:
    """Compile all kernels ahead, so that no first run has to."""
    from json import dumps

    from pointstamp.cli.tables import console_for

    began = time.monotonic()
    try:
        n_forms, n_compiled = _compile(console_for(sys.stderr))
    except OSError as error:
        raise PointstampError(f"compiled code cannot be written: {error}") from error
    seconds = time.monotonic() - began
    with answering():
        if json:
            counts = {"forms": n_forms, "compiled": n_compiled, "seconds": round(seconds, 3)}
            print(dumps({"command": "warm", **counts}))
        else:
            print(_in_words(n_forms, n_compiled, seconds))


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
    from pointstamp.cli.display import LINE_EVERY_S, Display

    display = Display("warm", 0, console)

    def report(name: str, done: int, n_forms: int) -> None:
        if display.silent_s() >= LINE_EVERY_S:
            display.print_line(f"{done} of {n_forms}, {name}")

    return report


def _in_words(n_forms: int, n_compiled: int, seconds: float) -> str:
    if not n_forms:
        return (
            "kernels run as plain NumPy here, as POINTSTAMP_NUMBA=0 is set or Numba cannot be "
            "imported: there is nothing to compile"
        )
    if not n_compiled:
        return f"all {n_forms} forms of kernels were compiled before; {seconds:.1f} s"
    return f"compiled {n_compiled} of {n_forms} forms of kernels in {seconds:.1f} s"
