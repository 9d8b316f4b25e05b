"""Random epochs: operators that are aligned for snapshots, keyed state, logs of inputs."""

from __future__ import annotations

from collections import Counter, deque
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyarrow import fs

from pointstamp.checkpoint import Checkpoint
from pointstamp.checkpoint.deltas import TableDelta
from pointstamp.checkpoint.keyed_state import KeyedBatches, KeyedRows, by_key
from pointstamp.containers import Arrays
from pointstamp.dataflow.alignment import AlignedFrontier, EpochAligner, Epochs
from pointstamp.errors import CorruptCheckpointError, UsageError
from pointstamp.progress.timestamp import Int, Product, Timestamp
from tests.checkpoint.bucket import Bucket


class _OfRounds:
    """Times of a loop, as seen by the scope around it."""

    def to_outer(self, time: Any) -> Any:
        return time[0]

    def to_inner(self, time: Any) -> Any:
        return (time, 0)


class _Total:
    """A table whose cut is how much was added."""

    kind = "total"

    def __init__(self) -> None:
        self.total = 0

    def take_delta(self) -> Any:
        return self.total

    def load(self, batches: Any, index: int, peers: int) -> None:
        raise NotImplementedError

    def begin_anew(self) -> None:
        raise NotImplementedError


def check_alignment(seed: int) -> None:
    """A snapshot at an epoch has all that was sent up to it, and nothing that was sent later."""
    _Aligned(seed).run()


