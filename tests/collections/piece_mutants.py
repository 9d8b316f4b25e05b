"""Planted bugs in joins whose pairs leave by pieces, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.skewed_joins import check_skewed

OF_PAIRS = ("inner", "left", "twice", "summed")


@from_seed(51)
@without_shrinking
@given(st.integers(0, 1 << 30))
def by_skewed_loops(seed: int) -> None:
    """Joins in loops of which one key has half of the records."""
    check_skewed(seed, OF_PAIRS, 1)


@from_seed(52)
@without_shrinking
@given(st.integers(0, 1 << 30))
def by_skewed_joins(seed: int) -> None:
    """The same outside of loops."""
    check_skewed(seed, (*OF_PAIRS, "chain", "circle"), 0)


PIECE_MUTANTS = [
    *_of(
        "collections.trace_join",
        by_skewed_loops,
        [
            (
                "With its first pairs a batch is over.",
                "if not self._messages:\n            self._end(held)",
                "if True:\n            self._end(held)",
            ),
            (
                "A batch meets the first of the other side's alone.",
                "self.is_over = self._at == len(self.kept)",
                "self.is_over = True",
            ),
            (
                "What is left of the pairs of a change is forgotten.",
                "self._begin, self._after = found[1], found[2]",
                "self._begin, self._after = found[1] + (found[2] is not None), None",
            ),
            (
                "The next batch is met from where the last one ended.",
                "self._begin = 0\n            self._at += 1",
                "self._begin = min(1, len(one) - 1)\n            self._at += 1",
            ),
            (
                "What left by pieces is not known to the other side.",
                "self._readers[side].known = number\n                    self._messages",
                "self._messages",
            ),
            (
                "Of few changes with many pairs some have left before all leave by pieces.",
                "if found is None:\n                self._held",
                "if found is None:\n"
                "                some = matcher.many(rows, time, other).some(1)[0]\n"
                "                self._send(some, held, output)\n"
                "                self._held",
            ),
        ],
    ),
    *_of(
        "kernels.matches",
        by_skewed_joins,
        [
            (
                "Other changes of a key meet what is left of it for the first.",
                "while not is_rest and end < len(rows) and",
                "while end < len(rows) and",
                1,
            ),
            (
                "The record that ends a piece begins the next one, too.",
                "if (met is None or other[:-1] > met)",
                "if (met is None or other[:-1] >= met)",
            ),
        ],
    ),
    *_of(
        "collections.join",
        by_skewed_joins,
        [
            (
                "The change that was begun begins again.",
                "rest.append((changes, kept, recipe, end, after))",
                "rest.append((changes, kept, recipe, end, None))",
            ),
        ],
    ),
    *_of(
        "collections.half_join",
        by_skewed_joins,
        [
            (
                "What is left of a prefix that was begun is forgotten.",
                "by_key, kept, n_key, self._recipe, begin, join_fuel.FUEL, after\n",
                "by_key, kept, n_key, self._recipe, begin + (after is not None), join_fuel.FUEL\n",
            ),
        ],
    ),
]
