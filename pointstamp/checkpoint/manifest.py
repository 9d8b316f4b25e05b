"""What a snapshot is made of: for each bin of each table, which batches of which files.

A *part* is what one worker has written, a *manifest* the parts of all. Files of former
snapshots are named where a bin has not changed since, or where only what is new of it was
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pointstamp.checkpoint.arrow_files import Stored
from pointstamp.errors import CheckpointStructureError, CorruptCheckpointError

Structure = Mapping[str, Mapping[str, str]]
"""By the name of an operator and of its table: the kind of the table."""


@dataclass(frozen=True)
class Piece:
    """One batch of a file, which is a bin or what was added to it."""

    file: str
    batch: int
    rows: int


@dataclass(frozen=True)
class StoredTable:
    """A table of a worker: its kind, and the pieces of each bin, oldest first."""

    kind: str
    bins: Mapping[int, tuple[Piece, ...]] = field(default_factory=dict)

    def files(self) -> set[str]:
        """The names of the files that have its pieces."""
        return {piece.file for pieces in self.bins.values() for piece in pieces}


@dataclass(frozen=True)
class SnapshotPart:
    """One worker's part of a snapshot; small, to be sent to the leader, which commits it.

    Attributes
    ----------
    epoch, worker
        Of which snapshot, and whose.
    tables : mapping
        By (operator, table).
    files : mapping of str to Stored
        By name, all that the pieces are in, those of former snapshots too.
    n_bytes : int
        How much was written for this snapshot.
    """

    epoch: int
    worker: int
    tables: Mapping[tuple[str, str], StoredTable]
    files: Mapping[str, Stored]
    n_bytes: int = 0

    def structure(self) -> dict[str, dict[str, str]]:
        """The kinds of its tables."""
        found: dict[str, dict[str, str]] = {}
        for (operator, table), stored in self.tables.items():
            found.setdefault(operator, {})[table] = stored.kind
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a record or a message."""
        names = list(self.files)
        numbers = {name: number for number, name in enumerate(names)}
        tables = [
            {
                "operator": operator,
                "table": table,
                "kind": stored.kind,
                "bins": {
                    str(bin): [[numbers[p.file], p.batch, p.rows] for p in pieces]
                    for bin, pieces in stored.bins.items()
                },
            }
            for (operator, table), stored in self.tables.items()
        ]
        return {
            "epoch": self.epoch,
            "worker": self.worker,
            "tables": tables,
            "files": [self.files[name].to_json() for name in names],
            "n_bytes": self.n_bytes,
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> SnapshotPart:
        """Of what `to_json` gave."""
        files = [Stored.from_json(file) for file in record["files"]]
        tables = {
            (table["operator"], table["table"]): StoredTable(
                table["kind"],
                {
                    int(bin): tuple(Piece(files[n].name, batch, rows) for n, batch, rows in pieces)
                    for bin, pieces in table["bins"].items()
                },
            )
            for table in record["tables"]
        }
        by_name = {file.name: file for file in files}
        return SnapshotPart(record["epoch"], record["worker"], tables, by_name, record["n_bytes"])


@dataclass(frozen=True)
class Manifest:
    """A committed snapshot: the parts of all workers.

    Attributes
    ----------
    epoch : int
        It is of the state when all times of this epoch were complete, and none later begun.
    meta : mapping
        What came with the commit: plain values.
    parts : tuple of SnapshotPart
        By worker.
    """

    epoch: int
    meta: Mapping[str, Any]
    parts: tuple[SnapshotPart, ...]

    @property
    def peers(self) -> int:
        """How many workers wrote it."""
        return len(self.parts)

    @property
    def structure(self) -> Structure:
        """The kinds of all tables, by operator."""
        return self.parts[0].structure() if self.parts else {}

    def files(self) -> dict[str, Stored]:
        """By name, all files that it consists of."""
        return {name: file for part in self.parts for name, file in part.files.items()}

    def pieces(self, operator: str, table: str, bin: int) -> Iterator[Piece]:
        """The pieces of a bin: of each worker that had any, oldest first."""
        for part in self.parts:
            stored = part.tables.get((operator, table))
            if stored is not None:
                yield from stored.bins.get(bin, ())

    def to_json(self) -> dict[str, Any]:
        """For a record."""
        parts = [part.to_json() for part in self.parts]
        return {"epoch": self.epoch, "meta": dict(self.meta), "parts": parts}

    @staticmethod
    def from_json(record: Mapping[str, Any], place: str) -> Manifest:
        """Of what `to_json` gave."""
        try:
            parts = tuple(map(SnapshotPart.from_json, record["parts"]))
            return Manifest(record["epoch"], record["meta"], parts)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise CorruptCheckpointError(f"{place}: is no manifest: {error!r}") from error


def check_parts(parts: tuple[SnapshotPart, ...], epoch: int) -> None:
    """Raise unless `parts` make one snapshot.

    Raises
    ------
    CheckpointStructureError
        If they are of other epochs, a worker's is missing, or they are of other tables.
    """
    workers = [part.worker for part in parts]
    if workers != list(range(len(parts))) or any(part.epoch != epoch for part in parts):
        found = [(part.worker, part.epoch) for part in parts]
        raise CheckpointStructureError(
            f"a snapshot at {epoch} needs one part of each worker at that epoch; found those of "
            f"(worker, epoch) {found}"
        )
    for part in parts[1:]:
        if part.structure() != parts[0].structure():
            raise CheckpointStructureError(
                f"the workers of a snapshot at {epoch} have different state: worker "
                f"{parts[0].worker} {parts[0].structure()}, worker {part.worker} "
                f"{part.structure()}"
            )
