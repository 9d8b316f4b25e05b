"""Lives of a program that commits to a store whose answers are lost, and of its client.

What the client sends at an epoch is a number of its own each time. It repeats a commit that has
failed, with what it sent before or with more; or it takes back what it sent, and sends something
else; or the program ends, and another life begins with what is there. What a life has begun with
was seen, and has to stay.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import fs

from pointstamp.checkpoint import BinDelta, Checkpoint, Staged, TableDelta
from pointstamp.errors import CheckpointError, CheckpointWarning
from tests.checkpoint.doubtful_bucket import DoubtfulBucket, Killed

KEY = ("sums/Sum", "sum")
OUTPUT = "output: sums"
N_EPOCHS = 8


def numbers(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64())})


def values(checkpoint: Checkpoint, staged: list[Staged]) -> list[int]:
    return [x for one in staged for b in checkpoint.read(one) for x in b["x"].to_pylist()]


class Client:
    """What was acknowledged, and what was not and may be there."""

    def __init__(self, seed: int) -> None:
        self.rolled = random.Random(f"client {seed}")
        self.acknowledged: dict[int, list[int]] = {}
        self.tried: dict[int, list[list[int]]] = {}
        self._last = 0

    def number(self) -> int:
        self._last += 1
        return self._last

    @property
    def total(self) -> int:
        return sum(map(sum, self.acknowledged.values()))


class Life:
    """One run of the program."""

    def __init__(
        self, checkpoint: Checkpoint, client: Client, is_fault: Callable[[str], bool]
    ) -> None:
        self.client = client
        self.checkpoint = checkpoint
        self.is_fault = is_fault
        """Whether an error is that of a store that does not answer, by what it says."""

    def begin(self) -> None:
        """Take up what is there, and look that it is what it may be."""
        checkpoint, client = self.checkpoint, self.client
        with warnings.catch_warnings():
            # Of a manifest that came when its parts were removed.
            warnings.simplefilter("ignore", CheckpointWarning)
            manifest = checkpoint.latest()
        checkpoint.begin()
        total, epoch = 0, -1
        if manifest is not None:
            epoch = manifest.epoch
            for batch in checkpoint.read_bins(manifest, *KEY, [0]):
                total += sum(batch["x"].to_pylist())
            beside = [Staged.from_json(one) for one in manifest.meta["outputs"]]
            assert values(checkpoint, beside) == [epoch]
            known = {e: v for e, v in client.acknowledged.items() if e <= epoch}
            assert total == sum(map(sum, known.values()))
        for found, staged in checkpoint.committed("a", epoch):
            assert found == epoch + 1
            epoch, there = found, values(checkpoint, staged)
            if found in client.acknowledged:
                assert there == client.acknowledged[found]
            else:
                assert there in client.tried[found]
                client.acknowledged[found] = there
            total += sum(there)
        assert list(client.acknowledged) == list(range(epoch + 1))
        assert total == client.total
        assert checkpoint.reached("a") == len(client.acknowledged)

    def go_on(self, former: Life | None = None) -> None:
        """Commit one epoch after the other, and make snapshots now and then.

        former : a life that has ended, for all that is known, and does something after all
        """
        client = self.client
        for epoch in range(len(client.acknowledged), N_EPOCHS):
            if former is not None and client.rolled.random() < 0.3:
                former.commit_late(epoch)
            self.commit(epoch)
            if client.rolled.random() < 0.3:
                self.snapshot(epoch)

    def commit(self, epoch: int) -> None:
        """Until it has succeeded, with the same, more, or something else."""
        checkpoint, client = self.checkpoint, self.client
        sent: list[tuple[int, Staged]] = []
        while True:
            try:
                if not sent or client.rolled.random() < 0.3:
                    number = client.number()
                    sent.append(
                        (number, checkpoint.stage("a", epoch, f"a{number}", [numbers(number)]))
                    )
                chosen = [number for number, _ in sent]
                client.tried.setdefault(epoch, []).append(chosen)
                assert checkpoint.commit("a", epoch, [staged for _, staged in sent])
            except CheckpointError as error:
                if not self.is_fault(str(error)):
                    raise
                if client.rolled.random() < 0.3:
                    taken = sent.pop() if sent else None
                    if taken is not None:
                        self._quietly(lambda: checkpoint.abort("a", epoch, taken[1]))  # noqa: B023
                continue
            client.acknowledged[epoch] = chosen
            return

    def commit_late(self, epoch: int) -> None:
        """Another has begun meanwhile, so what this does counts for nobody."""
        with contextlib.suppress(CheckpointError):
            staged = self.checkpoint.stage("a", epoch, f"late {self.client.number()}", [numbers(0)])
            assert not self.checkpoint.commit("a", epoch, [staged])

    def snapshot(self, epoch: int) -> None:
        """As a service does it: what cannot be written is given up, and removed."""
        checkpoint = self.checkpoint
        try:
            life = self.client.number()
            beside = checkpoint.stage(OUTPUT, epoch + 1, f"life {life}", [numbers(epoch)])
            table = TableDelta("sums", {0: BinDelta(numbers(self.client.total), True)})
            part = checkpoint.write_part(epoch, 0, {KEY: table}, None)
            checkpoint.commit_manifest(epoch, [part], {"outputs": [beside.to_json()]})
        except CheckpointError:
            self._quietly(lambda: checkpoint.discard_snapshot(epoch, [OUTPUT]))
        else:
            self._quietly(lambda: checkpoint.prune(2))

    @staticmethod
    def _quietly(change: Any) -> None:
        """What fails here is tried again later."""
        with contextlib.suppress(CheckpointError):
            change()


def begin(checkpoint: Checkpoint, client: Client, is_fault: Callable[[str], bool]) -> Life:
    """A life that has begun: where it could not read or write, it has tried again."""
    life = Life(checkpoint, client, is_fault)
    while True:
        try:
            life.begin()
            return life
        except CheckpointError as error:
            if not is_fault(str(error)):
                raise


def come_through(seed: int, share: float = 0.12) -> DoubtfulBucket:
    """All lives of a seed; raises where something is lost or comes twice."""
    bucket, client = DoubtfulBucket(seed, share), Client(seed)
    rolled = random.Random(f"lives {seed}")
    life = None
    while len(client.acknowledged) < N_EPOCHS:
        bucket.n_until_killed = rolled.randrange(1, 150)
        former = life
        try:
            checkpoint = Checkpoint("root", fs.PyFileSystem(bucket))
            life = begin(checkpoint, client, lambda error: "no answer" in error)
            life.go_on(former)
        except Killed:
            continue
    bucket.n_until_killed, bucket.share = None, 0.0
    begin(Checkpoint("root", fs.PyFileSystem(bucket)), client, lambda error: False)
    assert len(client.acknowledged) == N_EPOCHS
    return bucket
