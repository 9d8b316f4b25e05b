"""Starts workers, waits for their results, and reports the first cause of a failure.

`run_single`, `run_threads` and `processes.run_processes` differ in what carries the
messages and in nothing else: `target(communicator)` runs once per worker, and
the results come back in the order of the workers. When a worker raises, exits or
dies, all the others are stopped and the caller gets a `WorkerError`.

Threads cannot be stopped from outside: one that is busy in its own code when
another fails is left to stop at its next call of the communicator, after the
caller was given the error. Processes are always stopped.
"""

from __future__ import annotations

import queue
import threading
import time

from pointstamp.communication import threads
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.failure import Failure, failure, first_cause
from pointstamp.communication.single import SingleCommunicator
from pointstamp.communication.target import Result, Target, check_workers, run_target

__all__ = ["run_single", "run_target", "run_threads"]

STOP_S = 0.8
"""How long the threads of a failed computation are waited for."""


def run_single(target: Target[Result]) -> list[Result]:
    """Run one worker, here; its exceptions become `WorkerError` as with more.

    >>> run_single(lambda communicator: communicator.peers)
    [1]
    """
    try:
        return [run_target(SingleCommunicator(), target)]
    except KeyboardInterrupt:
        raise  # of what runs the worker, not of the worker
    except BaseException as cause:  # noqa: BLE001  (raised, in the words of `WorkerError`)
        found = failure(0, cause, time.monotonic())
        raise found.as_error() from found.cause


def run_threads(target: Target[Result], workers: int) -> list[Result]:
    """Run `target(communicator)` in each of `workers` threads; the results by index.

    Raises
    ------
    WorkerError
        When a worker raises; the others stop at their next use of the communicator.

    Examples
    --------
    >>> run_threads(lambda communicator: communicator.index, 3)
    [0, 1, 2]
    """
    check_workers(workers)
    ended: queue.SimpleQueue[tuple[int, Result | Failure]] = queue.SimpleQueue()
    group = threads.communicators(workers)
    started = [
        threading.Thread(
            target=_run_in_thread,
            args=(communicator, target, ended),
            name=f"pointstamp-worker-{communicator.index}",
            daemon=True,
        )
        for communicator in group
    ]
    try:
        for thread in started:
            thread.start()
        outcomes = _outcomes(ended, workers)
    except BaseException as cause:
        for communicator in group:
            communicator.abort(cause)
        for thread in started:
            if thread.ident is not None:
                thread.join(STOP_S)
        raise
    for index in outcomes:
        started[index].join()
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
    if failures:
        found = first_cause(failures)
        raise found.as_error() from found.cause
    return [outcomes[index] for index in range(workers)]  # type: ignore[misc]  # no failure is left


def _run_in_thread(
    communicator: Communicator,
    target: Target[Result],
    ended: queue.SimpleQueue[tuple[int, Result | Failure]],
) -> None:
    try:
        ended.put((communicator.index, run_target(communicator, target)))
    except BaseException as cause:  # noqa: BLE001  (handed to the caller)
        ended.put((communicator.index, failure(communicator.index, cause, time.monotonic())))


def _outcomes(
    ended: queue.SimpleQueue[tuple[int, Result | Failure]], workers: int
) -> dict[int, Result | Failure]:
    """How each worker ended; after the first failure, the others have `STOP_S` to do so."""
    outcomes: dict[int, Result | Failure] = {}
    until: float | None = None
    while len(outcomes) < workers:
        try:
            index, outcome = ended.get(
                timeout=None if until is None else max(0.0, until - time.monotonic())
            )
        except queue.Empty:
            break
        outcomes[index] = outcome
        if isinstance(outcome, Failure) and until is None:
            until = time.monotonic() + STOP_S
    return outcomes
