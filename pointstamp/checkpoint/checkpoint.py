"""A checkpoint: the folder that has what outlasts a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from pointstamp.checkpoint import snapshot_counts
from pointstamp.checkpoint.claims import CheckpointClaim, claimed, locked
from pointstamp.checkpoint.deltas import TableDelta
from pointstamp.checkpoint.input_log import CommitRecord, InputLog
from pointstamp.checkpoint.manifest import Manifest, SnapshotPart
from pointstamp.checkpoint.objects import Objects, objects_at
from pointstamp.checkpoint.snapshot_files import SnapshotFiles
from pointstamp.checkpoint.staged import Staged
from pointstamp.errors import CheckpointError, UsageError

_IDENTITY = "identity"


class Checkpoint:
    """A checkpoint folder: a log of inputs, and snapshots of state. It can be pickled.

    Parameters
    ----------
    place : str or path
        Of a folder: a path of this machine, or a URI such as `s3://bucket/folder`. It is
        made with the first thing that is written.
    filesystem : pyarrow.fs.FileSystem, optional
        Then `place` is a path there.

    Notes
    -----
    One program at a time may commit and prune; any number may stage, write parts and
    read. What a call has written when it returns outlasts this machine's end where the file
    system does: files of this machine are synced.

    Pickles are among what is stored: read what you wrote, or trust.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = Checkpoint(folder.name)
    >>> batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    >>> staged = checkpoint.stage("edges", 0, "task 7", [batch])
    >>> checkpoint.commit("edges", 0, [staged]), checkpoint.commit("edges", 0, [staged])
    (True, False)
    >>> [(epoch, [s.rows for s in found]) for epoch, found in checkpoint.committed("edges", -1)]
    [(0, [2])]
    >>> folder.cleanup()
    """

    def __init__(
        self, place: str | os.PathLike[str], filesystem: fs.FileSystem | None = None
    ) -> None:
        self._keep_in(objects_at(place, filesystem))
        self.uri = _uri(place, filesystem)
        """Of the folder, for others; None where it is a path of a file system that was given."""

    def _keep_in(self, objects: Objects) -> None:
        self._objects = objects
        self._log = InputLog(objects)
        self._snapshots = SnapshotFiles(objects)

    def within(self, folder: str) -> Checkpoint:
        """The checkpoint in a folder of this one's; it has no URI.

        >>> Checkpoint("/tmp/a b").within("c")
        Checkpoint('/tmp/a b/c')
        """
        found = copy(self)
        found.uri = None
        found._keep_in(self._objects.below(folder))
        return found

    def identity(self) -> str:
        """A text that another one at its place does not have; made with the first call."""
        if self._objects.size(_IDENTITY) is None:
            self._objects.create(_IDENTITY, [uuid4().hex.encode()])
        return self._objects.get(_IDENTITY).to_pybytes().decode()

    @property
    def objects(self) -> Objects:
        """Those of the folder, among which others may have their own."""
        return self._objects

    def claimed(self) -> AbstractContextManager[CheckpointClaim]:
        """Have this be the one program that commits, before it reads what there is.

        On this machine by a lock: another program is refused, which waits a few seconds for what
        was killed to end. In an object store by a term: another program is let in, and this one
        refused from then on. `ps.run` does it; a `CheckpointClaim` travels to its workers.

        Raises
        ------
        CheckpointInUseError
            If another program of this machine has it.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Checkpoint(folder.name).claimed() as claim:
        ...     claim.check()
        >>> folder.cleanup()
        """
        return claimed(self._objects)

    def locked(self) -> AbstractContextManager[CheckpointClaim | None]:
        """The same of a folder of this machine; in an object store nothing happens.

        There `begin` does it, and so the first commit: services commit to the log of inputs alone.
        """
        return locked(self._objects)

    # The log of inputs.

    def stage(
        self, input: str, epoch: int, attempt: object, batches: Iterable[pa.RecordBatch]
    ) -> Staged:
        """Write what an attempt has for an input at an epoch; it counts when it is committed.

        Repeating an attempt is staging once: the batches that were written first stay.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Of one schema. A sequence is written batch by batch, so that one which reads them from
            elsewhere need not fit into memory, unless there are dictionaries among the columns;
            others are put together first. None are fine.

        Raises
        ------
        SchemaError
            If their schemas differ.
        CheckpointError
            If they cannot be written.
        """
        return self._log.stage(input, epoch, attempt, batches)

    def commit(
        self,
        input: str,
        epoch: int,
        attempts: Iterable[Staged],
        until: int | None = None,
        commit: str = "",
        batch: int | None = None,
        time_us: int | None = None,
        query: str | None = None,
    ) -> bool:
        """Say once what was staged for an input at an epoch; whether this call said it.

        Parameters
        ----------
        until : int, optional
            The epoch that the input goes on with; the one after, if not given.
        commit : str
            A name of its own, for a commit of several inputs at once: what is named may be staged
            for other inputs, and for other epochs.
        batch : int, optional
            Then the name is that of a feed, and this is the number of its batch.
        time_us : int, optional
            When it is committed, in microseconds since 1970, to be kept with it.
        query : str, optional
            The id of the query whose batch it is, to be kept with it.

        Returns
        -------
        bool
            False, and nothing has changed, if the input is past that epoch: it was committed
            before, with whatever attempts, or is so old that a snapshot has it.

        Raises
        ------
        TruncatedCheckpointError
            If an attempt is not there.
        UsageError
            If one was staged for something else.
        """
        return self._log.commit(input, epoch, attempts, until, commit, batch, time_us, query)

    def abort(self, input: str, epoch: int, staged: Staged | Iterable[Staged]) -> None:
        """Remove what was staged, unless it was committed."""
        self._log.abort(input, epoch, [staged] if isinstance(staged, Staged) else staged)

    def begin(self) -> None:
        """Have this be the program that commits, before it reads the log to go on with it.

        In an object store former programs commit nothing from now on, and what they have tried to
        write and arrives later does not count. The first commit does it where nothing
        else has. On this machine nothing happens: there, what was not written never will be.

        Raises
        ------
        CheckpointError
            If that cannot be written.
        """
        self._log.begin()

    def committed(self, input: str, after: int) -> Iterator[tuple[int, list[Staged]]]:
        """(epoch, attempts) of what was committed for an input after an epoch, in order.

        Parameters
        ----------
        after : int
            -1 for all. What a snapshot has is not there any more after `prune`.

        Raises
        ------
        CorruptCheckpointError
            If a commit record before or among them is lost, moved or changed; names it.
        """
        return self._log.committed(input, after)

    def records(self, input: str, after: int) -> Iterator[CommitRecord]:
        """The commit records of an input after an epoch, in order; raises as `committed`."""
        return self._log.records(input, after)

    def reached(self, input: str) -> int:
        """The epoch that the last commit of an input has it go on with; 0 without one.

        `prune` leaves that as it is; a snapshot may be further.
        """
        return self._log.reached(input)

    def inputs(self) -> list[str]:
        """The inputs that something was staged for."""
        return self._log.inputs()

    def read(self, staged: Staged) -> Iterator[pa.RecordBatch]:
        """The batches that were staged.

        Raises
        ------
        TruncatedCheckpointError, CorruptCheckpointError
            With the first batch, unless all is as it was written.
        """
        return self._log.read(staged)

    # Snapshots.

    def write_part(
        self,
        epoch: int,
        worker: int,
        tables: Mapping[tuple[str, str], TableDelta],
        before: SnapshotPart | None = None,
    ) -> SnapshotPart:
        """Write what one worker has for a snapshot.

        Parameters
        ----------
        tables : mapping of (operator, table) to TableDelta
            What has changed since `before`, or everything where there is no `before`.
        before : SnapshotPart, optional
            The worker's part of the snapshot before this, whose files are referred to.

        Notes
        -----
        Costs a pass over what has changed, and one object for each table that has.
        """
        return self._snapshots.write_part(epoch, worker, tables, before)

    def commit_manifest(
        self, epoch: int, parts: Iterable[SnapshotPart], meta: Mapping[str, Any]
    ) -> Manifest:
        """Make a snapshot of the parts of all workers, by writing its manifest.

        Parameters
        ----------
        meta : mapping
            Plain values (what JSON has) that `latest` gives back.

        Raises
        ------
        CheckpointStructureError
            If the parts do not belong together.
        """
        began, found = monotonic(), list(parts)
        manifest = self._snapshots.commit_manifest(epoch, found, meta)
        n_bytes = sum(part.n_bytes for part in found)
        snapshot_counts.note_committed(str(self._objects), epoch, n_bytes, began)
        return manifest

    def note_snapshot(self, epoch: int) -> None:
        """The workers are asked for a snapshot: what it takes is counted from here."""
        snapshot_counts.note_begun(str(self._objects), epoch)

    def discard_snapshot(self, epoch: int, inputs: Iterable[str] = ()) -> None:
        """Remove the parts of a snapshot that has no manifest, and gets none.

        In an object store a manifest whose write has failed may be there, or come: then nothing is
        removed, and `prune` does it, once there is a later snapshot.

        Parameters
        ----------
        inputs : iterable of str
            Of which what was staged for the epoch after it goes as well, unless something of
            that is committed.
        """
        if self._snapshots.discard(epoch):
            for input in inputs:
                self._log.abort_all(input, epoch + 1)

    def latest(self) -> Manifest | None:
        """The last whole snapshot, of which every byte was looked at; None if there is none.

        Warns (`CheckpointWarning`) if a later one is damaged.

        Raises
        ------
        TruncatedCheckpointError, CorruptCheckpointError
            If there are damaged ones only.
        CheckpointVersionError
            If the last one is of a version that is not known.
        CheckpointError
            If inputs that came after the last whole one are not in the log any more.
        """
        manifest = self._snapshots.latest()
        pruned = self._log.pruned()
        found = -1 if manifest is None else manifest.epoch
        if found < pruned:
            raise CheckpointError(
                f"{self._objects}: the last whole snapshot is {_at(found)}, and the log of inputs "
                f"was pruned up to {pruned}: what came between is gone; restore the folder from a "
                "copy, or begin with another one"
            )
        return manifest

    def read_bins(
        self, manifest: Manifest, operator: str, table: str, bins: Iterable[int]
    ) -> Iterator[pa.RecordBatch]:
        """The batches of some bins of a table; a later one of a bin adds to those before it.

        Raises
        ------
        TruncatedCheckpointError, CorruptCheckpointError
            If a file is not as it was written.
        """
        return self._snapshots.read_bins(manifest, operator, table, bins)

    def prune(self, keep: int = 2) -> None:
        """Remove what is not needed to start from one of the last `keep` whole snapshots.

        Those are kept with all files that they name, and the log after the oldest of them.
        So are attempts of epochs that are not committed.

        Parameters
        ----------
        keep : int
            With 1, nothing is left to start from if that one is damaged.
        """
        if type(keep) is not int or keep < 1:
            raise UsageError(f"at least 1 snapshot has to be kept; prune() was asked for {keep!r}")
        oldest = self._snapshots.prune(keep)
        if oldest is not None:
            self._log.prune(oldest)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self._objects)!r})"


def _uri(place: str | os.PathLike[str], filesystem: fs.FileSystem | None) -> str | None:
    if filesystem is None and "://" in str(place):
        return str(place).rstrip("/")
    is_local = filesystem is None or isinstance(filesystem, fs.LocalFileSystem)
    # As Hadoop reads it: with all characters as they are.
    return f"file://{Path(place).absolute()}" if is_local else None


def _at(epoch: int) -> str:
    return "none" if epoch < 0 else f"that at {epoch}"
