"""A question answered by worker processes of this machine.

Each worker reads a part of the edges, and the dataflow spreads them. Matches that are to be
written go from each worker to a file of its own beside the final one, which puts
them together: so no match crosses a process border to be written.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

from pointstamp.cli.display import Display
from pointstamp.cli.edge_reading import EdgeReading, Facts, VertexSet, at_hand, together
from pointstamp.cli.outcome import Outcome
from pointstamp.cli.request import Request
from pointstamp.cli.search import Search
from pointstamp.formats.atomic_file import folder_beside
from pointstamp.formats.parquet import PartFile, batches_of
from pointstamp.formats.vertices import vertex_batches
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker


def answer(request: Request, display: Display) -> Outcome:
    """Answer a question by worker processes of this machine."""
    outcome = Outcome()
    with ExitStack() as stack:
        path = stack.enter_context(at_hand(request.edges))
        parts = None if request.out is None else stack.enter_context(folder_beside(request.out))
        stack.enter_context(display.working("searching"))
        search = Search(request.query, request.wanted)
        shares = execute(work, search, path, parts, **request.options())
        outcome.facts = together([facts for facts, _ in shares])
        outcome.end("start", outcome.facts.began)
        outcome.end("read", outcome.facts.ended)
        outcome.reports = display.server.last_reports()
        if parts is None:
            outcome.take(request, chain.from_iterable(batches for _, batches in shares))
        outcome.end("search")
        if parts is not None:
            display.now("writing")
            files = [_part(parts, index) for index in range(request.workers)]
            outcome.take(request, batches_of(files))
            outcome.end("write")
    outcome.end_all()
    return outcome


def work(worker: Worker, search: Search, path: str, parts: Path | None) -> tuple[Facts, list[Any]]:
    """What each worker does: it gives what it knows of the graph, and of the matches."""
    batches: list[Any] = []
    reading = EdgeReading(path, worker.index, worker.peers)
    with ExitStack() as stack:
        take: Any = batches.append
        if parts is not None:
            part = PartFile(_part(parts, worker.index), search.columns)
            take = stack.enter_context(closing(part)).write
        with worker.dataflow("search") as scope:
            edges, stream = scope.new_input("edges")
            search(scope, stream).inspect_batch(lambda _, batch: take(batch))
        for batch in reading:
            edges.send_batch(batch)
            worker.step()
        edges.close()
        if worker.peers > 1:
            reading.facts.vertices = own_share(worker, reading.vertices)
        worker.run()
    return reading.facts, batches


def own_share(worker: Worker, vertices: VertexSet) -> int:
    """How many vertices of all workers' are this one's to count."""
    own = VertexSet()
    with worker.dataflow("vertices") as scope:
        batches = vertex_batches(vertices.sorted())
        counted = scope.batches_to_stream(batches).exchange("vertex")
        probe = counted.inspect_batch(lambda _, batch: own.add(batch.column(0).to_numpy())).probe()
    worker.step_while(lambda: not probe.done)
    return own.count()


def _part(parts: Path, index: int) -> Path:
    """The file of a worker."""
    return parts / f"{index}.parquet"
