"""What was measured, as rows: kept as JSON, one file per benchmark, and read again.

Seconds and amounts are kept as they came; medians, spreads and ratios are worked out
here, so that a page can be drawn again without measuring again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness.case import OURS, RUST, At, Benchmark, Quantity, Target

FOLDER = Path(__file__).resolve().parent.parent / "results"


@dataclass
class Row:
    """One case, measured once or in one of two modes; or the reason why it was not."""

    who: str
    at: dict[str, int | str]
    amount: float
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    mode: str | None = None
    answer: Any = None
    details: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    missing: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether this is Pointstamp."""
        return self.who.startswith(OURS)

    @property
    def is_rust(self) -> bool:
        """Whether this is a program in Rust."""
        return self.who.startswith(RUST)

    def value(self, quantity: Quantity) -> float:
        """The median, in the unit of `quantity`."""
        return quantity.of(median(self.seconds), self.amount)

    def p99(self, quantity: Quantity) -> float:
        """The sample that at most one in a hundred is worse than, in that unit."""
        ordered = sorted(self.seconds)
        return quantity.of(ordered[-1 - len(ordered) // 100], self.amount)

    def spread(self, quantity: Quantity) -> tuple[float, float]:
        """The least and the greatest sample, in that unit."""
        values = [quantity.of(seconds, self.amount) for seconds in self.seconds]
        return min(values), max(values)


@dataclass
class Results:
    """All rows of one run of a benchmark, with the machine and the versions."""

    name: str
    size: str
    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    rows: list[Row]
    input_bytes: dict[str, int] = field(default_factory=dict)
    others_share: float = 0.0
    """How much of the processors other programs took, before the run or after it."""
    n_runs: int = 1
    """How many runs the samples are of (`pooled`)."""

    def save(self, folder: Path = FOLDER) -> Path:
        """Write it to its file; the file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return path


def load(path: Path) -> Results:
    """Read what `save` wrote."""
    found = json.loads(path.read_text())
    return Results(**{**found, "rows": [Row(**row) for row in found["rows"]]})


def baseline_of(row: Row, rows: Sequence[Row], benchmark: Benchmark) -> Row | None:
    """The row that `row` is compared with: measured, and of the same input or of any.

    The first of `benchmark.baselines` that was; of its rows, the one that says most
    of what `row` says.
    """
    for who in benchmark.baselines:
        fitting = [
            other
            for other in rows
            if other.who == who and other.seconds and other.at.items() <= row.at.items()
        ]
        if fitting:
            return max(fitting, key=lambda other: len(other.at))
    return None


def times_baseline(row: Row, rows: Sequence[Row], benchmark: Benchmark) -> float | None:
    """How many times the baseline's time `row` takes; below 1, it is faster."""
    baseline = baseline_of(row, rows, benchmark)
    if baseline is None or baseline is row or not row.seconds:
        return None
    return _per_piece(row) / _per_piece(baseline)


def faster_peers(row: Row, rows: Sequence[Row]) -> list[Row]:
    """The rows of others that took less time than `row` for the same, fastest first.

    Peers that say how many workers they have are compared with as many of ours.
    """
    better = [
        other
        for other in rows
        if not other.is_ours
        and other.seconds
        and _same_input(other.at, row.at)
        and _per_piece(other) < _per_piece(row)
    ]
    return sorted(better, key=_per_piece)


def verdict(row: Row, target: Target, quantity: Quantity) -> str:
    """`stretch target`, `target` or `missed`: what of the target the row meets."""
    value = row.value(quantity)

    def meets(goal: float | None) -> bool:
        return goal is not None and (value >= goal if quantity.is_rate else value <= goal)

    return (
        "stretch target" if meets(target.stretch) else "target" if meets(target.value) else "missed"
    )


def point(at: At) -> str:
    """The input's part of `at`: how many workers there are does not change it."""
    return ",".join(f"{name}={value}" for name, value in at.items() if name != "workers")


def _same_input(theirs: At, ours: At) -> bool:
    return all(ours.get(name) == value for name, value in theirs.items())


def _per_piece(row: Row) -> float:
    return median(row.seconds) / row.amount
