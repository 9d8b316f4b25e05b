"""What came of a question, as values: for the summary, and for machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from pointstamp.cli.edge_source import EdgeFile, Facts
from pointstamp.cli.progress_reporter import Report
from pointstamp.cli.queries import Query
from pointstamp.errors import FileFormatError, PatternError, UsageError
from pointstamp.formats.atomic_file import folder_beside


class Wanted(Enum):
    """What is to be made of the matches."""

    FIRST = "first"
    """How many there are, and the first few."""
    COUNT = "count"
    """How many there are, without making them."""
    FILE = "file"
    """All of them, as one file."""


@dataclass(frozen=True)
class Run:
    """How the workers are run: see `pointstamp.execute`."""

    progress: str = "demand"
    log: Path | None = None
    """A folder."""

    def options(self) -> dict[str, Any]:
        """As `execute`, and `run` of `pointstamp.spark`, take them."""
        if self.log is None:
            return {"progress": self.progress}
        from pointstamp.observability.log import Log

        return {"progress": self.progress, "log": Log(self.log)}


@dataclass(frozen=True)
class Request:
    """What the command line was asked to do."""

    command: str
    query: Query
    source: EdgeFile
    wanted: Wanted
    workers: int
    on: str
    master: str | None = None
    out: Path | None = None
    run: Run = Run()

    def check(self) -> None:
        """Raise UsageError if it is not possible, before anything is begun."""
        if self.wanted is not Wanted.COUNT and not self.query.columns:
            raise PatternError(
                f"the pattern names no vertex, so there is nothing to show of a match: "
                f"{self.query.title}; name one, as in '(a)', or --count"
            )
        if self.out is None:
            return
        if self.wanted is Wanted.COUNT:
            raise UsageError("--count makes no matches that --out could write; leave out one")
        if self.out.suffix.lower() not in ("", ".parquet"):
            raise UsageError(
                f"--out {self.out}: matches are written as Parquet, and not as "
                f"{self.out.suffix}; name it {self.out.with_suffix('.parquet')}"
            )
        try:
            # A search may take hours, so whether there is writing is tried before it.
            with folder_beside(self.out):
                pass
        except FileFormatError as error:
            raise UsageError(f"--out {error}") from error


@dataclass
class Outcome:
    """What came of it.

    Attributes
    ----------
    matches : how many
    first : the least matches, as vertices in the order of the query's columns
    facts : of the graph
    seconds : by phase, in order; the last is the total
    reports : of each worker; empty where none could be had
    """

    matches: int = 0
    first: list[list[int]] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    seconds: dict[str, float] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)

    def first_named(self) -> list[list[int | str]]:
        """The least matches, by name where vertices have names."""
        names = self.facts.names
        return [[names[vertex] if names else vertex for vertex in match] for match in self.first]


def as_json(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Everything that is known, as one JSON object."""
    facts = outcome.facts
    known: dict[str, Any] = {
        "command": request.command,
        "query": request.query.title,
        "source": request.source.title,
        "on": request.on,
        "workers": request.workers,
        "vertices": facts.vertices,
        "edges": facts.edges,
        "matches": outcome.matches,
        "seconds": {phase: round(seconds, 6) for phase, seconds in outcome.seconds.items()},
        "per_worker": [
            {
                "worker": report.worker,
                "edges": report.edges,
                "prefixes": report.prefixes,
                "found": report.found,
                "peak_bytes": report.peak_bytes,
            }
            for report in outcome.reports
        ],
    }
    if facts.notes:
        known["notes"] = facts.notes
    if request.wanted is Wanted.FIRST:
        known |= {"columns": list(request.query.columns), "first": outcome.first_named()}
    if request.out is not None:
        known["out"] = str(request.out)
    return known
