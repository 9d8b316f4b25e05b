"""Two runs of a benchmark, an hour or more apart, as one, with the figures that hold in both.

A case has the samples of both where the median of one run is within the spread of the other. Where
it is not, it has none, and the page says why.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.harness.results import Results, Row, load

DIFFER = "two runs, an hour or more apart, differ by more than their spreads"


def pooled(first: Results, second: Results) -> Results:
    """Both runs as one, of the second one's date.

    Raises
    ------
    ValueError
        If they are of different sizes, machines or cases, or if answers differ.
    """
    for what in ("name", "size", "machine", "versions"):
        one, other = getattr(first, what), getattr(second, what)
        if one != other:
            raise ValueError(
                f"{first.name}: the {what} of one run is {one}, and {other} of another"
            )
    found = {_key(row): row for row in first.rows}
    if found.keys() != {_key(row) for row in second.rows}:
        raise ValueError(f"{first.name}: the runs have different cases")
    rows = [_together(found[_key(row)], row) for row in second.rows]
    others_share = max(first.others_share, second.others_share)
    return replace(second, rows=rows, others_share=others_share, n_runs=2)


def pool(name: str, first: Path, second: Path) -> Results:
    """The same, of a benchmark's results in two folders."""
    return pooled(load(first / f"{name}.json"), load(second / f"{name}.json"))


def _key(row: Row) -> tuple[str, str, str | None]:
    return row.who, str(row.at), row.mode


def _together(first: Row, second: Row) -> Row:
    """One row of two; without samples where they do not agree."""
    if first.missing or second.missing:
        return first if first.missing else second
    if first.answer != second.answer:
        raise ValueError(
            f"{first.who} {first.at} answers {first.answer!r}, and {second.answer!r} in another run"
        )
    if not (_is_within(first, second) or _is_within(second, first)):
        return replace(second, seconds=[], peaks=[], missing=DIFFER)
    peaks = max(first.peaks, second.peaks, key=sum)
    return replace(second, seconds=first.seconds + second.seconds, peaks=peaks)


def _is_within(one: Row, other: Row) -> bool:
    """Whether the median of one is within the spread of the other."""
    return min(other.seconds) <= median(one.seconds) <= max(other.seconds)
