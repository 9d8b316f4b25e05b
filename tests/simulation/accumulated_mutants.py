"""Planted bugs in sums of progress: what random dataflows on several machines must catch.

As in `mutants`: every docstring says what the bug is, and the method below it does that and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.communication.communicator import Message
from pointstamp.progress.accumulate import Accumulation, Updates
from pointstamp.progress.subgraph import Subgraph
from pointstamp.runtime.accumulated_exchange import AccumulatedExchange
from tests.simulation.mutants import ASSERTION, LIVENESS, SAFETY, Mutant, Patch

ACCUMULATED_MUTANTS: dict[str, Mutant] = {}
"""All of these, by name."""

N_TH = 3
"""Which batch something goes wrong with: not the first, of which much else would be wrong."""


def _mutant(
    name: str, *caught_by: str
) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    def add(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        what = (patches.__doc__ or "").strip()
        ACCUMULATED_MUTANTS[name] = Mutant(name, what, caught_by, patches)
        return patches

    return add


def _every(n: int) -> Callable[[Any], bool]:
    """Counts calls for each object; whether this one is the n-th, or a multiple of that."""
    counts: dict[int, int] = {}

    def is_due(owner: Any) -> bool:
        counts[id(owner)] = counts.get(id(owner), 0) + 1
        return counts[id(owner)] % n == 0

    return is_due


@_mutant("sum loses a batch", LIVENESS, SAFETY, ASSERTION)
def _loses() -> list[Patch]:
    """Every third batch that a worker reports is counted by its accumulator and in no sum."""
    add, is_due = Accumulation.add, _every(N_TH)

    def bugged(self: Accumulation, updates: Updates, worker: int | None = None) -> None:
        add(self, [] if worker is not None and is_due(self) else updates, worker)

    return [(Accumulation, "add", bugged)]


@_mutant("sum doubles a batch", SAFETY, LIVENESS, ASSERTION)
def _doubles() -> list[Patch]:
    """Every third batch that a worker reports is in the sum twice."""
    add, is_due = Accumulation.add, _every(N_TH)

    def bugged(self: Accumulation, updates: Updates, worker: int | None = None) -> None:
        add(self, updates, worker)
        if worker is not None and is_due(self):
            add(self, updates)

    return [(Accumulation, "add", bugged)]


@_mutant("batches of a worker reordered", SAFETY)
def _reorders() -> list[Patch]:
    """A batch goes into the sum after the next one of the same worker, and after that went out."""
    take, send = AccumulatedExchange._take_batch, AccumulatedExchange.send
    aside: dict[tuple[int, int], list[Any]] = {}

    def bugged(self: AccumulatedExchange, message: Message) -> None:
        key = (id(self), message.sender)
        if key in aside or message.tag not in self.subgraphs:
            take(self, message)
        else:
            aside[key] = [6, message]
            self.subgraphs[message.tag].accept([])  # so that there is another step

    def bugged_send(self: AccumulatedExchange) -> None:
        send(self)
        for key in [key for key in aside if key[0] == id(self)]:
            aside[key][0] -= 1
            message = aside[key][1]
            if aside[key][0] <= 0 or message.tag not in self.subgraphs:
                del aside[key]
                take(self, message)
            else:
                self.subgraphs[message.tag].accept([])

    return [
        (AccumulatedExchange, "_take_batch", bugged),
        (AccumulatedExchange, "send", bugged_send),
    ]


@_mutant("batch in two sums", SAFETY, LIVENESS)
def _split() -> list[Patch]:
    """Half of what a worker reports at once goes into one sum, and the rest into the next."""
    add, release = Accumulation.add, Accumulation.release
    rest: dict[int, Updates] = {}

    def bugged(self: Accumulation, updates: Updates, worker: int | None = None) -> None:
        middle = len(updates) // 2 if worker is not None else 0
        if middle:
            rest.setdefault(id(self), []).extend(updates[:middle])
        add(self, updates[middle:], worker)

    def release_and_add(self: Accumulation, *, at_once: bool = False) -> None:
        release(self, at_once=at_once)
        late = rest.pop(id(self), None)
        if late:
            add(self, late)

    return [(Accumulation, "add", bugged), (Accumulation, "release", release_and_add)]


@_mutant("own batches counted twice", LIVENESS, SAFETY, ASSERTION)
def _own_twice() -> list[Patch]:
    """A worker does not take its own batches off the sum that comes back."""
    take = AccumulatedExchange._take_sum

    def bugged(self: AccumulatedExchange, message: Message) -> None:
        scope, _ = message.tag
        take(self, message._replace(tag=(scope, 0)))

    return [(AccumulatedExchange, "_take_sum", bugged)]


@_mutant("sums go around", LIVENESS, SAFETY, ASSERTION)
def _go_around() -> list[Patch]:
    """What another machine sent is in the sum that this one sends out."""
    take = AccumulatedExchange._take_machine

    def bugged(self: AccumulatedExchange, message: Message) -> None:
        take(self, message)
        subgraph = self.subgraphs.get(message.tag)
        if subgraph is not None and subgraph.accumulation is not None:
            subgraph.accumulation._to_machines.extend(message.batch)

    return [(AccumulatedExchange, "_take_machine", bugged)]


@_mutant("machines wait for each other", LIVENESS)
def _machines_wait() -> list[Patch]:
    """A machine keeps its sum as long as another holds a capability of the same place and time."""

    def bugged(self: Accumulation) -> bool:
        return any(
            self._crosses[place[0]] or (change < 0 and not self._tracker.is_expected(*place))
            for place, change in self._to_machines
        )

    return [(Accumulation, "_is_needed_elsewhere", bugged)]


@_mutant("capabilities of all machines held", LIVENESS)
def _held_of_all() -> list[Patch]:
    """The capabilities that a machine begins with are taken for those of all machines."""
    accumulate = Subgraph.accumulate

    def bugged(self: Subgraph, workers: int, hand_on: Any, send_out: Any) -> None:
        accumulate(self, self.peers, hand_on, send_out)

    return [(Subgraph, "accumulate", bugged)]


@_mutant("border waits", LIVENESS)
def _border_waits() -> list[Patch]:
    """What crosses the border of a scope is kept until something else goes."""

    def bugged_here(self: Accumulation) -> bool:
        return any(
            change < 0 and not self._tracker.is_expected(*place)
            for place, change in self._to_workers
        )

    return [(Accumulation, "_is_needed_here", bugged_here)]


@_mutant("stops at the accumulator", LIVENESS)
def _stops() -> list[Patch]:
    """What other machines sent counts with the accumulator, and not with its workers."""

    def bugged(self: AccumulatedExchange, message: Message) -> None:
        subgraph = self.subgraphs.get(message.tag)
        if subgraph is not None:
            subgraph.accept(message.batch)

    return [(AccumulatedExchange, "_take_machine", bugged)]
