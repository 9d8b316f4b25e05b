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
from typing import Any

import numpy as np

from pointstamp.collections.casts import (
    Bound,
    Mask,
    Values,
    as_long,
    cast_to,
    checked_product,
    fitting,
    in_words,
    is_number,
    refuse_where,
    same_type,
    scale_of,
)
from pointstamp.collections.schema import Schema
from pointstamp.containers.dictionary import ranks_of_texts
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import (
    BOOLEAN,
    DOUBLE,
    LONG,
    MOST_DIGITS,
    STRING,
    DateType,
    DecimalType,
    DurationType,
    TimestampType,
    WordType,
    decimal_type,
    type_named,
    words_float,
)
from pointstamp.errors import SchemaError


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
            one, two = same_type(self.bind(schema), other.bind(schema), f"{self}.fill_null")

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
        listed = [as_expression(value) for value in values]
        text = f"{self}.is_in({list(values)!r})"

        def bind(schema: Schema) -> Bound:
            inner = self.bind(schema)
            pairs = [same_type(inner, value.bind(schema), text) for value in listed]
            alike = [other for bound, other in pairs if bound.type == inner.type]
            unlike = [pair for pair in pairs if pair[0].type != inner.type]

            def evaluate(rows: Rows) -> tuple[Values, Mask]:
                values, there = inner.evaluate(rows)
                found = np.zeros(len(rows), np.bool_)
                if alike and len(rows):
                    wanted = np.concatenate([other.evaluate(rows[:1])[0] for other in alike])
                    found = np.isin(in_words(values, inner), in_words(wanted, inner))
                for bound, other in unlike:
                    one, two = bound.evaluate(rows)[0], other.evaluate(rows)[0]
                    found = found | (in_words(one, bound) == in_words(two, bound))
                return found, there

            return Bound(BOOLEAN, inner.nullable, evaluate)

        return Expression(text, bind)

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
            return cast_to(self.bind(schema), wanted, str(self))

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
        If there is no type of such values.
    DataError
        If it is beyond all values of the type.
    """
    kind = _type_of_value(value)
    kind.to_word(value)  # whether it can be one

    def bind(schema: Schema) -> Bound:
        # In the process that computes it: a text has another number in each.
        word = kind.to_word(value)

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

    def __repr__(self) -> str:
        return ".".join(f"when({c}).then({v})" for c, v in self._cases)

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
        one, two = same_type(left.bind(schema), other.bind(schema), text)
        compare = _COMPARE[sign]
        by_bytes = one.type.is_text and sign not in ("==", "!=")

        def evaluate(rows: Rows) -> tuple[Values, Mask]:
            a, a_there = one.evaluate(rows)
            b, b_there = two.evaluate(rows)
            if by_bytes:
                ranks = ranks_of_texts(np.concatenate([a, b]))
                a, b = ranks[: len(a)], ranks[len(a) :]
            else:
                a, b = in_words(a, one), in_words(b, two)
            return compare(a, b), _both(a_there, b_there)

        return Bound(BOOLEAN, one.nullable or two.nullable, evaluate)

    return Expression(text, bind)


def _arithmetic(left: Expression, sign: str, right: Any) -> Expression:
    other = as_expression(right)
    text = f"({left} {sign} {other})"

    def bind(schema: Schema) -> Bound:
        one, two = left.bind(schema), other.bind(schema)
        timed = _time_arithmetic(one, sign, two, text)
        if timed is not None:
            return timed
        if not (is_number(one.type) and is_number(two.type)):
            raise SchemaError(f"{text}: {one.type.name} {sign} {two.type.name} is not defined")
        if sign == "/":
            one, two = cast_to(one, DOUBLE, text), cast_to(two, DOUBLE, text)
        elif sign == "*" and not (one.type.is_float or two.type.is_float):
            return _product(one, two, text)
        else:
            one, two = same_type(one, two, text)
            if one.type.is_integer:
                one, two = as_long(one, text), as_long(two, text)
        return _computed(one.type, one, sign, two, text)

    return Expression(text, bind)


def _product(one: Bound, two: Bound, text: str) -> Bound:
    if "uint64" in (one.type.name, two.type.name):
        raise SchemaError(f"{text}: uint64 cannot be multiplied")
    scale = scale_of(one.type) + scale_of(two.type)
    if scale > MOST_DIGITS:
        raise SchemaError(f"{text} has {scale} places behind the point; {MOST_DIGITS} can be kept")
    is_decimal = isinstance(one.type, DecimalType) or isinstance(two.type, DecimalType)
    kind = decimal_type(MOST_DIGITS, scale) if is_decimal else LONG
    return _computed(kind, one, "*", two, text)


def _computed(kind: WordType, one: Bound, sign: str, two: Bound, text: str) -> Bound:
    def evaluate(rows: Rows) -> tuple[Values, Mask]:
        a, a_there = one.evaluate(rows)
        b, b_there = two.evaluate(rows)
        there = _both(a_there, b_there)
        if kind.is_float:
            with np.errstate(all="ignore"):
                if sign == "/":
                    refuse_where(b == 0, there, a, f"is divided by 0, in {text}")
                return fitting(_FLOATS[sign](a, b), there, kind), there
        if sign == "*":
            return fitting(checked_product(a, b, there, text), there, kind), there
        result = a + b if sign == "+" else a - b
        turned = (a ^ result) & ((b if sign == "+" else ~b) ^ result)
        refuse_where(turned < 0, there, a, f"and another value do not fit 64 bits, in {text}")
        return fitting(result, there, kind), there

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
    if isinstance(kinds[0], DateType) and kinds[1].is_signed and sign in "+-":
        return _computed(kinds[0], one, sign, two, text)
    if all(isinstance(kind, DateType) for kind in kinds) and sign == "-":
        return _computed(LONG, one, sign, two, text)
    return None


def _choice(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    text = f"when({condition}).then({then}).otherwise({otherwise})"

    def bind(schema: Schema) -> Bound:
        test = _boolean(condition, schema)
        one, two = same_type(then.bind(schema), otherwise.bind(schema), text)

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
