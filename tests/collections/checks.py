"""A program run as a view, and on simulated workers, compared with recomputing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pointstamp as ps
from pointstamp.collections import aggregate, batch_merges, join_fuel, order
from pointstamp.collections.view import View
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_order import TextOrder
from pointstamp.containers.text_sweep import SWEEPS
from pointstamp.operators import feedback
from tests.collections import ordered_programs  # noqa: F401  (its steps are drawn, too)
from tests.collections.programs import SCHEMA, Program
from tests.collections.running import run_epochs, set_limits_of_loops

MERGES = [(4, 4_096, 64), (1, 0, 1), (4, 0, 1), (0, 4, 1)]
"""Fuel, what is merged at once, and after how many updates: the defaults, and small ones."""

PIECES = [
    (join_fuel.FUEL, aggregate.MANY_PARTS, aggregate.MANY_ROWS),
    (1, 2, 1),
    (7, 3, 10),
]
"""How much a join makes at a time, and in how many parts how much waits as it is."""


def check_view(program: Program, memory_limit: int | None = None) -> None:
    """At each epoch a view's changes add up to what recomputing gives."""
    with limits_of(program):
        _check_view(program, memory_limit)


def _check_view(program: Program, memory_limit: int | None) -> None:
    inputs = {f"in{number}": SCHEMA for number in range(program.n_inputs)}
    view = View(
        lambda scope, **given: program.build(list(given.values())),
        memory_limit=memory_limit,
        **inputs,
    )
    now: Counter[Any] = Counter()
    for changes, expected in zip(program.epochs, program.expected(), strict=True):
        for name, pairs in zip(inputs, changes, strict=True):
            view.update(name, pairs)
        for row, diff in view.advance():
            assert diff
            now[row] += diff
        assert Counter({row: n for row, n in now.items() if n}) == expected
    view.close()


def check_workers(program: Program, workers: int, at_a_time: int, seed: int) -> None:
    """So do the updates of all workers, of which each changes its share."""
    with limits_of(program):
        parts = ps.simulate(_run, program, at_a_time, workers=workers, seed=seed)
    found = [update for part in parts for update in part]
    assert _multisets(found, len(program.epochs)) == program.expected()


@contextmanager
def limits_of(program: Program) -> Iterator[None]:
    """Limits that a program runs with: of every other one small ones.

    Labels that texts share, batches that are merged at once, epochs one by one in loops.
    """
    is_small = len(program.steps) % 2
    SWEEPS.order = order.TEXT_ORDER = TextOrder(TEXTS, 1 if is_small else 1 << 62)
    ahead, feedback.AHEAD = feedback.AHEAD, 1 if is_small else 100
    set_limits_of_loops(bool(is_small))
    try:
        with (
            merging(MERGES[len(program.steps) % len(MERGES)]),
            in_pieces(PIECES[len(program.steps) % len(PIECES)]),
        ):
            yield
    finally:
        feedback.AHEAD = ahead


@contextmanager
def merging(limits: tuple[int, int, int]) -> Iterator[None]:
    """Have merges go on by other pieces: one of `MERGES`."""
    batch_merges.FUEL, batch_merges.AT_ONCE, batch_merges.LUMP = limits
    try:
        yield
    finally:
        batch_merges.FUEL, batch_merges.AT_ONCE, batch_merges.LUMP = MERGES[0]


@contextmanager
def in_pieces(limits: tuple[int, int, int]) -> Iterator[None]:
    """Have what joins make leave, and be put together, by pieces: one of `PIECES`."""
    join_fuel.FUEL, aggregate.MANY_PARTS, aggregate.MANY_ROWS = limits
    try:
        yield
    finally:
        join_fuel.FUEL, aggregate.MANY_PARTS, aggregate.MANY_ROWS = PIECES[0]


def _run(worker: ps.Worker, program: Program, at_a_time: int) -> list[tuple[Any, int, int]]:
    schemas = [SCHEMA] * program.n_inputs
    return run_epochs(worker, schemas, program.build, program.epochs, at_a_time)


def _multisets(found: list[tuple[Any, int, int]], n_epochs: int) -> list[Counter[Any]]:
    """The result at each epoch, of its updates (row, epoch, diff)."""
    now: Counter[Any] = Counter()
    result = []
    for epoch in range(n_epochs):
        for row, time, diff in found:
            if time == epoch:
                now[row] += diff
        result.append(Counter({row: n for row, n in now.items() if n}))
    return result
