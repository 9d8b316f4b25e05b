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
            If it has it as something else.
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
        return False

    def check_structure(self, dataflow: str, declared: Collection[tuple[str, str]]) -> None:
        """Raise if what operators of `dataflow` declare is not what the snapshot has of it.

        Raises
        ------
        CheckpointStructureError
            With all operators that are new and all that are missing, but for those allowed.
        """
        if self.manifest is None:
            return
        structure = self.manifest.structure
        stored = {
            (operator, table)
            for operator, tables in structure.items()
            for table in tables
            if operator.split("/")[0] == dataflow
        }
        new = _by_operator(set(declared) - stored, self.allow_new)
        missing = _by_operator(stored - set(declared), self.allow_missing)
        found = []
        if new:
            found.append(
                f"it has nothing of what {_listed(new, 'keeps')}. If they are new, say so: "
                f"allow_new={list(new)}"
            )
        if missing:
            found.append(
                f"it has state that the dataflow does not have: {_listed(missing, 'kept')}. If it "
                f"is not needed any more, say so: allow_missing={list(missing)}"
            )
        if found:
            raise CheckpointStructureError(
                f"dataflow {dataflow!r} is not that of the snapshot at {self.epoch}: "
                f"{'; '.join(found)}. With state the dataflow has "
                f"{sorted({operator for operator, _ in declared})}, the snapshot "
                f"{sorted(structure)}"
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


def _by_operator(
    tables: Collection[tuple[str, str]], allowed: Collection[str]
) -> dict[str, list[str]]:
    """The tables of each operator that is not allowed, all in order."""
    found: dict[str, list[str]] = {}
    for operator, table in sorted(tables):
        if operator not in allowed:
            found.setdefault(operator, []).append(table)
    return found


def _listed(tables: dict[str, list[str]], does: str) -> str:
    return ", ".join(
        f"{operator!r} {does} in {', '.join(map(repr, names))}"
        for operator, names in tables.items()
    )
