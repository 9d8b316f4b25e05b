"""Commands about programs: run one, sum up the log of a run, ask what one waits for.

`pointstamp run` calls a function as `ps.execute(main, *args)` does: with the worker, and with the
words after `--`. With `--checkpoint` or `--epoch-s` it does so as `ps.run`: with a scope.
`pointstamp log` sums up what the workers wrote down.

`pointstamp explain PID` is for a program that seems to hang. PID is that of the process that
started the workers, or of any of them on the same machine; the process that started them is asked,
and asks each (see `runtime.introspection`). Of a process that is part of no program, such as a
shell, the programs below it are named, and none is asked. No process is signalled.
"""

import os
import sys
from dataclasses import replace
from inspect import signature
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pointstamp.cli.request import Json, LogTo
from pointstamp.cli.streams import answering, check_open, say
from pointstamp.errors import CommunicationError, UsageError

PLAIN_WIDTH = 200
"""Columns of a log where there is no terminal, which would say how many it has."""


def run(
    program: Annotated[str, Argument(metavar="FILE.py:FUNCTION", help="The function to call.")],
    args: Annotated[
        list[str] | None,
        Argument(metavar="-- ARG...", help="Arguments of the function, as strings."),
    ] = None,
    workers: Annotated[int, Option(metavar="N", min=1, help="Number of workers.")] = 1,
    threads: Annotated[
        bool, Option("--threads", help="Run workers as threads of this process.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        Option(
            metavar="FOLDER",
            help="Build a dataflow with sources by FUNCTION(scope, *ARGS), and resume where it "
            "was stopped.",
        ),
    ] = None,
    epoch_s: Annotated[
        float | None,
        Option(
            "--epoch-s",
            metavar="SECONDS",
            min=0,
            help="Length of an epoch of such a dataflow.",
            show_default="1",
        ),
    ] = None,
    process: Annotated[
        int | None, Option(metavar="I", help="Run worker I, from 0, of those in --hosts.")
    ] = None,
    hosts: Annotated[
        Path | None,
        Option(metavar="FILE", help="HOST:PORT of each worker, one per line; the same everywhere."),
    ] = None,
    secret: Annotated[
        Path | None, Option(metavar="FILE", help="A file with the secret that the workers share.")
    ] = None,
    tls: Annotated[
        Path | None,
        Option(
            metavar="FOLDER", help="Use mutual TLS, with chain.pem, key.pem and roots.pem in it."
        ),
    ] = None,
    accumulate: Annotated[
        bool, Option("--accumulate", help="Accumulate progress updates per machine.")
    ] = False,
    connections: Annotated[
        Literal["worker", "machine"],
        Option(help="With --hosts: one connection per pair of workers, or hosts."),
    ] = "worker",
    memory_limit: Annotated[
        str | None,
        Option(
            metavar="SIZE", help="Per worker, such as 2GB: spill queued batches beyond it to disk."
        ),
    ] = None,
    spill_directory: Annotated[
        str | None,
        Option(metavar="FOLDER", help="Where to spill; by default the temporary folder."),
    ] = None,
    log: LogTo = None,
    metrics: Annotated[
        str | None,
        Option(metavar="[HOST:]PORT", help="Serve metrics for Prometheus; 0: a free port."),
    ] = None,
    telemetry: Annotated[
        bool,
        Option("--telemetry", help="Report traces and metrics to OpenTelemetry."),
    ] = False,
    reload: Annotated[
        bool, Option("--reload", help="Rerun when Python files in the program's folder change.")
    ] = False,
    dashboard: Annotated[
        bool, Option("--dashboard", help="Serve a live page; prints its address.")
    ] = False,
    progress_bar: Annotated[
        bool, Option("--progress-bar", help="Show progress on standard error.")
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning"] | None,
        Option(
            help="Log level for standard error; debug logs every epoch.", show_default="warning"
        ),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        Option(
            help="Log format; sets --log-level to info if that is not given.", show_default="text"
        ),
    ] = None,
) -> None:
    """Run FUNCTION(worker, *ARGS) of a program on each worker."""
    if reload:
        if not (process is None and hosts is None and secret is None and tls is None):
            raise UsageError(
                "--reload runs all workers again, and --hosts names some that it does not start: "
                "leave one out"
            )
        from pointstamp.cli.reloading import run_and_reload

        run_and_reload(program, without_reload(sys.argv[1:]))
        return
    from pointstamp.runtime.execute import execute
    from pointstamp.runtime.host_file import run_process
    from pointstamp.runtime.program_file import load

    options: dict[str, Any] = {
        "accumulate": accumulate,
        "memory_limit": memory_limit,
        "spill_directory": spill_directory,
        "log": log,
        "metrics": _endpoint(metrics),
        "telemetry": telemetry,
    }
    if log_level is not None or log_format is not None:
        _log_to_standard_error(log_level or "info", log_format or "text")
    words = args or []
    is_flow = checkpoint is not None or epoch_s is not None
    main = load(program, words, "scope" if is_flow else "worker")
    _check_given(program, main, is_flow)
    if process is None and hosts is None and secret is None and tls is None:
        options |= {"progress_bar": progress_bar, "dashboard": dashboard}
        if connections != "worker":
            raise UsageError("--connections machine is for several machines: name --hosts")
        if is_flow:
            _run_flow(main, words, workers, threads, checkpoint, epoch_s, options)
            return
        execute(main, *words, workers=workers, threads=threads, **options)
        return
    if is_flow:
        raise UsageError(
            "--checkpoint and --epoch-s are for workers of this machine: leave out --process, "
            "--hosts, --secret and --tls"
        )
    if process is None or hosts is None or secret is None:
        raise UsageError("--process I, --hosts FILE and --secret FILE go together: name all")
    if workers > 1 or threads:
        raise UsageError("each line of --hosts is one worker: leave out --workers and --threads")
    if progress_bar or dashboard:
        raise UsageError(
            "--progress-bar and --dashboard are for workers that this command starts, not with "
            "--hosts; `pointstamp watch` shows those of a machine"
        )
    run_process(main, words, process, hosts, secret, tls, say, connections, **options)


