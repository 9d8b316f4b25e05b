"""The commands and their options.

What is imported here is what `--help` needs: little. The rest comes when a
command runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from pointstamp.cli.explain import explain
from pointstamp.cli.launcher import run
from pointstamp.cli.log_report import log
from pointstamp.cli.warm import warm

if TYPE_CHECKING:
    from pointstamp.cli.outcome import Request, Run
    from pointstamp.cli.queries import Query

app = typer.Typer(
    name="pointstamp",
    help="Run a dataflow program; find motifs, triangles and cliques in a graph.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_EPILOG = (
    "EDGES is an edge list: text with two columns (SNAP, CSV, TSV; # comments; .gz too) or "
    "Parquet; - is standard input. The first matches, or with --count their number, "
    "go to standard output; progress and a summary to standard error. Exit status: 0 if all "
    "went well, 1 if the computation failed, 2 if it was asked for wrongly or the input is not "
    "what it should be."
)


class RunsOn(StrEnum):
    """Where the workers are."""

    LOCAL = "local"
    SPARK = "spark"


class ProgressMode(StrEnum):
    """When workers report progress to their peers."""

    DEMAND = "demand"
    EAGER = "eager"


Edges = Annotated[str, typer.Argument(metavar="EDGES")]
Workers = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="How many.", show_default="one per processor"),
]
On = Annotated[RunsOn, typer.Option(help="Processes of this machine, or tasks of a Spark job.")]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master, as local[4] or spark://host:7077."),
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE.parquet", help="Write all matches to this file.")
]
Count = Annotated[bool, typer.Option("--count", help="Only count, without making the matches.")]
LogTo = Annotated[
    Path | None,
    typer.Option("--log", metavar="FOLDER", help="Have the workers write down what they do."),
]
How = Annotated[
    ProgressMode, typer.Option(help="When workers report progress: where it counts, or at once.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _question(query: Callable[..., Query]) -> Callable[..., Query]:
    """Make a command of a function that makes a query: its arguments, then those of all.

    Typer reads a command's arguments from its signature, so the two are put together.
    """
    asked, common = _parameters(query), _parameters(_answer)

    def command(**given: Any) -> None:
        own = {parameter.name: given.pop(parameter.name) for parameter in asked}
        _answer(query.__name__, lambda: query(**own), **given)

    parameters = sorted([*asked, *common], key=lambda p: p.default is not Parameter.empty)
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # PEP 362 has it
    app.command(query.__name__, help=query.__doc__, epilog=_EPILOG)(command)
    return query


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """What Typer is to ask for `function`: its arguments that say how, with their types."""
    # What it returns is imported for type checkers only.
    types = get_type_hints(function, localns={"Query": object}, include_extras=True)
    return [
        parameter.replace(annotation=types[parameter.name], kind=Parameter.KEYWORD_ONLY)
        for parameter in signature(function).parameters.values()
        if parameter.kind is not Parameter.POSITIONAL_ONLY
    ]


def _answer(
    name: str,
    query: Callable[[], Query],
    /,
    edges: Edges,
    workers: Workers = None,
    on: On = RunsOn.LOCAL,
    master: Master = None,
    out: Out = None,
    count: Count = False,
    log: LogTo = None,
    progress: How = ProgressMode.DEMAND,
    json: Json = False,
    traceback: Traceback = False,
) -> None:
    """Answer the question `query`; what all commands do, and ask."""
    from pointstamp.cli.answer import answer
    from pointstamp.cli.ending import end_of
    from pointstamp.cli.outcome import Run

    def request() -> Request:
        run = Run(progress.value, log)
        return _request(name, query, edges, workers, on, master, out, count, run)

    raise typer.Exit(end_of(lambda: answer(request(), as_object=json), with_traceback=traceback))


def _request(
    command: str,
    query: Callable[[], Query],
    edges: str,
    workers: int | None,
    on: RunsOn,
    master: str | None,
    out: Path | None,
    count: bool,
    run: Run,
) -> Request:
    """What was asked for, or the reason why it cannot be done.

    Raises
    ------
    UsageError
    """
    from pointstamp.cli.edge_source import EdgeFile
    from pointstamp.cli.outcome import Request, Wanted
    from pointstamp.errors import UsageError

    asked = query()
    if master is not None and on is not RunsOn.SPARK:
        raise UsageError(
            f"--master {master} says where Spark is, and the workers are to be processes of this "
            f"machine; add --on spark, or leave it out"
        )
    source = EdgeFile(edges)
    source.check()
    wanted = Wanted.COUNT if count else Wanted.FIRST if out is None else Wanted.FILE
    workers = workers or _processors()
    request = Request(command, asked, source, wanted, workers, on.value, master, out, run)
    request.check()
    return request


# The commands: what each asks besides what all ask.


@_question
def motifs(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="As '(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)'.")
    ],
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Different names are different vertices.")
    ] = False,
) -> Query:
    """Find a pattern of directed edges."""
    from pointstamp.cli.queries import motif_query

    return motif_query(pattern, distinct)


@_question
def triangles() -> Query:
    """Find the triangles, each once, whatever the directions of edges."""
    from pointstamp.cli.queries import clique_query

    return clique_query(3)


@_question
def cliques(
    k: Annotated[int, typer.Argument(metavar="K", help="How many vertices: 2 to 26.")],
) -> Query:
    """Find all sets of K vertices that are all neighbours."""
    from pointstamp.cli.queries import clique_query

    return clique_query(k)


app.command()(run)
app.command()(log)
app.command()(explain)
app.command()(warm)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", "-V", help="Say which this is.")] = False,
) -> None:
    if version:
        from pointstamp.cli.version import print_version

        print_version()
        raise typer.Exit
