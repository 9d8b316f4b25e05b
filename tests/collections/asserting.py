"""Pairs of collections that differ from some epoch on, or never, and when that is found out."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import WorkerError

Changes = list[tuple[tuple[int, int], int]]

_records = st.tuples(st.integers(0, 2), st.integers(0, 1))
_epochs = st.lists(
    st.lists(st.tuples(_records, st.sampled_from([-2, -1, 1, 1, 2])), max_size=5),
    min_size=1,
    max_size=4,
)


@st.composite
def pairs_of_collections(draw: Any) -> list[list[Changes]]:
    """Changes by epoch of two, which have the same in other orders, but for a few."""
    one = draw(_epochs)
    two = [draw(st.permutations(changes)) for changes in one]
    # What may come, and may come and go within an epoch.
    more = draw(st.lists(st.tuples(_records, st.sampled_from([1, -1])), max_size=2))
    two[draw(st.integers(0, len(two) - 1))] += more
    return [one, two]


def _first_difference(sides: list[list[Changes]]) -> int | None:
    """The first epoch at whose end they differ."""
    now: Counter[Any] = Counter()
    for epoch, (added, gone) in enumerate(zip(*sides, strict=True)):
        for row, diff in added:
            now[row] += diff
        for row, diff in gone:
            now[row] -= diff
        if any(now.values()):
            return epoch
    return None


def _run(worker: ps.Worker, sides: list[list[Changes]], at_a_time: int) -> None:
    with worker.dataflow() as scope:
        made = [scope.new_collection("a long, b long") for _ in sides]
        probe = made[0][1].assert_equal(made[1][1]).probe()
    for epoch in range(len(sides[0])):
        for (input_, _), changes in zip(made, sides, strict=True):
            mine = changes[epoch][worker.index :: worker.peers]
            # One by one, so that what cancels comes in several batches.
            for change in mine:
                input_.update([change])
            input_.advance_to(epoch + 1)
        if epoch % at_a_time == at_a_time - 1:
            worker.step_while(partial(probe.less_than, epoch + 1))
    for input_, _ in made:
        input_.close()
    worker.run()


def check_asserting(sides: list[list[Changes]], workers: int, at_a_time: int, seed: int) -> None:
    """It fails at the first epoch that differs, and at no other."""
    expected = _first_difference(sides)
    if expected is None:
        ps.simulate(_run, sides, at_a_time, workers=workers, seed=seed)
        return
    with pytest.raises(WorkerError, match=f"should be equal: at epoch {expected} there are"):
        ps.simulate(_run, sides, at_a_time, workers=workers, seed=seed)
