"""Random programs over collections, and what they should give: recomputed from scratch.

A program is a list of steps; each reads collections made before, and makes one more. Every
collection has the same columns, so that any step can read any. A step is written twice: with the
operators, and of multisets (`Counter`s of rows) in plain Python.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col

SCHEMA = "k long, v long?, t string?, d decimal(9,2), f double?"
NAMES = ["k", "v", "t", "d", "f"]

Row = tuple[Any, ...]
Multiset = Counter[Row]
Change = tuple[Row, int]


@dataclass(frozen=True)
class Step:
    """One operator: its name, what it reads, and numbers that say more."""

    name: str
    reads: tuple[int, ...]
    number: int

    def __repr__(self) -> str:
        return f"{self.name}{self.reads}[{self.number}]"


@dataclass
class Form:
    """The two ways to run a step."""

    n_inputs: int
    build: Callable[..., Any]
    compute: Callable[..., Multiset]


FORMS: dict[str, Form] = {}


def form(n_inputs: int) -> Callable[[type], type]:
    """Enter a class with `build` and `compute` under its name."""

    def enter(cls: Any) -> Any:
        FORMS[cls.__name__.lower()] = Form(n_inputs, cls.build, cls.compute)
        return cls

    return enter


def positive(rows: Multiset) -> Multiset:
    """The records that are there."""
    return Counter({row: n for row, n in rows.items() if n > 0})


def by_key(rows: Multiset, places: Sequence[int]) -> dict[Row, Multiset]:
    """The records of each key."""
    groups: dict[Row, Multiset] = defaultdict(Counter)
    for row, n in rows.items():
        groups[tuple(row[place] for place in places)][row] += n
    return groups


def pairs(
    left: Multiset, right: Multiset, place: int, nulls: bool = False
) -> Counter[tuple[Row, Row]]:
    """Pairs of equal value at `place`; nulls with nulls if `nulls`, else with nothing."""
    found: Counter[tuple[Row, Row]] = Counter()
    others = by_key(right, [place])
    for row, n in left.items():
        if nulls or row[place] is not None:
            for other, m in others.get((row[place],), Counter()).items():
                found[row, other] += n * m
    return found


def mapped(rows: Multiset, function: Callable[[Row], Row]) -> Multiset:
    """Each record replaced."""
    found: Multiset = Counter()
    for row, n in rows.items():
        found[function(row)] += n
    return found


@form(1)
class Filter:
    """Those with v above a number; null is not."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        return a.filter((col("v") > n) | (col("t") == "a") | (col("d") == Decimal("1.250")))

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        return Counter(
            {
                row: c
                for row, c in a.items()
                if (row[1] is not None and row[1] > n) or row[2] == "a" or row[3] == Decimal("1.25")
            }
        )


@form(1)
class Shift:
    """Columns computed of others."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        computed = ps.when(col("v").is_null()).then(n).otherwise(col("v") - n)
        return a.select("k", "t", v=computed, d=col("d"), f=col("f") * 2.0).select(*NAMES)

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        def change(row: Row) -> Row:
            k, v, t, d, f = row
            return k, n if v is None else v - n, t, d, None if f is None else f * 2.0

        return mapped(a, change)


@form(1)
class Computed:
    """Columns computed of others by functions of texts, dates and numbers, and nulls."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        day = ps.lit(date(2026, 2, 27)) + col("k")
        text = (col("t") + "!").upper().slice(n % 3, 6)
        return a.select(
            k=day.month() * 100 + day.day() + col("t").length().fill_null(-1),
            v=ps.when(col("t").like("a%g%")).then(None).otherwise(ps.coalesce(col("v"), n)),
            t=ps.when(col("v").is_in([n % 4, None])).then(col("t")).otherwise(text),
            d=(col("d").abs() - col("v").fill_null(0)).round(1).cast("decimal(9,2)"),
            f=ps.when(col("d").between(-1, col("v"))).then(col("f")).otherwise(None),
        )

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        def change(row: Row) -> Row:
            k, v, t, d, f = row
            day = date(2026, 2, 27) + timedelta(days=k)
            is_like = t is not None and t.startswith("a") and "g" in t[1:]
            text = None if t is None else (t + "!").upper()[n % 3 : n % 3 + 6]
            return (
                day.month * 100 + day.day + (-1 if t is None else len(t)),
                None if is_like else n if v is None else v,
                t if v == n % 4 else text,
                (abs(d) - (v or 0)).quantize(Decimal("0.1"), ROUND_HALF_UP),
                f if v is not None and -1 <= d <= v else None,
            )

        return mapped(a, change)


@form(2)
class Concat:
    """All of both."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        return a.concat(b)

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        found: Multiset = Counter(a)
        found.update(b)
        return found


@form(2)
class Less:
    """The one without the other, which may leave less than nothing."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        return a.concat(b.negate()).consolidate()

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        found: Multiset = Counter(a)
        found.subtract(b)
        return found


