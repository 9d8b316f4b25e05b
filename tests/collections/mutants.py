"""Planted bugs in collections, one line each, which the random programs catch."""

from __future__ import annotations

from tests.collections.hunting import by_thresholds, by_views, by_views_of, by_workers
from tests.collections.hunting import planted_in as _of
from tests.collections.ordered_mutants import ORDERED_MUTANTS

MUTANTS = [
    *_of(
        "collections.collection",
        by_thresholds,
        [
            (
                "A record that is there fewer than no times is there.",
                "return np.where(count > 0, wanted, 0)",
                "return np.where(count != 0, wanted, 0)",
            ),
        ],
    ),
    *_of(
        "collections.join",
        by_views,
        [
            (
                "Two changes of one time do not meet.",
                "kept = self._left.through(held.time)",
                "kept = self._left.before(held.time)",
            ),
            (
                "Two changes of one time meet twice.",
                "kept = self._right.before(held.time)",
                "kept = self._right.through(held.time)",
            ),
            (
                "The right side looks into the left one by the recipe of the other.",
                "self._send(output, held, changes, kept, self._backward, rest)",
                "self._send(output, held, changes, kept, self._forward, rest)",
            ),
        ],
    ),
    *_of(
        "collections.join",
        by_workers,
        [
            (
                "A side is let go of while changes of the other one wait.",
                "if none_wait and not rights:",
                "if not rights:",
                8,
            ),
        ],
    ),
    *_of(
        "collections.join",
        by_views,
        [
            (
                "What is left of the pairs begins with the first change again.",
                "rest.append((changes, kept, recipe, end, after))",
                "rest.append((changes, kept, recipe, 0, None))",
                8,
            ),
            (
                "Behind the changes of which pairs are left those of the other side are forgotten.",
                "if end < len(changes):",
                "if 0 < end < len(changes):",
                30,
            ),
        ],
    ),
    *_of(
        "collections.join_fuel",
        by_views,
        [
            (
                "A time is over with its first pieces.",
                "                    is_over = False\n",
                "                    is_over = True\n",
                30,
            ),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_workers,
        [
            (
                "What was put together waits beside what it is made of.",
                "waiting[:] = [Updates(rows, first.texts)]",
                "waiting[:0] = [Updates(rows, first.texts)]",
                6,
            ),
            (
                "Of what is put together the first part is left out.",
                "rows = consolidated([batch.rows for batch in waiting], self._name)",
                "rows = consolidated([batch.rows for batch in waiting[1:]], self._name)",
                7,
            ),
        ],
    ),
    *_of(
        "collections.spine",
        by_workers,
        [
            (
                "What a reader has not acknowledged is merged.",
                "            if reader.needs_apart(time):\n                return True",
                "            if reader.needs_apart(time):\n                return False",
                1,
            ),
            (
                "A reader reads what is of the time, too.",
                "return self._spine.read(time, False)",
                "return self._spine.read(time, True)",
                1,
            ),
        ],
    ),
    *_of(
        "collections.spine",
        by_views,
        [
            (
                "A merge loses the first record.",
                "return merge(left, right) if self.memory",
                "return merge(left, right)[1:] if self.memory",
                14,
            ),
        ],
    ),
    *_of(
        "collections.aggregate",
        by_views,
        [
            (
                "A group of fewer than no records is there.",
                "is_there = self._rows.counts(numbers) > 0",
                "is_there = self._rows.counts(numbers) != 0",
                12,
            ),
            (
                "The row that was is not taken back.",
                "before, after = before[was_there & differs], after[is_there & differs]",
                "before, after = before[was_there & ~is_there], after[is_there & differs]",
                12,
            ),
            (
                "A group that comes with the same answer as an empty one is overlooked.",
                "differs = (before != after).any(axis=1) | (was_there != is_there)",
                "differs = (before != after).any(axis=1)",
                56,
            ),
            (
                "The row of an empty collection stays.",
                "return changes if not total else self._with(changes, -total)",
                "return changes if total >= 0 else self._with(changes, -total)",
                3,
            ),
            (
                "Of a collection that has records from the start an empty row is taken back.",
                "total -= self._is_here",
                "total -= 0",
                9,
            ),
            (
                "Nulls are values.",
                "there = rows[:, place - 1] != 0",
                "there = rows[:, place - 1] >= 0",
                6,
            ),
        ],
    ),
    *_of(
        "kernels.group_sums",
        by_views_of("summed"),
        [
            (
                "A group with sums that has fewer than no records is there.",
                "if sums[0] > 0 else []",
                "if sums[0] else []",
                0,
            ),
            (
                "Of a group that is touched twice the answer is the one in between.",
                "before.setdefault(key, list(sums))",
                "before[key] = list(sums)",
            ),
            (
                "A null is summed up.",
                "if form == SumForm.RECORDS or (flag >= 0 and not row[flag]):",
                "if form == SumForm.RECORDS:",
            ),
            (
                "An average is of all records.",
                "word = _word(total / (n * unit)) if there else 0",
                "word = _word(total / (sums[0] * unit)) if there else 0",
            ),
        ],
    ),
    *_of(
        "collections.accumulators",
        by_views_of("aggregate", "leastof", "statistics", "whole"),
        [
            (
                "The lower part of a sum does not go up.",
                "self._upper[touched] += carried >> _HALF",
                "self._upper[touched] += 0",
                1,
            ),
            (
                "A float counts once, however often it comes.",
                "self._finite[number] += _in_units(value) * diff",
                "self._finite[number] += _in_units(value)",
                10,
            ),
            (
                "A sum of no values is 0.",
                "        there = self._counts.counts(numbers) != 0\n        upper",
                "        there = self._counts.counts(numbers) > -1\n        upper",
            ),
        ],
    ),
    *_of(
        "collections.accumulators",
        by_views_of("aggregate", "leastof", "statistics", "whole"),
        [
            (
                "A value that is there twice is counted twice.",
                "lambda count: np.minimum(np.maximum(count, 0), 1)",
                "lambda count: np.maximum(count, 0)",
                14,
            ),
            (
                "All are true though one is false.",
                "words = np.where(self._of_all, n_false <= 0, n_true > 0)",
                "words = np.where(self._of_all, n_true > 0, n_true > 0)",
                9,
            ),
            (
                "Squares are summed up without their diffs.",
                "sums[2] += units * units * diff",
                "sums[2] += units * units",
                7,
            ),
        ],
    ),
    *_of(
        "collections.collection",
        by_views,
        [
            (
                "Null joins null.",
                "there = rows[(rows[:, flags] != 0).all(axis=1)]",
                "there = rows",
                11,
            ),
            (
                "Of a key with nulls the last word is no part of the key.",
                "n_key = len(key) + sum(nulls)",
                "n_key = len(key)",
            ),
            (
                "What is subtracted fewer than no times is added.",
                "np.maximum(np.maximum(one, 0) - np.maximum(two, 0), 0),",
                "np.maximum(np.maximum(one, 0) - two, 0),",
            ),
        ],
    ),
    *_of(
        "collections.counted",
        by_views,
        [
            (
                "Counts are forgotten when there are more records than there was room for.",
                "self._counts = grown(self._counts, self._records.room)",
                "self._counts = grown(self._counts[:0], self._records.room)",
                12,
            ),
        ],
    ),
    *_of(
        "collections.join_forms",
        by_views,
        [
            (
                "What has a partner is among what has none.",
                "return left.concat(partnered.negate())",
                "return left.concat(partnered.negate().negate())",
            ),
            (
                "Null is equal to null without being asked for.",
                "null_equal and left.schema.column(one).nullable",
                "left.schema.column(one).nullable",
                11,
            ),
        ],
    ),
    *_of(
        "collections.conditions",
        by_views,
        [
            (
                "Decimals of two scales are compared as they are.",
                "unit = 10 ** (scale_of(two.type) - scale_of(one.type))",
                "unit = 1",
                9,
            ),
            (
                "Null or true is null.",
                "return np.where(decided, decides, values), decided | (a_known & b_known)",
                "return np.where(decided, decides, values), a_known & b_known",
                20,
            ),
        ],
    ),
    *_of(
        "collections.evaluation",
        by_views,
        [
            (
                "A choice forgets which values are null.",
                "                there[places] = mask",
                "                there[places] = True",
                15,
            ),
        ],
    ),
    *_of(
        "collections.casts",
        by_views,
        [
            (
                "What has no partner has values in its place.",
                "return np.zeros(len(rows), dtype), np.zeros(len(rows), np.bool_)",
                "return np.zeros(len(rows), dtype), np.ones(len(rows), np.bool_)",
                10,
            ),
            (
                "Decimals of two scales are added up as they are.",
                "return checked_product(values, np.int64(10**more), there, what)",
                "return values",
                50,
            ),
        ],
    ),
    *_of(
        "containers.words",
        by_views_of("over", "ordered", "reduce"),
        [
            (
                "-0.0 differs from 0.0.",
                'struct.unpack("<q", struct.pack("<d", value + 0.0))',
                'struct.unpack("<q", struct.pack("<d", value))',
                68,
            ),
        ],
    ),
    *ORDERED_MUTANTS,
]
