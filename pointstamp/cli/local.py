"""A question answered by worker processes of this machine.

Worker 0 reads the edges and the dataflow spreads them. Matches that are to be
written go from each worker to a file of its own beside the final one, which puts
them together: so no match crosses a process border to be written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pointstamp.cli.display import Display
from pointstamp.cli.edge_reading import EdgeReading, Facts, at_hand
from pointstamp.cli.outcome import Clock, Outcome
from pointstamp.cli.request import Request
from pointstamp.cli.search import Search
from pointstamp.formats.atomic_file import folder_beside
from pointstamp.formats.parquet import PartFile, batches_of
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker


@dataclass(frozen=True)
class Task:
    """What every worker gets."""

    search: Search
    edges: str
    """The path of the edges."""
    parts: Path | None
    """The folder for the workers' files."""

    def part(self, index: int) -> Path:
        """The file of a worker."""
        assert self.parts is not None
        return self.parts / f"{index}.parquet"


@dataclass
class Share:
    """What a worker gives back.

    Attributes
    ----------
    facts : of the graph; only the worker that read it has them
    batches : counts or least matches
    """

    facts: Facts | None = None
    batches: list[Any] = field(default_factory=list)


def answer(request: Request, display: Display) -> Outcome:
    """Answer a question by worker processes of this machine."""
    clock = Clock()
    with ExitStack() as stack:
        edges = stack.enter_context(at_hand(request.edges))
        parts = None if request.out is None else stack.enter_context(folder_beside(request.out))
        stack.enter_context(display.working("searching"))
        task = Task(Search(request.query, request.wanted), edges, parts)
        shares = execute(work, task, **request.options())
        facts = shares[0].facts or Facts()
        clock.end("start", facts.began)
        clock.end("read", facts.ended)
        clock.end("search")
        outcome = Outcome(facts, display.server.last_reports())
        batches: Iterable[Any] = (batch for share in shares for batch in share.batches)
        if parts is not None:
            display.now("writing")
            batches = batches_of(task.part(index) for index in range(request.workers))
        outcome.take(request, batches)
        if parts is not None:
            clock.end("write")
    outcome.seconds = clock.with_total()
    return outcome


def work(worker: Worker, task: Task) -> Share:
    """What each worker does."""
    share = Share()
    with ExitStack() as stack:
        take: Any = share.batches.append
        if task.parts is not None:
            part = PartFile(task.part(worker.index), task.search.query.columns)
            take = stack.enter_context(closing(part)).write
        with worker.dataflow("search") as scope:
            edges, stream = scope.new_input("edges")
            task.search(scope, stream).inspect_batch(lambda _, batch: take(batch))
        if worker.index == 0:
            reading = EdgeReading(task.edges)
            for batch in reading:
                edges.send_batch(batch)
                worker.step()
            share.facts = reading.facts
        edges.close()
        worker.run()
    return share
