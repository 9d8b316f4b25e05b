"""Snapshots: parts, a manifest, what is damaged, what is pruned."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping

import pyarrow as pa
import pytest

from pointstamp.checkpoint import BinDelta, Checkpoint, Manifest, SnapshotPart, TableDelta
from pointstamp.checkpoint.checksummed import checksummed
from pointstamp.errors import (
    CheckpointError,
    CheckpointStructureError,
    CheckpointVersionError,
    CheckpointWarning,
    CorruptCheckpointError,
    TruncatedCheckpointError,
    UsageError,
)
from tests.checkpoint.conftest import Place

KEY = ("counts/Count", "counts")


def change(*values: int, whole: bool = True) -> BinDelta:
    schema = pa.schema([("x", pa.int64())])
    return BinDelta(pa.RecordBatch.from_pydict({"x": list(values)}, schema=schema), whole)


def cut(changes: Mapping[int, BinDelta], kind: str = "integers") -> TableDelta:
    return TableDelta(kind, changes)


def in_bin(checkpoint: Checkpoint, manifest: Manifest, bin: int) -> list[int]:
    batches = checkpoint.read_bins(manifest, *KEY, [bin])
    return [x for batch in batches for x in batch["x"].to_pylist()]


def sealed(
    checkpoint: Checkpoint, epoch: int, *values: int, before: SnapshotPart | None = None
) -> SnapshotPart:
    """A snapshot of one worker with `values` in bin 0, or without a change there."""
    part = checkpoint.write_part(
        epoch, 0, {KEY: cut({0: change(*values)} if values else {})}, before
    )
    checkpoint.commit_manifest(epoch, [part], {})
    return part


def test_a_snapshot_has_the_parts_of_all_workers(place: Place) -> None:
    checkpoint = place.checkpoint()
    assert checkpoint.latest() is None
    parts = [
        checkpoint.write_part(4, worker, {KEY: cut({7: change(worker), worker: change(5, 6)})})
        for worker in range(2)
    ]
    assert checkpoint.latest() is None  # not before its manifest
    checkpoint.commit_manifest(4, reversed(parts), {"sources": [1, 2]})
    manifest = place.checkpoint().latest()
    assert manifest is not None
    assert (manifest.epoch, manifest.peers) == (4, 2)
    assert manifest.meta == {"sources": [1, 2]}
    assert manifest.structure == {"counts/Count": {"counts": "integers"}}
    assert [in_bin(checkpoint, manifest, bin) for bin in (0, 1, 2, 7)] == [
        [5, 6],
        [5, 6],
        [],
        [0, 1],
    ]


def test_a_bin_that_did_not_change_is_not_written_again(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.write_part(1, 0, {KEY: cut({0: change(1), 1: change(2)})})
    checkpoint.commit_manifest(1, [first], {})
    files = {name for name in place.names() if name.endswith(".arrow")}
    second = checkpoint.write_part(
        2, 0, {KEY: cut({1: change(3, whole=False), 2: change(4)})}, before=first
    )
    checkpoint.commit_manifest(2, [second], {})
    third = checkpoint.write_part(3, 0, {KEY: cut({1: change(9)})}, before=second)
    manifest = checkpoint.commit_manifest(3, [third], {})
    assert [in_bin(checkpoint, manifest, bin) for bin in range(3)] == [[1], [9], [4]]
    two = checkpoint.latest()
    assert two == manifest
    assert files <= set(manifest.files())
    # What was added to bin 1 is where it was, and the rest of its file is in use.
    assert in_bin(checkpoint, Manifest(2, {}, (second,)), 1) == [2, 3]


def test_a_bin_that_is_empty_is_forgotten(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = sealed(checkpoint, 1, 5)
    second = checkpoint.write_part(2, 0, {KEY: cut({0: change()})}, before=first)
    manifest = checkpoint.commit_manifest(2, [second], {})
    assert in_bin(checkpoint, manifest, 0) == []
    assert manifest.files() == {}


def test_a_part_may_be_sent(place: Place) -> None:
    part = sealed(place.checkpoint(), 1, 5)
    assert SnapshotPart.from_json(json.loads(json.dumps(part.to_json()))) == part
    assert part.n_bytes == sum(file.n_bytes for file in part.files.values()) > 0


@pytest.mark.parametrize("what", ["manifest", "file"])
@pytest.mark.parametrize("how", ["cut", "changed"])
def test_a_damaged_snapshot_is_passed_over_with_a_warning(
    place: Place, what: str, how: str
) -> None:
    checkpoint = place.checkpoint()
    sealed(checkpoint, 1, 5)
    sealed(checkpoint, 2, 6)
    (name,) = (n for n in place.names() if "02/" in n and ("manifest" in n) == (what == "manifest"))
    was, becomes = (b"\x06", b"\x07") if what == "file" else (b"integers", b"integrals")
    place.change(name, lambda data: data[:-9] if how == "cut" else data.replace(was, becomes))
    with pytest.warns(CheckpointWarning, match="the snapshot at 1 is taken in its place"):
        manifest = checkpoint.latest()
    assert manifest is not None
    assert (manifest.epoch, in_bin(checkpoint, manifest, 0)) == (1, [5])


@pytest.mark.parametrize("how", ["cut", "changed", "gone"])
def test_damaged_snapshots_only_are_an_error(place: Place, how: str) -> None:
    checkpoint = place.checkpoint()
    sealed(checkpoint, 1, 5)
    (name,) = (n for n in place.names() if n.endswith(".arrow"))
    expected: type[CheckpointError] = TruncatedCheckpointError
    if how == "cut":
        place.change(name, lambda data: data[:-1])
    elif how == "changed":
        place.change(name, lambda data: data[:-30] + bytes(30))
        expected = CorruptCheckpointError
    elif place.folder is None:
        del place.bucket.objects[f"root/{name}"]
    else:
        (place.folder / name).unlink()
    with pytest.raises(expected, match=r"\.arrow: "):
        checkpoint.latest()


def test_a_snapshot_of_the_future_is_not_passed_over(place: Place) -> None:
    checkpoint = place.checkpoint()
    sealed(checkpoint, 1, 5)
    sealed(checkpoint, 2, 6)
    (name,) = (n for n in place.names() if n.endswith("02/manifest.json"))
    place.change(name, lambda data: checksummed(3, {}))
    with pytest.raises(CheckpointVersionError, match=r"of version 3; .* reads version 1"):
        checkpoint.latest()


def test_a_file_that_changes_after_the_look_is_found_when_it_is_read(place: Place) -> None:
    checkpoint = place.checkpoint()
    sealed(checkpoint, 1, 5)
    manifest = checkpoint.latest()
    assert manifest is not None
    (name,) = manifest.files()
    place.change(name, lambda data: data[:-30] + bytes(30))
    with pytest.raises(CorruptCheckpointError, match="not those that were written"):
        in_bin(checkpoint, manifest, 0)


def test_parts_that_do_not_belong_together_are_refused(place: Place) -> None:
    checkpoint = place.checkpoint()
    parts = [checkpoint.write_part(1, worker, {KEY: cut({})}) for worker in range(3)]
    for wrong in (parts[1:], [parts[0], parts[0]], [checkpoint.write_part(2, 0, {})]):
        with pytest.raises(CheckpointStructureError, match="one part of each worker"):
            checkpoint.commit_manifest(1, wrong, {})
    other = checkpoint.write_part(1, 1, {KEY: cut({}, kind="texts")})
    with pytest.raises(CheckpointStructureError, match=r"worker 1 .*texts"):
        checkpoint.commit_manifest(1, [parts[0], other], {})
    assert checkpoint.latest() is None


def test_pruning_keeps_what_the_kept_ones_name(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.write_part(1, 0, {KEY: cut({0: change(1)})})
    checkpoint.commit_manifest(1, [first], {})
    second = checkpoint.write_part(2, 0, {KEY: cut({1: change(2)})}, before=first)
    checkpoint.commit_manifest(2, [second], {})
    third = checkpoint.write_part(3, 0, {KEY: cut({1: change(3)})}, before=second)
    checkpoint.commit_manifest(3, [third], {})
    ahead = checkpoint.write_part(4, 0, {KEY: cut({1: change(4)})}, before=third)
    checkpoint.prune(1)
    epochs = [int(name.split("/")[1]) for name in place.names() if name.endswith(".arrow")]
    assert epochs == [1, 3, 4]  # bin 0 is that of 1; bin 1 of 2 is forgotten; 4 is not sealed yet
    assert sum(name.endswith("manifest.json") for name in place.names()) == 1
    manifest = checkpoint.commit_manifest(4, [ahead], {})
    assert [in_bin(checkpoint, manifest, bin) for bin in (0, 1)] == [[1], [4]]
    with pytest.raises(UsageError, match="at least 1 snapshot"):
        checkpoint.prune(0)


def test_pruning_does_not_count_what_is_damaged(place: Place) -> None:
    checkpoint = place.checkpoint()
    for epoch in (1, 2, 3):
        sealed(checkpoint, epoch, epoch)
    (name,) = (n for n in place.names() if n.endswith("03/manifest.json"))
    place.change(name, lambda data: data[:-1])
    checkpoint.prune(1)
    with pytest.warns(CheckpointWarning):
        manifest = checkpoint.latest()
    assert manifest is not None
    assert manifest.epoch == 2


def test_a_gap_between_snapshot_and_log_is_an_error(place: Place) -> None:
    checkpoint = place.checkpoint()
    sealed(checkpoint, 1, 5)
    sealed(checkpoint, 2, 6)
    checkpoint.prune(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint.latest()
    checkpoint.prune(1)
    sealed(checkpoint, 1, 5)
    (name,) = (n for n in place.names() if n.endswith("02/manifest.json"))
    place.change(name, lambda data: data[:-1])
    with (
        pytest.warns(CheckpointWarning),
        pytest.raises(CheckpointError, match="that at 1, and the log of inputs was pruned up to 2"),
    ):
        checkpoint.latest()
