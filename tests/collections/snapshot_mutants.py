"""Planted bugs in snapshots of collections, one line each, as those in `mutants.py`."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checkpoint.updates_tables import ACTIONS, check_table
from tests.collections import ordered_programs  # noqa: F401  (its steps are drawn, too)
from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.lives import LifePlan, check_lives, longer
from tests.collections.loops import loop_programs
from tests.collections.programs import programs


@from_seed(8)
@without_shrinking
@given(ACTIONS, st.sampled_from([1, 5]), st.sampled_from([0, 3, 4_096]), st.integers(1, 3))
def by_tables(actions: list[Any], dead_part: int, few: int, peers: int) -> None:
    """A table by itself."""
    check_table(actions, dead_part, few, peers)


STATEFUL = ("distinct", "aggregate", "join", "intersect", "topk", "summed")

ALL, HALF = frozenset(range(40)), frozenset(range(6))
"""Epochs of which there are snapshots."""


def plans_of(workers: int, then: int) -> list[LifePlan]:
    """A life with a snapshot of each of its first epochs, and one that goes on from the last."""
    return [LifePlan(workers, 1, HALF), LifePlan(then, 7, ALL)]


@from_seed(6)
@without_shrinking
@given(programs(STATEFUL, max_steps=1), st.sampled_from([1, 2]), st.sampled_from([1, 3]))
def by_lives(program: object, workers: int, then: int) -> None:
    """Programs that are begun again after many snapshots."""
    check_lives(longer(program), plans_of(workers, then), 1, 100)


@from_seed(1)
@without_shrinking
@given(loop_programs(), st.sampled_from([1, 2]), st.sampled_from([1, 3]))
def by_lives_of_loops(program: object, workers: int, then: int) -> None:
    """The same of loops."""
    check_lives(longer(program), plans_of(workers, then), 1, 100)


SNAPSHOT_MUTANTS = [
    *_of(
        "checkpoint.keyed_updates",
        by_tables,
        [
            (
                "What is written again is there twice.",
                "BinDelta(batch, False, replaced[bin])",
                "BinDelta(batch, False)",
            ),
            (
                "A bin whose levels cancel keeps them.",
                "changes[bin] = BinDelta(messages([]), False, replaced[bin])",
                "pass",
            ),
            (
                "What was written as new is new with the next snapshot, too.",
                "        self._new, self._n_new, self._n_most = {}, 0, FEW\n        return changes",
                "        return changes",
            ),
            (
                "A bin that is empty when everything is written keeps what it had.",
                "for bin in self._nonempty - nonempty:",
                "for bin in []:",
            ),
            (
                "Levels are there still when everything is written.",
                "        self._new, self._n_new, self._n_most = {}, 0, FEW\n"
                "        self._levels = []",
                "        self._new, self._n_new, self._n_most = {}, 0, FEW",
                11,
            ),
            (
                "What cancels is taken to be alive.",
                "return (n_named - n_kept) * DEAD_PART > n_named",
                "return False",
                26,
            ),
            (
                "What is new takes the place of what it was to be put together with.",
                "self._new.setdefault(name, []).append(rows)\n            self._put_together()",
                "self._put_together()",
            ),
        ],
    ),
    *_of(
        "checkpoint.snapshot_files",
        by_lives,
        [
            (
                "What is replaced stays.",
                "before = before[: len(before) - change.n_replaced]",
                "before = before[:]",
            ),
        ],
    ),
    *_of(
        "collections.counted",
        by_lives,
        [
            (
                "The records of one input are new for another.",
                "log.add(number, changes)",
                "log.add(0, changes)",
                56,
            ),
        ],
    ),
    *_of(
        "collections.group_answers",
        by_lives,
        [
            ("Answers are not new.", 'log.add("answers", changes)', "pass", 5),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_lives,
        [
            ("What is to be taken in again is not.", "state.take_in([again])", "pass"),
        ],
    ),
    *_of(
        "collections.spine",
        by_lives,
        [
            ("A batch is not new.", 'self.log.add("rows", rows)', "pass", 20),
        ],
    ),
    *_of(
        "collections.trace",
        by_lives_of_loops,
        [
            (
                "What is new in a loop is without rounds.",
                "with_time(rows, (0, *time[1:]))",
                "with_time(rows, (0,) * self.depth)",
                12,
            ),
        ],
    ),
]
