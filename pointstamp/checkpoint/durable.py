"""What a program says to have the state of a dataflow outlast it, and to have it back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint.bins import bins_for
from pointstamp.errors import CheckpointStructureError

if TYPE_CHECKING:
    from pointstamp.checkpoint.checkpoint import Checkpoint
    from pointstamp.checkpoint.manifest import Manifest, SnapshotPart


@dataclass(frozen=True)
class Durable:
    """Makes a dataflow durable: its state is in snapshots, and restored from a given one.

    The same on all workers; it may be sent to other processes.

    Attributes
    ----------
    checkpoint : Checkpoint
        Where it is kept.
    manifest : Manifest, optional
        The snapshot to begin with: that of `checkpoint.latest()`, found by one for all
        workers. Its inputs begin after its epoch.
    allow_missing : collection of str
        Operators of the snapshot that the program has no more: what they kept is forgotten.
    allow_new : collection of str
        Operators with state that the snapshot does not know: they begin with nothing.
    """

    checkpoint: Checkpoint
    manifest: Manifest | None = None
    allow_missing: Collection[str] = ()
    allow_new: Collection[str] = ()

    @property
    def epoch(self) -> int:
        """That of the snapshot; -1 without one."""
        return -1 if self.manifest is None else self.manifest.epoch

    def stored(self, operator: str, table: str, kind: str) -> bool:
        """Whether the snapshot has this table.

        Raises
        ------
        CheckpointStructureError
            If it has it as something else, or does not have it and may not be without.
        """
        if self.manifest is None:
            return False
        tables = self.manifest.structure.get(operator, {})
        if table in tables:
            # Of what follows a colon, snapshots of earlier versions say nothing.
            if tables[table] not in (kind, kind.partition(":")[0]):
                raise CheckpointStructureError(
                    f"table {table!r} of operator {operator!r} has {kind}; the snapshot at "
                    f"{self.epoch} has {tables[table]} there: name the table or the operator "
                    "anew, or begin with another checkpoint"
                )
            return True
        if operator not in self.allow_new:
            raise CheckpointStructureError(
                f"operator {operator!r} keeps a table {table!r}, and the snapshot at {self.epoch} "
                f"has none of it; it knows {sorted(self.manifest.structure)}. If it is new, "
                f"say so: allow_new=[{operator!r}]"
            )
        return False

    def check_missing(self, dataflow: str, declared: Collection[tuple[str, str]]) -> None:
        """Raise if the snapshot has state of `dataflow` that is not declared.

        Raises
        ------
        CheckpointStructureError
            With the operators that are missing.
        """
        if self.manifest is None:
            return
        missing = sorted(
            {
                operator
                for operator, tables in self.manifest.structure.items()
                for table in tables
                if operator.split("/")[0] == dataflow
                and (operator, table) not in declared
                and operator not in self.allow_missing
            }
        )
        if missing:
            raise CheckpointStructureError(
                f"the snapshot at {self.epoch} has state of {missing}, which dataflow "
                f"{dataflow!r} does not have; with state it has "
                f"{sorted({operator for operator, _ in declared})}. If what they kept is not "
                f"needed any more, say so: allow_missing={missing}"
            )

    def read(self, operator: str, table: str, index: int, peers: int) -> Iterator[Any]:
        """The stored batches of a table in which keys of worker `index` of `peers` can be."""
        assert self.manifest is not None
        return self.checkpoint.read_bins(self.manifest, operator, table, bins_for(index, peers))

    def part(self, index: int, peers: int) -> SnapshotPart | None:
        """The worker's own part of the snapshot, if what it keeps is the same.

        With another number of workers it keeps other keys.
        """
        manifest = self.manifest
        if manifest is None or manifest.peers != peers:
            return None
        return manifest.parts[index]
