"""The page of the command line has all statuses with which it ends, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from pointstamp.cli import streams


def test_the_page_lists_every_exit_status() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "command_line.md").read_text()
    table = page.partition("| exit status |")[2].partition("\n\n")[0]
    listed = [int(status) for status in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    assert listed == sorted(
        {
            streams.DONE,
            streams.FAILED,
            streams.MISUSED,
            streams.HUNG_UP,
            streams.INTERRUPTED,
            streams.TERMINATED,
            streams.UNHEARD,
        }
    )
