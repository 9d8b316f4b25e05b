"""Conditions on bound expressions, and choices by them: comparison, and, or, not, in, when.

Nulls are as in SQL: what is compared with one is null, `&` and `|` are known where one side
decides, and a null is not true.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pointstamp.collections.casts import (
    Bound,
    in_words,
    is_number,
    same_type,
    scale_of,
    typed,
)
from pointstamp.collections.evaluation import (
    Evaluated,
    Mask,
    Values,
    both_there,
    computed,
    first_there,
    first_true,
)
from pointstamp.collections.instructions import chosen, compared, first_known, only, program
from pointstamp.containers.dictionary import ranks_of_texts
from pointstamp.containers.words import BOOLEAN, DOUBLE, DecimalType, WordType
from pointstamp.errors import SchemaError
from pointstamp.kernels.evaluate import Do

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_WIDE = decimal.Context(prec=60)


def boolean(bound: Bound, what: object) -> Bound:
    """As a boolean, which it has to be.

    Raises
    ------
    SchemaError
        If it is not.
    """
    bound = typed(bound, BOOLEAN)
    if bound.type != BOOLEAN:
        raise SchemaError(f"{what} should be true or false, and is {bound.type.name}")
    return bound


def comparison(one: Bound, sign: str, two: Bound, what: object) -> Bound:
    """`one sign two`, of which `sign` is one of == != < <= > >=. Texts are ordered by bytes."""
    if _are_decimals(one.type, two.type) and scale_of(one.type) != scale_of(two.type):
        return _of_scales(one, sign, two, what)
    one, two = same_type(one, two, what)
    compare = _COMPARE[sign]
    by_bytes = one.type.is_text and sign not in ("==", "!=")

    def evaluate(first: Evaluated, second: Evaluated) -> Evaluated:
        a, b = first[0], second[0]
        if by_bytes:
            ranks = ranks_of_texts(np.concatenate([a, b]))
            a, b = ranks[: len(a)], ranks[len(a) :]
        else:
            a, b = in_words(a, one), in_words(b, two)
        return compare(a, b), both_there(first[1], second[1])

    nullable = one.nullable or two.nullable
    few = compared(one.instructions, sign, two.instructions, one.type)
    return Bound(BOOLEAN, nullable, computed(evaluate, one.evaluate, two.evaluate), few)


def _are_decimals(*kinds: WordType) -> bool:
    """Whether they are decimals, or decimals and integers whose words are their values."""
    return any(isinstance(kind, DecimalType) for kind in kinds) and all(
        isinstance(kind, DecimalType) or kind.is_signed for kind in kinds
    )


def _of_scales(one: Bound, sign: str, two: Bound, what: object) -> Bound:
    """The comparison of decimals with other places, neither of which need fit those of both."""
    if scale_of(one.type) > scale_of(two.type):
        return _of_scales(two, _TURNED.get(sign, sign), one, what)
    unit = 10 ** (scale_of(two.type) - scale_of(one.type))

    def evaluate(first: Evaluated, second: Evaluated) -> Evaluated:
        a, (whole, rest) = first[0], np.divmod(second[0], unit)
        # The rest is at least 0: where the wholes are equal, it decides.
        if sign in ("==", "!="):
            found = (a == whole) & (rest == 0)
            found = found if sign == "==" else ~found
        elif sign in ("<", ">="):
            found = (a < whole) | ((a == whole) & (rest > 0))
            found = found if sign == "<" else ~found
        else:
            found = a > whole if sign == ">" else a <= whole
        return found, both_there(first[1], second[1])

    nullable = one.nullable or two.nullable
    return Bound(BOOLEAN, nullable, computed(evaluate, one.evaluate, two.evaluate))


def logic(one: Bound, sign: str, two: Bound) -> Bound:
    """`one & two`, or `one | two`, of booleans."""
    decides = sign == "|"  # what one side alone can be for the whole to be known

    def evaluate(first: Evaluated, second: Evaluated) -> Evaluated:
        (a, a_there), (b, b_there) = first, second
        values = a | b if decides else a & b
        if a_there is None and b_there is None:
            return values, None
        a_known = _known(a, a_there)
        b_known = _known(b, b_there)
        decided = (a_known & (a == decides)) | (b_known & (b == decides))
        return np.where(decided, decides, values), decided | (a_known & b_known)

    nullable = one.nullable or two.nullable
    do = only(Do.OR if decides else Do.AND)
    few = program(one.instructions, two.instructions, do)
    return Bound(BOOLEAN, nullable, computed(evaluate, one.evaluate, two.evaluate), few)


def negation(inner: Bound) -> Bound:
    """`~inner`, of a boolean."""
    turned = computed(lambda column: (~column[0], column[1]), inner.evaluate)
    return Bound(BOOLEAN, inner.nullable, turned, program(inner.instructions, only(Do.NOT)))


def nullness(inner: Bound, is_null: bool) -> Bound:
    """Whether it is null, or is not."""

    def evaluate(column: Evaluated) -> Evaluated:
        there = _known(*column)
        return (~there if is_null else there), None

    few = program(inner.instructions, only(Do.IS_NULL if is_null else Do.IS_THERE))
    return Bound(BOOLEAN, False, computed(evaluate, inner.evaluate), few)


def choice(cases: Sequence[tuple[Bound, Bound]], otherwise: Bound, what: object) -> Bound:
    """The value of the first case whose condition, a boolean, is true."""
    *values, otherwise = of_one_type([*(value for _, value in cases), otherwise], what)
    nullable = otherwise.nullable or any(value.nullable for value in values)
    pairs = [
        (condition.evaluate, value.evaluate)
        for (condition, _), value in zip(cases, values, strict=True)
    ]
    few = chosen(
        [
            (condition.instructions, value.instructions)
            for (condition, _), value in zip(cases, values, strict=True)
        ],
        otherwise.instructions,
    )
    return Bound(otherwise.type, nullable, first_true(pairs, otherwise.evaluate), few)


def first_not_null(values: Sequence[Bound], what: object) -> Bound:
    """The first that is not null."""
    values = of_one_type(values, what)
    evaluate = first_there([value.evaluate for value in values])
    few = first_known([value.instructions for value in values])
    return Bound(values[0].type, all(value.nullable for value in values), evaluate, few)


def of_one_type(values: Sequence[Bound], what: object) -> list[Bound]:
    """All as one type, without losing anything of any."""
    # The first ones may be nulls, or have fewer digits than a later one.
    kind = reduce(lambda one, two: same_type(one, two, what)[1], values)
    return [same_type(value, kind, what)[0] for value in values]


def one_of(inner: Bound, listed: Sequence[tuple[Bound, tuple[Any] | None]], what: object) -> Bound:
    """Whether it is one of several, each with its value if that is a constant."""
    for bound, _ in listed:
        inner = typed(inner, bound.type)
    words: list[int] = []
    others, has_null = [], False
    for bound, constant in listed:
        if constant == (None,):
            has_null = True
            continue
        same_type(inner, bound, what)
        if constant is None or _is_of_another_kind(inner.type, *constant):
            others.append(comparison(inner, "==", bound, what))
        else:
            words += _words_in(inner.type, *constant)
    wanted = np.array(words, np.int64)

    def evaluate(column: Evaluated, *equal: Evaluated) -> Evaluated:
        values, there = column
        found = np.isin(in_words(values, inner), wanted)
        known = _known(values, there)
        unknown = np.full(len(values), has_null)
        for truth, is_known in equal:
            found = found | (truth if is_known is None else truth & is_known)
            if is_known is not None:
                unknown |= ~is_known
        return found, known & (found | ~unknown)

    nullable = inner.nullable or has_null or any(other.nullable for other in others)
    computing = computed(evaluate, inner.evaluate, *(other.evaluate for other in others))
    return Bound(BOOLEAN, nullable, computing)


def _is_of_another_kind(kind: WordType, value: Any) -> bool:
    """Whether a constant is to be compared as a float with what is none."""
    return isinstance(value, float) and not kind.is_float


def _words_in(kind: WordType, value: Any) -> list[int]:
    """The word of a constant as one of this type, if there is one."""
    if kind.is_float:
        return [DOUBLE.to_word(float(value))]
    if not is_number(kind):
        return [kind.to_word(value)]
    scaled = decimal.Decimal(value).scaleb(scale_of(kind), _WIDE)
    return [int(scaled)] if scaled == int(scaled) and abs(scaled) < 1 << 63 else []


def _known(values: Values, mask: Mask) -> Any:
    return np.ones(len(values), np.bool_) if mask is None else mask
