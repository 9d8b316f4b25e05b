"""Planted bugs in ordered and general reductions, one line each, as those in `mutants.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import by_views_of, from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.text_quantiles import (
    TextChanges,
    check_first_of_texts,
    check_text_quantiles,
    text_changes,
)


@from_seed(44)
@without_shrinking
@given(text_changes())
def by_quantiles_of_texts(program: TextChanges) -> None:
    """Quantiles of texts, of which some begin alike."""
    check_text_quantiles(program)


@from_seed(45)
@without_shrinking
@given(st.permutations("abc"), st.booleans())
def by_first_of_texts(ends: list[str], greatest: bool) -> None:
    """The first of texts that begin alike and came in some order."""
    check_first_of_texts(ends, greatest)


ORDERED_MUTANTS = [
    *_of(
        "collections.ordered",
        by_views_of("ordered"),
        [
            (
                "The least value is looked for from the answer before on alone.",
                "before = self._known[groups] & _is_less(self._starts[groups], starts)",
                "before = self._known[groups]",
                7,
            ),
            (
                "The least value is looked for among what is new alone.",
                "before = self._known[groups] & _is_less(self._starts[groups], starts)",
                "before = self._known[groups] & False",
                12,
            ),
            (
                "A null that is chosen is a value.",
                "self._there[groups] = values[:, -3] != 0 if self._may_be_null else True",
                "self._there[groups] = True",
            ),
            (
                "What was the most frequent value stays it.",
                "for counts, diff in ((before, -1), (after, 1)):",
                "for counts, diff in ((after, 1),):",
                17,
            ),
            (
                "Values that come below a quantile are not counted.",
                "np.add.at(self._n_below, groups[is_below], came[is_below])",
                "np.add.at(self._n_below, groups[is_below], 0)",
                27,
            ),
            (
                "A value of fewer than no copies is counted.",
                "totals[np.diff(ends, prepend=0) > 0] = rows[:, -1]",
                "totals[np.diff(ends, prepend=0) > 0] = 1",
                8,
            ),
            (
                "A quantile goes down too little.",
                "last = int(np.searchsorted(passed, self._n_below[group] - goals[which]))",
                "last = 0",
                61,
            ),
            (
                "Between two values is the first of them.",
                "rows[min(at + (goal + 1 >= passed[at]), len(rows) - 1), -2]",
                "rows[at, -2]",
                8,
            ),
            (
                "A value that is there twice has another behind it at once.",
                "rows[min(at + (goal + 1 >= passed[at]), len(rows) - 1), -2]",
                "rows[min(at + 1, len(rows) - 1), -2]",
                11,
            ),
            (
                "A quantile that is a value is the one before.",
                "return max(-(-self.of.numerator * n // self.of.denominator) - 1, 0), Fraction(0)",
                "return max(self.of.numerator * n // self.of.denominator - 1, 0), Fraction(0)",
                12,
            ),
        ],
    ),
    *_of(
        "collections.ordered",
        by_quantiles_of_texts,
        [
            (
                "Texts that begin alike are in the order of their numbers.",
                "return order.sorted(found)",
                "return found",
                1,
            ),
            (
                "Of texts that begin alike those that were not read are not counted.",
                "self._n_below[group] -= n_before + alike[:, -1].sum()",
                "self._n_below[group] -= passed[last]",
            ),
            (
                "A text that begins like the one before is at a place of its own.",
                "    while first and",
                "    while first < 0 and",
                7,
            ),
        ],
    ),
    *_of(
        "collections.order",
        by_views_of("ordered", "topk"),
        [
            (
                "A search begins among what is alike.",
                "words[np.arange(self.n_words) >= self.n_certain(rows)[:, None]] = _LEAST",
                "pass",
            ),
        ],
    ),
    *_of(
        "collections.order",
        by_first_of_texts,
        [
            (
                "Of texts that begin alike the first that came is the least.",
                "ranks = TEXTS.ranks(words[:, text.number])",
                "ranks = words[:, text.number]",
            ),
        ],
    ),
    *_of(
        "collections.order",
        by_views_of("ordered", "over", "statistics", "topk"),
        [
            (
                "Texts that begin alike are in their order where the greatest comes first.",
                "words[:, text.number] = ~ranks if text.turned else ranks",
                "words[:, text.number] = ranks",
                61,
            ),
            (
                "What is alike to the last record is not read.",
                "parts.append(read_groups(batches, heads, from_first(heads), ALL)[0])",
                "pass",
                69,
            ),
            (
                "Nulls are first where the greatest comes first.",
                "            begin = place\n",
                "            begin = place + column.nullable\n",
                1,
            ),
        ],
    ),
    *_of(
        "collections.group_answers",
        by_views_of("over", "reduce", "topk"),
        [
            (
                "What was the answer is not taken back.",
                "taken_back[:, -1] *= -1",
                "taken_back[:, -1] *= 0",
                4,
            ),
            (
                "What the answer is now is not kept.",
                "given.insert(changes)",
                "changes.sum()",
                4,
            ),
        ],
    ),
    *_of(
        "collections.top_k",
        by_views_of("topk"),
        [
            (
                "More copies of the last record are kept than are wanted.",
                "rows[:, -1] = np.minimum(through, most) - ",
                "rows[:, -1] = np.minimum(through, most + 1) - ",
                8,
            ),
            (
                "A record that comes among the first is overlooked.",
                "parts = [known, now, gone]",
                "parts = [known, gone]",
            ),
            (
                "A record that changed is there as before, too.",
                "parts = [known, now, gone]",
                "parts = [known, now]",
            ),
            (
                "Behind the last record nothing comes up.",
                "    if len(full):\n",
                "    if len(full) < 0:\n",
                28,
            ),
            (
                "What changed behind the last record comes twice.",
                "changed = touched.changes[_is_before(touched.changes, bounds, n_key)]",
                "changed = touched.changes",
                52,
            ),
            (
                "Of an answer that is not full something is behind it.",
                "last: Rows = rows[ends[counts >= most] - 1]",
                "last: Rows = rows[ends[counts > most] - 1]",
                7,
            ),
        ],
    ),
    *_of(
        "collections.general_reduce",
        by_views_of("reduce"),
        [
            (
                "A record of a group is there once, however often it is.",
                "return [row for row, n in in_order for _ in range(n)]",
                "return [row for row, n in in_order]",
            ),
        ],
    ),
    *_of(
        "collections.over",
        by_views_of("over"),
        [
            (
                "Records that tie have places of their own.",
                "np.where(p.is_new, p.places, 0)",
                "np.where(p.is_new, p.places, p.places)",
                1,
            ),
            (
                "What is before is looked for in the partition before.",
                "there = (at >= partitions.begins) & (at < partitions.ends)",
                "there = (at >= 0) & (at < partitions.ends)",
                4,
            ),
            (
                "What is behind is looked for in the partition behind.",
                "there = (at >= partitions.begins) & (at < partitions.ends)",
                "there = (at >= partitions.begins) & (at < len(at))",
                1,
            ),
            (
                "A frame begins in the partition before.",
                "lengths = np.minimum(places - partitions.begins + 1, n_rows)",
                "lengths = np.minimum(places + 1, n_rows)",
                1,
            ),
            (
                "A frame is one record short.",
                "lengths = np.minimum(places - partitions.begins + 1, n_rows)",
                "lengths = np.minimum(places - partitions.begins + 1, max(n_rows - 1, 1))",
            ),
            (
                "Copies of a record have one place.",
                'copies = copied(rows, rows[:, -1], "partitions")',
                "copies = rows.copy()",
            ),
            (
                "Values of the order are counted through all partitions.",
                "dense: Ints = n_values - n_values[p.begins]",
                "dense: Ints = n_values - 1",
                8,
            ),
        ],
    ),
    *_of(
        "containers.text_order",
        by_views_of("ordered", "over", "statistics", "topk"),
        [
            (
                "Texts are in order by their beginnings alone.",
                "+ bytes([min(len(value), _LONGER)])",
                '+ b"\\0"',
                69,
            ),
            (
                "Where there is no room a label is shared in silence.",
                "self._shared[numbers] = True",
                "self._shared[numbers] = False",
                16,
            ),
            (
                "The text before does not know that it shares its label.",
                "self._shared[self._dictionary.number(text)] = True",
                "self._shared[self._dictionary.number(text)] = False",
                62,
            ),
            (
                "A label does not stay below that of the text behind.",
                "high = self._label_of(behind[0]) if behind else self._most",
                "high = self._most",
                1,
            ),
        ],
    ),
]
