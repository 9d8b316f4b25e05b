"""Random programs in several lives, each begun with a chain of snapshots of those before."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable, Manifest, keyed_updates
from pointstamp.collections import order
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_order import TextOrder
from tests.collections.checks import PIECES, in_pieces
from tests.collections.programs import SCHEMA


@dataclass(frozen=True)
class Run:
    """The epochs of a program behind those of the snapshot that it begins with."""

    program: Any
    durable: Durable
    cuts: tuple[int, ...] = ()
    """Of which epochs to make snapshots."""
    at_a_time: int = 1
    schema: str = SCHEMA

    def __call__(self, worker: ps.Worker) -> tuple[list[tuple[Any, int, int]], list[Any]]:
        seen: list[tuple[Any, int, int]] = []
        with worker.dataflow("program", durable=self.durable) as scope:
            made = [scope.new_collection(self.schema) for _ in range(self.program.n_inputs)]
            result = self.program.build([collection for _, collection in made])
            result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
            probe = result.probe()
        snapshots = [worker.snapshot(cut, background=False) for cut in self.cuts]
        epochs = list(enumerate(self.program.epochs))[self.durable.epoch + 1 :]
        for epoch, changes in epochs:
            for (input_, _), pairs in zip(made, changes, strict=True):
                input_.update(pairs[worker.index :: worker.peers])
                input_.advance_to(epoch + 1)
            if epoch % self.at_a_time == 0:
                worker.step_while(partial(probe.less_than, epoch + 1))
        for input_, _ in made:
            input_.close()
        worker.run()
        return seen, [snapshot.part for snapshot in snapshots]


@contextmanager
def renewed_texts() -> Iterator[None]:
    """Texts get other numbers than they had, as in another process, and then those again.

    The random programs count on the numbers that their texts got first: not in the order of bytes.
    """
    kept, kept_order = dict(vars(TEXTS)), order.TEXT_ORDER
    TEXTS.__init__()  # type: ignore[misc]  # in place, as all modules have it
    TEXTS.numbers([b"zz", b"d", b"b", b"another"])
    order.TEXT_ORDER = TextOrder(TEXTS, 1)
    try:
        yield
    finally:
        vars(TEXTS).update(kept)
        order.TEXT_ORDER = kept_order


@dataclass(frozen=True)
class LifePlan:
    """How one life goes."""

    workers: int
    at_a_time: int
    cuts: frozenset[int]
    """Epochs of snapshots; of those that come before its own, or after the last, there are none."""
    loses_last: bool = False
    """Whether it ends before the manifest of its last snapshot is written."""
    keeps: int = 2
    """How many snapshots it leaves."""
    memory_limit: int | None = None


def check_lives(
    program: Any,
    lives: list[LifePlan],
    dead_part: int = 5,
    few: int = 4_096,
    schema: str = SCHEMA,
) -> None:
    """Each life goes on from the last snapshot before, and gives what recomputing gives.

    dead_part, few : see `keyed_updates` · schema : of its inputs
    """
    expected = program.expected()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(keyed_updates, DEAD_PART=dead_part, FEW=few),
    ):
        checkpoint = Checkpoint(folder)
        for life in lives:
            with renewed_texts():
                _live(program, life, checkpoint, expected, schema)
            if (manifest := checkpoint.latest()) is not None:
                checkpoint.prune(life.keeps)
                _check_files(Path(folder), checkpoint, manifest)


def _live(
    program: Any, life: LifePlan, checkpoint: Checkpoint, expected: list[Any], schema: str
) -> None:
    manifest = checkpoint.latest()
    durable = Durable(checkpoint, manifest)
    cuts = tuple(sorted(cut for cut in life.cuts if durable.epoch < cut < len(expected)))
    run = Run(program, durable, cuts, life.at_a_time, schema)
    # With little fuel a join has pairs on their way when a snapshot is asked for.
    with in_pieces(PIECES[len(expected) % len(PIECES)]):
        ran = ps.simulate(run, workers=life.workers, seed=len(cuts), memory_limit=life.memory_limit)
    now = Counter() if manifest is None else expected[manifest.epoch]
    check_updates([seen for seen, _ in ran], now, durable.epoch, expected)
    committed = cuts[:-1] if life.loses_last else cuts
    for number, cut in enumerate(committed):
        checkpoint.commit_manifest(cut, [parts[number] for _, parts in ran], {})


def _check_files(folder: Path, checkpoint: Checkpoint, manifest: Manifest) -> None:
    """There is what snapshots that are kept name, and what a life has lost behind the last."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.arrow")}
    behind = {name for name in found if int(name.split("/")[1]) > manifest.epoch}
    assert found - behind >= set(manifest.files())
    checkpoint.prune(1)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.arrow")}
    assert left == set(manifest.files()) | behind


def check_updates(parts: Any, now: Counter[Any], cut: int, expected: list[Counter[Any]]) -> None:
    """Updates of all epochs after `cut` add up to what is expected at each."""
    assert all(time > cut for part in parts for _, time, _ in part)
    now = Counter(now)
    for epoch in range(cut + 1, len(expected)):
        for part in parts:
            for row, time, diff in part:
                if time == epoch:
                    now[row] += diff
        assert Counter({row: n for row, n in now.items() if n}) == expected[epoch], epoch


PLANS = st.lists(
    st.builds(
        LifePlan,
        st.sampled_from([1, 2, 2, 3]),
        st.sampled_from([1, 7]),
        st.frozensets(st.integers(0, 12), min_size=1),
        st.booleans(),
        st.sampled_from([1, 2]),
        st.sampled_from([None, None, None, 4_000]),
    ),
    min_size=2,
    max_size=4,
)


def longer(program: Any) -> Any:
    """The same, whose inputs change back and forth: so that more snapshots are of few changes."""
    back = [[[(row, -diff) for row, diff in pairs] for pairs in epoch] for epoch in program.epochs]
    return replace(program, epochs=[*program.epochs, *back[1:], *program.epochs[1:]])
