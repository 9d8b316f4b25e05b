"""`execute`: run a program on workers of this machine.

A process that starts workers runs none itself, so what a worker needs is imported where one runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from pointstamp.communication.target import check_main, check_workers
from pointstamp.dataflow.limits import LIMIT_BYTES
from pointstamp.dataflow.program_lines import noting_lines
from pointstamp.errors import SerializationError
from pointstamp.runtime.dashboards import Dashboard, dashboard_open, dashboard_options
from pointstamp.runtime.introspection import listening
from pointstamp.runtime.progress_bars import check_progress_bar, progress_shown
from pointstamp.runtime.run_logging import logging_run
from pointstamp.runtime.run_metrics import metered
from pointstamp.runtime.run_options import check_options
from pointstamp.runtime.run_results import RunResults

if TYPE_CHECKING:
    from pointstamp.communication.communicator import Communicator
    from pointstamp.dataflow.logging_protocol import LoggerFactory
    from pointstamp.metrics.endpoint import MetricsEndpoint
    from pointstamp.metrics.telemetry import Telemetry
    from pointstamp.runtime.worker import Worker

Result = TypeVar("Result")
Args = TypeVarTuple("Args")


def execute(
    main: Callable[[Worker, *Args], Result],
    *args: *Args,
    workers: int = 1,
    threads: bool = False,
    progress: str = "demand",
    accumulate: bool = False,
    log: LoggerFactory | None = None,
    watchdog_s: float | None = None,
    in_flight_bytes: int = LIMIT_BYTES,
    memory_limit: int | str | None = None,
    spill_directory: str | PathLike[str] | None = None,
    dashboard: bool | Dashboard = False,
    metrics: int | str | MetricsEndpoint | None = None,
    telemetry: bool | Telemetry = False,
    progress_bar: bool = False,
) -> RunResults[Result]:
    """Run `main(worker, *args)` on each worker, and complete the dataflows that it built.

    When `main` returns, open inputs are closed, and the worker steps until
    every dataflow is complete. A single worker runs in the calling thread; several run in
    processes of their own, to which `main` and `args` are sent by cloudpickle. There NumPy's
    linear algebra uses a worker's share of the processors, unless `OPENBLAS_NUM_THREADS` or
    `OMP_NUM_THREADS` is set in the environment.

    Parameters
    ----------
    main : callable
        Gets a `Worker`, and `args`. All workers must build the same dataflows.
    workers : int
        The number of workers.
    threads : bool
        Run them as threads of this process instead. They share an interpreter,
        so this is for development, not for speed.
    progress : "demand" or "eager"
        Whether workers send each other progress updates when these may advance another's
        frontier, or always at once, in more messages.
    accumulate : bool
        Whether one worker per machine accumulates the progress of all its workers, rather than
        all sending theirs to all others: far fewer messages, with more latency. It pays with
        many workers, if none of them is busy for long.
    log : Log, optional
        Record event logs of the workers: `ps.Log("run.log")`.
    watchdog_s : float, optional
        Log a warning (by default to standard error), with what holds the frontiers back,
        when nothing has advanced on a worker for this many seconds, and not all is complete.
        Choose it longer than the longest normal pause. Without it, a worker warns
        after some ten seconds if it itself holds back what it waits for: by a capability that
        an operator keeps, or an input that the program does not advance while it waits.
    in_flight_bytes : int
        Roughly how many bytes a channel may have in flight to one peer before the dataflow's
        sources wait, on all workers; 0 for no limit.
    memory_limit : int or str, optional
        A limit on queued batches (in channels, in stashes, in a service until an epoch is over)
        in memory, per worker: bytes, or a string such as "512MB". Batches beyond it are spilled
        to disk, and read back in order. Large batches of arrangements of collections are spilled
        beyond half of it; other operator state is not counted, nor batches that operators have
        taken.
    spill_directory : path, optional
        Where to spill; by default the directory of `tempfile`. The files are anonymous, so
        nothing is ever left over.
    dashboard : bool or Dashboard
        Serve a live page on this machine while the program runs; its address, with
        a token, is written to standard error (`docs/watching.md`).
    metrics : int, str or MetricsEndpoint, optional
        Serve Prometheus metrics at `/metrics` of this port, and `/health` and `/ready`,
        while the workers run: a port on the loopback address, 0 for a free one, or
        "HOST:PORT". The logger "pointstamp.metrics" logs the address.
    telemetry : bool or Telemetry
        Report a trace of each epoch and each snapshot, and the same metrics, to OpenTelemetry: to
        its global providers, or those of a `ps.observability.Telemetry`; see `docs/operating.md`.
    progress_bar : bool
        Show the progress of the run on standard error, or in the cell of a notebook: epochs,
        records, their rate, and an estimate of the time left if all sources know their size
        (`docs/watching.md`). Without a terminal it is a line now and then.

    Returns
    -------
    RunResults
        The return values of `main`, by worker index: a list, whose `table()` combines them into
        one table if they are tables or columns.

    Raises
    ------
    WorkerError
        When a worker raises, exits or dies. All are stopped within a second; the
        error has the first cause.
    UsageError
        When an argument is invalid; when `main` is a coroutine function or a
        generator function, as calling it runs nothing.
    SerializationError
        If `main`, an argument or a return value cannot be pickled, with workers in processes.
    MissingExtraError
        If metrics need prometheus_client, telemetry the API of OpenTelemetry, or a progress bar
        Rich, and it is not installed.

    Examples
    --------
    >>> execute(lambda worker, x: worker.index + x, 10, workers=2, threads=True)
    [10, 11]
    """
    check_workers(workers)
    check_main(main)
    check_options(
        progress, log, watchdog_s, in_flight_bytes, accumulate, memory_limit, spill_directory
    )
    page = dashboard_options(dashboard)
    check_progress_bar(progress_bar)
    if log is not None:
        log.prepare()
    with ExitStack() as stack:
        how = "threads" if threads else "processes" if workers > 1 else "here"
        # What cannot be carried to the workers is reported under the name the caller knows.
        name = getattr(main, "__qualname__", repr(main))
        stack.enter_context(logging_run(name, workers, how))
        log = stack.enter_context(metered(metrics, telemetry, workers, log, name))
        run = stack.enter_context(progress_shown(progress_bar, workers))

        def target(communicator: Communicator) -> Result:
            from pointstamp.runtime.run_worker import run_worker

            shown = main if page is None else noting_lines(main)
            counted = None
            if run is not None:
                from pointstamp.runtime.counted_run import CountedRun

                counted = CountedRun(run, communicator.index)
                shown = counted.counting(shown)
            result = run_worker(
                communicator,
                shown,
                *args,
                progress=progress,
                accumulate=accumulate,
                log=log,
                watchdog_s=watchdog_s,
                in_flight_bytes=in_flight_bytes,
                memory_limit=memory_limit,
                spill_directory=spill_directory,
            )
            if counted is not None:
                counted.publish()
            return result

        target.__qualname__ = name
        if workers == 1:
            from pointstamp.communication.launch import run_single

            stack.enter_context(dashboard_open(page))
            return RunResults(run_single(target))
        stack.enter_context(listening())
        stack.enter_context(dashboard_open(page))
        if threads:
            from pointstamp.communication.launch import run_threads

            return RunResults(run_threads(target, workers))
        from pointstamp.communication.processes import run_processes

        try:
            return RunResults(run_processes(target, workers))
        except SerializationError:
            _check_arguments(args, name)  # the error names the program, with all it refers to
            raise


def _check_arguments(args: tuple[Any, ...], name: str) -> None:
    """Raise `SerializationError` if an argument of a program cannot be pickled."""
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

    for place, arg in enumerate(args):
        try:
            cloudpickle.dumps(arg)
        except Exception as error:
            raise SerializationError(
                f"argument {place} of {name}, of type {type(arg).__name__}, cannot be pickled and "
                f"so not be carried to worker processes: {error}; make it in {name}, or use threads"
            ) from error
