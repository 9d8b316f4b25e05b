"""The control plane of a worker: what workers agree on besides records and progress.

A dataflow starts when the structure of every peer's was seen to be the same, so that no
batch is ever read by the wrong operator. A worker that drops a dataflow reports so. One that
has finished reports how many it built and dropped, so that its peers do not wait for what
never comes. The messages of backpressure travel here, too: what was taken from a channel, and
whether a dataflow's sources are to be throttled (see `dataflow.backpressure`); and what operators
compare while they run (see `dataflow.comparisons`), so that no worker ends before it has compared.

Rules
-----
1. Messages are handled in the order in which one peer sent them; a peer may be ahead, so
   what concerns a dataflow that is not built yet is kept until it is.
2. A difference is an error on the worker that sees it, with both sides in the message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from typing import Any, ClassVar

from pointstamp.communication.communicator import Communicator
from pointstamp.dataflow.comparisons import Comparisons
from pointstamp.errors import StructureError, UsageError
from pointstamp.runtime.drops import DataflowDrop, Drops
from pointstamp.runtime.installed_dataflow import InstalledDataflow

LOGGER = logging.getLogger("pointstamp.runtime")


class ControlPlane:
    """What one worker has agreed on with its peers.

    Parameters
    ----------
    communicator : Communicator
        Of the worker; the control plane makes a channel of its own.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.channel = communicator.channel()
        self.n_built = 0
        self.dataflows: dict[int, InstalledDataflow] = {}
        """Those that are not complete on this worker, by number."""
        self.in_flight: dict[int, tuple[Any, Any]] = {}
        """By channel: what counts its traffic, and the queue that it ends in."""
        self.comparisons = Comparisons(self._publish_compared)
        """What operators compare while they run."""
        self.has_returned = False
        """Whether the worker's program is over, and it drops no more."""
        self._by_name: dict[str, InstalledDataflow] = {}
        self._waits_for: Container[int] = ()
        """The numbers of dataflows that the worker waits for."""
        self._communicator = communicator
        self._index = communicator.index
        self._others = [p for p in range(communicator.peers) if p != communicator.index]
        self._structures: dict[tuple[int, int], list[str]] = {}
        """(peer, number) of what was not compared yet."""
        self._uncompared: dict[int, InstalledDataflow] = {}
        self._drops = Drops(communicator.index, communicator.peers)
        self._finished: dict[int, tuple[int, int]] = {}
        self._throttled_early: dict[int, set[int]] = {}
        """By number of a dataflow that is not built here yet: the peers that throttle it."""

    def receive(self) -> None:
        """Handle what peers have sent."""
        while (message := self.channel.pull()) is not None:
            (content,) = message.batch
            self._handlers[message.tag](self, message.sender, *content)

    # Agreement on structure.

    def install(self, dataflow: InstalledDataflow) -> None:
        """Publish the structure of a dataflow that was built, and compare it with the peers'."""
        number = dataflow.number
        self.n_built += 1
        self.dataflows[number] = dataflow
        self._by_name[dataflow.name] = dataflow
        self._log_one("has built dataflow %r", dataflow)
        if dataflow.backpressure is not None:
            # Peers that were quicker may have reported already.
            for peer in self._throttled_early.pop(number, ()):
                dataflow.backpressure.hear(peer, True)
        if not self._others:
            return
        self._uncompared[number] = dataflow
        for peer in self._others:
            self.channel.send(peer, "structure", [(number, dataflow.lines)])
        # At once: a peer sends nothing before it has this, and the next step may take long.
        self._communicator.flush()
        for peer in self._others:
            if (peer, number) in self._structures:
                self._compare(peer, number)

    def uninstall(self, dataflow: InstalledDataflow) -> None:
        """Forget a dataflow that is complete or dropped; its structure until all have compared."""
        del self.dataflows[dataflow.number]
        if dataflow.backpressure is not None:
            dataflow.backpressure.throttled_time.note(False)
        what = "has dropped dataflow %r" if dataflow.is_dropped else "has completed dataflow %r"
        self._log_one(what, dataflow)
        if dataflow.number not in self._uncompared:
            dataflow.forget_structure()

    def _log_one(self, what: str, dataflow: InstalledDataflow) -> None:
        if LOGGER.isEnabledFor(logging.INFO):
            about = {"worker": self._index, "dataflow": dataflow.name}
            LOGGER.info(f"worker %d {what}", self._index, dataflow.name, extra=about)

    def _take_structure(self, peer: int, number: int, lines: list[str]) -> None:
        self._structures[peer, number] = lines
        if number in self._uncompared:
            self._compare(peer, number)
        self.check_finished()

    def _compare(self, peer: int, number: int) -> None:
        """Raise if the peer has built another dataflow; else it may start."""
        dataflow = self._uncompared[number]
        theirs = self._structures.pop((peer, number))
        if theirs != dataflow.lines:
            raise StructureError(
                f"workers {self._index} and {peer} built different dataflows as number {number} "
                f"({dataflow.name!r}); first difference: "
                f"{_first_difference(dataflow.lines, theirs, self._index, peer)}; all workers "
                "must build the same dataflows in the same order"
            )
        dataflow.agreed.add(peer)
        if len(dataflow.agreed) == len(self._others):
            del self._uncompared[number]
        dataflow.activation.ask()

    def find(self, dataflow: Any, purpose: str) -> InstalledDataflow:
        """The dataflow that is meant by its scope or its name, complete or not."""
        if isinstance(dataflow, str):
            found: Any = self._by_name.get(dataflow)
        else:
            found = getattr(dataflow, "installed", None)
        if not isinstance(found, InstalledDataflow) or found.is_dropped:
            raise UsageError(
                f"worker {self._index} cannot {purpose} {dataflow!r}: "
                f"{'it was dropped before' if found is not None else 'it is no dataflow of it'}; "
                f"there are {list(self._by_name)}"
            )
        return found

    # Drops.

    @property
    def n_dropped(self) -> int:
        """How many dataflows this worker has dropped."""
        return self._drops.n_dropped

    def publish_drop(self, dataflow: InstalledDataflow) -> None:
        """Report to the peers that this worker drops a dataflow."""
        was_complete = dataflow.root is None
        drop = DataflowDrop(self.n_built, dataflow.number, dataflow.name, was_complete)
        for peer in self._others:
            self.channel.send(peer, "dropped", [tuple(drop)])
        self._communicator.flush()
        self._drops.note(drop)
        if self._by_name.get(dataflow.name) is dataflow:
            del self._by_name[dataflow.name]

    def _take_drop(self, peer: int, *drop: Any) -> None:
        self._drops.receive(peer, DataflowDrop(*drop))
        self._check_drops()
        self.check_finished()

    def begin_waiting(self, numbers: Sequence[int] = ()) -> None:
        """From now on it is an error if a peer drops one of these, of none: of all dataflows."""
        self._waits_for = numbers or self.dataflows
        self._check_drops()

    def end_waiting(self) -> None:
        """The worker waits for its dataflows no longer."""
        self._waits_for = ()

    def _check_drops(self) -> None:
        """Raise if this worker waits until a dataflow is complete that a peer has dropped."""
        for peer, drop in self._drops.ahead():
            is_waited_for = drop.number in self._waits_for and drop.number in self.dataflows
            if self.has_returned or (is_waited_for and not drop.was_complete):
                raise StructureError(
                    f"worker {peer} dropped {drop}, and worker {self._index} waits for it to be "
                    "complete; all workers must build and drop the same dataflows in the same order"
                )

    # The end.

    def publish_finish(self) -> None:
        """Report to the peers that this worker has completed all that it built."""
        for peer in self._others:
            self.channel.send(peer, "finished", [(self.n_built, self.n_dropped)])
        self._communicator.flush()

    @property
    def have_all_finished(self) -> bool:
        """Whether every peer has."""
        return len(self._finished) == len(self._others)

    def _take_finish(self, peer: int, n_built: int, n_dropped: int) -> None:
        self._finished[peer] = n_built, n_dropped
        self.check_finished()

    def check_finished(self) -> None:
        """Raise if a peer has finished without a dataflow, or a drop, that this worker has."""
        n_dropped = self.n_dropped
        for peer, (peer_built, peer_dropped) in self._finished.items():
            if peer_built < self.n_built or peer_dropped < n_dropped:
                raise StructureError(
                    f"worker {peer} finished with {peer_built} dataflows built and {peer_dropped} "
                    f"dropped, and worker {self._index} has built {self.n_built} and dropped "
                    f"{n_dropped}; all workers must build and drop the same dataflows in the same "
                    "order"
                )

    # Comparisons of operators.

    def _publish_compared(self, number: int, value: Any) -> None:
        for peer in self._others:
            self.channel.send(peer, "compared", [(number, value)])

    # Backpressure.

    def publish_throttle(self, number: int, is_over: bool) -> None:
        """Report to the peers whether too much of a dataflow is in flight from this worker."""
        for peer in self._others:
            self.channel.send(peer, "throttle", [(number, is_over)])

    def _take_throttle(self, peer: int, number: int, is_over: bool) -> None:
        dataflow = self.dataflows.get(number)
        if dataflow is not None and dataflow.backpressure is not None:
            dataflow.backpressure.hear(peer, is_over)
        elif number >= self.n_built:
            early = self._throttled_early.setdefault(number, set())
            (early.add if is_over else early.discard)(peer)

    def publish_taken(self, channel: int, peer: int, n_records: int) -> None:
        """Acknowledge to a peer how many records of a channel were taken."""
        self.channel.send(peer, "taken", [(channel, n_records)])

    def _take_acknowledgement(self, peer: int, channel: int, n_records: int) -> None:
        metered = self.in_flight.get(channel)
        if metered is not None:  # else the dataflow is complete
            metered[0].acknowledged(peer, n_records)

    _handlers: ClassVar[dict[str, Callable[..., None]]] = {
        "structure": _take_structure,
        "dropped": _take_drop,
        "finished": _take_finish,
        "throttle": _take_throttle,
        "taken": _take_acknowledgement,
        "compared": lambda self, peer, number, value: self.comparisons.receive(number, value),
    }
    """By tag of a message: takes the sender and what it sent."""


def _first_difference(mine: list[str], theirs: list[str], index: int, peer: int) -> str:
    """Which operator, stream or scope differs, and in what; see `ScopeCore.structure`."""
    for own, other in zip(mine, theirs, strict=False):
        if own != other:
            what, _, details = own.rpartition(": ")
            other_what, _, other_details = other.rpartition(": ")
            if what == other_what:
                return (
                    f"{what} has {details} on worker {index}, and {other_details} on worker {peer}"
                )
            return f"worker {index} has {own}, where worker {peer} has {other}"
    longer, has, has_not = (mine, index, peer) if len(mine) > len(theirs) else (theirs, peer, index)
    return f"worker {has} has {longer[min(len(mine), len(theirs))]}, which worker {has_not} has not"
