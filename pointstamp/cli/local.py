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
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.cli.search import Search
from pointstamp.formats.atomic_file import folder_beside
from pointstamp.formats.edge_files import Edges, read_edges
from pointstamp.formats.kept_input import at_hand
from pointstamp.formats.parquet import PartFile, batches_of
from pointstamp.formats.vertex_set import VertexSet
from pointstamp.formats.vertices import vertex_batches
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:  # they print, and workers need nothing for that
    from pointstamp.cli.answer import Outcome
    from pointstamp.cli.display import Display


class WorkerShare(NamedTuple):
    """What one worker gives; times are of the machine's monotonic clock."""

    began_at: float
    read_at: float
    edges: Edges
    n_vertices: int
    batches: list[Any]


def search(display: Display, outcome: Outcome) -> None:
    """Answer a question by worker processes of this machine."""
    request = outcome.request
    with ExitStack() as stack:
        path = stack.enter_context(at_hand(request.edges))
        parts = None
        if request.out is not None:
            folder = stack.enter_context(folder_beside(request.out))
            parts = [folder / f"{index}.parquet" for index in range(request.workers)]
        stack.enter_context(display.working("searching"))
        shares = execute(_work, outcome.search, path, parts, **request.options())
        outcome.n_edges = sum(share.edges.n_edges for share in shares)
        outcome.n_vertices = sum(share.n_vertices for share in shares)
        # The first alone reads what has names, and what can be taken for a header.
        outcome.names, outcome.notes = shares[0].edges.names, shares[0].edges.notes
        outcome.end("start", max(share.began_at for share in shares))
        outcome.end("read", max(share.read_at for share in shares))
        outcome.reports = display.last_reports()
        outcome.end("search")
        if parts is None:
            outcome.take(chain.from_iterable(share.batches for share in shares))
        else:
            display.now("writing")
            outcome.take(batches_of(parts))


def _work(worker: Worker, search: Search, path: str, parts: list[Path] | None) -> WorkerShare:
    """What each worker does; its matches go to its file of `parts`, or are given back."""
    batches: list[Any] = []
    with ExitStack() as stack:
        take: Any = batches.append
        if parts is not None:
            part = PartFile(parts[worker.index], search.result_columns)
            take = stack.enter_context(closing(part)).write
        with worker.dataflow("search") as scope:
            input, stream = scope.new_input("edges")
            search(scope, stream).inspect_batch(lambda _, batch: take(batch))
        began_at = time.monotonic()
        edges, vertices = read_edges(path), VertexSet()
        for batch in vertices.adding(edges.batches(worker.index, worker.peers)):
            input.send_batch(batch)
            worker.step()
        input.close()
        read_at = time.monotonic()
        n_vertices = vertices.count() if worker.peers == 1 else _own_share(worker, vertices)
        worker.run()
    return WorkerShare(began_at, read_at, edges, n_vertices, batches)


def _own_share(worker: Worker, vertices: VertexSet) -> int:
    """How many vertices of all workers' are this one's to count."""
    own = VertexSet()
    with worker.dataflow("vertices") as scope:
        batches = vertex_batches(vertices.sorted())
        counted = scope.batches_to_stream(batches).exchange("vertex")
        probe = counted.inspect_batch(lambda _, batch: own.add(batch.column(0).to_numpy())).probe()
    worker.step_while(lambda: not probe.done)
    return own.count()
