"""Steps of random programs that need the records of a group in order, or all of them.

Beside `programs.py`, which draws from these, too, once this is imported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pointstamp as ps
from pointstamp.containers.dictionary import TEXTS
from tests.collections.programs import (
    NAMES,
    SCHEMA,
    Multiset,
    Row,
    by_key,
    form,
    positive,
    there_counts,
)

# The numbers of texts are in another order than their bytes, whichever comes first in a program.
TEXTS.numbers([b"a longer text, 3", b"a longer text, 1", b"a\0", b"a longer text, 2", b"a"])

ORDERS: list[list[tuple[str, bool]]] = [
    [("v", True)],
    [("v", False)],
    [("t", False)],
    [("t", True), ("v", False)],
    [("f", False), ("t", True)],
    [("d", True), ("t", True), ("v", True)],
]
"""Columns, and whether the greatest comes first."""


def in_order(rows: Multiset, by: Sequence[tuple[str, bool]]) -> list[Row]:
    """The records that are there, each once; nulls are least, and other columns break ties."""
    named = {name for name, _ in by}
    found = list(positive(rows))
    for name, descending in reversed(
        [*by, *((name, False) for name in NAMES if name not in named)]
    ):
        place = NAMES.index(name)
        found.sort(key=lambda row: least_first(row[place]), reverse=descending)
    return found


def least_first(value: Any) -> Any:
    """Of a value a key to sort by: nulls first, texts by their bytes."""
    if value is None:
        return (0, 0)
    return (1, value.encode() if isinstance(value, str) else value)


@form(1)
class TopK:
    """The first few of each group."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        by = ORDERS[n % len(ORDERS)]
        names, turned = [name for name, _ in by], [descending for _, descending in by]
        if len(by) == 1:
            return a.group_by("k").top_k(1 + n % 4, by=names[0], descending=turned[0])
        return a.group_by("k").top_k(1 + n % 4, by=names, descending=turned)

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        for rows in by_key(a, [0]).values():
            left = 1 + n % 4
            for row in in_order(rows, ORDERS[n % len(ORDERS)]):
                took = min(left, rows[row])
                if took > 0:
                    found[row] += took
                left -= took
        return found


