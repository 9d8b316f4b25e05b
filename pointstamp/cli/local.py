"""A question answered by worker processes of this machine.

Each worker reads a part of the edges, and the dataflow spreads them. Matches that are to be
written go from each worker to a file of its own beside the final one, which puts
them together: so no match crosses a process border to be written.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp.cli.outcome import Facts, Outcome
from pointstamp.cli.search import Search
from pointstamp.formats.atomic_file import folder_beside
from pointstamp.formats.edge_files import read_edges
from pointstamp.formats.kept_input import at_hand
from pointstamp.formats.parquet import PartFile, batches_of
from pointstamp.formats.vertex_set import VertexSet
from pointstamp.formats.vertices import vertex_batches
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:  # it draws, and workers need nothing for that
    from pointstamp.cli.display import Display

Moments = tuple[float, float]
"""When a worker began and ended reading, in seconds of the machine's monotonic clock."""


def search(display: Display, outcome: Outcome) -> None:
    """Answer a question by worker processes of this machine."""
    request = outcome.request
    with ExitStack() as stack:
        path = stack.enter_context(at_hand(request.edges))
        parts = None if request.out is None else stack.enter_context(folder_beside(request.out))
        stack.enter_context(display.working("searching"))
        asked = Search(request.query, request.wanted)
        facts, moments, shares = zip(
            *execute(_work, asked, path, parts, **request.options()), strict=True
        )
        edges, vertices = (sum(getattr(of, name) for of in facts) for name in ("edges", "vertices"))
        # The first alone reads what has names, and what can be taken for a header.
        outcome.facts = Facts(edges, vertices, facts[0].names, facts[0].notes)
        for phase, reached in zip(("start", "read"), zip(*moments, strict=True), strict=True):
            outcome.end(phase, max(reached))
        outcome.reports = display.last_reports()
        if parts is None:
            outcome.take(chain.from_iterable(shares))
        outcome.end("search")
        if parts is not None:
            display.now("writing")
            outcome.take(batches_of([_part(parts, index) for index in range(request.workers)]))
            outcome.end("write")


def _work(
    worker: Worker, search: Search, path: str, parts: Path | None
) -> tuple[Facts, Moments, list[Any]]:
    """What each worker does: it gives what it knows of the graph, and of the matches."""
    batches: list[Any] = []
    with ExitStack() as stack:
        take: Any = batches.append
        if parts is not None:
            part = PartFile(_part(parts, worker.index), search.columns)
            take = stack.enter_context(closing(part)).write
        with worker.dataflow("search") as scope:
            input, stream = scope.new_input("edges")
            search(scope, stream).inspect_batch(lambda _, batch: take(batch))
        began = time.monotonic()
        edges, vertices = read_edges(path), VertexSet()
        for batch in vertices.adding(edges.batches(worker.index, worker.peers)):
            input.send_batch(batch)
            worker.step()
        input.close()
        ended = time.monotonic()
        n_vertices = vertices.count() if worker.peers == 1 else _own_share(worker, vertices)
        worker.run()
    return Facts(edges.n_edges, n_vertices, edges.names, edges.notes), (began, ended), batches


def _own_share(worker: Worker, vertices: VertexSet) -> int:
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
