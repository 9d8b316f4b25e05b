"""Numbers, places and tables, as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.case import At


def said(value: float) -> str:
    """A number in three figures.

    >>> said(0.01234), said(3.4567), said(123.4), said(35_990.0)
    ('0.0123', '3.46', '123', '36,000')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:.3g}"


def where(at: At) -> str:
    """The place of a case.

    >>> where({"edges": 1_000_000, "workers": 2}), where({"graph": "wiki-Vote"})
    ('1,000,000 edges, 2 workers', 'wiki-Vote')
    """
    return ", ".join(_place(name, value) for name, value in at.items())


def _place(name: str, value: int | str) -> str:
    if isinstance(value, str):
        return value
    if name in ("scale", "epoch"):
        return f"{name} {value:,}"
    noun = name[:-1] if value == 1 and name.endswith("s") else name
    return f"{value:,} {noun}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
