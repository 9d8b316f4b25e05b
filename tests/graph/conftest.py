"""Running a small dataflow over edges, and finding its answer by trying everything."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import pointstamp as ps


def merged(parts):
    """The items of all lists in one."""
    return list(itertools.chain.from_iterable(parts))


def batches(edges, size=3):
    """Edges as Arrow batches of at most `size` records."""
    parts = [edges[i : i + size] for i in range(0, len(edges), size)]
    return [
        pa.RecordBatch.from_pydict(
            {"src": pa.array([s for s, _ in p], pa.int64()), "dst": pa.array([t for _, t in p])}
        )
        for p in parts
    ]


def run(build, edges, workers=1, size=3):
    """What `build(stream)` gives for the edges, spread over the workers: sorted records."""

    def main(worker):
        found = []
        mine = batches(edges, size)[worker.index :: worker.peers]
        with worker.dataflow() as scope:
            build(scope.batches_to_stream(mine)).inspect_batch(
                lambda time, batch: found.append(batch)
            )
        worker.run()
        return found

    parts = ps.execute(main, workers=workers, threads=True)
    found = [batch for part in parts for batch in part]
    assert all(isinstance(batch, pa.RecordBatch) for batch in found)
    return sorted(
        record for batch in found for record in zip(*batch.to_pydict().values(), strict=True)
    )


def brute_force(edges, present, absent=(), distinct=False):
    """Every assignment of vertices to `range(n)` of the pattern, tried one by one."""
    graph = set(edges)
    vertices = sorted({v for edge in graph for v in edge})
    n = 1 + max(v for edge in present for v in edge)
    return [
        match
        for match in itertools.product(vertices, repeat=n)
        if all((match[s], match[t]) in graph for s, t in present)
        and not any((match[s], match[t]) in graph for s, t in absent)
        and not (distinct and len(set(match)) < n)
    ]


@pytest.fixture(params=[1, 2, 3], ids=lambda n: f"{n} workers")
def workers(request):
    """How many workers a test is run with."""
    return request.param
