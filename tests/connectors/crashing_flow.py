"""A flow of a source, a state and a transactional sink that outlive its workers, and crash points.

Keys belong to partitions, so that the running sums of a key come in one order however the
workers go: what comes out is one list of records, whatever dies and when.
"""

from __future__ import annotations

import contextlib
import random
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyarrow import fs

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.dataflow.connectors import SinkContext
from pointstamp.errors import WorkerError
from pointstamp.runtime import run_flow
from pointstamp.runtime.run_flow import Flow
from tests.checkpoint.bucket import Bucket

N_BATCHES = 6
PARTITIONS = ("a", "b", "c")


class CrashPoint(Exception):
    """The program ends here."""


class Fuse:
    """Ends the program at its n-th use; None never does."""

    def __init__(self) -> None:
        self.left: int | None = None

    def burn(self) -> None:
        """A point at which the program may end."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise CrashPoint


class EndsAfterCommit:
    """Before a sink among bases: commits, and has the program end before it comes to know that."""

    n_left = 1
    """How many commits there are until then."""

    def commit(self, tokens: Any) -> None:
        super().commit(tokens)  # type: ignore[misc]  # of the sink
        type(self).n_left -= 1
        if type(self).n_left == 0:
            raise OSError("the program ends here")


class Numbers:
    """A source: of each partition some batches of (key, number); a position is how many."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def partitions(self) -> Sequence[str]:
        return PARTITIONS

    def open(self, partition: str, position: int | None) -> Iterator[tuple[Any, int] | None]:
        for n in range(position or 0, N_BATCHES):
            self._fuse.burn()
            yield records(partition, n), n + 1
            if n % 2:
                yield None


def records(partition: str, n: int) -> list[tuple[str, int]]:
    """Those of a batch."""
    return [(f"{partition}{n % 2}", 10 * n + place) for place in range(n % 3 + 1)]


def expected() -> Counter[Any]:
    """All running sums."""
    found: Counter[Any] = Counter()
    for partition in PARTITIONS:
        sums: Counter[str] = Counter()
        for n in range(N_BATCHES):
            for key, number in records(partition, n):
                sums[key] += number
                found[key, sums[key]] += 1
    return found


class Store:
    """A sink in memory, which outlives the workers."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.staged: dict[str, list[Any]] = {}
        self.committed: dict[tuple[int, int], list[Any]] = {}
        """By epoch and worker, as files are: what comes twice takes the place of the other."""

    def open(self, context: SinkContext) -> StoreWriter:
        return StoreWriter(self, context)

    def commit(self, tokens: Sequence[tuple[str, int, int]]) -> None:
        for token in tokens:
            self.fuse.burn()
            staged, *place = token
            if staged in self.staged:
                self.committed[place[0], place[1]] = self.staged.pop(staged)
            assert tuple(place) in self.committed, f"{token} is lost"
        self.fuse.burn()

    def abort(self, run: str) -> None:
        for token in [token for token in self.staged if not token.startswith(run)]:
            self.fuse.burn()
            del self.staged[token]

    def seen(self) -> Counter[Any]:
        """What was committed."""
        return Counter(record for batch in self.committed.values() for record in batch)


class StoreWriter:
    """What a worker writes to it with."""

    def __init__(self, store: Store, context: SinkContext) -> None:
        self._store = store
        self._context = context
        self._records: list[Any] = []

    def write(self, batch: Any) -> None:
        self._store.fuse.burn()
        self._records += batch

    def prepare(self, epoch: int) -> tuple[str, int, int] | None:
        if not self._records:
            return None
        staged = f"{self._context.run} {self._context.index} {epoch}"
        self._store.fuse.burn()
        self._store.staged[staged], self._records = self._records, []
        self._store.fuse.burn()
        return staged, epoch, self._context.index

    def close(self) -> None:
        self._records = []


class Fused(Checkpoint):
    """A checkpoint with crash points around the manifest."""

    fuse: Fuse

    def commit_manifest(self, epoch: int, parts: Any, meta: Any) -> Any:
        self.fuse.burn()
        found = super().commit_manifest(epoch, parts, meta)
        self.fuse.burn()
        return found


def cause_of(error: BaseException) -> BaseException:
    """What it all came from."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def add(key: str, number: int, total: int) -> Any:
    return total + number, [(key, total + number)]


def outlived(
    seed: int,
    work: Callable[[Any, Any], None] = run_flow.work,
    make_store: Callable[[Fuse], Any] = Store,
) -> Counter[Any]:
    """What is committed by a flow that dies at some points drawn from `seed`, and then goes on."""
    draw = random.Random(seed)
    fuse = Fuse()
    store, source = make_store(fuse), Numbers(fuse)
    checkpoint = Fused("root", fs.PyFileSystem(Bucket()))  # which has no disk to wait for
    checkpoint.fuse = fuse

    def sums(scope: Any) -> None:
        scope.source(source).state_machine(add, default=0).sink(store)

    for life in range(draw.randint(2, 5)):
        fuse.left = None
        durable = Durable(checkpoint, checkpoint.latest())
        flow = Flow(sums, durable, draw.choice([0.0, 0.003, 0.02]), f"run {life}")
        fuse.left = draw.randint(1, 60)
        peers = draw.randint(1, 3)
        with contextlib.suppress(CrashPoint):
            try:
                ps.simulate(work, flow, workers=peers, seed=draw.randint(0, 1 << 20))
            except WorkerError as error:
                raise cause_of(error) from error
    fuse.left = None
    flow = Flow(sums, Durable(checkpoint, checkpoint.latest()), 0.005, "last run")
    ps.simulate(work, flow, workers=2, seed=seed)
    return store.seen()


def planted(module: Any, *changes: tuple[str, str]) -> types.ModuleType:
    """A module with other lines; fails if those are not there, so that none is planted in vain."""
    text = Path(module.__file__).read_text()
    for old, new in changes:
        assert text.count(old) == 1, f"{module.__name__} has not one {old!r}"
        text = text.replace(old, new)
    made = types.ModuleType(module.__name__)
    made.__file__ = module.__file__
    exec(compile(text, module.__file__, "exec"), made.__dict__)
    return made