@form(1)
class Distinct:
    """Each once."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        return a.distinct()

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        return Counter(dict.fromkeys(positive(a), 1))


@form(2)
class Intersect:
    """As often as in both."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        return a.intersect(b)

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        return positive(Counter({row: min(c, b[row]) for row, c in a.items()}))


@form(2)
class Subtract:
    """As often as more here."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        return a.subtract(b)

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        return positive(Counter({row: c - max(b[row], 0) for row, c in a.items()}))


def _join(how: str, on: str, a: Any, b: Any, n: int) -> Any:
    other = b.rename({name: f"{name}2" for name in NAMES})
    return a.join(other, left_on=on, right_on=f"{on}2", how=how, null_equal=_nulls_are_equal(n))


def _nulls_are_equal(n: int) -> bool:
    return n >= 6


@form(2)
class Join:
    """Pairs by key, then back to the columns of one."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        on = ("k", "v", "t")[n % 3]
        joined = _join("inner", on, a, b, n)
        return joined.select("k", "v", t=on if on == "t" else "t2", d=col("d2"), f=col("f"))

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        place = (0, 1, 2)[n % 3]
        found: Multiset = Counter()
        for (one, two), c in pairs(a, b, place, _nulls_are_equal(n)).items():
            found[one[0], one[1], one[2] if place == 2 else two[2], two[3], one[4]] += c
        return found


@form(2)
class OuterJoin:
    """Left, right, full."""

    HOWS = ("left", "right", "full")

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        joined = _join(OuterJoin.HOWS[n % 3], "v", a, b, n)
        return joined.select(
            "v", "t", k=col("k").fill_null(-1), d=col("d2").fill_null(Decimal("-0.50")), f="f2"
        ).select(*NAMES)

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        how = OuterJoin.HOWS[n % 3]
        found: Multiset = Counter()
        nulls = _nulls_are_equal(n)
        for (one, two), c in pairs(a, b, 1, nulls).items():
            found[one[0], one[1], one[2], two[3], two[4]] += c
        none = Decimal("-0.50")
        if how != "right":
            partners = {row[1] for row in positive(_keys(b))}
            for row, c in a.items():
                if row[1] not in partners or (row[1] is None and not nulls):
                    found[row[0], row[1], row[2], none, None] += c
        if how != "left":
            partners = {row[1] for row in positive(_keys(a))}
            for row, c in b.items():
                if row[1] not in partners or (row[1] is None and not nulls):
                    found[-1, row[1], None, row[3], row[4]] += c
        return found


def _keys(rows: Multiset) -> Multiset:
    return mapped(rows, lambda row: (None, row[1]))


@form(2)
class Semi:
    """Those with a partner, or those without."""

    @staticmethod
    def build(a: Any, b: Any, n: int) -> Any:
        on = ("k", "t")[n % 2]
        return _join("semi" if n % 4 < 2 else "anti", on, a, b, n)

    @staticmethod
    def compute(a: Multiset, b: Multiset, n: int) -> Multiset:
        place = (0, 2)[n % 2]
        keys = positive(mapped(b, lambda row: (row[place],)))
        has = {row[0] for row in keys if row[0] is not None or _nulls_are_equal(n)}
        return Counter({row: c for row, c in a.items() if (row[place] in has) == (n % 4 < 2)})


def _total(rows: Multiset, place: int) -> Any:
    values = [(row[place], c) for row, c in rows.items() if row[place] is not None]
    if sum(c for _, c in values) == 0:
        return None
    return sum(value * c for value, c in values)


def _extreme(rows: Multiset, place: int, greatest: bool) -> Any:
    counts: Counter[Any] = Counter()
    for row, c in rows.items():
        if row[place] is not None:
            counts[row[place]] += c
    there = [value for value, c in counts.items() if c > 0]
    if not there:
        return None
    return (max if greatest else min)(there, key=_nan_last)


def _nan_last(value: Any) -> Any:
    return (1, 0) if value != value else (0, value)


