"""What an operator takes in memory: a worker may have a million of them."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

import pointstamp as ps

SHORT, LONG = 100, 1_100

MOST_BYTES = 6_200
"""For a map in a chain, of which every object but the user's function is ours."""


def chain(worker: ps.Worker, length: int) -> Any:
    with worker.dataflow("chain") as scope:
        input, stream = scope.new_input()
        with scope.region() as inner:
            stream = stream.enter(inner)
            for _ in range(length):
                stream = stream.map(lambda x: x)
            probe = stream.leave().probe()
    while worker.has_work:
        worker.step()
    return input, probe


def complete(worker: ps.Worker, kept: Any) -> None:
    """Have it be gone before the next one is measured."""
    kept[0].close()
    while worker.step():
        pass


def n_bytes(worker: ps.Worker, length: int) -> int:
    """What a chain of so many maps takes, after its first step."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    kept = chain(worker, length)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    complete(worker, kept)
    return taken


@pytest.mark.skipif(ps.build_info() != "compiled", reason="objects of the sources are larger")
def test_a_map_takes_a_few_kilobytes():
    def main(worker: ps.Worker) -> float:
        complete(worker, chain(worker, 10))  # what is made once
        tracemalloc.start()
        try:
            return (n_bytes(worker, LONG) - n_bytes(worker, SHORT)) / (LONG - SHORT)
        finally:
            tracemalloc.stop()

    assert ps.execute(main)[0] < MOST_BYTES


def test_operators_of_a_chain_share_what_never_changes():
    def main(worker: ps.Worker) -> None:
        kept = chain(worker, 3)
        first, second, *_ = [
            child
            for subgraph in worker._progress.subgraphs.values()
            for child in subgraph.children
            if child.name == "Map"
        ]
        assert first.frontiers is second.frontiers
        assert first.frontier_interest is second.frontier_interest
        assert first._summaries is second._summaries
        assert first._inputs[0].stays is second._inputs[0].stays
        # What is its own, it has by itself.
        assert first.consumed[0] is not second.consumed[0]
        assert first._outputs[0]._tee is not second._outputs[0]._tee
        complete(worker, kept)

    ps.execute(main)
