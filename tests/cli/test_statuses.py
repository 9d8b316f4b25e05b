"""The README says with which statuses the command ends: all of them, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from pointstamp.cli import streams


def test_the_readme_lists_every_exit_status() -> None:
    readme = Path(__file__).parents[2].joinpath("README.md").read_text()
    table = readme.partition("| exit status |")[2].partition("\n\n")[0]
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
