"""Writes that have failed and happen all the same, in a store in memory; and planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from pointstamp.checkpoint import Checkpoint
from pointstamp.checkpoint import objects as module_of_objects
from pointstamp.checkpoint.input_log import InputLog
from pointstamp.checkpoint.objects import StoredObjects
from pointstamp.checkpoint.snapshot_files import SnapshotFiles
from pointstamp.checkpoint.terms import Terms
from pointstamp.errors import CheckpointError, CorruptCheckpointError
from tests.checkpoint.bucket import Bucket
from tests.checkpoint.doubtful_bucket import DoubtfulBucket
from tests.checkpoint.doubtful_lives import come_through, numbers, values

SEEDS = range(9)


def opened(bucket: Bucket) -> Checkpoint:
    return Checkpoint("root", fs.PyFileSystem(bucket))


def failing(bucket: DoubtfulBucket, outcome: str, name: str) -> None:
    """Have the next write of an object with `name` in its path end like that."""
    change = bucket._change

    def once(path: str, data: bytes | None) -> None:
        if name not in path:
            change(path, data)
            return
        bucket._change = change  # type: ignore[method-assign]
        if outcome == "answer lost":
            bucket._apply(path, data)
        if outcome == "late":
            bucket._late.append((path, data))
        raise OSError(5, "no answer")

    bucket._change = once  # type: ignore[method-assign]


def arrive(bucket: DoubtfulBucket) -> None:
    """What is late."""
    while bucket._late:
        bucket._apply(*bucket._late.pop())


def exact(seed: int = 0) -> DoubtfulBucket:
    """Of which nothing fails by chance, and nothing that is late comes by itself."""
    bucket = DoubtfulBucket(seed, 0.0)
    bucket.rolled.random = lambda: 1.0  # type: ignore[method-assign]
    return bucket


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_where_writes_fail_and_happen_later(seed: int) -> None:
    come_through(seed, (0.05, 0.12, 0.2)[seed % 3])


@pytest.mark.soak
def test_many_lives_where_writes_fail_and_happen_later() -> None:
    for seed in range(1_000, 3_000):
        come_through(seed, (0.05, 0.12, 0.2, 0.3)[seed % 4])


@pytest.mark.parametrize("outcome", ["lost", "answer lost", "late"])
def test_a_commit_that_has_failed_may_be_repeated_with_more(outcome: str) -> None:
    bucket = exact()
    checkpoint = opened(bucket)
    one = checkpoint.stage("a", 0, "one", [numbers(1)])
    failing(bucket, outcome, "/committed")
    with pytest.raises(CheckpointError, match="no answer"):
        checkpoint.commit("a", 0, [one])
    more = checkpoint.stage("a", 0, "more", [numbers(2)])
    assert checkpoint.commit("a", 0, [one, more])
    arrive(bucket)
    for reader in (checkpoint, opened(bucket)):
        ((epoch, staged),) = reader.committed("a", -1)
        assert (epoch, values(reader, staged)) == (0, [1, 2])


def test_what_a_former_life_wrote_and_comes_late_does_not_count() -> None:
    bucket = exact()
    former = opened(bucket)
    failing(bucket, "late", "/committed")
    with pytest.raises(CheckpointError, match="no answer"):
        former.commit("a", 0, [former.stage("a", 0, "one", [numbers(1)])])
    life = opened(bucket)
    life.begin()
    arrive(bucket)
    assert life.reached("a") == 0
    assert list(opened(bucket).committed("a", -1)) == []
    assert life.commit("a", 3, [life.stage("a", 3, "two", [numbers(2)])])
    assert [epoch for epoch, _ in opened(bucket).committed("a", -1)] == [3]


def test_what_a_life_has_begun_with_stays_whatever_comes_later() -> None:
    """Of two tries of a former life one is there when it begins, and one comes after."""
    bucket = exact()
    former = opened(bucket)
    for name, outcome in (("one", "answer lost"), ("two", "late")):
        staged = former.stage("a", 0, name, [numbers(len(name))])
        failing(bucket, outcome, "/committed")
        with pytest.raises(CheckpointError, match="no answer"):
            former.commit("a", 0, [staged])
    life = opened(bucket)
    life.begin()
    assert [epoch for epoch, _ in life.committed("a", -1)] == [0]
    ((_, before),) = life.committed("a", -1)
    arrive(bucket)
    for reader in (life, opened(bucket)):
        ((_, staged),) = reader.committed("a", -1)
        assert staged == before


def test_a_program_that_was_followed_by_another_commits_nothing() -> None:
    bucket = Bucket()
    former, life = opened(bucket), opened(bucket)
    assert former.commit("a", 0, [])
    life.begin()
    with pytest.raises(CheckpointError, match="another program has begun to commit to it"):
        former.commit("a", 1, [former.stage("a", 1, "late", [numbers(1)])])
    assert [epoch for epoch, _ in life.committed("a", -1)] == [0]
    assert life.commit("a", 1, [])
    with pytest.raises(CheckpointError, match="only one may"):
        former.commit("a", 2, [])
    assert [len(staged) for _, staged in opened(bucket).committed("a", -1)] == [0, 0]


def test_the_loss_of_the_last_record_is_found_if_another_life_has_begun_with_it() -> None:
    bucket = Bucket()
    checkpoint = opened(bucket)
    for epoch in range(2):
        checkpoint.commit("a", epoch, [])
    opened(bucket).begin()
    (last,) = (name for name in bucket.objects if f"{1:020}/committed" in name)
    del bucket.objects[last]
    with pytest.raises(CorruptCheckpointError, match="record of epoch 1 of input 'a', number 1, i"):
        list(opened(bucket).committed("a", -1))


@pytest.mark.parametrize("outcome", ["answer lost", "late"])
def test_a_snapshot_whose_manifest_may_come_keeps_its_parts(outcome: str) -> None:
    bucket = exact()
    checkpoint = opened(bucket)
    checkpoint.commit("a", 0, [])
    beside = checkpoint.stage("output: o", 1, "w", [numbers(7)])
    failing(bucket, outcome, "manifest")
    with pytest.raises(CheckpointError, match="no answer"):
        checkpoint.commit_manifest(0, [checkpoint.write_part(0, 0, {})], {})
    checkpoint.discard_snapshot(0, ["output: o"])
    arrive(bucket)
    manifest = opened(bucket).latest()
    assert manifest is not None
    assert values(opened(bucket), [beside]) == [7]


def test_a_writer_that_fails_between_two_parts_leaves_no_object() -> None:
    """Arrow closes a stream whatever has ended it, and what is closed is an object."""
    bucket = Bucket()
    objects = StoredObjects(fs.PyFileSystem(bucket), "root")
    with pytest.raises(TypeError):
        objects.put("half", [b"half", object()])  # type: ignore[list-item]
    assert bucket.objects == {}
    objects.put("whole", [b"ha", b"lf"])
    assert bucket.objects == {"root/whole": b"half"}


def test_a_commit_while_the_log_is_listed_is_no_loss() -> None:
    bucket = Bucket()
    checkpoint = opened(bucket)
    for epoch in range(2):
        checkpoint.commit("a", epoch, [checkpoint.stage("a", epoch, "one", [numbers(epoch)])])
    staged = checkpoint.stage("a", 2, "one", [numbers(2)])
    listed = bucket.get_file_info_selector

    def then_committed(selector: fs.FileSelector) -> list[fs.FileInfo]:
        found = listed(selector)
        if selector.recursive:
            bucket.get_file_info_selector = listed  # type: ignore[method-assign]
            assert checkpoint.commit("a", 2, [staged])
        return found

    bucket.get_file_info_selector = then_committed  # type: ignore[method-assign]
    assert [epoch for epoch, _ in checkpoint.committed("a", -1)] == [0, 1]
    assert [epoch for epoch, _ in checkpoint.committed("a", -1)] == [0, 1, 2]


def test_what_is_made_piece_by_piece_is_there_when_all_of_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond some bytes it is put together on the disk; the store is given nothing before."""
    monkeypatch.setattr(module_of_objects, "IN_MEMORY_BYTES", 25)
    bucket = Bucket()
    objects = StoredObjects(fs.PyFileSystem(bucket), "root")

    def pieces(n: int, fails: bool) -> Iterator[bytes]:
        yield from (b"%09d\n" % number for number in range(n))
        if fails:
            raise pa.ArrowInvalid("not of one schema")

    for n in (0, 1, 2, 3, 100):
        with pytest.raises(pa.ArrowInvalid, match="not of one schema"):
            objects.put(f"{n}", pieces(n, fails=True))
        assert bucket.objects == {}
        objects.put(f"{n}", pieces(n, fails=False))
        assert bucket.objects.pop(f"root/{n}") == b"".join(pieces(n, fails=False))


