"""One order for what all workers say: a log that each appends to and all read alike.

What is pushed travels to one worker, chosen by a hash of the log's name, which takes
things in the order in which they arrive and sends each to all. A channel keeps the
order of each sender, so every worker gets the same sequence, and in it what one worker
pushed is in the order of its pushing. No clock is asked, no time has to advance, and
a log in which nothing is said costs nothing.

Source: timely-dataflow `synchronization/sequence.rs`, whose order is by the clocks of
the workers, which each has to go on advancing.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from pointstamp.runtime.barrier import check_worker
from pointstamp.runtime.worker import Worker

T = TypeVar("T")


class Sequencer(Generic[T]):
    """Puts messages of all workers into one total order, which every worker sees.

    Every worker makes one, at the same place among its dataflows. It is a dataflow:
    what was pushed is ordered and comes back while the workers step. Use it for
    commands that all workers must carry out in the same order, such as to build a
    dataflow or to drop one.

    Iterating gives what has come by now, each element once, and does not wait.

    >>> import pointstamp as ps
    >>> def main(worker):
    ...     log = ps.Sequencer(worker)
    ...     log.push(f"from {worker.index}")
    ...     found = []
    ...     while len(found) < worker.peers:
    ...         worker.step_or_park()
    ...         found.extend(log)
    ...     return found
    >>> one, two = ps.execute(main, workers=2, threads=True)
    >>> one == two, sorted(one)
    (True, ['from 0', 'from 1'])
    """

    def __init__(self, worker: Worker, name: str = "Sequencer") -> None:
        check_worker(worker, "a Sequencer")
        self._ordered: deque[T] = deque()
        with worker.dataflow(name) as scope:
            self._input, pushed = scope.new_input(name)
            # All have the same key: one worker gets everything, and its order is the order.
            ordered = pushed.exchange(lambda element: name).broadcast()
            self._probe = ordered.inspect(self._ordered.append).probe()

    def push(self, element: T) -> None:
        """Add an element, which must be picklable where workers are processes.

        Raises
        ------
        InputError
            After `close`.
        """
        self._input.send(element)

    def pop(self) -> T | None:
        """The next element, or None if none has come yet; step the worker to have some come."""
        return self._ordered.popleft() if self._ordered else None

    def __len__(self) -> int:
        """How many elements have come and were not taken yet."""
        return len(self._ordered)

    def __iter__(self) -> Sequencer[T]:
        return self

    def __next__(self) -> T:
        if not self._ordered:
            raise StopIteration
        return self._ordered.popleft()

    @property
    def done(self) -> bool:
        """Whether all workers have closed it and everything has come."""
        return self._probe.done

    def close(self) -> None:
        """Push nothing more; what others push still comes."""
        self._input.close()
