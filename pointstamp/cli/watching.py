"""`pointstamp watch`: the live page of a running program, or of the log of one.

A program need not know of it: its workers are asked by the door that `pointstamp explain` uses
(see `runtime.introspection`). What serves a page itself, on another machine or in a container, is
shown by the address of that. The page is served until the command is interrupted.
"""

import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pointstamp.cli.streams import say
from pointstamp.errors import UsageError

if TYPE_CHECKING:
    from pointstamp.observability.page_server import PageSource


def watch(
    program: Annotated[
        str,
        Argument(
            metavar="PID | LOG | URL",
            help="A process of a program; the folder of a log; or the URL of a page.",
        ),
    ],
    port: Annotated[
        int, Option(metavar="N", min=0, max=65535, help="Port to listen on; 0: any.")
    ] = 0,
    host: Annotated[
        str, Option(metavar="ADDRESS", help="Address to listen on; traffic is not encrypted.")
    ] = "127.0.0.1",
    open: Annotated[bool, Option("--open", help="Open a browser, too.")] = False,
) -> None:
    """Serve the live page of a running program, or of a log: a graph, a timeline, latencies."""
    from pointstamp.observability.page_server import PageServer

    source: PageSource
    if program.startswith(("http://", "https://")):
        from pointstamp.observability.remote_view import RemoteView

        source = RemoteView(program)
    elif program.isdecimal() and not Path(program).exists():
        source = _source_of_program(int(program))
    else:
        from pointstamp.observability.log_view import LogView

        source = LogView(program)
    with PageServer(source, host, port) as server:
        say(f"{program} is shown at {server.url} until Ctrl-C")
        if open:
            webbrowser.open(server.url)
        sys.stderr.flush()
        threading.Event().wait()


def _source_of_program(pid: int) -> "PageSource":
    from pointstamp.cli.programs import become_user_of
    from pointstamp.observability.live_view import LiveView
    from pointstamp.runtime.introspection import find_program
    from pointstamp.runtime.watched_program import ask_program

    become_user_of(pid)
    process = find_program(pid)
    if process is None:
        raise UsageError(
            f"process {pid} runs no workers that can be asked: none are there at the moment, or it "
            "is another user's, or this is not Linux; a program serves its own page with "
            "ps.execute(..., dashboard=True), and a log can be watched everywhere"
        )
    return LiveView(lambda request: ask_program(process, request), f"process {process}")
