"""What expressions of `sql_text` come to, by Arrow's functions over whole columns.

Nulls are as in SQL: what is computed of a null is null, but `and` and `or` where the other side
decides; a condition holds where it is true, and not where it is null. `/` gives floats, and null
where it divides by 0. A number with a point is a decimal beside decimals, and else a float. NaN is
as Arrow has it: equal to nothing, and neither less nor greater.

Of `and`, `or`, `case`, `if` and `coalesce` whole columns are computed; only if that fails for a
value, as a cast of text does, what follows is computed for the records that ask for it.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import ColumnError, SchemaError, UsageError
from pointstamp.graph.tables import decimal_arithmetic
from pointstamp.graph.tables.sql_casts import (
    as_float,
    cast_to,
    sql_name,
    texts_as_times,
    try_cast_to,
    why_not,
)
from pointstamp.graph.tables.sql_text import (
    IN_ZONE,
    SIGNS,
    Computed,
    Constant,
    Named,
    Tree,
    names_in,
)
from pointstamp.graph.tables.sql_times import (
    PARTS,
    as_moments,
    as_text,
    date_trunc,
    moment_of,
    part_of,
)
from pointstamp.graph.tables.vertex_ids import is_zoned

Lookup = Callable[[Named], Any]
"""From a name to its column, an Arrow array; it says itself what it does not know."""

_PLAIN: dict[str, str] = {
    "add": "add_checked",
    "subtract": "subtract_checked",
    "multiply": "multiply_checked",
    "negate": "negate_checked",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "and": "and_kleene",
    "or": "or_kleene",
    "not": "invert",
    "is_null": "is_null",
    "abs": "abs_checked",
    "length": "utf8_length",
    "coalesce": "coalesce",
}
_ALIASES = {
    "isnull": "is_null",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "power": "pow",
    "ceiling": "ceil",
    "char_length": "length",
    "ucase": "upper",
    "lcase": "lower",
    "substr": "substring",
    "dayofmonth": "day",
    "regexp": "rlike",
    "regexp_like": "rlike",
}
"""Other names that functions have in Spark's SQL."""
_BOOLEAN = frozenset(["and", "or", "not"])
_COMPARING = frozenset(
    ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "in", "same"]
)
_ARITHMETIC = frozenset(["add", "subtract", "multiply"])
_KEEPING = frozenset(["coalesce", "greatest", "least", "remainder", "mod"])
"""What gives one of its operands, or less than one."""
_CHOOSING = frozenset(["coalesce", "greatest", "least", "case", "if"])
"""What gives one of its operands, whose types are one."""
_EXACT = _COMPARING | _KEEPING | _ARITHMETIC
"""What decimals and the numbers in a text are exact in."""
_CASTS = frozenset(["cast", "try_cast"])
_GUARDING = frozenset(["and", "or", "case", "if", "coalesce"])
"""What asks for an operand only where those before it leave the answer open."""


def column_of(table: Any, what: str) -> Lookup:
    """The lookup of the columns of a table or batch, and of the fields in them.

    what : what has the columns, for the message of an error
    """

    def lookup(name: Named) -> Any:
        first, *rest = name.parts
        if first not in table.schema.names:
            raise ColumnError(
                f"{what} have no column {first!r}, only {', '.join(map(repr, table.schema.names))}"
            )
        return field_of(table.column(first), rest, first)

    return lookup


