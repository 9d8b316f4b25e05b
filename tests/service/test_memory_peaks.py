"""What a service has in memory, as the system counts it, when it is sent ten times its limit.

The worker is a thread of this process, which is the program that sends as well: both may hold as
much as the limit. Beside it there are the part that is being made, and what is at work: batches
of at most 65,536 rows, which are 1 MiB here, each in a few forms (as it was sent, as Arrow wrote it
for the disk or the checkpoint, as it was read again, as what the dataflow takes), and what the
allocators keep of those; sixteen of them are allowed for.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.errors import StagingError
from pointstamp.service.protocol import AwaitStaged
from tests.resident_memory import PeakGrowth

pytestmark = pytest.mark.once

M_MMAP_THRESHOLD = -3
"""Of `mallopt(3)`."""

LIMIT = 4 << 20
ROWS = 1 << 16
PART_BYTES = ROWS * 16
PARTS = 10 * LIMIT // PART_BYTES
AT_WORK = 16 * PREFERRED_RECORDS * 16
MOST = 2 * LIMIT + 2 * PART_BYTES + AT_WORK

ROW = pa.schema([("k", pa.int64()), ("x", pa.int64())])


def part(number: int) -> pa.Table:
    """1 MiB, each of its own."""
    x = np.arange(number * ROWS, (number + 1) * ROWS)
    return pa.table({"k": x % 10, "x": x}, ROW)


TOTAL = (PARTS * ROWS, PARTS * ROWS * (PARTS * ROWS - 1) // 2)
"""How many rows all parts have, and what their `x` add up to."""


@pytest.fixture(scope="module", autouse=True)
def freed_arrays_go_back() -> None:
    """To the system, and at once.

    glibc keeps arrays of a size that was freed before, in each thread's memory: ten MiB or so, by
    how threads take turns.
    """
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 128 << 10)


@pytest.fixture
def may_go_on() -> Iterator[threading.Event]:
    """The dataflow takes nothing before."""
    event = threading.Event()
    yield event
    event.set()


def waiting(event: threading.Event) -> Any:
    def wait(*taken: Any) -> Any:
        assert event.wait(120)
        return taken[-1]

    return wait


@pytest.fixture(params=["in memory", "durable"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"memory_limit": LIMIT, "spill_directory": tmp_path}
    if request.param == "durable":
        found["checkpoint"] = tmp_path / "checkpoint"
    return found


def test_epochs_that_wait_are_on_disk(may_go_on: threading.Event, options: dict[str, Any]) -> None:
    def build(scope: Any, rows: Any) -> Any:
        return rows.map_batches(waiting(may_go_on)).map_batches(
            lambda batch: pa.record_batch(
                {"n": [batch.num_rows], "x": [int(batch["x"].to_numpy().sum())]}
            )
        )

    sums = {"n": pa.int64(), "x": pa.int64()}
    with ps.serve(build, inputs={"rows": ROW}, outputs={"sums": sums}, **options) as service:
        rows = service.input("rows")
        rows.send(part(0).slice(0, 0))  # what is imported and started with the first, stays
        grown = PeakGrowth([os.getpid()])
        for epoch in range(PARTS):
            rows.send(part(epoch))
            rows.advance_to(epoch + 1)
        may_go_on.set()
        found = service.output("sums").collect(PARTS - 1, timeout_s=120)
        assert grown.of(os.getpid()) < MOST
        assert (sum(found["n"].to_pylist()), sum(found["x"].to_pylist())) == TOTAL


def test_epochs_of_a_collection_that_wait_are_on_disk(
    may_go_on: threading.Event, options: dict[str, Any]
) -> None:
    def build(scope: Any, rows: Any) -> Any:
        return rows.each_batch(waiting(may_go_on)).agg(n=ps.count(), x=ps.sum("x"))

    with ps.serve(build, collections={"rows": "k long, x long"}, **options) as service:
        rows = service.input("rows")
        may_go_on.set()
        rows.insert([(0, 0)])  # what is imported and started with the first, stays
        service.output().probe.wait(service.advance(), timeout_s=120)
        may_go_on.clear()
        grown = PeakGrowth([os.getpid()])
        for number in range(PARTS):
            rows.insert(part(number))
            epoch = service.advance()
        may_go_on.set()
        service.output().probe.wait(epoch, timeout_s=120)
        assert service.output().snapshot(epoch) == [(TOTAL[0] + 1, TOTAL[1])]
        assert grown.of(os.getpid()) < MOST


def test_what_a_program_inserts_waits_on_disk_until_it_advances(options: dict[str, Any]) -> None:
    """Nothing of it is at the worker before; there an epoch is put together in memory."""

    def build(scope: Any, rows: Any) -> Any:
        return rows.agg(n=ps.count(), x=ps.sum("x"))

    with ps.serve(build, collections={"rows": "k long, x long"}, **options) as service:
        grown = PeakGrowth([os.getpid()])
        for number in range(PARTS):
            service.input("rows").insert(part(number))
        assert grown.of(os.getpid()) < LIMIT + 2 * PART_BYTES + AT_WORK
        assert service.output().changes(service.advance(), timeout_s=120) == [(TOTAL, 1)]


def test_an_advance_waits_for_room(may_go_on: threading.Event) -> None:
    """By choice nothing waits on disk, and the program does instead."""

    def build(scope: Any, rows: Any) -> Any:
        return rows.each_batch(waiting(may_go_on)).agg(n=ps.count(), x=ps.sum("x"))

    with (
        ps.serve(build, threads=True, collections={"rows": "k long, x long"}) as service,
        ThreadPoolExecutor(1) as pool,
    ):
        rows, numbers = service.input("rows"), iter(range(PARTS))
        error = None
        while error is None:
            rows.insert(part(next(numbers)))
            try:
                # The worker, as slow as it may be, takes meanwhile all that it will take.
                service.advance(max_staged_bytes=LIMIT, timeout_s=1)
            except StagingError as raised:
                error = raised
        assert "after 1 s: " in str(error)
        assert service.ask(AwaitStaged("rows")) <= LIMIT
        advancing = pool.submit(service.advance, max_staged_bytes=LIMIT)  # what was refused
        assert not advancing.done()
        may_go_on.set()
        epoch = advancing.result(120)
        for number in numbers:
            rows.insert(part(number))
            epoch = service.advance(max_staged_bytes=LIMIT)
            assert service.ask(AwaitStaged("rows")) <= LIMIT
        assert service.output().snapshot(epoch) == [TOTAL]


def test_an_epoch_that_is_larger_than_what_may_wait_is_an_error_and_stays() -> None:
    with ps.serve(
        lambda scope, rows: rows, threads=True, collections={"rows": "k long, x long"}
    ) as service:
        service.input("rows").insert([(1, 2), (3, 4)])
        with pytest.raises(StagingError, match=r"48 bytes do not fit into max_staged_bytes=47 of "):
            service.advance(max_staged_bytes=47)
        assert service.advance(max_staged_bytes=48) == 0
        assert service.output().snapshot(0) == [(1, 2), (3, 4)]
