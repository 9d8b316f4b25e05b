"""Random programs with windows of event time, and what they should give, recomputed each epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from tests.collections.temporal_programs import Multiset, Row, shown

RECORDS = "k long, at long?, v long"


def grouped(rows: Multiset, key: Callable[[Row], Row]) -> dict[Row, list[Row]]:
    """The rows that are there, each as often as it is, by key."""
    found: dict[Row, list[Row]] = {}
    for row, n in rows.items():
        found.setdefault(key(row), []).extend([row] * n)
    return {group: sorted(of_group) for group, of_group in found.items() if of_group}


def one_each(rows: Any) -> Multiset:
    """Each of some rows once."""
    return Counter(list(rows))


def sums(rows: Multiset) -> Multiset:
    """By k and window: how many, the sum and the least of v."""
    groups = grouped(rows, lambda row: (row[0], row[4]))
    return one_each(
        (*key, len(found), sum(row[2] for row in found), min(row[2] for row in found))
        for key, found in groups.items()
    )


def counts(rows: Multiset, key: Callable[[Row], Row]) -> Multiset:
    """How many, by a key."""
    return one_each((*group, len(found)) for group, found in grouped(rows, key).items())


def greatest(rows: Multiset) -> Multiset:
    """Of each window both with the greatest v, then the least other columns."""
    found: Multiset = Counter()
    for of_window in grouped(rows, lambda row: (row[3],)).values():
        in_order = sorted(of_window, key=lambda row: (-row[2], row))
        found.update(in_order[:2])
    return found


FORMS: list[tuple[Callable[[Any], Any], Callable[[Multiset], Multiset]]] = [
    (
        lambda w: w.group_by("k", "window_end").agg(n=ps.count(), v=ps.sum("v"), least=ps.min("v")),
        sums,
    ),
    (
        lambda w: w.group_by("window_start").count(),
        lambda rows: counts(rows, lambda row: (row[3],)),
    ),
    (lambda w: w.group_by("window_start").top_k(2, "v"), greatest),
    (
        # What the function gives has no window.
        lambda w: w.group_by("window_start").reduce(
            lambda key, rows: [(rows[0][2], len(rows))], "v long, n long"
        ),
        lambda rows: Counter(
            (found[0][2], len(found)) for found in grouped(rows, lambda row: (row[3],)).values()
        ),
    ),
    (
        lambda w: (
            w.filter(col("v") > 1)
            .rename({"window_start": "begins"})
            .select("begins", "k", w=col("v") * 2)
            .group_by("begins", "w")
            .count()
        ),
        lambda rows: counts(
            Counter({row: n for row, n in rows.items() if row[2] > 1}),
            lambda row: (row[3], 2 * row[2]),
        ),
    ),
    (lambda w: w, lambda rows: rows),
    (lambda w: w.group_by("k").count(), lambda rows: counts(rows, lambda row: (row[0],))),
    (
        lambda w: w.select("k", length=col("window_end") - col("window_start")).distinct(),
        lambda rows: one_each({(row[0], row[4] - row[3]) for row, n in rows.items() if n > 0}),
    ),
]
"""With the operators, and in plain Python of the records that were not late, with their windows."""


@dataclass(frozen=True)
class Windowed:
    """Epochs of changes and of a clock, the windows, and what follows them."""

    is_canonical: ClassVar = (False, True, True)
    """Equal rows of the result are of several windows where these are selected away."""

    windows: ps.Sliding
    lateness: int
    by_epoch: bool
    form: int
    epochs: list[tuple[list[tuple[Row, int]], int]]

    @property
    def n_epochs(self) -> int:
        """With those at which nothing comes and windows close, as the epochs go on."""
        return len(self.epochs) + 24

    def build(self, records: Any, clock: Any) -> tuple[Any, Any, Any]:
        """The result, what was late, and the records that are kept."""
        windowed = records.window(
            self.windows,
            time="at",
            lateness=self.lateness,
            clock=None if self.by_epoch else clock,
        )
        return FORMS[self.form][0](windowed), windowed.late(), windowed._open

    def made(self, scope: Any) -> tuple[list[Any], list[Any]]:
        """The inputs, and what is compared: the result, what was late, and what is kept."""
        input_, collection = scope.new_collection(RECORDS)
        now, clock = scope.new_clock("long")
        return [input_, now], list(self.build(collection, clock))

    def send(self, inputs: list[Any], epoch: int, index: int, peers: int) -> None:
        """The share of a worker; they set the clock in turns, and when it moves only."""
        changes, move = self.epochs[epoch]
        inputs[0].update(changes[index::peers])
        if move and index == epoch % peers:
            inputs[1].set(sum(move for _, move in self.epochs[: epoch + 1]))

    def expected(self) -> tuple[list[Multiset], list[Multiset], list[Multiset]]:
        """The result, what was late, and what is kept, at each epoch."""
        there: Multiset = Counter()
        late: Multiset = Counter()
        set_to: int | None = None
        found: tuple[list[Multiset], list[Multiset], list[Multiset]] = ([], [], [])
        for epoch in range(self.n_epochs):
            changes, move = self.epochs[epoch] if epoch < len(self.epochs) else ([], 0)
            if move:
                set_to = (set_to or 0) + move
            now = epoch if self.by_epoch else set_to
            net: Multiset = Counter()
            for row, diff in changes:
                net[row] += diff
            for row, diff in net.items():
                for start, end in self._windows_of(row[1]):
                    if now is not None and end + self.lateness <= now:
                        late[*row, start, end] += abs(diff)
                    else:
                        there[*row, start, end] += diff
            found[0].append(shown(FORMS[self.form][1](shown(there))))
            found[1].append(shown(late))
            is_open = {row for row in there if now is None or row[4] + self.lateness > now}
            found[2].append(shown(Counter({row: there[row] for row in is_open})))
        return found

    def _windows_of(self, at: int | None) -> list[tuple[int, int]]:
        if at is None:
            return []
        starts = [start for start in range(at - 20, at + 1) if self._begins(start)]
        size: Any = self.windows.size
        return [(start, start + size) for start in starts if start <= at < start + size]

    def _begins(self, start: int) -> bool:
        slide: Any = self.windows.slide
        offset: Any = self.windows.offset
        return bool((start - offset) % slide == 0)


@st.composite
def windowed(draw: Any) -> Windowed:
    """Insertions, deletions of what was inserted, and a clock that jumps."""
    rows = st.tuples(
        st.integers(0, 1), st.one_of(st.none(), st.integers(-3, 12)), st.integers(0, 3)
    )
    known: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        added = draw(st.lists(st.tuples(rows, st.sampled_from([1, 1, 2])), max_size=5))
        gone = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        for row in gone:
            known.remove(row)
        known += [row for row, n in added for _ in range(n)]
        epochs.append(([*added, *((row, -1) for row in gone)], draw(st.sampled_from([0, 1, 3, 6]))))
    windows = draw(
        st.sampled_from(
            [
                ps.Tumbling(4),
                ps.Tumbling(1),
                ps.Tumbling(5, 2),
                ps.Sliding(6, 2),
                ps.Sliding(5, 3, 1),
                ps.Sliding(2, 5, has_gaps=True),
            ]
        )
    )
    form = draw(st.integers(0, len(FORMS) - 1))
    return Windowed(windows, draw(st.sampled_from([0, 1, 3])), draw(st.booleans()), form, epochs)