def field_of(column: Any, names: list[str], of: str) -> Any:
    """The field of a column of structs that is `names` deep in it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    for name in names:
        kind = column.type
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            raise ColumnError(f"{of!r}, which is {kind}, has no field {name!r}")
        column = pc.struct_field(column, name)
        of = f"{of}.{name}"
    return column


def values_of(tree: Tree, lookup: Lookup, n: int) -> Any:
    """The values of an expression for each of `n` records, an Arrow array [n].

    Raises
    ------
    ColumnError
        For a column that is not there.
    SchemaError
        For values that do not go together, such as text and numbers.
    UsageError
        For a function that is not there.

    >>> from pointstamp.graph.tables.sql_text import parse_sql
    >>> table = pa.table({"age": [36, None, 29], "name": ["Bob", "Al", "Dee"]})
    >>> tree = parse_sql("age > 30 or length(name) = 2")
    >>> values_of(tree, column_of(table, "people"), 3).to_pylist()
    [True, True, False]
    """
    value = _value_of(tree, lookup, None)
    if isinstance(value, pa.Scalar):
        scalar: Any = value
        return pa.repeat(scalar, n)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def holds(tree: Tree, lookup: Lookup, n: int) -> npt.NDArray[np.bool_]:
    """For which of `n` records a condition is true, bool[n]; null is not true."""
    value = values_of(tree, lookup, n)
    if pa.types.is_null(value.type):
        return np.zeros(n, np.bool_)
    if not pa.types.is_boolean(value.type):
        raise SchemaError(f"a condition is true or false, and this is {value.type}")
    flags: npt.NDArray[np.bool_] = value.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _value_of(tree: Tree, lookup: Lookup, zone: str | None) -> Any:
    if isinstance(tree, Constant):
        return _constant(tree, zone)
    if isinstance(tree, Named):
        return _plain(lookup(tree))
    if tree.function == IN_ZONE:
        inner, of = tree.operands
        return _value_of(inner, lookup, of.value if isinstance(of, Constant) else zone)
    operands: list[Any] = []
    for operand in tree.operands:
        try:
            operands.append(_value_of(operand, lookup, zone))
        except SchemaError as error:
            function = _ALIASES.get(tree.function, tree.function)
            names = names_in(operand)
            if not (operands and names and function in _GUARDING and _is_of_a_value(error)):
                raise
            asked = _is_asked(function, operands, len(lookup(names[0])))
            operands.append(_value_where(asked, operand, lookup, zone))
    if tree.function in _EXACT or tree.function in _CASTS:
        operands = _as_decimals(tree, operands)
    try:
        return _computed(tree.function, operands, zone)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if tree.function == "cast":
            given, name = operands[0].type, operands[1].as_py()
            raise SchemaError(
                f"'cast' of {sql_name(given)} as {name} cannot be computed: {why_not(error, name)}"
            ) from error
        kinds = [operand.type for operand in operands]
        what = SIGNS.get(tree.function, tree.function)
        raise SchemaError(
            f"{what!r} cannot be computed of {', '.join(map(str, kinds))}{_advice(kinds, error)}"
        ) from error


def _is_of_a_value(error: SchemaError) -> bool:
    """Whether it is an error of a value, such as a text that is no number, and not of types."""
    cause = error.__cause__
    is_of_types = isinstance(cause, pa.ArrowNotImplementedError | TypeError)
    return not is_of_types and isinstance(cause, pa.ArrowException | ValueError | OverflowError)


def _value_where(asked: npt.NDArray[np.bool_], tree: Tree, lookup: Lookup, zone: str | None) -> Any:
    """The values for the records that ask for them; null for the others."""
    found = np.flatnonzero(asked)
    value = _value_of(tree, lambda name: lookup(name).take(pa.array(found)), zone)
    if isinstance(value, pa.Scalar):
        return value
    return value.take(pa.array(np.cumsum(asked) - 1, mask=~asked))


def _is_asked(function: str, before: list[Any], n: int) -> npt.NDArray[np.bool_]:
    """For which of `n` records the operand after those is asked for, bool[n]."""
    if function in ("and", "or"):
        return ~_flags(before[0], n, is_true=function == "or")
    asked = np.ones(n, np.bool_)
    if function == "coalesce":
        for value in before:
            asked &= _flags(pc.is_null(value), n)
        return asked
    for i in range(0, len(before) - 1, 2):  # conditions whose values are there, too
        asked &= ~_flags(before[i], n)
    if len(before) % 2:
        asked &= _flags(before[-1], n)
    return asked


def _flags(value: Any, n: int, is_true: bool = True) -> npt.NDArray[np.bool_]:
    """For which of `n` records it is true, or false, bool[n]; null is neither."""
    flags = pc.equal(_as_boolean(value), pa.scalar(is_true))
    if isinstance(flags, pa.Scalar):
        return np.full(n, flags.as_py() is True)
    found: npt.NDArray[np.bool_] = flags.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _advice(kinds: list[Any], error: Exception) -> str:
    """What to do about types that do not go together; else what Arrow has to say."""
    times = [kind for kind in kinds if pa.types.is_temporal(kind)]
    if times and any(map(pa.types.is_string, kinds)):
        return ": write date '2020-01-31' or timestamp '2020-01-31 12:00:00'"
    if len({getattr(kind, "tz", None) is None for kind in times}) > 1:
        return (
            ": a time with a zone is a moment, and one without is none; a zone is written as in "
            "timestamp '2020-01-31 12:00:00+00:00'"
        )
    if isinstance(error, pa.ArrowNotImplementedError):
        return ": cast one to the type of the other" if len(set(kinds)) > 1 else ""
    return f": {str(error).splitlines()[0]}"


def _as_decimals(tree: Computed, operands: list[Any]) -> list[Any]:
    """Operands with numbers that are written with a point as decimals, beside decimals.

    So that `price * 1.1 = 3.3` holds for 3, as in SQL.
    """
    is_written = [isinstance(one, Constant) and one.kind == "decimal" for one in tree.operands]
    kinds = [value.type for value, skip in zip(operands, is_written, strict=True) if not skip]
    has_decimals = any(map(pa.types.is_decimal, kinds)) or tree.function in _CASTS
    if tree.function in ("remainder", "mod"):  # of integers, too: 1 % 0.1 is 0
        has_decimals = has_decimals or all(map(pa.types.is_integer, kinds))
    is_exact = has_decimals and not any(map(pa.types.is_floating, kinds))
    if not is_exact or not any(is_written):
        return operands
    return [
        pa.scalar(one.value) if isinstance(one, Constant) and written else value
        for one, value, written in zip(tree.operands, operands, is_written, strict=True)
    ]


def _constant(constant: Constant, zone: str | None) -> Any:
    try:
        if constant.kind == "date":
            return pa.scalar(datetime.date.fromisoformat(constant.value))
        if constant.kind == "timestamp":
            moment = datetime.datetime.fromisoformat(constant.value)
            if moment.tzinfo is None and zone is not None:
                return pa.scalar(moment_of(moment, zone), pa.timestamp("us", "UTC"))
            return pa.scalar(moment, pa.timestamp("us", "UTC" if moment.tzinfo else None))
        is_wide = isinstance(constant.value, int) and abs(constant.value) >= 2**63
        if constant.kind == "decimal":  # beside what is none: see `_as_decimals`
            return pa.scalar(float(constant.value))
        return pa.scalar(decimal.Decimal(constant.value) if is_wide else constant.value)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        kind = constant.kind or ("text" if isinstance(constant.value, str) else "number")
        what = f"the {kind} {constant.value!r}"
        raise UsageError(f"{what} in a condition is none: {error}") from error


def _plain(column: Any) -> Any:
    """A column of a dictionary by its values, and short floats as longer: Arrow computes so."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _computed(written: str, operands: list[Any], zone: str | None) -> Any:
    function = _ALIASES.get(written, written)
    if function not in _ARGUMENTS:
        unwritten = {"case", "in", "is_null", "like", "negate", *SIGNS, *_BOOLEAN}  # by other signs
        known = sorted({*_ARGUMENTS, *_ALIASES} - unwritten)
        raise UsageError(f"there is no function {written!r}; there are {', '.join(known)}")
    _check_arguments(written, len(operands))
    if zone is not None:
        operands = _in_zone(function, operands, zone)
    if function in _PLAIN or function in ("in", "same", "remainder", "mod", "greatest", "least"):
        operands = _leveled(function, _typed(operands))
        if function != "is_null" and all(pa.types.is_null(one.type) for one in operands):
            if function not in ("same", *_BOOLEAN):
                return max(operands, key=lambda one: not isinstance(one, pa.Scalar))
            operands = [_as_boolean(one) for one in operands]
    if function in _OF_TIMES:
        return _OF_TIMES[function](*operands, zone)
    if decimal_arithmetic.are_exact(operands):
        if function in _ARITHMETIC:
            return decimal_arithmetic.arithmetic(function, *operands)
        if function in _COMPARING:
            operands = decimal_arithmetic.compared(operands)
        elif function in ("greatest", "least"):
            operands = decimal_arithmetic.leveled(operands, decimal_arithmetic.DIGITS)
    own = _OWN.get(function)
    if own is not None:
        return own(*operands)
    if function in _BOOLEAN:
        operands = [_as_boolean(operand) for operand in operands]
    return pc.call_function(_PLAIN[function], operands)


