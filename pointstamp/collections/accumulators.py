"""What is kept of each group for an aggregate, and its answer.

Sums suffice for *accumulable* aggregates: count, sum, average. *Ordered* ones, least and
greatest, need the values of the group in order: those are in `ordered.py`.

Sums are exact, so that an insertion and its deletion leave the same bits: those of integers in
two words, those of floats as Python's integers, in units of the least float. Those that are
not are in `approximate_sums.py`.

Source: the kinds of reductions are Materialize's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from pointstamp.collections.counted import RecordCounts
from pointstamp.collections.groups import Numbers, add_diffs, grown
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import WordType, float_words, words_float
from pointstamp.errors import DataError
from pointstamp.kernels.group_sums import SumOverflow

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Answer = tuple[Ints, Flags]
"""The word of each, and whether there is one; without one the word is 0."""

Parts = Iterable[tuple[str, Rows]]

HeldTexts = Iterable[tuple[Rows, tuple[int, ...]]]
"""Rows, and which of their words are numbers of texts."""

_LOW = np.int64(0xFFFF_FFFF)
_HALF = np.int64(32)
_UNIT = 1074
"""The least float above 0 is 2 to the power of minus so much."""
_MOST_DIFF = 1 << 31
_MOST_SUM = 1 << 62


COUNTS, SUMS, LIMBS, VALUES, OTHERS = "counts", "sums", "limbs", "values", "others"
"""The parts that are stored of accumulators."""

_LIMB = 62


class Accumulator:
    """What one aggregate keeps, by the numbers of groups."""

    is_approximate = False
    """Whether an answer depends on the order in which updates came."""

    def contents(self, keys: Rows) -> Parts:
        """What is kept, as rows: the words of a key, others, and a diff.

        keys : int64[g, k], those of the groups, by number
        """
        raise NotImplementedError

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take in a part of what `contents` gave, where there is nothing yet.

        numbers : the group of each row · words : int64[n, w], behind its key
        """
        raise NotImplementedError

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """What may name texts, as it is kept.

        texts : which words of a key, and of a value behind it, are numbers of texts
        """
        raise NotImplementedError

    def grow(self, n: int) -> None:
        """Have room for `n` groups, of which new ones are empty."""
        raise NotImplementedError

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Take updates in.

        numbers : the group of each · keys : int64[n, k], its key
        words : the value of each, which is not null; of two values int64[n, w] · diffs : not 0
        """
        raise NotImplementedError

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """Of some groups; `keys` are theirs."""
        raise NotImplementedError

    def is_empty(self, numbers: Ints) -> Flags:
        """Of which groups it keeps nothing."""
        raise NotImplementedError

    def keep(self, numbers: Ints) -> None:
        """Forget all but some groups, which are numbered anew, in this order."""
        raise NotImplementedError


class CountAccumulator(Accumulator):
    """How many values there are, nulls apart."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def contents(self, keys: Rows) -> Parts:
        """The counts, as diffs."""
        counts = self._counts[: len(keys)]
        there = counts != 0
        yield COUNTS, np.column_stack([keys[there], counts[there]])

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Add the diffs."""
        np.add.at(self._counts, numbers, diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._counts = grown(self._counts, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add the diffs."""
        add_diffs(self._counts, numbers, diffs, "a group")

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The counts, which are always there."""
        return self._counts[numbers], np.ones(len(numbers), np.bool_)

    def counts(self, numbers: Ints) -> Ints:
        """Of some groups."""
        counts: Ints = self._counts[numbers]
        return counts

    def is_empty(self, numbers: Ints) -> Flags:
        """Where it is 0."""
        empty: Flags = self._counts[numbers] == 0
        return empty

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts = self._counts[numbers]


class IntegerSum(Accumulator):
    """The sum of words, in an upper and a lower part; null of no values."""

    def __init__(self, what: str, n_digits: int | None = None) -> None:
        self._what = what
        self._most = None if n_digits is None else 10**n_digits
        self._counts = CountAccumulator()
        self._upper = np.zeros(0, np.int64)
        self._lower = np.zeros(0, np.int64)

    def contents(self, keys: Rows) -> Parts:
        """The counts and both parts of the sums."""
        yield from self._counts.contents(keys)
        n = len(keys)
        yield SUMS, numbered_rows(keys, np.column_stack([self._upper[:n], self._lower[:n]]))

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        if part == COUNTS:
            self._counts.restore(part, numbers, keys, words, diffs)
        else:
            self._upper[numbers], self._lower[numbers] = words.T

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._counts.grow(n)
        self._upper, self._lower = grown(self._upper, n), grown(self._lower, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add each part times the diff; what the lower part has above 32 bits goes up."""
        self._counts.add(numbers, keys, words, diffs)
        lower = (words & _LOW) * diffs
        upper = (words >> _HALF) * diffs + (lower >> _HALF)
        # The products of larger ones would not fit.
        for at in np.flatnonzero((diffs >= _MOST_DIFF) | (diffs <= -_MOST_DIFF)).tolist():
            product = int(words[at]) * int(diffs[at])
            if not -_MOST_SUM <= product >> 32 < _MOST_SUM:
                raise DataError(f"{self._what}: the values of a time sum up to more than 92 bits")
            upper[at], lower[at] = product >> 32, product & int(_LOW)
        if float(np.abs(upper).sum(dtype=np.float64)) >= _MOST_SUM:
            raise DataError(f"{self._what}: the values of a time sum up to more than 92 bits")
        np.add.at(self._upper, numbers, upper)
        if len(numbers) and np.abs(self._upper[numbers]).max() >= _MOST_SUM:
            raise DataError(f"{self._what} is beyond 92 bits")
        np.add.at(self._lower, numbers, lower & _LOW)
        touched = np.unique(numbers)
        carried = self._lower[touched]
        self._upper[touched] += carried >> _HALF
        self._lower[touched] = carried & _LOW

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The sums.

        Raises
        ------
        SumOverflow
            If one is beyond 64 bits, or has more digits than a decimal.
        """
        there = self._counts.counts(numbers) != 0
        upper, lower = self._upper[numbers], self._lower[numbers]
        beyond = (upper < -_MOST_DIFF) | (upper >= _MOST_DIFF)
        if beyond.any():
            at = int(beyond.argmax())
            total = (int(upper[at]) << 32) + int(lower[at])
            raise SumOverflow(0, total, keys[at].tolist())
        sums = (upper << _HALF) | lower
        if self._most is not None and (np.abs(sums) >= self._most).any():
            at = int(np.abs(sums).argmax())
            raise SumOverflow(0, int(sums[at]), keys[at].tolist())
        return np.where(there, sums, 0), there

    def totals(self, numbers: Ints) -> list[int]:
        """The sums as Python's integers, which have no end."""
        pairs = zip(self._upper[numbers].tolist(), self._lower[numbers].tolist(), strict=True)
        return [(upper << 32) + lower for upper, lower in pairs]

    def counts(self, numbers: Ints) -> Ints:
        """Of how many values."""
        return self._counts.counts(numbers)

    def is_empty(self, numbers: Ints) -> Flags:
        """Where all are 0."""
        rest: Flags = (self._upper[numbers] == 0) & (self._lower[numbers] == 0)
        return rest & self._counts.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts.keep(numbers)
        self._upper, self._lower = self._upper[numbers], self._lower[numbers]


