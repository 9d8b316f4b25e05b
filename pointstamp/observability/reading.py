"""A log as it was written: the events of each worker, by type, as columns.

A log may be of workers that died, or be read while they run: what is there is read, up
to the last batch that is whole, and what is missing is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pointstamp.errors import FileFormatError, UsageError
from pointstamp.formats.arrow_stream_file import (
    Column,
    Streamed,
    is_being_written,
    read_stream,
    schema_of,
    table_of,
)
from pointstamp.observability.event_types import (
    EVENTS,
    OWN,
    SUFFIX,
    VERSION,
    EventType,
    own_type,
)

Columns = dict[str, Column]
"""Columns by name: numbers and bools as arrays, texts as lists."""


@dataclass(frozen=True)
class WorkerEvents:
    """What one worker recorded: `worker["messages"]["records"]` is a column."""

    index: int
    columns: dict[str, Columns]

    def __getitem__(self, events: str) -> Columns:
        return self.columns[events]

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and the last moment of its events, if it has any."""
        moments = [np.asarray(columns["at"]) for columns in self.columns.values()]
        moments += [np.asarray(self[name]["began"]) for name in ("schedules", "parks")]
        there = [column for column in moments if len(column)]
        if not there:
            return None
        return (
            min(int(column.min()) for column in there),
            max(int(column.max()) for column in there),
        )


@dataclass(frozen=True)
class LoggedRun:
    """The events of a log, as returned by `read`.

    Attributes
    ----------
    workers : list of WorkerEvents
        Those of which there is something, by index.
    unit : str
        Of moments: "ns" since 1970, or "ticks", the numbers of a simulation's events.
    missing : list of str
        What is not there, in words; empty if the log is whole.
    is_over : bool
        Whether no worker writes to it any more.
    """

    path: Path
    unit: str
    workers: list[WorkerEvents]
    missing: list[str] = field(default_factory=list)
    is_over: bool = True

    def table(self, events: str) -> Any:
        """Events of one type, of all workers, for SQL or a data frame.

        Returns
        -------
        pyarrow.Table
            A column `worker`, and those that such events have.

        Raises
        ------
        UsageError
            If the log has no such events.

        Examples
        --------
        >>> import tempfile
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2, 3]).probe()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = ps.execute(main, log=ps.Log(folder))
        ...     run = read(folder)
        >>> run.table("messages").select(["worker", "records", "is_send"]).to_pylist()[0]
        {'worker': 0, 'records': 3, 'is_send': True}
        """
        parts = [worker for worker in self.workers if events in worker.columns]
        if not parts:
            there = sorted({name for worker in self.workers for name in worker.columns})
            raise UsageError(f"the log has no events {events!r}, only {', '.join(there)}")
        kinds = {
            name: str(getattr(column, "dtype", "string"))  # texts are lists
            for name, column in parts[0][events].items()
        }
        columns = [
            [np.full(len(worker[events]["at"]), worker.index), *worker[events].values()]
            for worker in parts
        ]
        return table_of({"worker": "int64", **kinds}, columns)


def n_bytes_of(path: Path) -> int:
    """How large a log is by now: if that has changed, there is more to read."""
    return sum(each.stat().st_size for each in path.glob("worker-*/*"))


def is_written(path: Path) -> bool:
    """Whether a worker still writes to a log."""
    return any(map(is_being_written, path.glob(f"worker-*/*{SUFFIX}")))


def read(path: str | os.PathLike[str]) -> LoggedRun:
    """Read the log in the folder `path`.

    Raises
    ------
    FileFormatError
        If there is none, or a file of it is not what it should be.
    UsageError
        If it is of another version.
    """
    root = Path(path)
    folders = sorted(
        (folder for folder in root.glob("worker-*") if folder.name[7:].isdecimal()),
        key=lambda folder: int(folder.name[7:]),
    )
    if not folders:
        if root.is_dir():
            what = "it holds no worker-0"
        else:
            what = "it is a file, and no folder" if root.exists() else "there is no such folder"
        raise FileFormatError(f"{root}: this is no log: {what}")
    workers: list[WorkerEvents] = []
    missing: list[str] = []
    facts: dict[str, str] = {}
    is_over = True
    own = {of.name: of for folder in folders for of in _own_types(folder)}
    for folder in folders:
        index = int(folder.name[7:])
        columns = {}
        for of in (*EVENTS.values(), *own.values()):
            streamed = _read_events(folder / of.file, of, missing)
            facts.update(streamed.metadata)
            is_over = is_over and not streamed.is_being_written
            columns[of.name] = _columns(of, streamed)
        workers.append(WorkerEvents(index, columns))
    there = {worker.index for worker in workers}
    lost = [index for index in range(int(facts.get("workers", 0))) if index not in there]
    missing.extend(f"worker {index} has written nothing" for index in lost)
    return LoggedRun(root, facts.get("unit", "ns"), workers, missing, is_over)


def _own_types(folder: Path) -> Iterator[EventType]:
    """Those of the program, as their files say."""
    for path in sorted(folder.glob(f"{OWN}*{SUFFIX}")):
        name = path.name.removeprefix(OWN).removesuffix(SUFFIX)
        for batch in read_stream(path).batches[:1]:
            kinds = {
                each.name: str(each.type).replace("double", "float64") for each in batch.schema
            }
            yield own_type(name, {column: kinds[column] for column in kinds if column != "at"})


def _read_events(path: Path, of: EventType, missing: list[str]) -> Streamed:
    if not path.exists():  # there were none
        return Streamed(is_whole=True)
    streamed = read_stream(path)
    version = streamed.metadata.get("version", VERSION)
    if version != VERSION:
        raise UsageError(
            f"{path} is a log of version {version}, and this Pointstamp reads version {VERSION}: "
            "read it with the one that wrote it"
        )
    if streamed.batches:
        found = {each.name: each.type for each in streamed.batches[0].schema}
        if found != {each.name: each.type for each in schema_of(of.columns)}:
            raise FileFormatError(
                f"{path}: it should have the columns {_said(of.columns)}, and has {_said(found)}"
            )
    if not streamed.is_whole:
        n_events = sum(batch.num_rows for batch in streamed.batches)
        why = "still runs" if streamed.is_being_written else "was stopped"
        missing.append(
            f"{path.parent.name}/{path.name} ends without its end mark: the worker {why}; the "
            f"{n_events} events of whole batches are here"
        )
    return streamed


def _said(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in columns.items())


def _columns(of: EventType, streamed: Streamed) -> Columns:
    if streamed.batches:
        return {name: streamed.column(name) for name in of.columns}
    return {
        name: [] if kind == "string" else np.empty(0, np.dtype(kind))
        for name, kind in of.columns.items()
    }
