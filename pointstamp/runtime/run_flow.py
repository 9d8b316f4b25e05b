"""`run`: a dataflow with sources and sinks of its own, which goes on where it was ended.

An *epoch* is a stretch of time, the same on all workers, and a transaction: what the sources have
read in it, what that changes in operators, and what comes out of it counts as a whole or not at
all. Worker 0, the leader, has all workers begin epochs and end them.

One epoch
---------
1. `BeginEpoch(e)`: each worker asks for a snapshot at `e`, and advances the input by which sources
   see epochs. When all workers have, sources go on to `e`. The positions that they had reached are
   in the snapshot at `e - 1`.
2. Each sink prepares what it was given of `e - 1` when that is complete. Its token is in the
   snapshot, too.
3. Each worker reports its part of the snapshot at `e - 1`. When the leader has all, it commits the
   manifest: with that, and nothing else, the epoch counts.
4. `CommitSinks(e - 1)`: each worker has its sinks commit. A program that ends before begins with
   the snapshot, and commits what that has.

Rules
-----
1. The leader begins `e + 1` when `e - 1` counts: then every worker has asked for the snapshot at
   `e`, as it has to before any worker sends what is later. So at most two epochs are under way.
2. When all sources have come to their ends, everything is complete, records delayed to later times
   as well: the last snapshot is at a time that is later than all (`FAR`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from math import inf
from os import PathLike
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pointstamp.dataflow.run_epochs import RunEpochs
from pointstamp.errors import BuildError, UsageError
from pointstamp.operators.building import name_of, takes_names
from pointstamp.operators.probe import Probe
from pointstamp.operators.scope import Scope
from pointstamp.runtime.execute import execute
from pointstamp.runtime.snapshots import Snapshot
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:
    from pointstamp.checkpoint.checkpoint import Checkpoint
    from pointstamp.checkpoint.claims import CheckpointClaim
    from pointstamp.checkpoint.durable import Durable
    from pointstamp.checkpoint.manifest import SnapshotPart

FAR = 1 << 32
"""How far after the last epoch the end of a run is: beyond what records are delayed to."""


def run(
    build: Callable[[Scope], object],
    workers: int = 1,
    *,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
    epoch_s: float = 1.0,
    threads: bool = False,
    allow_missing: Collection[str] = (),
    allow_new: Collection[str] = (),
    **options: Any,
) -> None:
    """Run a dataflow with sources and sinks of its own until its sources end.

    With a checkpoint, a run that was ended in any way can be repeated: it resumes after the last
    committed epoch, with any number of workers. Records of a `Source` then affect the state
    of operators, and a `TransactionalSink`, exactly once.

    Parameters
    ----------
    build : callable
        `build(scope)` builds the dataflow, the same on all workers, with at least one
        `scope.source(source)`. It is sent to the workers by cloudpickle.
    workers : int
        The number of workers, each in a process of its own.
    checkpoint : path, URI or Checkpoint, optional
        A folder for snapshots, of one program at a time. Without it no state survives the run.
    epoch_s : float
        The length of an epoch in seconds: the interval of snapshots, and of commits of
        transactional sinks. With 0 each epoch begins as soon as possible.
    threads : bool
        Run the workers as threads of this process instead.
    allow_missing, allow_new : collection of str
        Operators with state that may be in the snapshot only, and in the dataflow only.
    **options
        As for `execute`: `log`, `memory_limit`, `dashboard`, `metrics`, `telemetry` and so on.

    Raises
    ------
    BuildError
        If the dataflow has no source.
    UndeclaredStateError
        With a checkpoint, if an operator may have state that it does not declare.
    CheckpointStructureError
        If the snapshot does not match the program.
    CheckpointInUseError
        If another program uses the checkpoint. In an object store it is raised by the program
        that came first, at its next snapshot.
    WorkerError
        When a worker fails. Its cause is a `SourceError` or a `SinkError` if a source or a sink
        failed.

    Notes
    -----
    An epoch costs a pass over the keys that have changed, some synced files in the checkpoint,
    and a file or a transaction per worker in each sink. All records of an epoch may be
    in flight at once; sources are held back if too much is.

    Windows of an `EventClock` that are open when the sources end stay in the checkpoint for the
    next run, and are emitted when they are complete; without a checkpoint, at the end.

    Examples
    --------
    >>> import tempfile
    >>> import pointstamp as ps
    >>> class Numbers:
    ...     def __init__(self, upto):
    ...         self.upto = upto
    ...     def partitions(self):
    ...         return ["numbers"]
    ...     def open(self, partition, position):
    ...         for n in range(position or 0, self.upto):
    ...             yield [n], n + 1
    >>> def summed(upto):
    ...     def build(scope):
    ...         numbers = scope.source(Numbers(upto))
    ...         sums = numbers.map(lambda n: ("sum", n)).state_machine(
    ...             lambda key, n, sum: (sum + n, [sum + n]), default=0)
    ...         sums.inspect(print)
    ...     return build
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ps.run(summed(3), checkpoint=folder)
    ...     ps.run(summed(5), checkpoint=folder)
    0
    1
    3
    6
    10
    """
    if not isinstance(epoch_s, (int, float)) or not 0 <= epoch_s < inf:
        raise UsageError(f"an epoch takes epoch_s seconds, 0 or more; found {epoch_s!r}")
    _check_options(options)
    takes_names(build, [])
    with _durable(checkpoint, allow_missing, allow_new) as (durable, claim):
        flow = Flow(build, durable, float(epoch_s), uuid4().hex[:16], claim)

        def program(worker: Worker) -> None:
            work(worker, flow)

        program.__qualname__ = name_of(build)
        execute(program, workers=workers, threads=threads, **options)


def _check_options(options: dict[str, Any]) -> None:
    """Refuse what neither `run` nor `execute` takes, which would call it an option of `execute`."""
    known = {*signature(execute).parameters, *signature(run).parameters}
    for name in options:
        if name not in known:
            from difflib import get_close_matches  # only here, where something is wrong already

            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"run() got an unexpected keyword argument {name!r}{hint}")


@contextmanager
def _durable(
    place: Any, allow_missing: Collection[str], allow_new: Collection[str]
) -> Iterator[tuple[Durable | None, CheckpointClaim | None]]:
    """The checkpoint at a place, which is claimed meanwhile, and its last snapshot."""
    if place is None:
        yield None, None
        return
    # Here and not above: a run without a checkpoint needs no Arrow.
    from pointstamp.checkpoint.checkpoint import Checkpoint
    from pointstamp.checkpoint.durable import Durable

    checkpoint = place if isinstance(place, Checkpoint) else Checkpoint(place)
    with checkpoint.claimed() as claim:
        yield Durable(checkpoint, checkpoint.latest(), allow_missing, allow_new), claim


@dataclass(frozen=True)
class Flow:
    """What each worker runs; travels to them by cloudpickle.

    Attributes
    ----------
    build : callable
        Of the dataflow.
    durable : Durable, optional
        The checkpoint, and the snapshot to begin with.
    epoch_s : float
    run : str
        A name of this run.
    claim : CheckpointClaim, optional
        By which this program alone commits to the checkpoint.
    """

    build: Callable[[Scope], object]
    durable: Durable | None
    epoch_s: float
    run: str
    claim: CheckpointClaim | None = None

    @property
    def first(self) -> int:
        """The first epoch."""
        return 0 if self.durable is None else self.durable.epoch + 1


@dataclass(frozen=True)
class BeginEpoch:
    """An order: the epoch before is over."""

    epoch: int


@dataclass(frozen=True)
class CommitSinks:
    """An order: the snapshot of this epoch counts."""

    epoch: int


@dataclass(frozen=True)
class EndFlow:
    """An order: all sources have ended, and so do all epochs, up to this one."""

    epoch: int


@dataclass(frozen=True)
class FlowReport:
    """What a worker reports to the leader: its part of a snapshot, or that its sources ended."""

    worker: int
    part: SnapshotPart | None = None


def work(worker: Worker, flow: Flow) -> None:
    """What each worker does."""
    with nullcontext() if flow.claim is None else flow.claim.shared():
        FlowWorker(worker, flow).run()


class FlowWorker:
    """One worker of a run: obeys the leader, and reports."""

    def __init__(self, worker: Worker, flow: Flow) -> None:
        self._worker = worker
        self._is_durable = flow.durable is not None
        self._last: int | None = None
        """The epoch that everything ends with, when that is decided."""
        self._is_over = False
        self._has_reported_end = False
        self._snapshots: list[Snapshot] = []
        self._orders = worker.environment.channel(self._receive)
        self._build(flow)
        self._leader = None if worker.index else FlowLeader(worker, flow, self._send, self._probe)
        self._ask_for_snapshot(flow.first)

    def _build(self, flow: Flow) -> None:
        environment = self._worker.environment
        # The name is that of state in snapshots: not one that a program may change.
        with self._worker.dataflow("flow", durable=flow.durable) as scope:
            self._epochs, stream = scope.new_input("Epochs")
            if environment.source_counts is not None:
                environment.source_counts.leave_out(stream)
            self._probe = stream.probe()
            self._run = RunEpochs(stream, flow.run, flow.first == 0, self._is_durable)
            environment.run_epochs = self._run
            try:
                flow.build(scope)
            finally:
                environment.run_epochs = None
        if not self._run.n_sources:
            raise BuildError(
                "the flow has no source, so that its run would have nothing to do, and no end: "
                "read one with scope.source(source)"
            )

    def run(self) -> None:
        """Obey until the end."""
        while not self._is_over:
            self._report()
            if self._leader is not None:
                self._leader.go_on()
            self._worker.step_or_park()

    def _report(self) -> None:
        while self._snapshots and self._snapshots[0].done:
            self._send(0, FlowReport(self._worker.index, self._snapshots.pop(0).part))
        if self._run.have_ended and not self._has_reported_end:
            self._has_reported_end = True
            self._send(0, FlowReport(self._worker.index))

    def _send(self, peer: int, message: Any) -> None:
        # In the next step, at whose end it is flushed: a worker parks between steps.
        self._worker.environment.defer(partial(self._orders.send, peer, "flow", [message]))

    def _receive(self) -> None:
        while (message := self._orders.pull()) is not None:
            self._obey(*message.batch)

    def _obey(self, order: BeginEpoch | CommitSinks | EndFlow | FlowReport) -> None:
        match order:
            case FlowReport():
                assert self._leader is not None  # it is sent to worker 0 alone
                self._leader.take(order)
            case BeginEpoch():
                # First: no worker may be past an epoch whose snapshot this one was not asked for.
                self._ask_for_snapshot(order.epoch)
                self._epochs.advance_to(order.epoch)
            case CommitSinks():
                for commit in self._run.commits:
                    commit(order.epoch)
                self._is_over = order.epoch == self._last
            case EndFlow():
                self._last = order.epoch
                self._ask_for_snapshot(order.epoch)
                self._epochs.close()
                self._is_over = not self._is_durable

    def _ask_for_snapshot(self, epoch: int) -> None:
        if self._is_durable:
            self._snapshots.append(self._worker.snapshot(epoch))


@dataclass
class FlowLeader:
    """What worker 0 decides for all: when an epoch is over, when it counts, and when all ends."""

    worker: Worker
    flow: Flow
    send: Callable[[int, Any], None]
    probe: Probe
    is_ending: bool = False
    is_due: bool = True
    """Whether the epoch has taken as long as it should."""
    n_ended: int = 0
    parts: dict[int, list[SnapshotPart]] = field(default_factory=dict)
    """By epoch: the parts of its snapshot that are there."""

    def __post_init__(self) -> None:
        self.epoch = self.flow.first
        """The last that was begun."""
        self.committed = self.epoch - 1
        """The last that counts."""
        self._time_epoch()

    def take(self, report: FlowReport) -> None:
        """A worker reports."""
        if report.part is None:
            self.n_ended += 1
            return
        epoch = report.part.epoch
        parts = self.parts.setdefault(epoch, [])
        parts.append(report.part)
        if len(parts) == self.worker.peers:
            self._commit(epoch, self.parts.pop(epoch))

    def _commit(self, epoch: int, parts: list[SnapshotPart]) -> None:
        assert self.flow.durable is not None  # or there would be no parts
        checkpoint = self.flow.durable.checkpoint
        self._check_claim()
        checkpoint.commit_manifest(epoch, parts, {"run": self.flow.run})
        self._check_claim()  # a program that came meanwhile may have begun without this epoch
        checkpoint.prune()
        self.committed = epoch
        self._order(CommitSinks(epoch))

    def _check_claim(self) -> None:
        if self.flow.claim is not None:
            self.flow.claim.check()

    def go_on(self) -> None:
        """Begin the next epoch if it is time, or end; see the rules above."""
        if self.is_ending or not self._is_settled():
            return
        if self.n_ended == self.worker.peers:
            self.is_ending = True
            self._order(EndFlow(self.epoch + FAR))
        elif self.is_due:
            self.epoch += 1
            self._order(BeginEpoch(self.epoch))
            self._time_epoch()

    def _is_settled(self) -> bool:
        """Whether every worker has begun the epoch, and the one before it counts."""
        if self.flow.durable is not None and self.committed < self.epoch - 1:
            return False
        return self.epoch == self.flow.first or not self.probe.less_than(self.epoch)

    def _time_epoch(self) -> None:
        self.is_due = False
        self.worker.environment.later(self.flow.epoch_s, self._end_epoch)

    def _end_epoch(self) -> None:
        self.is_due = True

    def _order(self, order: BeginEpoch | CommitSinks | EndFlow) -> None:
        for peer in range(self.worker.peers):
            self.send(peer, order)
