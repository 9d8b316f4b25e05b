"""What sources and sinks share with the run that they are part of: its epochs, and its end.

A run (`runtime/run_flow.py`) says when an epoch is over, through a stream that all its sources
have as an input: it carries nothing but time. So a source is aligned for snapshots like any other
operator with an input, and no source sends what is of a later epoch before all workers have left
the epoch before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RunEpochs:
    """The run that a dataflow is built for, on one worker.

    Attributes
    ----------
    stream : Stream
        Its epochs, of the outermost scope.
    run : str
        A name of its own.
    is_new : bool
        Whether it begins from the start.
    commits_later : bool
        Whether there is a checkpoint, so that sinks wait for its snapshots.
    n_sources, n_ended : int
        How many sources were built, and how many have come to their ends.
    commits : list
        Of each transactional sink, what commits up to an epoch.
    """

    stream: Any
    run: str
    is_new: bool
    commits_later: bool
    n_sources: int = 0
    n_ended: int = 0
    commits: list[Callable[[int], None]] = field(default_factory=list)

    @property
    def have_ended(self) -> bool:
        """Whether all sources of this worker have."""
        return self.n_ended == self.n_sources
