"""Decimals in expressions, where Arrow's own rules have no room for the digits of a result.

Arrow refuses a sum or a product whose type would have more than 38 digits, whatever the values are:
two columns of decimal(38,18), which Spark makes of Python's decimals, could not be added. SQL gives
up places behind the point, down to 6. Nothing here knows expressions.

Source: Spark's `DecimalType.adjustPrecisionScale`.
"""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

DIGITS = 38
"""So many digits decimals have at most, in SQL and in Arrow's of 128 bits."""
_WIDE = 76
_LEAST_PLACES = 6
_OF_INTEGER = {1: 3, 2: 5, 4: 10, 8: 20}
"""The digits of integers by their bytes."""


def are_exact(values: list[Any]) -> bool:
    """Whether values are decimals and integers, and not integers alone."""
    kinds = [value.type for value in values]
    is_decimal = [pa.types.is_decimal(kind) for kind in kinds]
    return any(is_decimal) and all(
        exact or pa.types.is_integer(kind) for exact, kind in zip(is_decimal, kinds, strict=True)
    )


def arithmetic(function: str, left: Any, right: Any) -> Any:
    """The sum, difference or product of decimals and integers, rounded where there is no room.

    function : "add", "subtract" or "multiply"

    >>> of = pa.decimal128(38, 18)
    >>> arithmetic("add", pa.scalar(decimal.Decimal("1.5"), of), pa.scalar(2)).as_py().normalize()
    Decimal('3.5')
    """
    checked = f"{function}_checked"
    if _result(function, _of_type(left), _of_type(right))[0] <= DIGITS:
        return pc.call_function(checked, [left, right])
    digits, places = _result(function, _of_value(left), _of_value(right))
    kept = places
    if digits > DIGITS:
        kept = max(DIGITS - (digits - places), min(places, _LEAST_PLACES))
    wide = _as_wide(left, _WIDE - 1 - _of_type(right)[0]), _as_wide(right, DIGITS)
    found = pc.call_function(checked, list(wide))
    if kept < found.type.scale:
        found = pc.round(found, kept, "half_towards_infinity")
    return pc.cast(found, pa.decimal128(DIGITS, kept))


def leveled(values: list[Any], most: int) -> list[Any]:
    """Decimals and integers as decimals of one type, of at most so many digits."""
    types = [_of_type(value) for value in values]
    places = max(scale for _, scale in types)
    digits = min(most, max(precision - scale for precision, scale in types) + places)
    make = pa.decimal128 if digits <= DIGITS else pa.decimal256
    return [pc.cast(value, make(digits, places)) for value in values]


def compared(values: list[Any]) -> list[Any]:
    """The same of values that are compared: only where Arrow has no room for it."""
    types = [_of_type(value) for value in values]
    digits = max(precision - scale for precision, scale in types) + max(s for _, s in types)
    return leveled(values, _WIDE) if digits > DIGITS else values


def remainder(left: Any, right: Any) -> Any:
    """Of arrays; exact, in Python: Arrow's quotients have no room for all digits."""
    with decimal.localcontext(prec=2 * DIGITS):
        found = [
            None if one is None or not by else decimal.Decimal(one) % by
            for one, by in zip(left.to_pylist(), right.to_pylist(), strict=True)
        ]
    kinds = [_of_type(value) for value in (left, right)]
    places = max(behind for _, behind in kinds)
    before = min(digits - behind for digits, behind in kinds)
    return pa.array(found, pa.decimal128(min(DIGITS, max(1, before + places)), places))


def _result(function: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """The digits of a result, and how many of them are behind the point."""
    if function == "multiply":
        return left[0] + right[0] + 1, left[1] + right[1]
    places = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + places + 1, places


def _of_type(value: Any) -> tuple[int, int]:
    kind = value.type
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return _OF_INTEGER[kind.bit_width // 8], 0


def _of_value(value: Any) -> tuple[int, int]:
    """The same, of an integer alone by its own digits, as SQL has it."""
    if isinstance(value, pa.Scalar) and pa.types.is_integer(value.type) and value.is_valid:
        return len(str(abs(value.as_py()))), 0
    return _of_type(value)


def _as_wide(value: Any, most: int) -> Any:
    digits, places = _of_type(value)
    return pc.cast(value, pa.decimal256(min(digits, most), places))
