"""The protocol that every operator and subgraph speaks with its parent.

The narrow waist of the system: a Python operator, a nested scope, an external
process and a foreign runtime look the same to the scope that holds them.

A parent sets an operator up in two calls, then visits it any number of times:

1. `internal_summary()`: how times advance from its inputs to its outputs, and
   the capabilities it holds at the start.
2. `set_external_summary(...)`: how times advance from its outputs back to its
   inputs, outside of it, and what capabilities are held outside of it.
3. A visit is `push_external_progress(...)` and then `pull_internal_progress()`,
   in which the operator does its work and reports what it did.

Laws
----
- What is consumed and the capability it gives are in one report; what is
  produced and the capability retired are in one report.
- A report is believed at once. The next push counts everything that the last
  report said: an operator may take a push as the receipt for its last report.
- A record may be reported consumed before it is reported produced.
- A change of a frontier is pushed at the next visit. It is a reason for a visit
  only as `frontier_interest` says; a local operator is given nothing at all of an
  input in which its interest is `NEVER`.
- Initial capabilities are the same on all workers: those of a local operator are
  counted once for each of them, before anybody has reported.

Records do not pass through this protocol. An operator takes them from queues and sends
them to a `Tee`, both of which count, and it reports the counts. What puts one into a
scope, in this order, from the code that builds the dataflow:

- `scope.reserve(name)` gives its number, `node`, and `scope.activation(node)` a function
  that asks for a visit, to be called in the worker's thread;
- `scope.connect(stream, (node, input), pact, consumed)` leads a stream to it and gives the
  `dataflow.channels.Queue` to `pull()` (time, batch) from, which counts in `consumed`;
- `Tee(name, produced)` of `dataflow.channels` is an output, `push(time, batch)` sends and
  counts in `produced`, and `scope.new_stream((node, output), tee)` is its stream;
- `scope.environment.channel(scope.activation(node))` makes a channel of its own to its
  instances on the other workers, for records or for progress: `send(peer, tag, batch)`
  and `pull()`; all workers must make theirs in the same order;
- `scope.environment.closers.callback(function)` for what it has begun outside of the worker:
  called when the dataflow ends or is dropped, or when the worker fails;
- `scope.install(node, operator)`.

An instance of an operator that is not `local` reports what all instances did: it reports to the
others, over a channel of its own, all that one visit changed in one message, and counts
what they report as it counts its own. So it knows, for each worker, all that one did up to
some moment. If it `wants_outside`, what it decides in a visit may rest on the last push and
on what it reported before that push, and on nothing it did or received since: that may have
left, and be on its way back in, and nothing outside has counted it yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Any, Protocol

from pointstamp.progress.antichain import Antichain
from pointstamp.progress.change_batch import ChangeBatch

Summaries = Sequence[Mapping[int, Antichain]]
"""`summaries[from][to]`: the antichain of the summaries of all paths; what no path leads to is
not there. So what is built and kept is in proportion to the connections that exist. Inputs that
have one row in common, one and the same object, cost no more than its length together."""


def distinct_rows(summaries: Summaries) -> list[Mapping[int, Antichain]]:
    """The rows of a table of summaries, without those that are one and the same object."""
    return list({id(row): row for row in summaries}.values())


Changes = Sequence[ChangeBatch]
"""One batch of changes of times for each port."""


class Interest(IntEnum):
    """When the change of an input's frontier is a reason to run the operator."""

    NEVER = 0
    IF_CAPABILITY = 1
    ALWAYS = 2


@cache
def no_changes(inputs: int) -> list[ChangeBatch]:
    """What an operator is given that no frontier is delivered to: one list, of empty batches."""
    return new_changes(inputs)


def new_changes(n_ports: int) -> list[ChangeBatch]:
    """One empty batch for each port."""
    return [ChangeBatch() for _ in range(n_ports)]


class ProgressReport:
    """What an operator did since its last report. The receiver drains the batches."""

    __slots__ = ("active", "consumed", "internal", "produced")

    def __init__(
        self, internal: Changes, consumed: Changes, produced: Changes, active: bool
    ) -> None:
        self.internal = tuple(internal)
        """Per output: changes in the capabilities that it holds."""
        self.consumed = tuple(consumed)
        """Per input: how many records it took in."""
        self.produced = tuple(produced)
        """Per output: how many records it sent."""
        self.active = active
        """Whether it still has work to do, and asks for another visit."""


class DirectOperate:
    """What operators and scopes have in common that their parents call directly.

    Compiled, a call of a method that is declared here costs a few nanoseconds, and a
    call of the same method of anything else ten times that. Beside that, a local one that has no
    interest in any frontier is not pushed what would be nothing.
    """

    __slots__ = ()

    def push_external_progress(self, changes: Changes) -> None:
        """See `Operate`."""
        raise NotImplementedError

    def pull_internal_progress(self) -> ProgressReport:
        """See `Operate`."""
        raise NotImplementedError

    def holds(self) -> bool:
        """`Operate.holds_capability`."""
        raise NotImplementedError

    def is_complete(self) -> bool:
        """`Operate.complete`."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Report nothing more, and throw away what waits: the dataflow was dropped."""

    def let_go(self) -> None:
        """Let go of everything: it is visited no more."""


class CountObserver:
    """What a scope reports each change of its counts to, if to anything.

    A class and not a protocol, so that compiled code calls it directly.
    """

    __slots__ = ()

    def lay_out(self, ports: Sequence[tuple[int, int, bool]]) -> None:
        """Take in, by location: the child, the port, whether it is an input. Called once."""
        raise NotImplementedError

    def changed(self, location: int, time: Any, change: int) -> None:
        """The count at (time, location) has changed by `change`."""
        raise NotImplementedError

    def changed_number(
        self, location: int, outer: int, inner: int, is_pair: bool, change: int
    ) -> None:
        """The same at the time (outer, inner), or `inner` alone; both are of 64 bits."""
        raise NotImplementedError


class Operate(Protocol):
    """An operator as its parent sees it; see the laws above."""

    name: str
    inputs: int
    outputs: int

    @property
    def local(self) -> bool:
        """True: reports are of this worker alone, and the parent exchanges them.

        False: all workers' instances act together, and reports hold for all.
        """

    @property
    def wants_outside(self) -> bool:
        """True: pushes are only of capabilities held outside.

        The operator then adds what its own imply, by the external summaries.
        False: the parent adds that up and pushes the whole frontier. The sum is
        the same; a plain operator, visited once per round, gains nothing by
        doing it itself.
        """

    @property
    def frontier_interest(self) -> Sequence[Interest]:
        """Per input; settled when `internal_summary` has returned."""

    @property
    def holds_capability(self) -> bool:
        """Whether a moving frontier may let this instance do something."""

    @property
    def complete(self) -> bool:
        """False while something is inside that no report showed."""

    def internal_summary(self) -> tuple[Summaries, Changes]:
        """`summaries[input][output]`, and the initial capabilities per output."""

    def set_external_summary(self, summaries: Summaries, capabilities: Changes) -> None:
        """`summaries[output][input]`, and the initial frontier of each input.

        An operator that does not want the outside gets no summaries: it has nothing to add.
        """

    def push_external_progress(self, changes: Changes) -> None:
        """Deliver how the frontier of each input has changed. Drains `changes`."""

    def pull_internal_progress(self) -> ProgressReport:
        """Do the work at hand, and report it."""
