"""Rows as a table of HTML, for programs that show values so, as notebooks do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN_ROWS = 20
"""How many rows of a result are shown; its `repr`, which has all, is not made."""


def html_table(names: Iterable[str], rows: Sequence[Iterable[Any]], n_rows: int) -> str:
    """A table with these columns and rows, and how many there are in all.

    >>> html_table(["n"], [(7,)], 2)
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>7</td></tr></tbody></table>\
<p>1 of 2 rows</p>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    shown = f"{len(rows):,} of {n_rows:,}" if len(rows) < n_rows else f"{n_rows:,}"
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{shown} row{'' if n_rows == 1 else 's'}</p>"
    )


def _cell(value: Any) -> str:
    return f"<td>{escape(value if isinstance(value, str) else repr(value))}</td>"
