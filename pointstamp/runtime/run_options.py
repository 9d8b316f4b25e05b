"""What `execute`, `simulate` and `run_worker` are given, checked before any worker starts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp.errors import UsageError
from pointstamp.runtime.watchdog import check_after_s

if TYPE_CHECKING:
    from pointstamp.dataflow.spillable import WorkerMemory

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}


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
    memory_limit: Any = None,
    spill_directory: Any = None,
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
    memory_bytes(memory_limit)
    if spill_directory is None:
        return
    if memory_limit is None:
        raise UsageError("a spill_directory is for what a memory_limit= has go to disk; give both")
    if not isinstance(spill_directory, str | os.PathLike):
        raise UsageError(f"a spill_directory is a path, and not {spill_directory!r}")


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


def memory_bytes(memory_limit: Any) -> int | None:
    """A limit of memory in bytes; None if there is none.

    Raises
    ------
    UsageError

    >>> memory_bytes("512MB"), memory_bytes("1.5 GiB"), memory_bytes(None)
    (512000000, 1610612736, None)
    """
    if memory_limit is None:
        return None
    found = memory_limit
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?", memory_limit.strip().lower())
        if match is not None:
            found = int(float(match[1]) * _UNITS[match[2] or ""])
    if type(found) is not int or found <= 0:
        raise UsageError(
            f"memory_limit={memory_limit!r} is no size: give bytes, or a text such as '512MB', "
            "'1.5GB' or '2GiB': how much of what waits each worker keeps in memory"
        )
    return found


@contextmanager
def memory_budget(memory_limit: Any, spill_directory: Any) -> Iterator[WorkerMemory | None]:
    """What a worker is given for these options, for as long as it runs."""
    limit_bytes = memory_bytes(memory_limit)
    if limit_bytes is None:
        yield None
        return
    # Not at the top: few runs have a limit.
    from pointstamp.dataflow.spillable import WorkerMemory

    directory = None if spill_directory is None else os.fspath(spill_directory)
    budget = WorkerMemory(limit_bytes, directory)
    yield budget
    # Not after an error: what its links still have to say may lie behind what is on disk.
    budget.close()