def not_finite(plus: int, minus: int, nans: int) -> float:
    """The sum of so many inf, -inf and NaN; fewer than none are of the other sign.

    >>> not_finite(2, 0, 0), not_finite(0, -1, 0), not_finite(1, 1, 0)
    (inf, inf, nan)
    """
    signed = [math.copysign(math.inf, n) for n in (plus, -minus) if n]
    return math.nan if nans else sum(signed)


class FloatSum(Accumulator):
    """The exact sum of floats, rounded once; null of no values."""

    def __init__(self) -> None:
        self._counts = CountAccumulator()
        self._finite: list[int] = []
        self._others = np.zeros((0, 3), np.int64)
        """How many inf, -inf and NaN."""

    def contents(self, keys: Rows) -> Parts:
        """The counts, those of what is not finite, and the sums in limbs."""
        yield from self._counts.contents(keys)
        yield SUMS, numbered_rows(keys, self._others[: len(keys)])
        yield LIMBS, limb_rows(keys, [[units] for units in self._finite[: len(keys)]])

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        if part == COUNTS:
            self._counts.restore(part, numbers, keys, words, diffs)
        elif part == SUMS:
            self._others[numbers] = words
        else:
            for number, (units,) in limb_sums(numbers, words, 1).items():
                self._finite[number] = units

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._counts.grow(n)
        self._others = grown(self._others, n)
        self._finite += [0] * (n - len(self._finite))

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add each in units of the least float, and count what is not finite."""
        self._counts.add(numbers, keys, words, diffs)
        values = words_float(words)
        for number, value, diff in zip(
            numbers.tolist(), values.tolist(), diffs.tolist(), strict=True
        ):
            if math.isfinite(value):
                self._finite[number] += _in_units(value) * diff
            else:
                self._others[number, 2 if value != value else 0 if value > 0 else 1] += diff

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The sums."""
        there = self._counts.counts(numbers) != 0
        sums = [self.total(number) for number in numbers.tolist()]
        return np.where(there, float_words(np.array(sums, np.float64)), 0), there

    def total(self, number: int) -> float:
        """The sum of one group."""
        plus, minus, nans = self._others[number].tolist()
        if plus or minus or nans:
            return not_finite(plus, minus, nans)
        return _rounded(self._finite[number], 1)

    def mean(self, number: int, n: int) -> float:
        """The sum of one group by `n`, rounded once."""
        # Of what is finite it is finite, also where the sum is beyond a float.
        if self._others[number].any():
            return self.total(number) / n
        return _rounded(self._finite[number], n)

    def counts(self, numbers: Ints) -> Ints:
        """Of how many values."""
        return self._counts.counts(numbers)

    def is_empty(self, numbers: Ints) -> Flags:
        """Where all are 0."""
        zeros: Flags = np.array(
            [self._finite[number] == 0 for number in numbers.tolist()], np.bool_
        )
        rest: Flags = (self._others[numbers] == 0).all(axis=1)
        return zeros & rest & self._counts.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts.keep(numbers)
        self._others = self._others[numbers]
        self._finite = [self._finite[number] for number in numbers.tolist()]


