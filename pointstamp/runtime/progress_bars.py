"""What `progress_bar=` asks for: how far a run is, on standard error or in a notebook.

What draws it is in a layer below (`observability.progress_bar`), which is found by its name when
it is wanted: so it, and the library that it draws by, are imported by no other program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any

from pointstamp.errors import UsageError

_numbers = count()


def check_progress_bar(progress_bar: Any) -> None:
    """Refuse what is neither True nor False, and True where nothing can draw.

    Raises
    ------
    UsageError
    MissingExtraError
        If Rich is not installed.

    >>> check_progress_bar(False)
    """
    if type(progress_bar) is not bool:
        raise UsageError(f"progress_bar is True or False, and not {progress_bar!r}")
    if progress_bar:
        # Not above: what starts workers imports nothing that it does not need.
        from pointstamp.formats.extras import require_extra

        require_extra("rich", "cli", "progress is drawn by Rich")


@contextmanager
def progress_shown(is_wanted: bool, workers: int) -> Iterator[str | None]:
    """Show how far a run is during the block, if that is wanted; the name of the run then."""
    if not is_wanted:
        yield None
        return
    from pointstamp.runtime.counted_run import run_name, takers

    run = run_name(next(_numbers))
    bar = import_module("pointstamp.observability.progress_bar").RunProgressBar(run, workers)
    takers[run] = bar.take
    try:
        with bar:
            yield run
    finally:
        del takers[run]
