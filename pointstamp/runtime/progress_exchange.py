"""The exchange of progress: each scope's changes of counts go to the same scope of every peer.

One channel carries them for all scopes of a worker, in order per pair of workers. Scopes
hand their changes in while a step runs; they are sent at its end, after the data that they
speak of was pushed.

What a scope has held back may be needed since a peer reported. It goes before the operators are
run, where these have taken long lately: two workers whose operators run for long would run them in
turns, as each is shown only afterwards that the other one may begin. Where steps are short it goes
with the rest at their end, since with many workers it would be twice as many messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.communication.communicator import Communicator
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.progress.subgraph import Subgraph

LONG_STEP_S = 100e-6
"""A step that takes longer costs a peer that waits for its end more than a message does."""

N_EARLY = 256
"""So often what is needed goes early after a long step: the steps in between may be short."""

MEASURED = 8
"""One step of so many that begin with a report is measured, besides those that something is
held back in."""


class ProgressExchange:
    """The scopes of one worker by number, and the channel on which their changes travel.

    `now` is the clock of the worker, in seconds.
    """

    def __init__(
        self, communicator: Communicator, log: Logger | None, now: Callable[[], float]
    ) -> None:
        self.channel = communicator.channel()
        self.subgraphs: dict[int, Subgraph] = {}
        self._others = [p for p in range(communicator.peers) if p != communicator.index]
        self._log = log
        self._flush = communicator.flush
        self._outbox: list[tuple[int, Any]] = []
        self._holding: list[Subgraph] = []
        """The scopes that a peer has reported to, and that hold back changes."""
        self._now = now
        self._began = 0.0
        """When the operators of this step began, if that is measured; else 0."""
        self._n_early = self._n_reports = 0

    def install(self, scope: int, subgraph: Subgraph) -> None:
        """Have changes of a scope arrive at its instance here."""
        self.subgraphs[scope] = subgraph

    def share(self, scope: int, updates: Any) -> None:
        """Have the peers' instances of `scope` receive `updates` when this step ends."""
        self._outbox.append((scope, updates))

    def send(self) -> None:
        """Send what scopes have shared since the last call."""
        if self._began:
            self._note_step()
        outbox = self._outbox
        if not outbox:
            return
        for scope, updates in outbox:
            # Before the sending: a receiver may be quicker than we are.
            if self._log is not None:
                self._log.progress_sent(scope, len(updates))
            for peer in self._others:
                self.channel.send(peer, scope, updates)
        outbox.clear()

    def receive(self) -> None:
        """Hand what peers have sent to the scopes."""
        self._receive()  # a function of C, with types, which this is not: it is passed on

    def _receive(self) -> None:
        while (message := self.channel.pull()) is not None:
            # Before it is counted: the changes of counts are of this moment.
            if self._log is not None:
                self._log.progress_received(message.tag, message.sender, len(message.batch))
            subgraph = self.subgraphs.get(message.tag)
            # Else it is complete here, and no change matters to it.
            if subgraph is not None and subgraph.accept(message.batch):
                self._holding.append(subgraph)
        self._n_reports += 1
        if self._holding or self._n_reports % MEASURED == 0:
            self._begin()

    def _begin(self) -> None:
        """Before operators run: if steps are long, send what peers need of what is held back."""
        if self._n_early and self._holding:
            self._n_early -= 1
            for subgraph in self._holding:
                subgraph.share_needed()
            if self._is_sending():
                self.send()
                self._flush()
        self._holding.clear()
        self._began = self._now()

    def _note_step(self) -> None:
        """Learn from how long the operators took."""
        if self._now() - self._began > LONG_STEP_S:
            self._n_early = N_EARLY
        self._began = 0.0

    def _is_sending(self) -> bool:
        return bool(self._outbox)

    @property
    def n_changes(self) -> int:
        """How many changes of counts all scopes have seen."""
        return sum(subgraph.n_changes for subgraph in list(self.subgraphs.values()))
