"""Aggregates by name: what `agg` takes, `ps.count()`, `ps.sum("cents")` and so on.

An aggregate is of a column or an expression, and skips nulls; `count()` alone counts rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pointstamp.collections.accumulators import (
    Accumulator,
    AllOrAny,
    Average,
    CountAccumulator,
    DistinctCount,
    FloatSum,
    IntegerSum,
    Moments,
)
from pointstamp.collections.approximate_sums import ApproximateSum
from pointstamp.collections.casts import Bound
from pointstamp.collections.comparison_refused import ComparisonRefused
from pointstamp.collections.expression import Expression, col
from pointstamp.collections.groups import Numbers
from pointstamp.collections.ordered import FirstValue
from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import (
    BOOLEAN,
    DOUBLE,
    LONG,
    MOST_DIGITS,
    DecimalType,
    DurationType,
    decimal_type,
)
from pointstamp.errors import BuildError, SchemaError
from pointstamp.kernels.group_sums import SumForm

NewAccumulator = Callable[[int, Callable[[Rows], Numbers]], Accumulator]
"""Of how many words a key has, and what numbers groups."""

Summed = tuple[SumForm, int]
"""As what `kernels/group_sums.py` keeps an aggregate, and its unit."""

Kept = tuple[Column, NewAccumulator] | tuple[Column, NewAccumulator, Summed]
"""What the answer is, what keeps it, and as what sums keep it, if they do."""


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate bound to a schema."""

    value: Bound | None
    """What it is of; None of rows."""
    column: Column
    """What its answer is."""
    new_accumulator: NewAccumulator
    null_of_none: bool = True
    """Whether it is null of no records."""
    beside: Bound | None = None
    """What else it is of, whose words come behind those of `value`."""

    summed: Summed | None = None
    """As what sums keep it, where they do."""
    greatest: bool | None = None
    """Of `min` and `max`: whether it is the greatest value."""
    what: str = ""
    """The aggregate, for messages to people."""
    column_of: str | None = None
    """The column that the value is, where that is not computed."""
    kept_of: str = ""
    """What is kept of which values, in words that are the same in every process."""

    @property
    def n_beside(self) -> int:
        """How many words `beside` has."""
        return 0 if self.beside is None else self.beside.column("beside").n_words


_OF_NONE_TOO = ("count", "count_distinct", "collect_list", "collect_set")
"""Aggregates that have an answer of no records, whose word is 0."""


class Aggregate(ComparisonRefused):
    """What is computed of each group. Made by `count`, `sum` and the others of this module.

    >>> count(), sum("cents")
    (count(), sum(col('cents')))
    """

    instead = (
        "name it in agg(n=...), and compute with that column behind, as in filter(col('n') > 1)"
    )

    def __init__(
        self,
        name: str,
        of: str | Expression | None,
        bind: Callable[[str, Bound, str], Kept] | None = None,
        kept_as: str | None = None,
    ) -> None:
        self._name = name
        self._kept_as = kept_as or name
        self._of = None if of is None else expression_given(name, of)
        self._bind = bind

    def bind(self, schema: Schema, name: str) -> BoundAggregate:
        """As a column `name` of the groups of a collection of `schema`.

        Raises
        ------
        ColumnError
            If it names a column that is not there.
        SchemaError
            If there is no such aggregate of values of that type.
        """
        if self._of is None or self._bind is None:
            column = Column(name, LONG)
            make: NewAccumulator = lambda n_key, number: CountAccumulator()  # noqa: E731
            summed_rows = SumForm.RECORDS, 0
            return BoundAggregate(
                None, column, make, False, summed=summed_rows, what=str(self), kept_of=self._name
            )
        value = self._of.bind(schema)
        column, make, *summed = self._bind(name, value, str(self))
        is_null_of_none = self._name not in _OF_NONE_TOO
        return BoundAggregate(
            value,
            column,
            make,
            is_null_of_none,
            summed=summed[0] if summed else None,
            greatest={"min": False, "max": True}.get(self._name),
            what=str(self),
            column_of=_column_of(self._of),
            kept_of=self._kept_of(self._of),
        )

    def _kept_of(self, *of: Expression) -> str:
        """What is kept of which values: a snapshot of others has other words."""
        return f"{self._kept_as} of {', '.join(_column_of(each) or str(each) for each in of)}"

    def __repr__(self) -> str:
        return f"{self._name}({'' if self._of is None else self._of})"


