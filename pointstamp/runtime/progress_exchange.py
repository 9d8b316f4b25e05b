"""The exchange of progress: each scope's changes of counts go to the same scope of every peer.

One channel carries them for all scopes of a worker, in order per pair of workers. Scopes
hand their changes in while a step runs; they are sent at its end, after the data that they
speak of was pushed.

What a scope has held back may be needed since a peer reported. Where steps are long it goes before
the operators are run (`is_urgent`): two workers whose operators run for long would run them in
turns, as each is shown only afterwards that the other one may begin. Where steps are short it goes
with the rest at their end, since with many workers it would be twice as many messages.
"""

from __future__ import annotations

from typing import Any

from pointstamp.communication.communicator import Communicator, Message
from pointstamp.communication.mailbox import end_of
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.progress.subgraph import Subgraph

LONG_STEP_S = 100e-6
"""A step that takes longer costs a peer that waits for its end more than a message does."""

N_URGENT = 100
"""After a step that was long so many more count as long: those in between may be short."""


_MOST_INTERVAL = 4


class ProgressExchange:
    """The scopes of one worker by number, and the channel on which their changes travel."""

    def __init__(self, communicator: Communicator, log: Logger | None) -> None:
        self.channel = communicator.channel()
        self._end = end_of(self.channel)
        """The same, for calls of C."""
        self.subgraphs: dict[int, Subgraph] = {}
        self._others = [p for p in range(communicator.peers) if p != communicator.index]
        self._log = log
        self._flush = communicator.flush
        self._outbox: list[tuple[int, Any]] = []
        self._holding: list[Subgraph] = []
        """The scopes that a peer has reported to, and that hold back changes."""
        self._communicator = communicator
        self._n_urgent = N_URGENT
        """So many steps more count as long: the first do, as the very first may be."""
        self._interval = 1
        self.is_urgent = N_URGENT > 0
        """Whether what peers need is sent before operators run."""
        if communicator.peers > 1:
            communicator.is_urgent = self.is_urgent

    def install(self, scope: int, subgraph: Subgraph) -> None:
        """Have changes of a scope arrive at its instance here."""
        self.subgraphs[scope] = subgraph

    def share(self, scope: int, updates: Any) -> None:
        """Have the peers' instances of `scope` receive `updates` when this step ends."""
        self._outbox.append((scope, updates))

    def send(self) -> None:
        """Send what scopes have shared since the last call."""
        outbox = self._outbox
        if not outbox:
            return
        for scope, updates in outbox:
            # Before the sending: a receiver may be quicker than we are.
            if self._log is not None:
                self._log.progress_sent(scope, len(updates))
            for peer in self._others:
                self._send(peer, scope, updates)
        outbox.clear()

    def pace(self, seconds: float) -> int:
        """Take in how long a step was: while they are long, what is sent leaves at once.

        Returns after how many steps one is to be measured again.
        """
        if seconds > LONG_STEP_S:
            self._n_urgent = N_URGENT
        elif self._n_urgent:
            self._n_urgent -= 1
        is_urgent = self._n_urgent > 0
        if is_urgent != self.is_urgent:
            self.is_urgent = self._communicator.is_urgent = is_urgent
        if is_urgent:
            return 1
        # 1, 2, 4 and again: so that steps that repeat are measured at several places.
        self._interval = 1 if self._interval == _MOST_INTERVAL else 2 * self._interval
        return self._interval

    def receive(self) -> None:
        """Hand what peers have sent to the scopes."""
        self._receive()  # a function of C, with types, which this is not: it is passed on

    def _receive(self) -> None:
        while (message := self._pull()) is not None:
            # Before it is counted: the changes of counts are of this moment.
            scope, updates = message.tag, message.batch
            if self._log is not None:
                self._log.progress_received(scope, message.sender, len(updates))
            subgraph = self.subgraphs.get(scope)
            # Else it is complete here, and no change matters to it.
            if subgraph is not None and subgraph.accept(updates) and self.is_urgent:
                self._holding.append(subgraph)
        if self._holding:
            self._share_needed()

    def _send(self, peer: int, scope: int, updates: Any) -> None:
        if self._end is None:
            self.channel.send(peer, scope, updates)
        else:
            self._end.send(peer, scope, updates)

    def _pull(self) -> Message | None:
        return self.channel.pull() if self._end is None else self._end.pull()

    def _share_needed(self) -> None:
        """Send at once what peers need of what is held back."""
        for subgraph in self._holding:
            subgraph.share_needed()
        self._holding.clear()
        if self._is_sending():
            self.send()
            self._flush()

    def _is_sending(self) -> bool:
        return bool(self._outbox)

    @property
    def n_changes(self) -> int:
        """How many changes of counts all scopes have seen."""
        return sum(subgraph.n_changes for subgraph in list(self.subgraphs.values()))
