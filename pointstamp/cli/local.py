"""A question answered by worker processes of this machine.

Worker 0 reads the edges and the dataflow spreads them. Matches that are to be
written go from each worker to a file of its own beside the final one, which puts
them together: so no match crosses a process border to be written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointstamp.cli.display import Display
from pointstamp.cli.edge_source import EdgeFile, EdgeReading, Facts, at_hand
from pointstamp.cli.outcome import Outcome, Request, Wanted
from pointstamp.cli.progress_reporter import ProgressReporter, Report
from pointstamp.cli.progress_server import ProgressServer
from pointstamp.cli.queries import Query
from pointstamp.cli.search import results
from pointstamp.cli.top_matches import merged_top
from pointstamp.formats.atomic_file import folder_beside
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker


@dataclass(frozen=True)
class Task:
    """What every worker gets."""

    query: Query
    wanted: Wanted
    source: EdgeFile
    parts: str | None
    """The folder for the workers' files."""


@dataclass
class Share:
    """What a worker gives back.

    Attributes
    ----------
    facts : of the graph; only the worker that read it has them
    batches : counts or least matches
    """

    report: Report
    facts: Facts | None = None
    batches: list[Any] = field(default_factory=list)


def answer(request: Request, display: Display) -> Outcome:
    """Answer a question by worker processes of this machine."""
    began = time.monotonic()
    with (
        at_hand(request.source) as source,
        _parts_folder(request.out) as parts,
        display.working("searching"),
        ProgressServer(request.workers, on_tick=display.update),
    ):
        task = Task(request.query, request.wanted, source, parts)
        shares = execute(work, task, workers=request.workers, **request.run.options())
        searched = time.monotonic()
        outcome = _outcome(request, shares, began, searched)
        if request.out is not None and parts is not None:
            display.now("writing")
            _write(request, outcome, parts)
            outcome.seconds["write"] = time.monotonic() - searched
    outcome.seconds["total"] = time.monotonic() - began
    return outcome


def work(worker: Worker, task: Task) -> Share:
    """What each worker does."""
    reporter = ProgressReporter(worker.index)
    share = Share(reporter.report)
    with _sink(worker.index, task, share) as sink:
        with worker.dataflow("search") as scope:
            edges, stream = scope.new_input("edges")
            found = results(task.query, task.wanted, stream, reporter)
            found.inspect_batch(lambda _, batch: sink(batch))
        if worker.index == 0:
            reading = EdgeReading(task.source)
            for batch in reading:
                edges.send_batch(batch)
                worker.step()
            share.facts = reading.facts
        edges.close()
        worker.run()
    return share


@contextmanager
def _sink(index: int, task: Task, share: Share) -> Iterator[Any]:
    """Where a worker's results go: to its file, or with its share."""
    if task.parts is None:
        yield share.batches.append
        return
    from pointstamp.formats.parquet import PartFile

    part = PartFile(Path(task.parts, f"{index}.parquet"), task.query.columns)
    try:
        yield part.write
    finally:
        part.close()


@contextmanager
def _parts_folder(out: Path | None) -> Iterator[str | None]:
    if out is None:
        yield None
        return
    with folder_beside(out) as folder:
        yield str(folder)


def _outcome(request: Request, shares: list[Share], began: float, ended: float) -> Outcome:
    facts = shares[0].facts or Facts()
    outcome = Outcome(
        matches=sum(share.report.found for share in shares),
        facts=facts,
        reports=[share.report for share in shares],
        seconds={
            "start": facts.began - began,
            "read": facts.ended - facts.began,
            "search": ended - facts.ended,
        },
    )
    if request.wanted is Wanted.FIRST:
        batches = (batch for share in shares for batch in share.batches)
        outcome.first = merged_top(batches, len(request.query.columns)).rows.tolist()
    return outcome


def _write(request: Request, outcome: Outcome, parts: str) -> None:
    from pointstamp.formats.parquet import batches_of, write_parquet

    assert request.out is not None
    files = [Path(parts, f"{index}.parquet") for index in range(request.workers)]
    names, columns = outcome.facts.names, request.query.columns
    write_parquet(request.out, batches_of(files), columns, names)
