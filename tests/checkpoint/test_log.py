"""The log of inputs: staged by many, committed once, pruned."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pointstamp.checkpoint import Checkpoint, Staged
from pointstamp.checkpoint.checksummed import checksummed
from pointstamp.errors import (
    CheckpointError,
    CheckpointVersionError,
    CorruptCheckpointError,
    SchemaError,
    TruncatedCheckpointError,
    UsageError,
)
from tests.checkpoint.conftest import Place


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": list(values)}, schema=pa.schema([("x", pa.int64())]))


def values(checkpoint: Checkpoint, winners: list[Staged]) -> list[int]:
    return [x for w in winners for b in checkpoint.read(w) for x in b["x"].to_pylist()]


def everything(checkpoint: Checkpoint, input: str, after: int = -1) -> dict[int, list[int]]:
    return {
        epoch: values(checkpoint, winners) for epoch, winners in checkpoint.committed(input, after)
    }


def test_batches_may_have_dictionaries_of_their_own(place: Place) -> None:
    def of(*words: str) -> pa.RecordBatch:
        column = pa.array(words).dictionary_encode()
        inside = pa.StructArray.from_arrays([column], ["w"])
        return pa.RecordBatch.from_pydict({"x": column, "y": inside})

    checkpoint = place.checkpoint()
    staged = checkpoint.stage("words", 0, "a", [of("a", "b"), of("c", "b")])
    assert [[row["y"]["w"] for row in b.to_pylist()] for b in checkpoint.read(staged)] == [
        ["a", "b"],
        ["c", "b"],
    ]
    assert values(checkpoint, [staged]) == ["a", "b", "c", "b"]


@pytest.mark.parametrize("file", ["log", "snapshots"])
def test_a_file_in_place_of_a_folder_is_said(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("no folder")
    with pytest.raises(CheckpointError, match="cannot be read or written: Not a directory"):
        Checkpoint(tmp_path).latest()
    with pytest.raises(UsageError, match=f"kept in a folder, and .*{file} is a file"):
        Checkpoint(tmp_path / file)


@pytest.mark.parametrize("place", [3, "", "nowhere://x"])
def test_what_is_no_place_is_refused(place: object) -> None:
    with pytest.raises(UsageError, match="a checkpoint"):
        Checkpoint(place)  # type: ignore[arg-type]  # that is what is tried


def test_what_is_staged_counts_when_it_is_committed_and_not_before(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.stage("edges", 3, "task 1", [batch(1, 2), batch(3)])
    checkpoint.stage("edges", 3, "task 1, speculative", [batch(1, 2), batch(3)])
    second = checkpoint.stage("edges", 3, "task 2", [batch(4)])
    assert (first.input, first.epoch, first.attempt, first.rows) == ("edges", 3, "task 1", 3)
    assert everything(checkpoint, "edges") == {}
    assert checkpoint.commit("edges", 3, [first, second])
    assert everything(place.checkpoint(), "edges") == {3: [1, 2, 3, 4]}


def test_a_repeated_commit_changes_nothing_whoever_wins_it(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.stage("edges", 0, 1, [batch(1)])
    other = checkpoint.stage("edges", 0, 2, [batch(2)])
    assert checkpoint.commit("edges", 0, [first])
    before = place.names()
    assert not checkpoint.commit("edges", 0, [first])
    assert not place.checkpoint().commit("edges", 0, [other])
    assert place.names() == before
    assert everything(checkpoint, "edges") == {0: [1]}


def test_a_repeated_attempt_is_staged_once(place: Place) -> None:
    checkpoint = place.checkpoint()
    first = checkpoint.stage("edges", 0, 1, [batch(1, 2)])
    again = place.checkpoint().stage("edges", 0, 1, [batch(9)])
    assert again == first
    assert values(checkpoint, [again]) == [1, 2]


def test_epochs_come_in_order_and_those_before_are_left_out(place: Place) -> None:
    checkpoint = place.checkpoint()
    for epoch in (2, 9, 10, 100):
        checkpoint.commit("edges", epoch, [checkpoint.stage("edges", epoch, 0, [batch(epoch)])])
    assert list(everything(checkpoint, "edges")) == [2, 9, 10, 100]
    assert list(everything(checkpoint, "edges", after=9)) == [10, 100]
    assert list(everything(checkpoint, "others")) == []
    for late in (3, 99):
        assert not place.checkpoint().commit("edges", late, [])
    assert list(everything(checkpoint, "edges")) == [2, 9, 10, 100]


def test_an_epoch_may_have_nothing_and_an_attempt_no_batch(place: Place) -> None:
    checkpoint = place.checkpoint()
    assert checkpoint.commit("edges", 0, [])
    nothing = checkpoint.stage("edges", 1, 0, [])
    assert nothing.rows == 0
    assert checkpoint.commit("edges", 1, [nothing])
    assert everything(checkpoint, "edges") == {0: [], 1: []}


def test_what_is_aborted_is_gone_unless_it_was_committed(place: Place) -> None:
    checkpoint = place.checkpoint()
    winner, loser = (checkpoint.stage("edges", 0, n, [batch(n)]) for n in range(2))
    checkpoint.commit("edges", 0, [winner])
    checkpoint.abort("edges", 0, [winner, loser])
    assert winner.name in place.names()
    assert loser.name not in place.names()
    checkpoint.abort("edges", 0, loser)
    assert everything(checkpoint, "edges") == {0: [0]}


def test_inputs_and_attempts_may_have_any_name(place: Place) -> None:
    checkpoint = place.checkpoint()
    names = ["../edges", ".", "a/b", "ü %", "committed.json"]
    for name in names:
        checkpoint.commit(name, 0, [checkpoint.stage(name, 0, name, [batch(1)])])
    assert sorted(checkpoint.inputs()) == sorted(names)
    assert all(everything(checkpoint, name) == {0: [1]} for name in names)
    assert all(name.startswith(("log/", "terms/")) for name in place.names())


def test_a_winner_that_is_not_there_is_not_committed(place: Place) -> None:
    checkpoint = place.checkpoint()
    lost = checkpoint.stage("edges", 0, 0, [batch(1)])
    checkpoint.abort("edges", 0, lost)
    with pytest.raises(TruncatedCheckpointError, match=r"attempt-0.arrow: is not there"):
        checkpoint.commit("edges", 0, [lost])
    assert everything(checkpoint, "edges") == {}


def test_a_winner_of_another_epoch_is_refused(place: Place) -> None:
    checkpoint = place.checkpoint()
    staged = checkpoint.stage("edges", 0, 0, [batch(1)])
    with pytest.raises(UsageError, match="staged for input 'edges' at 0"):
        checkpoint.commit("edges", 1, [staged])
    with pytest.raises(UsageError, match="an epoch is an integer"):
        checkpoint.stage("edges", -1, 0, [])
    with pytest.raises(UsageError, match="a name that is not empty"):
        checkpoint.stage("", 0, 0, [])


def test_batches_of_two_schemas_are_refused(place: Place) -> None:
    other = pa.RecordBatch.from_pydict({"y": [1.0]})
    with pytest.raises(SchemaError, match="input 'edges' must be of one schema"):
        place.checkpoint().stage("edges", 0, 0, [batch(1), other])
    assert place.names() == []


def test_staged_bytes_that_changed_are_not_read(place: Place) -> None:
    checkpoint = place.checkpoint()
    staged = checkpoint.stage("edges", 0, 0, [batch(1)])
    place.change(staged.name, lambda data: data[:40] + b"!" + data[41:])
    with pytest.raises(CorruptCheckpointError, match="not those that were written"):
        list(checkpoint.read(staged))
    place.change(staged.name, lambda data: data[:40])
    with pytest.raises(TruncatedCheckpointError, match="has 40 bytes"):
        list(checkpoint.read(staged))


def test_a_damaged_commit_record_is_a_named_error(place: Place) -> None:
    checkpoint = place.checkpoint()
    checkpoint.commit("edges", 0, [])
    record = place.record(0)
    place.change(record, lambda data: data.replace(b"attempts", b"attemptz"))
    with pytest.raises(CorruptCheckpointError, match=r"committed.*json: its checksum"):
        list(checkpoint.committed("edges", -1))
    place.change(record, lambda data: data[:-5])
    with pytest.raises(TruncatedCheckpointError, match="in the middle of a record"):
        list(checkpoint.committed("edges", -1))
    place.change(record, lambda data: checksummed(3, {}))
    with pytest.raises(CheckpointVersionError, match=r"of version 3; .* reads version 1"):
        list(checkpoint.committed("edges", -1))


def five_epochs(place: Place) -> Checkpoint:
    checkpoint = place.checkpoint()
    for epoch in range(5):
        checkpoint.commit("edges", epoch, [checkpoint.stage("edges", epoch, 0, [batch(epoch)])])
    return checkpoint


@pytest.mark.parametrize("lost", range(4))
def test_a_commit_record_that_is_lost_is_a_named_error(place: Place, lost: int) -> None:
    five_epochs(place)
    place.remove(place.record(lost))
    follows = (
        rf"{lost + 1:020}/committed.*json: .* epoch {lost + 1} of input 'edges'.* epoch {lost}"
    )
    with pytest.raises(CorruptCheckpointError, match=follows):
        everything(place.checkpoint(), "edges")


def test_a_commit_record_in_a_folder_of_another_epoch_is_a_named_error(place: Place) -> None:
    five_epochs(place)
    for epoch, input in ((7, "edges"), (0, "others")):
        place.write(place.record(epoch, input), place.read(place.record(2)))
        with pytest.raises(CorruptCheckpointError, match="is the commit record of epoch 2 of inpu"):
            everything(place.checkpoint(), input)
        place.remove(place.record(epoch, input))
    place.write(place.record(3), place.read(place.record(2)))
    with pytest.raises(CorruptCheckpointError, match="where that of epoch 3 of input 'edges' sho"):
        everything(place.checkpoint(), "edges")


def test_a_commit_record_of_another_log_is_a_named_error(tmp_path: Path) -> None:
    for name in ("one", "other"):
        checkpoint = Checkpoint(tmp_path / name)
        for epoch in range(3):
            staged = checkpoint.stage("a", epoch, 0, [batch(epoch, len(name))])
            checkpoint.commit("a", epoch, [staged])
    record = f"log/a/{1:020}/committed.json"
    (tmp_path / "one" / record).write_bytes((tmp_path / "other" / record).read_bytes())
    with pytest.raises(CorruptCheckpointError, match="epoch 1 of input 'a' does not follow the on"):
        list(Checkpoint(tmp_path / "one").committed("a", -1))


def test_a_record_that_is_lost_after_a_prune_is_a_named_error(place: Place) -> None:
    checkpoint = five_epochs(place)
    checkpoint.commit_manifest(1, [checkpoint.write_part(1, 0, {})], {})
    checkpoint.prune(1)
    checkpoint.commit("edges", 5, [])
    assert list(everything(place.checkpoint(), "edges", after=1)) == [2, 3, 4, 5]
    place.remove(place.record(2))
    with pytest.raises(CorruptCheckpointError, match=r"of epoch 2, number 2; .* that of epoch 1"):
        everything(place.checkpoint(), "edges", after=1)


def test_pruning_leaves_what_comes_after_and_what_is_not_committed(place: Place) -> None:
    checkpoint = place.checkpoint()
    for epoch in range(5):
        attempts = [checkpoint.stage("edges", epoch, n, [batch(epoch)]) for n in range(2)]
        if epoch < 4:
            checkpoint.commit("edges", epoch, attempts[:1])
    part = checkpoint.write_part(1, 0, {})
    checkpoint.commit_manifest(1, [part], {})
    checkpoint.prune(1)
    assert everything(checkpoint, "edges") == {2: [2], 3: [3]}
    attempts = [name.split("/")[2:] for name in place.names() if "attempt" in name]
    # Of 2 and 3 the attempts that lost are gone; of 4 nobody has won yet.
    assert [(int(epoch), name[8:9]) for epoch, name in attempts] == [
        (2, "0"),
        (3, "0"),
        (4, "0"),
        (4, "1"),
    ]


def test_pruning_leaves_a_repeat_that_is_being_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an epoch that is committed: it will lose, but whoever stages it does nothing wrong."""
    checkpoint = Checkpoint(tmp_path)
    for epoch in (0, 1):
        checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, "first", [batch(epoch)])])
    checkpoint.commit_manifest(0, [checkpoint.write_part(0, 0, {})], {})
    sync = os.fsync

    def prune_before(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        checkpoint.prune()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", prune_before)
    late = checkpoint.stage("a", 1, "late", [batch(1)])
    assert os.fsync is sync
    assert not checkpoint.commit("a", 1, [late])
    assert everything(checkpoint, "a") == {1: [1]}


def test_pruning_leaves_how_far_an_input_went_on(place: Place) -> None:
    """Further than the snapshot, though the commit that says so is older than that."""
    checkpoint = place.checkpoint()
    assert checkpoint.reached("a") == 0
    checkpoint.commit("a", 0, [], 5)
    checkpoint.commit("b", 0, [])
    for epoch in (1, 2):
        checkpoint.commit_manifest(epoch, [checkpoint.write_part(epoch, 0, {})], {})
        checkpoint.prune(1)
        assert list(checkpoint.committed("a", -1)) == []
        assert (checkpoint.reached("a"), checkpoint.reached("b")) == (5, 1)
    checkpoint.commit("a", 5, [], 7)
    assert checkpoint.reached("a") == 7


def test_what_was_pruned_cannot_be_committed_again(place: Place) -> None:
    checkpoint = place.checkpoint()
    staged = checkpoint.stage("edges", 7, 0, [batch(1)])
    checkpoint.commit("edges", 7, [staged])
    checkpoint.commit_manifest(7, [checkpoint.write_part(7, 0, {})], {})
    checkpoint.prune(1)
    again = checkpoint.stage("edges", 7, 1, [batch(1)])
    assert not place.checkpoint().commit("edges", 7, [again])
    assert everything(checkpoint, "edges") == {}


def test_the_log_may_be_pruned_while_something_is_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store the note of what was pruned has another name each time."""
    checkpoint = place.checkpoint()
    for epoch in (0, 1):
        checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, 0, [batch(epoch)])])
    checkpoint.commit_manifest(0, [checkpoint.write_part(0, 0, {})], {})
    checkpoint.prune(1)
    staged = checkpoint.stage("a", 2, 0, [batch(2)])
    objects = checkpoint._log._objects
    get, pruned = objects.get, []

    def prune_before(name: str) -> pa.Buffer:
        if "/pruned" in name and not pruned:
            pruned.append(name)
            checkpoint.commit_manifest(1, [checkpoint.write_part(1, 0, {})], {})
            checkpoint.prune(1)
        return get(name)

    monkeypatch.setattr(objects, "get", prune_before)
    assert checkpoint.commit("a", 2, [staged])
    assert len(pruned) == 1
    assert everything(checkpoint, "a") == {2: [2]}


def test_a_checkpoint_may_be_sent(tmp_path: Path) -> None:
    checkpoint = pickle.loads(pickle.dumps(Checkpoint(tmp_path)))
    staged = pickle.loads(pickle.dumps(checkpoint.stage("edges", 0, 0, [batch(5)])))
    assert Staged.from_json(staged.to_json()) == staged
    assert values(Checkpoint(f"file://{tmp_path}"), [staged]) == [5]


def test_what_a_killed_writer_leaves_is_nothing(tmp_path: Path) -> None:
    """A temporary file is under another name, and goes when its epoch is pruned."""
    checkpoint = Checkpoint(tmp_path)
    staged = checkpoint.stage("edges", 0, 0, [batch(5)])
    half = (tmp_path / staged.name).with_name(".attempt-1.arrow.0a0b")
    half.write_bytes(b"ARROW1")
    checkpoint.commit("edges", 0, [staged])
    assert everything(checkpoint, "edges") == {0: [5]}
    checkpoint.commit_manifest(0, [checkpoint.write_part(0, 0, {})], {})
    checkpoint.prune(1)
    assert not half.exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="who is synced is not known")
def test_what_is_new_is_synced_with_all_folders_that_are_new_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a file that is on the disk is not found there after the machine has lost its power."""
    synced: set[Path] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    checkpoint = Checkpoint(tmp_path / "new" / "checkpoint")
    checkpoint.commit("a", 0, [checkpoint.stage("a", 0, "first", [batch(1)])])
    new = {tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())}
    assert {path.name for path in new} >= {"new", "checkpoint", "log", "a", f"{0:020}"}
    assert new <= synced


def test_a_checkpoint_is_the_same_one_as_long_as_its_folder_is_there(tmp_path: Path) -> None:
    there, below = Checkpoint(tmp_path / "a b%20"), Checkpoint(tmp_path / "a b%20" / "c")
    identity = there.identity()
    assert identity == there.identity() == Checkpoint(tmp_path / "a b%20").identity()
    within = pickle.loads(pickle.dumps(there.within("c")))
    assert identity != within.identity() == below.identity()
    assert repr(within) == repr(below)
    assert within.uri is None
    shutil.rmtree(tmp_path / "a b%20")
    assert Checkpoint(tmp_path / "a b%20").identity() != identity
