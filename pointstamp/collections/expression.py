"""Expressions over the columns of a collection: `col("cents") >= 1_000`.

An expression is a tree, made by Python's operators. Bound to a schema it has a type, and a
function of a batch. Nulls are as in SQL: what is computed of one is null, but `&` and `|`
where the other side decides.
"""

from __future__ import annotations

import datetime as dt
import decimal
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    DateType,
    DecimalType,
    DurationType,
    TimestampType,
    WordType,
    decimal_type,
    float_words,
    type_named,
    words_float,
)
from pointstamp.errors import DataError, SchemaError

Values = npt.NDArray[Any]
"""Of floats float64, of booleans bool, of all others their words as int64."""
Mask = npt.NDArray[np.bool_] | None
"""Which values are there; None where all are."""
Evaluate = Callable[[Rows], tuple[Values, Mask]]

_MOST_DIGITS = 18


@dataclass(frozen=True)
class Bound:
    """An expression bound to a schema."""

    type: WordType
    nullable: bool
    evaluate: Evaluate

    def column(self, name: str) -> Column:
        """What it is as a column."""
        return Column(name, self.type, self.nullable)

    def write(self, rows: Rows, into: Rows, place: int) -> None:
        """Put the words for `rows` into columns of `into`, of which `place` has the value."""
        values, there = self.evaluate(rows)
        words = float_words(values) if self.type.is_float else values
        into[:, place] = words if there is None else np.where(there, words, 0)
        if self.nullable:
            into[:, place - 1] = 1 if there is None else there


