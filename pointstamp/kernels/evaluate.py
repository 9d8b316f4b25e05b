"""Expressions of a few records: a postfix program that one loop runs record by record.

What a step of NumPy costs for one record it costs for hundreds. So beside its steps over columns a
program has instructions, which work on a stack of words, and of whether each is there. An
instruction is three words, int64[m, 3]: what to do, and two arguments. Floats are bits on the
stack, and words in order (`containers/words.py`) in rows.

Instructions refuse a record, as one of a sum beyond 64 bits, without saying why: then all is
computed by columns, which says what is wrong.

Source: expressions as instructions for a stack are SQLite's VDBE.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel

Rows = npt.NDArray[np.int64]

MOST_DEPTH = 32
"""So many words may be on the stack."""

_LEAST, _BEYOND = -(1 << 63), 1 << 63
_BITS = (1 << 63) - 1
_NAN_WORD = 0x7FF8_0000_0000_0000


class Do(IntEnum):
    """What an instruction does; `a` and `b` are its arguments.

    Of what takes one or two operands from the stack the result is null where one of them is, if
    nothing else is said.
    """

    WORD = 0
    """The word at `a` of the row; if `b`, null where the one before it is 0."""
    FLOAT = 1
    """The same, of a float."""
    CONSTANT = 2
    """`a`, or null if `b`."""
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    """Of integers; what is beyond 64 bits is refused."""
    FLOOR_DIVIDE = 6
    """By `a`, above 0."""
    RANGE = 7
    """As it is; what is below `a` or above `b` is refused."""
    ADD_FLOATS = 8
    SUBTRACT_FLOATS = 9
    MULTIPLY_FLOATS = 10
    DIVIDE_FLOATS = 11
    """A division by 0 is refused."""
    TO_FLOAT = 12
    """An integer, divided by the float whose bits are `a`."""
    ORDER = 13
    """A float as a word, which has its order."""
    EQUAL = 14
    NOT_EQUAL = 15
    LESS = 16
    LESS_EQUAL = 17
    GREATER = 18
    GREATER_EQUAL = 19
    AND = 20
    OR = 21
    """Known where one operand decides."""
    NOT = 22
    IS_NULL = 23
    IS_THERE = 24
    FIRST_THERE = 25
    """The first of two that is not null."""
    CHOOSE = 26
    """Of a condition and two values the first one if it is true, else the second."""
    STORE = 27
    """Into the word at `a` of the row that is made, 0 if it is null; if `b`, before it whether it
    is there."""


N_OPERANDS = {
    **dict.fromkeys((Do.WORD, Do.FLOAT, Do.CONSTANT), 0),
    **dict.fromkeys((Do.FLOOR_DIVIDE, Do.RANGE, Do.TO_FLOAT, Do.ORDER), 1),
    **dict.fromkeys((Do.NOT, Do.IS_NULL, Do.IS_THERE, Do.STORE), 1),
    Do.CHOOSE: 3,
}
"""How many words of the stack it takes, if not 2."""


@kernel("expression_loops")
def evaluate_rows(rows: Rows, instructions: Rows, n_words: int) -> Rows | None:
    """The rows that a program makes, int64[n, n_words + 1], or None where one is refused.

    rows : int64[n, w + 1], of which the diffs are taken over

    >>> add = [[Do.WORD, 0, 0], [Do.CONSTANT, 5, 0], [Do.ADD, 0, 0], [Do.STORE, 0, 0]]
    >>> evaluate_rows(np.array([[7, 1], [8, 1]]), np.array(add), 1).tolist()
    [[12, 1], [13, 1]]
    """
    made = np.empty((len(rows), n_words + 1), np.int64)
    for row, into in zip(rows.tolist(), made, strict=True):
        if _run(row, instructions.tolist(), into) is None:
            return None
        into[-1] = row[-1]
    return made


@kernel("expression_loops")
def keep_rows(rows: Rows, instructions: Rows) -> Rows | None:
    """The rows for which a program leaves true, or None where one is refused.

    >>> greater = [[Do.WORD, 0, 0], [Do.CONSTANT, 7, 0], [Do.GREATER, 0, 0]]
    >>> keep_rows(np.array([[7, 1], [8, 1]]), np.array(greater)).tolist()
    [[8, 1]]
    """
    kept = []
    for at, row in enumerate(rows.tolist()):
        stack = _run(row, instructions.tolist(), None)
        if stack is None:
            return None
        word, there = stack.pop()
        if word and there:
            kept.append(at)
    return rows[kept]


def _run(row: list[int], instructions: list[list[int]], into: Any) -> list[tuple[int, bool]] | None:
    """What is left on the stack; None if the row is refused."""
    stack: list[tuple[int, bool]] = []
    for code, a, b in instructions:
        do = Do(code)
        n = N_OPERANDS.get(do, 2)
        operands = stack[len(stack) - n :]
        del stack[len(stack) - n :]
        if do is Do.STORE:
            ((word, there),) = operands
            into[a] = word if there else 0
            if b:
                into[a - 1] = there
            continue
        found = _result(do, a, b, row, operands)
        if found is None:
            return None
        stack.append(found)
    return stack


def _result(
    do: Do, a: int, b: int, row: list[int], operands: list[tuple[int, bool]]
) -> tuple[int, bool] | None:
    words = [word for word, _ in operands]
    are_there = [there for _, there in operands]
    if do in (Do.WORD, Do.FLOAT):
        word = row[a] if do is Do.WORD else _bits_of(row[a])
        return word, not b or row[a - 1] != 0
    if do is Do.CONSTANT:
        return a, not b
    if do in (Do.AND, Do.OR):
        decides = do is Do.OR
        if any(there and bool(word) is decides for word, there in operands):
            return decides, True
        return not decides, all(are_there)
    if do in (Do.IS_NULL, Do.IS_THERE):
        return are_there[0] is (do is Do.IS_THERE), True
    if do is Do.FIRST_THERE:
        return operands[0] if are_there[0] else operands[1]
    if do is Do.CHOOSE:
        return operands[1] if words[0] and are_there[0] else operands[2]
    if not all(are_there):
        return 0, False
    word_found = _of_words(do, a, b, words)
    return None if word_found is None else (word_found, True)


_COMPARE = {
    Do.EQUAL: int.__eq__,
    Do.NOT_EQUAL: int.__ne__,
    Do.LESS: int.__lt__,
    Do.LESS_EQUAL: int.__le__,
    Do.GREATER: int.__gt__,
    Do.GREATER_EQUAL: int.__ge__,
}
_INTEGERS = {Do.ADD: int.__add__, Do.SUBTRACT: int.__sub__, Do.MULTIPLY: int.__mul__}
_FLOATS = {
    Do.ADD_FLOATS: np.add,
    Do.SUBTRACT_FLOATS: np.subtract,
    Do.MULTIPLY_FLOATS: np.multiply,
    Do.DIVIDE_FLOATS: np.divide,
}


def _of_words(do: Do, a: int, b: int, words: list[int]) -> int | None:
    """The word that is made of some that are there; None if it is refused."""
    if do in _COMPARE:
        return int(_COMPARE[do](*words))
    if do in _INTEGERS:
        found: int = _INTEGERS[do](*words)
        return found if _LEAST <= found < _BEYOND else None
    if do in _FLOATS:
        one, two = map(_float, words)
        if do is Do.DIVIDE_FLOATS and two == 0:
            return None
        with np.errstate(all="ignore"):
            return _bits(float(_FLOATS[do](one, two)))
    (word,) = words
    if do is Do.NOT:
        return int(not word)
    if do is Do.FLOOR_DIVIDE:
        return word // a
    if do is Do.RANGE:
        return word if a <= word <= b else None
    if do is Do.TO_FLOAT:
        return _bits(float(word) / _float(a))
    assert do is Do.ORDER
    value = _float(word)
    if value != value:
        return _NAN_WORD
    bits = _bits(value + 0.0)
    return bits ^ _BITS if bits < 0 else bits


def _bits_of(word: int) -> int:
    """The bits of the float of a word."""
    return word ^ _BITS if word < 0 else word


def _float(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


def _bits(value: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits
