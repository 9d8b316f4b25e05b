"""Sums of floats in two words: exact where nothing is rounded, and always consistent."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable, keyed_updates
from pointstamp.collections.approximate_sums import ApproximateSum
from pointstamp.collections.groups import Groups
from pointstamp.containers.words import float_words, words_float
from pointstamp.errors import SchemaError
from tests.collections.lives import PLANS, LifePlan, Run, check_lives
from tests.conftest import examples

SCHEMA = "k long, f double?"
NARROW = [0.0, 0.1, -0.1, 1 / 3, 1e-3, -12.5, 1e6 + 0.7, 2.0**30, math.inf, -math.inf, math.nan]
"""Of which all sums are exact."""
WIDE = [1.0, 0.1, 1e300, -1e300, 1.7e308, 1e-200, 1e16 / 3, -1e100 / 7, 1e-300, 3e50, math.inf]

Row = tuple[int, float | None]


@dataclass(frozen=True)
class FloatChanges:
    """Changes of floats by key, whose sums and means are kept."""

    epochs: list[list[list[tuple[Row, int]]]]
    n_inputs: int = 1

    def build(self, collections: list[Any]) -> Any:
        return (
            collections[0]
            .group_by("k")
            .agg(
                total=ps.sum("f", approximate=True),
                mean=ps.avg("f", approximate=True),
                n=ps.count(),
            )
        )

    def expected(self) -> list[Counter[Any]]:
        """After each epoch, exactly."""
        rows: Counter[Row] = Counter()
        found = []
        for (changes,) in self.epochs:
            for row, diff in changes:
                rows[row] += diff
            found.append(Counter(dict.fromkeys(answers_of(rows), 1)))
        return found


def answers_of(rows: Counter[Row]) -> list[tuple[Any, ...]]:
    answers = []
    for key in {k for k, _ in rows}:
        counts = {f: n for (k, f), n in rows.items() if k == key}
        if (n_rows := sum(counts.values())) > 0:
            counts.pop(None, 0)
            n = sum(counts.values())
            special = [f * c for f, c in counts.items() if c and not math.isfinite(f)]
            total: Fraction = sum(
                (Fraction(f) * c for f, c in counts.items() if math.isfinite(f)), Fraction(0)
            )
            if n == 0:
                answers.append((key, None, None, n_rows))
            elif special:
                answer = sum(special)
                answers.append((key, answer, answer / n, n_rows))
            else:
                answers.append((key, rounded(total), rounded(total / n), n_rows))
    return [tuple(NAN if x != x else x for x in answer) for answer in answers]


SMALLEST = Fraction(1, 2**990)
"""What values near the least double may lose."""

NAN = math.nan
"""One object, so that tuples with it are equal."""


def rounded(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def changes_of(values: list[float]) -> st.SearchStrategy[FloatChanges]:
    """Values that come and go, some before they came, and all of which go in the end."""
    row = st.tuples(st.integers(0, 2), st.sampled_from([None, *values]))
    epoch = st.lists(st.tuples(row, st.sampled_from([1, 1, 2, -1, 5])), max_size=6)

    def there_and_back(epochs: list[Any]) -> FloatChanges:
        back = [[(row, -diff) for row, diff in changes] for changes in epochs]
        return FloatChanges([[changes] for changes in [*epochs, *back, *epochs[:1]]])

    return st.lists(epoch, min_size=1, max_size=5).map(there_and_back)


def is_near(found: float | None, expected: float | None, greatest: float) -> bool:
    if found is None or expected is None or not math.isfinite(expected):
        return found is expected or found == expected or (found != found and expected != expected)
    return abs(Fraction(found) - Fraction(expected)) <= Fraction(greatest) / 2**52 + SMALLEST


def check_near(parts: Any, program: FloatChanges, exact: bool) -> None:
    """At each epoch each group has one row, of a sum that is near; narrow ones are exact."""
    now: Counter[Any] = Counter()
    for epoch, expected in enumerate(program.expected()):
        for row, time, diff in parts:
            if time == epoch:
                now[tuple(NAN if x != x else x for x in row)] += diff
        now = Counter({row: n for row, n in now.items() if n})
        assert set(now.values()) <= {1}, "what is taken back is what was given"
        wanted = {row[0]: row for row in expected}
        assert sorted(row[0] for row in now) == sorted(wanted), epoch
        for key, total, mean, n in now:
            _, of_total, of_mean, of_n = wanted[key]
            greatest = 0.0 if exact else 2e308 / 1e16
            assert n == of_n
            if exact and of_total is not None and math.isfinite(of_total):
                assert total == of_total
                assert math.isclose(mean, of_mean, rel_tol=3e-16)
            else:
                bound = greatest and float(of_scale(program, key))
                assert is_near(total, of_total, bound)
                assert is_near(mean, of_mean, bound)


def of_scale(program: FloatChanges, key: int) -> float:
    """The magnitude of all values of a key that ever came, which bounds what is rounded."""
    sizes = [
        abs(Fraction(f)) * abs(diff)
        for (changes,) in program.epochs
        for (k, f), diff in changes
        if k == key and f is not None and math.isfinite(f)
    ]
    return float(min(sum(sizes, Fraction(0)), Fraction(1.7e308)))


def check_floats(program: FloatChanges, workers: int, at_a_time: int, exact: bool) -> None:
    def run(worker: ps.Worker) -> list[Any]:
        plain = Run(program, Durable(checkpoint), (), at_a_time, SCHEMA)
        return plain(worker)[0]

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        parts = ps.simulate(run, workers=workers, seed=3)
        check_near([update for part in parts for update in part], program, exact)


def check_again(program: FloatChanges, cut: int) -> None:
    """What is begun again takes back what was given before, to the bit."""
    cut %= len(program.epochs)
    # Of small snapshots most are what came since the one before, where that is enough.
    with tempfile.TemporaryDirectory() as folder, patch.object(keyed_updates, "DEAD_PART", 1):
        checkpoint = Checkpoint(folder)
        cuts = tuple(sorted({cut // 2, cut}))
        ran = ps.simulate(Run(program, Durable(checkpoint), cuts, 1, SCHEMA), workers=2, seed=1)
        for number, each in enumerate(cuts):
            manifest = checkpoint.commit_manifest(each, [parts[number] for _, parts in ran], {})
        plain = Run(program, Durable(checkpoint, manifest), (), 1, SCHEMA)
        again = [update for seen, _ in ps.simulate(plain, workers=3, seed=1) for update in seen]
        before = [update for seen, _ in ran for update in seen if update[1] <= cut]
        check_near([*before, *again], program, exact=False)


@settings(max_examples=examples(60))
@given(changes_of(NARROW), st.sampled_from([1, 2]), st.sampled_from([1, 7]))
def test_sums_that_fit_are_exact(program: FloatChanges, workers: int, at_a_time: int) -> None:
    check_floats(program, workers, at_a_time, exact=True)


@settings(max_examples=examples(60))
@given(changes_of(WIDE), st.sampled_from([1, 2]), st.sampled_from([1, 7]))
def test_others_are_near_and_taken_back_as_given(
    program: FloatChanges, workers: int, at_a_time: int
) -> None:
    check_floats(program, workers, at_a_time, exact=False)


@settings(max_examples=examples(30))
@given(changes_of(WIDE), st.integers(0, 20))
def test_what_is_begun_again_takes_back_what_was_given(program: FloatChanges, cut: int) -> None:
    check_again(program, cut)


def test_a_group_that_is_emptied_keeps_nothing_though_its_sum_was_rounded() -> None:
    kept = ApproximateSum()
    kept.grow(2)
    random = np.random.default_rng(4)
    values = random.normal(size=2_000) * 10.0 ** random.integers(-9, 9, 2_000)
    numbers, keys = np.zeros(1, np.int32), np.zeros((1, 1), np.int64)
    for diff, order in ((1, range(2_000)), (-1, random.permutation(2_000))):
        for place in order:
            word = float_words(values[place : place + 1])
            kept.add(numbers, keys, word, np.array([diff]))
    assert kept.is_empty(np.array([0])).all()
    # One value for another is no empty group, though there are as many deletions.
    kept.add(
        np.zeros(2, np.int32),
        np.zeros((2, 1), np.int64),
        float_words(values[:2]),
        np.array([1, -1]),
    )
    assert not kept.is_empty(np.array([0])).any()
    kept.add(numbers, keys, float_words(values[1:2]), np.array([1]))
    (word,), (there,) = kept.answers(np.array([0]), keys)
    assert there
    assert words_float(np.array([word]))[0] == values[0]


def test_a_long_sum_is_as_that_of_fractions() -> None:
    random = np.random.default_rng(5)
    values = random.normal(size=5_000)
    kept, groups = ApproximateSum(), Groups(1)
    keys = random.integers(0, 7, (5_000, 1))
    numbers = groups.number(np.ascontiguousarray(keys))
    kept.grow(groups.room)
    kept.add(numbers, keys, float_words(values), np.ones(5_000, np.int64))
    every = np.arange(len(groups))
    words, _ = kept.answers(every, groups.keys(every))
    found = words_float(words)
    for number, (key,) in enumerate(groups.keys(every)):
        assert found[number] == float(sum(map(Fraction, values[keys[:, 0] == key])))


def test_infinities_leave_nothing_behind() -> None:
    view = ps.View(lambda scope, t: t.agg(f=ps.sum("f", approximate=True)), t="f double")
    view.insert("t", [(1.5,), (math.inf,), (-math.inf,)])
    ((row, _),) = view.advance()
    assert math.isnan(row[0])
    view.delete("t", [(-math.inf,)])
    assert (math.inf,) in [row for row, diff in view.advance() if diff > 0]
    view.delete("t", [(math.inf,)])
    assert (1.5,) in [row for row, diff in view.advance() if diff > 0]
    view.insert("t", [(1.7e308,), (1.7e308,)])
    assert (math.inf,) in [row for row, diff in view.advance() if diff > 0]
    view.delete("t", [(1.7e308,), (1.7e308,)])
    assert (1.5,) in [row for row, diff in view.advance() if diff > 0]
    view.close()


@pytest.mark.parametrize("aggregate", [ps.sum, ps.avg])
def test_of_what_is_exact_in_two_words_it_is_refused(aggregate: Any) -> None:
    with pytest.raises(SchemaError, match=r"col\('v'\).* approximate=True is of long"):
        ps.View(lambda scope, t: t.agg(v=aggregate("v", approximate=True)), t="v long")


def test_windows_of_rows_and_loops_take_it() -> None:
    def rolled(scope: Any, t: Any) -> Any:
        mean = ps.rolling(ps.avg("f", approximate=True), 2).over("k", order_by="f")
        return t.with_columns(mean=mean)

    view = ps.View(rolled, t="k long, f double")
    view.insert("t", [(1, 1.0), (1, 2.0)])
    assert list(view.advance()) == [((1, 1.0, 1.0), 1), ((1, 2.0, 1.5), 1)]
    view.close()

    def looped(scope: Any, t: Any) -> Any:
        def halved(s: Any) -> Any:
            total = s.concat(t).group_by("k").agg(f=ps.sum("f", approximate=True))
            return total.select("k", f=ps.col("f") / 2)

        return t.iterate(halved, limit=3)

    view = ps.View(looped, t="k long, f double?")
    view.insert("t", [(1, 1.0), (1, 2.0)])
    ((row, diff),) = view.advance()
    assert (row[0], diff) == (1, 1)
    view.close()


@settings(max_examples=examples(15))
@given(changes_of(NARROW[:8]), PLANS)
def test_lives_of_narrow_sums(program: FloatChanges, lives: list[LifePlan]) -> None:
    check_lives(Total(program.epochs), lives, few=8, schema=SCHEMA)


class Total(FloatChanges):
    """Sums alone."""

    def build(self, collections: list[Any]) -> Any:
        return collections[0].group_by("k").agg(total=ps.sum("f", approximate=True))

    def expected(self) -> list[Counter[Any]]:
        return [Counter(row[:2] for row in rows) for rows in super().expected()]


@pytest.mark.parametrize("approximate", [False, True])
def test_an_infinity_fewer_than_no_times_has_the_other_sign(approximate: bool) -> None:
    def build(scope: Any, t: Any) -> Any:
        total = ps.sum("f", approximate=approximate)
        mean = ps.avg("f", approximate=approximate)
        return t.group_by("k").agg(total=total, mean=mean, n=ps.count("f"))

    view = ps.View(build, t=SCHEMA)
    view.update("t", [((1, math.inf), -1), ((1, 0.5), 3)])
    assert view.advance() == [((1, -math.inf, -math.inf, 2), 1)]
    view.update("t", [((1, -math.inf), 1), ((1, 0.5), -2), ((1, None), 1)])  # as one more
    assert view.snapshot() == [(1, -math.inf, -math.inf, 2)]
    view.advance()
    assert view.snapshot() == [(1, -math.inf, -math.inf, 1)]
    view.update("t", [((1, 0.5), -2), ((1, None), 2)])  # there are rows, and fewer values than none
    view.advance()
    assert view.snapshot() == [(1, -math.inf, math.inf, -1)]
    view.close()
