"""What `dashboard=` asks for: a live page of a program, served as long as it runs.

What draws it is in a layer below (`observability.dashboard`), which is found by its name when a
page is wanted: so it is imported by no other program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pointstamp.errors import UsageError


@dataclass(frozen=True)
class Dashboard:
    """Configures the live page of a run: `ps.execute(..., dashboard=ps.Dashboard(port=8080))`.

    Parameters
    ----------
    port : int
        0 for a free one.
    host : str
        The address to listen at. The default is this machine alone; the page is not encrypted, so
        that beyond it belongs behind something that is.
    token : str, optional
        What the page's address has to bring, of 16 characters at least; a new one if not given.
    """

    port: int = 0
    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)


def dashboard_options(dashboard: Any) -> Dashboard | None:
    """What a `dashboard=` means; None for none.

    Raises
    ------
    UsageError

    >>> dashboard_options(True), dashboard_options(False)
    (Dashboard(port=0, host='127.0.0.1'), None)
    """
    if dashboard is None or dashboard is False:
        return None
    if dashboard is True:
        return Dashboard()
    if isinstance(dashboard, Dashboard):
        return dashboard
    raise UsageError(
        f"dashboard={dashboard!r} is no dashboard: give True, or ps.Dashboard(port=...)"
    )


def open_dashboard(options: Dashboard | None) -> Any:
    """The page's server, to be closed; None if none is wanted."""
    if options is None:
        return None
    return import_module("pointstamp.observability.dashboard").open_page(options)


@contextmanager
def dashboard_open(options: Dashboard | None) -> Iterator[None]:
    """Serve the page during the block, if one is wanted."""
    server = open_dashboard(options)
    try:
        yield
    finally:
        if server is not None:
            server.close()
