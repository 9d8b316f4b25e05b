"""`cast` in expressions: by Arrow, with the values that Spark's ANSI mode has.

    to decimal      rounded half up; more digits than there is room for are an error
    to an integer   cut off behind the point; from a time the seconds since 1970
    to timestamp    in a zone a moment; from a number so many seconds after 1970
    to string       of a time what the clocks of the zone show

What a text does not say, and what has no room, is an error, as in ANSI mode; without that Spark has
nulls there.
"""

from __future__ import annotations

import decimal
import re
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import UsageError
from pointstamp.graph.tables.sql_times import as_text, clock_times, moment_of, moments_at
from pointstamp.graph.tables.vertex_ids import is_zoned

TYPES: dict[str, Any] = {
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ltz": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
"""Arrow's types by their names in SQL."""

_NAMES = {kind: name for name, kind in reversed(TYPES.items())}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:, ?(-?\d+))?\))?")
_MAX_DIGITS = 38
_WIDE = 76
"""So many digits Arrow's longest decimals have."""
_PLACES = 38
"""So many of them behind the point, where it is not known how many a text has."""


def sql_name(kind: Any) -> str:
    """What SQL calls a type of Arrow.

    >>> sql_name(pa.int64()), sql_name(pa.timestamp("us", "UTC")), sql_name(pa.decimal128(9, 2))
    ('bigint', 'timestamp', 'decimal(9,2)')
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return _NAMES.get(kind, str(kind))


def cast_to(value: Any, name: str, zone: str | None) -> Any:
    """Values as of a type, by its name in SQL.

    zone : in which times without a zone are, and clocks are read; without it as Arrow has it

    Raises
    ------
    UsageError
        If there is no such type.
    ValueError, pyarrow.ArrowException
        If a value has none there.
    """
    if (figures := _DECIMAL.fullmatch(name)) is not None:
        digits, places = int(figures[1] or 10), int(figures[2] or 0)  # as in Spark
        if not 1 <= digits <= _MAX_DIGITS or not 0 <= places <= digits:
            raise UsageError(
                f"there is no type {name!r}: a decimal has 1 to {_MAX_DIGITS} digits, as many of "
                "them behind the point at most"
            )
        return _of_arrays(value, lambda values: _decimals(values, digits, places))
    if name not in TYPES:
        known = ", ".join([*TYPES, "decimal(digits,places)"])
        raise UsageError(f"there is no type {name!r}; there are {known}")
    kind, given = TYPES[name], value.type
    if name in ("timestamp", "timestamp_ltz"):
        return _timestamps(value, zone)
    if name == "timestamp_ntz" and zone is not None and is_zoned(given):
        return clock_times(value, zone)
    if name == "timestamp_ntz" and pa.types.is_string(given):
        return _of_arrays(value, lambda texts: _clocks(texts, has_zones=True))
    if pa.types.is_string(kind):
        return as_text(value, zone)
    if pa.types.is_timestamp(given):
        if zone is not None and is_zoned(given) and pa.types.is_date(kind):
            value = clock_times(value, zone)
        elif pa.types.is_integer(kind):
            utc = pc.cast(value, pa.timestamp(given.unit, "UTC" if is_zoned(given) else None))
            value = _seconds(pc.floor_temporal(utc, unit="second"))
        elif pa.types.is_floating(kind):
            value = pc.divide(as_float(_microseconds(value), pa.float64()), 1e6)
    elif pa.types.is_integer(kind) and (pa.types.is_floating(given) or pa.types.is_decimal(given)):
        value = pc.trunc(value)
    elif pa.types.is_string(given) and not pa.types.is_binary(kind):
        value = pc.utf8_trim_whitespace(value)
        if pa.types.is_integer(kind):
            value = _of_arrays(value, lambda texts: _decimal_digits(texts, name))
        elif pa.types.is_boolean(kind):
            for words, said in (("t|y|yes", "true"), ("f|n|no", "false")):
                value = pc.replace_substring_regex(value, f"(?i)^({words})$", said)
        elif pa.types.is_date(kind):
            for written, whole in _SHORT_DATES:
                value = pc.replace_substring_regex(value, written, whole)
        elif pa.types.is_floating(kind):
            value = pc.replace_substring_regex(
                value, r"^([+-]?[\d.]+(?:[eE][+-]?\d+)?)[dDfF]$", r"\1"
            )
    elif pa.types.is_floating(kind):
        return as_float(value, kind)
    return pc.cast(value, kind)


_SHORT_DATES = (
    (r"^\+(\d{4})", r"\1"),
    (r"(?s)^(\d{4}-\d\d?-\d\d?)[ T].*$", r"\1"),  # what follows is no part of it
    (r"^(\d{4})-(\d)(-|$)", r"\1-0\2\3"),
    (r"^(\d{4}-\d\d)-(\d)$", r"\1-0\2"),
    (r"^(\d{4}-\d\d)$", r"\1-01"),
    (r"^(\d{4})$", r"\1-01-01"),
)
"""Dates as SQL lets them be written, and how Arrow has them."""


def try_cast_to(value: Any, name: str, zone: str | None) -> Any:
    """The same with nulls for what has no value there, as `try_cast` in SQL.

    >>> try_cast_to(pa.array(["7", "x"]), "int", None).to_pylist()
    [7, None]
    """
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    try:
        return cast_to(value, name, zone)
    except (pa.ArrowInvalid, ValueError, OverflowError):
        if isinstance(value, pa.Scalar) or len(value) == 1:
            is_one = isinstance(value, pa.Scalar)
            none: Any = pa.scalar(None, value.type) if is_one else pa.nulls(1, value.type)
            return cast_to(none, name, zone)
    half = len(value) // 2
    parts = (value[:half], value[half:])
    return pa.concat_arrays([try_cast_to(part, name, zone) for part in parts])


def as_float(value: Any, kind: Any) -> Any:
    """Numbers as floats, the nearest ones.

    >>> as_float(pa.scalar(Decimal("1708.11")), pa.float64()).as_py()
    1708.11
    """
    if pa.types.is_decimal(value.type):  # of which Arrow's own cast is somewhat beside
        return pc.cast(pc.cast(value, pa.string()), kind)
    return pc.cast(value, kind, safe=not pa.types.is_integer(value.type))


def _decimal_digits(texts: Any, name: str) -> Any:
    """Texts of integers as Arrow reads them, which has no plus sign and knows hexadecimal ones."""
    for text in pc.filter(texts, pc.match_substring_regex(texts, "^[+-]?0[xX]")):
        raise ValueError(f"{text.as_py()!r} is no {name}")
    return pc.replace_substring_regex(texts, r"^\+(\d)", r"\1")


def why_not(error: Exception, name: str) -> str:
    """What is wrong with a value that has none of a type, in SQL's words."""
    said = str(error).splitlines()[0]
    found = re.match(r"Failed to parse string: '(.*)' as a scalar of type", said)
    return said if found is None else f"{found[1]!r} is no {name}"


