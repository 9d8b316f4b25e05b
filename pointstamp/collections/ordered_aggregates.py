"""Aggregates that need the values of a group in order, and those that a collection cannot have.

`min` and `max` are with the others in `aggregates.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NoReturn

from pointstamp.collections.aggregates import (
    Aggregate,
    BoundAggregate,
    NewAccumulator,
    expression_given,
    scale_of_numbers,
    undefined,
)
from pointstamp.collections.casts import Bound
from pointstamp.collections.collected import CollectedValues
from pointstamp.collections.expression import Expression
from pointstamp.collections.ordered import Between, FirstValue, Mode, Quantile, Share
from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.nested import list_type
from pointstamp.containers.words import BOOLEAN, DOUBLE, WordType, float_word, word_float
from pointstamp.errors import BuildError


class ValueBy(Aggregate):
    """The value of one column where another one is least or greatest."""

    def __init__(
        self, name: str, of: str | Expression, by: str | Expression, greatest: bool
    ) -> None:
        super().__init__(name, by)
        self._chosen = expression_given(name, of)
        self._greatest = greatest

    def bind(self, schema: Schema, name: str) -> BoundAggregate:
        """As a column `name`; raises as `Aggregate.bind`."""
        assert self._of is not None
        by, chosen = self._of.bind(schema), self._chosen.bind(schema)
        column = Column(name, chosen.type, chosen.nullable or by.nullable)
        order = [(Column("by", by.type), self._greatest), (chosen.column("value"), False)]
        return BoundAggregate(
            by,
            column,
            lambda n_key, number: FirstValue(n_key, number, order),
            beside=chosen,
            what=str(self),
            kept_of=self._kept_of(self._chosen, self._of),
        )

    def __repr__(self) -> str:
        return f"{self._name}({self._chosen}, {self._of})"


def min_by(of: str | Expression, by: str | Expression) -> Aggregate:
    """The value of `of` where `by` is least; nulls of `by` are skipped; null if that leaves none.

    Of several the least value of `of`, where null is before all values.

    >>> min_by("shop", "cents")
    min_by(col('shop'), col('cents'))
    """
    return ValueBy("min_by", of, by, greatest=False)


def max_by(of: str | Expression, by: str | Expression) -> Aggregate:
    """The value of `of` where `by` is greatest; otherwise as `min_by`."""
    return ValueBy("max_by", of, by, greatest=True)


def quantile(of: str | Expression, q: float, *, discrete: bool = False) -> Aggregate:
    """The quantile at the fraction `q` of the sorted values; null if there are none.

    Parameters
    ----------
    of : str or Expression
        Numbers; with `discrete=True` of any type but booleans. Texts, in the order of their bytes,
        lists and structs have nothing between two, so of these it is always `discrete`.
    q : float
        From 0, the least value, to 1, the greatest; what is meant is the number as it is
        written, so 0.1 is a tenth.
    discrete : bool
        Whether it is a value: the first one that is at or after that share of the values, as SQL's
        PERCENTILE_DISC. Otherwise it is as PERCENTILE_CONT: of `n` values that at `q * (n - 1)`,
        counted from 0, and on the line between two of them where that is no whole number; a
        double, rounded once.

    >>> import pointstamp as ps
    >>> def build(scope, sales):
    ...     ninth = ps.quantile("cents", 0.9, discrete=True)
    ...     return sales.agg(half=ps.median("cents"), ninth=ninth)
    >>> view = ps.View(build, sales="cents long")
    >>> view.insert("sales", [(10,), (20,), (40,), (80,)])
    >>> view.advance()
    [((30.0, 80), 1)]
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise BuildError(f"quantile is given q={q!r}, and should be given a number from 0 to 1")
    return _quantile(f"quantile {q}", of, Share(Fraction(repr(q)), discrete))


def median(of: str | Expression) -> Aggregate:
    """The median, a double: `quantile(of, 0.5)`.

    Of two texts in the middle it is the lesser one.

    >>> import pointstamp as ps
    >>> view = ps.View(lambda scope, sales: sales.agg(half=ps.median("item")), sales="item string")
    >>> view.insert("sales", [("tea",), ("ink",), ("pen",), ("map",)])
    >>> view.advance()
    [(('map',), 1)]
    """
    return _quantile("median", of, Share(Fraction(1, 2), False))


