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
    first, second = (_Swept(program, inputs) for _ in range(2))
    for epoch in range(len(program.epochs)):
        # The second one lags behind, and every other time something waits there meanwhile.
        if epoch and epoch % 2:
            second.update(program.epochs[epoch - 1])
        first.update(program.epochs[epoch])
        first.advance(multisets[epoch])
        if epoch and not epoch % 2:
            second.update(program.epochs[epoch - 1])
        if epoch:
            second.advance(multisets[epoch - 1])
    for swept in (first, second):
        swept.check(multisets)
        swept.view.close()


class _Swept:
    """A view, and what it gave."""

    def __init__(self, program: Program, inputs: dict[str, str]) -> None:
        self.view = View(lambda scope, **given: program.build(list(given.values())), **inputs)
        self._inputs = inputs
        self._changes: list[Any] = []
        self._snapshots: list[tuple[Any, Any]] = []

    def update(self, changes: Any) -> None:
        for name, pairs in zip(self._inputs, changes, strict=True):
            self.view.update(name, pairs)

    def advance(self, expected: Any) -> None:
        self._changes.append(self.view.advance())
        # A snapshot of records that are there fewer than no times is refused.
        if min(expected.values(), default=1) > 0:
            self._snapshots.append((self.view.snapshot(), expected))

    def check(self, multisets: list[Any]) -> None:
        for rows, expected in self._snapshots:
            assert Counter(rows) == expected
        now: Counter[Any] = Counter()
        for changes, expected in zip(self._changes, multisets, strict=False):
            for row, diff in changes:
                now[row] += diff
            assert Counter({row: n for row, n in now.items() if n}) == expected
