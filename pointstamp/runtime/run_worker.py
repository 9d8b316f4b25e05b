"""`run_worker`: run a program as one of the workers, on a communicator that is there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from os import PathLike
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from pointstamp.communication.communicator import Communicator
from pointstamp.communication.kept_memory import learn_large_blocks
from pointstamp.communication.target import check_main, check_result, run_in_process
from pointstamp.dataflow.limits import LIMIT_BYTES
from pointstamp.dataflow.logging_protocol import LoggerFactory
from pointstamp.errors import UsageError
from pointstamp.operators.scope import Scope
from pointstamp.runtime import watchdog
from pointstamp.runtime.introspection import introspected
from pointstamp.runtime.run_logging import logging_epochs, logging_worker
from pointstamp.runtime.run_metrics import metered
from pointstamp.runtime.run_options import check_options, is_eager, memory_budget
from pointstamp.runtime.worker import Worker

if TYPE_CHECKING:
    from pointstamp.metrics.endpoint import MetricsEndpoint
    from pointstamp.metrics.telemetry import Telemetry

Result = TypeVar("Result")
Args = TypeVarTuple("Args")


def run_worker(
    communicator: Communicator,
    main: Callable[[Worker, *Args], Result],
    *args: *Args,
    progress: str = "demand",
    accumulate: bool = False,
    log: LoggerFactory | None = None,
    watchdog_s: float | None = None,
    in_flight_bytes: int = LIMIT_BYTES,
    memory_limit: int | str | None = None,
    spill_directory: str | PathLike[str] | None = None,
    metrics: int | str | MetricsEndpoint | None = None,
    telemetry: bool | Telemetry = False,
    watches_for_stalls: bool = True,
    responder: Callable[[Worker], AbstractContextManager[object]] = introspected,
) -> Result:
    """Run `main(worker, *args)` as one worker, on a communicator, until all dataflows are complete.

    Leaves the communicator open, for its maker to close. Meanwhile `pointstamp explain` can ask
    what the worker waits for, and in the main thread of a process without a control connection
    SIGUSR1 is answered with that, unless the program uses that signal; another `responder` is a
    context manager that is open as long as the worker runs. With `metrics`
    and `telemetry`, as of `execute`, those of this worker alone are shown. Without a `watchdog_s`,
    a thread watches for stalls, unless `watches_for_stalls` is false.

    Raises
    ------
    UsageError
        When an argument is not what it has to be; when `main` is a coroutine function or a
        generator function: calling it runs nothing.
    """
    if not hasattr(communicator, "channel"):
        raise UsageError(f"a worker needs a communicator, and was given {communicator!r}")
    check_main(main)
    check_options(
        progress, log, watchdog_s, in_flight_bytes, accumulate, memory_limit, spill_directory
    )
    learn_large_blocks()
    with ExitStack() as stack:
        name = getattr(main, "__qualname__", repr(main))
        counted = stack.enter_context(metered(metrics, telemetry, 1, log, name))
        log = logging_epochs(counted)
        kept = None if log is None else stack.enter_context(closing(log.begin(communicator)))
        memory = stack.enter_context(memory_budget(memory_limit, spill_directory))
        worker = Worker(
            communicator,
            eager=is_eager(progress),
            accumulate=accumulate,
            log=kept,
            watchdog_s=watchdog_s,
            stall_s=watchdog.STALL_S if watches_for_stalls else None,
            in_flight_bytes=in_flight_bytes,
        )
        if kept is not None:
            kept.watch(worker)
        if memory is not None:
            worker.environment.limit_memory(memory)
        stack.callback(worker.close)
        stack.enter_context(logging_worker(worker))
        stack.enter_context(responder(worker))
        try:
            result = run_in_process(main, worker, *args)
        except AttributeError as error:
            if error.obj is worker and hasattr(Scope, str(error.name)):
                raise UsageError(
                    f"the worker is asked for {error.name!r}, which a scope has: write `with "
                    "worker.dataflow() as scope:`, and give a function of a scope to ps.run, "
                    "ps.serve or ps.testing.collect"
                ) from error
            raise
        check_result(main, result)
        worker.finish()
    return result