class _Aligned:
    """One operator behind an aligner, and what is sent to it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.is_nested = self.rng.random() < 0.4
        timestamp: Timestamp = Product(Int, Int) if self.is_nested else Int
        n_inputs = self.rng.choice([1, 2, 2])
        self.epochs = Epochs([_OfRounds()] if self.is_nested else [])
        self.at = [0] * n_inputs
        """Per input: the epoch that its source is at."""
        self.counts = [AlignedFrontier(timestamp, [(timestamp.minimum, 1)]) for _ in self.at]
        self.aligner = EpochAligner("op", self.epochs, self.counts, lambda: None)
        self.aligner.begin([False], timestamp.minimum)
        self.table: Any = _Total()
        self.aligner.tables["total"] = self.table
        self.gates = [self.aligner.waiting() for _ in self.at]
        self.queues: list[deque[tuple[Any, int]]] = [deque() for _ in self.at]
        self.sent = Counter[int]()
        self.held = Counter[Any]()
        self.changes: list[tuple[Any, int]] = []
        self.asked: list[int] = []
        self.is_closed = False

    def run(self) -> None:
        for _ in range(60):
            action = self.rng.random()
            if action < 0.5:
                self.send(self.rng.randrange(len(self.at)))
            elif action < 0.65:
                self.ask()
            else:
                self.step()
            self.check()
        self.is_closed = True
        for which, epoch in enumerate(self.at):
            self.counts[which].change(self.time(epoch), -1)
        for _ in range(200):
            self.step()
            self.check()
        assert not self.asked, f"no snapshot was made at {self.asked}"
        assert not any(self.queues)
        assert self.table.total == sum(self.sent.values())

    def time(self, epoch: int, rounds: int = 0) -> Any:
        return (epoch, rounds) if self.is_nested else epoch

    def send(self, which: int) -> None:
        for _ in range(self.rng.choice([1, 1, 2, 10])):
            ahead = self.rng.choice([0, 0, 1, 3])
            time = self.time(self.at[which] + ahead, self.rng.randrange(3))
            value = self.rng.randrange(1, 100)
            self.sent[self.epochs.of(time)] += value
            self.counts[which].change(time, +1)
            self.queues[which].append((time, value))
        if self.rng.random() < 0.5:
            before = self.at[which]
            self.at[which] += self.rng.randint(1, 2)
            self.counts[which].change(self.time(self.at[which]), +1)
            self.counts[which].change(self.time(before), -1)

    def ask(self) -> None:
        """Ask for a snapshot, unless what is later was given to the operator."""
        epoch = max(self.asked[-1] + 1 if self.asked else 0, self.rng.randint(0, max(self.at) + 2))
        try:
            self.aligner.check_in_time(epoch)
        except UsageError:
            return
        self.asked.append(epoch)
        self.aligner.hold(epoch, self.take)

    def take(self, operator: str, tables: Any) -> None:
        epoch = self.asked.pop(0)
        assert operator == "op"
        assert tables["total"] == sum(n for e, n in self.sent.items() if e <= epoch)
        assert all(self.epochs.of(time) > epoch for time in self.held)
        assert self.is_closed or min(self.at) > epoch

    def step(self) -> None:
        """One activation: take what may come, keep a capability or let one go."""
        for which, gate in enumerate(self.gates):
            for _ in range(self.rng.choice([0, 1, 5])):
                item = gate.ready()
                while item is None and self.queues[which]:
                    item = self.queues[which].popleft()
                    if not gate.admits(item):
                        item = None
                if item is None:
                    break
                time, value = item
                limit = self.asked[0] if self.asked else None
                assert limit is None or self.epochs.of(time) <= limit
                self.table.total += value
                self.counts[which].change(time, -1)
                if self.rng.random() < 0.4:
                    self.hold(time, +1)
        if self.held and self.rng.random() < 0.5:
            time = self.rng.choice([*self.held])
            self.hold(time, -self.held[time])
        while self.aligner.after([SimpleNamespace(changes=self.changes)]):  # type: ignore[list-item]
            self.changes = []
        self.changes = []

    def hold(self, time: Any, change: int) -> None:
        self.changes.append((time, change))
        self.held[time] += change
        if not self.held[time]:
            del self.held[time]

    def check(self) -> None:
        """While a snapshot is waited for, later times may still come, and wait."""
        if not self.asked:
            assert self.aligner.limit is None
            return
        assert self.aligner.limit == self.asked[0]
        after = self.epochs.first(self.asked[0] + 1)
        for each in self.counts:
            assert each.less_equal(after)
            assert each.less_than(after)


def check_keyed_state(seed: int) -> None:
    """What tables have told of their changes makes the same tables, on any number of workers."""
    rng = Random(seed)
    rows, model = KeyedRows(), dict[Any, Any]()
    stored: dict[int, list[Any]] = {}
    for _ in range(rng.choice([3, 8])):
        for _ in range(rng.choice([0, 1, 5, 60])):
            key = rng.choice([rng.randrange(30), f"key {rng.randrange(30)}", (rng.randrange(5), 1)])
            action = rng.random()
            if action < 0.6:
                rows[key] = model[key] = rng.randrange(1000)
            elif action < 0.8 and key in model:
                del rows[key], model[key]
            elif action < 0.9:
                assert rows.pop(key, None) == model.pop(key, None)
            elif action < 0.98:
                rows.setdefault(key, 5)
                model.setdefault(key, 5)
            elif rng.random() < 0.3:
                rows.clear()
                model.clear()
        if rng.random() < 0.2:
            rows.begin_anew()
        _store(stored, rows.take_delta())
        assert rows == model
        peers = rng.choice([1, 1, 2, 3])
        copies = [KeyedRows() for _ in range(peers)]
        for index, copy in enumerate(copies):
            copy.load(_batches(stored), index, peers)
        assert sum(map(len, copies)) == len(model)
        assert {k: v for copy in copies for k, v in copy.items()} == model
        if peers == 1 and rng.random() < 0.5:
            [rows] = copies
    _check_keyed_batches(rng)


def _check_keyed_batches(rng: Random) -> None:
    kept: list[tuple[int, Arrays]] = []
    grows_only = rng.random() < 0.5

    def table(into: list[tuple[int, Arrays]]) -> KeyedBatches:
        def take_in(tag: int, batch: Arrays) -> None:
            into.append((tag, batch))

        return KeyedBatches(lambda: into, take_in, by_key("k"), grows_only=grows_only)

    batches, stored = table(kept), dict[int, list[Any]]()
    for tag in range(4):
        for _ in range(rng.choice([0, 1, 3])):
            n_rows = rng.choice([1, 5, 100])
            new = Arrays(k=np.array([rng.randrange(50) for _ in range(n_rows)]))
            kept.append((tag, new))
            batches.add(tag, new)
        if rng.random() < 0.2:
            kept.clear()
            batches.clear()
        elif kept and not grows_only and rng.random() < 0.5:
            kept.pop(rng.randrange(len(kept)))
        _store(stored, batches.take_delta())
        copies: list[list[tuple[int, Arrays]]] = [[] for _ in range(rng.choice([1, 2, 3]))]
        for index, copy in enumerate(copies):
            table(copy).load(_batches(stored), index, len(copies))
        assert _rows(kept) == sum(map(_rows, copies), Counter())
        found = [{k for _, k in _rows(copy)} for copy in copies]
        assert sum(map(len, found)) == len(set().union(*found))  # a key is on one worker


def _rows(parts: list[tuple[int, Arrays]]) -> Counter[tuple[int, int]]:
    return Counter((tag, key) for tag, batch in parts for key in batch["k"].tolist())


def _store(stored: dict[int, list[Any]], delta: TableDelta) -> None:
    if delta.is_whole:
        stored.clear()
    for bin, change in delta.changes.items():
        stored[bin] = [change.batch] if change.is_whole else [*stored.get(bin, ()), change.batch]


def _batches(stored: dict[int, list[Any]]) -> list[Any]:
    return [batch for bin in stored.values() for batch in bin]


class _Killed(BaseException):
    """The process ends here."""


class _Fuse(Bucket):
    """A bucket whose user is killed at its n-th change."""

    n_left = 1 << 30

    def _burn(self) -> None:
        self.n_left -= 1
        if self.n_left < 0:
            raise _Killed

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self._burn()
        return super().open_output_stream(path, metadata)

    def delete_file(self, path: str) -> None:
        self._burn()
        super().delete_file(path)


def check_log(seed: int) -> None:
    """Of attempts that are staged those that are committed count, once, whenever one is killed."""
    rng = Random(seed)
    bucket = _Fuse()
    log = Checkpoint("root", fs.PyFileSystem(bucket))
    model: dict[str, dict[int, list[int]]] = {"a": {}, "b/c": {}}
    reached = dict.fromkeys(model, 0)
    pruned = -1
    for number in range(15):
        input = rng.choice([*model])
        epoch = reached[input]
        bucket.n_left = rng.randrange(6) if rng.random() < 0.3 else 1 << 30
        until = epoch + rng.choice([1, 1, 3])
        values: list[int] = []
        has_begun = False
        try:
            attempts = []
            for attempt in range(rng.choice([0, 1, 3])):
                own = [rng.randrange(1000) for _ in range(rng.choice([0, 1, 20]))]
                attempts.append((log.stage(input, epoch, f"{number}.{attempt}", _cut(own)), own))
            chosen = [each for each in attempts if rng.random() < 0.7]
            values = [x for _, own in chosen for x in own]
            has_begun = True
            assert log.commit(input, epoch, [staged for staged, _ in chosen], until)
            has_begun = False
            model[input][epoch], reached[input] = values, until
            assert not log.commit(input, epoch, [staged for staged, _ in attempts], until + 5)
            log.abort(input, epoch, [staged for staged, _ in attempts])
            if rng.random() < 0.2:
                pruned = max(pruned, _prune(rng, log, reached))
        except _Killed:
            bucket.n_left = 1 << 30
            log = Checkpoint("root", fs.PyFileSystem(bucket))
            if has_begun and epoch in dict(log.committed(input, -1)):
                model[input][epoch], reached[input] = values, until
        bucket.n_left = 1 << 30
        manifest = log.latest()
        pruned = max(pruned, -1 if manifest is None else manifest.epoch)
        for each, expected in model.items():
            assert log.reached(each) == reached[each]
            found = {
                e: [x for s in staged for b in log.read(s) for x in b["x"].to_pylist()]
                for e, staged in log.committed(each, pruned)
            }
            assert found == {e: own for e, own in expected.items() if e > pruned}
            assert list(found) == sorted(found)
    for each, expected in model.items():
        epochs = [epoch for epoch in expected if epoch > pruned]
        if len(epochs) > 1:
            _check_gap(bucket, log, each, rng.choice(epochs[:-1]))


def _check_gap(bucket: _Fuse, log: Checkpoint, input: str, epoch: int) -> None:
    """A commit record that is lost from the middle of the log is missed."""
    [name] = [
        name
        for name in bucket.objects
        if name.startswith(f"root/log/{quote(input, safe='')}/")
        and f"{epoch:020}/" in name
        and name.endswith(".json")
    ]
    del bucket.objects[name]
    try:
        list(log.committed(input, -1))
    except CorruptCheckpointError:
        return
    raise AssertionError(f"{name} was removed, and nothing was said")


def _prune(rng: Random, log: Checkpoint, reached: dict[str, int]) -> int:
    """Make a snapshot of no tables, and prune what it has."""
    latest = log.latest()
    epoch = min(reached.values()) - 1
    if epoch < 0 or (latest is not None and latest.epoch >= epoch):
        return -1
    log.commit_manifest(epoch, [log.write_part(epoch, 0, {}, None)], {})
    log.prune(rng.choice([1, 2]))
    return epoch


def _cut(values: list[int]) -> list[pa.RecordBatch]:
    schema = pa.schema([("x", pa.int64())])
    middle = len(values) // 2
    return [
        pa.RecordBatch.from_pydict({"x": part}, schema=schema)
        for part in (values[:middle], values[middle:])
        if part
    ]
