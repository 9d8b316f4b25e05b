"""What `execute`, `simulate` and `run_worker` are given, checked before any worker starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pointstamp.errors import UsageError
from pointstamp.runtime.watchdog import check_after_s


def is_eager(progress: str) -> bool:
    """Whether a mode of progress, "demand" or "eager", is the eager one."""
    if progress not in ("demand", "eager"):
        raise UsageError(f"progress is sent on 'demand' or 'eager', and not {progress!r}")
    return progress == "eager"


def check_options(
    progress: Any,
    log: Any,
    watchdog_s: Any = None,
    in_flight_bytes: Any = 0,
    accumulate: Any = False,
) -> None:
    """Refuse options of a run that are of no use.

    Raises
    ------
    UsageError

    >>> check_options("demand", None, 30, 1 << 20)
    """
    is_eager(progress)
    if log is not None and not hasattr(log, "simulated"):
        raise UsageError(f"a log is a ps.Log, such as ps.Log('run.log'), and not {log!r}")
    if watchdog_s is not None:
        check_after_s(watchdog_s)
    if type(in_flight_bytes) is not int or in_flight_bytes < 0:
        raise UsageError(
            f"{in_flight_bytes!r} bytes cannot be in flight; give an integer, 0 for no limit"
        )
    if type(accumulate) is not bool:
        raise UsageError(f"accumulate is True or False, and not {accumulate!r}")


def machine_of_each(machines: Any, workers: int) -> list[int]:
    """By worker, the number of its machine, of a number of machines or of such a list.

    Raises
    ------
    UsageError
        For a number that is none from 1 to that of workers, and a list of another length.

    >>> machine_of_each(2, 5)
    [0, 0, 0, 1, 1]
    >>> machine_of_each([7, 8, 7], 3)
    [7, 8, 7]
    """
    if type(machines) is int and 1 <= machines <= workers:
        return [worker * machines // workers for worker in range(workers)]
    is_list = isinstance(machines, Sequence) and not isinstance(machines, str)
    if is_list and len(machines) == workers and all(type(m) is int for m in machines):
        return list(machines)
    raise UsageError(
        f"{workers} workers are on 1 to {workers} machines, or on those of a list of {workers} "
        f"integers, and not on {machines!r}"
    )
