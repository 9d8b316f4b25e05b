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


def open_page(options: Dashboard) -> PageServer:
    """Serve the page of this process's program, and say on standard error where."""
    title = f"{os.path.basename(sys.argv[0]) or 'python'}, process {os.getpid()}"  # noqa: PTH119
    source: Any = LiveView(read_program, title)
    server = PageServer(source, options.host, options.port, options.token)
    with suppress(OSError):
        os.write(2, f"pointstamp: the live page is at {server.url}\n".encode())
    return server