def _check_given(program: str, main: Any, is_flow: bool) -> None:
    """Raise if the first argument of a function is called as what it is not given."""
    try:
        first = next(iter(signature(main).parameters), "")
    except ValueError:
        return  # of something that says nothing of itself
    if first == "scope" and not is_flow:
        raise UsageError(
            f"{program} takes a scope, in which it builds a dataflow with sources: name "
            "--checkpoint FOLDER, to go on where it was ended, or --epoch-s SECONDS, to run it once"
        )
    if first == "worker" and is_flow:
        raise UsageError(
            f"{program} takes a worker, and with --checkpoint or --epoch-s it is given a scope, in "
            "which it builds a dataflow with sources: leave these out, or have it take a scope"
        )


def _run_flow(
    main: Any,
    words: list[str],
    workers: int,
    threads: bool,
    checkpoint: str | None,
    epoch_s: float | None,
    options: dict[str, Any],
) -> None:
    """As `ps.run` of a function that builds with words besides."""
    from pointstamp.operators.building import name_of
    from pointstamp.runtime.run_flow import run as run_flow

    def build(scope: Any) -> object:
        return main(scope, *words)

    build.__qualname__ = name_of(main)  # by which logs call it
    run_flow(
        build,
        workers,
        checkpoint=checkpoint,
        epoch_s=1.0 if epoch_s is None else epoch_s,
        threads=threads,
        **options,
    )


def without_reload(words: list[str]) -> list[str]:
    """The words of a command, without the option.

    >>> without_reload(["run", "--reload", "program.py:main", "--", "--reload"])
    ['run', 'program.py:main', '--', '--reload']
    """
    options = words[: words.index("--")] if "--" in words else words
    return [word for word in options if word != "--reload"] + words[len(options) :]


def _log_to_standard_error(level: str, form: str) -> None:
    """Have what the library logs written there."""
    import logging

    from pointstamp.observability.json_format import JsonFormatter

    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)

    def is_written_once(record: logging.LogRecord) -> bool:
        """A program that has all that is logged written there has the library's, too."""
        return not any(
            getattr(other, "stream", None) is handler.stream and record.levelno >= other.level
            for other in logging.getLogger().handlers
        )

    handler.addFilter(is_written_once)
    logger = logging.getLogger("pointstamp")
    logger.addHandler(handler)
    logger.setLevel(level.upper())


def _endpoint(metrics: str | None) -> Any:
    """What `execute` takes as `metrics`; where they are is said when they are served."""
    if metrics is None:
        return None
    from pointstamp.metrics.endpoint import endpoint_of

    endpoint = endpoint_of(metrics)
    assert endpoint is not None
    return replace(endpoint, announce=lambda url: say(f"metrics at {url}/metrics"))


