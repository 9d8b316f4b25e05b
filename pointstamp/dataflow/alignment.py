"""Alignment of epochs: the state of an operator when one is complete, and no later one begun.

An operator that keeps state has an aligner. Where a snapshot at an epoch is asked for, the aligner
holds back what is of later epochs, batches and changes of the frontier alike, until the epoch
is complete here: until none of its times can come any more at any input, and the operator
holds no capability for one. Then it hands out the state, and lets go what it held back. So an
operator may apply what comes as early as it likes, and in any order; what is of a later
epoch waits in front of it, and no other operator waits.

The frontier is held back by a count of our own, at the least time of the next epoch: that
such a time may still come is true for as long as one is held back. What an operator may do
as soon as all *before* a time is complete is for that time, and has to wait as well: so of a
time that is held back it is said that something before it may come.

Epochs are the times of the outermost scope; a time of a scope inside is of the epoch at which
it would leave.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.errors import UsageError
from pointstamp.progress.input_frontier import InputFrontier

if TYPE_CHECKING:
    from pointstamp.checkpoint.deltas import TableDelta
    from pointstamp.checkpoint.keyed_state import Table

HandOut = Callable[[str, "Mapping[str, TableDelta]"], None]
"""Takes the state of an operator: its name, and what each table has."""

BEFORE_ALL = -1


class Epochs:
    """How the times of a scope relate to the epochs of its dataflow.

    Parameters
    ----------
    refinements : sequence of Refinement
        Of the scope and of those around it, innermost first.
    """

    def __init__(self, refinements: Sequence[Any]) -> None:
        self._refinements = refinements

    def of(self, time: Any) -> int:
        """The epoch of a time."""
        for refinement in self._refinements:
            time = refinement.to_outer(time)
        return int(time)

    def first(self, epoch: int) -> Any:
        """The least time of an epoch: no time of an earlier one is at or after it."""
        time: Any = epoch
        for refinement in reversed(self._refinements):
            time = refinement.to_inner(time)
        return time


class AlignedFrontier(InputFrontier):
    """The frontier of an input, as the logic behind an aligner sees it."""

    aligner: EpochAligner | None = None

    def less_than(self, time: Any) -> bool:
        """Whether a time strictly before `time` may still come, or `time` is held back."""
        if super().less_than(time):
            return True
        return self.aligner is not None and self.aligner.holds_back(time)


class AlignedInput:
    """What waits at one input: batches of later epochs."""

    def __init__(self, aligner: EpochAligner, new_queue: Callable[[], Any] = deque) -> None:
        self._aligner = aligner
        self._new_queue = new_queue
        self._aside = new_queue()
        self._ready = new_queue()
        self._limit: int | None = None
        """What those in `_aside` are beyond."""

    def admits(self, item: tuple[Any, Any]) -> bool:
        """Whether a (time, batch) may come now; else it is kept."""
        aligner = self._aligner
        if aligner.holds_back(item[0]):
            self._limit = aligner.limit
            self._aside.append(item)
            return False
        aligner.begun = max(aligner.begun, aligner.epochs.of(item[0]))
        return True

    def ready(self) -> tuple[Any, Any] | None:
        """One of those that were kept and may come now."""
        if self._aside and self._aligner.limit != self._limit:
            self._sort()
        return self._ready.popleft() if self._ready else None

    def all(self) -> Iterator[tuple[Any, Any]]:
        """What waits."""
        yield from self._ready
        yield from self._aside

    def clear(self) -> None:
        """Throw it away."""
        self._aside.clear()
        self._ready.clear()

    def _sort(self) -> None:
        waiting, self._aside = self._aside, self._new_queue()
        while waiting:  # and not a loop over it, which would not read what is on disk
            item = waiting.popleft()
            if self.admits(item):
                self._ready.append(item)


class EpochAligner:
    """Hands out the tables of one operator; see above.

    Parameters
    ----------
    operator : str
        Its name in snapshots.
    epochs : Epochs
        Of its scope.
    counts : sequence of AlignedFrontier
        The frontiers of its inputs, as its logic sees them.
    activate : callable
        Has it run.
    """

    def __init__(
        self,
        operator: str,
        epochs: Epochs,
        counts: Sequence[AlignedFrontier],
        activate: Callable[[], None],
    ) -> None:
        self.operator = operator
        self.epochs = epochs
        self.tables: dict[str, Table] = {}
        self.limit: int | None = None
        """What is beyond this epoch waits; None: nothing does."""
        self.begun = BEFORE_ALL
        """The last epoch of which a batch was given out."""
        self._counts = counts
        for each in counts:
            each.aligner = self
        self._activate = activate
        self._pending: deque[tuple[int, HandOut]] = deque()
        self._held: list[Counter[Any]] = []
        """Per output: the times of the capabilities that are held."""
        self._furthest = BEFORE_ALL
        """The last epoch of any that was ever held."""

    def waiting(self, new_queue: Callable[[], Any] = deque) -> AlignedInput:
        """For another input; what waits there is in queues of `new_queue()`."""
        return AlignedInput(self, new_queue)

    def holds_back(self, time: Any) -> bool:
        """Whether a time has to wait."""
        return self.limit is not None and self.epochs.of(time) > self.limit

    def begin(self, initial: Sequence[bool], minimum: Any) -> None:
        """Note the capabilities that the operator begins with."""
        self._held = [Counter([minimum] if given else []) for given in initial]

    def hold(self, epoch: int, hand_out: HandOut) -> None:
        """Have the state at the end of `epoch` handed out; see `check_in_time`."""
        self._pending.append((epoch, hand_out))
        self._mark(epoch, +1)
        self.limit = self._pending[0][0]
        self._activate()

    def after(self, capabilities: Sequence[CapabilityCounts]) -> bool:
        """Called when the logic has run; whether it has to again."""
        for held, own in zip(self._held, capabilities, strict=True):
            for time, change in own.changes:
                held[time] += change
                if not held[time]:
                    del held[time]
                elif change > 0:
                    self._furthest = max(self._furthest, self.epochs.of(time))
        if not self._pending or not self._is_complete(self._pending[0][0]):
            return False
        self._cut()
        return True

    def finish(self) -> None:
        """Hand out what is asked for: the dataflow is complete, and the operator runs no more."""
        while self._pending:
            self._cut()
        for each in self._counts:
            each.aligner = None  # which would be a circle

    def _cut(self) -> None:
        epoch, hand_out = self._pending.popleft()
        hand_out(self.operator, {name: table.take_delta() for name, table in self.tables.items()})
        self._mark(epoch, -1)
        self.limit = self._pending[0][0] if self._pending else None

    def _mark(self, epoch: int, change: int) -> None:
        first = self.epochs.first(epoch + 1)
        for counts in self._counts:
            counts.change(first, change)

    def _is_complete(self, epoch: int) -> bool:
        of = self.epochs.of
        return not any(
            of(time) <= epoch for counts in self._counts for time in counts.frontier
        ) and not any(of(time) <= epoch for held in self._held for time in held)

    def check_in_time(self, epoch: int) -> None:
        """Raise if the operator is past `epoch`.

        Raises
        ------
        UsageError
        """
        of = self.epochs.of
        begun = self.begun
        for counts in self._counts:
            if counts.frontier:
                # One input may be ended, as a table that does not change is; not so one that
                # is ahead: what the operator does at later times may have begun.
                begun = max(begun, min(map(of, counts.frontier)))
        if not any(counts.frontier for counts in self._counts):
            begun = max(begun, self._furthest)
        if self._pending:
            begun = self._pending[-1][0]
        if begun > epoch or (self._pending and begun == epoch):
            raise UsageError(
                f"a snapshot at {epoch} comes too late: operator {self.operator!r} is at "
                f"{begun} already; ask on every worker before any of them sends what is later"
            )
