"""What came of a request, as values: for the summary, and for machines."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pointstamp.cli.progress import Report
from pointstamp.cli.request import Request
from pointstamp.cli.search import total
from pointstamp.cli.top_matches import merged_top
from pointstamp.formats.parquet import write_parquet


@dataclass
class Facts:
    """What is known of a graph once it has been read.

    Attributes
    ----------
    names : by vertex, where vertices have names
    notes : what was taken to mean something, where it could have meant something else
    """

    edges: int = 0
    vertices: int = 0
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What came of a request, and how long each phase took, from when this was made.

    Attributes
    ----------
    reports : of each worker; empty where none could be had
    matches : how many
    first : the least matches, as vertices in the order of the query's columns
    seconds : by phase, in order; the last is the total
    """

    request: Request
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

    def take(self, batches: Iterable[Any]) -> None:
        """Take the batches of the result: add up, choose the first, or write the file."""
        columns, out = self.request.query.columns, self.request.out
        if out is not None:
            self.matches = write_parquet(out, batches, columns, self.facts.names)
        elif self.request.wanted == "count":
            self.matches = sum(map(total, batches))
        else:
            top = merged_top(batches, len(columns))
            self.matches, self.first = top.n_matches, top.rows.tolist()

    def first_named(self) -> list[list[int | str]]:
        """The least matches, by name where vertices have names."""
        names = self.facts.names
        return [[names[vertex] if names else vertex for vertex in match] for match in self.first]

    def known(self) -> dict[str, Any]:
        """Everything that is known, for JSON."""
        request, facts = self.request, self.facts
        reports = [asdict(report) for report in self.reports]
        known: dict[str, Any] = {
            "command": request.command,
            "query": request.query.title,
            "source": request.source,
            "on": request.on.value,
            "workers": request.workers,
            "vertices": facts.vertices,
            "edges": facts.edges,
            "matches": self.matches,
            "seconds": {phase: round(seconds, 6) for phase, seconds in self.seconds.items()},
            "per_worker": [{k: v for k, v in each.items() if k != "done"} for each in reports],
        }
        if facts.notes:
            known["notes"] = facts.notes
        if request.wanted == "first":
            known |= {"columns": list(request.query.columns), "first": self.first_named()}
        if request.out is not None:
            known["out"] = str(request.out)
        return known
