"""The commands and their options.

A command is a function whose arguments Typer asks for: `command` gives it its end, and
`question` makes one of what is asked of a graph. What is imported here is what `--help` needs:
little. The rest comes when a command runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from pointstamp.cli.explain import explain
from pointstamp.cli.launcher import run
from pointstamp.cli.log_report import log
from pointstamp.cli.request import Query, Request

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

_Traceback = Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")]


def command(
    function: Callable[..., object],
    *common: Callable[..., Any],
    left: str = "nothing was written",
    runs_program: bool = False,
    epilog: str | None = None,
) -> None:
    """Make a command of a function, that ends as all do (see `ending.end_of`).

    Typer reads a command's arguments from its signature: those of the function come first, then
    those of `common`, which are passed to it too, and `--traceback`.
    """

    def ending(*, traceback: _Traceback = False, **given: Any) -> None:
        from pointstamp.cli.ending import end_of

        raise typer.Exit(end_of(lambda: function(**given), traceback, left, runs_program))

    askers: list[Callable[..., Any]] = [function, *common, ending]
    asked = [parameter for asker in askers for parameter in _asked(asker)]
    asked.sort(key=lambda parameter: parameter.default is not Parameter.empty)
    ending.__signature__ = Signature(asked)  # type: ignore[attr-defined]  # PEP 362 has it
    app.command(function.__name__, help=function.__doc__, epilog=epilog)(ending)


@cache
def _asked(function: Callable[..., Any]) -> list[Parameter]:
    """The arguments that Typer is to ask for, with their types."""
    types = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=types[parameter.name], kind=Parameter.KEYWORD_ONLY)
        for parameter in signature(function).parameters.values()
        if get_origin(types.get(parameter.name)) is Annotated
    ]


def question(query: Callable[..., Query]) -> Callable[..., Query]:
    """Make a command of a function that makes a query: it searches a graph as `Request` says."""

    @wraps(query)
    def searching(**given: Any) -> None:
        own = {parameter.name: given.pop(parameter.name) for parameter in _asked(query)}
        request = Request(command=query.__name__, query=query(**own), **given)
        request.check()
        # Rich and Arrow are imported when a request has turned out to make sense.
        from pointstamp.cli.answer import answer

        answer(request)

    command(searching, Request, epilog=_EPILOG)
    return query


@question
def motifs(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="As '(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)'.")
    ],
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Different names are different vertices.")
    ] = False,
) -> Query:
    """Find a pattern of directed edges."""
    from pointstamp.cli.search import motif_query

    return motif_query(pattern, distinct)


@question
def triangles() -> Query:
    """Find the triangles, each once, whatever the directions of edges."""
    from pointstamp.cli.search import clique_query

    return clique_query(3)


@question
def cliques(
    k: Annotated[int, typer.Argument(metavar="K", help="How many vertices: 2 to 26.")],
) -> Query:
    """Find all sets of K vertices that are all neighbours."""
    from pointstamp.cli.search import clique_query

    return clique_query(k)


command(run, left="all workers have ended", runs_program=True)
command(log)
command(explain)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", "-V", help="Say which this is.")] = False,
) -> None:
    if version:
        from pointstamp.cli.version import print_version

        print_version()
        raise typer.Exit
