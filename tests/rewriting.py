"""Tests whose assertions are rewritten once for all processes of xdist.

Each process imports all test files, in the same order and at the same time. On a machine that has
run none before, each then rewrites, and compiles, all of them by itself, since none finds in time
what another has written: 6 s of a processor in each, of the 10 that it needs to begin. So each does
a share first, and leaves it where all look.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

FOLDER = Path(__file__).parent


def rewrite_share(config: pytest.Config) -> None:
    """Rewrite those of this process of xdist; without xdist there is nothing to share."""
    process = getattr(config, "workerinput", None)
    if process is None or sys.dont_write_bytecode:
        return
    state = config.stash[rewrite.assertstate_key]
    first = int(process["workerid"].removeprefix("gw"))
    for path in sorted(FOLDER.rglob("test_*.py"))[first :: process["workercount"]]:
        folder = rewrite.get_cache_dir(path)
        written = folder / (path.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(path, written) is None and rewrite.try_makedirs(folder):
            of_source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, of_source, written)
