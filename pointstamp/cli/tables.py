"""Tables and numbers for people, as Rich draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import IO, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

Thing = TypeVar("Thing")


def console_for(file: IO[str]) -> Console:
    """A console that shows text as it is.

    Names of files and patterns have brackets and colons in them, which are no markup.
    """
    return Console(file=file, highlight=False, markup=False, emoji=False)


def table(
    things: Iterable[Thing],
    columns: Mapping[str, Callable[[Thing], object]],
    texts: int = 0,
    left: int = 0,
) -> Table:
    """A row for each thing, a column for each heading and what it shows of a thing.

    All columns are numbers, but for the last `texts`, with `left` more blanks before each.
    """
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, left))
    for i, heading in enumerate(columns):
        if i < len(columns) - texts:
            drawn.add_column(heading, justify="right", no_wrap=True)
        else:
            drawn.add_column(heading, overflow="fold")
    for thing in things:
        cells = [column(thing) for column in columns.values()]
        drawn.add_row(*(Text(f"{c:,}" if isinstance(c, int) else str(c)) for c in cells))
    return drawn


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "worker"), counted(2, "worker")
    ('1 worker', '2 workers')
    """
    return f"{n} {thing}{'' if n == 1 else 's'}"


def megabytes(n_bytes: int) -> str:
    """Bytes for people.

    >>> megabytes(123_456_789)
    '123 MB'
    """
    return f"{n_bytes / 1e6:,.0f} MB"
