"""Functions of numbers on bound expressions: abs, round, floor, ceil, sqrt, log2.

Integers and decimals stay what they are, exactly. What has no answer, as the root of -1, is
an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pointstamp.collections.casts import (
    Bound,
    as_long,
    cast_to,
    fitting,
    is_number,
    refuse_where,
)
from pointstamp.collections.evaluation import Evaluated, Mask, Values, computed
from pointstamp.containers.words import DOUBLE, MOST_DIGITS, DecimalType, WordType, decimal_type
from pointstamp.errors import BuildError, SchemaError

_LEAST = -(1 << 63)


def absolute(bound: Bound, what: object) -> Bound:
    """Without its sign."""
    kind = _number(bound, what)
    if kind.is_integer:
        bound = as_long(bound, what)

    def compute(values: Values, there: Mask) -> Values:
        if kind.is_integer:
            beyond = "without its sign is beyond long, in"
            refuse_where(values == _LEAST, there, values, beyond, what)
        return np.abs(values)

    return _of_values(bound, bound.type, compute)


def rounded(bound: Bound, places: int, what: object) -> Bound:
    """To so many places behind the point: decimals with halves away from 0, floats as Python."""
    kind = _number(bound, what)
    check_places(places)
    if kind.is_float:
        return _of_values(
            bound,
            kind,
            lambda values, there: (
                np.rint(values)
                if places == 0
                else np.array([round(value, places) for value in values.tolist()], np.float64)
            ),
        )
    if not isinstance(kind, DecimalType) or places >= kind.scale:
        return bound
    unit = 10 ** (kind.scale - places)

    def compute(values: Values, there: Mask) -> Values:
        found: Values = np.sign(values) * ((np.abs(values) + unit // 2) // unit)
        return found

    return _of_values(bound, _with_places(kind, places), compute)


def check_places(places: int) -> None:
    """Refuse what is no number of places.

    Raises
    ------
    BuildError
    """
    if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= MOST_DIGITS:
        raise BuildError(f"round is given {places!r}, and needs 0 to {MOST_DIGITS} places")


def floor(bound: Bound, what: object) -> Bound:
    """The greatest whole number up to it; of a decimal one without places."""
    return _whole(bound, what, lambda values, unit: values // unit, np.floor)


def ceil(bound: Bound, what: object) -> Bound:
    """The least whole number from it on; of a decimal one without places."""
    return _whole(bound, what, lambda values, unit: -(-values // unit), np.ceil)


def sqrt(bound: Bound, what: object) -> Bound:
    """The root, a double."""
    return _of_double(bound, what, np.sqrt, lambda values: values < 0)


def log2(bound: Bound, what: object) -> Bound:
    """The logarithm to base 2, a double."""
    return _of_double(bound, what, np.log2, lambda values: values <= 0)


def _whole(
    bound: Bound,
    what: object,
    of_decimals: Callable[[Values, int], Values],
    of_floats: Callable[[Values], Values],
) -> Bound:
    kind = _number(bound, what)
    if kind.is_float:
        return _of_values(bound, kind, lambda values, there: of_floats(values))
    if not isinstance(kind, DecimalType) or not kind.scale:
        return bound
    unit = 10**kind.scale
    return _of_values(bound, _with_places(kind, 0), lambda values, there: of_decimals(values, unit))


def _with_places(kind: DecimalType, places: int) -> DecimalType:
    """Decimals of fewer places, which may have one more digit before the point."""
    return decimal_type(min(MOST_DIGITS, kind.precision - kind.scale + places + 1), places)


def _of_double(
    bound: Bound,
    what: object,
    compute: Callable[[Values], Values],
    has_none: Callable[[Values], Values],
) -> Bound:
    _number(bound, what)
    bound = cast_to(bound, DOUBLE, what)

    def evaluate(values: Values, there: Mask) -> Values:
        with np.errstate(all="ignore"):
            refuse_where(has_none(values), there, values, "has no value, in", what)
            return compute(values)

    return _of_values(bound, DOUBLE, evaluate)


def _of_values(bound: Bound, kind: WordType, compute: Callable[[Values, Mask], Values]) -> Bound:
    def evaluate(column: Evaluated) -> Evaluated:
        values, there = column
        return fitting(compute(values, there), there, kind), there

    return Bound(kind, bound.nullable, computed(evaluate, bound.evaluate))


def _number(bound: Bound, what: object) -> WordType:
    if not is_number(bound.type):
        raise SchemaError(f"{what} is asked of {bound.type.name}, which is no number")
    return bound.type
