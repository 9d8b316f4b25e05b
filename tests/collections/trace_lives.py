"""Random programs on imports of arrangements, in several lives: see `lives`.

A first dataflow arranges what comes; a second one, which is durable as well or is not there in
some lives, and a third one, which is not durable, have the program on what they import.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable, keyed_updates
from pointstamp.errors import AsOfError
from pointstamp.kernels.consolidation import consolidate_all
from tests.collections.lives import LifePlan, _check_files, check_updates, renewed_texts
from tests.collections.programs import SCHEMA


class Anything:
    """What any operator is in: the names of those of random programs are long."""

    def __contains__(self, operator: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


ANYTHING: Any = Anything()


@dataclass(frozen=True)
class SharedLife(LifePlan):
    """How one life goes."""

    has_second: bool = True
    has_third: bool = True
    late: int = 0
    """So many epochs come before the second dataflow and the third are built."""
    reads: bool = True
    """Whether handles are read; else they are closed when all is built."""
    compacts: bool = False
    """Whether reads are given up, as far as that may be."""


@dataclass
class Seen:
    """What one worker saw in one life."""

    second: list[tuple[Any, int, int]]
    third: list[tuple[Any, int, int]]
    read: list[tuple[int, int, Counter[Any]]]
    """(number of the input, time, rows)"""
    parts: list[Any]


@dataclass(frozen=True)
class SharedRun:
    """The epochs of a program behind those of the snapshot that it begins with."""

    program: Any
    n_own: int
    """So many inputs, the last ones, are the second dataflow's own."""
    life: SharedLife
    durable: Durable
    cuts: tuple[int, ...]
    schema: str = SCHEMA
    key: str = "k"

    def __call__(self, worker: ps.Worker) -> Seen:
        seen, life, n = Seen([], [], [], []), self.life, len(self.program.epochs)
        n_shared = self.program.n_inputs - self.n_own
        first_epoch = self.durable.epoch + 1
        start = min(first_epoch + life.late, n)
        with worker.dataflow("first", durable=self.durable) as scope:
            made = [scope.new_collection(self.schema) for _ in range(n_shared)]
            handles = [collection.arrange(self.key).trace() for _, collection in made]
            probes = [made[0][1].probe()]
        for handle in handles:
            if first_epoch:
                assert (handle.since, handle.upper) == (first_epoch - 1, first_epoch)
        inputs = [input_ for input_, _ in made]
        self._send(worker, inputs, 0, range(first_epoch, start))
        if life.late:
            worker.step_while(partial(probes[0].less_than, start))
            for handle in handles:
                handle.allow_compaction(first_epoch)
        if life.has_second:
            own, probe = self._build(worker, "second", self.durable, handles, seen.second)
            inputs += own
            probes.append(probe)
            self._send(worker, own, n_shared, range(first_epoch, start))
        if life.has_third and not self.n_own:
            _, probe = self._build(worker, "third", None, handles, seen.third)
            probes.append(probe)
        if not life.reads:
            for handle in handles:
                handle.close()
        with worker.dataflow("asked") as scope:
            asked, stream = scope.new_input()
            all_have = stream.probe()
        snapshots = [worker.snapshot(cut, background=False) for cut in self.cuts]
        asked.close()
        worker.step_while(lambda: not all_have.done)
        for epoch in range(start, n):
            self._send(worker, inputs, 0, range(epoch, epoch + 1))
            if epoch % life.at_a_time == 0:
                worker.step_while(partial(_any_before, probes, epoch + 1))
                self._read(handles, seen)
        for input_ in inputs:
            input_.close()
        worker.run()
        self._read(handles, seen)
        seen.parts = [snapshot.part for snapshot in snapshots]
        return seen

    def _build(
        self,
        worker: ps.Worker,
        name: str,
        durable: Durable | None,
        handles: list[ps.TraceHandle],
        seen: list[Any],
    ) -> tuple[list[Any], Any]:
        with worker.dataflow(name, durable=durable) as scope:
            imported = [
                handle.import_into(scope, name=f"Import{number}").collection
                for number, handle in enumerate(handles)
            ]
            own = [scope.new_collection(self.schema) for _ in range(self.n_own)]
            result = self.program.build([*imported, *(collection for _, collection in own)])
            result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
            return [input_ for input_, _ in own], result.probe()

    def _send(self, worker: ps.Worker, inputs: list[Any], place: int, epochs: range) -> None:
        for epoch in epochs:
            for input_, pairs in zip(inputs, self.program.epochs[epoch][place:], strict=False):
                input_.update(pairs[worker.index :: worker.peers])
                input_.advance_to(epoch + 1)

    def _read(self, handles: list[ps.TraceHandle], seen: Seen) -> None:
        if not self.life.reads:
            return
        for number, handle in enumerate(handles):
            end = len(self.program.epochs) if handle.upper is None else handle.upper
            for time in range(handle.since, end):
                seen.read.append((number, time, _there(handle, time)))
            for outside in (handle.since - 1, handle.upper):
                if outside is not None and outside >= 0:
                    with pytest.raises(AsOfError):
                        handle.as_of(outside)
            if self.life.compacts and end:
                handle.allow_compaction(max(handle.since, end - 1))


