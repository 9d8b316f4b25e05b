"""Tables and numbers for people, as Rich draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text


def console_for(file: IO[str]) -> Console:
    """A console that shows text as it is.

    Names of files and patterns have brackets and colons in them, which are no markup.
    """
    return Console(file=file, highlight=False, markup=False, emoji=False)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 0, left: int = 0
) -> Table:
    """A table in which all columns are numbers, but for the last `texts`.

    There are `left` more blanks before each column.
    """
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, left))
    for i, heading in enumerate(headings):
        if i < len(headings) - texts:
            drawn.add_column(heading, justify="right", no_wrap=True)
        else:
            drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    return drawn


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "worker"), counted(2, "worker")
    ('1 worker', '2 workers')
    """
    return f"{n} {thing}{'' if n == 1 else 's'}"
