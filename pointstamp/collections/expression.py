"""Expressions over the columns of a collection: `col("cents") >= 1_000`.

An expression is a tree, made by Python's operators and by methods. Bound to a schema it has a
type, and a program that computes it of a batch. Nulls are as in SQL: what is computed of one is
null, but `&` and `|` where the other side decides.

Trees are walked without recursion, so a chain of any length is as good as a short one.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from pointstamp.collections import dates, numeric
from pointstamp.collections.arithmetic import arithmetic
from pointstamp.collections.casts import NULL, Bound, cast_to, null_of
from pointstamp.collections.comparison_refused import ComparisonRefused
from pointstamp.collections.conditions import (
    boolean,
    choice,
    comparison,
    first_not_null,
    logic,
    negation,
    nullness,
    one_of,
)
from pointstamp.collections.evaluation import Evaluated, Values, computed
from pointstamp.collections.instructions import constant as constant_word
from pointstamp.collections.instructions import word_at
from pointstamp.collections.schema import Schema
from pointstamp.containers.nested import column_type_named
from pointstamp.containers.text_functions import check_arguments, of_texts, result_of
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    TextType,
    WordType,
    decimal_type,
    type_named,
    words_float,
)
from pointstamp.errors import BuildError, DataError, SchemaError
from pointstamp.operators.names_elsewhere import OF_EXPRESSIONS, no_attribute

Found = TypeVar("Found")
Bind = Callable[[Schema, "list[Bound]", "Expression"], Bound]
"""What an expression is bound to a schema: of its operands' bounds, and for messages itself."""


