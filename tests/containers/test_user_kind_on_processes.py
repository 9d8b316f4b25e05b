"""A container of the user's own goes through an exchange between processes.

The kind is registered by each worker for itself, as a module that all of them import
would do, so that nothing stays in the process of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pointstamp as ps
from pointstamp.containers import Buffer, Key, Kind, register, registry
from pointstamp.errors import SerializationError, WorkerError

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Points of the plane, float64[2, n]: neither rows, nor named columns, nor Arrow's."""

    xy: Doubles


class PointsKind(Kind[Points]):
    """What can be done with `Points`."""

    name = "points"

    def length(self, batch: Points) -> int:
        return batch.xy.shape[1]

    def n_bytes(self, batch: Points) -> int:
        return batch.xy.nbytes

    def records(self, batch: Points) -> Iterator[tuple[float, float]]:
        return zip(*batch.xy.tolist(), strict=True)

    def slice(self, batch: Points, start: int, stop: int) -> Points:
        return Points(batch.xy[:, start:stop])

    def concat(self, batches: Sequence[Points]) -> Points:
        return Points(np.concatenate([batch.xy for batch in batches], axis=1))

    def hashes(self, batch: Points, key: Key) -> npt.NDArray[np.uint64]:
        assert callable(key)
        return key(batch).astype(np.uint64)

    def split(self, batch: Points, hashes: npt.NDArray[np.uint64], peers: int) -> list[Points]:
        to = hashes % np.uint64(peers)
        return [Points(batch.xy[:, to == peer]) for peer in range(peers)]

    def encode(self, batch: Points) -> list[Buffer]:
        # Two buffers, the second of any size: an axis each.
        return [memoryview(np.ascontiguousarray(axis)) for axis in batch.xy]

    def decode(self, buffers: Sequence[Buffer]) -> Points:
        # A copy: what arrived may be lent for a moment only.
        return Points(np.array([np.frombuffer(buffer, np.float64) for buffer in buffers]))


def points_of(index: int, n: int) -> Points:
    """`n` points with x from 0 on, and with y the number of the worker that made them."""
    return Points(np.array([np.arange(n, dtype=np.float64), np.full(n, float(index))]))


def exchanging(worker: Any, n: int, registered: Sequence[int]) -> Any:
    """Send points to the worker that their x says; what came, by the type of its batch."""
    if worker.index in registered:
        register(Points, PointsKind())
    came: list[tuple[str, Points]] = []
    with worker.dataflow() as scope:
        batches = [points_of(worker.index, n)] if worker.index in registered else []
        exchanged = scope.batches_to_stream(batches).exchange(lambda batch: batch.xy[0])
        exchanged.inspect_batch(lambda time, batch: came.append((type(batch).__name__, batch)))
        doubled = exchanged.map_batches(lambda batch: Points(2.0 * batch.xy))
        counts: list[int] = []
        doubled.exchange(lambda batch: 0.0 * batch.xy[0]).count().inspect(counts.append)
    worker.run()
    return {name for name, _ in came}, [batch.xy for _, batch in came], counts


@pytest.mark.parametrize("n", [0, 1, 7, 200_000], ids=lambda n: f"{n} points")
def test_a_users_container_stays_what_it_is_between_processes(n: int) -> None:
    found = ps.execute(exchanging, n, (0, 1), workers=2)
    for index, (names, batches, counts) in enumerate(found):
        assert names <= {"Points"}
        xy = np.concatenate([np.empty((2, 0)), *batches], axis=1)
        for sender in (0, 1):
            # All that are this worker's, once, and in the order of whoever sent them.
            assert xy[0, xy[1] == sender].tolist() == list(range(index, n, 2))
        # All points go on to worker 0, from both.
        assert counts == ([2 * n] if index == 0 and n else [])


def test_a_worker_that_does_not_know_the_kind_says_what_to_do() -> None:
    with pytest.raises(WorkerError, match=r"'points'.*register\(\)") as caught:
        ps.execute(exchanging, 10, (0,), workers=2)
    assert caught.value.worker == 1
    assert isinstance(caught.value.__cause__, SerializationError)


def test_the_kind_is_not_known_to_this_process() -> None:
    """Else the tests above would show nothing of how it came to the others."""
    assert "points" not in registry._names
