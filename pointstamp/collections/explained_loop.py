"""How many records change in each round of a loop, so that one sees where its work goes."""

from __future__ import annotations

from typing import Any

from pointstamp.containers.updates import Updates

MOST_EPOCHS = 1_024
"""Of so many epochs, the last ones that changed something, the counts are kept."""


class ExplainedLoop:
    """Counts what goes round in a loop, at this worker.

    >>> import numpy as np
    >>> loop = ExplainedLoop("Reach")
    >>> loop.note((4, 0), Updates(np.array([[7, 1], [8, 1]])))
    >>> loop.note((4, 2), Updates(np.array([[9, 1]])))
    >>> loop.changed
    {4: [2, 0, 1]}
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed: dict[Any, list[int]] = {}
        """By epoch, in a loop in a loop by the time outside of it: how many records, by round."""

    def note(self, time: Any, batch: Updates) -> None:
        """Count records that go round."""
        epoch, number = time
        if epoch not in self.changed:
            if len(self.changed) == MOST_EPOCHS:
                del self.changed[next(iter(self.changed))]
            self.changed[epoch] = []
        counts = self.changed[epoch]
        counts.extend([0] * (number + 1 - len(counts)))
        counts[number] += len(batch)