def _column_of(of: Expression) -> str | None:
    """The column that an expression is; None of one that is computed."""
    return of.name if of.name is not None and repr(of) == repr(col(of.name)) else None


def count(of: str | Expression | None = None) -> Aggregate:
    """The number of rows, or of values of a column that are not null. A long."""

    def bind(name: str, value: Bound, what: str) -> Kept:
        return Column(name, LONG), lambda n_key, number: CountAccumulator(), (SumForm.VALUES, 0)

    return Aggregate("count", of, bind)


def sum(of: str | Expression, *, approximate: bool = False) -> Aggregate:
    """The exact sum: a long for integers, a double for floats; null if there are no values.

    A sum of integers or decimals that is beyond 64 bits is a `DataError`, with its group.

    Parameters
    ----------
    of : str or Expression
    approximate : bool
        Of floats, whether two words are kept of a sum, so that what is more than some 106 binary
        places below its leading one is rounded away. What is promised then is no more than that:
        the bits after an insertion and its deletion may differ from those before, and depend on
        the order in which updates come, so on workers and epochs. Where values and sums fit into
        these places, they do not. Values of less than 4e-289 lose digits. A group that is empty
        is, and what is not finite leaves nothing behind.

    >>> import pointstamp as ps
    >>> def build(scope, sales):
    ...     return sales.group_by("shop").agg(euros=ps.sum("euros", approximate=True))
    >>> view = ps.View(build, sales="shop long, euros double")
    >>> view.insert("sales", [(1, 0.5), (1, 0.25), (2, 1e30)])
    >>> view.advance()
    [((1, 0.75), 1), ((2, 1e+30), 1)]
    """

    def bind(name: str, value: Bound, what: str) -> Kept:
        kind = value.type
        if approximate:
            check_approximate(value, what)
            return Column(name, DOUBLE, True), lambda n_key, number: ApproximateSum()
        if kind.is_float:
            return Column(name, DOUBLE, True), lambda n_key, number: FloatSum()
        if isinstance(kind, DecimalType):
            kind = decimal_type(MOST_DIGITS, kind.scale)
        elif kind.is_integer and kind.name != "uint64":
            kind = LONG
        elif not isinstance(kind, DurationType):
            raise undefined(what, value)
        digits = MOST_DIGITS if isinstance(kind, DecimalType) else None
        # Of no nulls a group that is there has a value.
        column = Column(name, kind, value.nullable)
        summed = SumForm.SUM, 0 if digits is None else 10**digits
        return column, lambda n_key, number: IntegerSum(what, digits), summed

    return Aggregate("sum", of, bind, "approximate sum" if approximate else None)


def avg(of: str | Expression, *, approximate: bool = False) -> Aggregate:
    """The mean, as the nearest double; null if there are no values.

    approximate : of floats, whether the sum is as that of `sum(of, approximate=True)`
    """

    def bind(name: str, value: Bound, what: str) -> Kept:
        kind = value.type
        scale = scale_of_numbers(value, what)
        column = Column(name, DOUBLE, value.nullable)
        if approximate:
            check_approximate(value, what)
            return column, lambda n_key, number: ApproximateSum(is_mean=True)
        make: NewAccumulator = lambda n_key, number: Average(kind, scale, what)  # noqa: E731
        return (column, make) if kind.is_float else (column, make, (SumForm.AVERAGE, 10**scale))

    return Aggregate("avg", of, bind, "approximate avg" if approximate else None)


