"""A worker's life around its target: run it, then say goodbye, or say why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pointstamp.communication.communicator import Communicator
from pointstamp.errors import UsageError

Result = TypeVar("Result")
Target = Callable[[Communicator], Result]


def run_target(communicator: Communicator, target: Target[Result]) -> Result:
    """Run `target(communicator)`; close the communicator after it, or abort it.

    For whoever made a communicator by other means than `launch`: peers see this
    worker's end as a goodbye exactly where it has a result.
    """
    try:
        result = target(communicator)
        communicator.close()
    except BaseException as cause:
        communicator.abort(cause)
        raise
    return result


def check_workers(workers: int) -> None:
    """Refuse a number of workers that cannot be."""
    if workers < 1:
        raise UsageError(f"a computation needs at least one worker, not {workers}")