@form(1)
class Aggregate:
    """A row for each group, of counts, sums, least and greatest."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        keys = (["k"], ["t"], ["k", "t"])[n % 3]
        found = a.group_by(*keys).agg(
            n=ps.count(), s=ps.sum("v"), least=ps.min("v"), d=ps.max("d"), f=ps.sum("f")
        )
        k = col("k") if "k" in keys else col("n")
        t = col("t") if "t" in keys else ps.when(col("s") == 0).then("zero").otherwise("other")
        return found.select(
            k=k, v=col("s").fill_null(-7) + col("least").fill_null(0) * 3, t=t, d="d", f="f"
        )

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        places = ((0,), (2,), (0, 2))[n % 3]
        found: Multiset = Counter()
        for rows in by_key(a, places).values():
            size = sum(rows.values())
            if size <= 0:
                continue
            any_row = next(iter(rows))
            total, least = _total(rows, 1), _extreme(rows, 1, greatest=False)
            v = (-7 if total is None else total) + 3 * (0 if least is None else least)
            k = any_row[0] if 0 in places else size
            t = any_row[2] if 2 in places else "zero" if total == 0 else "other"
            d = _extreme(rows, 3, greatest=True)
            found[k, v, t, Decimal(0) if d is None else d, _float_total(rows)] += 1
        return found


def _float_total(rows: Multiset) -> Any:
    values = [(row[4], c) for row, c in rows.items() if row[4] is not None]
    if sum(c for _, c in values) == 0:
        return None
    return float(sum(Fraction(value) * c for value, c in values))


@form(1)
class LeastOf:
    """A row for each group, of the least value alone."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        found = a.group_by("k", "t").agg(v=ps.min("v"))
        d = ps.lit(Decimal("0.00")).cast("decimal(9,2)")
        return found.select("k", "v", "t", d=d, f=ps.when(col("v") > n).then(0.5).otherwise(-0.5))

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        for (k, t), rows in by_key(a, [0, 2]).items():
            if sum(rows.values()) > 0:
                least = _extreme(rows, 1, greatest=False)
                f = 0.5 if least is not None and least > n else -0.5
                found[k, least, t, Decimal("0.00"), f] += 1
        return found


@form(1)
class Statistics:
    """A row for each group, of what is no plain sum."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        text = ps.min("t") if n % 2 else ps.max("t")
        found = a.group_by("k").agg(
            c=ps.count_distinct("v" if n % 3 else "t"),
            s=(ps.var, ps.stddev)[n % 2]("v" if n % 4 < 2 else "d"),
            b=(ps.bool_or, ps.bool_and)[n % 2](col("v") > 0),
            t=text,
        )
        v = ps.when(col("b").is_null()).then(-1).when(col("b")).then(1).otherwise(0)
        d = ps.lit(Decimal("0.00")).cast("decimal(9,2)")
        return found.select("k", v=col("c") * 10 + v, t="t", d=d, f="s")

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        found: Multiset = Counter()
        for (k,), rows in by_key(a, [0]).items():
            if sum(rows.values()) <= 0:
                continue
            distinct = there_counts(rows, 1 if n % 3 else 2)
            signs = Counter({True: 0, False: 0})
            for value, c in all_counts(rows, 1).items():
                signs[value > 0] += c
            if signs[True] <= 0 and signs[False] <= 0:
                v = -1
            else:
                v = int(signs[False] <= 0 if n % 2 else signs[True] > 0)
            texts = [text.encode() for text in there_counts(rows, 2)]
            text = (min if n % 2 else max)(texts).decode() if texts else None
            spread = _spread(all_counts(rows, 1 if n % 4 < 2 else 3), is_root=bool(n % 2))
            found[k, len(distinct) * 10 + v, text, Decimal("0.00"), spread] += 1
        return found


def all_counts(rows: Multiset, place: int) -> Counter[Any]:
    """How often each value is there that is not null."""
    counts: Counter[Any] = Counter()
    for row, c in rows.items():
        if row[place] is not None:
            counts[row[place]] += c
    return counts


def there_counts(rows: Multiset, place: int) -> Counter[Any]:
    return Counter({value: c for value, c in all_counts(rows, place).items() if c > 0})


def _spread(counts: Counter[Any], *, is_root: bool) -> float | None:
    n = sum(counts.values())
    if n < 2:
        return None
    total = sum(Fraction(value) * c for value, c in counts.items())
    squares = sum(Fraction(value) ** 2 * c for value, c in counts.items())
    variance = float((n * squares - total * total) / (n * (n - 1)))
    return math.sqrt(variance) if is_root and variance >= 0 else variance


@form(1)
class Whole:
    """One row of all records."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        found = a.agg(n=ps.count(), m=ps.count("v"), v=ps.max("v"), f=ps.avg("v"))
        return found.select(
            k=col("n") * 10 + col("m"),
            v="v",
            t=ps.lit("all"),
            d=ps.lit(Decimal("1.25")).cast("decimal(9,2)"),
            f="f",
        )

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        size = sum(a.values())
        if size <= 0:
            return Counter({(0, None, "all", Decimal("1.25"), None): 1})
        counted = sum(c for row, c in a.items() if row[1] is not None)
        total = sum(row[1] * c for row, c in a.items() if row[1] is not None)
        mean = total / counted if counted else None
        row = (size * 10 + counted, _extreme(a, 1, greatest=True), "all", Decimal("1.25"), mean)
        return Counter({row: 1})


