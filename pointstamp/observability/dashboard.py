"""The live page of the program in this process: `ps.execute(main, dashboard=True)`.

Its server is a thread of the process that starts the workers. It imports nothing, and asks the
workers for nothing, before a browser asks.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from pointstamp.observability.live_view import LiveView
from pointstamp.observability.page_server import PageServer
from pointstamp.runtime.dashboards import Dashboard
from pointstamp.runtime.watched_program import read_program

KERNEL = "ipykernel_launcher.py"
"""What runs in the process of a notebook, by the name of its file."""


def title(program: str) -> str:
    """What the page is called: by the file of the program, or that it is a notebook's.

    >>> title("/programs/collatz.py").partition(",")[0]
    'collatz.py'
    >>> title("/packages/ipykernel_launcher.py").partition(",")[0]
    'notebook'
    """
    name = os.path.basename(program) or "python"  # noqa: PTH119
    return f"{'notebook' if name == KERNEL else name}, process {os.getpid()}"


def open_page(options: Dashboard) -> PageServer:
    """Serve the page of this process's program, and say on standard error where."""
    source: Any = LiveView(read_program, title(sys.argv[0]))
    server = PageServer(source, options.host, options.port, options.token)
    with suppress(OSError):
        os.write(2, f"pointstamp: the live page is at {server.url}\n".encode())
    return server