def min(of: str | Expression) -> Aggregate:
    """The least value; null if there are none."""
    return Aggregate("min", of, _extreme(greatest=False))


def max(of: str | Expression) -> Aggregate:
    """The greatest value; null if there are none."""
    return Aggregate("max", of, _extreme(greatest=True))


def _extreme(greatest: bool) -> Callable[[str, Bound, str], Kept]:
    def bind(name: str, value: Bound, what: str) -> Kept:
        column = Column(name, value.type, value.nullable)
        order = [(Column(name, value.type), greatest)]

        def kept(n_key: int, number: Callable[[Rows], Numbers]) -> FirstValue:
            return FirstValue(n_key, number, order)

        if value.type.is_text:
            return column, kept
        return column, kept, (SumForm.FIRST, -1 if greatest else 0)

    return bind


def count_distinct(of: str | Expression) -> Aggregate:
    """The number of distinct values that are not null. A long."""

    def bind(name: str, value: Bound, what: str) -> Kept:
        return Column(name, LONG), lambda n_key, number: DistinctCount(n_key, number)

    return Aggregate("count_distinct", of, bind)


def var(of: str | Expression) -> Aggregate:
    """The sample variance, rounded once; null if there are fewer than two values."""
    return Aggregate("var", of, _moments(is_root=False))


def stddev(of: str | Expression) -> Aggregate:
    """The sample standard deviation: the square root of `var`."""
    return Aggregate("stddev", of, _moments(is_root=True))


def bool_and(of: str | Expression) -> Aggregate:
    """Whether all values are true; null if there are no values."""
    return Aggregate("bool_and", of, _logical(of_all=True))


def bool_or(of: str | Expression) -> Aggregate:
    """Whether any value is true; null if there are no values."""
    return Aggregate("bool_or", of, _logical(of_all=False))


def _moments(is_root: bool) -> Callable[[str, Bound, str], tuple[Column, NewAccumulator]]:
    def bind(name: str, value: Bound, what: str) -> tuple[Column, NewAccumulator]:
        kind = value.type
        scale = scale_of_numbers(value, what)
        return Column(name, DOUBLE, True), lambda n_key, number: Moments(kind, scale, is_root)

    return bind


def _logical(of_all: bool) -> Callable[[str, Bound, str], tuple[Column, NewAccumulator]]:
    def bind(name: str, value: Bound, what: str) -> tuple[Column, NewAccumulator]:
        if value.type != BOOLEAN:
            raise undefined(what, value)
        return Column(name, BOOLEAN, value.nullable), lambda n_key, number: AllOrAny(of_all)

    return bind


def check_approximate(value: Bound, what: str) -> None:
    """Refuse `approximate=True` of values whose sums are exact in two words.

    Raises
    ------
    SchemaError
    """
    if not value.type.is_float:
        raise SchemaError(
            f"{what} with approximate=True is of {value.type.name}, and is for float and double; "
            "sums of integers and decimals are exact in as many words, so leave it out"
        )


def scale_of_numbers(value: Bound, what: str) -> int:
    """How many places behind the point a number has."""
    kind = value.type
    is_number = kind.is_integer or kind.is_float or isinstance(kind, DecimalType)
    if not is_number or kind.name == "uint64":
        raise undefined(what, value)
    return kind.scale if isinstance(kind, DecimalType) else 0


def expression_given(name: str, of: str | Expression) -> Expression:
    """The column or expression that the aggregate of this name is given.

    Raises
    ------
    BuildError
        If it is something else.
    """
    if not isinstance(of, (str, Expression)):
        raise BuildError(f"{name} is given {of!r}, which is no column and no expression")
    return col(of) if isinstance(of, str) else of


def undefined(what: str, value: Bound) -> SchemaError:
    """What to raise for values of a type that an aggregate is not of."""
    return SchemaError(f"{what} is of {value.type.name}, of which there is none; cast it")
