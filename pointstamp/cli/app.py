"""The commands and their options.

A command is a function whose arguments Typer asks for: `command` gives it its end, and
`question` makes one of what is asked of a graph. What is imported here is what `--help` needs:
little. The rest comes when a command runs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from typer import Argument, Exit, Option, Typer

from pointstamp.cli.programs import explain, log, run
from pointstamp.cli.request import Request
from pointstamp.cli.streams import print_version
from pointstamp.cli.tables import find, graph
from pointstamp.cli.watching import watch

if TYPE_CHECKING:
    from pointstamp.cli.search import Search

app = Typer(
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

_Traceback = Annotated[bool, Option("--traceback", help="Show where an error came from.")]


def command(
    function: Callable[..., object],
    *common: Callable[..., Any],
    runs_program: bool = False,
    epilog: str | None = None,
) -> None:
    """Make a command of a function, that ends as all do (see `ending.end_of`).

    Typer reads a command's arguments from its signature: those of the function come first, then
    those of `common`, which are passed to it too, and `--traceback`.
    """

    def ending(*, traceback: _Traceback = False, **given: Any) -> None:
        from pointstamp.cli.ending import end_of

        raise Exit(end_of(lambda: function(**given), traceback, runs_program))

    askers: list[Callable[..., Any]] = [function, *common, ending]
    asked = [parameter for asker in askers for parameter in _asked(asker)]
    ending.__signature__ = Signature(asked)  # type: ignore[attr-defined]  # PEP 362 has it
    app.command(function.__name__, help=function.__doc__, epilog=epilog)(ending)


def _asked(function: Callable[..., Any]) -> list[Parameter]:
    """The arguments that Typer is to ask for, with their types."""
    return [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in signature(function).parameters.values()
        if get_origin(parameter.annotation) is Annotated
    ]


def question(function: Callable[..., "Search"]) -> Callable[..., "Search"]:
    """Make a command of a function that makes a search, which is done as `Request` says."""

    @wraps(function)
    def searching(**given: Any) -> None:
        own = {parameter.name: given.pop(parameter.name) for parameter in _asked(function)}
        request = Request(command=function.__name__, **given)
        search = replace(function(**own), wanted=request.wanted)
        request.check(search)
        # Rich and Arrow are imported when a request has turned out to make sense.
        from pointstamp.cli.answer import answer

        answer(search, request)

    command(searching, Request, epilog=_EPILOG)
    return function


@question
def motifs(
    pattern: Annotated[
        str, Argument(metavar="PATTERN", help="As '(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)'.")
    ],
    distinct: Annotated[
        bool, Option("--distinct", help="Different names are different vertices.")
    ] = False,
) -> "Search":
    """Find a pattern of directed edges."""
    from pointstamp.cli.search import motif_search

    return motif_search(pattern, distinct)


@question
def triangles() -> "Search":
    """Find all triangles, ignoring the directions of edges, each once."""
    from pointstamp.cli.search import clique_search

    return clique_search(3, "triangles")


@question
def cliques(
    k: Annotated[int, Argument(metavar="K", help="Number of vertices: 2 to 26.")],
) -> "Search":
    """Find all cliques of K vertices."""
    from pointstamp.cli.search import clique_search

    return clique_search(k)


command(find)
command(graph)
command(run, runs_program=True)
command(log)
command(explain)
command(watch)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, Option("--version", "-V", help="Show the version.")] = False,
) -> None:
    if version:
        print_version()
        raise Exit
