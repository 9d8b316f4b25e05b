"""Joins of relations of which one key has half of the records, beside recomputing.

So a change makes many pairs, and what leaves by pieces is under way for many turns. A case is
drawn from a seed: what is joined, in a loop or not, and how much a join makes at a time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import trace, trace_join
from tests.collections.checks import in_pieces
from tests.collections.running import Build, run_epochs

Rows = Counter[Any]

SCHEMA = "k long, v long"
FUELS = [1, 1, 2, 7]
PARTS = [(2, 1), (3, 10), (8, 1 << 18)]
"""What aggregates put together: of so many parts so many rows."""


def matched(one: Rows, two: Rows, place: int = 0, other: int = 0) -> Iterator[tuple[Any, Any, int]]:
    """Pairs of equal value at a place of each."""
    by_value: dict[Any, list[tuple[Any, int]]] = {}
    for row, n in two.items():
        by_value.setdefault(row[other], []).append((row, n))
    for row, n in one.items():
        for its, m in by_value.get(row[place], ()):
            yield row, its, n * m


def joined(one: Rows, two: Rows) -> Rows:
    found: Rows = Counter()
    for row, other, n in matched(one, two):
        found[*row, *other[1:]] += n
    return found


def _those(one: Rows, two: Rows, has_partner: bool) -> Rows:
    counts: Rows = Counter()
    for (k, *_), n in two.items():
        counts[k] += n
    return Counter({row: n for row, n in one.items() if (counts[row[0]] > 0) == has_partner})


def _outer(one: Rows, two: Rows, how: str) -> Rows:
    found = joined(one, two)
    if how in ("left", "full"):
        found.update({(*row, None): n for row, n in _those(one, two, False).items()})
    if how in ("right", "full"):
        found.update({(k, None, v): n for (k, v), n in _those(two, one, False).items()})
    return found


def _crossed(one: Rows, two: Rows) -> Rows:
    return Counter({(*r, *s): n * m for r, n in one.items() for s, m in two.items()})


def _chain(one: Rows, two: Rows, three: Rows) -> Rows:
    found: Rows = Counter()
    for (k, v), (_, w), n in matched(one, two):
        for u, m in ((row[1], m) for row, m in three.items() if row[0] == w):
            found[k, v, w, u] += n * m
    return found


def _circle(one: Rows, two: Rows, three: Rows) -> Rows:
    found: Rows = Counter()
    for (x, y), (_, z), n in matched(one, two, 1):
        if m := three[z, x]:
            found[x, y, z] += n * m
    return found


def _twice(one: Rows, two: Rows, three: Rows) -> Rows:
    between: Rows = Counter()
    for (k, _, w), n in joined(one, two).items():
        between[k, w] += n
    return joined(between, three)


def _summed(one: Rows, two: Rows) -> Rows:
    sums: dict[int, list[int]] = {}
    for (k, _, w), n in joined(one, two).items():
        found = sums.setdefault(k, [0, 0])
        found[0] += n
        found[1] += n * w
    return Counter((k, n, total) for k, (n, total) in sums.items() if n)


def _by(how: Any) -> Build:
    return lambda given: given[0].join(given[1], on="k", how=how)


def _build_chain(given: Any) -> Any:
    tables = {"one": given[0], "two": given[1].rename({"k": "j", "v": "w"})}
    tables["three"] = given[2].rename({"k": "i", "v": "u"})
    return ps.delta_join(tables, ["one.k = two.j", "two.w = three.i"])


def _build_circle(given: Any) -> Any:
    names = zip("RST", given, ["x y", "y z", "z x"], strict=True)
    return ps.generic_join({name: (rows, of) for name, rows, of in names}).select("x", "y", "z")


FORMS: dict[str, tuple[Build, Callable[[Rows, Rows, Rows], Rows]]] = {
    "inner": (_by("inner"), lambda one, two, _: joined(one, two)),
    "left": (_by("left"), lambda one, two, _: _outer(one, two, "left")),
    "right": (_by("right"), lambda one, two, _: _outer(one, two, "right")),
    "full": (_by("full"), lambda one, two, _: _outer(one, two, "full")),
    "semi": (_by("semi"), lambda one, two, _: _those(one, two, True)),
    "anti": (_by("anti"), lambda one, two, _: _those(one, two, False)),
    "cross": (
        lambda given: given[0].join(given[1].rename({"k": "j", "v": "w"}), how="cross"),
        lambda one, two, _: _crossed(one, two),
    ),
    "chain": (_build_chain, _chain),
    "circle": (_build_circle, _circle),
    "twice": (
        lambda given: (
            given[0].join(given[1], on="k").select("k", v=col("v_right")).join(given[2], on="k")
        ),
        _twice,
    ),
    "summed": (
        lambda given: (
            given[0].join(given[1], on="k").group_by("k").agg(n=ps.count(), v=ps.sum("v_right"))
        ),
        lambda one, two, _: _summed(one, two),
    ),
}
OF_ANY_SIGN = {"inner", "cross", "chain", "circle", "twice"}
"""Those in which records may be there fewer than no times."""


def in_rounds(build: Build) -> Build:
    """The same in a loop, in which all that comes does so at the second round."""

    def inside(collections: Any) -> Any:
        with collections[0].scope.iterative() as inner:
            late = []
            for collection in collections:
                late.append(inner.variable(collection.schema))
                late[-1].set(collection)
            return build(late).leave().consolidate()

    return inside


@contextmanager
def _limits(choose: random.Random) -> Iterator[None]:
    before = trace_join.FEW, trace.LET_BE, trace.SMALL
    trace_join.FEW = choose.choice([1, 4, 64])
    trace.LET_BE, trace.SMALL = choose.choice([(1, 4), (8, 256)])
    try:
        with in_pieces((choose.choice(FUELS), *choose.choice(PARTS))):
            yield
    finally:
        trace_join.FEW, trace.LET_BE, trace.SMALL = before


def _drawn(choose: random.Random, of_any_sign: bool) -> list[Any]:
    n_keys, n_values = choose.choice([1, 2, 5]), choose.choice([3, 8, 30])
    most = choose.choice([3, 10, 25])

    def row() -> tuple[int, int]:
        key = 0 if choose.random() < 0.5 else choose.randrange(n_keys)
        return key, choose.randrange(n_values)

    there: list[list[tuple[int, int]]] = [[], [], []]
    epochs = []
    for _ in range(choose.randint(1, 6)):
        changes = []
        for rows in there:
            come = [row() for _ in range(choose.randint(0, most))]
            n_gone = choose.randint(0, min(len(rows), most))
            gone = [rows.pop(choose.randrange(len(rows))) for _ in range(n_gone)]
            rows.extend(come)
            own = [*((one, 1) for one in come), *((one, -1) for one in gone)]
            own += [(row(), choose.choice([-2, 3]))] * of_any_sign
            changes.append(own)
        epochs.append(changes)
    return epochs


def check_skewed(seed: int, names: tuple[str, ...] = tuple(FORMS), rounds: float = 0.6) -> None:
    """At each epoch what left adds up to what recomputing gives.

    names : of the joins of which one is drawn · rounds : so likely in a loop
    """
    choose = random.Random(seed)
    name = choose.choice(names)
    build, compute = FORMS[name]
    if choose.random() < rounds:
        build = in_rounds(build)
    epochs = _drawn(choose, name in OF_ANY_SIGN and choose.random() < 0.3)
    workers, at_a_time = choose.choice([1, 1, 2, 3]), choose.choice([1, 2, 7])
    with _limits(choose):
        parts = ps.simulate(
            run_epochs, [SCHEMA] * 3, build, epochs, at_a_time, workers=workers, seed=seed
        )
    found = [update for part in parts for update in part]
    came: list[Rows] = [Counter() for _ in range(3)]
    now: Rows = Counter()
    for epoch, changes in enumerate(epochs):
        for total, pairs in zip(came, changes, strict=True):
            for row, n in pairs:
                total[row] += n
        for row, time, diff in found:
            now[row] += diff if time == epoch else 0
        wanted = compute(*(Counter({r: n for r, n in total.items() if n}) for total in came))
        assert {r: n for r, n in now.items() if n} == {r: n for r, n in wanted.items() if n}, epoch
