"""Aggregates of a user's own whose state is a sum: a deletion takes out what an insertion put in.

What is kept of a group is one state, an element of a commutative group: numbers that are exact.
Values act on it, each as often as it is there, and a deletion is the action of minus once. So a
change costs its values, and never the group.

That an action is one is the user's to know. What can be seen of it is checked: states are exact
numbers of one form, and the first values of a worker are inserted and deleted, in both orders.

Source: the linear operators of DBSP, and the accumulable reductions of differential-dataflow, whose
`Semigroup` and `Abelian` say the same of diffs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pointstamp.collections.accumulators import (
    COUNTS,
    LIMBS,
    Accumulator,
    Answer,
    CountAccumulator,
    Flags,
    HeldTexts,
    Ints,
    Parts,
    limb_rows,
    limb_sums,
)
from pointstamp.collections.aggregates import Aggregate, BoundAggregate, expression_given
from pointstamp.collections.casts import Bound
from pointstamp.collections.expression import Expression
from pointstamp.collections.groups import Numbers
from pointstamp.collections.schema import Column, Schema, schema_of
from pointstamp.containers.updates import Rows
from pointstamp.errors import BuildError, DataError, SchemaError

Add = Callable[[Any, Any, int], Any]
"""Of a state, a value and how often it came: the state then."""

_N_TRIED = 64
"""So many of the values that a worker sees first are tried."""

_EXACT = (int, Fraction)


class LinearAggregate(Aggregate):
    """An aggregate by functions of the user's; see `linear_aggregate`."""

    def __init__(
        self, of: Sequence[str | Expression], zero: Any, add: Add, emit: Any, column: Column
    ) -> None:
        super().__init__("linear_aggregate", of[0])
        self._others = [expression_given("linear_aggregate", other) for other in of[1:]]
        self._zero = zero
        self._add = add
        self._emit = emit
        self._column = column

    def bind(self, schema: Schema, name: str) -> BoundAggregate:
        """As a column `name`; raises as `Aggregate.bind`."""
        assert self._of is not None
        value, *others = (of.bind(schema) for of in (self._of, *self._others))
        may_be_null = value.nullable or any(other.nullable for other in others)
        column = Column(name, self._column.type, self._column.nullable or may_be_null)
        action = LinearAction(self._zero, self._add, self._emit, str(self))

        def make(n_key: int, number: Any) -> LinearSum:
            return LinearSum(action, [value, *others], self._column)

        return BoundAggregate(
            value,
            column,
            make,
            beside=others[0] if others else None,
            what=str(self),
            kept_of=self._kept_of(self._of, *self._others),
        )

    def __repr__(self) -> str:
        of = ", ".join(map(str, (self._of, *self._others)))
        return f"linear_aggregate({of})"


