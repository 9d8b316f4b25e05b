"""What a command that searches a graph was asked to do: a question, and how to answer it.

The fields of `Request` that are annotated for Typer are the arguments and options of all such
commands. This is read for `--help` as well, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pointstamp.errors import FileFormatError, PatternError, UsageError


class RunsOn(StrEnum):
    """Where the workers are."""

    LOCAL = "local"
    SPARK = "spark"


class ProgressMode(StrEnum):
    """When workers report progress to their peers."""

    DEMAND = "demand"
    EAGER = "eager"


Wanted = Literal["first", "count", "file"]
"""Of the matches: how many and the first few; how many, without making them; all, in a file."""


# `Query` and `Request` are neither compared nor shown: what a dataclass has for that would be
# made even for `--help`, which it would take longer.
@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """A question; made only if it can be answered.

    Attributes
    ----------
    title : what is looked for, in the plural
    columns : the names of the columns of the matches
    find : of a stream of edges the matches, as record batches of int64 columns
    count : of a stream of edges their number, as record batches with the one column `count`
    """

    title: str
    columns: tuple[str, ...]
    find: Callable[[Any], Any]
    count: Callable[[Any], Any]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


LogTo = Annotated[
    Path | None,
    typer.Option("--log", metavar="FOLDER", help="Have the workers write down what they do."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Request:
    """A question, and how it is to be answered."""

    command: str
    query: Query
    edges: Annotated[str, typer.Argument(metavar="EDGES")]
    workers: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="How many.", show_default="one per processor"),
    ] = _processors()
    on: Annotated[
        RunsOn, typer.Option(help="Processes of this machine, or tasks of a Spark job.")
    ] = RunsOn.LOCAL
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark's master, as local[4] or spark://host:7077."),
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write all matches to this file.")
    ] = None
    count: Annotated[
        bool, typer.Option("--count", help="Only count, without making the matches.")
    ] = False
    log: LogTo = None
    progress: Annotated[
        ProgressMode,
        typer.Option(help="When workers report progress: where it counts, or at once."),
    ] = ProgressMode.DEMAND
    json: Json = False

    @property
    def wanted(self) -> Wanted:
        """What is to be made of the matches."""
        return "count" if self.count else "first" if self.out is None else "file"

    @property
    def source(self) -> str:
        """What to call the input."""
        return "standard input" if self.edges == "-" else self.edges

    def options(self) -> dict[str, Any]:
        """How the workers are run, as `execute` and `run` of `pointstamp.spark` take it."""
        return {
            "workers": self.workers,
            "progress": self.progress.value,
            "log": log_to(self.log),
        }

    def check(self) -> None:
        """Raise UsageError if it is not possible, before anything is begun."""
        from pointstamp.formats.atomic_file import folder_beside
        from pointstamp.formats.edge_files import read_edges

        if self.master is not None and self.on is not RunsOn.SPARK:
            raise UsageError(
                f"--master {self.master} says where Spark is, and the workers are to be processes "
                f"of this machine; add --on spark, or leave it out"
            )
        read_edges(self.edges)  # nothing is read, but it has to be there
        if not self.count and not self.query.columns:
            raise PatternError(
                f"the pattern names no vertex, so there is nothing to show of a match: "
                f"{self.query.title}; name one, as in '(a)', or --count"
            )
        if sys.stdout is None and (self.json or self.wanted != "file"):
            raise UsageError(
                "standard output is closed, and the answer would go there; open it (> FILE), or "
                "ask for all matches in a file (--out FILE)"
            )
        if self.out is None:
            return
        if self.count:
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


def log_to(folder: Path | None) -> Any:
    """What `execute` takes as `log`: that of a folder, or None."""
    if folder is None:
        return None
    from pointstamp.observability.log import Log

    return Log(folder)