def mode(of: str | Expression) -> Aggregate:
    """The most frequent value, of several the least; null if there are no values."""

    def bind(name: str, value: Bound, what: str) -> tuple[Column, NewAccumulator]:
        kept = Column(name, value.type)
        column = Column(name, value.type, value.nullable)
        return column, lambda n_key, number: Mode(n_key, number, kept)

    return Aggregate("mode", of, bind)


def product(of: Any) -> NoReturn:
    """Not available: a factor of 0 cannot be removed from a product."""
    raise BuildError(
        f"product of {of!r}: a factor of 0 cannot be taken out again; use the sum of logarithms, "
        "or group_by(...).reduce(f, schema), where f multiplies"
    )


def first(of: Any) -> NoReturn:
    """Not available: the records of a collection have no order; use `min_by`."""
    raise BuildError(
        f"first of {of!r}: the records of a group have no order; use min_by({of!r}, by), with the "
        "column that says what is first"
    )


def last(of: Any) -> NoReturn:
    """Not available: the records of a collection have no order; use `max_by`."""
    raise BuildError(
        f"last of {of!r}: the records of a group have no order; use max_by({of!r}, by), with the "
        "column that says what is last"
    )


def collect_list(of: str | Expression) -> Aggregate:
    """All values as a list in ascending order; nulls are skipped.

    A change costs what the group is long.

    >>> import pointstamp as ps
    >>> def build(scope, sales):
    ...     items = ps.collect_list("item")
    ...     return sales.group_by("shop").agg(items=items, different=ps.collect_set("item"))
    >>> view = ps.View(build, sales="shop long, item string?")
    >>> view.insert("sales", [(1, "tea"), (1, "ink"), (1, None), (1, "tea")])
    >>> view.advance()
    [((1, ('ink', 'tea', 'tea'), ('ink', 'tea')), 1)]
    """
    return _collected("collect_list", of, once=False)


def collect_set(of: str | Expression) -> Aggregate:
    """The distinct values as a list in ascending order; otherwise as `collect_list`."""
    return _collected("collect_set", of, once=True)


def _collected(name: str, of: str | Expression, *, once: bool) -> Aggregate:
    def bind(column_name: str, value: Bound, what: str) -> tuple[Column, NewAccumulator]:
        kind = list_type(value.type)
        return Column(column_name, kind), lambda n_key, number: CollectedValues(kind, once=once)

    return Aggregate(name, of, bind)


def _quantile(name: str, of: str | Expression, share: Share) -> Aggregate:
    def bind(column_name: str, value: Bound, what: str) -> tuple[Column, NewAccumulator]:
        kind = value.type
        if kind == BOOLEAN:
            raise undefined(what, value)
        if share.discrete or kind.is_text:
            column = Column(column_name, kind, value.nullable)
            between: Between = _one
        else:
            column = Column(column_name, DOUBLE, value.nullable)
            between = _interpolation(kind, scale_of_numbers(value, what))
        at = Share(share.of, True) if kind.is_text else share
        kept = Column(column_name, kind)
        return column, lambda n_key, number: Quantile(n_key, number, kept, at, between)

    return Aggregate(name, of, bind)


def _one(word: int, following: int, part: Fraction) -> int:
    return word


def _interpolation(kind: WordType, scale: int) -> Between:
    """What is between two numbers, as the word of a double."""

    def between(word: int, following: int, part: Fraction) -> int:
        if not kind.is_float:
            return float_word(float((word + (following - word) * part) / 10**scale))
        one, other = word_float(word), word_float(following)
        if not part or word == following:
            return float_word(one)
        if not (math.isfinite(one) and math.isfinite(other)):
            # What is infinite, or NaN, outweighs what is not; between two such there is no number.
            return float_word(one + other)
        return float_word(float(Fraction(one) + (Fraction(other) - Fraction(one)) * part))

    return between
