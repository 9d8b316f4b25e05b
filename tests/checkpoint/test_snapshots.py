"""Snapshots: parts, a manifest, what is damaged, what is pruned."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from pointstamp.checkpoint import BinDelta, Checkpoint, Manifest, Part, TableDelta
from pointstamp.checkpoint.checksummed import checksum, seal
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
VERSION_1 = Path(__file__).parent / "version_1"


def change(*values: int, whole: bool = True) -> BinDelta:
    schema = pa.schema([("x", pa.int64())])
    return BinDelta(pa.RecordBatch.from_pydict({"x": list(values)}, schema=schema), whole)


def cut(changes: Mapping[int, BinDelta], kind: str = "integers") -> TableDelta:
    return TableDelta(kind, changes)


def in_bin(checkpoint: Checkpoint, manifest: Manifest, bin: int) -> list[int]:
    batches = checkpoint.read_bins(manifest, *KEY, [bin])
    return [x for batch in batches for x in batch["x"].to_pylist()]


def sealed(checkpoint: Checkpoint, epoch: int, *values: int, before: Part | None = None) -> Part:
    """A snapshot of one worker with `values` in bin 0, or without a change there."""
    part = checkpoint.write_part(
        epoch, 0, {KEY: cut({0: change(*values)} if values else {})}, before
    )
    checkpoint.seal(epoch, [part], {})
    return part


def test_a_snapshot_has_the_parts_of_all_workers(place: Place) -> None:
    checkpoint = place.checkpoint()
    assert checkpoint.latest() is None
    parts = [
        checkpoint.write_part(4, worker, {KEY: cut({7: change(worker), worker: change(5, 6)})})
        for worker in range(2)
    ]
    assert checkpoint.latest() is None  # not before its manifest
    checkpoint.seal(4, reversed(parts), {"sources": [1, 2]})
    manifest = place.checkpoint().latest()
    assert manifest is not None
    assert (manifest.epoch, manifest.version, manifest.peers) == (4, 2, 2)
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
    checkpoint.seal(1, [first], {})
    files = {name for name in place.names() if name.endswith(".arrow")}
    second = checkpoint.write_part(
        2, 0, {KEY: cut({1: change(3, whole=False), 2: change(4)})}, before=first
    )
    checkpoint.seal(2, [second], {})
    third = checkpoint.write_part(3, 0, {KEY: cut({1: change(9)})}, before=second)
    manifest = checkpoint.seal(3, [third], {})
    assert [in_bin(checkpoint, manifest, bin) for bin in range(3)] == [[1], [9], [4]]
    two = checkpoint.latest()
    assert two == manifest
    assert files <= set(manifest.files())
    # What was added to bin 1 is where it was, and the rest of its file is in use.
    assert in_bin(checkpoint, Manifest(2, 2, {}, (second,)), 1) == [2, 3]


def test_a_bin_that_is_empty_is_forgotten(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = sealed(checkpoint, 1, 5)
    second = checkpoint.write_part(2, 0, {KEY: cut({0: change()})}, before=first)
    manifest = checkpoint.seal(2, [second], {})
    assert in_bin(checkpoint, manifest, 0) == []
    assert manifest.files() == {}


def test_a_part_may_be_sent(place: Place) -> None:
    part = sealed(place.checkpoint(), 1, 5)
    assert Part.from_json(json.loads(json.dumps(part.to_json()))) == part
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
    place.change(name, lambda data: seal(3, {}))
    with pytest.raises(CheckpointVersionError, match=r"of version 3; this Pointstamp reads \[1, 2"):
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
            checkpoint.seal(1, wrong, {})
    other = checkpoint.write_part(1, 1, {KEY: cut({}, kind="texts")})
    with pytest.raises(CheckpointStructureError, match=r"worker 1 .*texts"):
        checkpoint.seal(1, [parts[0], other], {})
    assert checkpoint.latest() is None


def test_pruning_keeps_what_the_kept_ones_name(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.write_part(1, 0, {KEY: cut({0: change(1)})})
    checkpoint.seal(1, [first], {})
    second = checkpoint.write_part(2, 0, {KEY: cut({1: change(2)})}, before=first)
    checkpoint.seal(2, [second], {})
    third = checkpoint.write_part(3, 0, {KEY: cut({1: change(3)})}, before=second)
    checkpoint.seal(3, [third], {})
    ahead = checkpoint.write_part(4, 0, {KEY: cut({1: change(4)})}, before=third)
    checkpoint.prune(1)
    epochs = [int(name.split("/")[1]) for name in place.names() if name.endswith(".arrow")]
    assert epochs == [1, 3, 4]  # bin 0 is that of 1; bin 1 of 2 is forgotten; 4 is not sealed yet
    assert sum(name.endswith("manifest.json") for name in place.names()) == 1
    manifest = checkpoint.seal(4, [ahead], {})
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


# Version 1.


def write_version_1(folder: Path) -> None:
    """What Pointstamp wrote as version 1: counts of keys 0 to 9, each in a bin of its own.

    `tests/checkpoint/version_1` is what this has written.
    """
    bins = {}
    for key in range(10):
        name = f"snapshots/{5:020}/Count-counts-{key:03}.arrows"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        sink = pa.BufferOutputStream()
        record = change(key, 10 * key).batch
        with pa.ipc.new_stream(sink, record.schema) as writer:
            writer.write_batch(record)
        data = sink.getvalue()
        (folder / name).write_bytes(data)
        bins[str(key)] = [name, data.size, checksum([data]), 2]
    table = {"counts": {"kind": "integers", "bins": bins}}
    body = {"epoch": 5, "meta": {"by": "version 1"}, "tables": {"counts/Count": table}}
    (folder / f"snapshots/{5:020}/manifest.json").write_bytes(seal(1, body))


def test_version_1_is_read() -> None:
    checkpoint = Checkpoint(VERSION_1)
    manifest = checkpoint.latest()
    assert manifest is not None
    assert (manifest.epoch, manifest.version, manifest.meta) == (5, 1, {"by": "version 1"})
    assert manifest.structure == {"counts/Count": {"counts": "integers"}}
    assert [in_bin(checkpoint, manifest, bin) for bin in (0, 9, 10)] == [[0, 0], [9, 90], []]


def test_the_stored_version_1_is_what_its_writer_writes(tmp_path: Path) -> None:
    write_version_1(tmp_path)
    files = {p.relative_to(VERSION_1): p.read_bytes() for p in VERSION_1.rglob("*.*")}
    assert len(files) == 11
    manifest = Path(f"snapshots/{5:020}/manifest.json")
    # The bytes of Arrow's files may differ with its version, so what they hold is compared.
    assert set(files) == {p.relative_to(tmp_path) for p in tmp_path.rglob("*.*")}
    assert json.loads(files[manifest])["version"] == 1
    old, new = Checkpoint(VERSION_1), Checkpoint(tmp_path)
    for bin in range(10):
        manifests = old.latest(), new.latest()
        assert manifests[0] is not None
        assert manifests[1] is not None
        assert in_bin(old, manifests[0], bin) == in_bin(new, manifests[1], bin)


def test_a_snapshot_of_version_2_follows_one_of_version_1(tmp_path: Path) -> None:
    write_version_1(tmp_path)
    checkpoint = Checkpoint(tmp_path)
    sealed(checkpoint, 6, 1, 2)
    manifest = checkpoint.latest()
    assert manifest is not None
    assert (manifest.version, in_bin(checkpoint, manifest, 0)) == (2, [1, 2])
    checkpoint.prune(1)
    assert not list(tmp_path.rglob("*.arrows"))