def _check_arguments(written: str, n: int) -> None:
    """Refuse a call with fewer or more arguments than a function takes."""
    least, most = _ARGUMENTS.get(written) or _ARGUMENTS[_ALIASES[written]]
    if least <= n and (most is None or n <= most):
        return
    if most is None:
        takes = f"at least {least}"
    else:
        takes = str(least) if least == most else f"{least} or {most}"
    plural = "" if takes.endswith("1") else "s"
    given = f"{n or 'none'} {'is' if n == 1 else 'are'}"
    what = SIGNS.get(written, written)
    raise UsageError(f"{what!r} takes {takes} argument{plural}, and {given} given")


def _in_zone(function: str, operands: list[Any], zone: str) -> list[Any]:
    """Operands as Spark casts them: times beside moments, text beside times, moments in text."""
    if function in _COMPARING:
        operands = texts_as_times(operands, zone)
    if function in _COMPARING or function in _CHOOSING:
        return as_moments(operands, zone)
    if function == "concat":
        return [as_text(one, zone) for one in operands]
    return operands


def _typed(operands: list[Any]) -> list[Any]:
    """Nulls without a type as of the type of what is beside them."""
    kinds = [one.type for one in operands if not pa.types.is_null(one.type)]
    if not kinds or len(kinds) == len(operands):
        return operands
    return [_nulls(one, kinds[0]) if pa.types.is_null(one.type) else one for one in operands]


