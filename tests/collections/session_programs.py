"""Random programs with sessions of event time, and what they should give, recomputed each epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from tests.collections.temporal_programs import Multiset, Row, shown
from tests.collections.window_programs import RECORDS, counts, grouped, one_each

SESSION = ("k", "window_start", "window_end")


def sums(rows: Multiset) -> Multiset:
    """By session: how many, the sum and the least of v."""
    return one_each(
        (*key, len(found), sum(row[2] for row in found), min(row[2] for row in found))
        for key, found in grouped(rows, lambda row: (row[0], row[3], row[4])).items()
    )


def greatest(rows: Multiset) -> Multiset:
    """Of each session the record with the greatest v, then the least other columns."""
    found: Multiset = Counter()
    for of_session in grouped(rows, lambda row: (row[0], row[3])).values():
        found.update(sorted(of_session, key=lambda row: (-row[2], row))[:1])
    return found


FORMS: list[tuple[Callable[[Any], Any], Callable[[Multiset], Multiset], bool]] = [
    (
        lambda w: w.group_by(*SESSION).agg(n=ps.count(), v=ps.sum("v"), least=ps.min("v")),
        sums,
        True,
    ),
    (lambda w: w.group_by(*SESSION).top_k(1, "v"), greatest, True),
    (
        lambda w: w.group_by(*reversed(SESSION)).reduce(
            lambda key, rows: [(rows[0][2], len(rows))], "v long, n long"
        ),
        lambda rows: Counter(
            (found[0][2], len(found))
            for found in grouped(rows, lambda row: (row[0], row[3])).values()
        ),
        True,
    ),
    (
        lambda w: (
            w.filter(col("v") > 1)
            .rename({"window_start": "begins"})
            .select("begins", "window_end", "k", w=col("v") * 2)
            .group_by("begins", "w", "k", "window_end")
            .count()
        ),
        lambda rows: counts(
            Counter({row: n for row, n in rows.items() if row[2] > 1}),
            lambda row: (row[3], 2 * row[2], row[0], row[4]),
        ),
        True,
    ),
    (lambda w: w, lambda rows: rows, False),
    (
        lambda w: w.group_by("window_start").count(),
        lambda rows: counts(rows, lambda row: (row[3],)),
        False,
    ),
    (
        lambda w: w.drop("window_end").group_by("k", "window_start").count(),
        lambda rows: counts(rows, lambda row: (row[0], row[3])),
        False,
    ),
    (
        lambda w: w.select("k", length=col("window_end") - col("window_start")).distinct(),
        lambda rows: one_each({(row[0], row[4] - row[3]) for row, n in rows.items() if n > 0}),
        False,
    ),
]
"""With the operators; in plain Python of the records that were not late, with their sessions; and
whether sessions are let go when they close, so that a later one of the same bounds is another."""


class PlainSessions:
    """What the records of one key come to, by the rules of `session_windows` one at a time."""

    def __init__(self, gap: int, lateness: int) -> None:
        self.gap = gap
        self.lateness = lateness
        self.now: int | None = None
        self.there: Multiset = Counter()
        self.missing: Multiset = Counter()
        self.closed: list[Multiset] = []
        self.late: Multiset = Counter()

    def sessions(self) -> list[Multiset]:
        """The records with their sessions, of each session."""
        return [self._with_bounds(of_session) for of_session in self._parts(self.there)]

    def epoch(self, now: int | None, changes: Multiset) -> None:
        """Move the clock, delete, and then insert."""
        self.now = now
        self._close()
        for row in [row for row in self.missing if self._is_over(row[1] + self.gap)]:
            del self.missing[row]
        for row, diff in changes.items():
            if diff < 0 and row[1] is not None:
                if self._is_over(row[1] + self.gap) and not self.there[row]:
                    self._leave_out(row, -diff)
                else:
                    self.there[row] += diff
        comes: Multiset = Counter()
        for row, diff in changes.items():
            if diff > 0 and row[1] is not None:
                comes[row] += diff + self.missing.pop(row, 0)
        for row, n in [*self.there.items(), *comes.items()]:
            if n < 0:
                self.missing[row] += n
        self.there, comes = +self.there, +comes
        self._close()
        for part in self._parts(self.there + comes):
            if self._is_over(max(row[1] for row in part) + self.gap):
                for row, n in part.items():
                    self._leave_out(row, n)
            else:
                self.there.update({row: n - self.there[row] for row, n in part.items()})

    def _close(self) -> None:
        for part in self._parts(self.there):
            if self._is_over(max(row[1] for row in part) + self.gap):
                self.closed.append(self._with_bounds(part))
                self.there -= part

    def _parts(self, rows: Multiset) -> list[Multiset]:
        found: list[Multiset] = []
        last = None
        for row in sorted(row for row, n in rows.items() if n > 0):
            if last is None or row[1] - last >= self.gap:
                found.append(Counter())
            last = row[1]
            found[-1][row] = rows[row]
        return found

    def _with_bounds(self, part: Multiset) -> Multiset:
        start, end = min(row[1] for row in part), max(row[1] for row in part) + self.gap
        return Counter({(*row, start, end): n for row, n in part.items()})

    def _is_over(self, end: int) -> bool:
        return self.now is not None and end + self.lateness <= self.now

    def _leave_out(self, row: Row, n: int) -> None:
        self.late[*row, row[1], row[1] + self.gap] += n


@dataclass(frozen=True)
class InSessions:
    """Epochs of changes and of a clock, the sessions, and what follows them."""

    is_canonical: ClassVar = (False, True)
    """As of windows."""

    gap: int
    lateness: int
    by_epoch: bool
    form: int
    epochs: list[tuple[list[tuple[Row, int]], int]]

    @property
    def n_epochs(self) -> int:
        """With those at which nothing comes and sessions close, as the epochs go on."""
        return len(self.epochs) + 24

    def made(self, scope: Any) -> tuple[list[Any], list[Any]]:
        """The inputs, and what is compared: the result, and what was late."""
        input_, collection = scope.new_collection(RECORDS)
        now, clock = scope.new_clock("long")
        windowed = collection.window(
            ps.Sessions(self.gap),
            time="at",
            key="k",
            lateness=self.lateness,
            clock=None if self.by_epoch else clock,
        )
        return [input_, now], [FORMS[self.form][0](windowed), windowed.late()]

    def send(self, inputs: list[Any], epoch: int, index: int, peers: int) -> None:
        """The share of a worker; they set the clock in turns, and when it moves only."""
        changes, move = self.epochs[epoch]
        inputs[0].update(changes[index::peers])
        if move and index == epoch % peers:
            inputs[1].set(sum(move for _, move in self.epochs[: epoch + 1]))

    def expected(self) -> tuple[list[Multiset], list[Multiset]]:
        """The result, and what was late, at each epoch."""
        of_keys = {k: PlainSessions(self.gap, self.lateness) for k in range(2)}
        set_to: int | None = None
        found: tuple[list[Multiset], list[Multiset]] = ([], [])
        _, form, lets_go = FORMS[self.form]
        for epoch in range(self.n_epochs):
            changes, move = self.epochs[epoch] if epoch < len(self.epochs) else ([], 0)
            if move:
                set_to = (set_to or 0) + move
            for k, sessions in of_keys.items():
                added: Multiset = Counter()
                for row, diff in changes:
                    added[row] += diff if row[0] == k else 0
                sessions.epoch(epoch if self.by_epoch else set_to, added)
            rows = [part for each in of_keys.values() for part in (*each.closed, *each.sessions())]
            parts = rows if lets_go else [_sum(rows)]
            found[0].append(shown(_sum([form(part) for part in parts])))
            found[1].append(shown(_sum([each.late for each in of_keys.values()])))
        return found


def _sum(parts: list[Multiset]) -> Multiset:
    found: Multiset = Counter()
    for part in parts:
        found.update(part)
    return found


@st.composite
def in_sessions(draw: Any) -> InSessions:
    """Insertions, deletions of what was inserted, or is not yet, and a clock that jumps."""
    rows = st.tuples(st.integers(0, 1), st.sampled_from([None, *range(-2, 14)]), st.integers(0, 3))
    known: list[Row] = []
    owed: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 7))):
        added = draw(st.lists(st.tuples(rows, st.sampled_from([1, 1, 2])), max_size=6))
        added += [(row, 1) for row in owed]
        owed = draw(st.lists(rows, max_size=1)) if draw(st.integers(0, 5)) == 0 else []
        gone = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        for row in gone:
            known.remove(row)
        known += [row for row, n in added for _ in range(n)]
        changes = [*added, *((row, -1) for row in (*gone, *owed))]
        epochs.append((changes, draw(st.sampled_from([0, 1, 3, 6]))))
    return InSessions(
        draw(st.sampled_from([1, 2, 3, 5])),
        draw(st.sampled_from([0, 1, 3])),
        draw(st.booleans()),
        draw(st.integers(0, len(FORMS) - 1)),
        epochs,
    )
