"""Runs that keep little of what waits in memory: the same answers, in order, and no more held."""

from __future__ import annotations

import os
import signal
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import SpillError, UsageError, WorkerError
from pointstamp.runtime.run_options import memory_bytes
from tests.conftest import examples

LIMIT = 20_000

WORKERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="threads"),
    pytest.param({"workers": 2}, id="processes", marks=pytest.mark.once),
]


def batches(worker: int, form: str) -> list[Any]:
    """Ten times the limit, to be sent at once."""
    parts = [np.arange(500, dtype=np.int64) * 7 + 1000 * n + worker for n in range(50)]
    if form == "rows":
        return [[(int(x), n) for x in part[:60]] for n, part in enumerate(parts)]
    return [pa.record_batch({"x": part, "n": np.full(500, n)}) for n, part in enumerate(parts)]


def spilled(worker: ps.Worker) -> int:
    """How many bytes have gone to disk."""
    memory = worker.environment.memory
    return 0 if memory is None else memory.spilled_bytes


def exchanged(worker: ps.Worker, form: str) -> Any:
    """What each worker receives by key, in order, and what it held meanwhile."""
    received: list[Any] = []

    def note(time: int, batch: Any) -> None:
        rows = batch if form == "rows" else list(zip(*batch.to_pydict().values(), strict=True))
        received.extend((time, *row) for row in rows)

    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        key = (lambda row: row[0]) if form == "rows" else "x"
        stream.exchange(key).inspect_batch(note)
    for number, batch in enumerate(batches(worker.index, form)):
        input.advance_to(number // 10)
        input.send_batch(batch)
    input.close()
    worker.run()
    memory = worker.environment.memory
    peak = 0 if memory is None else memory.peak_bytes
    return received, spilled(worker), peak, memory and memory.files.n_bytes


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("how", WORKERS)
def test_an_exchange_of_more_than_the_limit_gives_the_same(how: Any, form: str) -> None:
    free = ps.execute(exchanged, form, **how)
    bounded = ps.execute(exchanged, form, memory_limit=LIMIT, **how)
    largest = 500 * 16 + 200
    for (expected, none, _, _), (found, n_spilled, peak, left) in zip(free, bounded, strict=True):
        assert sorted(found) == sorted(expected)
        assert none == 0
        assert n_spilled > LIMIT
        assert peak <= LIMIT + largest
        assert left == 0


@pytest.mark.parametrize("how", WORKERS)
def test_what_one_worker_sends_another_arrives_in_order(how: Any) -> None:
    for received, *_ in ps.execute(exchanged, "rows", memory_limit=LIMIT, **how):
        for sender in range(2):
            numbers = [n for _, x, n in received if (x - 1000 * n) % 7 == sender]
            assert numbers == sorted(numbers)


def held(worker: ps.Worker) -> Any:
    """Epochs that wait for each other, in a stash of the library and in one of the program."""
    sums: list[Any] = []

    def own(capability: Any, info: Any) -> Any:
        capability.drop()
        stash: Any = ps.Stash(info)

        def logic(input: Any, output: Any) -> None:
            stash.take(input)
            for cap, parts in stash:
                output.session(cap).give(sum(sum(part) for part in parts))

        return logic

    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        later = stream.delay(lambda x, time: 10 + x % 3)
        total = later.unary_frontier(ps.Exchange(lambda x: x), "Totals", own)
        total.inspect_time(lambda time, x: sums.append((time, x)))
    for _ in range(40):
        input.send_batch(list(range(1000, 1100)))
        worker.step()
    input.close()
    worker.run()
    return sorted(sums), spilled(worker)


@pytest.mark.parametrize("how", WORKERS)
def test_times_that_are_held_are_on_disk(how: Any) -> None:
    free = ps.execute(held, **how)
    bounded = ps.execute(held, memory_limit=LIMIT, **how)
    assert [sums for sums, _ in bounded] == [sums for sums, _ in free]
    assert all(n > 5000 for _, n in bounded)  # small integers are less on disk


def waiting_for_a_loop(worker: ps.Worker) -> Any:
    """Epochs of one input, which wait to enter a loop until the other input has moved on."""
    seen: list[Any] = []
    with worker.dataflow() as scope:
        starts, start = scope.new_collection("n long")
        others, other = scope.new_collection("n long")

        def step(found: Any) -> Any:
            return found.concat(other).filter(ps.col("n") % 997 == 0)

        result = start.iterate(step, limit=3)
        result.inspect(lambda row, time, diff: seen.append((time, row, diff)))
    if worker.index == 0:
        starts.insert([(997,)])
        for epoch in range(40):
            others.insert([(n,) for n in range(1000 * epoch, 1000 * epoch + 1000)])
            others.advance_to(epoch + 1)
            worker.step()
    else:
        others.advance_to(40)
    for _ in range(100):
        worker.step()
    n_waiting = spilled(worker)
    starts.close()
    others.close()
    worker.run()
    return sorted(seen), n_waiting


@pytest.mark.parametrize("how", WORKERS)
def test_epochs_that_wait_to_enter_a_loop_are_on_disk(how: Any) -> None:
    free = ps.execute(waiting_for_a_loop, **how)
    # So much that what is on its way fits, and what waits does not.
    bounded = ps.execute(waiting_for_a_loop, memory_limit=10 * LIMIT, **how)
    found = [sorted(update for seen, _ in ran for update in seen) for ran in (bounded, free)]
    assert found[0] == found[1]
    assert found[0], "something comes of it"
    assert bounded[0][1] > 300_000, "epochs of 16 kB"
    assert free[0][1] == 0


def test_a_worker_that_does_not_read_makes_its_peer_spill_what_it_sends(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> Any:
        got: list[int] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            to_one = stream.exchange(to=lambda batch: np.ones(len(batch), np.int64))
            to_one.inspect_batch(lambda time, batch: got.append(batch.num_rows))
        if worker.index == 0:
            # Far more than the memory that the two share.
            for _ in range(90):
                input.send_batch(pa.record_batch({"x": np.ones(1 << 20, np.int8)}))
            (tmp_path / "sent").touch()
        while not (tmp_path / "sent").exists():
            time.sleep(0.01)
        n_spilled = spilled(worker)
        input.close()
        worker.run()
        return n_spilled, sum(got), worker.environment.memory.peak_bytes  # type: ignore[union-attr]

    (n_spilled, _, peak), (_, n, peak_there) = ps.execute(main, workers=2, memory_limit="8MiB")
    assert n == 90 << 20
    assert n_spilled > 8 << 20
    assert max(peak, peak_there) <= (8 << 20) + 2 * ((1 << 20) + 1000)


@settings(deadline=None, max_examples=examples(25))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 20), max_size=30)), max_size=8),
    st.integers(1, 3),
    st.integers(0, 5),
    st.sampled_from([1, 500]),
)
def test_simulated_runs_give_the_same(
    parts: list[Any], workers: int, seed: int, limit: int
) -> None:
    def main(worker: ps.Worker) -> Any:
        found: list[Any] = []
        with worker.dataflow() as scope:
            given_ = parts if worker.index == 0 else []
            stream = scope.to_stream([(t, x) for t, xs in parts for x in xs] if given_ else [])
            later = stream.delay(lambda pair, time: pair[0]).map(lambda pair: pair[1])
            loop = later.exchange().iterate(
                lambda s: s.filter(lambda x: x > 0).map(lambda x: x - 1)
            )
            counted = loop.aggregate(
                lambda key, x, n: n + 1, lambda key, n: (key, n), key=lambda x: x, default=0
            )
            counted.inspect_time(lambda time, pair: found.append((time, pair)))
        worker.run()
        return found

    free = ps.simulate(main, workers=workers, seed=seed)
    bounded = ps.simulate(main, workers=workers, seed=seed, memory_limit=limit)
    assert sorted(chain.from_iterable(bounded)) == sorted(chain.from_iterable(free))


