"""Sums that wrap around in their type, which Arrow does not say: found, and refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import SchemaError

_HALF = 32
"""Integers are added up in two halves of so many bits, which do not wrap around."""


def check_sums(values: Any) -> None:
    """Refuse values of which a sum does not fit into 64 bits, or a decimal's digits.

    values : pyarrow.Table with columns `to`, of which each value has a sum, and `value`

    Raises
    ------
    SchemaError
        If one does not. Sums of floats are as large as floats can be.

    >>> check_sums(pa.table({"to": [0, 1], "value": [2**62, 2**62]}))
    """
    kind = values.column("value").type
    if pa.types.is_integer(kind):
        _check_integers(values, is_signed=pa.types.is_signed_integer(kind))
    elif pa.types.is_decimal(kind):
        _check_decimals(values, kind)


def _check_integers(values: Any, *, is_signed: bool) -> None:
    least, most = (-(2**63), 2**63 - 1) if is_signed else (0, 2**64 - 1)
    found: Any = pc.min_max(values.column("value"))
    ends = found.as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    if largest * values.num_rows <= most:
        return
    wide = values.column("value").cast(pa.int64() if is_signed else pa.uint64())
    bits = pa.scalar(_HALF, wide.type)
    high = pc.shift_right(wide, bits)
    low = pc.subtract(wide, pc.shift_left(high, bits))
    halves = pa.table({"to": values.column("to"), "high": high, "low": low})
    sums = halves.group_by("to").aggregate([("high", "sum"), ("low", "sum")])
    for one in sums.select(["high_sum", "low_sum"]).to_pylist():
        total = ((one["high_sum"] or 0) << _HALF) + (one["low_sum"] or 0)
        if not least <= total <= most:
            _refuse(total, "int64" if is_signed else "uint64")


def _check_decimals(values: Any, kind: Any) -> None:
    # A float is near enough: what is refused is as large as what cannot be, and not by a digit.
    floats = pa.table({"to": values.column("to"), "value": values.column("value").cast("double")})
    sums = floats.group_by("to").aggregate([("value", "sum")]).column("value_sum")
    digits = 38 if kind.bit_width <= 128 else 76
    largest = max((abs(one) for one in sums.to_pylist() if one is not None), default=0.0)
    if largest * 10.0**kind.scale >= 10.0**digits * (1 - 1e-9):
        _refuse(largest, f"{digits} digits")


def _refuse(total: Any, kind: str) -> None:
    raise SchemaError(
        f"a sum of messages, {total}, does not fit into {kind}: make floats of them, as in "
        "'sum(cast(msg as double))'"
    )
