"""An adversary that sweeps the dictionary of texts whenever it may, and programs that it is set on.

What is freed is never entered again by the same number, so that what is overlooked is always seen;
or it is at once after the next sweep, so that what is kept by number is seen, too.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import order
from pointstamp.collections.view import View
from pointstamp.containers.dictionary import TEXTS, Dictionary
from pointstamp.containers.text_order import TextOrder
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
    # A traceback may keep views in which something waits; nothing is done with them any more.
    SWEEPS._holders.clear()
    before = SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses
    SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses = -WHOLE, piece, reuses
    with _no_texts_before():
        try:
            yield SWEEPS
        finally:
            SWEEPS.spare, SWEEPS.piece, SWEEPS.reuses = before
            SWEEPS.finish()


@contextmanager
def _no_texts_before() -> Iterator[None]:
    """Have an empty dictionary, and afterwards that of before.

    Other tests leave very many numbers, all of which each sweep looks at: by small pieces none
    would be over before a program is.
    """
    texts, ordered, results = {**vars(TEXTS)}, SWEEPS.order, SWEEPS._results
    used, SWEEPS._used = SWEEPS._used, 0
    Dictionary.__init__(TEXTS)
    SWEEPS.order = order.TEXT_ORDER = TextOrder(TEXTS, ordered._most)
    SWEEPS._results = WeakValueDictionary()
    SWEEPS._last.clear()
    try:
        yield
    finally:
        vars(TEXTS).update(texts)
        SWEEPS._used = used
        SWEEPS.order = order.TEXT_ORDER = ordered
        SWEEPS._results = results
        SWEEPS._last.clear()


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


ALONE: dict[str, Callable[..., Any]] = {
    "sums": lambda scope, t: t.group_by("t").agg(n=ps.count()).group_by("n").count(),
    "groups": lambda scope, t: t.group_by("t").agg(n=ps.median("k")).group_by("n").count(),
    "least": lambda scope, t: (
        t.group_by("k").agg(least=ps.min("t")).select("k", n=col("least").length())
    ),
    "most frequent": lambda scope, t: (
        t.group_by("k").agg(most=ps.mode("t")).select("k", n=col("most").length())
    ),
    "in the middle": lambda scope, t: (
        t.group_by("k").agg(middle=ps.median("t")).select("k", n=col("middle").length())
    ),
    "rounded": lambda scope, t: (
        t.select("t", x=col("k").cast("double"))
        .group_by("t")
        .agg(x=ps.sum("x", approximate=True))
        .group_by("x")
        .count()
    ),
    "different": lambda scope, t: t.group_by("k").agg(n=ps.count_distinct("t")),
    "collected": lambda scope, t: (
        t.group_by("k").agg(all=ps.collect_list("t")).group_by("k").count()
    ),
    "counted": lambda scope, t: t.intersect(t).select("k"),
    "first": lambda scope, t: t.group_by("k").top_k(1, by="t").select("k", n=col("t").length()),
    "joined": lambda scope, t: t.join(t.select("t", j="k"), on="t").select("k", "j"),
    "present": lambda scope, t: t.temporal_filter("k", col("k") + 4).select("k"),
    "loop": lambda scope, t: t.iterate(lambda found: found.concat(t).distinct(), limit=2).select(
        "k"
    ),
    "joined in a loop": lambda scope, t: t.iterate(
        lambda found: found.join(t.select("t", j="k"), on="t").select("t", k="j"),
        limit=2,
    ).select("k"),
}
"""Programs whose results have no texts, so that of those that an operator keeps no other one says
that they are there: by what keeps them."""


def check_alone(name: str) -> None:
    """Texts that one operator keeps are known again when their records are deleted."""
    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        swept = _of_new_texts(ALONE[name])
        assert sweeps.stats().sweeps > n_before + 6, sweeps.stats().refused
    assert swept == _of_new_texts(ALONE[name])


def _of_new_texts(build: Callable[..., Any]) -> list[Any]:
    def rows(epoch: int) -> list[tuple[int, str]]:
        return [(epoch + k % 2, f"a text that is new in epoch {epoch}: {k}") for k in range(3)]

    found: list[Any] = []
    with View(build, t="k long, t string") as view:
        for epoch in range(9):
            view.insert("t", rows(epoch))
            if epoch >= 3:
                view.delete("t", rows(epoch - 3))
            found += [list(view.advance()), list(view.advance())]
    return found


def check_bystanders() -> None:
    """What was handed out, what another view keeps, and what waits for its next epoch, stays."""
    with (
        sweeping(),
        View(lambda scope, t: t.negate().negate(), t="t string") as one,
        View(lambda scope, t: t.negate().negate(), t="t string") as other,
    ):
        other.insert("t", [("the other one keeps it",)])
        other.advance()
        handed_out = []
        for turn in range(6):
            one.insert("t", [(f"it comes in turn {turn}",)])
            if turn:
                one.delete("t", [(f"it comes in turn {turn - 1}",)])
            handed_out.append(one.advance())
            one.advance()
        other.insert("t", [("it waits",)])
        for _ in range(3):
            one.advance()
        assert other.advance() == [(("it waits",), 1)]
        assert other.snapshot() == [("it waits",), ("the other one keeps it",)]
        for turn, changes in enumerate(handed_out):
            assert ((f"it comes in turn {turn}",), 1) in changes
