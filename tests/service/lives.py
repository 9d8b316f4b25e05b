"""Lives of a service that end by kill -9, at a point and of a process that a plan names.

`main` is a program: the driver of a service, and the client that feeds and reads it. It has
one life after the other from the same checkpoint, until one is ended in which it dies itself;
then whoever runs it begins it again with the lives that are left. What it has acknowledged,
and read, it keeps in files of its own.

The points are methods of the package that are wrapped here, in this program and its workers.
The client behaves as Spark does. It notes a batch when it is committed, and begins each life
with the last one that it has noted, and then the one that it may have committed; each time
under a new attempt. What it repeats of a noted batch is something else, so that it shows if it
is let in. What it reads it stores by epoch, again and again the same, and then has discarded.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.checkpoint.objects import LocalObjects
from pointstamp.errors import WorkerError
from pointstamp.service.checkpoint_config import OUTPUT
from pointstamp.service.coordinator import Coordinator
from pointstamp.service.protocol import Abort
from pointstamp.service.service import Service, ServiceInput
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.snapshotting import SnapshotWriter
from tests.os_processes import of_session, running_children

FACT = {"k": pa.int64(), "v": pa.int64()}
RATE = {"k": pa.int64(), "w": pa.int64()}
TOTAL = {"k": pa.int64(), "total": pa.int64()}
PAIR = {"k": pa.int64(), "v": pa.int64(), "w": pa.int64()}
STEPS = {"k": pa.int64(), "total": pa.int64(), "steps": pa.int64()}
OUTPUTS = {"totals": TOTAL, "pairs": PAIR, "steps": STEPS}

KEYS = range(24)
NOWHERE = -7
"""The key of what is never to be let in."""

RATES_EVERY = 3
"""How many epochs there are from one batch of rates to the next."""

LAG = {"totals": 0, "pairs": 4}
"""How many epochs a reader is behind with forgetting; that of `steps` forgets nothing."""

DRIVER = -1
"""The index of the driver, where others have that of a worker."""

MOST_TICKS = 120
"""In so many batches a life should have come to where it ends."""

HEARD_S = 60.0
"""How long the first cause may take to be raised. It is 1 s on a machine that has time."""


# What goes in, which is the same whoever asks, and whenever.


def facts_of(epoch: int) -> list[tuple[int, int]]:
    """The facts of an epoch, of each key one at most."""
    rolled = random.Random(f"facts {epoch}")
    return [(key, rolled.randrange(1, 100)) for key in rolled.sample(KEYS, 8)]


def rates_of(epoch: int) -> list[tuple[int, int]]:
    """The rates of an epoch."""
    rolled = random.Random(f"rates {epoch}")
    return [(key, rolled.randrange(1, 100)) for key in rolled.sample(KEYS, 3)]


def next_fact(epoch: int) -> int:
    return epoch + 1


def next_rate(epoch: int) -> int:
    return epoch + RATES_EVERY


# The dataflow.


def fold(key: int, value: int, state: int) -> Any:
    return state + value, [(key, state + value)]


def rows(batch: Any) -> list[Any]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def columns(schema: dict[str, Any]) -> Callable[[list[Any]], pa.RecordBatch]:
    names = list(schema)
    return lambda batch: pa.RecordBatch.from_pylist(
        [dict(zip(names, row, strict=True)) for row in batch], pa.schema(schema)
    )


def collatz(row: Any) -> Any:
    key, total, n, steps = row
    return key, total, n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1


@dataclass(frozen=True)
class Build:
    """Running totals, a join of all that ever came, and a loop; on a worker of a life."""

    life: Life

    def __call__(self, scope: Any, facts: Any, rates: Any) -> dict[str, Any]:
        arm(self.life, scope.index)
        known = facts.map_batches(rows)
        totals = known.state_machine(fold, default=0)
        pairs = known.join(rates.map_batches(rows), lambda row: row[0], retain=True)
        begun = totals.map(lambda row: (*row, row[1] % 40 + 1, 0))
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            done, rest = begun.enter(inner).concat(cycle).branch(lambda row: row[2] != 1)
            loop.connect(rest.map(collatz).exchange(lambda row: row[3]))
            steps = done.leave()
        return {
            "totals": totals.map_batches(columns(TOTAL)),
            "pairs": pairs.map(lambda pair: (*pair[0], pair[1][1])).map_batches(columns(PAIR)),
            "steps": steps.map(lambda row: (row[0], row[1], row[3])).map_batches(columns(STEPS)),
        }


# Where a life ends.


@dataclass(frozen=True)
class Life:
    """A life, and its end.

    Attributes
    ----------
    where : str or None
        The point, or "any" for a moment that only the clock knows; None for the last life.
    who : str
        The "driver" alone, the "worker" at the point, a "peer" of it, or "all" at once; on
        Spark, the driver is the "group" of this program and its Java.
    index : int
        Of the worker at whose point it is.
    nth : int
        The how many-th time.
    is_still : bool
        Whether who is at the point, and is not killed, stays there.
    after_s : float
        When, for "any".
    """

    number: int
    folder: str
    workers: int
    where: str | None = None
    who: str = "all"
    index: int = 0
    nth: int = 1
    is_still: bool = False
    after_s: float = 0.0
    every: int | None = 3
    """How many epochs there are from one snapshot to the next; None for no snapshots."""
    restarts: bool = False
    """Whether the service starts its workers again, and the life goes on to its end."""
    driver: int = 0
    """The process of it."""


class Armed(threading.local):
    """What this thread is at work on."""

    writing: str | None = None
    is_pruning = False


_at = Armed()
_life: Life | None = None
_indices: set[int] = set()
_n_reached = 0
_counting = threading.Lock()


def arm(life: Life, index: int) -> None:
    """Have this process end `life` where it is to; as worker `index`, or `DRIVER`."""
    global _life, _n_reached
    if life.restarts and has_struck(life):
        return  # in these workers, which have come after those that were killed, nothing happens
    if _life is None and life.where is not None:
        install()
    if _life is not None or life.where is not None:
        # A process may serve in one life after the other.
        if _life != life:
            _life, _n_reached = life, 0
            _indices.clear()
        _indices.add(index)


def has_struck(life: Life) -> bool:
    """Whether that has happened by which the life, or its workers, were to end."""
    path = Path(life.folder) / "ends"
    lines = path.read_text().splitlines() if path.exists() else []
    return any(json.loads(line)["number"] == life.number for line in lines)


def is_here(where: str) -> bool:
    """Whether the life ends here and now."""
    global _n_reached
    if _life is None or _life.where != where:
        return False
    if not where.startswith("client/") and _life.index not in _indices:
        return False
    with _counting:
        _n_reached += 1
        return _n_reached == _life.nth


def reach(where: str) -> None:
    """This is a point; end the life if it ends here."""
    if is_here(where):
        assert _life is not None
        strike(_life, is_still=_life.is_still)


def strike(life: Life, *, is_still: bool) -> None:
    """Kill who is to be killed; who is not goes on, or stays where it is until it is ended."""
    me = os.getpid()
    with (Path(life.folder) / "ends").open("a") as file:
        file.write(json.dumps({**asdict(life), "at": time.time()}) + "\n")
    if life.who in ("group", "all"):
        # Of Spark, the Python workers are in a group of their own.
        for other in of_session(os.getsid(0)) if life.who == "all" else ():
            if other.group != life.driver and other.pid != me:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other.pid, signal.SIGKILL)
        os.killpg(life.driver, signal.SIGKILL)
    if life.who != "group":
        os.kill(victim_of(life, me), signal.SIGKILL)
    if is_still and me != life.driver:
        threading.Event().wait()


def victim_of(life: Life, me: int) -> int:
    """The process that is to be killed, from the one that is at the point."""
    if life.who == "driver":
        return life.driver
    if life.who == "all" or (life.who == "worker" and me != life.driver):
        return me
    others = [other.pid for other in running_children(life.driver) if other.pid != me]
    return others[(life.index if life.who == "worker" else life.nth) % len(others)]


def strike_later(life: Life) -> None:
    """At a moment of the clock, but not before there is somebody to kill."""
    time.sleep(life.after_s)
    while life.who in ("worker", "peer") and not running_children(life.driver):
        time.sleep(0.001)
    strike(life, is_still=False)


# The points.


def around(owner: Any, name: str, before: str | None = None, after: str | None = None) -> None:
    """Have a method be a point before it begins, and when it has returned."""
    method = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            reach(before)
        result = method(*args, **kwargs)
        if after is not None:
            reach(after)
        return result

    setattr(owner, name, wrapped)


def kind_of(name: str) -> str:
    """What an object of the checkpoint is."""
    if name.endswith("/committed.json"):
        return "record"
    if name.endswith("/manifest.json"):
        return "manifest"
    if name.endswith("/pruned.json"):
        return "pruned"
    if name.startswith("snapshots/"):
        return "part"
    return "outputs" if name.startswith(f"log/{OUTPUT[:6]}") else "attempt"


class WithoutPandas:
    """Arrow imports it with the first array that it makes, if it is there; a life is too short."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def install() -> None:
    """Wrap what is a point."""
    sys.meta_path.insert(0, WithoutPandas())
    around(ServiceInput, "stage", "client/stage/before", "client/stage/after")
    around(ServiceInput, "commit", None, "client/commit/after")
    around(ServiceWorker, "stage", "worker/stage/before", "worker/stage/after")
    around(Coordinator, "commit", "leader/commit/before", "leader/commit/after")
    around(Coordinator, "_write", None, "leader/write/after")
    around(Coordinator, "discard", "leader/discard/before", "leader/discard/after")
    around(Coordinator, "_replay", "leader/replay/before", "leader/replay/after")
    around(ServiceWorker, "_begin_again", None, "worker/begin/after")
    around(SnapshotWriter, "_write", None, "worker/parts/after")
    around(Checkpoint, "latest", None, "client/latest/after")
    for name in ("put", "create"):
        _around_writing(name)
    _around_pruning()
    _around_sync()


