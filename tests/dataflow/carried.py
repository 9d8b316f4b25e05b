"""The same records in every container, and the same dataflow on every kind of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.containers import Arrays
from pointstamp.errors import WorkerError
from pointstamp.testing import collect

Records = Sequence[tuple[int, ...]]


def rows(scope: Any, names: str, records: Records) -> Any:
    """A stream of tuples, spread over the workers; the names are for the reader."""
    return scope.batches_to_stream(_batches(scope, records))


def columns(scope: Any, names: str, records: Records) -> Any:
    """Arrow record batches of three records, with a column for each letter of `names`."""
    schema = pa.schema([(name, pa.int64()) for name in names])
    return scope.batches_to_stream(
        pa.RecordBatch.from_pylist([dict(zip(names, r, strict=True)) for r in batch], schema)
        for batch in _batches(scope, records)
    )


def arrays(scope: Any, names: str, records: Records) -> Any:
    """The same as NumPy columns."""
    return scope.batches_to_stream(
        Arrays(dict(zip(names, np.array(batch, np.int64).T, strict=True)))
        for batch in _batches(scope, records)
    )


def _batches(scope: Any, records: Records) -> list[list[tuple[int, ...]]]:
    mine = list(records[scope.index :: scope.peers])
    return [mine[start : start + 3] for start in range(0, len(mine), 3)]


CONTAINERS = [rows, columns, arrays]
over_containers = pytest.mark.parametrize("make", CONTAINERS, ids=lambda make: make.__name__)

Run = Callable[[Callable[[Any], Any]], list[tuple[Any, Any]]]

RUNS: dict[str, Run] = {f"{n} workers": partial(collect, workers=n) for n in (1, 2, 4)}
"""Every way to get all (time, record) of what a function of a scope builds."""
RUNS |= {f"seed {seed}": partial(collect, workers=3, seed=seed) for seed in range(4)}
over_runs = pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))


def cause_of(build: Callable[[Any], Any], workers: int = 1) -> tuple[WorkerError, BaseException]:
    """The error that a dataflow ends with, and what it came from."""
    with pytest.raises(WorkerError) as caught:
        collect(build, workers)
    assert caught.value.__cause__ is not None
    return caught.value, caught.value.__cause__


def settle(worker: Any) -> None:
    """Step a worker that is alone until it has nothing more to do."""
    while worker.has_work:
        worker.step()
