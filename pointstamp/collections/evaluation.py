"""How columns are computed: programs of steps over a stack of columns.

A program is postfix: a step takes what its operands have left on the stack, and leaves a column
there. So how deep an expression is nested costs memory, and no recursion. A step of a choice
narrows the rows that the next ones see, so that each alternative is computed of its own rows
only: the others may be those on which it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.updates import Rows

Values = npt.NDArray[Any]
"""Of floats float64, of booleans bool, of all others their words as int64."""
Mask = npt.NDArray[np.bool_] | None
"""Which values are there; None where all are. Where one is not, its value may be anything."""
Evaluated = tuple[Values, Mask]
Evaluate = Callable[[Rows], Evaluated]


class Alternatives:
    """A choice under way: which rows have a value, and which have none yet."""

    __slots__ = ("chosen", "left", "parts", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.left = np.arange(len(rows))
        self.chosen = self.left
        self.parts: list[tuple[npt.NDArray[np.int64], Values, Mask]] = []

    def choose(self, truth: npt.NDArray[np.bool_]) -> None:
        """The next value is that of the rows that have none, and of which `truth` is true."""
        self.chosen, self.left = self.left[truth], self.left[~truth]

    def put(self, places: npt.NDArray[np.int64], values: Values, mask: Mask) -> None:
        """The values of some rows."""
        self.parts.append((places, values, mask))

    def all(self) -> Evaluated:
        """The values of all rows, each put once."""
        values = np.empty(len(self.rows), np.result_type(*(part[1] for part in self.parts)))
        for places, some, _ in self.parts:
            values[places] = some
        if all(mask is None for _, _, mask in self.parts):
            return values, None
        there = np.ones(len(self.rows), np.bool_)
        for places, _, mask in self.parts:
            if mask is not None:
                there[places] = mask
        return values, there


class Evaluation:
    """A program under way: the rows that the next step sees, columns, and choices."""

    __slots__ = ("choices", "columns", "rows")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.columns: list[Evaluated] = []
        self.choices: list[Alternatives] = []


Step = Callable[[Evaluation], None]


class PostfixProgram:
    """An `Evaluate` of steps, and of other programs between them.

    >>> one = lambda rows: (rows[:, 0], None)
    >>> both = computed(lambda a, b: (a[0] + b[0], None), one, one)
    >>> both(np.array([[7, 1], [8, 1]]))[0].tolist()
    [14, 16]
    """

    __slots__ = ("_parts", "_steps")

    def __init__(self, parts: Sequence[PostfixProgram | Step]) -> None:
        self._parts = parts
        self._steps: list[Step] | None = None

    def __call__(self, rows: Rows) -> Evaluated:
        """The values of rows, [n], and which are there."""
        if self._steps is None:
            self._steps = self._flat()
        evaluation = Evaluation(rows)
        for step in self._steps:
            step(evaluation)
        return evaluation.columns.pop()

    def _flat(self) -> list[Step]:
        steps: list[Step] = []
        left: list[PostfixProgram | Step] = [self]
        while left:
            part = left.pop()
            if isinstance(part, PostfixProgram):
                left.extend(reversed(part._parts))
            else:
                steps.append(part)
        return steps


def program_of(evaluate: Evaluate) -> PostfixProgram:
    """As a program, of one step if it is none."""
    if isinstance(evaluate, PostfixProgram):
        return evaluate

    def step(evaluation: Evaluation) -> None:
        evaluation.columns.append(evaluate(evaluation.rows))

    return PostfixProgram([step])


def computed(function: Callable[..., Evaluated], *operands: Evaluate) -> PostfixProgram:
    """`function` of the columns of the operands, each with its mask."""
    n = len(operands)

    def step(evaluation: Evaluation) -> None:
        columns = evaluation.columns
        given = columns[-n:]
        del columns[-n:]
        columns.append(function(*given))

    return PostfixProgram([*map(program_of, operands), step])


def first_true(cases: Sequence[tuple[Evaluate, Evaluate]], otherwise: Evaluate) -> PostfixProgram:
    """The value of the first case whose condition is true, which null is not."""
    parts: list[PostfixProgram | Step] = [_begin]
    for condition, value in cases:
        parts += [program_of(condition), _choose, program_of(value), _put]
    return PostfixProgram([*parts, program_of(otherwise), _end])


def first_there(values: Sequence[Evaluate]) -> PostfixProgram:
    """The first value that is not null, of which the last one may be."""
    parts: list[PostfixProgram | Step] = [_begin]
    for value in values[:-1]:
        parts += [program_of(value), _keep]
    return PostfixProgram([*parts, program_of(values[-1]), _end])


def both_there(one: Mask, other: Mask) -> Mask:
    """Where both are."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def true_where(values: Values, mask: Mask) -> npt.NDArray[np.bool_]:
    """Where a column of booleans is true, which null is not."""
    return values if mask is None else values & mask


def _begin(evaluation: Evaluation) -> None:
    evaluation.choices.append(Alternatives(evaluation.rows))


def _choose(evaluation: Evaluation) -> None:
    choice = evaluation.choices[-1]
    choice.choose(true_where(*evaluation.columns.pop()))
    evaluation.rows = choice.rows[choice.chosen]


def _put(evaluation: Evaluation) -> None:
    choice = evaluation.choices[-1]
    choice.put(choice.chosen, *evaluation.columns.pop())
    evaluation.rows = choice.rows[choice.left]


def _keep(evaluation: Evaluation) -> None:
    choice = evaluation.choices[-1]
    values, mask = evaluation.columns.pop()
    there = np.ones(len(values), np.bool_) if mask is None else mask
    choice.choose(there)
    choice.put(choice.chosen, values[there], None)
    evaluation.rows = choice.rows[choice.left]


def _end(evaluation: Evaluation) -> None:
    choice = evaluation.choices.pop()
    choice.put(choice.left, *evaluation.columns.pop())
    evaluation.rows = choice.rows
    evaluation.columns.append(choice.all())
