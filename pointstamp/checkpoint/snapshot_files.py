"""Snapshots in a folder: parts by worker, and a manifest, written last, that names them.

    snapshots/<epoch>/<worker>-<number>-<token>.arrow       bins as batches
    snapshots/<epoch>/manifest.json

A snapshot without a manifest is none. Files have names of their own each time, so that
nothing is written over what a manifest names, even where an epoch is reached again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa

from pointstamp.checkpoint import arrow_files
from pointstamp.checkpoint.arrow_files import EncodedBatches, Stored
from pointstamp.checkpoint.checksummed import checksummed, verified
from pointstamp.checkpoint.deltas import TableDelta
from pointstamp.checkpoint.input_log import epoch_name
from pointstamp.checkpoint.manifest import Manifest, Piece, SnapshotPart, StoredTable, check_parts
from pointstamp.checkpoint.objects import Objects
from pointstamp.errors import (
    CheckpointError,
    CheckpointWarning,
    CorruptCheckpointError,
    TruncatedCheckpointError,
)

VERSION = 1
_ROOT = "snapshots"
_MANIFEST = "manifest.json"


class SnapshotFiles:
    """The snapshots below a root."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._doubtful: set[int] = set()
        """The epochs whose manifest may be there, or come, though its write has failed."""

    def write_part(
        self,
        epoch: int,
        worker: int,
        tables: Mapping[tuple[str, str], TableDelta],
        before: SnapshotPart | None = None,
    ) -> SnapshotPart:
        """See `Checkpoint.write_part`."""
        token = uuid4().hex[:12]
        known = {} if before is None else before.files
        written: dict[str, Stored] = {}
        stored: dict[tuple[str, str], StoredTable] = {}
        for number, (key, delta) in enumerate(tables.items()):
            name = f"{_ROOT}/{epoch_name(epoch)}/{worker:05}-{number:04}-{token}.arrow"
            if delta.changes:
                changes = [delta.changes[bin].batch for bin in sorted(delta.changes)]
                written[name] = arrow_files.put(self._objects, name, EncodedBatches(changes))
            former = None if before is None or delta.is_whole else before.tables.get(key)
            stored[key] = _with_changes(former, delta, name)
        used = {name for table in stored.values() for name in table.files()}
        files = {name: file for name, file in {**known, **written}.items() if name in used}
        n_bytes = sum(file.n_bytes for file in written.values())
        return SnapshotPart(epoch, worker, stored, files, n_bytes)

    def commit_manifest(
        self, epoch: int, parts: Iterable[SnapshotPart], meta: Mapping[str, Any]
    ) -> Manifest:
        """See `Checkpoint.commit_manifest`."""
        by_worker = tuple(sorted(parts, key=lambda part: part.worker))
        check_parts(by_worker, epoch)
        manifest = Manifest(epoch, meta, by_worker)
        data = checksummed(VERSION, manifest.to_json())
        try:
            self._objects.put(f"{_ROOT}/{epoch_name(epoch)}/{_MANIFEST}", [data])
        except BaseException:
            if not self._objects.fails_cleanly:
                self._doubtful.add(epoch)
            raise
        return manifest

    def discard(self, epoch: int) -> bool:
        """See `Checkpoint.discard_snapshot`; False if it has a manifest, or may get one."""
        folder = f"{_ROOT}/{epoch_name(epoch)}"
        if epoch in self._doubtful or self._objects.size(f"{folder}/{_MANIFEST}") is not None:
            return False
        for name in self._objects.files(folder):
            self._objects.delete(f"{folder}/{name}")
        self._objects.delete_folder(folder)
        return True

    def latest(self) -> Manifest | None:
        """See `Checkpoint.latest`."""
        damaged: list[CheckpointError] = []
        for epoch in reversed(self._committed()):
            try:
                manifest = self._whole(epoch)
            except (TruncatedCheckpointError, CorruptCheckpointError) as error:
                damaged.append(error)
                continue
            for found in damaged:
                warnings.warn(
                    f"{found}; the snapshot at {epoch} is taken in its place",
                    CheckpointWarning,
                    stacklevel=3,
                )
            return manifest
        if damaged:
            raise damaged[0]
        return None

    def read_bins(
        self, manifest: Manifest, operator: str, table: str, bins: Iterable[int]
    ) -> Iterator[pa.RecordBatch]:
        """See `Checkpoint.read_bins`."""
        for part in manifest.parts:
            stored = part.tables.get((operator, table))
            if stored is None:
                continue
            data: dict[str, pa.Buffer] = {}
            for bin in bins:
                for piece in stored.bins.get(bin, ()):
                    if piece.file not in data:
                        data[piece.file] = arrow_files.checked(
                            self._objects, part.files[piece.file]
                        )
                    yield from arrow_files.decoded(data[piece.file], piece.file, [piece.batch])

    def prune(self, keep: int) -> int | None:
        """Remove all but the last `keep` whole snapshots; the epoch of the oldest that is left.

        Manifests go first: what they named is no snapshot any more when it goes.
        """
        kept: list[Manifest] = []
        epochs = self._committed()
        for epoch in reversed(epochs):
            try:
                manifest = self._manifest(epoch)
                for file in manifest.files().values():
                    arrow_files.check_size(self._objects, file)
            except (TruncatedCheckpointError, CorruptCheckpointError):
                continue
            kept.append(manifest)
            if len(kept) == keep:
                break
        if not kept:
            return None
        used = {name for manifest in kept for name in manifest.files()}
        used |= {f"{_ROOT}/{epoch_name(m.epoch)}/{_MANIFEST}" for m in kept}
        done = [epoch for epoch in self._epochs() if epoch <= kept[0].epoch]
        for epoch in done:
            name = f"{_ROOT}/{epoch_name(epoch)}/{_MANIFEST}"
            if name not in used:
                self._objects.delete(name)
        for epoch in done:
            folder = f"{_ROOT}/{epoch_name(epoch)}"
            for name in self._objects.files(folder):
                if f"{folder}/{name}" not in used:
                    self._objects.delete(f"{folder}/{name}")
            self._objects.delete_folder(folder)
        return kept[-1].epoch

    def _epochs(self) -> list[int]:
        return sorted(int(name) for name in self._objects.folders(_ROOT) if name.isdigit())

    def _committed(self) -> list[int]:
        return [
            epoch
            for epoch in self._epochs()
            if self._objects.size(f"{_ROOT}/{epoch_name(epoch)}/{_MANIFEST}") is not None
        ]

    def _manifest(self, epoch: int) -> Manifest:
        name = f"{_ROOT}/{epoch_name(epoch)}/{_MANIFEST}"
        place = f"{self._objects}/{name}"
        body = verified(self._objects.get(name).to_pybytes(), place, VERSION)
        return Manifest.from_json(body, place)

    def _whole(self, epoch: int) -> Manifest:
        """The manifest, after a look at every byte that it names."""
        manifest = self._manifest(epoch)
        for file in manifest.files().values():
            arrow_files.checked(self._objects, file)
        return manifest


def _with_changes(former: StoredTable | None, delta: TableDelta, name: str) -> StoredTable:
    """A table with what is new of it in the file `name`."""
    bins = dict(former.bins) if former is not None else {}
    for number, bin in enumerate(sorted(delta.changes)):
        change = delta.changes[bin]
        rows = change.batch.num_rows
        before = () if change.is_whole else bins.get(bin, ())
        before = before[: len(before) - change.n_replaced]
        if rows:
            before = (*before, Piece(name, number, rows))
        if before:
            bins[bin] = before
        else:
            bins.pop(bin, None)
    return StoredTable(delta.kind, bins)