def log(
    file: Annotated[
        str, Argument(metavar="FILE", help="The folder of a log, as given to log=ps.Log(...).")
    ],
    epoch: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="The epoch whose critical path to show.",
            show_default="the slowest",
        ),
    ] = None,
    top: Annotated[
        int, Option(metavar="N", min=1, help="Number of operators and channels to show.")
    ] = 20,
    slots: Annotated[
        int, Option(metavar="N", min=1, max=100_000, help="Number of time slots in the timeline.")
    ] = 72,
    trace: Annotated[
        Path | None,
        Option(metavar="FILE.json", help="Write a trace for ui.perfetto.dev instead."),
    ] = None,
    flame: Annotated[
        Path | None,
        Option(metavar="FILE.svg", help="Write a flame graph of operators' times instead."),
    ] = None,
    follow: Annotated[
        bool,
        Option("--follow", help="Follow a running log; print the summary at its end."),
    ] = False,
    json: Json = False,
) -> None:
    """Summarize a log: timeline, times of operators, records of channels, critical path."""
    from pointstamp.cli.display import console_for, table
    from pointstamp.observability.reading import read
    from pointstamp.observability.report import as_values, report
    from pointstamp.observability.summary import summarize
    from pointstamp.observability.timeline import timeline

    if trace is None and flame is None:
        check_open(", or write a picture (--trace FILE, --flame FILE)")
    if follow:
        from pointstamp.cli.following import at_its_end

        run = at_its_end(file, lambda line: print(line, file=sys.stderr, flush=True))
    else:
        run = read(file)
    if trace is not None or flame is not None:
        _draw(file, run, trace, flame, json)
        return
    summary = summarize(run, epoch)
    drawn = timeline(run, summary.operators, slots)
    for what in summary.missing:
        say(what)
    with answering():
        if json:
            print(dumps({"command": "log", "log": file, **as_values(summary, drawn)}))
            return
        console = console_for(sys.stdout)
        if not console.is_terminal:
            console.width = PLAIN_WIDTH
        for part in report(file, summary, drawn, top):
            if isinstance(part, str):
                console.print(part, soft_wrap=True)
            else:
                console.print(table(part.headings, part.rows, part.n_texts))


def _draw(file: str, run: Any, trace: Path | None, flame: Path | None, json: bool) -> None:
    """Write the pictures of a log, and say where they are."""
    found: dict[str, Any] = {"command": "log", "log": file}
    lines = []
    if trace is not None:
        from pointstamp.observability.trace_events import write_trace

        n_events = write_trace(run, trace)
        found |= {"trace": str(trace), "events": n_events}
        lines.append(f"{trace}: {n_events:,} events; open it at https://ui.perfetto.dev")
    if flame is not None:
        from pointstamp.observability.flame_graph import write_flame_graph

        whole = write_flame_graph(run, flame)
        found |= {"flame": str(flame), "boxes": whole.count}
        lines.append(f"{flame}: {whole.count:,} boxes; open it in a browser")
    for what in run.missing:
        say(what)
    with answering():
        print(dumps({**found, "missing": run.missing}) if json else "\n".join(lines))


def explain(
    pid: Annotated[int, Argument(metavar="PID", min=1, help="Any process of the program.")],
    timeout: Annotated[
        float, Option(metavar="SECONDS", min=0.1, help="How long to wait for answers.")
    ] = 5.0,
) -> None:
    """Show what a running program waits for, and what holds it back; needs Linux.

    Exit status: 0 if every process with workers answered, 1 if one did not, 2 if there is none.
    """
    from pointstamp.runtime.introspection import ask, find_below, find_program
    from pointstamp.runtime.signal_handler import in_words

    check_open()
    become_user_of(pid)
    program = find_program(pid)
    found = None if program is None else ask(program, timeout)
    if program == pid and found is None:
        raise CommunicationError(
            f"process {pid} did not answer in {timeout:g} s: it is in a call that lets no other "
            "thread run, or stopped, or has ended"
        )
    if not found or pid not in (program, *(each.process for each in found)):
        if below := ", ".join(f"`pointstamp explain {other}`" for other in find_below(pid)):
            raise UsageError(
                f"process {pid} is part of no Pointstamp program, and nothing was asked; below "
                f"it there is one for each of {below}"
            )
        raise UsageError(
            f"process {pid} runs no workers that can be asked: none are there at the moment, "
            "or it is another user's; where this is not Linux, `kill -USR1` of the process "
            "that started the workers has it print this to its own standard error"
        )
    with answering():
        for each in found:
            if each.text is not None:
                print(in_words(each), end="\n\n")
    silent = [in_words(each) for each in found if each.text is None]
    if silent:
        raise CommunicationError("\n".join(silent))


def become_user_of(pid: int) -> None:
    """As root, be the user of that process from now on: what it answers is unpickled."""
    try:
        owner = Path(f"/proc/{pid}").stat()
    except OSError:
        return
    if os.geteuid() == 0 != owner.st_uid:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
