"""Values of expressions that are bound to a schema, and how those of one type become others.

Nothing is lost in silence: what does not fit is refused with its value. Floats become decimals as
they are written, halves away from 0, and integers towards 0, as in Spark.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.evaluation import Evaluate, Evaluated, Mask, Values, computed
from pointstamp.collections.instructions import (
    Instructions,
    fitted,
    float_bits,
    null,
    only,
    program,
)
from pointstamp.collections.schema import Column
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import (
    BOOLEAN,
    DAY_US,
    DOUBLE,
    LONG,
    MOST_DIGITS,
    DateType,
    DecimalType,
    TimestampType,
    WordType,
    decimal_type,
    float_words,
    word_bounds,
)
from pointstamp.errors import DataError, SchemaError
from pointstamp.kernels.evaluate import Do

NULL = WordType("null")
"""The type of a null that takes the type of its context."""

_WIDE = decimal.Context(prec=60)
_HIGHEST = np.uint64(1 << 63)


@dataclass(frozen=True)
class Bound:
    """An expression bound to a schema."""

    type: WordType
    nullable: bool
    evaluate: Evaluate
    instructions: Instructions | None = None
    """The same for a few records, if there are such instructions."""

    def column(self, name: str) -> Column:
        """What it is as a column.

        Raises
        ------
        SchemaError
            If it is a null without a type.
        """
        if self.type == NULL:
            raise SchemaError(
                f"column {name!r} is null, of no type; give it one, as in ps.lit(None).cast('long')"
            )
        return Column(name, self.type, self.nullable)

    def write(self, rows: Rows, into: Rows, place: int) -> None:
        """Put the words for `rows` into columns of `into`, of which `place` has the value."""
        values, there = self.evaluate(rows)
        words = float_words(values) if self.type.is_float else values
        into[:, place] = words if there is None else np.where(there, words, 0)
        if self.nullable:
            into[:, place - 1] = 1 if there is None else there


def in_words(values: Values, bound: Bound) -> Values:
    """Values that compare as they are ordered: of floats their words, in which NaN is NaN."""
    return float_words(values) if bound.type.is_float else values


def null_of(kind: WordType) -> Bound:
    """A null of a type."""
    dtype = np.float64 if kind.is_float else np.bool_ if kind == BOOLEAN else np.int64

    def evaluate(rows: Rows) -> Evaluated:
        return np.zeros(len(rows), dtype), np.zeros(len(rows), np.bool_)

    return Bound(kind, True, evaluate, null())


def typed(bound: Bound, kind: WordType) -> Bound:
    """A null without a type as one of this type; anything else as it is."""
    return null_of(kind) if bound.type == NULL else bound


def same_type(one: Bound, two: Bound, what: object) -> tuple[Bound, Bound]:
    """Both as one type, without losing anything of either.

    Raises
    ------
    SchemaError
        If there is none.
    """
    one, two = typed(one, two.type), typed(two, one.type)
    if one.type == two.type:
        return one, two
    if one.type.is_integer and two.type.is_integer:
        return as_long(one, what), as_long(two, what)
    numbers = [is_number(bound.type) for bound in (one, two)]
    if all(numbers):
        if one.type.is_float or two.type.is_float:
            return cast_to(one, DOUBLE, what), cast_to(two, DOUBLE, what)
        scale = max(scale_of(one.type), scale_of(two.type))
        before = max(_digits_before(one.type), _digits_before(two.type))
        wanted = decimal_type(min(MOST_DIGITS, before + scale), scale)
        return cast_to(one, wanted, what), cast_to(two, wanted, what)
    raise SchemaError(
        f"{what}: {one.type.name} and {two.type.name} do not go together; "
        + made_equal(one.type, two.type)
    )


def is_castable(have: WordType, wanted: WordType) -> bool:
    """Whether `cast` makes values of one type those of another."""
    times = (DateType, TimestampType)
    return (
        have == wanted
        or (is_number(have) and is_number(wanted))
        or (have == BOOLEAN and wanted.is_integer)
        or (isinstance(have, times) and isinstance(wanted, times))
    )


def made_equal(*kinds: WordType) -> str:
    """What to do about columns of these types, which should have one type: for messages.

    >>> made_equal(LONG, DOUBLE)
    'cast one'
    """
    if any(all(is_castable(have, wanted) for have in kinds) for wanted in kinds):
        return "cast one"
    return "no cast makes them one: convert one by map(function, schema)"


def is_number(kind: WordType) -> bool:
    """Whether it is an integer, a float or a decimal."""
    return kind.is_integer or kind.is_float or isinstance(kind, DecimalType)


def scale_of(kind: WordType) -> int:
    """How many places it has behind the point."""
    return kind.scale if isinstance(kind, DecimalType) else 0


def _digits_before(kind: WordType) -> int:
    """How many digits there are before the point."""
    return kind.precision - kind.scale if isinstance(kind, DecimalType) else MOST_DIGITS


def as_long(bound: Bound, what: object) -> Bound:
    """Integers of another width as longs, which they are."""
    if bound.type.name == "uint64":
        raise SchemaError(
            f"{what}: uint64 goes into no arithmetic, and is compared with uint64 alone; cast it "
            "to long or double"
        )
    return replace(bound, type=LONG)


def cast_to(bound: Bound, wanted: WordType, what: object) -> Bound:
    """Values as those of another type.

    Raises
    ------
    SchemaError
        If they cannot be.
    """
    have = bound.type
    bound = typed(bound, wanted)
    if bound.type == wanted:
        return bound
    if isinstance(have, TimestampType) and isinstance(wanted, DateType):
        days = only(Do.FLOOR_DIVIDE, DAY_US)
        return _converted(bound, wanted, lambda values, there: values // DAY_US, days)
    if isinstance(have, DateType) and isinstance(wanted, TimestampType):
        times = (*only(Do.CONSTANT, DAY_US), *only(Do.MULTIPLY))
        return _converted(bound, wanted, lambda values, there: values * DAY_US, times)
    if _is_wider(wanted, have) or (
        isinstance(have, TimestampType) and isinstance(wanted, TimestampType)
    ):
        return replace(bound, type=wanted)
    if have == BOOLEAN and wanted.is_integer:
        zero = wanted.to_word(0)  # the words of uint64 are moved
        return _converted(bound, wanted, lambda values, there: values.astype(np.int64) + zero, ())
    if not is_castable(have, wanted):
        raise SchemaError(
            f"{what} is {have.name}, which cannot be cast to {wanted.name}; "
            "map(function, schema) converts it by a function of rows"
        )
    if have.name == "uint64":
        return _of_unsigned(bound, wanted, what)
    if wanted.name == "uint64":
        return _converted(cast_to(bound, LONG, what), wanted, _unsigned)
    if wanted.is_float:
        unit = 10.0 ** scale_of(have)
        bits = float_bits(unit)
        divided: Instructions = () if have.is_float else only(Do.TO_FLOAT, bits)
        return _converted(bound, wanted, lambda values, there: values / unit, divided)
    if have.is_float:
        return _converted(bound, wanted, lambda values, there: _whole(values, there, wanted, what))

    def rescaled(values: Values, there: Mask) -> Values:
        if more < 0:
            unit = 10**-more
            # To an integer towards 0, as Python does; to fewer places to the nearest, as Spark.
            half = 0 if wanted.is_integer else unit // 2
            cut: Values = np.sign(values) * ((np.abs(values) + half) // unit)
            return cut
        return checked_product(values, np.int64(10**more), there, what)

    more = scale_of(wanted) - scale_of(have)
    scaled = None if more < 0 else (*only(Do.CONSTANT, 10**more), *only(Do.MULTIPLY))
    return _converted(bound, wanted, rescaled, scaled)


def _of_unsigned(bound: Bound, wanted: WordType, what: object) -> Bound:
    """Of uint64, whose words are its values less 2^63, so that they are in the order of those."""
    if wanted.is_float:

        def floats(words: Values, there: Mask) -> Values:
            return (words.view(np.uint64) ^ _HIGHEST).astype(np.float64)

        return _converted(bound, wanted, floats)

    def longs(words: Values, there: Mask) -> Values:
        moved: Values = (words.view(np.uint64) ^ _HIGHEST).view(np.int64)
        wrong = (words >= 0) if there is None else (words >= 0) & there
        refuse_where(wrong, None, moved.view(np.uint64), f"does not fit {wanted.name}")
        return moved

    return cast_to(_converted(bound, LONG, longs), wanted, what)


def _unsigned(values: Values, there: Mask) -> Values:
    refuse_where(values < 0, there, values, "does not fit uint64")
    return (values.view(np.uint64) ^ _HIGHEST).view(np.int64)


def _is_wider(wanted: WordType, have: WordType) -> bool:
    """Whether these are decimals of the same places, and no fewer digits."""
    return (
        isinstance(have, DecimalType)
        and isinstance(wanted, DecimalType)
        and have.scale == wanted.scale
        and have.precision <= wanted.precision
    )


def _converted(
    bound: Bound,
    wanted: WordType,
    convert: Callable[[Values, Mask], Values],
    instructions: Instructions | None = None,
) -> Bound:
    def converted(column: Evaluated) -> Evaluated:
        values, there = column
        return fitting(convert(values, there), there, wanted), there

    few = program(bound.instructions, instructions, fitted(wanted))
    return Bound(wanted, bound.nullable, computed(converted, bound.evaluate), few)


def fitting(values: Values, there: Mask, kind: WordType) -> Values:
    """The values, if the type has them all."""
    unfit = f"does not fit {kind.name}"
    if kind.is_float and kind.n_bits == 32:  # type: ignore[attr-defined]  # it is a FloatType
        with np.errstate(over="ignore"):
            narrow: Values = values.astype(np.float32).astype(np.float64)
        refuse_where(np.isinf(narrow) & ~np.isinf(values), there, values, unfit)
        return narrow
    if isinstance(kind, (DateType, TimestampType)):
        unit = "days" if isinstance(kind, DateType) else "us"
        unfit = f"{unit} since 1970-01-01 is beyond the years 1 to 9999"
    bounds = word_bounds(kind)
    if not kind.is_float and bounds != word_bounds(LONG):
        refuse_where((values < bounds[0]) | (values > bounds[1]), there, values, unfit)
    return values


def refuse_where(
    wrong: npt.NDArray[np.bool_], there: Mask, values: Values, what: str, of: object = ""
) -> None:
    """Raise a `DataError` with the first value that is there and wrong.

    of : put behind the message; an expression, which is written out for an error alone
    """
    wrong = wrong if there is None else wrong & there
    if wrong.any():
        raise DataError(f"{values[wrong.argmax()].item()!r} {what} {of}".rstrip())


def _whole(values: Values, there: Mask, wanted: WordType, what: object) -> Values:
    scale = scale_of(wanted)
    if isinstance(wanted, DecimalType):
        return _nearest(values, there, scale, what)
    scaled = np.trunc(values * 10.0**scale)
    fits = (scaled >= -float(1 << 63)) & (scaled < float(1 << 63))
    refuse_where(~fits, there, values, "does not fit 64 bits, in", what)
    return np.where(np.isfinite(scaled), scaled, 0).astype(np.int64)


def _nearest(values: Values, there: Mask, scale: int, what: object) -> Values:
    """The decimals that floats are written as, to so many places; halves go away from 0."""
    known = np.ones(len(values), np.bool_) if there is None else there
    far = ~(np.abs(values) * 10.0**scale < 1e18)
    refuse_where(far, there, values, "does not fit 18 digits, in", what)
    unit = decimal.Decimal(1).scaleb(-scale)
    words = [
        int(decimal.Decimal(repr(value)).quantize(unit, decimal.ROUND_HALF_UP, _WIDE).scaleb(scale))
        if is_there
        else 0
        for value, is_there in zip(values.tolist(), known.tolist(), strict=True)
    ]
    return np.array(words, np.int64)


def checked_product(a: Values, b: Any, there: Mask, what: object) -> Values:
    """The product of integers, or a `DataError` where it is beyond 64 bits."""
    product = a * b
    with np.errstate(all="ignore"):
        near = np.flatnonzero(np.abs(a.astype(np.float64) * b) > float((1 << 63) - (1 << 12)))
    wrong = np.zeros(len(a), np.bool_)
    others = np.broadcast_to(b, a.shape)
    for at in near.tolist():
        wrong[at] = not -(1 << 63) <= int(a[at]) * int(others[at]) < 1 << 63
    refuse_where(wrong, there, a, "multiplied does not fit 64 bits, in", what)
    checked: Values = product
    return checked