def _around_writing(name: str) -> None:
    method = getattr(LocalObjects, name)

    def wrapped(self: Any, place: str, data: Any) -> Any:
        kind = kind_of(place)
        reach(f"{kind}/before")
        _at.writing = kind
        result = method(self, place, data)
        reach(f"{kind}/after")
        return result

    setattr(LocalObjects, name, wrapped)


def _around_sync() -> None:
    """Of a file whose writer has said what it is: half of it, or all, without its name."""
    sync = os.fsync

    def wrapped(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            sync(descriptor)
            return
        kind, _at.writing = _at.writing, None
        if kind is not None and is_here(f"{kind}/half"):
            assert _life is not None
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            strike(_life, is_still=True)  # else half would be taken for all
        sync(descriptor)
        if kind is not None:
            reach(f"{kind}/synced")

    os.fsync = wrapped


def _around_pruning() -> None:
    prune, delete = Checkpoint.prune, LocalObjects.delete

    def pruning(self: Any, keep: int = 2) -> None:
        _at.is_pruning = True
        prune(self, keep)
        _at.is_pruning = False
        reach("leader/prune/after")

    def deleting(self: Any, name: str) -> None:
        if _at.is_pruning:
            reach("delete/before")
        delete(self, name)
        if _at.is_pruning:
            reach("delete/after")

    Checkpoint.prune = pruning  # type: ignore[method-assign]
    LocalObjects.delete = deleting  # type: ignore[method-assign]


# The client.


class Client:
    """Feeds one input, a batch an epoch, and notes what is committed."""

    def __init__(
        self,
        folder: Path,
        name: str,
        schema: dict[str, Any],
        of: Callable[[int], list[tuple[int, int]]],
        after: Callable[[int], int],
    ) -> None:
        self._path = folder / f"noted-{name}"
        self.name = name
        self._schema = pa.schema(schema)
        self._of = of
        self._after = after
        self._noted = int(self._path.read_text()) if self._path.exists() else None
        self.epoch = self._noted or 0

    def check(self, service: Service) -> None:
        """Look that the input is where it was, or one batch further, of which nobody heard."""
        last = 0 if self._noted is None else self._after(self._noted)
        assert service.input(self.name).time in (last, self._after(last))

    def send(self, service: Service) -> None:
        """The next batch; what is lost of it on the way is sent in the next life."""
        input, epoch, after = service.input(self.name), self.epoch, self._after(self.epoch)
        is_over = self._noted is not None and epoch <= self._noted
        mine = self._of(epoch) if not is_over else [(NOWHERE, 0)] * service.workers
        rolled = random.Random(f"{os.getpid()} {self.name} {epoch}")
        if rolled.random() < 0.2:
            attempts = input.stage(epoch, self._table([(NOWHERE, 1)], 1))
            if rolled.random() < 0.5:
                service.ask(Abort(tuple(attempts)))
        staged = input.stage(epoch, self._table(mine, service.workers))
        is_first = input.commit(epoch, staged, after)
        assert not (is_over and is_first)
        if not is_over:
            replaced(self._path, str(epoch))
            self._noted = epoch
        self.epoch = after

    def _table(self, records: list[tuple[int, int]], n_batches: int) -> pa.Table:
        names = self._schema.names
        shares = [records[n::n_batches] for n in range(n_batches)]
        return pa.Table.from_batches(
            [
                pa.RecordBatch.from_pylist(
                    [dict(zip(names, record, strict=True)) for record in share], self._schema
                )
                for share in shares
            ],
            self._schema,
        )


def replaced(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def take(service: Service, folder: Path, discarded: dict[str, int]) -> None:
    """Store what is complete, by epoch; what was stored before has to be the same."""
    status = service.status()
    for name, lag in LAG.items():
        # A status may be older than what we have said last.
        after, frontier = max(status.discarded[name], discarded[name]), status.outputs[name]
        assert frontier is not None  # no input is closed
        found: dict[int, list[Any]] = {epoch: [] for epoch in range(after + 1, frontier)}
        for epoch, batch in service.output(name).read(frontier - 1, after=after):
            found[epoch] += rows(batch)
        for epoch, records in found.items():
            path, text = folder / name / str(epoch), json.dumps(sorted(records))
            if path.exists():
                assert path.read_text() == text, (name, epoch)
                continue
            reach("client/store/before")
            replaced(path, text)
            reach("client/store/after")
        if frontier - 1 - lag > after:
            service.output(name).discard(frontier - 1 - lag)
            discarded[name] = frontier - 1 - lag


def serve(life: Life) -> Service:
    return ps.serve(
        Build(life),
        life.workers,
        inputs={"facts": FACT, "rates": RATE},
        outputs=OUTPUTS,
        checkpoint=Path(life.folder) / "checkpoint",
        snapshot_every=life.every,
        restart=ps.RestartPolicy(attempts=2, delay_s=0.0) if life.restarts else None,
    )


def feed(service: Service, folder: Path) -> Iterator[int]:
    """Send as much as is asked for; how far all inputs are."""
    facts = Client(folder, "facts", FACT, facts_of, next_fact)
    rates = Client(folder, "rates", RATE, rates_of, next_rate)
    facts.check(service)
    rates.check(service)
    while True:
        # Now the one input is ahead, and now the other.
        is_ahead = rates.epoch // RATES_EVERY % 2 == 0
        due = rates.epoch if is_ahead else next_rate(rates.epoch)
        (rates if facts.epoch >= due else facts).send(service)
        yield min(facts.epoch, rates.epoch)


def live(life: Life) -> None:
    """Feed and read until the end comes; without one, until all is even, and stop."""
    folder = Path(life.folder)
    with serve(life) as service:
        begun: int | None = None
        discarded = dict.fromkeys(LAG, -1)
        for tick, epoch in enumerate(feed(service, folder)):
            is_last = life.where is None or (life.restarts and has_struck(life))
            begun = epoch if begun is None and is_last else begun
            # A clock strikes however many ticks a quick machine has until then.
            is_timed = life.where == "any"
            assert tick < MOST_TICKS or is_last or is_timed, f"it never came to {life}"
            service.probe.wait(epoch - 1)
            if tick % 3 == 0:
                take(service, folder, discarded)
            if begun is not None and epoch >= begun + 6 and epoch % (2 * RATES_EVERY) == 0:
                position = {service.input(name).time for name in ("facts", "rates")}
                if position == {epoch}:
                    break
        take(service, folder, discarded)
        found = service.output("steps").read(epoch - 1, after=-1)
        steps = sorted((at, *row) for at, batch in found for row in rows(batch))
        replaced(folder / "last", json.dumps({"n_epochs": epoch, "steps": steps}))


def main(folder: str, numbered: str) -> None:
    """Have these lives, one after the other, as far as we live."""
    for name in LAG:
        (Path(folder) / name).mkdir(parents=True, exist_ok=True)
    for told in json.loads(numbered):
        life = Life(**{**told, "folder": folder, "driver": os.getpid()})
        arm(life, DRIVER)
        began = time.monotonic()
        clock = threading.Thread(target=strike_later, args=(life,), daemon=True)
        if life.where == "any":
            clock.start()
        try:
            live(life)
        except WorkerError as error:
            check_soon(Path(folder))
            check_cause(folder, life, error)
        else:
            assert life.where is None or life.restarts, f"it ended by itself: {life}"
        if life.where == "any":
            clock.join()
        assert not running_children(), "a worker is left"
        print(f"life {life.number}: {time.monotonic() - began:.2f} s", flush=True)


def check_soon(folder: Path) -> None:
    """A worker was killed just now."""
    told = json.loads((folder / "ends").read_text().splitlines()[-1])
    assert time.time() - told["at"] < HEARD_S


def check_cause(folder: str, life: Life, error: WorkerError) -> None:
    """It is the kill of this life."""
    told = json.loads((Path(folder) / "ends").read_text().splitlines()[-1])
    assert told["number"] == life.number, told
    assert "killed" in str(error) or "SIGKILL" in str(error), error