_MICROS = Decimal(1_000_000)


def _array(value: Any) -> Any:
    one: Any = value
    return pa.repeat(one, 1) if isinstance(value, pa.Scalar) else value


def _microseconds(times: Any) -> Any:
    return pc.cast(pc.cast(times, pa.timestamp("us", times.type.tz)), pa.int64())


def _seconds(whole: Any) -> Any:
    return pc.divide(_microseconds(whole), 1_000_000)


def _timestamps(value: Any, zone: str | None) -> Any:
    kind = value.type
    if zone is not None and is_zoned(kind):
        return value
    if pa.types.is_integer(kind):
        micros = pc.multiply_checked(pc.cast(value, pa.int64()), 1_000_000)
    elif pa.types.is_decimal(kind):
        exact = pc.multiply(pc.cast(value, pa.decimal256(60, kind.scale)), pa.scalar(_MICROS))
        micros = pc.cast(pc.trunc(exact), pa.int64())
    elif pa.types.is_floating(kind):
        floats = pc.cast(value, pa.float64())
        if pc.any(pc.invert(pc.is_finite(_array(floats)))).as_py():
            raise ValueError("NaN and infinity are no times")
        micros = pc.cast(pc.trunc(pc.multiply(floats, 1e6)), pa.int64())
    else:
        is_text = pa.types.is_string(kind)
        if is_text and zone is not None:
            return _of_arrays(value, lambda values: _moments(values, zone))
        clocks = _of_arrays(value, _clocks) if is_text else pc.cast(value, TYPES["timestamp"])
        return clocks if zone is None else moments_at(clocks, zone)
    return pc.cast(micros, pa.timestamp("us", None if zone is None else "UTC"))


def _clocks(texts: Any, has_zones: bool = False) -> Any:
    """Texts as times without a zone; one that they have is no part of it, or is an error."""
    texts = pc.utf8_trim_whitespace(texts)
    try:
        return pc.cast(texts, TYPES["timestamp"])
    except pa.ArrowInvalid:
        found = [None if text is None else _time(text) for text in texts.to_pylist()]
        if not has_zones and any(one is not None and one.tzinfo is not None for one in found):
            raise
    clocks = [None if one is None else one.replace(tzinfo=None) for one in found]
    return pa.array(clocks, TYPES["timestamp"])


