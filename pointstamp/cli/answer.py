"""From a request to what is printed."""

from __future__ import annotations

import json
import sys

from pointstamp.cli import streams
from pointstamp.cli.outcome import Outcome, Request, Wanted, as_json
from pointstamp.errors import UsageError


def answer(request: Request, *, as_object: bool) -> int:
    """Answer the request and print; the exit status."""
    _check_output(request, as_object)
    return _print(request, _outcome(request), as_object)


def _check_output(request: Request, as_object: bool) -> None:
    if sys.stdout is None and (as_object or request.wanted is not Wanted.FILE):
        raise UsageError(
            "standard output is closed, and the answer would go there; open it (> FILE), or ask "
            "for all matches in a file (--out FILE)"
        )


def _outcome(request: Request) -> Outcome:
    # Rich and Arrow are imported when a request has turned out to make sense.
    from pointstamp.cli.display import Display

    display = Display(request.command)
    if request.on == "spark":
        from pointstamp.cli import on_spark

        return on_spark.answer(request, display)
    from pointstamp.cli import local

    return local.answer(request, display)


def _print(request: Request, outcome: Outcome, as_object: bool) -> int:
    """Print the answer, and the summary; the exit status."""
    from pointstamp.cli.display import print_answer, print_summary

    try:
        if as_object:
            print(json.dumps(as_json(request, outcome)))
        else:
            print_answer(request, outcome)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return streams.unwritten(error)
    if not as_object:
        print_summary(request, outcome)
    return streams.DONE
