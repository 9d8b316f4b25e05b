"""What the workers of a run counted: records in and out, steps, bytes exchanged, rounds of loops.

Each sends its counts to the driver when it has ended well. Once those of all workers of one
attempt are there, the driver logs their sum by the logger `pointstamp.spark`, at INFO.

Spark's UI cannot show them. Its pages have the accumulators that tasks of Java update; those of
PySpark have no name there, and what the driver adds to one is on no page. What it does
show of a run are the rows and bytes that each node of the plan took and gave.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LOGGER = logging.getLogger("pointstamp.spark")

N_LOOPS = 4
"""Of so many loops the rounds are said."""


@dataclass(frozen=True)
class WorkerCounts:
    """A message: what one worker counted.

    Attributes
    ----------
    run : str
        How the run is described.
    stage, task : int
        Of Spark; the tasks that an attempt starts have numbers in a row.
    records_in : dict of str to int
        By input.
    sent_bytes : int
        Of messages to other workers, those of progress among them.
    rounds : dict of str to int
        By loop, the most of any time.
    """

    run: str
    stage: int
    task: int
    workers: int
    records_in: Mapping[str, int]
    records_out: int
    steps: int
    sent_bytes: int
    rounds: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Tally:
    """What one worker counts while it runs."""

    records_in: dict[str, int] = field(default_factory=dict)
    records_out: int = 0
    steps: int = 0
    sent_bytes: int = 0
    rounds: dict[str, int] = field(default_factory=dict)

    def arrived(self, name: str, n_records: int) -> None:
        """Records of an input."""
        self.records_in[name] = self.records_in.get(name, 0) + n_records


def summed(counts: Sequence[WorkerCounts]) -> str:
    """The counts of all workers, in words.

    >>> one = WorkerCounts("", 3, 7, 2, {"edges": 10}, 4, 30, 500)
    >>> two = WorkerCounts("", 3, 8, 2, {"edges": 5}, 1, 20, 0)
    >>> summed([one, two])
    '15 records in (15 edges), 5 out; 500 bytes exchanged; at most 30 steps of a worker'
    >>> loops = {"Ranks": 20, "Reach": 3}
    >>> summed([WorkerCounts("", 3, 7, 1, {}, 4, 30, 0, loops)]).rpartition("; ")[2]
    "20 rounds of 'Ranks', 3 of 'Reach'"
    """
    by_input: dict[str, int] = {}
    for each in counts:
        for name, n_records in each.records_in.items():
            by_input[name] = by_input.get(name, 0) + n_records
    inputs = ", ".join(f"{n_records:,} {name}" for name, n_records in sorted(by_input.items()))
    return (
        f"{sum(by_input.values()):,} records in ({inputs or 'no input'}), "
        f"{sum(each.records_out for each in counts):,} out; "
        f"{sum(each.sent_bytes for each in counts):,} bytes exchanged; "
        f"at most {max(each.steps for each in counts):,} steps of a worker" + _rounds(counts)
    )


def _rounds(counts: Sequence[WorkerCounts]) -> str:
    """How often loops went round, those first that did so most often."""
    most: dict[str, int] = {}
    for each in counts:
        for name, n_rounds in each.rounds.items():
            most[name] = max(n_rounds, most.get(name, 0))
    if not most:
        return ""
    deepest = sorted(most.items(), key=lambda loop: (-loop[1], loop[0]))
    (name, n_rounds), *others = deepest[:N_LOOPS]
    words = [f"{n_rounds:,} rounds of {name!r}", *(f"{n:,} of {name!r}" for name, n in others)]
    if len(deepest) > N_LOOPS:
        words.append(f"fewer of {len(deepest) - N_LOOPS} other loops")
    return "; " + ", ".join(words)


class RunCounts:
    """Puts the counts of workers together, on the driver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], dict[int, WorkerCounts]] = {}

    def note(self, connection: Any, message: WorkerCounts) -> None:
        """The handler of a worker's message: logs the sum if it is the last of its attempt."""
        key = connection.group, message.stage
        with self._lock:
            # What workers of an attempt before had counted is of no attempt that ended well.
            counts = {
                worker: counted
                for worker, counted in self._counts.pop(key, {}).items()
                if abs(counted.task - message.task) < message.workers
            }
            counts[connection.worker] = message
            if len(counts) < message.workers:
                self._counts[key] = counts
                return
        LOGGER.info("%s: %s", message.run, summed(list(counts.values())))
