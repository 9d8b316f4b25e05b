"""A barrier: a place in the program that no worker passes before all have come to it.

It is a dataflow of an input and a probe, in which only time moves: to come to the
barrier is to advance, and all have come when the probe says so. Dataflows go on
running while a worker waits.

Source: timely-dataflow `synchronization/barrier.rs`.
"""

from __future__ import annotations

from typing import Any

from pointstamp.errors import UsageError
from pointstamp.runtime.worker import Worker


class Barrier:
    """A reusable barrier: each worker waits until all workers have reached it.

    Every worker makes one, at the same place among its dataflows. Closing it on any
    worker ends it; it is closed when `main` returns.

    >>> import pointstamp as ps
    >>> def main(worker, places):
    ...     barrier = ps.Barrier(worker)
    ...     places.append("before")
    ...     barrier.wait()
    ...     places.append("after")
    >>> places = []
    >>> _ = ps.execute(main, places, workers=3, threads=True)
    >>> places
    ['before', 'before', 'before', 'after', 'after', 'after']
    """

    def __init__(self, worker: Worker, name: str = "Barrier") -> None:
        check_worker(worker, "a Barrier")
        self._worker = worker
        with worker.dataflow(name) as scope:
            self._input, stream = scope.new_input(name)
            self._probe = stream.probe()

    def wait(self) -> None:
        """Come to the barrier, and step until all workers have."""
        self.advance()
        self._worker.step_while(lambda: not self.reached())

    def advance(self) -> None:
        """Come to the barrier, and do not wait; ask with `reached`."""
        self._input.advance_to(self._input.time + 1)

    def reached(self) -> bool:
        """Whether all workers have come to the barrier as often as this one; true at first.

        What the peers did is seen by stepping.
        """
        return not self._probe.less_than(self._input.time)

    def close(self) -> None:
        """Come no more: the peers wait for this worker no longer."""
        self._input.close()


def check_worker(worker: Any, what: str) -> None:
    """Raise `UsageError` unless `what` is made by a worker."""
    if not isinstance(worker, Worker):
        raise UsageError(f"{what} is made by a worker, as main(worker) gets it; found {worker!r}")