@form(1)
class Summed:
    """A row for each group, or one of all records, of what sums suffice for."""

    @staticmethod
    def build(a: Any, n: int) -> Any:
        keys = (["k"], ["t"], ["k", "t"], [])[n % 4]
        found = (a.group_by(*keys) if keys else a).agg(
            n=ps.count(), m=ps.count("v"), s=ps.sum("v"), f=ps.avg("v" if n % 3 else "d")
        )
        return found.select(
            k="k" if "k" in keys else "n",
            v=col("s").fill_null(-7) * 2 + col("m"),
            t="t" if "t" in keys else ps.lit("sums"),
            d=ps.lit(Decimal("0.00")).cast("decimal(9,2)"),
            f="f",
        )

    @staticmethod
    def compute(a: Multiset, n: int) -> Multiset:
        places = ((0,), (2,), (0, 2), ())[n % 4]
        found: Multiset = Counter()
        groups = list(by_key(a, places).values()) if places else [a]
        for rows in groups:
            size = sum(rows.values())
            if size <= 0 and places:
                continue
            rows = rows if size > 0 else Counter()
            any_row: Row = next(iter(rows), ())
            counted, total = sum(all_counts(rows, 1).values()), _total(rows, 1)
            v = 2 * (-7 if total is None else total) + counted
            k = any_row[0] if 0 in places else max(size, 0)
            values = all_counts(rows, 1 if n % 3 else 3)
            n_values = sum(values.values())
            units = sum(Fraction(value) * c for value, c in values.items())
            mean = float(units / n_values) if n_values else None
            found[k, v, any_row[2] if 2 in places else "sums", Decimal("0.00"), mean] += 1
        return found


# What is drawn.

_TEXTS = ["", "a", "a\0", "a longer text, 1", "a longer text, 2", "a longer text, 3"]
"""Some begin alike in more bytes than are words."""

values = st.one_of(st.none(), st.integers(-3, 3))
rows = st.tuples(
    st.integers(0, 3),
    values,
    st.one_of(st.none(), st.sampled_from(_TEXTS)),
    st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-2.50")]),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.1, -2.5, 1e300, 3e-300])),
)


@dataclass
class Program:
    """Steps over some inputs, of which the last one is the result; and the changes of epochs."""

    n_inputs: int
    steps: list[Step]
    epochs: list[list[list[Change]]] = field(default_factory=list)
    """By epoch and input."""

    def build(self, inputs: Sequence[Any]) -> Any:
        """With the operators."""
        made = list(inputs)
        for step in self.steps:
            chosen = [made[at % len(made)] for at in step.reads]
            made.append(FORMS[step.name].build(*chosen, step.number))
        return made[-1]

    def compute(self, inputs: Sequence[Multiset]) -> Multiset:
        """In plain Python."""
        made = [Counter(each) for each in inputs]
        for step in self.steps:
            chosen = [made[at % len(made)] for at in step.reads]
            found = FORMS[step.name].compute(*chosen, step.number)
            made.append(Counter({row: n for row, n in found.items() if n}))
        return made[-1]

    def expected(self) -> list[Multiset]:
        """The result at each epoch."""
        now: list[Multiset] = [Counter() for _ in range(self.n_inputs)]
        found = []
        for epoch in self.epochs:
            for multiset, changes in zip(now, epoch, strict=True):
                for row, diff in changes:
                    multiset[row] += diff
            found.append(self.compute(now))
        return found


@st.composite
def programs(draw: Any, last: Sequence[str] = (), max_steps: int = 8) -> Program:
    """A program of one to `max_steps` steps, and one to six epochs of changes.

    last : what the last step is one of, if not of all
    """
    n_inputs = draw(st.integers(1, 2))
    steps = []
    n_steps = draw(st.integers(1, max_steps))
    for place in range(n_steps):
        names = last if last and place == n_steps - 1 else sorted(FORMS)
        name = draw(st.sampled_from(names))
        n_made = n_inputs + place
        reads = tuple(draw(st.integers(0, n_made - 1)) for _ in range(FORMS[name].n_inputs))
        steps.append(Step(name, reads, draw(st.integers(0, 11))))
    epochs = []
    there: list[list[Row]] = [[] for _ in range(n_inputs)]
    for _ in range(draw(st.integers(1, 6))):
        epoch = []
        for known in there:
            added = draw(st.lists(st.tuples(rows, st.sampled_from([1, 1, 1, 3])), max_size=6))
            gone = draw(st.lists(st.sampled_from(known), max_size=4)) if known else []
            known += [row for row, _ in added]
            epoch.append([*added, *((row, -1) for row in gone)])
        epochs.append(epoch)
    return Program(n_inputs, steps, epochs)
