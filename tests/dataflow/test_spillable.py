"""What waits goes to disk where it does not fit into the budget, and comes back in order."""

from __future__ import annotations

import errno
import gc
import os
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.communication.communicator import Message
from pointstamp.communication.link import Unsent
from pointstamp.containers import kind_of
from pointstamp.containers.arrays import Arrays
from pointstamp.dataflow import spill_files
from pointstamp.dataflow.memory_budget import bytes_in
from pointstamp.dataflow.spill_files import SpillFiles
from pointstamp.dataflow.spillable import ARRIVED, SpillableQueue, WorkerMemory
from pointstamp.errors import SpillError
from tests.conftest import examples


def batch(kind: str, n: int, value: int) -> Any:
    """A container with `n` records."""
    values = np.arange(value, value + n, dtype=np.int64)
    if kind == "rows":
        return [(int(x), str(x)) for x in values]
    if kind == "arrays":
        return Arrays(x=values)
    return pa.record_batch({"x": values, "s": pa.array([str(x) for x in values])})


def plain(item: Any) -> Any:
    """What can be compared."""
    *rest, container = item
    return *rest, list(kind_of(container).records(container))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["rows", "arrays", "columns"]), st.integers(1, 60)),
        st.just("take"),
        st.just("look"),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=examples(150))
@given(STEPS, st.sampled_from([1, 400, 3000, 10**9]))
def test_a_queue_that_spills_is_a_queue(steps: list[Any], limit: int) -> None:
    largest = 0
    with WorkerMemory(limit) as budget:
        queue, oracle = budget.queue(), deque[Any]()
        for number, step in enumerate(steps):
            if step == "take":
                if oracle:
                    assert plain(queue.popleft()) == plain(oracle.popleft())
            elif step == "look":
                if oracle:
                    assert plain(queue[0]) == plain(oracle[0])
            else:
                item = (number % 3, batch(step[0], step[1], number))
                largest = max(largest, bytes_in(item[1]))
                queue.append(item)
                oracle.append(item)
            assert len(queue) == len(oracle)
            assert sorted(of_times(queue).items()) == sorted(of_times(oracle).items())
            # What is looked at is in memory for that, and is larger there than it was.
            slack = 2 * largest if "look" in steps else largest
            assert budget.peak_bytes <= limit + slack
        while oracle:
            assert plain(queue.popleft()) == plain(oracle.popleft())
        assert budget.held_bytes == 0
        assert budget.files.n_bytes == 0


def of_times(queue: Any) -> dict[int, int]:
    """How many records of each time wait, without taking them."""
    counts: dict[int, int] = {}
    for time, container in queue:
        counts[time] = counts.get(time, 0) + kind_of(container).length(container)
    return counts


@settings(deadline=None, max_examples=examples(80))
@given(
    st.lists(st.tuples(st.sampled_from(["rows", "arrays", "columns"]), st.integers(1, 60))),
    st.sampled_from([1, 2000, 10**9]),
)
def test_a_list_that_spills_has_what_was_put_in(parts: list[Any], limit: int) -> None:
    with WorkerMemory(limit) as budget:
        batches = budget.list()
        given_ = [batch(part[0], part[1], number) for number, part in enumerate(parts)]
        batches.extend(given_)
        for _ in range(2):  # looking at it takes nothing away
            assert [plain((b,)) for b in batches] == [plain((b,)) for b in given_]
        assert len(batches) == len(given_)
        if given_:
            assert plain((batches[-1],)) == plain((given_[-1],))
        largest = max(map(bytes_in, given_), default=0)
        assert budget.peak_bytes <= limit + largest
        del batches
        budget.collect()
        assert (budget.held_bytes, budget.files.n_bytes) == (0, 0)


def test_what_is_no_container_comes_back_as_it_was() -> None:
    with WorkerMemory(1) as budget:
        values = budget.list()
        values.extend([5, "a", [1, 2], ("b", None)])
        assert list(values) == [5, "a", [1, 2], ("b", None)]
        assert values[1:3] == ["a", [1, 2]]
        with pytest.raises(IndexError, match="batch 4 of 4"):
            values[4]


