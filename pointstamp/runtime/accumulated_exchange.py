"""The exchange of progress by way of one worker of each machine; see `progress.accumulate`.

The worker of the lowest index on a machine is its accumulator. Messages go by the same channel
as between peers that send each other everything; sender and receiver say what one is:

    a worker to its accumulator         a batch of its changes
    an accumulator to another one       the sum of its machine, for the others'
    an accumulator to its workers       the sum of all machines, and with the number of the scope
                                        how many batches of the receiver's own are in it

An accumulator hands on between its own steps, so a worker that is at work in an operator for
a second has the others of its machine wait as long for what peers report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from pointstamp.communication.communicator import Communicator, Message
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.progress.accumulate import Updates
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.subgraph import Subgraph
from pointstamp.runtime.progress_exchange import ProgressExchange


class AccumulatedExchange(ProgressExchange):
    """The scopes of one worker, of which sums travel.

    Parameters
    ----------
    communicator : Communicator
        Of the worker.
    log : Logger, optional
        Logs what is sent and received.
    machines : sequence
        By worker, which machine it is on: workers with equal ones share an accumulator.
    """

    def __init__(
        self, communicator: Communicator, log: Logger | None, machines: Sequence[Any]
    ) -> None:
        super().__init__(communicator, log)
        index = communicator.index
        first: dict[Any, int] = {}
        for worker, machine in enumerate(machines):
            first.setdefault(machine, worker)
        self._logger = log
        self._accumulator = first[machines[index]]
        """Of this worker's machine."""
        self._machine = [w for w, machine in enumerate(machines) if machine == machines[index]]
        self._accumulators = [worker for worker in first.values() if worker != index]
        """Of the other machines, if this worker is one."""
        self._is_accumulator = self._accumulator == index
        self._is_of_machine = [machine == machines[index] for machine in machines]
        self._outgoing: deque[tuple[Sequence[int], int, Updates, dict[int, int] | None]] = deque()
        """(receivers, scope, updates, how many batches of each receiver are in them)."""
        self._unreturned: dict[int, deque[Updates]] = {}
        """By scope: what this worker reported and is in no sum that has come back."""

    def install(self, scope: int, subgraph: Subgraph) -> None:
        """Have changes of a scope arrive at its instance here."""
        super().install(scope, subgraph)
        if self._is_accumulator:
            subgraph.accumulate(
                len(self._machine), partial(self._hand_on, scope), partial(self._send_out, scope)
            )
        else:
            for known in [known for known in self._unreturned if known not in self.subgraphs]:
                del self._unreturned[known]
            self._unreturned[scope] = deque()

    def share(self, scope: int, updates: Updates) -> None:
        """Have the accumulator receive `updates` of a scope when this step ends."""
        self._unreturned[scope].append(updates)
        self._outgoing.append(((self._accumulator,), scope, updates, None))

    def send(self) -> None:
        """Send what is to go since the last call."""
        outgoing = self._outgoing
        while outgoing:
            receivers, scope, updates, merged = outgoing.popleft()
            if self._logger is not None:
                self._logger.progress_sent(scope, len(updates))
            for peer in receivers:
                tag = scope if merged is None else (scope, merged.get(peer, 0))
                self.channel.send(peer, tag, updates)

    def receive(self) -> None:
        """Hand what has arrived to the scopes, and what is not of this worker alone onwards."""
        while (message := self.channel.pull()) is not None:
            # Before it is counted: the changes of counts are of this moment.
            if self._logger is not None:
                tag = message.tag
                scope = tag if self._is_accumulator else tag[0]
                self._logger.progress_received(scope, message.sender, len(message.batch))
            if not self._is_accumulator:
                self._take_sum(message)
            elif self._is_of_machine[message.sender]:
                self._take_batch(message)
            else:
                self._take_machine(message)
        if self._holding:
            self._share_needed()

    def _is_sending(self) -> bool:
        return bool(self._outgoing)

    # What arrives.

    def _accept(self, subgraph: Subgraph, updates: Updates) -> None:
        if subgraph.accept(updates) and self.is_urgent:
            self._holding.append(subgraph)

    def _take_sum(self, message: Message) -> None:
        """Count a sum, but for what this worker has counted when it reported it."""
        scope, n_own = message.tag
        subgraph = self.subgraphs.get(scope)
        if subgraph is None:
            return  # complete here, or dropped
        updates = message.batch
        if n_own:
            others: ChangeBatch = ChangeBatch(updates)
            unreturned = self._unreturned[scope]
            for _ in range(n_own):
                for place, change in unreturned.popleft():
                    others.update(place, -change)
            updates = others.drain()
        self._accept(subgraph, updates)

    def _take_batch(self, message: Message) -> None:
        """Add a batch of a worker of this machine."""
        scope, updates = message.tag, message.batch
        subgraph = self.subgraphs.get(scope)
        if subgraph is None:
            # Dropped here, and not there yet.
            self._pass_on(scope, updates, message.sender)
            self._send_out(scope, updates)
            return
        assert subgraph.accumulation is not None
        subgraph.accumulation.add(updates, message.sender)
        self._accept(subgraph, updates)

    def _take_machine(self, message: Message) -> None:
        """Add the sum of another machine."""
        scope, updates = message.tag, message.batch
        subgraph = self.subgraphs.get(scope)
        if subgraph is None:
            self._pass_on(scope, updates)
            return
        assert subgraph.accumulation is not None
        subgraph.accumulation.add_from_outside(updates)
        self._accept(subgraph, updates)

    # What goes out of an accumulator.

    def _pass_on(self, scope: int, updates: Updates, sender: int = -1) -> None:
        """Have the workers of this machine receive a batch as it came; `sender` knows it."""
        self._hand_on(scope, updates, {} if sender < 0 else {sender: 1})

    def _hand_on(self, scope: int, updates: Updates, merged: dict[int, int]) -> None:
        self._outgoing.append((self._machine[1:], scope, updates, merged))

    def _send_out(self, scope: int, updates: Updates) -> None:
        self._outgoing.append((self._accumulators, scope, updates, None))


def exchange_of(
    communicator: Communicator, log: Logger | None, accumulate: bool
) -> ProgressExchange:
    """The exchange of a worker; `accumulate` matters where two share a machine.

    Which do is what the communicator says, as `machines`, or else all.
    """
    machines = getattr(communicator, "machines", None) or [0] * communicator.peers
    if not accumulate or len(set(machines)) == len(machines):
        return ProgressExchange(communicator, log)
    return AccumulatedExchange(communicator, log, machines)
