"""A driver that dies at any operation on the storage, and begins again from what is there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

from pointstamp.checkpoint import BinDelta, Checkpoint, TableDelta
from tests.checkpoint.bucket import Bucket
from tests.conftest import examples

KEY = ("sums/Sum", "sum")
LAST = 8


class Killed(BaseException):
    """Not an error: nobody handles it."""


class Fuse(Bucket):
    """Ends whoever uses it at a change: before it is made, or after it was and nobody heard."""

    def __init__(self, objects: dict[str, bytes], n_changes: int, *, is_after: bool) -> None:
        super().__init__()
        self.objects = objects
        self._left = n_changes
        self._is_after = is_after

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        self._burn(is_after=False)
        made = super().open_output_stream(path, metadata)
        if self._left == 0 and self._is_after:
            # The stream is closed by whoever writes it, who is gone after that.
            self._left = -1
        return made

    def delete_file(self, path: str) -> None:
        self._burn(is_after=False)
        super().delete_file(path)
        self._burn(is_after=True)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self._burn(is_after=True)
        return super().get_file_info(paths)

    def _burn(self, *, is_after: bool) -> None:
        if is_after:
            if self._left < 0:
                raise Killed
            return
        if self._left == 0 and not self._is_after:
            raise Killed
        self._left -= 1


def number(value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"x": pa.array([value], pa.int64())})


class Life:
    """One run of the driver: what it finds, and what it does until it dies."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        manifest = checkpoint.latest()
        self.epoch = -1
        self.sum = 0
        self.part = None
        if manifest is not None:
            self.epoch, self.part = manifest.epoch, manifest.parts[0]
            for batch in checkpoint.read_bins(manifest, *KEY, [0]):
                self.sum += sum(batch["x"].to_pylist())
        for epoch, winners in checkpoint.committed("a", self.epoch):
            assert epoch == self.epoch + 1  # none is missing
            self.sum += sum(
                x for w in winners for b in checkpoint.read(w) for x in b["x"].to_pylist()
            )
            self.epoch = epoch

    def go_on(self, attempt: int, every: int, keep: int, acknowledged: list[int]) -> None:
        told = self.sum if self.part is None else None
        for epoch in range(self.epoch + 1, LAST):
            staged = self.checkpoint.stage("a", epoch, attempt, [number(epoch + 1)])
            assert self.checkpoint.commit("a", epoch, [staged])
            acknowledged.append(epoch)
            assert not self.checkpoint.commit("a", epoch, [staged])
            self.sum += epoch + 1
            if epoch % every == 0:
                # In pieces where there is a former one, or else whole.
                is_whole = told is None or self.part is None
                new = number(self.sum if is_whole else self.sum - (told or 0))
                cut = TableDelta("sums", {0: BinDelta(new, is_whole)})
                self.part = self.checkpoint.write_part(epoch, 0, {KEY: cut}, self.part)
                self.checkpoint.commit_manifest(epoch, [self.part], {})
                self.checkpoint.prune(keep)
                told = self.sum


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=6),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_what_was_acknowledged_is_there_and_nothing_counts_twice(
    deaths: list[tuple[int, bool]], every: int, keep: int
) -> None:
    objects: dict[str, bytes] = {}
    acknowledged: list[int] = []
    for attempt, (n_changes, is_after) in enumerate([*deaths, (10_000, False)]):
        bucket = Fuse(objects, n_changes, is_after=is_after)
        try:
            life = Life(Checkpoint("root", fs.PyFileSystem(bucket)))
            assert life.sum == sum(range(life.epoch + 2))
            assert life.epoch >= max(acknowledged, default=-1)
            life.go_on(attempt, every, keep, acknowledged)
        except Killed:
            continue
    assert acknowledged == sorted(set(acknowledged))
    last = Life(Checkpoint("root", fs.PyFileSystem(Fuse(objects, 10_000, is_after=False))))
    assert (last.epoch, last.sum) == (LAST - 1, sum(range(LAST + 1)))