def linear_aggregate(
    of: str | Expression | Sequence[str | Expression],
    *,
    zero: Any,
    add: Add,
    emit: Callable[[Any], Any],
    type: str,
) -> Aggregate:
    """A custom aggregate whose state is a sum over the values; null if there are none.

    Parameters
    ----------
    of : str, Expression, or two of them
        The value, or a pair of values, which is skipped if one of both is null.
    zero : int, Fraction, or tuple of these
        The state of no values.
    add : callable
        `add(state, value, n)` is the state when `value`, of two a tuple, came `n` times more, or
        `-n` times less where it is below 0. It is to be an action of a commutative group: in any
        order the same, and `n` and then `-n` times nothing. States are of the form of `zero`, and
        exact: of floats, which are not, make `fractions.Fraction(value)`.
    emit : callable
        `emit(state)` is the answer, called where there is a value; it has to give the same for the
        same state.
    type : str
        Of the answer, as in a schema: "double", or "double?" if it may be None.

    Raises
    ------
    BuildError
        If `zero` is no such state, or something else is given for the others.

    While it runs, a function that fails, a state of another form, an answer that does not fit, and
    a value whose deletion does not undo its insertion (tried of the first few on each worker) are
    each a `DataError` with the value.

    >>> import pointstamp as ps
    >>> def weighted(state, pair, n):
    ...     (weights, total), (cents, weight) = state, pair
    ...     return weights + n * weight, total + n * weight * cents
    >>> def build(scope, sales):
    ...     mean = ps.linear_aggregate(
    ...         ("cents", "weight"), zero=(0, 0), add=weighted,
    ...         emit=lambda state: state[1] / state[0], type="double")
    ...     return sales.group_by("shop").agg(mean=mean)
    >>> view = ps.View(build, sales="shop long, cents long, weight long")
    >>> view.insert("sales", [(1, 10, 1), (1, 40, 2)])
    >>> view.advance()
    [((1, 30.0), 1)]
    >>> view.delete("sales", [(1, 10, 1)])
    >>> view.advance()
    [((1, 30.0), -1), ((1, 40.0), 1)]
    """
    given = [of] if isinstance(of, (str, Expression)) else list(of)
    if not 1 <= len(given) <= 2:
        raise BuildError(
            f"linear_aggregate is given {of!r}, and should be given one or two columns"
        )
    for what, function in (("add", add), ("emit", emit)):
        if not callable(function):
            raise BuildError(f"linear_aggregate is given {what}={function!r}, which is no function")
    if not _is_state(zero, zero):
        raise BuildError(
            f"linear_aggregate is given zero={zero!r}, and needs an int, a Fraction, or a tuple of "
            "these; a float is not exact, so that a deletion would not undo an insertion"
        )
    columns = schema_of(f"answer {type}").columns
    if len(columns) != 1:
        raise SchemaError(f"linear_aggregate is given the type {type!r}, and should be given one")
    return LinearAggregate(given, zero, add, emit, columns[0])