def _there(handle: ps.TraceHandle, time: int) -> Counter[Any]:
    """What there is at a time; of some rows that may be fewer than no copies, so no snapshot."""
    rows = consolidate_all(
        [np.empty((0, handle.schema.n_words + 1), np.int64), *handle.rows_as_of(time)]
    )
    return Counter(dict(zip(handle.schema.to_rows(rows), rows[:, -1].tolist(), strict=True)))


def _any_before(probes: list[Any], time: int) -> bool:
    return any(probe.less_than(time) for probe in probes)


def multisets(program: Any, number: int) -> list[Counter[Any]]:
    """What there is of an input at each epoch."""
    now: Counter[Any] = Counter()
    found = []
    for epoch in program.epochs:
        for row, diff in epoch[number]:
            now[row] += diff
        found.append(Counter({row: n for row, n in now.items() if n}))
    return found


def check_shared_lives(
    program: Any, lives: list[SharedLife], dead_part: int = 5, few: int = 4_096
) -> None:
    """Each life goes on from the last snapshot before, and gives what recomputing gives.

    Of two inputs the second is the second dataflow's own where the number of epochs is odd.
    """
    expected = program.expected()
    n_own = 1 if program.n_inputs > 1 and len(expected) % 2 else 0
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(keyed_updates, DEAD_PART=dead_part, FEW=few),
    ):
        checkpoint = Checkpoint(folder)
        for life in lives:
            # What was sent to a dataflow that is not there is not sent again.
            life = replace(life, has_second=life.has_second or n_own > 0)
            with renewed_texts():
                _shared_life(program, n_own, life, checkpoint, expected)
            if (manifest := checkpoint.latest()) is not None:
                checkpoint.prune(life.keeps)
                _check_files(Path(folder), checkpoint, manifest)


def _shared_life(
    program: Any, n_own: int, life: SharedLife, checkpoint: Checkpoint, expected: list[Any]
) -> None:
    manifest = checkpoint.latest()
    durable = Durable(checkpoint, manifest, ANYTHING, ANYTHING)
    start = durable.epoch + 1 + life.late
    cuts = tuple(sorted(cut for cut in life.cuts if start <= cut < len(expected)))
    run = SharedRun(program, n_own, life, durable, cuts)
    limit = life.memory_limit
    ran = ps.simulate(run, workers=life.workers, seed=len(cuts), memory_limit=limit)
    now: Counter[Any] = Counter()
    if manifest is not None and any(name.startswith("second/") for name in manifest.structure):
        now = expected[manifest.epoch]
    if life.has_second:
        check_updates([seen.second for seen in ran], now, durable.epoch, expected)
    if life.has_third and not n_own:
        before = max(durable.epoch - 1, -1)
        late = max(durable.epoch, start - 1 if life.late else -1)
        _check_third([seen.third for seen in ran], before, late, expected)
    if life.reads:
        _check_reads(program, [seen.read for seen in ran])
    committed = cuts[:-1] if life.loses_last else cuts
    for number, cut in enumerate(committed):
        checkpoint.commit_manifest(cut, [seen.parts[number] for seen in ran], {})


def _check_third(parts: list[Any], before: int, start: int, expected: list[Counter[Any]]) -> None:
    """Updates from the beginning add up to what is expected at each epoch from `start` on."""
    # Totals give a row of nothing at the least time.
    assert all(time > before or time == 0 for part in parts for _, time, _ in part)
    for epoch in range(max(start, 0), len(expected)):
        now: Counter[Any] = Counter()
        for part in parts:
            for row, time, diff in part:
                if time <= epoch:
                    now[row] += diff
        assert Counter({row: n for row, n in now.items() if n}) == expected[epoch], epoch


def _check_reads(program: Any, parts: list[Any]) -> None:
    """What handles said is what there was, where all workers were asked."""
    by_place: dict[tuple[int, int], list[Counter[Any]]] = {}
    for part in parts:
        last = {(number, time): rows for number, time, rows in part}
        for number, time, rows in part:
            assert rows == last[number, time], "a time was read twice, and differs"
        for place, rows in last.items():
            by_place.setdefault(place, []).append(rows)
    for (number, time), found in by_place.items():
        if len(found) == len(parts):
            rows = {row: n for part in found for row, n in part.items()}
            assert rows == multisets(program, number)[time], (number, time)


SHARED_LIVES = st.lists(
    st.builds(
        SharedLife,
        workers=st.sampled_from([1, 1, 2, 3]),
        at_a_time=st.sampled_from([1, 7]),
        cuts=st.frozensets(st.integers(0, 12), min_size=1, max_size=6),
        loses_last=st.booleans(),
        keeps=st.sampled_from([1, 2]),
        memory_limit=st.sampled_from([None, None, None, 4_000]),
        has_second=st.sampled_from([True, True, False]),
        has_third=st.booleans(),
        late=st.sampled_from([0, 0, 1, 3]),
        reads=st.booleans(),
        compacts=st.booleans(),
    ),
    min_size=2,
    max_size=4,
)