# Planted bugs: each is one of the rules of `terms.py`, left out.


def _removing(log: Any, input: str, epoch: int, staged: Any) -> None:
    log._doubtful = set()
    abort(log, input, epoch, staged)


def _of_any_term(log: Any, input: str, read: Any, begun: Any, noted: Any) -> Any:
    if not read:
        return last_of(log, input, read, begun, noted)
    return max(read, key=lambda each: (each[1].number, each[0].term))[2]


def _of_first_term(log: Any, input: str, read: Any, begun: Any, noted: Any) -> Any:
    since = [each for each in read if each[0].term >= begun]
    if log._is_begun or not since:
        return last_of(log, input, read, begun, noted)
    last = max(each[1].number for each in since)
    return min((each for each in since if each[1].number == last), key=lambda each: each[0].term)[2]


def _discarding(files: Any, epoch: int) -> bool:
    files._doubtful = set()
    return discard(files, epoch)


abort, last_of, discard = InputLog.abort, InputLog._last_of, SnapshotFiles.discard

PLANTED: dict[str, list[tuple[type, str, Any]]] = {
    "a try has the name of the one before": [(Terms, "drop", lambda terms: None)],
    "nobody looks who has begun since": [(Terms, "check", lambda terms: None)],
    "what a record names that may come is removed": [(InputLog, "abort", _removing)],
    "what comes after a life has begun counts": [(InputLog, "_last_of", _of_any_term)],
    "of two tries the first counts": [(InputLog, "_last_of", _of_first_term)],
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, planted in PLANTED[bug]:
        monkeypatch.setattr(owner, name, planted)
    for seed in range(60):
        try:
            come_through(seed, 0.2)
        except (AssertionError, CheckpointError):
            return
    pytest.fail(f"not found: {bug}")


def test_a_planted_bug_of_manifests_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotFiles, "discard", _discarding)
    with pytest.raises(CheckpointError, match="is not there"):
        test_a_snapshot_whose_manifest_may_come_keeps_its_parts("late")
