"""The command line: motifs, triangles and cliques of a graph."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from pointstamp.cli import streams


def main() -> None:
    """Run the command line; what `pointstamp` calls. Ends the process with its status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    streams.settle()
    try:
        with streams.answering():  # to --help and --version; what a command prints is below
            _run()
    except SystemExit as ended:
        # Click, of --help, and Rich, of tables, end as if something had failed.
        if isinstance(ended.__context__, BrokenPipeError):
            raise SystemExit(streams.UNHEARD) from None
        if ended.code not in (streams.HUNG_UP, streams.INTERRUPTED, streams.TERMINATED):
            raise
        # All is cleaned up. What other threads still do is not waited for: one may be in the
        # middle of a line to standard error, and an orderly end would wait for that, and abort.
        with suppress(OSError, ValueError, AttributeError):  # standard error goes by lines
            sys.stdout.flush()
        os._exit(int(ended.code))


def _run() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        streams.print_version()  # at once: nothing is imported for this
        return
    try:
        from pointstamp.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        streams.say(
            f"the command line needs {error.name}, which is not installed here: "
            "pip install 'pointstamp[cli]'"
        )
        sys.exit(streams.MISUSED)
    app()


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does until there is something to clean up: while we import, mostly.

    Not an exception: half of an import may swallow it, or turn it into another.
    """
    with suppress(OSError):
        os.write(2, b"pointstamp: interrupted; nothing was written\n")
    os._exit(streams.INTERRUPTED)
