"""Sums of floats in two words: a double, and what is lost of it, as another one.

An exact sum has as many words as the exponents of its values ask for. Here what does not fit in
some 106 bits below the leading one is rounded away, with each value; so the bits of an answer
depend on the order in which values came and went. As long as all values and their sum fit into
these bits, as most amounts and measurements do, nothing is rounded, and it is the exact sum.

Rules
-----
1. An answer is a function of what is kept, so what is taken back is what was given. What is kept is
   therefore stored as it is, and never made anew of the updates that it came of.
2. Values that come at once are added in the order of their words. So a sum that is made of a whole
   group is the same each time.
3. What is not finite is counted apart, and leaves nothing behind when it goes.

Source: the error-free sum of two floats is Knuth's (TAOCP 2, 4.2.2), sums as pairs Dekker's ("A
floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.collections.accumulators import (
    COUNTS,
    OTHERS,
    SUMS,
    Accumulator,
    Answer,
    CountAccumulator,
    Flags,
    HeldTexts,
    Ints,
    Parts,
    not_finite,
    numbered_rows,
)
from pointstamp.collections.groups import Numbers, grown
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import float_words, words_float

Floats = npt.NDArray[np.float64]
Pairs = tuple[Floats, Floats]

_SCALE = 2.0**-64
"""Values are kept so much smaller, so that sums on the way may be beyond the greatest double."""
_LEAST_EXPONENT = 1_100
"""Exponents are counted from minus so much, that of 0 is 0."""
_NOTHING = 80
"""What is so many binary places below the greatest sum there was is what rounding left, once there
are as many deletions as insertions."""


class ApproximateSum(Accumulator):
    """The sum of floats in two words, or the mean; null of no values.

    Parameters
    ----------
    is_mean : bool
        Whether answers are divided by the number of values.
    """

    is_approximate = True

    def __init__(self, is_mean: bool = False) -> None:
        self._is_mean = is_mean
        self._counts = CountAccumulator()
        self._upper = np.zeros(0, np.float64)
        self._lower = np.zeros(0, np.float64)
        self._greatest = np.zeros(0, np.int16)
        """The exponent of the greatest sum that there was, counted from `_LEAST_EXPONENT`."""
        self._others: dict[int, list[int]] = {}
        """How many inf, -inf and NaN, of groups that have some."""

    def contents(self, keys: Rows) -> Parts:
        """The counts, those of what is not finite, and the sums as they are."""
        yield from self._counts.contents(keys)
        n = len(keys)
        words = np.column_stack(
            [self._upper[:n].view(np.int64), self._lower[:n].view(np.int64), self._greatest[:n]]
        )
        yield SUMS, numbered_rows(keys, words)
        places = np.array(list(self._others), np.int64)
        others = np.array(list(self._others.values()), np.int64).reshape(len(places), 3)
        yield OTHERS, numbered_rows(keys[places], others)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        if part == COUNTS:
            self._counts.restore(part, numbers, keys, words, diffs)
        elif part == SUMS:
            upper, lower, self._greatest[numbers] = np.ascontiguousarray(words.T)
            self._upper[numbers], self._lower[numbers] = upper.view("f8"), lower.view("f8")
        else:
            self._others.update(zip(numbers.tolist(), words.tolist(), strict=True))

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of 0."""
        self._counts.grow(n)
        self._upper, self._lower = grown(self._upper, n), grown(self._lower, n)
        self._greatest = grown(self._greatest, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add the sum of what came of each group, rounded at each step."""
        self._counts.add(numbers, keys, words, diffs)
        values = words_float(words)
        finite = np.isfinite(values)
        if not finite.all():
            self._count_others(numbers[~finite], values[~finite], diffs[~finite])
            numbers, words, values = numbers[finite], words[finite], values[finite]
            diffs = diffs[finite]
        if not len(numbers):
            return
        if len(numbers) > 1:
            order = np.lexsort((diffs, words, numbers))
            numbers, values, diffs = numbers[order], values[order], diffs[order]
        groups, upper, lower = _by_group(numbers, *_times(values, diffs))
        upper, lower = _sum(self._upper[groups], self._lower[groups], upper, lower)
        exponents = np.where(upper != 0, np.frexp(upper)[1] + _LEAST_EXPONENT, 0)
        greatest = np.maximum(self._greatest[groups], exponents)
        # Of a group that is empty what is left is an error, and 0 is right.
        error = np.abs(upper) < np.ldexp(1.0, greatest - (_LEAST_EXPONENT + _NOTHING))
        empty = self._counts.is_empty(groups.astype(np.int64)) & error
        upper[empty], lower[empty], greatest[empty] = 0.0, 0.0, 0
        self._upper[groups], self._lower[groups] = upper, lower
        self._greatest[groups] = greatest

    def _count_others(self, numbers: Numbers, values: Floats, diffs: Ints) -> None:
        for number, value, diff in zip(
            numbers.tolist(), values.tolist(), diffs.tolist(), strict=True
        ):
            counts = self._others.setdefault(number, [0, 0, 0])
            counts[2 if value != value else 0 if value > 0 else 1] += diff
            if not any(counts):
                del self._others[number]

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The sums, or the means."""
        counts = self._counts.counts(numbers)
        there = counts != 0
        with np.errstate(over="ignore"):
            n = np.where(there, counts, 1)
            if self._is_mean:
                # By n and then by the scale: a mean may be finite where the sum is not.
                sums = (self._upper[numbers] / n + self._lower[numbers] / n) / _SCALE
            else:
                sums = (self._upper[numbers] + self._lower[numbers]) / _SCALE
        for place, number in enumerate(numbers.tolist() if self._others else ()):
            if number in self._others:
                sums[place] = not_finite(*self._others[number])
                if self._is_mean:
                    sums[place] /= n[place]
        return np.where(there, float_words(sums), 0), there

    def is_empty(self, numbers: Ints) -> Flags:
        """Where all are 0."""
        zeros: Flags = (self._upper[numbers] == 0) & (self._lower[numbers] == 0)
        if self._others:
            zeros &= np.array([number not in self._others for number in numbers.tolist()])
        return zeros & self._counts.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts.keep(numbers)
        self._upper, self._lower = self._upper[numbers], self._lower[numbers]
        self._greatest = self._greatest[numbers]
        others = self._others
        self._others = {
            place: others[number]
            for place, number in enumerate(numbers.tolist() if others else ())
            if number in others
        }


def _times(values: Floats, diffs: Ints) -> Pairs:
    """Values, scaled, each so many times, as pairs.

    A diff of more than 26 bits times a value has more than 106, of which the last are rounded away.
    """
    scaled = values * _SCALE
    # A value in two halves, of 26 and 27 bits, whose products with a small diff are exact.
    upper = (scaled.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    times = diffs.astype(np.float64)
    return _two_sum(upper * times, (scaled - upper) * times)


def _by_group(numbers: Numbers, upper: Floats, lower: Floats) -> tuple[Numbers, Floats, Floats]:
    """The groups, in order, and the sum of each; of pairs that are in the order of groups.

    In each round neighbours of one group are added up, so that there are as many as a logarithm of
    the longest group.
    """
    while True:
        same = numbers[1:] == numbers[:-1]
        if not same.any():
            return numbers, upper, lower
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        lengths = np.diff(starts, append=len(numbers))
        place = np.arange(len(numbers)) - np.repeat(starts, lengths)
        left = np.flatnonzero(place % 2 == 0)
        has_next = left + 1 < np.repeat(starts + lengths, lengths)[left]
        with_next = left[has_next]
        upper[with_next], lower[with_next] = _sum(
            upper[with_next], lower[with_next], upper[with_next + 1], lower[with_next + 1]
        )
        numbers, upper, lower = numbers[left], upper[left], lower[left]


def _two_sum(one: Floats, other: Floats) -> Pairs:
    """The rounded sum, and what was rounded away, exactly."""
    total = one + other
    of_other = total - one
    return total, (one - (total - of_other)) + (other - of_other)


def _sum(upper: Floats, lower: Floats, other: Floats, other_lower: Floats) -> Pairs:
    """The sum of two pairs as a pair, of which the upper one is the rounded sum."""
    total, error = _two_sum(upper, other)
    rest, rest_error = _two_sum(lower, other_lower)
    total, error = _two_sum(total, error + rest)
    return _two_sum(total, error + rest_error)
