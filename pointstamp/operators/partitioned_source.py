"""A source that can be resumed: partitions, each read in order, and the positions reached.

Each worker reads some of the partitions, one batch at a time, in turn. The position after each
batch is what the operator keeps, and so part of a snapshot: a program that begins with one opens
each partition there. In a run (`ps.run`) epochs are the run's; otherwise each worker ends an epoch
after a while, and nothing outlasts the program.

Where partitions are known from the start, they are dealt out by their order, so that workers have
as many each. Where they turn up (`discover_s`), no worker knows which the others have seen, and
the stable hash of its name says whose a partition is.

Guarantees: the batches of a partition are sent in order, each once. A program that begins with a
snapshot sends what comes after the positions in that, so at least once after a crash; exactly once
with a transactional sink.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from pointstamp.containers import hash_key
from pointstamp.containers.registry import batches_of, n_records
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.connectors import Source
from pointstamp.dataflow.handles import Input, Output, Session
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.run_epochs import RunEpochs
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.source_counts import set_source_size
from pointstamp.errors import (
    BuildError,
    ContainerError,
    PartitionLostError,
    PointstampError,
    SchemaError,
    SourceError,
)
from pointstamp.operators.fed_back import note_connector
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

POLL_S = 0.05
"""How long to wait where no partition has anything."""

NOT_IN_A_RUN = (
    "the epochs of a {} are those of a run; have `ps.run(build, checkpoint=...)` build it, which "
    "makes snapshots and begins with the last one"
)


def partitioned_source(
    scope: ScopeCore[Any], source: Source, name: str, epoch_s: float
) -> Stream[Any]:
    """See `Scope.source`."""
    run = scope.environment.run_epochs
    if scope.timestamp != Int:
        raise BuildError(
            f"source {name!r} sends at epochs, which are times of Int; those of scope "
            f"{scope.name!r} are of {scope.timestamp!r}: read it outside, and enter the scope"
        )
    builder = OperatorBuilder(scope, name)
    builder.set_role("source")
    if run is None:
        builder.states.refuse(NOT_IN_A_RUN.format("source"))
    elif run.stream.scope is not scope:
        raise BuildError(
            f"source {name!r} is built in scope {scope.name!r}, and the epochs of a run are those "
            f"of {run.stream.scope.name!r}: read it there, and enter the scope"
        )
    else:
        builder.new_input(run.stream, Pipeline(), Interest.ALWAYS)
        run.n_sources += 1
    builder.states.holds_no_texts()
    stream: Stream[Any] = builder.new_output()
    _check_attributes(source, name)
    note_connector(scope.environment, name, source)
    partitions = partitions_of(source, name)
    if _discover_s(source) is None:
        builder.declare(partitions=partitions)  # on all workers alike, as each has its share

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        reading = _PartitionReading(source, name, capabilities.pop(), info, run, epoch_s)
        reading.begin(partitions)
        set_source_size(stream, reading.n_total, reading.n_read)
        info.environment.closers.callback(reading.close)
        return reading.run

    builder.build(make_logic)
    return stream


def partitions_of(source: Source, name: str) -> list[str]:
    """The names of the partitions of a source, in order.

    Raises
    ------
    SourceError
        If they are not texts, or one comes twice.
    """
    found = source.partitions()
    if isinstance(found, str) or not hasattr(found, "__iter__"):
        raise SourceError(f"source {name!r}: partitions() gives a list of texts; found {found!r}")
    found = list(found)
    if any(type(partition) is not str for partition in found):
        raise SourceError(f"source {name!r}: partitions() gives a list of texts; found {found!r}")
    if len(set(found)) < len(found):
        twice = sorted({partition for partition in found if list(found).count(partition) > 1})
        raise SourceError(f"source {name!r}: partitions() gives {twice} more than once")
    return sorted(found)


def _check_attributes(source: Source, name: str) -> None:
    """Refuse what a source says of how it is read, where it would be read in no such way."""
    at_once = getattr(source, "at_once", None)
    if at_once is not None and (type(at_once) is not int or at_once < 1):
        raise SourceError(
            f"source {name!r}: at_once is an integer of at least 1, or None; found {at_once!r}"
        )
    if (discover_s := _discover_s(source)) is not None:
        _check_seconds(name, "discover_s", discover_s, inf)
    _check_seconds(name, "poll_s", getattr(source, "poll_s", POLL_S), sys.float_info.max)


def _check_seconds(name: str, attribute: str, found: Any, most: float) -> None:
    is_number = isinstance(found, (int, float)) and type(found) is not bool
    if not (is_number and 0 <= found <= most):
        raise SourceError(
            f"source {name!r}: {attribute} is a number of seconds, 0 or more; found {found!r}"
        )


def _discover_s(source: Source) -> float | None:
    seconds: float | None = getattr(source, "discover_s", None)
    return seconds


def _position(partition: str, position: Any) -> int:
    """How much comes before a position of a source that counts by its positions."""
    return position if type(position) is int else 0


_END: Any = object()
"""Of a reader that has nothing more."""


class _Partition:
    """One partition that is being read."""

    def __init__(self, source: Source, source_name: str, name: str, position: Any) -> None:
        self.name = name
        self.position = position
        self._source = source
        self._source_name = source_name
        self._reader: Iterator[Any] | None = None

    def next(self) -> tuple[Any, Any] | None:
        """The next (batch, position), None for nothing at hand; raises `StopIteration`."""
        try:
            if self._reader is None:
                self._reader = iter(self._opened())
            item = next(self._reader, _END)  # so that what `open` raises is no end
        except Exception as error:
            what = str(error) if isinstance(error, PointstampError) else repr(error)
            raise SourceError(f"{self._where}: {what}") from error
        if item is _END:
            raise StopIteration
        if item is None:
            return None
        if type(item) is not tuple or len(item) != 2:
            raise SourceError(
                f"{self._where}: a reader yields pairs of a batch and the position after it, or "
                f"None; found {item!r}"
            )
        self.position = item[1]
        return item

    def _opened(self) -> Iterable[Any]:
        reader = self._source.open(self.name, self.position)
        if not hasattr(reader, "__iter__"):
            raise SourceError(
                "open() gives a reader, a generator or another iterable of pairs (batch, "
                f"position); found {reader!r:.200}"
            )
        return reader

    def batches(self, data: Any) -> Iterator[Any]:
        """The containers that a reader gave as a batch."""
        try:
            found = batches_of(data)
            for batch in [data] if found is None else found:
                if n_records(batch):
                    yield batch
        except ContainerError as error:
            raise SourceError(f"{self._where}: {error}") from error

    def close(self) -> None:
        """Read no more."""
        close = getattr(self._reader, "close", None)
        self._reader = None
        if close is not None:
            close()

    @property
    def _where(self) -> str:
        return (
            f"source {self._source_name!r}, partition {self.name!r}, after position "
            f"{self.position!r}"
        )


class _PartitionReading:
    """The logic: reads this worker's partitions in turn, and notes how far it has come."""

    def __init__(
        self,
        source: Source,
        name: str,
        capability: Capability,
        info: OperatorInfo,
        run: RunEpochs | None,
        epoch_s: float,
    ) -> None:
        self._source = source
        self._name = name
        self._capability = capability
        self._info = info
        self._run = run
        self._epoch_s = epoch_s
        self._clock = info.environment.clock
        self._discover_s = _discover_s(source)
        self._start_of_new: Any = getattr(source, "start_of_new", None)
        self._poll_s: float = getattr(source, "poll_s", POLL_S)
        self._at_once: int | None = getattr(source, "at_once", None)
        self._ends_for_good = bool(getattr(source, "ends_for_good", False))
        self._check_end: Callable[[str, Any], None] | None = getattr(source, "check_end", None)
        self._waiting: deque[_Partition] = deque()
        """Partitions that are read when there is room for them."""
        self._open: deque[_Partition] = deque()
        self._positions: dict[str, tuple[Any, bool]] = {}
        """By partition: the position, and whether that is the end."""
        self._known: set[str] = set()
        self._sizes: dict[str, int] = {}
        """By partition, where the source says it and something asks: how much there is in it."""
        self._listed_at = self._epoch_began = self._clock()
        self._listing_s = 0.0
        """How long it took to list partitions, the last time."""
        self._has_sent = False
        self._has_ended = False
        self._is_timed = False

    def begin(self, partitions: Sequence[str]) -> None:
        """Take up the positions of a snapshot, if there is one."""
        states = self._info.states
        if states.durable_state is not None:
            # Here and not above: few dataflows are durable.
            from pointstamp.checkpoint.shared_rows import SharedRows

            self._positions = SharedRows()
            if of := getattr(self._source, "positions_of", ""):
                self._positions.kind += f": positions in {of}"
            states.keep("positions", self._positions)
            # What is sent before is of an epoch that the snapshot has.
            self._capability.downgrade(max(0, states.durable_state.first_epoch))
            self._check_there(partitions)
        own = set(self._own(partitions))
        for partition in [name for name in self._positions if name not in own]:
            del self._positions[partition]
        self._add(partitions)

    def _check_there(self, partitions: Sequence[str]) -> None:
        lost = sorted(
            name
            for name, (_, is_end) in self._positions.items()
            if not is_end and name not in partitions
        )
        if lost:
            raise PartitionLostError(
                f"source {self._name!r}: the snapshot has positions in {lost}, of which a part was "
                f"read, and the source has no such partitions any more, but {list(partitions)}: "
                "bring them back, or begin with another checkpoint"
            )

    def _own(self, partitions: Sequence[str]) -> list[str]:
        index, peers = self._info.index, self._info.peers
        if self._discover_s is None:
            return list(partitions[index::peers])
        return [name for name in partitions if hash_key(name) % peers == index]

    def _add(self, partitions: Sequence[str], start: Any = None) -> None:
        """Have partitions that are new read, and forget those that are read and gone."""
        for name in self._own(partitions):
            if start is not None and name not in self._known:
                # Kept at once: a program that begins again does not know that it had turned up.
                self._positions.setdefault(name, (start, False))
            position, is_end = self._positions.get(name, (None, False))
            # What a program has come to the end of may go on before the next one begins.
            is_over = is_end and self._ends_for_good
            if is_over and self._check_end is not None:
                self._check_end(name, position)
            if name not in self._known and not is_over:
                self._waiting.append(_Partition(self._source, self._name, name, position))
            self._known.add(name)
        there = set(partitions)
        for name in [name for name in self._known if name not in there]:
            if self._positions.get(name, (None, False))[1]:
                del self._positions[name]
                self._known.discard(name)

    # How far it has come, for what shows that; asked by another thread.

    def n_total(self) -> int | None:
        """How much there is in the partitions of this worker, if the source knows it."""
        sizes = getattr(self._source, "sizes", None)
        if sizes is None or self._discover_s is not None:
            return None
        found = sizes()
        self._sizes = {name: found[name] for name in self._known if name in found}
        return sum(self._sizes.values())

    def n_read(self) -> int:
        """How much of that was read."""
        n_before = getattr(self._source, "n_before", _position)
        total = 0
        for name, n in self._sizes.items():
            position, is_end = self._positions.get(name, (None, False))
            total += n if is_end else 0 if position is None else min(n, n_before(name, position))
        return total

    def run(self, inputs: list[Input], outputs: list[Output]) -> bool:
        """One activation: at most one batch."""
        capability = self._capability
        if not capability.live:
            return False
        if self._ends_epoch(inputs):
            return capability.live
        if self._info.is_throttled():
            return False
        if self._at_once is None:
            # Partitions that are read side by side may always have more, and those that turn up
            # would never have their turn. But listing is to take a small part of the time.
            self._discover(9 * self._listing_s)
        while (found := self._next()) is not None:
            partition, (data, position) = found
            with outputs[0].session(capability) as session:
                for batch in partition.batches(data):
                    self._give(session, batch, partition.name)
            self._has_sent = True
            self._positions[partition.name] = (position, False)
            return True
        self._rest()
        return False

    def _give(self, session: Session, batch: Any, partition: str) -> None:
        try:
            session.give_batch(batch)
        except SchemaError as error:
            advice = getattr(self._source, "schema_advice", None)
            raise SchemaError(
                f"source {self._name!r}, partition {partition!r}: {error}"
                + ("" if advice is None else f"\n{advice}")
            ) from error

    def _ends_epoch(self, inputs: list[Input]) -> bool:
        """Go on to the next epoch, or to the end, if this one is over; whether it is."""
        if self._run is None:
            is_over = self._has_sent and self._clock() - self._epoch_began >= self._epoch_s
            times = [self._capability.time + 1]
        else:
            # Over on all workers: each has left it, and has asked for the snapshot of the next.
            frontier = inputs[0].frontier
            is_over = not frontier.less_equal(self._capability.time)
            times = frontier.elements
        if is_over:
            self._epoch_began, self._has_sent = self._clock(), False
            if times:
                self._capability.downgrade(times[0])
            else:
                self._capability.drop()
        return is_over

    def _next(self) -> tuple[_Partition, tuple[Any, Any]] | None:
        """The next batch of the next partition that has one."""
        n_tried = 0
        while True:
            while self._waiting and (self._at_once is None or len(self._open) < self._at_once):
                self._open.append(self._waiting.popleft())
            if n_tried >= len(self._open):
                return None
            partition = self._open[0]
            try:
                item = partition.next()
            except StopIteration:
                self._open.popleft()
                partition.close()
                self._positions[partition.name] = (partition.position, True)
                continue
            self._open.rotate(-1)
            n_tried += 1
            if item is not None:
                return partition, item

    def _rest(self) -> None:
        """Nothing is at hand: look again later, or end."""
        if self._discover_s is not None:
            self._discover()
        elif not self._open:
            if self._run is None:
                self._capability.drop()
            elif not self._has_ended:
                self._has_ended = True
                self._run.n_ended += 1
            return
        if not self._is_timed:
            self._is_timed = True
            self._info.environment.later(0.0 if self._waiting else self._poll_s, self._look_again)

    def _discover(self, least_s: float = 0.0) -> None:
        """Look for new partitions, if the last time was long enough ago."""
        if self._discover_s is None:
            return
        began = self._clock()
        if began - self._listed_at < max(self._discover_s, least_s):
            return
        self._add(partitions_of(self._source, self._name), self._start_of_new)
        self._listed_at = self._clock()
        self._listing_s = self._listed_at - began

    def _look_again(self) -> None:
        self._is_timed = False
        if self._capability.live:
            self._info.activate()

    def close(self) -> None:
        """The dataflow has ended, or is given up."""
        for partition in self._open:
            partition.close()
        self._open.clear()
        self._waiting.clear()