def test_messages_come_back_with_their_senders() -> None:
    with WorkerMemory(1) as budget:
        queue = SpillableQueue(budget, ARRIVED)
        messages = [Message(n % 2, (n, "t"), [n] * (n + 1)) for n in range(5)]
        queue.extend(messages)
        waiting = [(m.sender, m.tag, kind_of(m.batch).length(m.batch)) for m in queue]
        assert waiting == [(m.sender, m.tag, len(m.batch)) for m in messages]
        found = [queue.popleft() for _ in messages]
        assert found == messages
        assert all(type(each) is Message for each in found)


def test_what_a_link_has_no_room_for_comes_back_as_bytes() -> None:
    with WorkerMemory(1) as budget:
        queue = budget.unsent()
        queue.append(Unsent(3, 7, [b"one", memoryview(b"two")], 6))
        assert queue[0].kind == 3  # which is looked at again until there is room
        back = queue.popleft()
        assert (back.kind, back.channel, back.n_bytes) == (3, 7, 6)
        assert b"".join(back.buffers) == b"onetwo"


def test_small_messages_are_written_together() -> None:
    with WorkerMemory(100_000) as budget:
        queue = budget.queue()
        for number in range(5000):
            queue.append((0, [number]))
        assert len(queue._blocks) < 120
        assert [queue.popleft()[1][0] for _ in range(5000)] == list(range(5000))


def test_the_disk_is_given_back_while_more_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_files, "SEGMENT_BYTES", 10_000)
    with WorkerMemory(1) as budget:
        queue = budget.queue()
        for number in range(400):
            queue.append((number, bytes_of(1000)))
            if number >= 20:
                assert queue.popleft()[0] == number - 20
        assert budget.files.n_bytes < 40_000
        assert budget.files.n_files <= 5
        assert budget.spilled_bytes > 400_000
        queue.clear()
        assert (budget.files.n_bytes, budget.files.n_files) == (0, 1)


def bytes_of(n: int) -> Any:
    return Arrays(x=np.zeros(n, np.int8))


def test_nothing_is_ever_found_in_the_directory(tmp_path: Path) -> None:
    budget = WorkerMemory(1, str(tmp_path))
    queue = budget.queue()
    queue.append((0, [1, 2]))
    assert budget.spilled_bytes
    assert list(tmp_path.iterdir()) == []
    n_open = n_descriptors()
    budget.close()
    assert n_descriptors() == n_open - 1
    with pytest.raises(SpillError, match="cannot be read in the spill directory"):
        queue.popleft()


def test_files_end_with_what_refers_to_them() -> None:
    budget = WorkerMemory(1)
    budget.queue().append((0, [1]))
    n_open = n_descriptors()
    del budget
    gc.collect()
    assert n_descriptors() == n_open - 1


def n_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_records_that_cannot_go_to_disk_are_named() -> None:
    with WorkerMemory(1) as budget:
        lock = (n for n in range(3))
        with pytest.raises(SpillError, match=r"cannot: record 1 of a batch of 2.*raise the limit"):
            budget.queue().append((0, [1, lock]))


def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with WorkerMemory(1, "/tmp") as budget:
        monkeypatch.setattr(os, "pwritev", full)
        with pytest.raises(SpillError, match=r"'/tmp', which is full .*spill_directory="):
            budget.queue().append((0, [1]))


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_directory_that_is_none_is_an_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpillError, match=f"{place}' is no directory that can be written to"):
        WorkerMemory(1, str(tmp_path / place))


def test_writes_and_reads_that_the_system_cuts_short_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.pwritev, os.preadv
    monkeypatch.setattr(os, "pwritev", lambda fd, b, at: write(fd, [memoryview(b[0])[:7]], at))
    monkeypatch.setattr(os, "preadv", lambda fd, b, at: read(fd, [memoryview(b[0])[:5]], at))
    files = SpillFiles()
    data = bytes(range(100))
    place = files.write([data, b"", data[:33]])
    assert bytes(files.read(place, 90, 43)) == (data + data[:33])[90:]
    files.close()