@form(1)
class Ordered:
    """A row for each group, of what needs its values in order."""

    SHARES = (0.0, 0.1, 0.5, 0.75, 1.0)

    @staticmethod
    def build(a: Any, n: int) -> Any:
        by = ("v", "t", "f")[n % 3]
        d = ps.quantile("d", Ordered.SHARES[n % 5], discrete=True)
        if n % 2:
            of_f = ps.median("f")
        else:
            of_f = ps.quantile("v", Ordered.SHARES[n % 5])
        chosen = (ps.min_by, ps.max_by)[n % 2](("t", "v")[n % 4 // 2], by)
        mode = ps.mode(("t", "v")[1 - n % 4 // 2])
        t, v = (chosen, mode) if n % 4 < 2 else (mode, chosen)
        return a.group_by("k").agg(v=v, t=t, d=d, f=of_f)

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        for (k,), rows in by_key(a, [0]).items():
            if sum(rows.values()) <= 0:
                continue
            by = ("v", "t", "f")[n % 3]
            share = Fraction(str(Ordered.SHARES[n % 5]))
            place = 2 if n % 4 < 2 else 1
            counts: Counter[Any] = Counter()
            for row, c in rows.items():
                if row[NAMES.index(by)] is not None:
                    counts[row[NAMES.index(by)], row[place]] += c
            there = [pair for pair, c in counts.items() if c > 0]
            there.sort(key=lambda pair: least_first(pair[1]))
            there.sort(key=lambda pair: least_first(pair[0]), reverse=bool(n % 2))
            chosen = there[0][1] if there else None
            often = there_counts(rows, 3 - place)
            mode = min(often, key=lambda x: (-often[x], least_first(x))) if often else None
            t, v = (chosen, mode) if place == 2 else (mode, chosen)
            decimals = sorted(there_counts(rows, 3).elements())
            d = decimals[max(math.ceil(share * len(decimals)) - 1, 0)] if decimals else Decimal(0)
            numbers = sorted(there_counts(rows, 4 if n % 2 else 1).elements())
            f = _at_share(numbers, Fraction(1, 2) if n % 2 else share)
            found[k, v, t, d, f] += 1
        return found


def _at_share(numbers: list[Any], share: Fraction) -> float | None:
    if not numbers:
        return None
    exact = share * (len(numbers) - 1)
    low, high = (Fraction(numbers[at]) for at in (math.floor(exact), math.ceil(exact)))
    return float(low + (high - low) * (exact - math.floor(exact)))


@form(1)
class Reduce:
    """Rows that a function makes of a whole group: the least and how many, or all that differ."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        keys = (["k"], ["t"], ["t", "k"], ["v", "f"])[n % 4]

        def function(key: Row, rows: list[Row]) -> list[Row]:
            assert all(tuple(row[NAMES.index(name)] for name in keys) == key for row in rows)
            if n % 2:
                return rows[:2]
            return [(len(rows), *rows[0][1:]), *[row for row in rows if row[1] == 2]]

        return a.group_by(*keys).reduce(function, SCHEMA)

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        for group in by_key(a, ((0,), (2,), (2, 0), (1, 4))[n % 4]).values():
            rows = list(positive(group).elements())
            rows.sort(key=lambda row: [least_first(value) for value in row])
            if n % 2:
                found.update(rows[:2])
            elif rows:
                found[len(rows), *rows[0][1:]] += 1
                found.update(row for row in rows if row[1] == 2)
        return found


@form(1)
class Over:
    """Columns of records by their places in partitions."""

    KEYS: tuple[list[str], ...] = (["k"], [], ["t"])

    @staticmethod
    def build(a: Any, n: int) -> Any:
        by = ORDERS[n % len(ORDERS)]
        names, turned = [name for name, _ in by], [descending for _, descending in by]
        first = (ps.rank(), ps.dense_rank(), ps.row_number(), ps.rolling(ps.count("v"), 2))[n % 4]
        others = (
            (ps.lag("v"), ps.lead("t", 2), ps.rolling(ps.sum("f"), 3)),
            (ps.rolling(ps.sum("v"), 2), ps.rolling(ps.min("t"), 3), ps.lead("f")),
            (ps.rolling(ps.max("v"), 3), ps.lag("t", 3), ps.rolling(ps.avg("v"), 2)),
        )[n % 3]
        keys = Over.KEYS[n // 2 % 3]

        def over(function: Any) -> Any:
            return function.over(keys, order_by=names, descending=turned)

        v, t, f = map(over, others)
        k = first.over(keys[0] if len(keys) == 1 else keys, order_by=names, descending=turned)
        if n % 2:
            return a.with_columns(k=k, v=v, t=t, f=f)
        return a.select(k=k, v=v, t=t, d="d", f=f)

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        by = ORDERS[n % len(ORDERS)]
        keys = Over.KEYS[n // 2 % 3]
        for group in by_key(a, [NAMES.index(key) for key in keys]).values():
            rows = [row for row in in_order(group, by) for _ in range(group[row])]
            values = [tuple(row[NAMES.index(name)] for name, _ in by) for row in rows]
            for at, row in enumerate(rows):

                def frame(place: int, size: int) -> list[Any]:
                    members = rows[max(0, at + 1 - size) : at + 1]  # noqa: B023
                    return [r[place] for r in members if r[place] is not None]

                def near(place: int, by_so_many: int) -> Any:
                    to = at + by_so_many  # noqa: B023
                    return rows[to][place] if 0 <= to < len(rows) else None  # noqa: B023

                k = (
                    values.index(values[at]) + 1,
                    len(set(values[:at]) | {values[at]}),
                    at + 1,
                    len(frame(1, 2)),
                )[n % 4]
                if n % 3 == 0:
                    v, t, f = near(1, -1), near(2, 2), _exact(frame(4, 3))
                elif n % 3 == 1:
                    texts = frame(2, 3)
                    v, f = sum(frame(1, 2)) if frame(1, 2) else None, near(4, 1)
                    t = min(texts, key=least_first) if texts else None
                else:
                    numbers = frame(1, 2)
                    v, t = max(frame(1, 3), default=None), near(2, -3)
                    f = sum(numbers) / len(numbers) if numbers else None
                found[k, v, t, row[3], f] += 1
        return found


def _exact(floats: list[float]) -> float | None:
    return float(sum(map(Fraction, floats))) if floats else None
