"""Handles to traces beside what was there at each time, and imports beside recomputing."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.collections.spine import Spine
from pointstamp.collections.trace_import import TraceImport
from pointstamp.errors import AsOfError
from tests.collections.delta_joins import random_epochs

SCHEMA = "a long, b string?, c long"
VALUES = [[[0, 1, 2], ["x", "y", None], [5, 6]]]


def multisets(epochs: list[Any]) -> list[Counter[Any]]:
    """What is there at each epoch."""
    now: Counter[Any] = Counter()
    found = []
    for (changes,) in epochs:
        for row, diff in changes:
            now[row] += diff
        found.append(Counter({row: n for row, n in now.items() if n}))
    return found


def read(worker: ps.Worker, epochs: list[Any], at_a_time: int, draw_seed: int) -> list[Any]:
    """(epoch, rows by `a`, all rows) of what a handle says at times that may be read."""
    draw = random.Random(draw_seed)
    with worker.dataflow() as scope:
        input_, collection = scope.new_collection(SCHEMA)
        by_a = collection.arrange("a")
        handle = by_a.trace()
        with_reader = by_a.join(by_a) if draw.random() < 0.5 else collection
        probe = with_reader.probe()
    seen = []
    for epoch, (changes,) in enumerate(epochs):
        input_.update(changes[worker.index :: worker.peers])
        input_.advance_to(epoch + 1)
        if epoch % at_a_time == at_a_time - 1:
            worker.step_while(partial(probe.less_than, epoch + 1))
            if draw.random() < 0.5:
                handle.allow_compaction(draw.randint(handle.since, max(handle.since, handle.upper)))
        with pytest.raises(AsOfError):
            handle.as_of(handle.upper)
        seen += [(time, *told(handle, time)) for time in range(handle.since, handle.upper)]
    input_.close()
    worker.run()
    assert handle.upper is None
    seen += [(time, *told(handle, time)) for time in range(handle.since, len(epochs))]
    return seen


def told(handle: ps.TraceHandle, time: int) -> tuple[list[Any], list[Any]]:
    then = handle.as_of(time)
    return [list(then.lookup(a=a)) for a in VALUES[0][0]], list(then.snapshot())


def check_as_of(seed: int, workers: int, at_a_time: int) -> None:
    draw = random.Random(seed)
    epochs = random_epochs(draw, draw.randrange(1, 9), VALUES, 8)
    history = multisets(epochs)
    parts = ps.simulate(read, epochs, at_a_time, seed, workers=workers, seed=seed)
    by_time: dict[int, list[Any]] = {}
    for seen in parts:
        last = {time: (by_key, rows) for time, by_key, rows in seen}
        for time, by_key, rows in seen:
            assert (by_key, rows) == last[time], "a time was read twice, and differs"
        for time, told_of in last.items():
            by_time.setdefault(time, []).append(told_of)
    for time, told_by in by_time.items():
        if len(told_by) < workers:
            continue  # others have compacted it
        rows = Counter(row for _, own in told_by for row in own)
        assert rows == history[time]
        found = Counter(row for by_key, _ in told_by for own in by_key for row in own)
        assert found == history[time]


def imported(
    worker: ps.Worker, epochs: list[Any], at_a_time: int, start: int, draw_seed: int
) -> list[Any]:
    """(row, time, diff) of a join in a dataflow that begins when `start` epochs were sent."""
    draw = random.Random(draw_seed)
    is_waiting, n_compacted = draw.random() < 0.5, draw.randrange(start + 1)
    has_reader = draw.random() < 0.5
    ends_first = draw.random() < 0.3
    with worker.dataflow("first") as scope:
        input_, collection = scope.new_collection(SCHEMA)
        by_a = collection.arrange("a")
        handle = by_a.trace()
        probe = (by_a.join(by_a) if has_reader else collection).probe()
    seen: list[Any] = []

    def send(epoch: int) -> None:
        (changes,) = epochs[epoch]
        input_.update(changes[worker.index :: worker.peers])
        input_.advance_to(epoch + 1)

    for epoch in range(start):
        send(epoch)
    if is_waiting:
        worker.step_while(partial(probe.less_than, start))
    handle.allow_compaction(n_compacted)
    if ends_first:
        for epoch in range(start, len(epochs)):
            send(epoch)
        input_.close()
        worker.run("first")
    with worker.dataflow("second") as scope:
        other_input, other = scope.new_collection("a long, d long")
        graph = handle.import_into(scope)
        joined = ps.delta_join([graph.collection, other], "a")
        pairs = graph.join(other)
        joined.concat(pairs).inspect(lambda row, time, diff: seen.append((row, time, diff)))
        second = joined.probe()
    handle.close()
    other_input.insert([(a, a) for a in VALUES[0][0]][worker.index :: worker.peers])
    other_input.close()
    for epoch in range(start, len(epochs)):
        if not ends_first:
            send(epoch)
        if epoch % at_a_time == at_a_time - 1:
            worker.step_while(partial(second.less_than, epoch + 1))
    input_.close()
    worker.run()
    return seen


def check_imports(seed: int, workers: int, at_a_time: int) -> None:
    draw = random.Random(seed)
    epochs = random_epochs(draw, draw.randrange(1, 9), VALUES, 8)
    start = draw.randrange(len(epochs) + 1)
    history = multisets(epochs)
    parts = ps.simulate(imported, epochs, at_a_time, start, seed, workers=workers, seed=seed)
    found = [update for part in parts for update in part]
    for time in range(start, len(epochs)):
        now: Counter[Any] = Counter()
        for row, at, diff in found:
            if at <= time:
                now[row] += diff
        wanted = Counter({(*row, row[0]): 2 * n for row, n in history[time].items()})
        assert Counter({row: n for row, n in now.items() if n}) == wanted


def check_flights(n_seen: int, n_under_way: int, n_later: int, n_acknowledged: int) -> None:
    """An import has each batch once, also those that are under way to the export when it is made.

    n_seen : so many batches the export has seen; of the next ones only the spine knows
    """
    spine = Spine(ps.Int)
    reader = spine.reader()
    reader.acknowledge(n_acknowledged)
    times = range(n_seen + n_under_way + n_later)
    batches = [(time, np.array([[time % 3, 1 if time % 2 else -1]])) for time in times]
    for time, rows in batches[: n_seen + n_under_way]:
        spine.insert(rows, time)
    found = TraceImport(spine, ())
    found.begin(n_seen)
    # Readers of the import, from here on: those that were merged they find at their last time.
    spine.reader()
    for time, rows in batches[n_seen + n_under_way :]:
        spine.insert(rows, time)
    found.take(batches[n_seen:], len(times))
    came = list(found.batches)
    assert [time for time, _ in came] == sorted({time for time, _ in came})
    for time in times:
        sums: Counter[int] = Counter()
        for at, rows in came:
            if at <= time:
                for word, diff in rows.tolist():
                    sums[word] += diff
        for rows in spine.read(time, True):
            for word, diff in rows.tolist():
                sums[word] -= diff
        assert not any(sums.values())