class Average(Accumulator):
    """The exact sum by the number of values, as a float rounded once."""

    def __init__(self, kind: WordType, scale: int, what: str) -> None:
        self._sum: IntegerSum | FloatSum = FloatSum() if kind.is_float else IntegerSum(what)
        self._unit = 10**scale

    def contents(self, keys: Rows) -> Parts:
        """As the sum."""
        return self._sum.contents(keys)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """As the sum."""
        self._sum.restore(part, numbers, keys, words, diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """As the sum."""
        self._sum.grow(n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """As the sum."""
        self._sum.add(numbers, keys, words, diffs)

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The averages."""
        counts = self._sum.counts(numbers).tolist()
        if isinstance(self._sum, FloatSum):
            means = [
                self._sum.mean(number, n) if n else 0.0
                for number, n in zip(numbers.tolist(), counts, strict=True)
            ]
        else:
            totals = self._sum.totals(numbers)
            means = [
                t / (n * self._unit) if n else 0.0 for t, n in zip(totals, counts, strict=True)
            ]
        there = np.array(counts, np.int64) != 0
        return np.where(there, float_words(np.array(means, np.float64)), 0), there

    def is_empty(self, numbers: Ints) -> Flags:
        """As the sum."""
        return self._sum.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """As the sum."""
        self._sum.keep(numbers)


class Moments(Accumulator):
    """The variance of a sample, or its root; null of fewer than two values.

    The sums of values and of their squares are exact, so the variance is rounded once.
    """

    def __init__(self, kind: WordType, scale: int, is_root: bool) -> None:
        self._kind = kind
        self._unit = 1 << _UNIT if kind.is_float else 10**scale
        self._is_root = is_root
        self._sums: list[list[int]] = []
        """Of each group: how many values, their sum, that of their squares, and how many are
        not finite."""

    def contents(self, keys: Rows) -> Parts:
        """The four numbers in limbs."""
        yield LIMBS, limb_rows(keys, self._sums[: len(keys)])

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        for number, sums in limb_sums(numbers, words, 4).items():
            self._sums[number] = sums

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._sums += [[0, 0, 0, 0] for _ in range(n - len(self._sums))]

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add each, and its square."""
        values = words_float(words) if self._kind.is_float else words
        for number, value, diff in zip(
            numbers.tolist(), values.tolist(), diffs.tolist(), strict=True
        ):
            sums = self._sums[number]
            sums[0] += diff
            if not math.isfinite(value):
                sums[3] += diff
                continue
            units = _in_units(value) if self._kind.is_float else value
            sums[1] += units * diff
            sums[2] += units * units * diff

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The variances, or their roots."""
        found = [self._answer(*self._sums[number]) for number in numbers.tolist()]
        there = np.array([answer is not None for answer in found], np.bool_)
        values = np.array([answer or 0.0 for answer in found], np.float64)
        return np.where(there, float_words(values), 0), there

    def _answer(self, n: int, total: int, squares: int, n_others: int) -> float | None:
        if n < 2:
            return None
        if n_others:
            return math.nan
        variance = _quotient(n * squares - total * total, n * (n - 1) * self._unit * self._unit)
        # Of fewer than no copies of a value there may be none.
        return math.sqrt(variance) if self._is_root and variance >= 0 else variance

    def is_empty(self, numbers: Ints) -> Flags:
        """Where all are 0."""
        return np.array([not any(self._sums[number]) for number in numbers.tolist()], np.bool_)

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._sums = [self._sums[number] for number in numbers.tolist()]


class AllOrAny(Accumulator):
    """Whether all values are true, or one is; null of no values."""

    def __init__(self, of_all: bool) -> None:
        self._of_all = of_all
        self._counts = np.zeros((0, 2), np.int64)
        """How many are false, and true."""

    def contents(self, keys: Rows) -> Parts:
        """Both counts."""
        yield SUMS, numbered_rows(keys, self._counts[: len(keys)])

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        self._counts[numbers] = words

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._counts = grown(self._counts, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Count each."""
        np.add.at(self._counts, (numbers, words), diffs)

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """True is 1."""
        n_false, n_true = self._counts[numbers].T
        there = (n_false > 0) | (n_true > 0)
        words = np.where(self._of_all, n_false <= 0, n_true > 0)
        return np.where(there, words, 0).astype(np.int64), there

    def is_empty(self, numbers: Ints) -> Flags:
        """Where both are 0."""
        empty: Flags = (self._counts[numbers] == 0).all(axis=1)
        return empty

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts = self._counts[numbers]


class DistinctCount(Accumulator):
    """How many different values there are, nulls apart.

    Parameters
    ----------
    number : callable
        Gives the number of the group of each of some rows, which all have one.
    """

    def __init__(self, n_key: int, number: Callable[[Rows], Numbers]) -> None:
        self._n_key = n_key
        self._number = number
        self._values = RecordCounts(n_key + 1, 1)
        self._distinct = CountAccumulator()

    def contents(self, keys: Rows) -> Parts:
        """How often each value is there, as its diff."""
        yield VALUES, self._values.contents(0)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take the values in."""
        self.add(numbers, keys, words[:, 0], diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """The values, behind their keys."""
        return [(self._values.records(), texts)]

    def grow(self, n: int) -> None:
        """Of 0."""
        self._distinct.grow(n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Count each value of each group, and those that come and go."""
        rows = np.ascontiguousarray(np.column_stack([keys, words, diffs]))
        changes = self._values.apply([rows], lambda count: np.minimum(np.maximum(count, 0), 1))
        keys, words = changes[:, : self._n_key], changes[:, self._n_key]
        self._distinct.add(self._number(changes), keys, words, changes[:, -1])

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The counts, which are always there."""
        return self._distinct.answers(numbers, keys)

    def is_empty(self, numbers: Ints) -> Flags:
        """Where it is 0; the values are kept by key."""
        return self._distinct.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """By index; the values are kept by key."""
        self._distinct.keep(numbers)


def numbered_rows(keys: Rows, words: Rows) -> Rows:
    """Rows of the groups of which not all words are 0, each with a diff of 1."""
    there = (words != 0).any(axis=1)
    return np.column_stack([keys[there], words[there], np.ones(int(there.sum()), np.int64)])


def limb_rows(keys: Rows, sums: list[list[int]]) -> Rows:
    """Rows of a key, which of its sums, a place, and 62 bits of the sum there with its sign."""
    places, found = [], []
    for number, of_group in enumerate(sums):
        for which, total in enumerate(of_group):
            sign, rest, place = (-1 if total < 0 else 1), abs(total), 0
            while rest:
                limb = rest & ((1 << _LIMB) - 1)
                if limb:
                    places.append(number)
                    found.append((which, place, sign * limb, 1))
                rest, place = rest >> _LIMB, place + 1
    words = np.array(found, np.int64).reshape(len(found), 4)
    return np.column_stack([keys[np.array(places, np.int64)], words])


def limb_sums(numbers: Numbers, words: Rows, n_sums: int) -> dict[int, list[int]]:
    """By the number of a group the sums that `limb_rows` was of; those without rows are all 0."""
    found: dict[int, list[int]] = {}
    for number, (which, place, limb) in zip(numbers.tolist(), words.tolist(), strict=True):
        found.setdefault(number, [0] * n_sums)[which] += limb << (place * _LIMB)
    return found


def _in_units(value: float) -> int:
    """A finite float in units of the least one above 0."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _UNIT) // denominator


def _rounded(units: int, n: int) -> float:
    """So many units by `n`, as the nearest float."""
    return _quotient(units, n << _UNIT)


def _quotient(one: int, other: int) -> float:
    """The nearest float, which may be infinite."""
    try:
        return one / other
    except OverflowError:
        return math.inf if one > 0 else -math.inf