def _nulls(of: Any, kind: Any) -> Any:
    return pa.scalar(None, kind) if isinstance(of, pa.Scalar) else pa.nulls(len(of), kind)


def _as_boolean(value: Any) -> Any:
    return value.cast(pa.bool_()) if pa.types.is_null(value.type) else value


def _leveled(function: str, operands: list[Any]) -> list[Any]:
    """Integers as one kind of numbers with what is beside them.

    As floats beside those, which Arrow refuses for integers over 2**53; and those of 64 bits
    without a sign beside those with one, of which Arrow refuses what the other kind has not.
    """
    if any(pa.types.is_floating(operand.type) for operand in operands):
        return [_float(one) if _is_number(one.type) else one for one in operands]
    if not any(pa.types.is_uint64(operand.type) for operand in operands):
        return operands
    signed = [one for one in operands if pa.types.is_signed_integer(one.type)]
    if function in _COMPARING and signed:
        return [one.cast(_WIDE) if pa.types.is_integer(one.type) else one for one in operands]
    if function in _KEEPING and all(_is_natural(one) for one in signed):
        return [one.cast(pa.uint64()) if pa.types.is_integer(one.type) else one for one in operands]
    return operands


_WIDE = pa.decimal128(20, 0)
"""Has all integers of 64 bits, with a sign or without one."""


def _is_natural(value: Any) -> bool:
    return isinstance(value, pa.Scalar) and (not value.is_valid or value.as_py() >= 0)


def _float(value: Any) -> Any:
    """As floats, the nearest ones where there is none for a number."""
    return as_float(value, pa.float64()) if _is_number(value.type) else pc.cast(value, pa.float64())


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _divide(left: Any, right: Any) -> Any:
    below = _float(right)
    below = pc.if_else(pc.equal(below, pa.scalar(0.0)), pa.scalar(None, pa.float64()), below)
    return pc.divide(_float(left), below)


def _remainder(left: Any, right: Any) -> Any:
    """What is left, with the sign of what is divided."""
    kinds = [left.type, right.type]
    if all(map(pa.types.is_integer, kinds)):  # in integers: floats have 53 bits
        if pa.types.is_signed_integer(right.type):
            right = pc.abs(right)  # changes nothing, but the least integer divides by -1 to none
        right = pc.if_else(pc.equal(right, pa.scalar(0)), pa.scalar(None, right.type), right)
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if all(_is_number(kind) for kind in kinds):
        return _of_rows(decimal_arithmetic.remainder, left, right)
    return _of_rows(_float_remainder, _float(left), _float(right))


