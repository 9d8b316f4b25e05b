"""Random expressions over the columns of a collection, each with what it is in plain Python.

A null is None, and what is computed of one is None, but where SQL says otherwise.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col

SCHEMA = (
    "id long, n long?, i int, x double?, d decimal(9,2)?, e decimal(12,4), t string?, s string, "
    "day date?, at timestamp?, gap duration, yes boolean?"
)
NAMES = [column.split()[0] for column in SCHEMA.split(", ")]
_KINDS = {
    "long": ["n", "i"],
    "double": ["x"],
    "decimal": ["d", "e"],
    "text": ["t", "s"],
    "date": ["day"],
    "timestamp": ["at"],
    "boolean": ["yes"],
}

Row = dict[str, Any]
Compute = Callable[[Row], Any]

texts = st.sampled_from(["", "a", "ab", "b%", "a_b", "Äb", "ß", "a\nb", "green tea", "tea"])
decimals = st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))
days = st.dates(dt.date(1899, 1, 1), dt.date(2101, 1, 1))
times = st.datetimes(dt.datetime(1899, 1, 1), dt.datetime(2101, 1, 1))
floats = st.sampled_from([0.0, 0.5, -1.25, 2.5, 3.5, 1e10, -7.75])

CONSTANTS: dict[str, Any] = {
    "long": st.integers(-9, 9),
    "double": floats,
    "decimal": decimals,
    "text": texts,
    "date": days,
    "timestamp": times,
    "boolean": st.booleans(),
}

rows = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-9, 9),
        "i": st.integers(-9, 9),
        "x": st.none() | floats,
        "d": st.none() | decimals,
        "e": decimals,
        "t": st.none() | texts,
        "s": texts,
        "day": st.none() | days,
        "at": st.none() | times,
        "gap": st.integers(-50, 50).map(lambda n: dt.timedelta(days=n)),
        "yes": st.none() | st.booleans(),
    }
)


@dataclass(frozen=True)
class Both:
    """An expression, and what it is."""

    expression: Any
    compute: Compute

    def __repr__(self) -> str:
        return repr(self.expression)


def of_values(function: Callable[..., Any], *parts: Both) -> Compute:
    """None where a part is None, else the function of all."""

    def compute(row: Row) -> Any:
        values = [part.compute(row) for part in parts]
        return None if any(value is None for value in values) else function(*values)

    return compute


def three_valued(sign: str, one: Any, other: Any) -> Any:
    """And, or, of true, false and unknown."""
    decides = sign == "|"
    if one is decides or other is decides:
        return decides
    return None if one is None or other is None else not decides


@st.composite
def expressions(draw: Any, kind: str = "", depth: int = 3) -> Both:
    """An expression of a kind of values, or of any."""
    kind = kind or draw(st.sampled_from(sorted(_KINDS)))
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return _leaf(draw, kind)
    if draw(st.integers(0, 3)) == 0:
        return _choice(draw, kind, depth - 1)

    def part(of: str) -> Both:
        found: Both = draw(expressions(of, depth - 1))
        return found

    return _FORMS[kind](draw, part)


def _leaf(draw: Any, kind: str) -> Both:
    if draw(st.booleans()):
        name = draw(st.sampled_from(_KINDS[kind]))
        return Both(col(name), lambda row: row[name])
    value = draw(CONSTANTS[kind])
    return Both(ps.lit(value), lambda row: value)


def _choice(draw: Any, kind: str, depth: int) -> Both:
    first, second = (draw(expressions(kind, depth)) for _ in range(2))
    form = draw(st.integers(0, 3))
    if form == 0:
        test = draw(expressions("boolean", depth))
        return Both(
            ps.when(test.expression).then(first.expression).otherwise(second.expression),
            lambda row: first.compute(row) if test.compute(row) else second.compute(row),
        )
    if form == 1:
        test = draw(expressions("boolean", depth))
        return Both(
            ps.when(test.expression).then(None).otherwise(second.expression),
            lambda row: None if test.compute(row) else second.compute(row),
        )

    def filled(row: Row) -> Any:
        value = first.compute(row)
        return second.compute(row) if value is None else value

    if form == 2:
        return Both(first.expression.fill_null(second.expression), filled)
    return Both(ps.coalesce(None, first.expression, second.expression), filled)


def _long(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(
        st.sampled_from(
            ["+", "-", "*", "abs", "length", "date", "time", "days", "round", "//", "%"]
        )
    )
    if form in ("//", "%"):
        return _divided(draw, part("long"), form, [2, -3, 7])
    if form in "+-*":
        one, other = part("long"), part("long")
        function = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[form]
        return Both(function(one.expression, other.expression), of_values(function, one, other))
    if form == "length":
        text = part("text")
        return Both(text.expression.length(), of_values(len, text))
    if form in ("date", "time"):
        names = ["year", "quarter", "month", "day", "weekday"]
        names += ["hour", "minute", "second", "microsecond"] if form == "time" else []
        name = draw(st.sampled_from(names))
        value = part("timestamp" if form == "time" else "date")
        return Both(getattr(value.expression, name)(), of_values(_part_of(name), value))
    if form == "days":
        first, last = part("date"), part("date")
        return Both(
            last.expression - first.expression,
            of_values(lambda a, b: (b - a).days, first, last),
        )
    one = part("long")
    if form == "round":
        name = draw(st.sampled_from(["round", "floor", "ceil"]))
        return Both(getattr(one.expression, name)(), one.compute)
    return Both(one.expression.abs(), of_values(abs, one))


def _divided(draw: Any, one: Both, sign: str, divisors: list[Any]) -> Both:
    """Rounded down, or what is left, as Python has it."""
    divisor = draw(st.sampled_from(divisors))
    function = (lambda a: a // divisor) if sign == "//" else (lambda a: a % divisor)
    return Both(function(one.expression), of_values(function, one))


def _part_of(name: str) -> Callable[[Any], int]:
    if name == "quarter":
        return lambda value: (value.month + 2) // 3
    if name == "weekday":
        return lambda value: value.weekday()  # type: ignore[no-any-return]  # an int
    return lambda value: getattr(value, name)  # type: ignore[no-any-return]  # an int


def _double(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(
        st.sampled_from(["+", "*", "sqrt", "log2", "floor", "ceil", "round", "abs", "/", "//", "%"])
    )
    one = part("double")
    if form in "+*":
        other = part("double")
        function = (lambda a, b: a + b) if form == "+" else (lambda a, b: a * b)
        return Both(function(one.expression, other.expression), of_values(function, one, other))
    if form in ("//", "%"):
        return _divided(draw, one, form, [2.0, -0.75, 3])
    if form == "/":
        divisor = draw(st.sampled_from([2, -4, 10]))
        return Both(one.expression / divisor, of_values(lambda a: a / divisor, one))
    if form == "sqrt":
        return Both(one.expression.abs().sqrt(), of_values(lambda a: math.sqrt(abs(a)), one))
    if form == "log2":
        # The last bit of a logarithm is the library's.
        return Both(
            (one.expression.abs() + 1.0).log2().round(6),
            of_values(lambda a: round(math.log2(abs(a) + 1.0), 6), one),
        )
    if form == "round":
        places = draw(st.integers(0, 3))
        return Both(one.expression.round(places), of_values(lambda a: float(round(a, places)), one))
    function_of: Any = {"floor": math.floor, "ceil": math.ceil, "abs": abs}[form]
    return Both(getattr(one.expression, form)(), of_values(lambda a: float(function_of(a)), one))


def _decimal(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(st.sampled_from(["+", "-", "long", "round", "floor", "ceil", "abs", "*"]))
    one = part("decimal")
    if form in "+-":
        other = part("decimal")
        function = (lambda a, b: a + b) if form == "+" else (lambda a, b: a - b)
        return Both(function(one.expression, other.expression), of_values(function, one, other))
    if form == "*":
        return Both(
            (one.expression.round(1) * Decimal("0.5")).cast("decimal(18,2)"),
            of_values(lambda a: _to(_to(a, 1) * Decimal("0.5"), 2), one),
        )
    if form == "long":
        whole = part("long")
        return Both(one.expression + whole.expression, of_values(lambda a, b: a + b, one, whole))
    if form == "round":
        places = draw(st.integers(0, 3))
        return Both(one.expression.round(places), of_values(lambda a: _to(a, places), one))
    if form == "abs":
        return Both(one.expression.abs(), of_values(abs, one))
    rule = ROUND_FLOOR if form == "floor" else ROUND_CEILING
    return Both(
        getattr(one.expression, form)(),
        of_values(lambda a: a.to_integral_value(rule), one),
    )


def _to(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _text(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(st.sampled_from(["+", "upper", "lower", "slice"]))
    one = part("text")
    if form == "+":
        other = part("text")
        return Both(one.expression + other.expression, of_values(lambda a, b: a + b, one, other))
    if form == "slice":
        start, length = draw(st.integers(-3, 3)), draw(st.none() | st.integers(0, 3))

        def sliced(text: str) -> str:
            rest = text[start:] if start >= -len(text) else text
            # A start before the first character counts from there.
            skipped = max(0, -start - len(text)) if start < 0 else 0
            return rest if length is None else rest[: max(0, length - skipped)]

        return Both(one.expression.slice(start, length), of_values(sliced, one))
    return Both(getattr(one.expression, form)(), of_values(lambda a: _cased(a, form), one))


def _cased(text: str, form: str) -> str:
    changed = [(char, getattr(char, form)()) for char in text]
    return "".join(
        {"ß": "ẞ"}.get(char, other) if form == "upper" else other for char, other in changed
    )


def _date(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(st.sampled_from(["+", "gap", "cast", "truncate", "extreme"]))
    if form == "cast":
        value = part("timestamp")
        return Both(value.expression.cast("date"), of_values(lambda a: a.date(), value))
    one = part("date")
    if form == "truncate":
        unit = draw(st.sampled_from(["year", "quarter", "month", "week", "day"]))
        return Both(one.expression.truncate(unit), of_values(lambda a: _start(a, unit), one))
    if form == "gap":
        return Both(
            one.expression - col("gap"),
            lambda row: None if one.compute(row) is None else one.compute(row) - row["gap"],
        )
    moved = dt.timedelta(days=draw(st.integers(-400, 400)))
    return Both(moved + one.expression, of_values(lambda a: a + moved, one))


def _start(value: Any, unit: str) -> Any:
    if unit == "week":
        return value - dt.timedelta(days=value.weekday())
    if unit == "quarter":
        return value.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
    return value.replace(
        **({"month": 1, "day": 1} if unit == "year" else {"day": 1} if unit == "month" else {})
    )


def _timestamp(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(st.sampled_from(["+", "cast", "truncate"]))
    if form == "cast":
        value = part("date")
        midnight = dt.time()
        return Both(
            value.expression.cast("timestamp"),
            of_values(lambda a: dt.datetime.combine(a, midnight), value),
        )
    one = part("timestamp")
    if form == "truncate":
        unit = draw(st.sampled_from(["year", "quarter", "month", "week", "hour", "minute"]))
        zeros = dict.fromkeys(["minute", "second", "microsecond"], 0)

        def start(value: dt.datetime) -> Any:
            if unit == "minute":
                return value.replace(second=0, microsecond=0)
            if unit == "hour":
                return value.replace(**zeros)
            return _start(value.replace(hour=0, **zeros), unit)

        return Both(one.expression.truncate(unit), of_values(start, one))
    moved = dt.timedelta(hours=draw(st.integers(-400, 400)))
    return Both(one.expression - moved, of_values(lambda a: a - moved, one))


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _boolean(draw: Any, part: Callable[[str], Both]) -> Both:
    form = draw(
        st.sampled_from(["compare", "&", "|", "~", "null", "in", "between", "text", "like"])
    )
    if form in "&|":
        one, other = part("boolean"), part("boolean")
        left, right = one.expression, other.expression
        return Both(
            left & right if form == "&" else left | right,
            lambda row: three_valued(form, one.compute(row), other.compute(row)),
        )
    if form == "~":
        one = part("boolean")
        return Both(~one.expression, of_values(lambda a: not a, one))
    if form == "text":
        one, piece = part("text"), draw(texts)
        name = draw(st.sampled_from(["starts_with", "ends_with", "contains"]))
        found: Any = {
            "starts_with": lambda a: a.startswith(piece),
            "ends_with": lambda a: a.endswith(piece),
            "contains": lambda a: piece in a,
        }[name]
        return Both(getattr(one.expression, name)(piece), of_values(found, one))
    if form == "like":
        one, pattern = part("text"), draw(st.sampled_from(["a%", "%b", "a_b", "%tea", "_", "%"]))
        return Both(one.expression.like(pattern), of_values(lambda a: like(a, pattern), one))
    kind = draw(st.sampled_from(["long", "decimal", "text", "date"]))
    one = part(kind)
    if form == "null":
        name = draw(st.sampled_from(["is_null", "is_not_null"]))
        return Both(
            getattr(one.expression, name)(),
            lambda row: (one.compute(row) is None) == (name == "is_null"),
        )
    if form == "in":
        listed = draw(st.lists(st.none() | CONSTANTS[kind], max_size=4))
        return Both(one.expression.is_in(listed), of_values(lambda a: _is_in(a, listed), one))
    other = part("decimal" if kind == "long" else kind)
    if form == "between":
        high = part(kind)
        return Both(
            one.expression.between(other.expression, high.expression),
            lambda row: three_valued(
                "&",
                of_values(lambda a, b: a >= b, one, other)(row),
                of_values(lambda a, b: a <= b, one, high)(row),
            ),
        )
    sign = draw(st.sampled_from(sorted(_COMPARISONS)))
    compare = _COMPARISONS[sign]

    def compared(a: Any, b: Any) -> bool:
        ordered = (a.encode(), b.encode()) if isinstance(a, str) else (a, b)
        return bool(compare(*ordered))

    return Both(compare(one.expression, other.expression), of_values(compared, one, other))


def _is_in(value: Any, listed: list[Any]) -> Any:
    if value in [one for one in listed if one is not None]:
        return True
    return None if None in listed else False


def like(text: str, pattern: str) -> bool:
    """As SQL has it, without escapes."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[at:], pattern[1:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(text[1:], pattern[1:])


_FORMS: dict[str, Callable[[Any, Callable[[str], Both]], Both]] = {
    "long": _long,
    "double": _double,
    "decimal": _decimal,
    "text": _text,
    "date": _date,
    "timestamp": _timestamp,
    "boolean": _boolean,
}
