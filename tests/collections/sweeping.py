"""An adversary that sweeps the dictionary of texts whenever it may, and programs that it is set on.

What is freed is never entered again by the same number, so that what is overlooked is always seen;
or it is at once after the next sweep, so that what is kept by number is seen, too.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pointstamp.collections.view import View
from pointstamp.containers.text_sweep import SWEEPS, TextSweeps
from pointstamp.containers.text_users import n_users
from tests.collections.checks import limits_of
from tests.collections.programs import SCHEMA, Program

WHOLE = 1 << 40
"""A piece that is a whole sweep."""

PIECES = [WHOLE, 1_000, 100, 1]


@contextmanager
def sweeping(piece: int = WHOLE, reuses: bool = False) -> Iterator[TextSweeps]:
    """Have a sweep begin at each end of an epoch of a view where none goes on, or a piece done."""
    if n_users():
        gc.collect()  # workers that have failed, or were not closed
    SWEEPS.finish()
    before = SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses
    SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses = -WHOLE, piece, reuses
    try:
        yield SWEEPS
    finally:
        SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses = before
        SWEEPS.finish()


def check_swept(program: Program, piece: int, reuses: bool) -> None:
    """Two views, of which one is at work while the other sweeps, are what recomputing gives.

    What they gave is looked at when all is over: what was overlooked is freed by then.
    """
    with limits_of(program), sweeping(piece, reuses):
        _check(program)


def _check(program: Program) -> None:
    inputs = {f"in{number}": SCHEMA for number in range(program.n_inputs)}
    multisets = program.expected()
    views = [
        View(lambda scope, **given: program.build(list(given.values())), **inputs) for _ in range(2)
    ]
    given: list[list[Any]] = [[], []]
    snapshots: list[list[Any]] = [[], []]
    for epoch, changes in enumerate(program.epochs):
        # In every other epoch what came to the second one waits while the first one goes on.
        if epoch % 2:
            _update(views[1], inputs, changes)
        _update(views[0], inputs, changes)
        given[0].append(views[0].advance())
        if not epoch % 2:
            _update(views[1], inputs, changes)
        given[1].append(views[1].advance())
        for view, kept in zip(views, snapshots, strict=True):
            # A snapshot of records that are there fewer than no times is refused.
            if min(multisets[epoch].values(), default=1) > 0:
                kept.append((view.snapshot(), multisets[epoch]))
    for changes_of, kept in zip(given, snapshots, strict=True):
        now: Counter[Any] = Counter()
        for rows, expected in kept:
            assert Counter(rows) == expected
        for found, expected in zip(changes_of, multisets, strict=True):
            for row, diff in found:
                now[row] += diff
            assert Counter({row: n for row, n in now.items() if n}) == expected
    for view in views:
        view.close()


def _update(view: View, inputs: dict[str, str], changes: Any) -> None:
    for name, pairs in zip(inputs, changes, strict=True):
        view.update(name, pairs)