def _moments(texts: Any, zone: str) -> Any:
    """Texts as moments, of which some may name a zone of their own."""
    texts = pc.utf8_trim_whitespace(texts)
    try:
        return moments_at(pc.cast(texts, TYPES["timestamp"]), zone)
    except pa.ArrowInvalid:
        found = [None if text is None else _time(text) for text in texts.to_pylist()]
    clocks = [one if one is not None and one.tzinfo is None else None for one in found]
    moments = [one if one is not None and one.tzinfo is not None else None for one in found]
    return pc.coalesce(
        pa.array(moments, pa.timestamp("us", "UTC")),
        moments_at(pa.array(clocks, TYPES["timestamp"]), zone),
    )


_TIME = re.compile(
    r"\+?(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T]"
    r"(?:(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?)?)? *(\S+)?)?)?)?)?"
)
"""A time as SQL lets it be written: what is left out is the least, and a zone may follow."""


def _time(text: str) -> datetime:
    try:
        if (found := _TIME.fullmatch(text)) is None:
            raise ValueError(text)
        *whole, fraction, zone = found.groups()
        year, month, day, hour, minute, second = (
            (said or least).zfill(2) for said, least in zip(whole, "011000", strict=True)
        )
        micros = (fraction or "")[:6].ljust(6, "0")
        time = datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micros}")
        return time if zone is None else moment_of(time, zone)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise ValueError(f"{text!r} is no timestamp") from error


def texts_as_times(operands: list[Any], zone: str) -> list[Any]:
    """Operands of which texts are times, or dates, if one of them is one; as in Spark."""
    kinds = [one.type for one in operands]
    if any(map(pa.types.is_timestamp, kinds)):
        name = "timestamp"
    elif any(map(pa.types.is_date, kinds)):
        name = "date"
    else:
        return operands
    return [cast_to(one, name, zone) if pa.types.is_string(one.type) else one for one in operands]


def _of_arrays(value: Any, function: Any) -> Any:
    """A function of arrays, of a value that may be one alone."""
    found = function(_array(value))
    return found[0] if isinstance(value, pa.Scalar) else found


def _decimals(values: Any, digits: int, places: int) -> Any:
    """Values as decimals, rounded half up."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        micros = pc.cast(_microseconds(values), pa.decimal128(19, 0))
        values = pc.multiply(micros, pa.scalar(Decimal("0.000001")))  # as seconds
    elif pa.types.is_boolean(kind):
        values = pc.cast(values, pa.int8())
    elif pa.types.is_floating(kind):
        # By their shortest texts, as Spark: 1.255 is somewhat less as a float.
        floats = pc.cast(values, pa.float64())
        finite = pc.if_else(pc.is_finite(floats), floats, pa.scalar(None, pa.float64()))
        values = pc.cast(finite, pa.string())
    if pa.types.is_string(values.type):
        texts = pc.utf8_trim_whitespace(values)
        try:
            wide = pc.cast(texts, pa.decimal256(_WIDE, _PLACES))
        except pa.ArrowInvalid:  # so many digits, or none
            return _of_texts(texts.to_pylist(), digits, places)
    else:
        scale = values.type.scale if pa.types.is_decimal(values.type) else places
        wide = pc.cast(values, pa.decimal256(_WIDE, scale))
    if places < wide.type.scale:
        wide = pc.round(wide, places, "half_towards_infinity")
    try:
        return pc.cast(wide, pa.decimal128(digits, places))
    except pa.ArrowInvalid:
        for one in wide.to_pylist():
            if one is not None:
                _check_room(one, digits, places, f"{one:f}".rstrip("0").rstrip("."))
        raise


def _of_texts(texts: list[str | None], digits: int, places: int) -> Any:
    """The same one by one, of any number of digits."""
    found: list[Decimal | None] = []
    with decimal.localcontext(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        for text in texts:
            if text is None:
                found.append(None)
                continue
            try:
                exact = Decimal(text if "_" not in text else "nan")  # Python's own notation
            except decimal.InvalidOperation:
                exact = Decimal("nan")
            if not exact.is_finite():
                raise ValueError(f"{text!r} is no decimal({digits},{places})")
            _check_room(exact, digits, places, text)
            rounded = exact.quantize(Decimal(1).scaleb(-places), decimal.ROUND_HALF_UP)
            _check_room(rounded, digits, places, text)
            found.append(rounded)
    return pa.array(found, pa.decimal128(digits, places))


def _check_room(value: Decimal, digits: int, places: int, shown: str) -> None:
    if value and value.adjusted() >= digits - places:
        before = digits - places
        raise ValueError(
            f"{shown} has more than {before} digit{'' if before == 1 else 's'} before the point"
        )