def _float_remainder(left: Any, right: Any) -> Any:
    """Exact as well, which what is left of a rounded quotient is not."""
    below = pc.if_else(pc.equal(right, pa.scalar(0.0)), pa.scalar(None, pa.float64()), right)
    is_none = pc.is_null(pc.add(left, below)).to_numpy(zero_copy_only=False)
    numbers = (one.fill_null(1.0).to_numpy() for one in (left, below))
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(*numbers), mask=is_none)


def _of_rows(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of arrays of one length, of operands of which some may be one value each."""
    n = max((len(one) for one in operands if not isinstance(one, pa.Scalar)), default=None)
    arrays = []
    for one in operands:
        value: Any = one
        if isinstance(one, pa.Scalar):
            value = pa.repeat(value, 1 if n is None else n)
        elif isinstance(one, pa.ChunkedArray):
            value = one.combine_chunks()
        arrays.append(value)
    found = function(*arrays)
    return found[0] if n is None else found


def _power(left: Any, right: Any) -> Any:
    """In floats, as in SQL: integers would wrap around."""
    return pc.power(_float(left), _float(right))


def _same(left: Any, right: Any) -> Any:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(pc.equal(left, right), False))


def _is_in(value: Any, *listed: Any) -> Any:
    """As in SQL: unknown, if it is not there and a null is."""
    found = pa.scalar(False)
    for one in listed:
        found = pc.or_kleene(found, _as_boolean(pc.equal(value, one)))
    return found


def _pattern(function: Callable[..., Any], **options: Any) -> Callable[[Any, Any], Any]:
    """A function of text and a constant text."""

    def matched(value: Any, pattern: Any) -> Any:
        if not isinstance(pattern, pa.Scalar):
            raise TypeError("what is looked for is one text")
        if not pattern.is_valid or pa.types.is_null(value.type):
            return pa.scalar(None, pa.bool_())
        if isinstance(value, pa.Scalar):
            one: Any = value
            return function(pa.repeat(one, 1), pattern.as_py(), **options)[0]
        return function(value, pattern.as_py(), **options)

    return matched


def _substring(value: Any, position: Any, length: Any = None) -> Any:
    """From a position, of which the first is 1 and the last -1."""
    if not all(one is None or isinstance(one, pa.Scalar) for one in (position, length)):
        raise TypeError("position and length are numbers")
    at, n = position.as_py(), None if length is None else length.as_py()
    if at is None or (length is not None and n is None) or pa.types.is_null(value.type):
        return pa.scalar(None, pa.string())
    begin = at - 1 if at > 0 else at
    end = None if n is None else begin + max(n, 0)
    if begin < 0 and end is not None and end >= 0:
        end = None
    return pc.utf8_slice_codeunits(value, begin, end)


def _is_nan(value: Any) -> Any:
    """As in Spark, where a null is none."""
    return pc.fill_null(pc.is_nan(_float(value)), False)


def _is_not_null(value: Any) -> Any:
    return pc.is_valid(value)


def _extreme(function: str) -> Callable[..., Any]:
    """The greatest or the least: by numbers, of booleans and moments, for which Arrow has none."""

    def found(*operands: Any) -> Any:
        kind = operands[0].type
        is_boolean = all(pa.types.is_boolean(one.type) for one in operands)
        if not (is_boolean or all(is_zoned(one.type) for one in operands)):
            return pc.call_function(function, list(operands))
        to = pa.uint8() if is_boolean else pa.int64()
        counted = [pc.cast(pc.cast(one, kind), to) for one in operands]
        return pc.cast(pc.call_function(function, counted), kind)

    return found


def _concat(*parts: Any) -> Any:
    texts = [as_text(part, None) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _case(*operands: Any) -> Any:
    *values, value = _leveled("case", [*operands[1:-1:2], operands[-1]])
    for condition, then in reversed(list(zip(operands[:-1:2], values, strict=True))):
        value = pc.if_else(pc.fill_null(_as_boolean(condition), False), then, value)
    return value


def _if(condition: Any, then: Any, otherwise: Any) -> Any:
    return _case(condition, then, otherwise)


def _trim(value: Any) -> Any:
    """Without the spaces around it; in SQL no other whitespace counts."""
    return pc.utf8_trim(value, " ")


def _of_floats(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of floats, the nearest ones: Arrow refuses integers over 2**53."""
    return lambda value: function(_float(value))


def _of_fractions(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of what may be no integer; these are what they are, and may be over 2**53."""

    def found(value: Any) -> Any:
        kind = value.type
        if pa.types.is_integer(kind):
            return value
        if not pa.types.is_decimal(kind):
            return function(value)
        whole = function(pc.cast(value, pa.decimal256(kind.precision + 1, kind.scale)))
        # 9.9 has one figure less before the point than what follows it.
        return pc.cast(whole, pa.decimal128(min(kind.precision - kind.scale + 1, 38), 0))

    return found


def _cased(function: Callable[[Any], Any], one: Callable[[str], str]) -> Callable[[Any], Any]:
    """Text in lower or upper case, beyond ASCII by Python: to Arrow a character stays one.

    As in Spark 'ß' is 'SS', and a sigma at the end of a word is another one.
    """

    def of_texts(texts: Any) -> Any:
        found = function(texts)
        beyond = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
        if not pc.any(beyond).as_py():
            return found
        cased = [one(text) for text in pc.filter(texts, beyond).to_pylist()]
        return pc.replace_with_mask(found, beyond, pa.array(cased, found.type))

    return lambda value: value if pa.types.is_null(value.type) else _of_rows(of_texts, value)


_lower = _cased(pc.utf8_lower, str.lower)


def _ilike(value: Any, pattern: Any) -> Any:
    return _pattern(pc.match_like)(_lower(value), _lower(pattern))


def _ln(value: Any) -> Any:
    """As in SQL: null where there is none, of 0 and less."""
    has_none = pc.less_equal(value, pa.scalar(0.0))
    return pc.ln(pc.if_else(has_none, pa.scalar(None, pa.float64()), value))


_OWN: dict[str, Callable[..., Any]] = {
    "lower": _lower,
    "upper": _cased(pc.utf8_upper, str.upper),
    "trim": _trim,
    "sqrt": _of_floats(pc.sqrt),
    "ln": _of_floats(_ln),
    "exp": _of_floats(pc.exp),
    "floor": _of_fractions(pc.floor),
    "ceil": _of_fractions(pc.ceil),
    "divide": _divide,
    "remainder": _remainder,
    "mod": _remainder,
    "pow": _power,
    "same": _same,
    "in": _is_in,
    "like": _pattern(pc.match_like),
    "ilike": _ilike,
    "rlike": _pattern(pc.match_substring_regex),
    "startswith": _pattern(pc.starts_with),
    "endswith": _pattern(pc.ends_with),
    "contains": _pattern(pc.match_substring),
    "substring": _substring,
    "isnan": _is_nan,
    "isnotnull": _is_not_null,
    "greatest": _extreme("max_element_wise"),
    "least": _extreme("min_element_wise"),
    "concat": _concat,
    "case": _case,
    "if": _if,
}


def _cast(value: Any, name: Any, zone: str | None) -> Any:
    return cast_to(value, name.as_py(), zone)


def _try_cast(value: Any, name: Any, zone: str | None) -> Any:
    return try_cast_to(value, name.as_py(), zone)


def _part(function: str) -> Callable[..., Any]:
    return lambda value, zone: part_of(function, value, zone)


_OF_TIMES: dict[str, Callable[..., Any]] = {
    "cast": _cast,
    "try_cast": _try_cast,
    "date_trunc": date_trunc,
    "to_date": lambda value, zone: cast_to(value, "date", zone),
    "to_timestamp": lambda value, zone: cast_to(value, "timestamp", zone),
    **{name: _part(name) for name in PARTS},
}
"""Functions that get a zone, too."""

_TWO = (
    "add subtract multiply divide remainder mod pow like ilike rlike startswith endswith contains "
    "and or"
)

_ARGUMENTS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys([*_PLAIN, *_OWN, *_OF_TIMES], (1, 1)),
    **dict.fromkeys([*_TWO.split(), *_COMPARING, "cast", "try_cast"], (2, 2)),
    **dict.fromkeys(["date_trunc", "nvl", "ifnull"], (2, 2)),
    "coalesce": (1, None),
    "concat": (1, None),
    "in": (1, None),
    "greatest": (2, None),
    "least": (2, None),
    "substring": (2, 3),
    "if": (3, 3),
    "case": (3, None),
}
"""How many arguments each function takes, at least and at most, by its name here or in a text."""
