"""Counts what simulated workers send each other: the same numbers each time.

All workers take turns, and between two rounds of turns everything arrives. So what is
counted is the work of the protocol, and of no machine, and may stand in a table or in
an assertion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.communication.waiting_links import Link, Pending
from pointstamp.containers.codec import encode
from pointstamp.runtime.schedule import Decision, Schedule
from pointstamp.runtime.simulate import Simulation

CONTROL, PROGRESS = 0, 1
"""A worker's own channels; those that come after are of its dataflows."""


@dataclass
class Traffic:
    """Messages between workers, and their bytes as the codec makes them."""

    n_progress: int = 0
    progress_bytes: int = 0
    n_data: int = 0
    data_bytes: int = 0
    n_steps: int = 0
    """Of all workers."""

    def watch(self, network: SimulatedNetwork) -> None:
        """Count what is sent from now on."""
        send = network._send

        def count(link: Link, tag: Any, batch: Any) -> None:
            self._count(link[2], sum(memoryview(piece).nbytes for piece in encode(batch, tag)))
            send(link, tag, batch)

        network._send = count  # type: ignore[method-assign]  # of this one network

    def _count(self, channel: int, n_bytes: int) -> None:
        if channel == PROGRESS:
            self.n_progress += 1
            self.progress_bytes += n_bytes
        elif channel != CONTROL:
            self.n_data += 1
            self.data_bytes += n_bytes


class InTurns(Schedule):
    """Each worker that can go on does so once, then everything that was sent arrives."""

    def __init__(self) -> None:
        super().__init__(0)
        self._turns: list[int] = []

    def _draw(self, runnable: Sequence[int], pending: Sequence[Pending]) -> Decision:
        while self._turns:
            worker = self._turns.pop(0)
            if worker in runnable:
                return ("run", worker)
        if pending:
            return ("deliver", *pending[0])
        first, *self._turns = runnable
        return ("run", first)


def count_traffic(
    main: Callable[..., Any],
    *args: Any,
    workers: int,
    progress: str = "demand",
    machines: int | Sequence[int] | None = None,
    max_decisions: int = 10_000_000,
) -> Traffic:
    """Run `main(worker, *args)` on workers that take turns; what they sent each other.

    Parameters
    ----------
    main : callable
        Gets a `Worker`, and `args`.
    workers : int
        How many.
    progress : "demand" or "eager"
        When changes of progress are sent.
    machines : int or sequence of int, optional
        On which machines they are, where they add up their progress.
    max_decisions : int
        After so many, the run is stopped as one that never ends.

    Examples
    --------
    Worker 0 sends its record to two others.

    >>> def main(worker):
    ...     with worker.dataflow() as scope:
    ...         scope.to_stream([1] if worker.index == 0 else []).broadcast()
    >>> count_traffic(main, workers=3).n_data
    2
    """
    simulation = Simulation(
        workers, InTurns(), max_decisions=max_decisions, progress=progress, machines=machines
    )
    traffic = Traffic()
    traffic.watch(simulation.network)
    simulation.run(main, *args)
    traffic.n_steps = sum(what == "run" for what, *_ in simulation.schedule.decisions)
    return traffic
