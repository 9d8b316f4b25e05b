"""Planted bugs in aggregates and reductions by functions, and in nested columns, one line each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collections.hunting import from_seed, without_shrinking
from tests.collections.hunting import planted_in as _of
from tests.collections.test_nested import NestedProgram, check_nested, nested_programs
from tests.collections.test_user_aggregates import Sales, check_sales, sales


@from_seed(10)
@without_shrinking
@given(sales(), st.sampled_from([1, 2]), st.sampled_from([1, 7]), st.integers(0, 1 << 20))
def by_functions(program: Sales, workers: int, at_a_time: int, schedule: int) -> None:
    """Linear aggregates, and functions of batches of groups."""
    check_sales(program, workers, at_a_time, schedule)


@from_seed(11)
@without_shrinking
@given(nested_programs(), st.sampled_from([1, 2]), st.sampled_from([1, 7]))
def by_nested(program: NestedProgram, workers: int, at_a_time: int) -> None:
    """Columns of lists and structs."""
    check_nested(program, workers, at_a_time)


USER_MUTANTS = [
    *_of(
        "collections.collected",
        by_nested,
        [
            (
                "A list has each value once.",
                "np.ones(len(group), np.int64) if self._once else group[:, -1]",
                "np.ones(len(group), np.int64)",
            ),
            (
                "A list is that of a neighbour.",
                "words[place] = self._kind",
                "words[place - 1] = self._kind",
            ),
        ],
    ),
    *_of(
        "collections.exploding",
        by_nested,
        [
            (
                "An element is of the list before.",
                "starts = np.cumsum(lengths) - lengths",
                "starts = np.cumsum(lengths) - lengths[::-1]",
            ),
            (
                "A list that is empty or null gives no row where it should.",
                "n_copies = np.maximum(counts, 1) if outer else counts",
                "n_copies = counts",
            ),
            (
                "An empty list gives a null.",
                "n_copies = np.maximum(counts, 1) if outer else counts",
                "n_copies = np.maximum(counts, 1)",
            ),
        ],
    ),
    *_of(
        "containers.nested",
        by_nested,
        [
            (
                "A zero in a text ends it.",
                "text.replace(_END, _ESCAPED) + _END",
                "text + _END",
            ),
            (
                "A null in a list is at its end.",
                "while data[at : at + 1] == _VALUE:",
                "while data[at : at + 2] == _VALUE * 2:",
            ),
            (
                "A list has the order of words.",
                'TEXTS.number(b"".join(values))',
                'TEXTS.number(b"".join(reversed(values)))',
            ),
        ],
    ),
    *_of(
        "collections.linear_aggregates",
        by_functions,
        [
            (
                "A deletion adds to a state.",
                "states[number] = action.added(states[number], value, n)",
                "states[number] = action.added(states[number], value, abs(n))",
            ),
            (
                "A state of no values is one.",
                "there = self._counts.counts(numbers) != 0",
                "there = self._counts.counts(numbers) >= 0",
            ),
            (
                "Of two values both are the first.",
                "columns = (words[:, 0], words[:, -1])",
                "columns = (words[:, 0], words[:, 0])",
            ),
        ],
    ),
    *_of(
        "collections.general_reduce",
        by_functions,
        [
            (
                "A function of batches is given each record once.",
                'copied(form.records(rows), counts, "a batch of groups")',
                "form.records(rows)",
            ),
            (
                "What a function of batches gives is of other groups.",
                "np.repeat(keys, lengths, axis=0)",
                "np.repeat(keys[::-1], lengths, axis=0)",
                4,
            ),
        ],
    ),
]
