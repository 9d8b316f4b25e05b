"""Where Spark's pulling meets the dataflow's pushing.

Spark runs a task by asking a generator for the next batch; a dataflow is fed,
stepped, and gives results when it has them. So: take a batch, send it, step, hand
over what came out; with the input at its end, go on until the results are
complete, and then until all peers are.

While Spark takes its time with a result this worker does not step. Its peers wait
for it then, or go on without: nothing depends on how long it takes. When Spark
asks no more, the generator is closed where it stands, and what holds the
communicator aborts it, so that no peer waits for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pointstamp.operators.probe import Probe
from pointstamp.runtime.worker import Worker

Arrival = TypeVar("Arrival")
Result = TypeVar("Result")


def run(
    worker: Worker,
    arrivals: Iterable[Arrival],
    feed: Callable[[Arrival], object],
    results: deque[Result],
    probe: Probe,
) -> Iterator[Result]:
    """Run `worker` on `arrivals` to the end of all its dataflows; its results as they come.

    Parameters
    ----------
    worker : Worker
        With its dataflow built.
    arrivals : iterable
        What to feed it with; waiting for one does not step the worker.
    feed : callable
        Sends one arrival to an input.
    results : deque
        Where the dataflow puts its results; emptied from the left.
    probe : Probe
        At the stream of the results.
    """
    for arrival in arrivals:
        feed(arrival)
        worker.step()
        yield from _taken(results)
    worker.close_inputs()
    while not probe.done:
        worker.step()
        yield from _taken(results)
        if not (worker.has_work or probe.done):
            worker.communicator.park()
    yield from _taken(results)
    worker.finish()


def _taken(results: deque[Result]) -> Iterator[Result]:
    while results:
        yield results.popleft()
