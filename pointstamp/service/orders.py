"""Orders of worker 0 to all workers of a service, which carry them out in the same order.

Orders go over a channel of the workers' own, so that a client talks to one worker, and an
order that was given reaches all or the workers end.
"""

from __future__ import annotations

from dataclasses import dataclass

from pointstamp.service.protocol import StagingHandle


@dataclass(frozen=True)
class AdmitEpoch:
    """Admit the attempts to the dataflow at `epoch`, and go on to epoch `until`.

    `until` None closes the input. What else is staged for the input up to then is dropped.
    """

    input: str
    epoch: int
    attempts: tuple[StagingHandle, ...]
    until: int | None


@dataclass(frozen=True)
class DropAttempts:
    """Drop what these attempts have staged."""

    attempts: tuple[StagingHandle, ...]


@dataclass(frozen=True)
class DiscardOutput:
    """Discard an output's epochs up to this one."""

    output: str
    upto: int


@dataclass(frozen=True)
class TakeSnapshot:
    """Have a snapshot made as of the end of this epoch."""

    epoch: int


@dataclass(frozen=True)
class AbandonSnapshot:
    """Write nothing more of the snapshot of this epoch: it is given up."""

    epoch: int


@dataclass(frozen=True)
class StopWorkers:
    """Leave; given when all is complete."""


Order = AdmitEpoch | DropAttempts | DiscardOutput | TakeSnapshot | AbandonSnapshot | StopWorkers