def test_nothing_is_left_of_a_worker_that_is_killed(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.exchange()
        for number in range(200):
            input.send_batch([number] * 100)
            input.advance_to(number)
        assert spilled(worker)
        if worker.index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        input.close()
        worker.run()

    with pytest.raises(WorkerError, match="worker 1"):
        ps.execute(main, workers=2, memory_limit=1000, spill_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", WORKERS)
def test_an_error_leaves_nothing_and_reaches_the_caller(tmp_path: Path, how: Any) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.exchange().map(lambda x: 1 // (x - 150))
        for number in range(200):
            input.send_batch([number] * 100)
            input.advance_to(number)
        input.close()
        worker.run()

    with pytest.raises(WorkerError, match="division"):
        ps.execute(main, memory_limit=1000, spill_directory=tmp_path, **how)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given_", "n_bytes"),
    [
        (5, 5),
        ("512MB", 512 * 10**6),
        ("2 GiB", 2 << 30),
        ("1.5k", 1500),
        ("7", 7),
        ("3TB", 3 * 10**12),
    ],
)
def test_a_limit_is_a_size(given_: Any, n_bytes: int) -> None:
    assert memory_bytes(given_) == n_bytes


@pytest.mark.parametrize("given_", [0, -1, 1.5, True, "", "much", "-5MB", "5 XB", "0", b"5"])
def test_what_is_no_size_is_refused(given_: Any) -> None:
    with pytest.raises(UsageError, match=r"memory_limit=.* is no size: give bytes"):
        ps.execute(lambda worker: None, memory_limit=given_)


def test_a_directory_without_a_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give both"):
        ps.execute(lambda worker: None, spill_directory=tmp_path)
    with pytest.raises(UsageError, match="is a path, and not 7"):
        ps.execute(lambda worker: None, memory_limit=5, spill_directory=7)  # type: ignore[arg-type]


def test_a_directory_that_a_worker_does_not_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="is no directory that can be written to") as caught:
        ps.execute(lambda worker: None, memory_limit=5, spill_directory=tmp_path / "gone")
    assert isinstance(caught.value.__cause__, SpillError)
