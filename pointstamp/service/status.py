"""How far a service is, as its workers tell it.

By itself, so that who talks to a worker from elsewhere need not import what a worker is.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER = (1 << 62) - 1
"""An epoch that is complete when all are."""

TICK_S = 0.5
"""How long a worker is asked to wait at a time; in between we look whether all are there."""


@dataclass(frozen=True)
class Status:
    """How far a service is, as one of its workers knows it.

    Attributes
    ----------
    inputs : dict of str to int or None
        The epoch that each input is at; None for one that is closed.
    outputs : dict of str to int or None
        The first epoch of each output that is not complete; None when all are.
    discarded : dict of str to int
        The last epoch of each output that is discarded; -1 for none.
    end : int
        Where a reader is that has read all, once all inputs are closed. With a checkpoint that
        is an epoch which a service that begins again goes on with; else there is no more.
    """

    inputs: dict[str, int | None]
    outputs: dict[str, int | None]
    discarded: dict[str, int]
    end: int = NEVER

    def is_complete(self, output: str | None, epoch: int) -> bool:
        """Whether an output, or every one for None, is complete up to `epoch`."""
        frontiers = self.outputs.values() if output is None else [self.outputs[output]]
        return all(frontier is None or epoch < frontier for frontier in frontiers)
