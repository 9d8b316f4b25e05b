"""Arithmetic on bound expressions: numbers, decimals, dates, times and texts.

Decimals have at most 18 digits. A sum and a difference have the places of the operand with
more of them, and a digit more than both before the point; a product has the places of both
together, and 18 digits; a quotient is a double. What takes more than 18 digits is an error, and
never rounded.

`//` and `%` are Python's, and those of pandas and Polars: the quotient is rounded down, and what
is left has the sign of the divisor. SQL's would be rounded towards 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.collections.casts import (
    NULL,
    Bound,
    as_long,
    cast_to,
    checked_product,
    fitting,
    is_number,
    refuse_where,
    same_type,
    scale_of,
    typed,
)
from pointstamp.collections.evaluation import Evaluated, Values, both_there, computed
from pointstamp.collections.instructions import combined
from pointstamp.containers.text_functions import joined_texts
from pointstamp.containers.words import (
    DAY_US,
    DOUBLE,
    LONG,
    MOST_DIGITS,
    DateType,
    DecimalType,
    DurationType,
    TextType,
    TimestampType,
    WordType,
    decimal_type,
    type_named,
)
from pointstamp.errors import SchemaError

_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": np.floor_divide,
    "%": np.mod,
}
_DIVISIONS = ("/", "//", "%")


def arithmetic(one: Bound, sign: str, two: Bound, what: object) -> Bound:
    """`one sign two`, of which `sign` is one of + - * / // %.

    Raises
    ------
    SchemaError
        If it is not defined for these types.
    """
    one, two = typed(one, two.type), typed(two, one.type)
    found = _of_times(one, sign, two, what)
    if found is not None:
        return found
    if isinstance(one.type, TextType) and one.type == two.type and sign == "+":
        return _joined(one, two)
    if not (is_number(one.type) and is_number(two.type)):
        hint = "; cast the null" if NULL in (one.type, two.type) else ""
        raise SchemaError(f"{what}: {one.type.name} {sign} {two.type.name} is not defined{hint}")
    if sign == "/":
        one, two = cast_to(one, DOUBLE, what), cast_to(two, DOUBLE, what)
    elif sign in _DIVISIONS and not all(_divides(bound.type) for bound in (one, two)):
        raise SchemaError(
            f"{what}: {one.type.name} {sign} {two.type.name} is not defined; cast both to long or "
            "double"
        )
    elif sign == "*" and not (one.type.is_float or two.type.is_float):
        return _product(one, two, what)
    else:
        one, two = same_type(one, two, what)
        if one.type.is_integer:
            one, two = as_long(one, what), as_long(two, what)
    return _computed(_with_a_carry(one.type), one, sign, two, what)


def _divides(kind: WordType) -> bool:
    """Whether a quotient of such values is rounded down: of integers, and of floats."""
    return kind.is_signed or kind.is_float


def _with_a_carry(kind: WordType) -> WordType:
    """What a sum of two values is: of decimals one with a digit more, if there can be one."""
    if isinstance(kind, DecimalType):
        return decimal_type(min(MOST_DIGITS, kind.precision + 1), kind.scale)
    return kind


def _joined(one: Bound, two: Bound) -> Bound:
    def join(a: Evaluated, b: Evaluated) -> Evaluated:
        return joined_texts(a[0], b[0]), both_there(a[1], b[1])

    nullable = one.nullable or two.nullable
    return Bound(one.type, nullable, computed(join, one.evaluate, two.evaluate))


def _product(one: Bound, two: Bound, what: object) -> Bound:
    if "uint64" in (one.type.name, two.type.name):
        raise SchemaError(f"{what}: uint64 cannot be multiplied")
    scale = scale_of(one.type) + scale_of(two.type)
    if scale > MOST_DIGITS:
        raise SchemaError(
            f"{what} has {scale} places behind the point, and a decimal {MOST_DIGITS} digits; "
            "cast one to fewer places, or to double"
        )
    is_decimal = isinstance(one.type, DecimalType) or isinstance(two.type, DecimalType)
    kind = decimal_type(MOST_DIGITS, scale) if is_decimal else LONG
    return _computed(kind, one, "*", two, what)


def _computed(kind: WordType, one: Bound, sign: str, two: Bound, what: object) -> Bound:
    def of_floats(a: Values, b: Values, there: Any) -> Values:
        with np.errstate(all="ignore"):
            if sign in _DIVISIONS:
                refuse_where(b == 0, there, a, "is divided by 0, in", what)
            found: Values = _FLOATS[sign](a, b)
            return found

    def of_integers(a: Values, b: Values, there: Any) -> Values:
        if sign == "*":
            return checked_product(a, b, there, what)
        if sign in _DIVISIONS:
            return _quotient(a, sign, b, there, what)
        result: Values = a + b if sign == "+" else a - b
        turned = (a ^ result) & ((b if sign == "+" else ~b) ^ result)
        refuse_where(turned < 0, there, a, "and another value do not fit 64 bits, in", what)
        return result

    compute = of_floats if kind.is_float else of_integers

    def evaluate(one: Evaluated, two: Evaluated) -> Evaluated:
        there = both_there(one[1], two[1])
        return fitting(compute(one[0], two[0], there), there, kind), there

    nullable = one.nullable or two.nullable
    few = combined(one.instructions, sign, two.instructions, kind)
    return Bound(kind, nullable, computed(evaluate, one.evaluate, two.evaluate), few)


def _quotient(a: Values, sign: str, b: Values, there: Any, what: object) -> Values:
    """`a // b` or `a % b` of integers."""
    refuse_where(b == 0, there, a, "is divided by 0, in", what)
    if sign == "//":
        beyond = (a == LONG.bounds[0]) & (b == -1)  # type: ignore[index]  # a long has bounds
        refuse_where(beyond, there, a, "divided by -1 does not fit 64 bits, in", what)
    # Of nulls, whose words are 0, nothing is divided; nor by -1, where the least has no quotient.
    turned = b == -1
    divisor = np.where((b == 0) | turned, 1, b)
    if sign == "//":
        return np.where(turned, -a, a // divisor)
    return a % divisor


def _of_times(one: Bound, sign: str, two: Bound, what: object) -> Bound | None:
    """Of times, durations and dates; None of numbers."""
    if sign not in "+-":
        return None
    kinds = (one.type, two.type)
    if isinstance(kinds[0], DurationType) and not isinstance(kinds[1], DurationType):
        return _of_times(two, sign, one, what) if sign == "+" else None
    if isinstance(kinds[1], DurationType):
        if isinstance(kinds[0], DateType):
            return _computed(kinds[0], one, sign, _days(two, what), what)
        if isinstance(kinds[0], (TimestampType, DurationType)):
            return _computed(kinds[0], one, sign, two, what)
    if isinstance(kinds[0], TimestampType) and kinds[0] == kinds[1] and sign == "-":
        return _computed(type_named("duration"), one, sign, two, what)
    if isinstance(kinds[0], DateType) and kinds[1].is_signed:
        return _computed(kinds[0], one, sign, two, what)
    if all(isinstance(kind, DateType) for kind in kinds) and sign == "-":
        return _computed(LONG, one, sign, two, what)
    return None


def _days(duration: Bound, what: object) -> Bound:
    """A duration as so many days."""

    def whole(column: Evaluated) -> Evaluated:
        values, there = column
        unfit = "us are no whole number of days, which a date can be moved by, in"
        refuse_where(values % DAY_US != 0, there, values, unfit, what)
        return values // DAY_US, there

    return Bound(LONG, duration.nullable, computed(whole, duration.evaluate))
