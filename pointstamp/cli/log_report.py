"""`pointstamp log`: what a run did, from the log that its workers wrote."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pointstamp.cli.request import Json
from pointstamp.cli.streams import answering, say

PLAIN_WIDTH = 200
"""Columns where there is no terminal, which would say how many it has."""


def log(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The folder that was given as log=ps.Log(...).")
    ],
    epoch: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Whose critical path.", show_default="the slowest"),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many operators and channels.")
    ] = 20,
    slots: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=100_000, help="Into how many slots time is cut."),
    ] = 72,
    json: Json = False,
) -> None:
    """Sum up the log of a run: a timeline, time per operator, records per channel, a path."""
    from pointstamp.cli.tables import console_for, table
    from pointstamp.observability.reading import read
    from pointstamp.observability.report import as_values, report
    from pointstamp.observability.summary import summarize
    from pointstamp.observability.timeline import timeline

    run = read(file)
    summary = summarize(run, epoch)
    drawn = timeline(run, summary.operators, slots)
    for what in summary.missing:
        say(what)
    with answering():
        if json:
            from json import dumps

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
