"""A program as its metrics endpoint sees it: its workers, and what is known of them here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pointstamp.metrics.sample_requests import collect
from pointstamp.metrics.samples import ProcessSample, WorkerSample

RUNNING, RESTARTING, ENDED = "running", "restarting", "ended"
"""The states of a program; one that runs may not be ready yet."""


@dataclass(frozen=True)
class ProgramState:
    """What the process that started the workers knows of them.

    Attributes
    ----------
    state : str
        "running", "restarting" or "ended".
    restarts : int, optional
        How many times they were started again; None of what never is.
    error : str
        What they ended of.
    """

    state: str = RUNNING
    restarts: int | None = None
    error: str = ""


@dataclass(frozen=True)
class ProgramSample:
    """All that one scrape gets."""

    n_workers: int
    state: ProgramState
    processes: tuple[ProcessSample, ...]

    @property
    def workers(self) -> list[WorkerSample]:
        """Those that answered, by index."""
        found = {each.index: each for process in self.processes for each in process.workers}
        return [found[index] for index in sorted(found)]

    @property
    def is_healthy(self) -> bool:
        """Whether the program has not ended."""
        return self.state.state != ENDED

    @property
    def is_ready(self) -> bool:
        """Whether all workers are there, have built a dataflow, and agree on what they built."""
        workers = self.workers
        return (
            self.state.state == RUNNING
            and len(workers) == self.n_workers
            and all(each.is_ready for each in workers)
        )


class SampledProgram(Protocol):
    """What an endpoint serves."""

    def sample(self, timeout_s: float) -> ProgramSample:
        """What its workers have counted, as far as they answer in time."""


@dataclass(frozen=True)
class MeteredProgram:
    """What is asked by a scrape.

    Parameters
    ----------
    run : str
        See `Metered`.
    n_workers : int
        How many there are to be.
    state : callable
        What is known of them now.
    """

    run: str
    n_workers: int
    state: Callable[[], ProgramState] = ProgramState

    def sample(self, timeout_s: float, after: Mapping[str, int] | None = None) -> ProgramSample:
        """What its workers have counted; those that do not answer in time are not in it.

        With `after`, their epochs, too: see `CollectMetrics`.
        """
        processes = collect(self.run, timeout_s, after)
        return ProgramSample(self.n_workers, self.state(), tuple(processes))