class LinearAction:
    """The functions of a linear aggregate, whose laws are tried."""

    def __init__(self, zero: Any, add: Add, emit: Callable[[Any], Any], what: str) -> None:
        self.zero = zero
        self.n_tried = 0
        """Of how many values it was tried whether the functions are such an action."""
        self._last: Any = None
        """The value that was tried last."""
        self._add = add
        self._emit = emit
        self._what = what

    def added(self, state: Any, value: Any, n: int) -> Any:
        """The state when a value came `n` times more.

        Raises
        ------
        DataError
            If the function fails, or gives something that is no state.
        """
        try:
            found = self._add(state, value, n)
        except Exception as error:
            raise DataError(
                f"{self._what}: add({state!r}, {value!r}, {n}) failed: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not _is_state(found, self.zero):
            raise DataError(
                f"{self._what}: add({state!r}, {value!r}, {n}) gave {found!r}, and should give a "
                f"state as {self.zero!r} is one, of int or Fraction, which are exact"
            )
        return found

    def emitted(self, state: Any, column: Column) -> int | None:
        """The word of the answer, or None.

        Raises
        ------
        DataError
            If the function fails, or gives something that does not fit the column.
        """
        try:
            found = self._emit(state)
        except Exception as error:
            raise DataError(
                f"{self._what}: emit({state!r}) failed: {type(error).__name__}: {error}"
            ) from error
        if found is None and not column.nullable:
            raise DataError(
                f"{self._what}: emit({state!r}) gave None, and its type is {column.type.name}; "
                f"it would be {column.type.name}?"
            )
        try:
            return None if found is None else column.type.to_word(found)
        except DataError as error:
            raise DataError(f"{self._what}: emit({state!r}): {error}") from None

    def try_laws(self, value: Any) -> None:
        """See that a value can be taken out again, and that its order with another is nothing.

        Raises
        ------
        DataError
            If not.
        """
        other = self._last if self.n_tried else value
        self.n_tried += 1
        self._last = value
        before = self.added(self.zero, other, 1)
        once, alone = self.added(before, value, 1), self.added(self.zero, value, 1)
        undone = f"{value!r} once more and once less"
        self._expect(self.added(once, value, -1), before, undone)
        self._expect(self.added(alone, value, -1), self.zero, undone)
        self._expect(self.added(before, value, 2), self.added(once, value, 1), f"{value!r} twice")
        both = f"{value!r} and {other!r} in both orders"
        self._expect(self.added(alone, other, 1), once, both)

    def _expect(self, found: Any, wanted: Any, of: str) -> None:
        if found != wanted:
            raise DataError(
                f"{self._what}: add is no action of a commutative group: of {of} it gives "
                f"{found!r} and {wanted!r}, which should be equal; what is not such a sum is for "
                "group_by(...).reduce(f, schema)"
            )


class LinearSum(Accumulator):
    """A state for each group, to which values are added; null of no values."""

    def __init__(self, action: LinearAction, values: Sequence[Bound], column: Column) -> None:
        self._action = action
        self._kinds = [value.type for value in values]
        self._is_other_nullable = len(values) > 1 and values[1].nullable
        self._column = column
        self._counts = CountAccumulator()
        self._states: list[Any] = []

    def contents(self, keys: Rows) -> Parts:
        """The counts, and of each number of a state numerator and denominator in limbs."""
        yield from self._counts.contents(keys)
        states = self._states[: len(keys)]
        yield LIMBS, limb_rows(keys, [_as_integers(state) for state in states])

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """The same."""
        if part == COUNTS:
            self._counts.restore(part, numbers, keys, words, diffs)
            return
        n_integers = len(_as_integers(self._action.zero))
        for number, integers in limb_sums(numbers, words, n_integers).items():
            self._states[number] = _as_state(integers, self._action.zero)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """None: numbers alone are kept."""
        return ()

    def grow(self, n: int) -> None:
        """Of zero."""
        self._counts.grow(n)
        self._states += [self._action.zero] * (n - len(self._states))

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Add each value as often as it came."""
        if self._is_other_nullable:
            there = words[:, 1] != 0
            numbers, words, diffs = numbers[there], words[there], diffs[there]
        self._counts.add(numbers, keys, words, diffs)
        states, action = self._states, self._action
        values = self._values(words)
        for number, value, n in zip(numbers.tolist(), values, diffs.tolist(), strict=True):
            if action.n_tried < _N_TRIED:
                action.try_laws(value)
            states[number] = action.added(states[number], value, n)

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """What the function makes of the states."""
        there = self._counts.counts(numbers) != 0
        found = [
            self._action.emitted(self._states[number], self._column) if is_there else None
            for number, is_there in zip(numbers.tolist(), there.tolist(), strict=True)
        ]
        words = np.array([0 if word is None else word for word in found], np.int64)
        return words, np.array([word is not None for word in found], np.bool_)

    def is_empty(self, numbers: Ints) -> Flags:
        """Where the state is zero, and there are no values."""
        zeros = [self._states[number] == self._action.zero for number in numbers.tolist()]
        empty: Flags = np.array(zeros, np.bool_) & self._counts.is_empty(numbers)
        return empty

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._counts.keep(numbers)
        self._states = [self._states[number] for number in numbers.tolist()]

    def _values(self, words: Ints) -> list[Any]:
        if len(self._kinds) == 1:
            return list(map(self._kinds[0].to_value, words.tolist()))
        columns = (words[:, 0], words[:, -1])
        return list(
            zip(
                *(
                    map(kind.to_value, column.tolist())
                    for kind, column in zip(self._kinds, columns, strict=True)
                ),
                strict=True,
            )
        )


def _is_state(state: Any, like: Any) -> bool:
    """Whether it is exact numbers, and of the form of another."""
    if type(like) is tuple:
        return (
            type(state) is tuple
            and 0 < len(state) == len(like)
            and all(type(number) in _EXACT for number in state)
        )
    return type(state) in _EXACT


def _as_integers(state: Any) -> list[int]:
    """Of each number a numerator and a denominator, which is 0 for an int.

    >>> _as_integers((7, Fraction(1, 2)))
    [7, 0, 1, 2]
    """
    numbers = state if type(state) is tuple else (state,)
    return [
        integer
        for number in numbers
        for integer in ((number, 0) if type(number) is int else number.as_integer_ratio())
    ]


def _as_state(integers: list[int], like: Any) -> Any:
    """What `_as_integers` was of."""
    pairs = zip(integers[::2], integers[1::2], strict=True)
    numbers = tuple(above if not below else Fraction(above, below) for above, below in pairs)
    return numbers if type(like) is tuple else numbers[0]
