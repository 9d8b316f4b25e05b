"""What `execute`, `simulate` and `run_worker` are given, checked before any worker starts."""

from __future__ import annotations

from typing import Any

from pointstamp.errors import UsageError
from pointstamp.runtime.watchdog import check_after_s


def is_eager(progress: str) -> bool:
    """Whether a mode of progress, "demand" or "eager", is the eager one."""
    if progress not in ("demand", "eager"):
        raise UsageError(f"progress is sent on 'demand' or 'eager', and not {progress!r}")
    return progress == "eager"


def check_options(
    progress: Any, log: Any, watchdog_s: Any = None, in_flight_bytes: Any = 0
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
