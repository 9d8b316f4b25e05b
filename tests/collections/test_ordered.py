"""Ordered reductions: what they answer, what they refuse, and that costs follow the change."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import pointstamp as ps
from pointstamp import col
from pointstamp.collections import group_answers, order, ordered, top_k
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.text_order import TextOrder
from pointstamp.errors import BuildError, ColumnError, OperatorError, SchemaError
from pointstamp.kernels.matches import read_groups
from tests.collections.text_quantiles import TextChanges, check_text_quantiles, text_changes
from tests.conftest import examples


def once(build: Any, schema: str, rows: list[Any]) -> list[Any]:
    """The rows of a result of one input, of one epoch."""
    view = ps.View(lambda scope, t: build(t), t=schema)
    view.insert("t", rows)
    view.advance()
    return list(view.snapshot())


# Costs.


def entries_read(batches: Any, keys: Any, starts: Any, most: int, rows: Any, ends: Any) -> int:
    """How many entries `read_groups` passed: from where it began to the last one that it gave."""
    n, begin = 0, 0
    for key, start, end in zip(keys.tolist(), starts.tolist(), ends.tolist(), strict=True):
        first = (*key, *start)
        found = rows[begin:end]
        is_full = end > begin and int(found[:, -1].sum()) >= most
        for batch in batches:

            def words(at: int, size: int, batch: Any = batch) -> tuple[int, ...]:
                return tuple(batch[at, :size].tolist())

            low = bisect_left(range(len(batch)), first, key=lambda at: words(at, len(first)))
            if is_full:
                last = tuple(found[-1, :-1].tolist())
                high = bisect_right(range(len(batch)), last, key=lambda at: words(at, len(last)))
            else:
                high = bisect_right(
                    range(len(batch)), tuple(key), key=lambda at: words(at, len(key))
                )
            n += max(high - low, 0)
        begin = end
    return n


@contextmanager
def counting() -> Iterator[list[int]]:
    """How many entries each call of `read_groups` passes, by any of the modules that call it."""
    counts: list[int] = []

    def counted(batches: Any, keys: Any, starts: Any, most: int) -> Any:
        rows, ends = read_groups(batches, keys, starts, most)
        counts.append(entries_read([b for b in batches if len(b)], keys, starts, most, rows, ends))
        return rows, ends

    modules: list[Any] = [group_answers, order, ordered, top_k]
    for module in modules:
        module.read_groups = counted
    try:
        yield counts
    finally:
        for module in modules:
            module.read_groups = read_groups


def text_of(value: int) -> str:
    """All begin alike, in more bytes than are in order by themselves."""
    return f"https://an.example/items/{value:07}"


REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "min of texts": lambda t: t.group_by("k").agg(m=ps.min("t")),
    "min_by": lambda t: t.group_by("k").agg(m=ps.min_by("t", "v")),
    "top_k": lambda t: t.group_by("k").top_k(3, by="v", descending=False),
    "top_k of texts": lambda t: t.group_by("k").top_k(3, by="t", descending=False),
    "quantile": lambda t: t.group_by("k").agg(m=ps.quantile("v", 0.0)),
    "median": lambda t: t.group_by("k").agg(m=ps.median("v")),
    "mode": lambda t: t.group_by("k").agg(m=ps.mode("v")),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("n", [610, 60_000])
def test_deleting_the_least_reads_some_tens_of_entries_whatever_the_group(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The random programs leave one whose texts share their labels.
    monkeypatch.setattr(order, "TEXT_ORDER", TextOrder(TEXTS))
    view = ps.View(lambda scope, t: REDUCTIONS[name](t), t="k long, v long, t string")
    view.insert("t", [(1, value, text_of(value)) for value in range(n)])
    view.advance()
    view.insert("t", [(2, value, text_of(value)) for value in range(10)])
    view.advance()
    most = 0
    with counting() as counts:
        for value in range(600):
            counts.clear()
            view.delete("t", [(1, value, text_of(value))])
            assert len(view.advance()) in (1, 2)
            most = max(most, sum(counts))
    assert most <= 20


def test_what_was_deleted_among_the_first_is_not_looked_at_again() -> None:
    view = ps.View(
        lambda scope, t: t.group_by("k").top_k(3, by="v", descending=False), t="k long, v long"
    )
    view.insert("t", [(1, value) for value in range(10_000)])
    view.advance()
    with counting() as counts:
        # The second is deleted each time, so what is between the first and it becomes long.
        for value in range(1, 600):
            view.delete("t", [(1, value)])
            view.advance()
        counts.clear()
        view.insert("t", [(1, -1)])
        assert view.advance() == [((1, -1), 1), ((1, 601), -1)]
        assert sum(counts) < 50


# Answers.


def test_top_k_by_texts_and_several_columns() -> None:
    rows = [
        ("b", "a long name, the second", 1),
        ("b", "a long name, the first", 1),
        ("a", None, 2),
        ("a", "z", None),
        ("é", "z", 5),
    ]
    schema = "t string, u string?, n long?"

    def first(k: int, by: Any, descending: Any) -> list[Any]:
        build = lambda t: t.with_columns(g=1).group_by("g").top_k(k, by, descending=descending)  # noqa: E731
        return [row[:3] for row in once(build, schema, rows)]

    assert first(1, "t", True) == [("é", "z", 5)]
    assert first(1, "t", False) == [("a", None, 2)]
    assert first(1, ["t", "u"], [False, True]) == [("a", "z", None)]
    assert first(1, ["n", "u"], False) == [("a", "z", None)]
    assert first(2, ["n"], False) == [("a", "z", None), ("b", "a long name, the first", 1)]
    assert first(1, ["u"], [True]) == [("a", "z", None)]
    assert set(first(3, ("u", "n"), [True, True])) == {rows[0], rows[3], rows[4]}


def test_long_texts_that_begin_alike_are_in_the_order_of_their_bytes() -> None:
    texts = [f"the same fifteen bytes, {n:03}" for n in (5, 3, 9, 1, 7)]
    view = ps.View(
        lambda scope, t: {
            "least": t.agg(least=ps.min("t"), greatest=ps.max("t")),
            "two": t.group_by("k").top_k(2, by="t"),
        },
        t="k long, t string",
    )
    for text in texts:
        view.insert("t", [(1, text)])
        view.advance()
    there = sorted(texts)
    while len(there) > 2:
        assert view.snapshot("least") == [(there[0], there[-1])]
        assert view.snapshot("two") == [(1, there[-2]), (1, there[-1])]
        view.delete("t", [(1, there.pop(0)), (1, there.pop())])
        view.advance()


def test_texts_of_other_lengths_are_in_the_order_of_their_bytes() -> None:
    texts = ["", "\0", "a", "a\0", "a\0b", "aa", "b" * 14, "b" * 15, "b" * 15 + "\0", "b" * 16, "c"]
    build = lambda t: t.select(n=ps.row_number().over(order_by="t"), t="t")  # noqa: E731
    found = once(build, "t string", [(text,) for text in texts[::-1]])
    assert [text for _, text in found] == texts


def test_min_by_skips_nulls_of_the_order_and_breaks_ties() -> None:
    build = lambda t: t.group_by("k").agg(  # noqa: E731
        cheap=ps.min_by("item", "cents"), dear=ps.max_by("item", "cents")
    )
    rows = [(1, "tea", 10), (1, "ink", 10), (1, "pen", None), (1, "oil", 90), (2, "jam", None)]
    found = once(build, "k long, item string, cents long?", rows)
    assert found == [(1, "ink", "oil"), (2, None, None)]
    rows = [(1, None, 10), (1, "ink", 20)]
    found = once(build, "k long, item string?, cents long", rows)
    assert found == [(1, None, "ink")]


@pytest.mark.parametrize(
    ("q", "discrete", "continuous"),
    [(0, 10, 10.0), (0.1, 10, 18.0), (0.2, 10, 26.0), (0.21, 30, 26.8), (0.5, 40, 40.0),
     (0.75, 80, 80.0), (0.9, 90, 86.0), (1, 90, 90.0)],
)  # fmt: skip
def test_quantiles_are_those_of_sql(q: float, discrete: int, continuous: float) -> None:
    build = lambda t: t.agg(d=ps.quantile("v", q, discrete=True), c=ps.quantile("v", q))  # noqa: E731
    assert once(build, "v long", [(v,) for v in (10, 30, 40, 80, 90)]) == [(discrete, continuous)]


def test_quantiles_of_other_types() -> None:
    day = dt.date(2026, 1, 1)
    found = once(
        lambda t: t.agg(
            d=ps.quantile("day", 0.5, discrete=True), m=ps.median("p"), f=ps.median("f")
        ),
        "day date, p decimal(9,2), f double",
        [
            (day, Decimal("0.10"), -math.inf),
            (day + dt.timedelta(1), Decimal("0.20"), math.inf),
            (day + dt.timedelta(2), Decimal("0.40"), 1.5),
            (day + dt.timedelta(3), Decimal("0.50"), 0.5),
        ],
    )
    assert found == [(day + dt.timedelta(1), 0.3, 1.0)]
    infinite = once(lambda t: t.agg(f=ps.median("f")), "f double", [(math.inf,), (-math.inf,)])
    assert math.isnan(infinite[0][0])
    big = once(lambda t: t.agg(m=ps.median("v")), "v long", [(2**63 - 1,), (-(2**63),)])
    assert big == [(-0.5,)]


def test_a_median_moves_both_ways() -> None:
    view = ps.View(lambda scope, t: t.agg(m=ps.median("v")), t="v long")
    rng = np.random.default_rng(3)
    there: list[int] = []
    for step in range(300):
        if there and rng.random() < (0.3 if step < 150 else 0.7):
            gone = there.pop(int(rng.integers(len(there))))
            view.delete("t", [(gone,)])
        else:
            new = rng.choice([-7, 3, 3, 2**40, -(2**40)], 3).tolist()
            view.insert("t", [(v,) for v in new])
            there += new
        view.advance()
        assert view.snapshot() == [(float(median(there)) if there else None,)]


@settings(max_examples=examples(100))
@given(text_changes())
def test_quantiles_of_texts_are_in_the_order_of_bytes(program: TextChanges) -> None:
    check_text_quantiles(program)


def test_quantiles_of_lists_and_of_binaries_are_values() -> None:
    found = once(
        lambda t: t.agg(b=ps.median("b"), l=ps.quantile("l", 0.9)),
        "b binary, l array<long>",
        [(b"\xff", [3]), (b"\x00", [1, 2]), (b"a", [1])],
    )
    assert found == [(b"a", (3,))]


def test_the_mode_is_the_least_of_the_most_frequent() -> None:
    view = ps.View(lambda scope, t: t.agg(m=ps.mode("t")), t="t string?")
    assert view.advance() == [((None,), 1)]
    view.insert("t", [("b",), ("b",), ("a",), (None,), (None,), (None,)])
    assert view.advance() == [((None,), -1), (("b",), 1)]
    view.insert("t", [("a",)])
    assert view.advance() == [(("a",), 1), (("b",), -1)]
    view.delete("t", [("a",), ("a",), ("b",), ("b",)])
    assert view.advance() == [((None,), 1), (("a",), -1)]


def test_reduce_sees_the_whole_group_in_order() -> None:
    seen = []

    def middle(key: Any, rows: list[Any]) -> list[Any]:
        seen.append((key, rows))
        return [(*key, len(rows), rows[len(rows) // 2][1])]

    view = ps.View(
        lambda scope, t: t.group_by("k").reduce(middle, "k string?, n long, v long?"),
        t="k string?, v long?",
    )
    view.insert("t", [("a", 3), ("a", None), (None, 7), ("a", 1), ("a", 1)])
    assert view.advance() == [((None, 1, 7), 1), (("a", 4, 1), 1)]
    assert sorted(seen, key=repr) == [
        (("a",), [("a", None), ("a", 1), ("a", 1), ("a", 3)]),
        ((None,), [(None, 7)]),
    ]
    seen.clear()
    view.delete("t", [(None, 7)])
    view.insert("t", [("a", 9)])
    assert view.advance() == [((None, 1, 7), -1), (("a", 4, 1), -1), (("a", 5, 1), 1)]
    assert [key for key, _ in seen] == [("a",)]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda key, rows: 1 // 0, r"the key \('a', 2\): ZeroDivisionError"),
        (lambda key, rows: [(1, "x")], r"row 0 for .* the key \('a', 2\), column 'n': 'x'"),
        (lambda key, rows: [(1,)], r"the key \('a', 2\) should be a tuple of 2 values"),
        (lambda key, rows: 7, r"the key \('a', 2\): TypeError"),
    ],
)
def test_a_function_of_groups_that_fails_is_an_error_with_the_key(function: Any, said: str) -> None:
    view = ps.View(
        lambda scope, t: t.group_by("k", "m").reduce(function, "m long, n long"),
        t="k string, m long",
    )
    view.insert("t", [("a", 2)])
    with pytest.raises(OperatorError, match=said):
        view.advance()


def test_window_functions_over_partitions() -> None:
    def build(t: Any) -> Any:
        def over(function: Any) -> Any:
            return function.over("shop", order_by="cents", descending=True)

        return t.select(
            "shop",
            "item",
            r=over(ps.rank()),
            d=over(ps.dense_rank()),
            n=over(ps.row_number()),
            before=over(ps.lag("item")),
            behind=over(ps.lead(col("cents") + 1)),
            two=over(ps.rolling(ps.sum("cents"), 2)),
        )

    rows = [(1, "tea", 30), (1, "ink", 40), (1, "pen", 40), (1, "oil", None), (2, "jam", 5)]
    assert once(build, "shop long, item string, cents long?", rows) == [
        (1, "ink", 1, 1, 1, None, 41, 40),
        (1, "oil", 4, 3, 4, "tea", None, 30),
        (1, "pen", 1, 1, 2, "ink", 31, 80),
        (1, "tea", 3, 2, 3, "pen", None, 70),
        (2, "jam", 1, 1, 1, None, None, 5),
    ]


def test_columns_over_partitions_take_the_place_of_others_and_meet_expressions() -> None:
    build = lambda t: t.with_columns(  # noqa: E731
        a=ps.row_number().over(order_by="a"), c=ps.rank().over("b", order_by="a"), d=col("a") * 2
    ).filter(col("c") == 1)
    assert once(build, "a long, b long", [(7, 1), (5, 1), (6, 2)]) == [(1, 1, 1, 10), (2, 2, 1, 12)]


def test_copies_of_a_record_have_places_of_their_own() -> None:
    build = lambda t: t.select(  # noqa: E731
        n=ps.row_number().over(order_by="a"), r=ps.rank().over(order_by="a")
    )
    assert once(build, "a long", [(7,), (7,), (9,)]) == [(1, 1), (2, 1), (3, 3)]


def test_any_aggregate_rolls() -> None:
    aggregates = {
        "n": ps.count(), "m": ps.median("v"), "d": ps.count_distinct("v"), "o": ps.mode("v"),
        "x": ps.max_by("t", "v"), "s": ps.stddev("v"), "b": ps.bool_or(col("v") > 4),
    }  # fmt: skip
    build = lambda t: t.select(  # noqa: E731
        "i", **{name: ps.rolling(a, 2).over(order_by="i") for name, a in aggregates.items()}
    )
    rows = [(1, 4, "x"), (2, None, "y"), (3, 8, "z"), (4, 8, "w")]
    assert once(build, "i long, v long?, t string", rows) == [
        (1, 1, 4.0, 1, 4, "x", None, False),
        (2, 2, 4.0, 1, 4, "x", None, False),
        (3, 2, 8.0, 1, 8, "z", None, True),
        (4, 2, 8.0, 1, 8, "w", 0.0, True),
    ]


def by_texts(t: Any) -> dict[str, Any]:
    return {
        "top": t.group_by("k").top_k(2, by="t", descending=False),
        "agg": t.group_by("k").agg(m=ps.max("t"), b=ps.min_by("t", "n"), o=ps.mode("t")),
        "lag": t.select("k", "t", before=ps.lag("t").over("k", order_by=["t", "n"])),
    }


def test_texts_are_in_one_order_in_every_process() -> None:
    """Their numbers and labels are others in each."""
    rows = [
        [(k, f"https://an.example/{(k * 7 + j * 5 + part * 3) % 11:03}", j) for k in range(3)
         for j in range(4)]
        for part in range(2)
    ]  # fmt: skip

    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        if worker.index:
            from pointstamp.containers.dictionary import TEXTS

            TEXTS.number(b"a text that the other one has not")
        with worker.dataflow() as scope:
            input_, t = scope.new_collection("k long, t string, n long")
            for name, made in by_texts(t).items():
                made.inspect(lambda row, time, diff, name=name: seen.append((name, row, diff)))
        input_.insert(rows[worker.index])
        input_.close()
        worker.run()
        return seen

    view = ps.View(lambda scope, t: by_texts(t), t="k long, t string, n long")
    view.insert("t", [*rows[0], *rows[1]])
    expected = [(name, *pair) for name, changes in view.advance().items() for pair in changes]
    found = [update for part in ps.execute(main, workers=2) for update in part]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


# What is refused.

REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda t: ps.product("a"), BuildError, "sum of logarithms"),
    (lambda t: ps.first("a"), BuildError, "use min_by"),
    (lambda t: ps.last("a"), BuildError, "use max_by"),
    (lambda t: ps.quantile("a", 1.5), BuildError, "from 0 to 1"),
    (lambda t: ps.quantile("a", math.nan), BuildError, "from 0 to 1"),
    (lambda t: ps.min_by(1, "a"), BuildError, "no column"),  # type: ignore[arg-type]  # to be seen
    (lambda t: t.agg(m=ps.median(ps.col("a") > 1)), SchemaError, "of boolean"),
    (lambda t: t.agg(m=ps.median("d")), SchemaError, "of date"),
    (lambda t: t.agg(m=ps.min_by("z", "a")), ColumnError, "'z'"),
    (lambda t: t.agg(m=ps.max_by("a", "z")), ColumnError, "'z'"),
    (lambda t: t.group_by("a").top_k(1, by=[]), BuildError, "one column or more"),
    (lambda t: t.group_by("a").top_k(1, by=["t", "t"]), BuildError, "each once"),
    (lambda t: t.group_by("a").top_k(1, by="z"), ColumnError, "'z'"),
    (lambda t: t.group_by("a").top_k(1, by="t", descending=1), BuildError, "True or False"),
    (lambda t: t.group_by("a").top_k(1, ["t", "d"], descending=[True]), BuildError, "1 values"),
    (lambda t: t.group_by("a").reduce(7, "a long"), BuildError, "no function"),
    (lambda t: t.group_by("a").reduce(max, "a lon"), SchemaError, "no type"),
    (lambda t: t.select(r=ps.rank()), BuildError, "has no order"),
    (lambda t: t.select(ps.rank().over(order_by="a")), ColumnError, "has no name"),
    (lambda t: t.select(r=ps.rank().over(order_by="z")), ColumnError, "'z'"),
    (lambda t: t.select(r=ps.rank().over("z", order_by="a")), ColumnError, "'z'"),
    (lambda t: t.select(r=ps.rank().over(col("a"), order_by="a")), BuildError, "names of columns"),
    (lambda t: t.select(r=ps.lag("z").over(order_by="a")), ColumnError, "'z'"),
    (lambda t: ps.lag("a", 0), BuildError, "1 or more"),
    (lambda t: ps.lag(1), BuildError, "no column"),  # type: ignore[arg-type]  # as is to be seen
    (lambda t: ps.rolling("a", 3), BuildError, "no aggregate such as"),  # type: ignore[arg-type]
    (lambda t: ps.rolling(ps.count(), True), BuildError, "1 or more"),
    (lambda t: t.select(r=ps.rolling(ps.sum("t"), 2).over(order_by="a")), SchemaError, "of string"),
]


@pytest.mark.parametrize(("make", "error", "said"), REFUSED)
def test_what_cannot_be_is_refused_when_it_is_built(
    make: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        ps.View(lambda scope, t: make(t), t="a long, t string, d date")
