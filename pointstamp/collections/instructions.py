"""Expressions as instructions for a loop over a few records, beside their steps over columns.

Not all of what an expression can be has instructions; what has none is computed by columns, as
what is long, or deep, or of many records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from pointstamp.compiled import build_info
from pointstamp.containers.words import LONG, WordType, word_bounds
from pointstamp.kernels.evaluate import MOST_DEPTH, N_OPERANDS, Do, Rows

Instruction: TypeAlias = tuple[Do, int, int]
Instructions: TypeAlias = tuple[Instruction, ...]
"""Of a postfix program; see `kernels/evaluate.py`."""

MOST_ROWS = 1_024 if build_info() == "compiled" else 2
"""Of more, columns are quicker."""
_MOST = 64
_BITS = (1 << 63) - 1


def only(do: Do, a: int = 0, b: int = 0) -> Instructions:
    """One instruction."""
    return ((do, a, b),)


def program(*parts: Instructions | None) -> Instructions | None:
    """Several one after the other; None if one has none, or they are too many.

    >>> program(only(Do.CONSTANT, 1), only(Do.NOT)) is not None, program(only(Do.NOT), None)
    (True, None)
    """
    found: list[Instruction] = []
    for part in parts:
        if part is None or len(found) + len(part) > _MOST:
            return None
        found.extend(part)
    return tuple(found)


def table(instructions: Instructions | None) -> Rows | None:
    """For the loop, int64[m, 3]; None if there are none, or they need too much of a stack."""
    if instructions is None:
        return None
    depth = deepest = 0
    for do, _, _ in instructions:
        depth += (do is not Do.STORE) - N_OPERANDS.get(do, 2)
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        return None
    return np.array(instructions, np.int64).reshape(len(instructions), 3)


def word_at(place: int, kind: WordType, nullable: bool) -> Instructions:
    """A column."""
    return only(Do.FLOAT if kind.is_float else Do.WORD, place, int(nullable))


def constant(word: int, kind: WordType) -> Instructions:
    """A value by its word."""
    if kind.is_float and word < 0:
        word ^= _BITS
    return only(Do.CONSTANT, word)


def null() -> Instructions:
    """A null of any type."""
    return only(Do.CONSTANT, 0, 1)


def float_bits(value: float) -> int:
    """The bits of a float, as an argument."""
    return int(np.float64(value).view(np.int64))


def fitted(kind: WordType) -> Instructions | None:
    """Refuse what the type has not; None where it may become another value."""
    if kind.is_float:
        return () if kind.n_bits == 64 else None  # type: ignore[attr-defined]  # it is a FloatType
    if kind.is_integer and kind.bounds is None:  # its words are moved
        return None
    bounds = word_bounds(kind)
    return () if bounds == word_bounds(LONG) else only(Do.RANGE, *bounds)


def stored(place: int, kind: WordType, nullable: bool) -> Instructions:
    """The word of a column that is made."""
    order = only(Do.ORDER) if kind.is_float else ()
    return (*order, (Do.STORE, place, int(nullable)))


def compared(
    a: Instructions | None, sign: str, b: Instructions | None, kind: WordType
) -> Instructions | None:
    """The comparison of two values of one type; texts are equal or not, and have no order."""
    if kind.is_text and sign not in ("==", "!="):
        return None
    order = only(Do.ORDER) if kind.is_float else ()
    return program(a, order, b, order, only(_COMPARE[sign]))


def combined(
    a: Instructions | None, sign: str, b: Instructions | None, kind: WordType
) -> Instructions | None:
    """`a sign b` of numbers, times or dates, which are words of `kind`."""
    do = (_FLOATS if kind.is_float else _INTEGERS).get(sign)
    return None if do is None else program(a, b, only(do), fitted(kind))


def chosen(
    cases: Sequence[tuple[Instructions | None, Instructions | None]],
    otherwise: Instructions | None,
) -> Instructions | None:
    """The value of the first case whose condition is true."""
    parts = [part for case in cases for part in case]
    return program(*parts, otherwise, only(Do.CHOOSE) * len(cases))


def first_known(values: Sequence[Instructions | None]) -> Instructions | None:
    """The first value that is not null."""
    return program(*values, only(Do.FIRST_THERE) * (len(values) - 1))


_COMPARE = {
    "==": Do.EQUAL,
    "!=": Do.NOT_EQUAL,
    "<": Do.LESS,
    "<=": Do.LESS_EQUAL,
    ">": Do.GREATER,
    ">=": Do.GREATER_EQUAL,
}
_INTEGERS = {"+": Do.ADD, "-": Do.SUBTRACT, "*": Do.MULTIPLY}
_FLOATS = {
    "+": Do.ADD_FLOATS,
    "-": Do.SUBTRACT_FLOATS,
    "*": Do.MULTIPLY_FLOATS,
    "/": Do.DIVIDE_FLOATS,
}
