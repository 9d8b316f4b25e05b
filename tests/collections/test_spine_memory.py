"""Spines that are larger than memory: large batches are on disk, and all else is the same."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections.spine_memory import SpineMemory, is_on_disk
from pointstamp.containers.updates import Rows
from pointstamp.dataflow import mapped_files
from pointstamp.dataflow.spillable import WorkerMemory
from pointstamp.errors import PointstampError, UsageError
from tests.collections.checks import check_view
from tests.collections.programs import Program, programs
from tests.collections.spilled import check_merge, updates
from tests.conftest import examples


@given(updates, updates, st.sampled_from([1, 200, 3_000]))
def test_what_is_merged_in_pieces_is_what_is_merged_at_once(
    left: Rows, right: Rows, limit: int
) -> None:
    check_merge(left, right, limit)


@settings(max_examples=examples(60))
@given(programs())
def test_programs_whose_arrangements_are_on_disk_give_what_recomputing_gives(
    program: Program,
) -> None:
    check_view(program, memory_limit=64)


def totals(scope: Any, a: Any, b: Any) -> Any:
    return a.join(b, on="k").group_by("k").agg(v=ps.sum("v"))


SCHEMAS = {"a": "k long, v long", "b": "k long"}
LIMIT = 1 << 20
ROWS = 5 * LIMIT // 24


def keys_of(epoch: int, n: int) -> range:
    """Every tenth key, so that batches overlap."""
    return range(epoch, n, 10)


def loaded(directory: Path) -> ps.View:
    """A view of five times its limit."""
    view = ps.View(totals, memory_limit=LIMIT, spill_directory=directory, **SCHEMAS)
    for epoch in range(10):
        view.insert("a", [(key, key % 97) for key in keys_of(epoch, ROWS)])
        view.advance()
    return view


def test_of_five_times_the_limit_the_limit_is_in_memory(tmp_path: Path) -> None:
    with loaded(tmp_path) as view:
        memory = view._worker.environment.memory
        assert memory is not None
        assert memory.held_bytes <= LIMIT
        assert memory.held_bytes + memory.mapped.n_bytes >= 24 * ROWS
        for key in range(0, ROWS, ROWS // 20):
            view.insert("b", [(key,)])
            assert view.advance() == [((key, key % 97), 1)]
            view.delete("a", [(key, key % 97)])
            assert view.advance() == [((key, key % 97), -1)]
        assert list(tmp_path.iterdir()) == [], "files have no names"
    del view
    gc.collect()
    assert memory.mapped.n_bytes == 0
    assert memory.held_bytes < 1_000  # a message that its queue has counted


def test_after_an_error_nothing_is_left(tmp_path: Path) -> None:
    def fail() -> WorkerMemory:
        view = loaded(tmp_path)
        memory = view._worker.environment.memory
        assert memory is not None
        assert memory.mapped.n_bytes > 0
        view.insert("b", [(1,), (1,)])
        view.insert("a", [(1, (1 << 63) - 1)])
        with pytest.raises(PointstampError, match="beyond 64 bits"):
            view.advance()
        with pytest.raises(PointstampError):
            view.close()
        return memory

    memory = fail()
    gc.collect()
    assert memory.mapped.n_bytes == 0
    assert memory.files.n_files == 0


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the batch that does not fit; nothing waits for it."""
    written = []

    def full(fd: int, buffers: Any, start: int) -> int:
        if start > LIMIT:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(start)
        return os.pwrite(fd, b"".join(buffers), start)

    monkeypatch.setattr(os, "pwritev", full)

    def fail() -> None:
        with pytest.raises(PointstampError, match=r"is full .*make room, give a spill_directory="):
            loaded(tmp_path)

    fail()
    assert written
    gc.collect()


def test_what_was_read_is_let_go_of_where_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = 0  # of a quarter of the limit, 256 bytes
    monkeypatch.setattr(mapped_files, "_resident", lambda: resident)
    memory = WorkerMemory(1 << 10)
    rows = SpineMemory(memory).keep(np.ones((100, 2), np.int64))
    assert is_on_disk(rows)
    let_go = []
    monkeypatch.setattr(memory.mapped, "let_go", lambda: let_go.append(resident))
    for resident in (0, 200, 300):  # noqa: B007  (the function that is put in place gives it)
        for _ in range(mapped_files.READS):
            memory.mapped.trim()
    assert let_go == [300]
    monkeypatch.undo()
    memory.mapped.let_go()
    assert rows.sum() == 200
    memory.close()


@pytest.mark.parametrize("options", [{"memory_limit": "much"}, {"spill_directory": "/tmp"}])
def test_a_limit_that_is_none_is_refused(options: Any) -> None:
    with pytest.raises(UsageError):
        ps.View(totals, **options, **SCHEMAS)
