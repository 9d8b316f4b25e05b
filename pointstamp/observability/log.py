"""What is logged, and where to: what a program says, and each worker makes its log of.

A log is a folder with a folder for each worker, and in that a file for each type of
events that it had. A folder that holds something else is left alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

from pointstamp.communication.communicator import Communicator
from pointstamp.errors import FileFormatError, UsageError
from pointstamp.observability.clock import LogClock
from pointstamp.observability.event_types import EVENTS, OWN, SUFFIX, own_type, worker_folder
from pointstamp.observability.worker_log import WorkerLog


@dataclass(frozen=True)
class Log:
    """Records event logs of the workers: `ps.execute(main, log=ps.Log("run.log"))`.

    Parameters
    ----------
    path : str or path, optional
        A folder for it, made if it is not there. What an earlier log left in it is
        replaced. Without it nothing is written, and only dataflows of the workers can
        read it, with `Scope.log_stream`.
    events : mapping, optional
        Types of the program's own events, by name: the types of their columns, which are
        "int32", "int64", "float64", "bool" or "string". One is logged by
        `worker.log(name, column=value, ...)`.

    >>> import pointstamp as ps
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = ps.execute(lambda worker: worker.log("hello"), log=Log(folder))
    ...     [worker] = ps.observability.read(folder).workers
    >>> worker["texts"]["text"]
    ['hello']
    """

    path: str | os.PathLike[str] | None = None
    events: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ticks: Callable[[], int] | None = None
    """In a simulation: counts the events of all workers, in place of a clock."""

    def prepare(self) -> None:
        """Make the folder, and empty it of an earlier log.

        Raises
        ------
        UsageError
            If there is something else in it, or it is no path.
        FileFormatError
            If it cannot be written.
        """
        for name, columns in self.events.items():
            own_type(name, columns)  # raises here and not in each worker, if it is none
        if self.path is None:
            return
        if not isinstance(self.path, str | os.PathLike):
            raise UsageError(f"a log is written to a folder, a path or a text, not {self.path!r}")
        folder = Path(self.path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            earlier = list(folder.iterdir())
            for each in earlier:
                _check_is_log(folder, each)
            for each in earlier:
                shutil.rmtree(each)
        except OSError as error:
            raise FileFormatError(
                f"{folder}: a log cannot be written there: {error.strerror or error}"
            ) from error

    def simulated(self) -> Log:
        """The same, in which each event has a number of its own in place of the moment."""
        return replace(self, ticks=partial(next, count()))

    def begin(self, communicator: Communicator) -> WorkerLog:
        """The log of one worker."""
        folder = None
        if self.path is not None:
            folder = worker_folder(self.path, communicator.index)
            # With its parents: on another machine than that of the program nothing is there.
            folder.mkdir(parents=True, exist_ok=True)
        own = [own_type(name, columns) for name, columns in self.events.items()]
        return WorkerLog(communicator.index, communicator.peers, LogClock(self.ticks), folder, own)


def _check_is_log(folder: Path, found: Path) -> None:
    ours = {of.file for of in EVENTS.values()}
    is_ours = found.name.startswith("worker-") and found.is_dir() and not found.is_symlink()
    if not is_ours or not all(
        file.name in ours or (file.name.startswith(OWN) and file.suffix == SUFFIX)
        for file in found.iterdir()
    ):
        raise UsageError(
            f"a log cannot be written to {folder}: there is {found.name}, which is of no log; "
            "name another folder, or one that is not there"
        )