class Expression:
    """What is computed of each record. Made by `col`, `lit`, `when`, and operators on those.

    >>> col("price") * 2 > 10
    ((col('price') * 2) > 10)
    """

    def __init__(
        self,
        operands: Sequence[Expression],
        bind: Bind,
        text: Callable[..., str],
        *,
        name: str | None = None,
        constant: tuple[Any] | None = None,
    ) -> None:
        self._operands = tuple(operands)
        self._bind = bind
        self._text = text
        self.name = name
        """What the column is called if no other name is given."""
        self.constant = constant
        """What it is of every record, if that is one value."""
        self.column: str | None = None
        """The column that it is, if it is one as it is."""
        self.cases: list[tuple[Expression, Expression]] = []
        """Conditions and values, if it is a choice; the last operand is for all others."""

    if not TYPE_CHECKING:  # or every name would be an attribute to a type checker

        def __getattr__(self, name: str) -> Any:
            """Say of names that other libraries have for a method what there is here."""
            raise no_attribute(self, name, OF_EXPRESSIONS)

    def bind(self, schema: Schema) -> Bound:
        """Its type, and how to compute it, where records have `schema`.

        Raises
        ------
        ColumnError
            If it names a column that is not there.
        SchemaError
            If its types do not go together.
        """
        return _folded(self, lambda part, operands: part._bind(schema, operands, part))

    def alias(self, name: str) -> Expression:
        """The same, as a column of that name."""
        same = Expression(self._operands, self._bind, self._text, name=name, constant=self.constant)
        same.column, same.cases = self.column, self.cases
        return same

    # Nulls, and choices by values.

    def is_null(self) -> Expression:
        """Whether it is null."""
        return self._method("is_null", lambda inner, what: nullness(inner, True))

    def is_not_null(self) -> Expression:
        """Whether it is not null."""
        return self._method("is_not_null", lambda inner, what: nullness(inner, False))

    def fill_null(self, value: Any) -> Expression:
        """`value` where it is null, and computed only there.

        >>> col("n").fill_null(0)
        col('n').fill_null(0)
        """

        def bind(schema: Schema, values: list[Bound], what: Expression) -> Bound:
            return first_not_null(values, what)

        return Expression(
            _operands(self, "fill_null", value),
            bind,
            lambda inner, other: f"{inner}.fill_null({other})",
            name=self.name,
        )

    def is_in(self, values: Sequence[Any]) -> Expression:
        """Whether it is one of `values`. Of a null, and where one of several is null, as in SQL."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise SchemaError(
                f"{self}.is_in is given {values!r}, and needs a list of values; whether a value is "
                "in another collection says join(other, how='semi')"
            )
        if isinstance(values, Set):
            # In one order in every process: workers compare what they build.
            values = sorted(values, key=repr)
        listed = [as_expression(value) for value in values]

        def bind(schema: Schema, bounds: list[Bound], what: Expression) -> Bound:
            inner, *others = bounds
            known = [each.constant for each in listed]
            return one_of(inner, list(zip(others, known, strict=True)), what)

        def text(inner: str, *others: str) -> str:
            return f"{inner}.is_in([{', '.join(others)}])"

        return Expression((self, *listed), bind, text)

    def between(self, low: Any, high: Any) -> Expression:
        """Whether it is from `low` up to `high`, both included.

        >>> col("n").between(1, 3)
        ((col('n') >= 1) & (col('n') <= 3))
        """
        return _logic(self >= low, "&", self <= high)

    def cast(self, kind: str) -> Expression:
        """The same value as another type: a number as another, a date as a timestamp, and back.

        A boolean as an integer, too, which is 0 or 1. A timestamp without a zone is taken as one
        of UTC; the types of text, and all others, have no cast: `map` takes a function of rows.

        Raises
        ------
        SchemaError
            When bound, for other types.
        DataError
            While it runs, if a value does not fit.
        """
        wanted = column_type_named(kind)
        return self._method(
            "cast", lambda inner, what: cast_to(inner, wanted, what), kind, keeps_name=True
        )

    # Numbers.

    def abs(self) -> Expression:
        """Without its sign."""
        return self._method("abs", numeric.absolute)

    def round(self, places: int = 0) -> Expression:
        """To so many places behind the point.

        Of a decimal one with so many places, halves away from 0, as in SQL; of a float what
        Python's `round` gives; of an integer itself.
        """
        numeric.check_places(places)
        return self._method(
            "round", lambda inner, what: numeric.rounded(inner, places, what), places
        )

    def floor(self) -> Expression:
        """The greatest whole number that is not above it: of a decimal one without places."""
        return self._method("floor", numeric.floor)

    def ceil(self) -> Expression:
        """The least whole number that is not below it: of a decimal one without places."""
        return self._method("ceil", numeric.ceil)

    def sqrt(self) -> Expression:
        """The root, a double; of what is below 0 a `DataError` while it runs."""
        return self._method("sqrt", numeric.sqrt)

    def log2(self) -> Expression:
        """The logarithm to base 2, a double; of what is not above 0 a `DataError`."""
        return self._method("log2", numeric.log2)

    # Dates and times.

    def year(self) -> Expression:
        """The year of a date or timestamp, a long."""
        return self._part("year")

    def quarter(self) -> Expression:
        """The quarter of the year, 1 to 4."""
        return self._part("quarter")

    def month(self) -> Expression:
        """The month, 1 to 12."""
        return self._part("month")

    def day(self) -> Expression:
        """The day of the month, from 1 on."""
        return self._part("day")

    def weekday(self) -> Expression:
        """The day of the week, as Python has it: Monday is 0, Sunday 6."""
        return self._part("weekday")

    def hour(self) -> Expression:
        """The hour of a timestamp, 0 to 23."""
        return self._part("hour")

    def minute(self) -> Expression:
        """The minute of a timestamp, 0 to 59."""
        return self._part("minute")

    def second(self) -> Expression:
        """The second of a timestamp, 0 to 59."""
        return self._part("second")

    def microsecond(self) -> Expression:
        """The microseconds of a timestamp beyond its second."""
        return self._part("microsecond")

    def truncate(self, unit: str) -> Expression:
        """The beginning of the year, quarter, month, week, day, hour, minute or second.

        A week begins on Monday. A date remains a date, a timestamp a timestamp.
        """
        dates.check_unit(unit)
        return self._method(
            "truncate", lambda inner, what: dates.truncated(inner, unit, what), unit
        )

    # Texts. Each is computed once for each distinct text of a batch.

    def like(self, pattern: str) -> Expression:
        r"""Whether it is as a pattern of SQL: `%` is any text, `_` any character, `\%` a `%`."""
        return self._of_text("like", pattern)

    def starts_with(self, beginning: str) -> Expression:
        """Whether it begins with a text."""
        return self._of_text("starts_with", beginning)

    def ends_with(self, end: str) -> Expression:
        """Whether it ends with a text."""
        return self._of_text("ends_with", end)

    def contains(self, part: str) -> Expression:
        """Whether a text is in it, as it is: no pattern."""
        return self._of_text("contains", part)

    def lower(self) -> Expression:
        """In small letters, each character by itself."""
        return self._of_text("lower")

    def upper(self) -> Expression:
        """In capital letters, each character by itself: "ß" has none."""
        return self._of_text("upper")

    def length(self) -> Expression:
        """How many characters it has, or a binary bytes; a long."""
        return self._of_text("length")

    def slice(self, start: int, length: int | None = None) -> Expression:
        """The characters from place `start` on, at most `length` of them if that is given.

        Places count from 0; one below 0 counts from the end.
        """
        return self._of_text("slice", start, length)

    # What they are made of.

    def _method(
        self,
        method: str,
        bind: Callable[[Bound, Expression], Bound],
        *given: Any,
        keeps_name: bool = False,
    ) -> Expression:
        shown = ", ".join(map(repr, given))
        return Expression(
            (self,),
            lambda schema, operands, what: bind(operands[0], what),
            lambda inner: f"{inner}.{method}({shown})",
            name=self.name if keeps_name else None,
        )

    def _part(self, part: str) -> Expression:
        return self._method(part, lambda inner, what: dates.date_part(inner, part, what))

    def _of_text(self, function: str, *given: Any) -> Expression:
        check_arguments(function, given)

        def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
            (inner,) = operands
            kind = inner.type
            if not isinstance(kind, TextType) or (kind.is_binary and function in _OF_TEXTS_ALONE):
                raise SchemaError(f"{what} is asked of {kind.name}, which is no text")
            compute = of_texts(function, kind, given)

            def evaluate(column: Evaluated) -> Evaluated:
                return compute(column[0]), column[1]

            program = computed(evaluate, inner.evaluate)
            return Bound(result_of(function, kind), inner.nullable, program)

        shown = ", ".join(map(repr, given))
        return Expression((self,), bind, lambda inner: f"{inner}.{function}({shown})")

    def __repr__(self) -> str:
        return _folded(self, lambda part, operands: part._text(*operands))

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
        return _arithmetic(other, "+", self)

    def __sub__(self, other: Any) -> Expression:
        return _arithmetic(self, "-", other)

    def __rsub__(self, other: Any) -> Expression:
        return _arithmetic(other, "-", self)

    def __mul__(self, other: Any) -> Expression:
        return _arithmetic(self, "*", other)

    def __rmul__(self, other: Any) -> Expression:
        return _arithmetic(other, "*", self)

    def __truediv__(self, other: Any) -> Expression:
        return _arithmetic(self, "/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _arithmetic(other, "/", self)

    def __mod__(self, other: Any) -> Expression:
        return _arithmetic(self, "%", other)

    def __rmod__(self, other: Any) -> Expression:
        return _arithmetic(other, "%", self)

    def __floordiv__(self, other: Any) -> Expression:
        return _arithmetic(self, "//", other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _arithmetic(other, "//", self)

    def __pow__(self, other: Any) -> NoReturn:
        raise _undefined(self, "**", other, "write a product, or map with a function of rows")

    def __rpow__(self, other: Any) -> NoReturn:
        raise _undefined(other, "**", self, "map with a function of rows")

    def __xor__(self, other: Any) -> NoReturn:
        raise _undefined(self, "^", other, "write != of two booleans")

    def __rxor__(self, other: Any) -> NoReturn:
        raise _undefined(other, "^", self, "write != of two booleans")

    def __neg__(self) -> Expression:
        return _arithmetic(0, "-", self)

    def __and__(self, other: Any) -> Expression:
        return _logic(self, "&", other)

    def __rand__(self, other: Any) -> Expression:
        return _logic(other, "&", self)

    def __or__(self, other: Any) -> Expression:
        return _logic(self, "|", other)

    def __ror__(self, other: Any) -> Expression:
        return _logic(other, "|", self)

    def __invert__(self) -> Expression:
        def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
            return negation(boolean(operands[0], self))

        return Expression((self,), bind, lambda inner: f"~{inner}")


_OF_TEXTS_ALONE = ("like", "lower", "upper")


def col(name: str) -> Expression:
    """An expression: the value of the column `name`.

    >>> col("price")
    col('price')
    """

    def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
        column = schema.column(name, f"col({name!r})")
        place, kind = schema.places[name], column.type

        def evaluate(rows: Rows) -> Evaluated:
            words = rows[:, place]
            values = _values_of(words, kind)
            return values, (rows[:, place - 1] != 0 if column.nullable else None)

        few = word_at(place, kind, column.nullable)
        return Bound(kind, column.nullable, evaluate, few)

    found = Expression((), bind, lambda: f"col({name!r})", name=name)
    found.column = name
    return found


def lit(value: Any) -> Expression:
    """A literal: the same value for all records. None is a null of the type that is needed.

    An integer is a long and a float a double, and so is what is computed of it and of a column of
    fewer bits; `cast` makes it as narrow again.

    Raises
    ------
    SchemaError
        If there is no type of such values.
    DataError
        If it is beyond all values of the type.

    >>> when(col("n") > 0).then(col("n")).otherwise(lit(None))
    when((col('n') > 0)).then(col('n')).otherwise(None)
    """
    if value is None:
        return Expression((), lambda *_: null_of(NULL), lambda: "None", constant=(None,))
    kind = _type_of_value(value)
    kind.to_word(value)  # whether it can be one

    def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
        # In the process that computes it: a text has another number in each.
        word = kind.to_word(value)

        def evaluate(rows: Rows) -> Evaluated:
            return _values_of(np.full(len(rows), word, np.int64), kind), None

        return Bound(kind, False, evaluate, constant_word(word, kind))

    return Expression((), bind, lambda: repr(value), constant=(value,))


def coalesce(*values: Any) -> Expression:
    """The first of several expressions that is not null; null if all are.

    A value is computed only of the records on which those before it are null.

    >>> coalesce(col("a"), col("b"), 0)
    coalesce(col('a'), col('b'), 0)

    Raises
    ------
    BuildError
        If no value is given.
    """
    if not values:
        raise BuildError("coalesce is given no value, and needs one at least")

    def bind(schema: Schema, bounds: list[Bound], what: Expression) -> Bound:
        return first_not_null(bounds, what)

    operands = list(map(as_expression, values))
    return Expression(operands, bind, lambda *texts: f"coalesce({', '.join(texts)})")


class When(ComparisonRefused):
    """`when(condition).then(value)`, to which more conditions, and `otherwise`, may be added.

    >>> when(col("n") > 1).then("many").otherwise("few")
    when((col('n') > 1)).then('many').otherwise('few')
    """

    instead = "go on with .otherwise(other)"

    def __init__(self, cases: Sequence[tuple[Expression, Expression]]) -> None:
        self._cases = list(cases)

    def __repr__(self) -> str:
        return ".".join(f"when({c}).then({v})" for c, v in self._cases)

    def when(self, condition: Any) -> Then:
        """Another condition, for what none before it is true for."""
        return Then(self._cases, condition)

    def otherwise(self, value: Any) -> Expression:
        """What it is where no condition is true."""
        last = as_expression(value)
        cases = [*self._cases, *last.cases]
        if last.cases:
            last = last._operands[-1]

        def bind(schema: Schema, bounds: list[Bound], what: Expression) -> Bound:
            *pairs, last = bounds
            tests = [
                boolean(bound, condition)
                for bound, (condition, _) in zip(pairs[::2], cases, strict=True)
            ]
            return choice(list(zip(tests, pairs[1::2], strict=True)), last, what)

        def text(*texts: str) -> str:
            *pairs, last = texts
            parts = zip(pairs[::2], pairs[1::2], strict=True)
            return "".join(f"when({c}).then({v})." for c, v in parts) + f"otherwise({last})"

        operands = [part for case in cases for part in case]
        found = Expression([*operands, last], bind, text)
        found.cases = cases
        return found


class Then(ComparisonRefused):
    """A condition of `when`, of which the value is to be said."""

    instead = "go on with .then(value).otherwise(other)"

    def __init__(self, cases: Sequence[tuple[Expression, Expression]], condition: Any) -> None:
        self._cases = list(cases)
        self._condition = as_expression(condition)

    def then(self, value: Any) -> When:
        """What it is where the condition is true."""
        return When([*self._cases, (self._condition, as_expression(value))])


def when(condition: Any) -> Then:
    """Starts a conditional expression `when(c).then(a).otherwise(b)`: `a` if `c` is true, else `b`.

    Each value is computed only of the records that it is for.
    """
    return Then([], condition)


def as_expression(value: Any) -> Expression:
    """An expression as it is, and of another value the expression of that."""
    return value if isinstance(value, Expression) else lit(value)


def _folded(expression: Expression, combine: Callable[[Expression, list[Any]], Found]) -> Found:
    """What `combine` makes of a tree, from the leaves on, of what it made of the operands."""
    made: list[Any] = []
    left = [(expression, False)]
    while left:
        part, operands_are_made = left.pop()
        operands = part._operands
        if operands and not operands_are_made:
            left.append((part, True))
            left.extend((operand, False) for operand in reversed(operands))
            continue
        begin = len(made) - len(operands)
        made[begin:] = [combine(part, made[begin:])]
    found: Found = made[0]
    return found


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
    hint = ""
    if callable(value):
        hint = "; write an expression of col(name); map takes functions of rows"
    elif type(value).__module__.partition(".")[0] in ("pyarrow", "polars", "pyspark"):
        hint = "; write an expression of pointstamp.col(name)"
    raise SchemaError(f"{value!r} of type {type(value).__name__} is no value of a column{hint}")


def _logic(left: Any, sign: str, right: Any) -> Expression:
    one, two = _operands(left, sign, right)

    def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
        first, second = operands
        return logic(boolean(first, one), sign, boolean(second, two))

    return Expression((one, two), bind, _binary(sign))


def _comparison(left: Expression, sign: str, right: Any) -> Expression:
    """Refuses Python's None, with which SQL's comparison is null whatever the other is."""
    if right is None:
        instead = {"==": f"write {left}.is_null(), or ", "!=": f"write {left}.is_not_null(), or "}
        raise SchemaError(
            f"({left} {sign} None) would be null for all records, as in SQL: "
            f"{instead.get(sign, '')}compare with lit(None) if that is meant"
        )

    def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
        one, two = operands
        return comparison(one, sign, two, what)

    return Expression(_operands(left, sign, right), bind, _binary(sign))


def _arithmetic(left: Any, sign: str, right: Any) -> Expression:
    def bind(schema: Schema, operands: list[Bound], what: Expression) -> Bound:
        one, two = operands
        return arithmetic(one, sign, two, what)

    return Expression(_operands(left, sign, right), bind, _binary(sign))


def _operands(left: Any, sign: str, right: Any) -> tuple[Expression, Expression]:
    """Both as expressions; an error of a value that can be none says where it stands."""
    try:
        return as_expression(left), as_expression(right)
    except (DataError, SchemaError) as error:
        raise type(error)(f"({left!r} {sign} {right!r}): {error}") from None


def _undefined(left: Any, sign: str, right: Any, instead: str) -> SchemaError:
    return SchemaError(f"({left!r} {sign} {right!r}) is not defined for expressions: {instead}")


def _binary(sign: str) -> Callable[[str, str], str]:
    return lambda one, two: f"({one} {sign} {two})"
