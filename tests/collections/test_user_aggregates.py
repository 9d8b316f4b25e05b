"""Aggregates and reductions by functions of the user's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col
from pointstamp.errors import BuildError, OperatorError, SchemaError
from tests.collections.lives import PLANS, LifePlan, check_lives
from tests.collections.running import run_epochs
from tests.collections.temporal_programs import accumulated
from tests.conftest import examples

SALES = "k long, v long?, w double, t string?"

Row = tuple[Any, ...]


def weighted(state: Any, pair: Any, n: int) -> Any:
    """The sum of the second, and of the product of both."""
    value, weight = pair
    return state[0] + n * Fraction(weight), state[1] + n * value * Fraction(weight)


def quotient(state: Any) -> float | None:
    """The mean."""
    return float(state[1] / state[0]) if state[0] else None


MEAN = ps.linear_aggregate(("v", "w"), zero=(0, 0), add=weighted, emit=quotient, type="double?")
LENGTHS = ps.linear_aggregate(
    "t", zero=0, add=lambda state, t, n: state + n * len(t), emit=lambda s: s, type="long"
)
PARITY = ps.linear_aggregate(
    col("v") + 1, zero=0, add=lambda state, v, n: state ^ (v & -(n % 2)), emit=str, type="string"
)
"""Of bits a group, too, if not that of sums."""


def seen(batch: Any, offsets: Any) -> Any:
    """Of each group its key, how many records, how many values, and their sum."""
    assert offsets.dtype == np.int64
    assert offsets[0] == 0
    assert (np.diff(offsets) > 0).all()
    v, k = batch.column("v"), batch.column("k").to_numpy()
    starts = offsets[:-1]
    assert (k == np.repeat(k[starts], np.diff(offsets))).all()
    there = np.add.reduceat(np.array(v.is_valid()).astype(np.int64), starts)
    sums = np.add.reduceat(np.array(v.fill_null(0)), starts)
    return pa.record_batch(
        {"k": k[starts], "n": np.diff(offsets), "there": there, "v": pa.array(sums)}
    )


def doubled(batch: Any, offsets: Any) -> Any:
    """Each text that is there, twice, in groups of which some come to nothing."""
    texts = batch.column("t").to_pylist()
    parts = [[t for t in texts[begin:end] if t is not None] * 2 for begin, end in pairwise(offsets)]
    return pa.table({"t": pa.array([t for part in parts for t in part], pa.string())}), [
        0,
        *np.cumsum([len(part) for part in parts]).tolist(),
    ]


def build(which: int) -> Any:
    forms = [
        lambda t: t.group_by("k").agg(mean=MEAN, texts=LENGTHS, n=ps.count()),
        lambda t: t.group_by("t").agg(bits=PARITY),
        lambda t: t.agg(mean=MEAN),
        lambda t: t.group_by("k").reduce_batches(seen, "k long, n long, there long, v long"),
        lambda t: t.group_by("t", "k").reduce_batches(doubled, "t string"),
    ]
    return lambda inputs: forms[which](inputs[0])


def expected(which: int, rows: Counter[Row]) -> Counter[Row]:
    """What a build gives, in plain Python."""
    places = [(0,), (3,), (), (0,), (3, 0)][which]
    groups: dict[Row, list[Row]] = {} if places else {(): []}
    for row in rows.elements():
        groups.setdefault(tuple(row[place] for place in places), []).append(row)
    found: Counter[Row] = Counter()
    for key, group in groups.items():
        v = [row[1] for row in group if row[1] is not None]
        texts = [row[3] for row in group if row[3] is not None]
        weights = [(row[1], Fraction(row[2])) for row in group if row[1] is not None]
        total = sum(weight for _, weight in weights)
        mean = float(sum(x * weight for x, weight in weights) / total) if total else None
        if which == 0:
            lengths = sum(map(len, texts)) if texts else None
            found[*key, mean, lengths, len(group)] += 1
        elif which == 1:
            bits = 0
            for x in v:
                bits ^= x + 1
            found[*key, str(bits) if v else None] += 1
        elif which == 2:
            found[mean,] += 1
        elif which == 3:
            found[*key, len(group), len(v), sum(v)] += 1
        else:
            found.update((t,) for t in texts * 2)
    return found


@dataclass(frozen=True)
class Sales:
    """Epochs of changes, and what is computed of them."""

    which: int
    epochs: list[list[list[tuple[Row, int]]]]
    n_inputs: ClassVar = 1

    def build(self, inputs: Any) -> Any:
        """With the operators."""
        return build(self.which)(inputs)

    def expected(self) -> list[Counter[Row]]:
        """In plain Python, at each epoch."""
        there: Counter[Row] = Counter()
        found = []
        for (changes,) in self.epochs:
            for row, diff in changes:
                there[row] += diff
            found.append(expected(self.which, there))
        return found


@st.composite
def sales(draw: Any) -> Sales:
    """Insertions, also of several copies, and deletions of what was inserted."""
    rows = st.tuples(
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(-5, 5)),
        st.sampled_from([0.1, -0.1, 1e16, 3.0, 0.0]),
        st.sampled_from([None, "", "a", "bcd"]),
    )
    known: list[Row] = []
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        added = draw(st.lists(st.tuples(rows, st.sampled_from([1, 1, 3])), max_size=6))
        places = st.sampled_from(range(len(known))) if known else st.integers()
        gone = draw(st.lists(places, max_size=4 if known else 0, unique=True))
        removed = [known[place] for place in gone]
        known = [row for place, row in enumerate(known) if place not in gone]
        known += [row for row, n in added for _ in range(n)]
        epochs.append([[*added, *((row, -1) for row in removed)]])
    return Sales(draw(st.integers(0, 4)), epochs)


@settings(max_examples=examples(120))
@given(sales(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def test_what_functions_make_of_groups_is_what_recomputing_gives(
    program: Sales, workers: int, at_a_time: int, seed: int
) -> None:
    check_sales(program, workers, at_a_time, seed)


def check_sales(program: Sales, workers: int, at_a_time: int, seed: int) -> None:
    """The updates of all workers add up to what recomputing gives, at each epoch."""
    given = ([SALES], program.build, program.epochs, at_a_time)
    parts = ps.simulate(run_epochs, *given, workers=workers, seed=seed)
    found = accumulated([update for part in parts for update in part], len(program.epochs))
    assert found == program.expected()
    assert {time for part in parts for _, time, _ in part} <= set(range(len(found)))


@settings(max_examples=examples(60))
@given(sales(), PLANS)
def test_what_functions_keep_goes_on_from_snapshots(program: Sales, plans: list[LifePlan]) -> None:
    check_lives(program, plans, 1, 100, SALES)


@pytest.mark.parametrize(
    "reduced",
    [
        lambda s: s.group_by("k").agg(v=LONGEST_SUM),
        lambda s: s.group_by("k").reduce_batches(total, "k long, v long"),
    ],
)
def test_they_are_in_loops_too(reduced: Any) -> None:
    """Sums of sums are sums: the loop ends with what one round gives."""
    view = ps.View(
        lambda scope, t: {"loop": t.iterate(lambda s: reduced(s)), "once": reduced(t)},
        t="k long, v long",
    )
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for _ in range(5):
        new = [(int(k), int(v)) for k, v in rng.integers(0, 9, (6, 2))]
        view.insert("t", new)
        view.delete("t", rows[:2])
        rows = rows[2:] + new
        view.advance()
        once = view.snapshot("once")[:]
        assert view.snapshot("loop")[:] == once
        assert len(once) == len({k for k, _ in rows})
    view.close()


LONGEST_SUM = ps.linear_aggregate(
    "v", zero=0, add=lambda s, v, n: s + n * v, emit=lambda s: s, type="long"
)


def total(batch: Any, offsets: Any) -> Any:
    sums = np.add.reduceat(batch["v"].to_numpy(), offsets[:-1])
    return pa.table({"k": batch["k"].take(pa.array(offsets[:-1])), "v": sums})


def test_all_groups_of_a_time_are_one_call() -> None:
    calls: list[int] = []

    def function(batch: Any, offsets: Any) -> Any:
        calls.append(len(offsets) - 1)
        return pa.table({"k": batch["k"].take(pa.array(offsets[:-1]))})

    view = ps.View(
        lambda scope, t: t.group_by("k").reduce_batches(function, "k long"), t="k long, v long"
    )
    view.insert("t", [(k, v) for k in range(500) for v in range(3)])
    assert len(view.advance()) == 500
    view.insert("t", [(k, 7) for k in range(0, 500, 50)])
    assert view.advance() == []
    assert calls == [500, 10]
    view.delete("t", [(3, v) for v in range(3)])
    assert view.advance() == [((3,), -1)]
    assert calls == [500, 10], "of no records nothing is asked"
    view.close()


def _fails(build: Any, said: str, rows: list[Row] | None = None) -> None:
    view = ps.View(lambda scope, t: build(t), t="k long, v long?, w double")
    view.insert("t", rows or [(1, 2, 0.5), (1, 3, 0.25)])
    with pytest.raises(OperatorError, match=said):
        view.advance()


def linear(**changed: Any) -> Any:
    given = {"zero": 0, "add": lambda s, v, n: s + v * n, "emit": lambda s: s, "type": "long"}
    of = changed.pop("of", "v")
    return lambda t: t.group_by("k").agg(a=ps.linear_aggregate(of, **{**given, **changed}))


def test_functions_that_are_no_action_of_a_group_are_found_out() -> None:
    said = r"linear_aggregate\(col\('v'\)\): add is no action of a commutative group: of 2 once"
    _fails(linear(add=lambda s, v, n: max(s, v)), said)
    _fails(linear(add=lambda s, v, n: s + v), said)
    _fails(linear(add=lambda s, v, n: s + v * (1 if n > 0 else -1)), "of 2 twice")
    # Each can be taken out again, and the order is not nothing.
    turned = linear(add=lambda s, v, n: s + n if v == 2 else -s if n % 2 else s)
    _fails(turned, "of 3 and 2 in both orders it gives 1 and -1")
    _fails(linear(of="w", add=lambda s, v, n: s + v * n), "gave 0.25, and should give a state as 0")
    _fails(linear(add=lambda s, v, n: (s, n)), r"gave \(0, 1\), and should give a state as 0 is")
    _fails(linear(add=lambda s, v, n: s // 0), "add.0, 2, 1. failed: ZeroDivisionError")
    _fails(linear(emit=lambda s: s // 0), "emit.5. failed: ZeroDivisionError")
    _fails(linear(emit=lambda s: None), r"emit.5. gave None, .* it would be long\?")
    _fails(linear(emit=lambda s: "five"), "emit.5.: 'five' of type str is no long")


class _Groups:
    """What a linear aggregate is not reached by."""

    def group_by(self, key: str) -> Any:
        return self

    def agg(self, **aggregates: Any) -> Any:
        raise AssertionError(f"{aggregates} should be refused before")


def test_a_linear_aggregate_that_cannot_be_is_refused() -> None:
    t = _Groups()
    with pytest.raises(BuildError, match=r"is given zero=0\.0, and needs an int, a Fraction"):
        linear(zero=0.0)(t)
    with pytest.raises(BuildError, match=r"is given zero=\(\)"):
        linear(zero=())(t)
    with pytest.raises(BuildError, match="is given add=7, which is no function"):
        linear(add=7)(t)
    with pytest.raises(BuildError, match="should be given one or two columns"):
        linear(of=["a", "b", "c"])(t)
    with pytest.raises(BuildError, match="is given 7, which is no column"):
        linear(of=[7])(t)
    with pytest.raises(SchemaError, match="and should be given one"):
        linear(type="long, b long")(t)


def batches(function: Any, schema: str = "n long") -> Any:
    return lambda t: t.group_by("k").reduce_batches(function, schema)


def test_what_a_function_of_batches_gives_is_checked() -> None:
    table = pa.table({"n": [1, 2]})
    where = "operator 'ReduceBatches', a batch of 1 groups: "
    _fails(batches(lambda batch, offsets: 1 // 0), f"{where}ZeroDivisionError")
    _fails(batches(lambda batch, offsets: table), "gave 2 rows, and should give one for each group")
    for offsets in ([0, 1], [1, 2], [0, 1, 2], [0.0, 2.0], [0]):
        said = "and should give 2 integers up from 0 to 2"
        _fails(batches(lambda batch, _, offsets=offsets: (table, offsets)), said)
    _fails(batches(lambda batch, offsets: table, "m long"), r"columns for operator .* are \['n'\]")
    with pytest.raises(BuildError, match="is given 7, which is no function"):
        ps.View(lambda scope, t: batches(7)(t), t="k long, v long")
