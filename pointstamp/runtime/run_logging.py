"""What a run logs, by the standard library: its start, its dataflows, its end.

The logger is "pointstamp.runtime". Epochs are logged at DEBUG, by workers that count them: whether
they do is decided when they start, so that others do nothing for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp.errors import WorkerError

if TYPE_CHECKING:
    from pointstamp.dataflow.logging_protocol import LoggerFactory

LOGGER = logging.getLogger("pointstamp.runtime")


@contextmanager
def logging_run(name: str, workers: int, how: str) -> Iterator[None]:
    """Log the start and the end of a run, in the process that starts its workers."""
    began = monotonic()
    LOGGER.info(
        "%s starts on %d worker%s: %s",
        *(name, workers, "s" * (workers > 1), how),
        extra={"program": name, "workers": workers},
    )
    try:
        yield
    except WorkerError as error:
        first = str(error).partition("\n")[0]
        seconds = monotonic() - began
        LOGGER.info(
            "%s has failed after %.3f s, as a worker was lost or raised: %s",
            *(name, seconds, first),
            extra={"program": name, "workers": workers, "seconds": seconds},
        )
        raise
    seconds = monotonic() - began
    LOGGER.info(
        "%s has ended after %.3f s: all %d workers have",
        *(name, seconds, workers),
        extra={"program": name, "workers": workers, "seconds": seconds},
    )


def logging_epochs(log: LoggerFactory | None) -> LoggerFactory | None:
    """What a worker is given as its log, so that its epochs are logged if they should be."""
    if not LOGGER.isEnabledFor(logging.DEBUG):
        return log
    from pointstamp.metrics.worker_meter import Metered

    return log if isinstance(log, Metered) else Metered("", log)


@contextmanager
def logging_worker(worker: Any) -> Iterator[None]:
    """Log that a worker is there, and what it has done at its end."""
    about = {"worker": worker.index, "workers": worker.peers}
    LOGGER.info("worker %d of %d is connected", worker.index, worker.peers, extra=about)
    began = monotonic()
    yield
    seconds = monotonic() - began
    LOGGER.info(
        "worker %d has ended after %.3f s: %d dataflows in %d steps",
        *(worker.index, seconds, worker._control.n_built, worker.n_steps),
        extra={
            **about,
            "seconds": seconds,
            "dataflows": worker._control.n_built,
            "steps": worker.n_steps,
        },
    )
