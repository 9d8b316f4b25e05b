"""Workers that die at any moment, and begin again from what is stored: nothing lost or twice.

The driver stands outside, as a service's would: inputs are staged and committed in the log
before they are sent; what comes out of an epoch is taken once, when every worker has seen the
epoch complete; a snapshot is sealed when all parts are there and its epoch is so too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.errors import WorkerError
from tests.conftest import examples

Epoch = Mapping[int, int]
"""What a key is to be added, at an epoch."""


class Driver:
    """What outlives the workers: the checkpoint, and what has come out so far."""

    def __init__(self, checkpoint: Checkpoint, epochs: list[Epoch], every: int) -> None:
        self.checkpoint = checkpoint
        self.every = every
        self.n_epochs = len(epochs)
        self.out: dict[int, list[Any]] = {}
        self._seen: dict[int, dict[int, list[Any]]] = {}
        self._parts: dict[int, list[Any]] = {}
        for epoch, records in enumerate(epochs):
            batch = pa.RecordBatch.from_pydict(
                {"k": pa.array(list(records), pa.int64()), "v": list(records.values())}
            )
            checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, 0, [batch])])

    def begin(self) -> None:
        """Forget what workers that died have told."""
        self._seen, self._parts = {}, {}

    def staged(self, after: int) -> list[tuple[int, list[Any]]]:
        """By epoch, what is to be sent."""
        found = []
        for epoch, winners in self.checkpoint.committed("a", after):
            batches = [batch for winner in winners for batch in self.checkpoint.read(winner)]
            records = [(row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]
            found.append((epoch, records))
        return found

    def complete(self, epoch: int, worker: int, peers: int, records: list[Any]) -> None:
        """A worker has seen `epoch` complete, with these records of its own."""
        told = self._seen.setdefault(epoch, {})
        told[worker] = sorted(records)
        if len(told) == peers:
            whole = sorted(record for part in told.values() for record in part)
            # Of an epoch that was complete before, the same comes again, and is not taken.
            assert self.out.setdefault(epoch, whole) == whole

    def give(self, part: Any, peers: int) -> None:
        """A worker's part of a snapshot, of an epoch that it has seen complete."""
        parts = self._parts.setdefault(part.epoch, [])
        parts.append(part)
        if len(parts) == peers:
            self.checkpoint.commit_manifest(part.epoch, parts, {})
            self.checkpoint.prune(2)


def fold(key: int, value: int, state: int) -> Any:
    return state + value, [(key, state + value)]


def program(worker: ps.Worker, driver: Driver, durable: Durable, last_step: int | None) -> None:
    """Run what is staged; worker 0 dies after so many steps, if that is not None."""
    n_steps = 0

    def step() -> None:
        nonlocal n_steps
        worker.step()
        n_steps += 1
        if n_steps == last_step and worker.index == 0:
            raise RuntimeError("crashed")

    seen: dict[int, list[Any]] = {}
    with worker.dataflow("sums", durable=durable) as scope:
        input, stream = scope.new_input()
        sums = stream.state_machine(fold, default=0)
        last = stream.join(sums.map(lambda r: r), lambda r: r[0], retain=True)
        sums.concat(last).inspect_batch(
            lambda time, batch: seen.setdefault(time, []).extend(map(repr, batch))
        )
        probe = sums.concat(last).probe()
    told, snapshots = durable.epoch, []

    def tell(upto: int) -> None:
        nonlocal told
        while told < upto and not probe.less_equal(told + 1):
            told += 1
            driver.complete(told, worker.index, worker.peers, seen.get(told, []))
        while snapshots and snapshots[0].done and snapshots[0].epoch <= told:
            driver.give(snapshots.pop(0).part, worker.peers)

    committed = driver.staged(durable.epoch)
    for epoch, _ in committed:
        if epoch % driver.every == driver.every - 1:
            snapshots.append(worker.snapshot(epoch, background=False))
    for epoch, records in committed:
        input.advance_to(epoch)
        for key, value in records:
            if key % worker.peers == worker.index:
                input.send((key, value))
        for _ in range(3):
            step()
            tell(epoch - 1)
    input.close()
    while not probe.done:
        step()
        tell(driver.n_epochs - 1)
    tell(driver.n_epochs - 1)


def oracle(epochs: list[Epoch]) -> dict[int, list[Any]]:
    """The sums, and every pair of a record and a sum of its key, at the later's epoch."""
    sums: dict[int, int] = {}
    lefts: list[tuple[int, int]] = []
    rights: list[tuple[int, int]] = []
    out = {}
    for epoch, records in enumerate(epochs):
        new_left = list(records.items())
        for key, value in new_left:
            sums[key] = sums.get(key, 0) + value
        new_right = [(key, sums[key]) for key in records]
        pairs = [(a, b) for a in lefts + new_left for b in rights + new_right if a[0] == b[0]]
        before = [(a, b) for a in lefts for b in rights if a[0] == b[0]]
        for pair in before:
            pairs.remove(pair)
        lefts += new_left
        rights += new_right
        out[epoch] = sorted(map(repr, [*new_right, *pairs]))
    return out


@settings(max_examples=examples(25))
@given(
    st.lists(st.dictionaries(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=8),
    st.integers(1, 3),
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 2**20), st.none() | st.integers(1, 40)),
        max_size=4,
    ),
)
def test_nothing_is_lost_and_nothing_comes_twice(
    epochs: list[Epoch], every: int, kills: list[tuple[int, int, int | None]]
) -> None:
    """Each run has its own number of workers, and all but the last are killed, if not done."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Checkpoint(folder), epochs, every)
        runs = [(*kill, kill[2] is None) for kill in kills] + [(2, 0, None, False)]
        for peers, seed, last_step, crash in runs:
            driver.begin()
            checkpoint = Checkpoint(folder)
            durable = Durable(checkpoint, checkpoint.latest())
            try:
                ps.simulate(
                    program, driver, durable, last_step, workers=peers, seed=seed, crash=crash
                )
                break
            except WorkerError as error:
                assert "crashed" in str(error)  # noqa: PT017  (of runs some are killed)
        assert driver.out == oracle(epochs)
