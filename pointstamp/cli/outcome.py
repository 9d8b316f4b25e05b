"""What came of a question, as values: for the summary, and for machines."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pointstamp.cli.edge_reading import Facts
from pointstamp.cli.progress import Report
from pointstamp.cli.request import Request
from pointstamp.cli.search import total
from pointstamp.cli.top_matches import merged_top
from pointstamp.formats.parquet import write_parquet


@dataclass
class Outcome:
    """What came of it, and how long each phase took, from when this was made.

    Attributes
    ----------
    facts : of the graph
    reports : of each worker; empty where none could be had
    matches : how many
    first : the least matches, as vertices in the order of the query's columns
    seconds : by phase, in order; the last is the total
    """

    facts: Facts = field(default_factory=Facts)
    reports: list[Report] = field(default_factory=list)
    matches: int = 0
    first: list[list[int]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def end(self, phase: str, at: float | None = None) -> None:
        """End a phase, now or `at` a time of the machine's monotonic clock."""
        ended = time.monotonic() if at is None else at
        self.seconds[phase] = ended - self._began - sum(self.seconds.values())

    def end_all(self) -> None:
        """Sum up the phases."""
        self.seconds["total"] = time.monotonic() - self._began

    def take(self, request: Request, batches: Iterable[Any]) -> None:
        """Take the batches of the result: add up, choose the first, or write the file."""
        columns = request.query.columns
        if request.out is not None:
            self.matches = write_parquet(request.out, batches, columns, self.facts.names)
        elif request.wanted == "count":
            self.matches = sum(map(total, batches))
        else:
            top = merged_top(batches, len(columns))
            self.matches, self.first = top.n_matches, top.rows.tolist()

    def first_named(self) -> list[list[int | str]]:
        """The least matches, by name where vertices have names."""
        names = self.facts.names
        return [[names[vertex] if names else vertex for vertex in match] for match in self.first]


def as_json(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Everything that is known, as one JSON object."""
    facts = outcome.facts
    per_worker = [asdict(report) for report in outcome.reports]
    for report in per_worker:
        del report["done"]
    known: dict[str, Any] = {
        "command": request.command,
        "query": request.query.title,
        "source": request.source,
        "on": request.on.value,
        "workers": request.workers,
        "vertices": facts.vertices,
        "edges": facts.edges,
        "matches": outcome.matches,
        "seconds": {phase: round(seconds, 6) for phase, seconds in outcome.seconds.items()},
        "per_worker": per_worker,
    }
    if facts.notes:
        known["notes"] = facts.notes
    if request.wanted == "first":
        known |= {"columns": list(request.query.columns), "first": outcome.first_named()}
    if request.out is not None:
        known["out"] = str(request.out)
    return known
