"""Programs at times of epoch and round, whose output is looked at as of each such time.

A loop that has ended shows its last round only. Here records enter at rounds that are drawn, and
what operators make of them is compared at each epoch and round with the same made of lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from tests.collections.checks import PIECES, in_pieces
from tests.collections.running import run_epochs, set_limits_of_loops

N_ROUNDS = 4
SCHEMA = "k long, v long, r long"

Rows = Counter[Any]
Epochs = list[list[list[tuple[tuple[int, int, int], int]]]]
"""By epoch and input: changes, of rows that have the round at which they enter."""


@dataclass(frozen=True)
class LatticeProgram:
    """What two inputs go through, and how they change."""

    steps: tuple[str, ...]
    epochs: Epochs


def _least(one: Any, two: Any) -> Any:
    return one.group_by("k").agg(v=ps.min("v"))


def _greatest(one: Any, two: Any) -> Any:
    return one.group_by("k").agg(v=ps.max("v"))


def _count(one: Any, two: Any) -> Any:
    return one.group_by("k").agg(v=ps.count())


def _distinct(one: Any, two: Any) -> Any:
    return one.distinct()


def _join(one: Any, two: Any) -> Any:
    joined = one.join(two.select("k", w="v"), on="k")
    return joined.select("k", v=col("v") + col("w"))


def _intersect(one: Any, two: Any) -> Any:
    return one.intersect(two)


def _first_two(one: Any, two: Any) -> Any:
    return one.group_by("k").top_k(2, by="v", descending=False)


def _reduced(one: Any, two: Any) -> Any:
    return one.group_by("k").reduce(
        lambda key, rows: [(*key, rows[-1][1] - len(rows))], "k long, v long"
    )


def _numbered(one: Any, two: Any) -> Any:
    n = ps.row_number().over("k", order_by="v")
    return one.select("k", v=n)


def _turn(one: Any, two: Any) -> Any:
    return one.select(k="v", v="k")


def _groups(rows: Rows) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for (k, v), n in sorted(rows.items()):
        groups.setdefault(k, []).extend([v] * n)
    return groups


def _paired(one: Rows, two: Rows) -> Rows:
    found: Rows = Counter()
    for (k, v), n in one.items():
        for (other, w), m in two.items():
            if k == other:
                found[k, v + w] += n * m
    return found


STEPS: dict[str, tuple[Callable[..., Any], Callable[[Rows, Rows], Rows]]] = {
    "least": (_least, lambda one, two: Counter((k, min(vs)) for k, vs in _groups(one).items())),
    "greatest": (
        _greatest,
        lambda one, two: Counter((k, max(vs)) for k, vs in _groups(one).items()),
    ),
    "count": (_count, lambda one, two: Counter((k, len(vs)) for k, vs in _groups(one).items())),
    "distinct": (_distinct, lambda one, two: Counter(one.keys())),
    "join": (_join, _paired),
    "intersect": (_intersect, lambda one, two: one & two),
    "first two": (
        _first_two,
        lambda one, two: Counter((k, v) for k, vs in _groups(one).items() for v in vs[:2]),
    ),
    "reduced": (
        _reduced,
        lambda one, two: Counter((k, vs[-1] - len(vs)) for k, vs in _groups(one).items()),
    ),
    "numbered": (
        _numbered,
        lambda one, two: Counter(
            (k, n) for k, vs in _groups(one).items() for n in range(1, len(vs) + 1)
        ),
    ),
    "turn": (_turn, lambda one, two: Counter({(v, k): n for (k, v), n in one.items()})),
}


@st.composite
def lattice_programs(draw: Any) -> LatticeProgram:
    """Programs of 1 to 3 steps over 2 to 6 epochs; what is deleted is there."""
    steps = draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3))
    row = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, N_ROUNDS - 1))
    there: list[list[tuple[int, int, int]]] = [[], []]
    epochs: Epochs = []
    for _ in range(draw(st.integers(2, 6))):
        changes: list[list[tuple[tuple[int, int, int], int]]] = []
        for rows in there:
            come = draw(st.lists(row, max_size=4))
            n_gone = draw(st.integers(0, min(len(rows), 3)))
            gone = [rows.pop(draw(st.integers(0, len(rows) - 1))) for _ in range(n_gone)]
            rows.extend(come)
            changes.append([*((one, 1) for one in come), *((one, -1) for one in gone)])
        epochs.append(changes)
    return LatticeProgram(tuple(steps), epochs)


def expected(program: LatticeProgram) -> dict[tuple[int, int], Rows]:
    """By epoch and round: the output as of it."""
    found = {}
    kept: list[Rows] = [Counter(), Counter()]
    for epoch, changes in enumerate(program.epochs):
        for rows, pairs in zip(kept, changes, strict=True):
            for row, diff in pairs:
                rows[row] += diff
        for round_ in range(N_ROUNDS):
            one, two = (_as_of(rows, round_) for rows in kept)
            for step in program.steps:
                one = STEPS[step][1](one, two)
            found[epoch, round_] = Counter({row: n for row, n in one.items() if n})
    return found


def _as_of(rows: Rows, last: int) -> Rows:
    found: Rows = Counter()
    for (k, v, r), n in rows.items():
        if n and r <= last:
            found[k, v] += n
    return found


def check_lattice(program: LatticeProgram, workers: int, at_a_time: int, seed: int) -> None:
    """The output of all workers is right as of each epoch and round."""
    set_limits_of_loops(bool(seed % 2))
    with in_pieces(PIECES[seed // 2 % len(PIECES)]):
        parts = ps.simulate(_run, program, at_a_time, workers=workers, seed=seed)
    updates = [update for part in parts for update in part]
    assert all(diff for _, _, diff in updates)
    for (epoch, round_), rows in expected(program).items():
        found: Rows = Counter()
        for row, (e, r), diff in updates:
            if e <= epoch and r <= round_:
                found[row] += diff
        assert {row: n for row, n in found.items() if n} == rows, (epoch, round_)


def _run(worker: ps.Worker, program: LatticeProgram, at_a_time: int) -> list[Any]:
    seen: list[Any] = []

    def build(collections: Sequence[Any]) -> Any:
        with collections[0].scope.iterative() as inner:
            one, two = (
                collection.enter_at(inner, round=col("r")).select("k", "v")
                for collection in collections
            )
            for step in program.steps:
                one = STEPS[step][0](one, two)
            one.inspect(lambda row, time, diff: seen.append((row, time, diff)))
            return one.leave()

    run_epochs(worker, [SCHEMA] * 2, build, program.epochs, at_a_time)
    return seen