class Expression:
    """What is computed of each record. Made by `col`, `lit`, `when`, and operators on those.

    >>> col("price") * 2 > 10
    ((col('price') * 2) > 10)
    """

    def __init__(self, text: str, bind: Callable[[Schema], Bound], name: str | None = None) -> None:
        self._text = text
        self._bind = bind
        self.name = name
        """What the column is called if no other name is given."""

    def bind(self, schema: Schema) -> Bound:
        """Its type, and how to compute it, where records have `schema`.

        Raises
        ------
        ColumnError
            If it names a column that is not there.
        SchemaError
            If its types do not go together.
        """
        return self._bind(schema)

    def alias(self, name: str) -> Expression:
        """The same, as a column of that name."""
        return Expression(self._text, self._bind, name)

    def is_null(self) -> Expression:
        """Whether it is null."""

        def bind(schema: Schema) -> Bound:
            inner = self.bind(schema)

            def evaluate(rows: Rows) -> tuple[Values, Mask]:
                _, there = inner.evaluate(rows)
                return (np.zeros(len(rows), np.bool_) if there is None else ~there), None

            return Bound(BOOLEAN, False, evaluate)

        return Expression(f"{self}.is_null()", bind)

    def fill_null(self, value: Any) -> Expression:
        """`value` where it is null."""
        other = as_expression(value)

        def bind(schema: Schema) -> Bound:
            one, two = _same_type(self.bind(schema), other.bind(schema), f"{self}.fill_null")

            def evaluate(rows: Rows) -> tuple[Values, Mask]:
                values, there = one.evaluate(rows)
                if there is None:
                    return values, None
                others, others_there = two.evaluate(rows)
                mask = None if others_there is None else there | others_there
                return np.where(there, values, others), mask

            return Bound(one.type, one.nullable and two.nullable, evaluate)

        return Expression(f"{self}.fill_null({other})", bind, self.name)

    def is_in(self, values: Sequence[Any]) -> Expression:
        """Whether it is one of `values`."""
        found: Expression = lit(False)
        for value in values:
            found = found | (self == value)
        return Expression(f"{self}.is_in({list(values)!r})", found.bind)

    def cast(self, kind: str) -> Expression:
        """The same value as another type: an integer, float or decimal as another of them.

        Raises
        ------
        SchemaError
            When bound, for other types.
        DataError
            While it runs, if a value does not fit.
        """
        wanted = type_named(kind)

        def bind(schema: Schema) -> Bound:
            return _cast(self.bind(schema), wanted, str(self))

        return Expression(f"{self}.cast({kind!r})", bind, self.name)

    def __repr__(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        raise SchemaError(
            f"{self} is an expression, and is neither true nor false; write & for and, | for or, "
            "~ for not, with brackets around comparisons"
        )

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # as in pandas
        return _comparison(self, "==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # as in pandas
        return _comparison(self, "!=", other)

    def __lt__(self, other: Any) -> Expression:
        return _comparison(self, "<", other)

    def __le__(self, other: Any) -> Expression:
        return _comparison(self, "<=", other)

    def __gt__(self, other: Any) -> Expression:
        return _comparison(self, ">", other)

    def __ge__(self, other: Any) -> Expression:
        return _comparison(self, ">=", other)

    def __add__(self, other: Any) -> Expression:
        return _arithmetic(self, "+", other)

    def __radd__(self, other: Any) -> Expression:
        return _arithmetic(as_expression(other), "+", self)

    def __sub__(self, other: Any) -> Expression:
        return _arithmetic(self, "-", other)

    def __rsub__(self, other: Any) -> Expression:
        return _arithmetic(as_expression(other), "-", self)

    def __mul__(self, other: Any) -> Expression:
        return _arithmetic(self, "*", other)

    def __rmul__(self, other: Any) -> Expression:
        return _arithmetic(as_expression(other), "*", self)

    def __truediv__(self, other: Any) -> Expression:
        return _arithmetic(self, "/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _arithmetic(as_expression(other), "/", self)

    def __neg__(self) -> Expression:
        return _arithmetic(lit(0), "-", self)

    def __and__(self, other: Any) -> Expression:
        return _logic(self, "&", as_expression(other))

    def __rand__(self, other: Any) -> Expression:
        return _logic(as_expression(other), "&", self)

    def __or__(self, other: Any) -> Expression:
        return _logic(self, "|", as_expression(other))

    def __ror__(self, other: Any) -> Expression:
        return _logic(as_expression(other), "|", self)

    def __invert__(self) -> Expression:
        def bind(schema: Schema) -> Bound:
            inner = _boolean(self, schema)

            def evaluate(rows: Rows) -> tuple[Values, Mask]:
                values, there = inner.evaluate(rows)
                return ~values, there

            return Bound(BOOLEAN, inner.nullable, evaluate)

        return Expression(f"~{self}", bind)


def col(name: str) -> Expression:
    """The value of a column.

    >>> col("price")
    col('price')
    """

    def bind(schema: Schema) -> Bound:
        column = schema.column(name, f"col({name!r})")
        place, kind = schema.places[name], column.type

        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            words = rows[:, place]
            values = _values_of(words, kind)
            return values, (rows[:, place - 1] != 0 if column.nullable else None)

        return Bound(kind, column.nullable, evaluate)

    return Expression(f"col({name!r})", bind, name)


def lit(value: Any) -> Expression:
    """A value that is the same for all records.

    Raises
    ------
    SchemaError
        If no column could have it.
    """
    kind = _type_of_value(value)
    word = kind.to_word(value)

    def bind(schema: Schema) -> Bound:
        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            return _values_of(np.full(len(rows), word, np.int64), kind), None

        return Bound(kind, False, evaluate)

    return Expression(repr(value), bind)


class When:
    """`when(condition).then(value)`, to which more conditions, and `otherwise`, may be added.

    >>> when(col("n") > 1).then("many").otherwise("few")
    when((col('n') > 1)).then('many').otherwise('few')
    """

    def __init__(self, cases: Sequence[tuple[Expression, Expression]]) -> None:
        self._cases = list(cases)

    def when(self, condition: Expression) -> Then:
        """Another condition, for what none before it is true for."""
        return Then(self._cases, condition)

    def otherwise(self, value: Any) -> Expression:
        """What it is where no condition is true."""
        result = as_expression(value)
        text = "".join(f"when({c}).then({v})." for c, v in self._cases) + f"otherwise({result})"
        for condition, then in reversed(self._cases):
            result = _choice(condition, then, result)
        return Expression(text, result.bind)


class Then:
    """A condition of `when`, of which the value is to be said."""

    def __init__(
        self, cases: Sequence[tuple[Expression, Expression]], condition: Expression
    ) -> None:
        self._cases = list(cases)
        self._condition = condition

    def then(self, value: Any) -> When:
        """What it is where the condition is true."""
        return When([*self._cases, (self._condition, as_expression(value))])


def when(condition: Expression) -> Then:
    """The beginning of `when(c).then(a).otherwise(b)`: `a` where `c` is true, else `b`."""
    return Then([], condition)


def as_expression(value: Any) -> Expression:
    """An expression as it is, and of another value the expression of that."""
    return value if isinstance(value, Expression) else lit(value)


def _values_of(words: Rows, kind: WordType) -> Values:
    if kind.is_float:
        return words_float(words)
    return words != 0 if kind == BOOLEAN else words


def _type_of_value(value: Any) -> WordType:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return LONG
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str):
        return STRING
    if isinstance(value, dt.datetime):
        return type_named("timestamp" if value.tzinfo is None else "timestamp_utc")
    if isinstance(value, dt.date):
        return type_named("date")
    if isinstance(value, dt.timedelta):
        return type_named("duration")
    if isinstance(value, bytes):
        return type_named("binary")
    if isinstance(value, decimal.Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        return decimal_type(max(len(digits) + max(0, int(exponent)), scale, 1), scale)
    raise SchemaError(f"{value!r} of type {type(value).__name__} is no value of a column")


def _boolean(expression: Expression, schema: Schema) -> Bound:
    bound = expression.bind(schema)
    if bound.type != BOOLEAN:
        raise SchemaError(f"{expression} should be true or false, and is {bound.type.name}")
    return bound


def _both(one: Mask, other: Mask) -> Mask:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _logic(left: Expression, sign: str, right: Expression) -> Expression:
    decides = sign == "|"  # what one side alone can be for the whole to be known

    def bind(schema: Schema) -> Bound:
        one, two = _boolean(left, schema), _boolean(right, schema)

        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            a, a_there = one.evaluate(rows)
            b, b_there = two.evaluate(rows)
            values = a | b if decides else a & b
            if a_there is None and b_there is None:
                return values, None
            a_known = np.ones(len(rows), np.bool_) if a_there is None else a_there
            b_known = np.ones(len(rows), np.bool_) if b_there is None else b_there
            decided = (a_known & (a == decides)) | (b_known & (b == decides))
            return np.where(decided, decides, values), decided | (a_known & b_known)

        return Bound(BOOLEAN, one.nullable or two.nullable, evaluate)

    return Expression(f"({left} {sign} {right})", bind)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(left: Expression, sign: str, right: Any) -> Expression:
    other = as_expression(right)
    text = f"({left} {sign} {other})"

    def bind(schema: Schema) -> Bound:
        one, two = _same_type(left.bind(schema), other.bind(schema), text)
        compare = _COMPARE[sign]
        by_bytes = one.type.is_text and sign not in ("==", "!=")

        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            a, a_there = one.evaluate(rows)
            b, b_there = two.evaluate(rows)
            if by_bytes:
                ranks = TEXTS.ranks(np.concatenate([a, b]))
                a, b = ranks[: len(a)], ranks[len(a) :]
            elif one.type.is_float:  # in the order of words, in which NaN is NaN
                a, b = float_words(a), float_words(b)
            return compare(a, b), _both(a_there, b_there)

        return Bound(BOOLEAN, one.nullable or two.nullable, evaluate)

    return Expression(text, bind)


def _same_type(one: Bound, two: Bound, what: str) -> tuple[Bound, Bound]:
    """Both as one type, without losing anything of either.

    Raises
    ------
    SchemaError
        If there is none.
    """
    if one.type == two.type:
        return one, two
    if one.type.is_integer and two.type.is_integer:
        return _as_long(one, what), _as_long(two, what)
    numbers = [_is_number(bound.type) for bound in (one, two)]
    if all(numbers):
        if one.type.is_float or two.type.is_float:
            return _cast(one, DOUBLE, what), _cast(two, DOUBLE, what)
        scale = max(_scale(one.type), _scale(two.type))
        before = max(_digits_before(one.type), _digits_before(two.type))
        wanted = decimal_type(min(_MOST_DIGITS, before + scale), scale)
        return _cast(one, wanted, what), _cast(two, wanted, what)
    raise SchemaError(f"{what}: {one.type.name} and {two.type.name} do not go together; cast one")


def _is_number(kind: WordType) -> bool:
    return kind.is_integer or kind.is_float or isinstance(kind, DecimalType)


def _scale(kind: WordType) -> int:
    return kind.scale if isinstance(kind, DecimalType) else 0


def _digits_before(kind: WordType) -> int:
    """How many digits there are before the point."""
    return kind.precision - kind.scale if isinstance(kind, DecimalType) else _MOST_DIGITS


def _as_long(bound: Bound, what: str) -> Bound:
    if bound.type.name == "uint64":
        raise SchemaError(f"{what}: uint64 and another type of integers do not go together; cast")
    return Bound(LONG, bound.nullable, bound.evaluate)


def _cast(bound: Bound, wanted: WordType, what: str) -> Bound:
    have = bound.type
    if have == wanted:
        return bound
    if have == BOOLEAN and wanted.is_integer:
        return _converted(bound, wanted, lambda values, there: values.astype(np.int64))
    if not (_is_number(have) and _is_number(wanted)) or "uint64" in (have.name, wanted.name):
        raise SchemaError(f"{what} is {have.name}, which cannot be cast to {wanted.name}")
    if wanted.is_float:
        return _converted(bound, wanted, lambda values, there: values / 10.0 ** _scale(have))
    if have.is_float:
        return _converted(
            bound, wanted, lambda values, there: _whole(values, there, _scale(wanted), what)
        )

    def rescaled(values: Values, there: Mask) -> Values:
        more = _scale(wanted) - _scale(have)
        if more < 0:
            # To zero, as an integer of Python's does, and not down.
            cut: Values = np.sign(values) * (np.abs(values) // 10**-more)
            return cut
        return _checked_product(values, np.int64(10**more), there, what)

    return _converted(bound, wanted, rescaled)


def _converted(bound: Bound, wanted: WordType, convert: Callable[[Values, Mask], Values]) -> Bound:
    def evaluate(rows: Rows) -> tuple[Values, Mask]:
        values, there = bound.evaluate(rows)
        return _fitting(convert(values, there), there, wanted), there

    return Bound(wanted, bound.nullable, evaluate)


def _fitting(values: Values, there: Mask, kind: WordType) -> Values:
    """The values, if the type has them all."""
    if kind.is_integer and kind.name != "long":
        bits = kind.n_bits  # type: ignore[attr-defined]  # it is an IntegerType
        signed = kind.signed  # type: ignore[attr-defined]  # as above
        least, beyond = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
        _refuse(((values < least) | (values >= beyond)), there, values, f"does not fit {kind.name}")
    if isinstance(kind, DecimalType):
        _refuse(np.abs(values) >= 10**kind.precision, there, values, f"does not fit {kind.name}")
    return values


def _refuse(wrong: npt.NDArray[np.bool_], there: Mask, values: Values, what: str) -> None:
    wrong = wrong if there is None else wrong & there
    if wrong.any():
        raise DataError(f"{values[wrong.argmax()].item()!r} {what}")


def _whole(values: Values, there: Mask, scale: int, what: str) -> Values:
    scaled = np.trunc(values * 10.0**scale)
    _refuse(~(np.abs(scaled) < float(1 << 63)), there, values, f"does not fit 64 bits, in {what}")
    return np.where(np.isfinite(scaled), scaled, 0).astype(np.int64)


def _checked_product(a: Values, b: Any, there: Mask, what: str) -> Values:
    product = a * b
    with np.errstate(all="ignore"):
        wrong = np.abs(a.astype(np.float64) * b) > float((1 << 63) - (1 << 10))
    _refuse(wrong, there, a, f"multiplied does not fit 64 bits, in {what}")
    checked: Values = product
    return checked


def _arithmetic(left: Expression, sign: str, right: Any) -> Expression:
    other = as_expression(right)
    text = f"({left} {sign} {other})"

    def bind(schema: Schema) -> Bound:
        one, two = left.bind(schema), other.bind(schema)
        timed = _time_arithmetic(one, sign, two, text)
        if timed is not None:
            return timed
        if not (_is_number(one.type) and _is_number(two.type)):
            raise SchemaError(f"{text}: {one.type.name} {sign} {two.type.name} is not defined")
        if sign == "/":
            one, two = _cast(one, DOUBLE, text), _cast(two, DOUBLE, text)
        elif sign == "*" and not (one.type.is_float or two.type.is_float):
            return _product(one, two, text)
        else:
            one, two = _same_type(one, two, text)
            if one.type.is_integer:
                one, two = _as_long(one, text), _as_long(two, text)
        return _computed(one.type, one, sign, two, text)

    return Expression(text, bind)


def _product(one: Bound, two: Bound, text: str) -> Bound:
    scale = _scale(one.type) + _scale(two.type)
    if scale > _MOST_DIGITS:
        raise SchemaError(f"{text} has {scale} places behind the point; {_MOST_DIGITS} can be kept")
    is_decimal = isinstance(one.type, DecimalType) or isinstance(two.type, DecimalType)
    kind = decimal_type(_MOST_DIGITS, scale) if is_decimal else LONG
    return _computed(kind, one, "*", two, text)


def _computed(kind: WordType, one: Bound, sign: str, two: Bound, text: str) -> Bound:
    def evaluate(rows: Rows) -> tuple[Values, Mask]:
        a, a_there = one.evaluate(rows)
        b, b_there = two.evaluate(rows)
        there = _both(a_there, b_there)
        if kind.is_float:
            with np.errstate(all="ignore"):
                if sign == "/":
                    _refuse(b == 0, there, a, f"is divided by 0, in {text}")
                return _FLOATS[sign](a, b), there
        if sign == "*":
            return _fitting(_checked_product(a, b, there, text), there, kind), there
        result = a + b if sign == "+" else a - b
        turned = (a ^ result) & ((b if sign == "+" else ~b) ^ result)
        _refuse(turned < 0, there, a, f"and another value do not fit 64 bits, in {text}")
        return _fitting(result, there, kind), there

    return Bound(kind, one.nullable or two.nullable, evaluate)


_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _time_arithmetic(one: Bound, sign: str, two: Bound, text: str) -> Bound | None:
    """Of times, durations and dates; None of numbers."""
    kinds = (one.type, two.type)
    if isinstance(kinds[0], TimestampType) and isinstance(kinds[1], DurationType) and sign in "+-":
        return _computed(kinds[0], one, sign, two, text)
    if isinstance(kinds[0], TimestampType) and kinds[0] == kinds[1] and sign == "-":
        return _computed(type_named("duration"), one, sign, two, text)
    if all(isinstance(kind, DurationType) for kind in kinds) and sign in "+-":
        return _computed(kinds[0], one, sign, two, text)
    if isinstance(kinds[0], DateType) and kinds[1].is_integer and sign in "+-":
        return _computed(kinds[0], one, sign, two, text)
    if all(isinstance(kind, DateType) for kind in kinds) and sign == "-":
        return _computed(LONG, one, sign, two, text)
    return None


def _choice(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    text = f"when({condition}).then({then}).otherwise({otherwise})"

    def bind(schema: Schema) -> Bound:
        test = _boolean(condition, schema)
        one, two = _same_type(then.bind(schema), otherwise.bind(schema), text)

        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            truth, known = test.evaluate(rows)
            truth = truth if known is None else truth & known
            # Each side of its own records only: the other's may be those on which it fails.
            a, a_there = one.evaluate(rows[truth])
            b, b_there = two.evaluate(rows[~truth])
            values = np.empty(len(rows), np.result_type(a, b))
            values[truth], values[~truth] = a, b
            if a_there is None and b_there is None:
                return values, None
            there = np.ones(len(rows), np.bool_)
            there[truth] = True if a_there is None else a_there
            there[~truth] = True if b_there is None else b_there
            return values, there

        return Bound(one.type, one.nullable or two.nullable, evaluate)

    return Expression(text, bind)
