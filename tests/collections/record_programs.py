"""Random programs on collections without a schema, and what recomputing with Counters gives.

Functions of records give the same for equal ones, such as 1, 1.0 and True, which may stand for
each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers.keys import canonical_key, hash_key
from tests.collections.running import run_epochs
from tests.collections.temporal_programs import accumulated

Multiset = Counter[Any]


def fresh(record: Any) -> Any:
    """With other objects as its NaN."""
    if isinstance(record, tuple):
        return tuple(map(fresh, record))
    return float("nan") if record is math.nan else record


RECORDS = st.sampled_from(
    [
        *(0, 1, 1.0, True, 2, 2.5, -1, None, "a", "1", b"a", "", b"", (), (1,), (True,), (1, "a")),
        *(math.nan, (math.nan, 1), frozenset([1, 2]), ((0, 1), None), 1 << 70),
    ]
)


def bucket(record: Any) -> int:
    return hash_key(record) % 3


def rank(record: Any) -> tuple[Any, ...]:
    """An order of all: a tuple of one, and bytes, have the hashes of what they are of."""
    return hash_key(record), shape(record)


def shape(record: Any) -> str:
    """Where in a record there are tuples, and bytes."""
    if isinstance(record, tuple):
        return f"({''.join(map(shape, record))})"
    return "b" if isinstance(record, bytes) else "-"


def succeeding(record: Any) -> int:
    """One of five, which leads to another one of them."""
    return (hash_key(record) + 1) % 5


def groups(records: Multiset) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for record in records.elements():
        found.setdefault(bucket(record), []).append(record)
    return found


def joined(left: Multiset, right: Multiset, how: str) -> Multiset:
    """Pairs of records of one bucket."""
    one, two = groups(left), groups(right)
    nothing: list[Any] = [None]
    found: Multiset = Counter()
    for key in one.keys() | two.keys():
        has_partner = key in one and key in two
        if how == "semi":
            found.update(one[key] if has_partner else [])
        elif how == "anti":
            found.update(one[key] if key not in two else [])
        elif has_partner or how == "full" or (how != "inner" and key in (one, two)[how == "right"]):
            found.update((a, b) for a in one.get(key, nothing) for b in two.get(key, nothing))
    return found


def closure(records: Multiset) -> Multiset:
    found = set(records)
    while not {succeeding(record) for record in found} <= found:
        found |= {succeeding(record) for record in found}
    return Counter(found)


def least(records: Multiset) -> Multiset:
    """Of each bucket, of what the least ones lead to."""
    while True:
        there = groups(records + Counter(map(succeeding, records.elements())))
        found = Counter(min(group, key=rank) for group in there.values())
        if found == records:
            return found
        records = found


Step = tuple[Callable[[Any, Any], Any], Callable[[Multiset, Multiset], Multiset]]

STEPS: list[Step] = [
    (
        lambda one, two: one.map(lambda record: (record, bucket(record))),
        lambda one, two: Counter((record, bucket(record)) for record in one.elements()),
    ),
    (
        lambda one, two: one.filter(bucket, lambda record: bucket(record) < 2),
        lambda one, two: Counter(record for record in one.elements() if bucket(record) == 1),
    ),
    (
        lambda one, two: one.flat_map(lambda record: [bucket(record)] + [record] * bucket(record)),
        lambda one, two: Counter(
            made for r in one.elements() for made in [bucket(r)] + [r] * bucket(r)
        ),
    ),
    (lambda one, two: one.concat(two, two), lambda one, two: one + two + two),
    (lambda one, two: one.consolidate().negate().negate(), lambda one, two: one),
    (lambda one, two: one.distinct(), lambda one, two: Counter(one.keys())),
    (
        lambda one, two: one.threshold(lambda counts: np.minimum(counts, 2)),
        lambda one, two: Counter({record: min(n, 2) for record, n in one.items()}),
    ),
    (lambda one, two: one.intersect(two), lambda one, two: one & two),
    (lambda one, two: one.subtract(two), lambda one, two: one - two),
    (lambda one, two: one.count(), lambda one, two: Counter([one.total()])),
    (
        lambda one, two: one.group_by(bucket).count(),
        lambda one, two: Counter((key, len(found)) for key, found in groups(one).items()),
    ),
    (
        lambda one, two: one.group_by(bucket).agg(n=len, sets=frozenset),
        lambda one, two: Counter(
            (key, len(found), frozenset(found)) for key, found in groups(one).items()
        ),
    ),
    (
        lambda one, two: one.group_by(bucket).top_k(2, by=rank),
        lambda one, two: Counter(
            record
            for found in groups(one).values()
            for record in sorted(found, key=rank, reverse=True)[:2]
        ),
    ),
    (
        lambda one, two: one.group_by(bucket, lambda record: 0).reduce(
            lambda key, found: [key, *sorted(found, key=rank)[1:2]] if len(found) % 2 else []
        ),
        lambda one, two: Counter(
            made
            for key, found in groups(one).items()
            if len(found) % 2
            for made in [(key, 0), *sorted(found, key=rank)[1:2]]
        ),
    ),
    *(
        (
            lambda one, two, how=how: one.join(two, on=bucket, how=how),
            lambda one, two, how=how: joined(one, two, how),
        )
        for how in ("inner", "left", "right", "full", "semi", "anti")
    ),
    (
        lambda one, two: one.join(two, how="cross").map(lambda pair: pair[::-1]),
        lambda one, two: Counter((b, a) for a in one.elements() for b in two.elements()),
    ),
    (
        lambda one, two: one.distinct().iterate(
            lambda found: found.concat(found.map(succeeding), one).distinct()
        ),
        lambda one, two: closure(one),
    ),
    (
        lambda one, two: one.iterate(
            lambda found: (
                found.concat(found.map(succeeding))
                .group_by(bucket)
                .top_k(1, by=rank, descending=False)
            )
        ),
        lambda one, two: least(one),
    ),
    (
        lambda one, two: alternating(one, two),
        lambda one, two: alternated(one, two),
    ),
]


def alternating(one: Any, two: Any) -> Any:
    """Two variables that depend on each other."""
    with one.scope.iterative() as inner:
        even, odd = inner.variable(), inner.variable(expect=100)
        odd.set(even.map(succeeding).concat(two.filter(lambda record: record == 1)).distinct())
        even.set(odd.map(lambda record: (record, 0)).concat(one).distinct())
        return even.leave()


def alternated(one: Multiset, two: Multiset) -> Multiset:
    even, odd, before = set[Any](), set[Any](), None
    while before != (even, odd):
        before = even, odd
        from_two = {record for record, n in two.items() if n > 0 and record == 1}
        even, odd = (
            {(record, 0) for record in odd} | {record for record, n in one.items() if n > 0},
            set(map(succeeding, even)) | from_two,
        )
    return Counter(even)


@dataclass(frozen=True)
class RecordProgram:
    """Epochs of changes of two inputs, and steps that are done one after the other."""

    steps: list[int]
    epochs: list[list[list[tuple[Any, int]]]]
    n_inputs: ClassVar = 2

    def build(self, inputs: Sequence[Any]) -> Any:
        one, two = inputs
        for step in self.steps:
            one = STEPS[step][0](one, two)
        return one

    def expected(self) -> list[Multiset]:
        now: list[Multiset] = [Counter(), Counter()]
        found = []
        for changes in self.epochs:
            for there, pairs in zip(now, changes, strict=True):
                for record, diff in pairs:
                    there[canonical_key(record)] += diff
            one, two = (Counter({r: n for r, n in there.items() if n}) for there in now)
            for step in self.steps:
                one = STEPS[step][1](one, two)
            found.append(one)
        return found


@st.composite
def record_programs(draw: Any) -> RecordProgram:
    """Insertions, and deletions of what was inserted."""
    known: list[list[Any]] = [[], []]
    epochs = []
    for _ in range(draw(st.integers(1, 4))):
        changes = []
        for place in range(2):
            added = draw(st.lists(RECORDS, max_size=4))
            gone = draw(st.integers(0, len(known[place])))
            deleted = known[place][:gone]
            changes.append([*((fresh(r), 1) for r in added), *((fresh(r), -1) for r in deleted)])
            known[place] = [*known[place][gone:], *added]
        epochs.append(changes)
    steps = draw(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=3))
    return RecordProgram(steps, epochs)


def check_records_in_view(program: RecordProgram) -> None:
    """At each epoch a view's changes add up to what recomputing gives."""
    view = ps.View(lambda scope, one, two: program.build([one, two]), one=None, two=None)
    now: Multiset = Counter()
    for changes, expected in zip(program.epochs, program.expected(), strict=True):
        for name, pairs in zip(("one", "two"), changes, strict=True):
            view.update(name, pairs)
        for record, diff in view.advance():
            assert diff
            now[record] += diff
        assert Counter({record: n for record, n in now.items() if n}) == expected
        assert Counter(view.snapshot()) == expected
    view.close()


def check_records(program: RecordProgram, workers: int, at_a_time: int, seed: int) -> None:
    """The updates of all workers add up to it, each of which changes its share."""
    given = ([None, None], program.build, program.epochs, at_a_time)
    parts = ps.simulate(run_epochs, *given, workers=workers, seed=seed)
    found = accumulated([update for part in parts for update in part], len(program.epochs))
    assert found == program.expected()
