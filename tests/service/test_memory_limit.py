"""A service that is sent more than fits: nothing is lost, and little is held."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import StagingError, UsageError
from pointstamp.service.service import Service, ServiceInput

LIMIT = 200_000
PART = pa.table({"x": np.arange(5000, dtype=np.int64)})
"""40 kB."""


def through(scope: Any, numbers: Any) -> Any:
    return numbers.exchange("x")


def started(build: Any = through, workers: int = 1, **options: Any) -> Service:
    return ps.serve(
        build,
        workers,
        threads=True,
        inputs={"numbers": {"x": pa.int64()}},
        outputs={"numbers": {"x": pa.int64()}},
        **options,
    )


class Gate:
    """An operator that goes on when it is let to, and what it has seen of its worker."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.budgets: list[Any] = []

    def build(self, scope: Any, numbers: Any) -> Any:
        memory = scope.environment.memory
        self.budgets.append(memory)

        def wait(batch: Any) -> Any:
            assert self.may_go_on.wait(60)
            return batch

        return numbers.map_batches(wait)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.may_go_on.set()


def sums(service: Service, upto: int) -> list[int]:
    return sorted(service.output("numbers").collect(upto=upto)["x"].to_pylist())


@pytest.mark.parametrize("workers", [1, 2])
def test_five_times_the_limit_waits_for_a_slow_operator(
    gate: Gate, workers: int, tmp_path: Path
) -> None:
    options: Any = {"memory_limit": LIMIT, "spill_directory": tmp_path}
    with started(gate.build, workers, **options) as service:
        numbers = service.input("numbers")
        for epoch in range(5):
            for _ in range(5 * workers):
                numbers.send(PART)
            numbers.advance_to(epoch + 1)
        assert sum(budget.spilled_bytes for budget in gate.budgets) > 3 * LIMIT * workers
        gate.may_go_on.set()
        expected = sorted(25 * workers * PART["x"].to_pylist())
        assert sums(service, 4) == expected
        for budget in gate.budgets:
            assert budget.peak_bytes <= LIMIT + PART.nbytes + 200
    assert list(tmp_path.iterdir()) == []


def test_what_is_aborted_is_given_up(tmp_path: Path) -> None:
    gate = Gate()
    gate.may_go_on.set()
    with started(gate.build, memory_limit=1, checkpoint=str(tmp_path)) as service:
        numbers = service.input("numbers")
        numbers.send(PART)
        numbers.advance_to(1)
        assert sums(service, 0) == PART["x"].to_pylist()
        numbers.send(PART)
        (budget,) = gate.budgets
        assert budget.files.n_bytes > PART.nbytes
        numbers._sent.clear()  # as of a client that has gone
        numbers.advance_to(2)
        assert sums(service, 1) == PART["x"].to_pylist()
        budget.collect()
        assert budget.files.n_bytes == 0


def test_a_send_waits_for_room(gate: Gate) -> None:
    with started(gate.build) as service, ThreadPoolExecutor(1) as pool:
        numbers = service.input("numbers")
        for epoch in range(80):  # more than waits inside of a dataflow
            numbers.send(PART)
            numbers.advance_to(epoch + 1)
        with pytest.raises(StagingError, match=r"after 0 s: \d+ that were sent wait for"):
            numbers.send(PART, max_staged_bytes=2 * PART.nbytes, timeout_s=0)
        sending = pool.submit(numbers.send, PART, max_staged_bytes=2 * PART.nbytes)
        assert not sending.done()
        gate.may_go_on.set()
        sending.result(60)
        numbers.advance_to(81)
        assert sums(service, 80) == sorted(81 * PART["x"].to_pylist())


def test_a_send_that_would_wait_for_itself_is_an_error() -> None:
    with started() as service:
        numbers = service.input("numbers")
        for _ in range(2):
            numbers.send(PART, max_staged_bytes=100_000)
        with pytest.raises(StagingError, match=r"80000 were sent here in this epoch.*advance_to"):
            numbers.send(PART, max_staged_bytes=100_000)
        with pytest.raises(StagingError, match="40000 bytes do not fit into max_staged_bytes=10"):
            numbers.send(PART, max_staged_bytes=10)
        numbers.advance_to(1)
        numbers.send(PART, max_staged_bytes=100_000)
        numbers.advance_to(2)
        assert sums(service, 1) == sorted(3 * PART["x"].to_pylist())


def test_what_another_client_has_staged_counts_until_it_enters() -> None:
    with started() as service:
        mine, theirs = service.input("numbers"), ServiceInput(service, "numbers")
        theirs.send(PART)
        with pytest.raises(StagingError, match="after 0 s: 40000 that were sent"):
            mine.send(PART, max_staged_bytes=50_000, timeout_s=0)
        theirs.advance_to(1)
        mine.send(PART, max_staged_bytes=50_000, timeout_s=60)
        mine.advance_to(2)
        assert sums(service, 1) == sorted(2 * PART["x"].to_pylist())


@pytest.mark.parametrize("given", [0, -1, 1.5, "1MB", True])
def test_what_is_no_number_of_bytes_is_refused(given: Any) -> None:
    with started() as service, pytest.raises(UsageError, match=r"max_staged_bytes=.* is no number"):
        service.input("numbers").send(PART, max_staged_bytes=given)


def test_a_limit_is_checked_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="memory_limit='much' is no size"):
        started(memory_limit="much")


def test_an_epoch_of_a_collection_that_is_larger_than_the_limit_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is put together in memory, and takes no harm."""
    with (
        caplog.at_level(logging.WARNING, "pointstamp.service"),
        ps.serve(
            lambda scope, small, large: {"small": small, "large": large.agg(n=ps.count())},
            threads=True,
            collections={"small": "x long", "large": "x long"},
            memory_limit=LIMIT,
        ) as service,
    ):
        for _ in range(2):
            service.input("small").insert([(1,)])
            for _ in range(LIMIT // PART.nbytes + 1):
                service.input("large").insert(PART)
            epoch = service.advance()
        assert service.output("large").snapshot(epoch) == [(2 * 6 * 5000,)]
    texts = [record.getMessage() for record in caplog.records]
    (said,) = [text for text in texts if " has " in text]  # a slow machine has others said
    assert said.startswith("epoch 0 of the collection 'large' has 480000 bytes at worker 0, ")
    assert f"whatever memory_limit={LIMIT} is" in said
