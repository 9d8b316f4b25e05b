"""What a worker records of itself: the types of events, each with its columns.

Every event has `at`, the moment when it was recorded, in nanoseconds since 1970 (in a
simulation: its number). Those that last have `began`, too. Operators and channels go by
numbers, which are the same on all workers; `operators` and `channels` say what they are.
Times of dataflows are texts, as times can be of any type: 3 is "3", (0, 3) is "(0, 3)".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import error as StructError  # noqa: N812  (the name says too little)
from struct import pack
from typing import Any

from pointstamp.errors import UsageError

VERSION = "1"
"""Of the events and their files; another one is not read."""

NONE = -1
"""In place of the number of an operator: there is none, or it is not known."""


@dataclass(frozen=True)
class EventType:
    """A type of events in a log, with its fields.

    Attributes
    ----------
    name : str
        What `log_stream` is asked for, and the file is called.
    numbers : mapping of str to str
        The columns of numbers and bools, with their Arrow types; the first is `at`.
    texts : tuple of str
        The columns of text, which come after those.
    is_kept : bool
        Whether a stream that begins later has the earlier ones, too.
    is_own : bool
        Whether it is of the program's own: see `own_type`.
    """

    name: str
    numbers: Mapping[str, str]
    texts: tuple[str, ...] = ()
    is_kept: bool = False
    is_own: bool = False

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{OWN if self.is_own else ''}{self.name}{SUFFIX}"

    @property
    def has_time(self) -> bool:
        """Whether its only text is a time of a dataflow."""
        return not self.is_own and self.texts == ("time",)

    @property
    def columns(self) -> dict[str, str]:
        """All columns with their Arrow types."""
        return {**self.numbers, **dict.fromkeys(self.texts, "string")}


SUFFIX = ".arrows"
"""Of the files, which are Arrow IPC streams, one for each type."""

OWN = "own-"
"""What the files of a program's own types begin with."""

OPERATORS = EventType(
    "operators",
    {"at": "int64", "operator": "int32", "scope": "int32", "dataflow": "int32"},
    ("kind", "name", "address"),
    is_kept=True,
)
"""Operator, scope or dataflow number `operator` was made, in scope `scope` (an operator, too)."""

CHANNELS = EventType(
    "channels",
    {
        "at": "int64",
        "channel": "int32",
        "scope": "int32",
        "source": "int32",
        "source_port": "int32",
        "target": "int32",
        "target_port": "int32",
    },
    ("pact",),
    is_kept=True,
)
"""Operator `source` was connected with `target`. A source that is the scope itself is its input,
a target that is, its output. By the pacts "enter" and "leave" a stream crosses the border of a
scope: no messages are logged there."""

CROSSINGS = ("enter", "leave")

SCHEDULES = EventType("schedules", {"at": "int64", "began": "int64", "operator": "int32"})
"""An operator was active from `began` to `at`; a scope's time includes that of what is in it."""

MESSAGES = EventType(
    "messages",
    {
        "at": "int64",
        "channel": "int32",
        "records": "int64",
        "source": "int32",
        "target": "int32",
        "is_send": "bool",
    },
    ("time",),
)
"""A batch of records was sent to worker `target`, or one of worker `source` was taken."""

PROGRESS = EventType(
    "progress",
    {
        "at": "int64",
        "scope": "int32",
        "updates": "int32",
        "source": "int32",
        "target": "int32",
        "is_send": "bool",
    },
)
"""Updates of the counts of a scope were sent to worker `target`, or taken."""

CAPABILITIES = EventType(
    "capabilities",
    {"at": "int64", "operator": "int32", "output": "int32", "change": "int64"},
    ("time",),
)
"""An operator holds one more (+1) or one less (-1) capability for a time."""

FRONTIERS = EventType(
    "frontiers",
    {"at": "int64", "operator": "int32", "input": "int32", "change": "int64"},
    ("time",),
)
"""A time is (+) or is no more (-) among the least that may come at an input."""

PARKS = EventType("parks", {"at": "int64", "began": "int64"})
"""The worker waited, with nothing to do."""

TEXTS = EventType("texts", {"at": "int64"}, ("text",))
"""A line of the program's, by `worker.log`."""

SUMMARIES = EventType(
    "summaries",
    {"at": "int64", "operator": "int32", "input": "int32", "output": "int32"},
    ("summary",),
    is_kept=True,
)
"""How times advance from an input of an operator to an output; not there where no way leads."""

REACHABILITY = EventType(
    "reachability",
    {"at": "int64", "scope": "int32", "operator": "int32", "port": "int32", "is_input": "bool",
     "change": "int64"},
    ("time",),
)  # fmt: skip
"""A scope counts records at an input, or capabilities at an output, of one of its operators, as
far as this worker knows them: its own, and what peers have reported."""

EVENTS = {
    each.name: each
    for each in (
        OPERATORS, CHANNELS, SCHEDULES, MESSAGES, PROGRESS, CAPABILITIES, FRONTIERS, PARKS, TEXTS,
        SUMMARIES, REACHABILITY,
    )
}  # fmt: skip
"""All types, by name."""


def own_type(name: str, columns: Mapping[str, str]) -> EventType:
    """A type of a program's own events.

    Parameters
    ----------
    columns : mapping of str to str
        Their types: "int32", "int64", "float64", "bool" or "string".

    Raises
    ------
    UsageError
        If the name is that of another type, or a column is of another type or called "at".
    """
    known = ("int32", "int64", "float64", "bool", "string")
    wrong = {column: kind for column, kind in columns.items() if kind not in known}
    if name in EVENTS or not name.isidentifier() or "at" in columns or wrong:
        raise UsageError(
            f"events {name!r} with columns {dict(columns)} cannot be logged: a name is an "
            f"identifier, and none of {', '.join(EVENTS)}; the types of columns are "
            f"{', '.join(known)}, and 'at' is there already"
        )
    numbers = {column: kind for column, kind in columns.items() if kind != "string"}
    texts = tuple(column for column, kind in columns.items() if kind == "string")
    return EventType(name, {"at": "int64", **numbers}, texts, is_own=True)


CODES = {"int64": "q", "int32": "i", "bool": "?", "float64": "d"}
"""What `struct` calls the types of numbers."""


def unfit(of: EventType, numbers: Sequence[Any]) -> tuple[str, str]:
    """The column whose number does not fit, and its type; `numbers` are all but `at`.

    >>> unfit(own_type("requests", {"size": "int32", "seconds": "float64"}), [7, None])
    ('seconds', 'float64')
    """
    columns = list(of.numbers.items())[1:]
    return next(
        (column, kind)
        for (column, kind), number in zip(columns, numbers, strict=True)
        if not _fits(kind, number)
    )


def _fits(kind: str, number: Any) -> bool:
    try:
        pack(CODES[kind], number)
    except (StructError, OverflowError):
        return False
    return True


def worker_folder(path: str | os.PathLike[str], index: int) -> Path:
    """Where worker `index` writes its part of a log."""
    return Path(path, f"worker-{index}")


MOMENTS = ("at", "began")
"""The columns that are moments."""
