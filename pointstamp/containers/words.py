"""Values as words of 64 bits, and back: what a collection's columns are inside.

Each type says which word a value is. Words of one type have the order of its values, but
those of texts and binaries, which are numbers of `dictionary.TEXTS`. Words are made of Python's
values one by one, and of Arrow's columns all at once.

Source: an order of floats as integers is that of IEEE 754's `totalOrder`, here with one zero and
one NaN, the greatest, as Spark has them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pointstamp.containers.dictionary import TEXTS
from pointstamp.errors import DataError, SchemaError

Ints = npt.NDArray[np.int64]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (of a clock without a zone)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_HIGHEST = 1 << 63
_BITS = 0x7FFF_FFFF_FFFF_FFFF
_NAN_WORD = 0x7FF8_0000_0000_0000
_SIGN = np.int64(63)
MOST_DIGITS = 18
"""Of decimals: those that a word can have."""

_EXACTLY = decimal.Context(
    prec=60, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Inexact, decimal.Underflow]
)
"""Whatever the context of the thread is, which would round."""

FIRST_DAY, LAST_DAY = dt.date.min.toordinal() - _EPOCH_DAY, dt.date.max.toordinal() - _EPOCH_DAY
"""The words of dates."""

DAY_US = 86_400_000_000

FIRST_TIME = FIRST_DAY * DAY_US
LAST_TIME = (LAST_DAY + 1) * DAY_US - 1
"""The words of timestamps."""


@dataclass(frozen=True)
class WordType:
    """A type of values that are one word each."""

    name: str
    """As Spark's DDL has it: "long", "decimal(10,2)"."""

    is_integer = False
    is_signed = False
    bounds: ClassVar[tuple[int, int] | None] = None
    """The least and the greatest value, where values are integers and their own words."""
    is_float = False
    is_text = False

    def to_word(self, value: Any) -> int:
        """The word of a value that is not null.

        Raises
        ------
        DataError
            If it is no value of this type.
        """
        raise NotImplementedError

    def to_value(self, word: int) -> Any:
        """The value of a word."""
        raise NotImplementedError

    def arrow(self) -> Any:
        """The `pyarrow.DataType`."""
        raise NotImplementedError

    def words_of(self, column: Any) -> Ints:
        """The words of a `pyarrow.Array` of this type, [n]; those of nulls are anything."""
        raise NotImplementedError

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """The `pyarrow.Array` of words, [n], with a null where `is_null`."""
        raise NotImplementedError

    def refuse(self, value: Any) -> DataError:
        """What to raise for a value that is none of this type."""
        return DataError(f"{value!r} of type {type(value).__name__} is no {self.name}")


@dataclass(frozen=True)
class IntegerType(WordType):
    """Integers of up to 64 bits; those above 2^63 - 1 are moved down by 2^63."""

    n_bits: int
    signed: bool = True

    is_integer = True

    @property
    def is_signed(self) -> bool:  # type: ignore[override]  # of a class attribute
        """Whether its words are the values, and a long has them all."""
        return not self._shift

    @cached_property
    def bounds(self) -> tuple[int, int] | None:  # type: ignore[override]  # of a class attribute
        """All that it has, unless they are moved."""
        if self._shift:
            return None
        n_bits = self.n_bits - self.signed
        return -(1 << n_bits) if self.signed else 0, (1 << n_bits) - 1

    @property
    def _shift(self) -> int:
        return _HIGHEST if self.n_bits == 64 and not self.signed else 0

    def to_word(self, value: Any) -> int:
        """Itself."""
        least, beyond = (
            (-(1 << self.n_bits - 1), 1 << self.n_bits - 1)
            if self.signed
            else (0, 1 << self.n_bits)
        )
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise self.refuse(value)
        if not least <= value < beyond:
            raise DataError(
                f"{value} is beyond {self.name}, which goes from {least} to {beyond - 1}"
            )
        return int(value) - self._shift

    def to_value(self, word: int) -> int:
        """Itself."""
        return word + self._shift

    def arrow(self) -> Any:
        """An integer."""
        import pyarrow as pa

        return getattr(pa, f"{'' if self.signed else 'u'}int{self.n_bits}")()

    def words_of(self, column: Any) -> Ints:
        """By widening."""
        values: npt.NDArray[Any] = _numpy(
            column, f"{'i' if self.signed else 'u'}{self.n_bits // 8}"
        )
        if self._shift:
            return (values ^ np.uint64(_HIGHEST)).view(np.int64)
        return values.astype(np.int64)

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """By narrowing."""
        if self._shift:
            return _column(words.view(np.uint64) ^ np.uint64(_HIGHEST), is_null, self.arrow())
        dtype = f"{'i' if self.signed else 'u'}{self.n_bits // 8}"
        return _column(words.astype(dtype), is_null, self.arrow())


@dataclass(frozen=True)
class BooleanType(WordType):
    """True is 1, False is 0."""

    def to_word(self, value: Any) -> int:
        """1 or 0."""
        if not isinstance(value, (bool, np.bool_)):
            raise self.refuse(value)
        return int(value)

    def to_value(self, word: int) -> bool:
        """True or False."""
        return word != 0

    def arrow(self) -> Any:
        """A bool."""
        import pyarrow as pa

        return pa.bool_()

    def words_of(self, column: Any) -> Ints:
        """A byte each, and then a word."""
        import pyarrow as pa

        return _numpy(column.cast(pa.uint8()), "u1").astype(np.int64)

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """Bits."""
        return _column(words != 0, is_null, self.arrow())


@dataclass(frozen=True)
class FloatType(WordType):
    """Floats, in a total order: -0.0 is 0.0, and all NaN are one, the greatest."""

    n_bits: int = 64

    is_float = True

    def to_word(self, value: Any) -> int:
        """Its bits, those of negative ones turned round."""
        if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
            raise self.refuse(value)
        try:
            value = float(value)
        except OverflowError:
            raise self.refuse(value) from None
        if self.n_bits == 32:
            with np.errstate(over="ignore"):
                narrow = float(np.float32(value))
            if np.isinf(narrow) and not np.isinf(value):
                raise DataError(f"{value} is beyond {self.name}")
            value = narrow
        return float_word(value)

    def to_value(self, word: int) -> float:
        """The float of these bits."""
        return word_float(word)

    def arrow(self) -> Any:
        """A float."""
        import pyarrow as pa

        return pa.float64() if self.n_bits == 64 else pa.float32()

    def words_of(self, column: Any) -> Ints:
        """As of float64."""
        return float_words(_numpy(column, f"f{self.n_bits // 8}").astype(np.float64))

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """From float64."""
        values = words_float(words)
        return _column(values.astype(f"f{self.n_bits // 8}"), is_null, self.arrow())


@dataclass(frozen=True)
class TextType(WordType):
    """Texts, or binaries: the number of the bytes in the dictionary of the process."""

    is_binary: bool = False

    is_text = True

    def to_word(self, value: Any) -> int:
        """A number, entered if it is new."""
        if self.is_binary and isinstance(value, (bytes, bytearray)):
            return TEXTS.number(bytes(value))
        if not self.is_binary and isinstance(value, str):
            try:
                return TEXTS.number(value.encode())
            except UnicodeEncodeError as error:
                raise DataError(f"{value!r} is no text of Unicode: {error.reason}") from None
        raise self.refuse(value)

    def to_value(self, word: int) -> str | bytes:
        """The text, or the bytes."""
        value: bytes = TEXTS.value(word)
        return value if self.is_binary else value.decode()

    def arrow(self) -> Any:
        """A string, or a binary."""
        import pyarrow as pa

        return pa.binary() if self.is_binary else pa.string()

    def words_of(self, column: Any) -> Ints:
        """A look into the dictionary for each distinct value."""
        import pyarrow as pa

        coded = column.cast(pa.binary()).dictionary_encode()
        numbers = np.array([0, *TEXTS.numbers(coded.dictionary.to_pylist())], np.int64)
        places = coded.indices.fill_null(-1) if coded.null_count else coded.indices
        words: Ints = numbers[_numpy(places, "i4") + 1]
        return words

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """By the distinct numbers."""
        import pyarrow as pa

        distinct, places = np.unique(words, return_inverse=True)
        values = pa.array(TEXTS.values(distinct.tolist()), pa.binary()).cast(self.arrow())
        return values.take(pa.array(places, pa.int64(), mask=is_null))


@dataclass(frozen=True)
class DateType(WordType):
    """Days since 1970-01-01."""

    def to_word(self, value: Any) -> int:
        """Days."""
        if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
            raise self.refuse(value)
        return value.toordinal() - _EPOCH_DAY

    def to_value(self, word: int) -> dt.date:
        """The day."""
        return dt.date.fromordinal(word + _EPOCH_DAY)

    def arrow(self) -> Any:
        """Days in 32 bits."""
        import pyarrow as pa

        return pa.date32()

    def words_of(self, column: Any) -> Ints:
        """By widening."""
        import pyarrow as pa

        days = column.cast(pa.int32())
        _refuse_beyond(days, FIRST_DAY, LAST_DAY, "days")
        return _numpy(days, "i4").astype(np.int64)

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """By narrowing."""
        import pyarrow as pa

        return _column(words.astype(np.int32), is_null, pa.int32()).cast(self.arrow())


@dataclass(frozen=True)
class TimestampType(WordType):
    """Microseconds since 1970-01-01, of a clock without a zone, or in UTC."""

    in_utc: bool = False

    def to_word(self, value: Any) -> int:
        """Microseconds."""
        if not isinstance(value, dt.datetime):
            raise self.refuse(value)
        if (value.tzinfo is not None) != self.in_utc:
            zone = "a zone" if self.in_utc else "no zone"
            raise DataError(f"{value!r} should have {zone}, as the column is {self.name}")
        word = (value - (_EPOCH_UTC if self.in_utc else _EPOCH)) // _MICROSECOND
        if not FIRST_TIME <= word <= LAST_TIME:
            raise DataError(f"{value!r} is beyond the years 1 to 9999 in UTC")
        return word

    def to_value(self, word: int) -> dt.datetime:
        """The time."""
        return (_EPOCH_UTC if self.in_utc else _EPOCH) + word * _MICROSECOND

    def arrow(self) -> Any:
        """Microseconds."""
        import pyarrow as pa

        return pa.timestamp("us", "UTC" if self.in_utc else None)

    def words_of(self, column: Any) -> Ints:
        """Microseconds."""
        import pyarrow as pa

        times = _cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64())
        _refuse_beyond(times, FIRST_TIME, LAST_TIME, "us")
        return _numpy(times, "i8")

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """Microseconds."""
        import pyarrow as pa

        return _column(words, is_null, pa.int64()).cast(self.arrow())


@dataclass(frozen=True)
class DurationType(WordType):
    """Microseconds."""

    def to_word(self, value: Any) -> int:
        """Microseconds."""
        if not isinstance(value, dt.timedelta):
            raise self.refuse(value)
        word = value // _MICROSECOND
        if not -_HIGHEST <= word < _HIGHEST:
            raise DataError(f"{value!r} is beyond {self.name}, which has 64 bits of microseconds")
        return word

    def to_value(self, word: int) -> dt.timedelta:
        """The duration."""
        return word * _MICROSECOND

    def arrow(self) -> Any:
        """Microseconds."""
        import pyarrow as pa

        return pa.duration("us")

    def words_of(self, column: Any) -> Ints:
        """Microseconds."""
        import pyarrow as pa

        return _numpy(_cast(column, pa.duration("us")).cast(pa.int64()), "i8")

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """Microseconds."""
        import pyarrow as pa

        return _column(words, is_null, pa.int64()).cast(self.arrow())


@dataclass(frozen=True)
class DecimalType(WordType):
    """Decimals of up to 18 digits: how many of the last one."""

    precision: int
    scale: int

    def to_word(self, value: Any) -> int:
        """The value times 10^scale."""
        if isinstance(value, bool) or not isinstance(value, (decimal.Decimal, int)):
            raise self.refuse(value)
        given = decimal.Decimal(value)
        if not given.is_finite():
            raise DataError(f"{value} is not finite, and {self.name} has no such value")
        try:
            exact = _EXACTLY.scaleb(given, self.scale)
        except decimal.DecimalException:
            raise DataError(f"{value} has more digits than {self.name}") from None
        if exact != exact.to_integral_value():
            raise DataError(f"{value} has more than the {self.scale} places of {self.name}")
        if exact.copy_abs() >= 10**self.precision:  # `abs` rounds
            raise DataError(f"{value} has more digits than {self.name}")
        return int(exact)

    def to_value(self, word: int) -> decimal.Decimal:
        """With `scale` places."""
        return _EXACTLY.scaleb(decimal.Decimal(word), -self.scale)

    def arrow(self) -> Any:
        """A decimal of 128 bits."""
        import pyarrow as pa

        return pa.decimal128(self.precision, self.scale)

    def words_of(self, column: Any) -> Ints:
        """The lower of both words."""
        _, data = column.cast(self.arrow()).buffers()
        if data is None or not len(column):
            return np.empty(0, np.int64)
        words = np.frombuffer(data, np.int64).reshape(-1, 2)
        return words[column.offset : column.offset + len(column), 0].copy()

    def column_of(self, words: Ints, is_null: npt.NDArray[np.bool_] | None) -> Any:
        """Both words, the second of which is the sign."""
        import pyarrow as pa

        wide: Any = np.ascontiguousarray(np.stack([words, words >> _SIGN], axis=1))
        validity = None if is_null is None else pa.array(~is_null).buffers()[1]
        buffers = [validity, pa.py_buffer(wide)]
        return pa.Array.from_buffers(self.arrow(), len(words), buffers)


LONG = IntegerType("long", 64)
DOUBLE = FloatType("double", 64)
BOOLEAN = BooleanType("boolean")
STRING = TextType("string")

_BY_NAME: dict[str, WordType] = {
    **dict.fromkeys(("long", "bigint"), LONG),
    **dict.fromkeys(("int", "integer"), IntegerType("int", 32)),
    **dict.fromkeys(("short", "smallint"), IntegerType("short", 16)),
    **dict.fromkeys(("byte", "tinyint"), IntegerType("byte", 8)),
    **{f"uint{bits}": IntegerType(f"uint{bits}", bits, signed=False) for bits in (8, 16, 32, 64)},
    "boolean": BOOLEAN,
    "double": DOUBLE,
    **dict.fromkeys(("float", "real"), FloatType("float", 32)),
    "string": STRING,
    "binary": TextType("binary", is_binary=True),
    "date": DateType("date"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), TimestampType("timestamp")),
    "timestamp_utc": TimestampType("timestamp_utc", in_utc=True),
    "duration": DurationType("duration"),
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def type_named(name: str) -> WordType:
    """The type of a name as in Spark's DDL.

    Raises
    ------
    SchemaError
        If there is none of that name, or it takes more than a word.

    >>> type_named("bigint").name, type_named("decimal(10, 2)").name
    ('long', 'decimal(10,2)')
    """
    name = name.strip().lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    matched = _DECIMAL.fullmatch(name)
    if matched is None:
        raise SchemaError(
            f"there is no type {name!r}; there are {', '.join(_BY_NAME)} and decimal(digits,places)"
        )
    return decimal_type(int(matched[1]), int(matched[2] or 0))


def decimal_type(precision: int, scale: int) -> DecimalType:
    """The type of decimals of so many digits, of which `scale` are behind the point.

    Raises
    ------
    SchemaError
        If it has more than 18 digits.
    """
    if not 1 <= precision <= MOST_DIGITS or not 0 <= scale <= precision:
        raise SchemaError(
            f"decimal({precision},{scale}) cannot be a column of a collection: 1 to "
            f"{MOST_DIGITS} digits can, of which none to all are behind the point"
        )
    return DecimalType(f"decimal({precision},{scale})", precision, scale)


def type_of_arrow(kind: Any) -> WordType:
    """The type of a `pyarrow.DataType`.

    Raises
    ------
    SchemaError
        If a collection has no such columns.
    """
    import pyarrow as pa

    if pa.types.is_decimal128(kind):
        return decimal_type(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return type_named("timestamp" if kind.tz is None else "timestamp_utc")
    found = _arrow_types().get(kind)
    if found is None:
        raise SchemaError(f"a collection has no columns of Arrow's type {kind}; cast it")
    return found


@cache  # it was a quarter of the time of a small batch of many columns
def _arrow_types() -> dict[Any, WordType]:
    import pyarrow as pa

    return {
        **{kind.arrow(): kind for kind in _BY_NAME.values()},
        pa.large_string(): STRING,
        pa.large_binary(): _BY_NAME["binary"],
        **{pa.duration(unit): _BY_NAME["duration"] for unit in ("s", "ms", "us")},
    }


def record_batch(fields: Sequence[tuple[str, WordType, bool]], columns: Sequence[Any]) -> Any:
    """A `pyarrow.RecordBatch` of columns; a field is a name, a type, and whether it may be null."""
    import pyarrow as pa

    schema = pa.schema([pa.field(name, kind.arrow(), null) for name, kind, null in fields])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_with(batch: Any, name: str, values: Ints) -> Any:
    """A `pyarrow.Table` of a record batch, with one more column of integers."""
    import pyarrow as pa

    return pa.Table.from_batches([batch]).append_column(name, pa.array(values))


def word_bounds(kind: WordType) -> tuple[int, int]:
    """The least and the greatest word of a type; all of 64 bits where nothing less is known.

    >>> word_bounds(type_named("short")), word_bounds(decimal_type(3, 1))
    ((-32768, 32767), (-999, 999))
    """
    if isinstance(kind, DateType):
        return FIRST_DAY, LAST_DAY
    if isinstance(kind, TimestampType):
        return FIRST_TIME, LAST_TIME
    if isinstance(kind, DecimalType):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    return kind.bounds or (-(1 << 63), (1 << 63) - 1)


def float_word(value: float) -> int:
    """The word of a float.

    >>> float_word(-1.0) < float_word(-0.0) == float_word(0.0) < float_word(float("nan"))
    True
    """
    if value != value:
        return _NAN_WORD
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return int(bits if bits >= 0 else bits ^ _BITS)


def word_float(word: int) -> float:
    """The float of a word.

    >>> [word_float(float_word(x)) for x in (1.5, -2.0)]
    [1.5, -2.0]
    """
    value: float
    (value,) = struct.unpack("<d", struct.pack("<q", word if word >= 0 else word ^ _BITS))
    return value


def float_words(values: npt.NDArray[np.float64]) -> Ints:
    """The words of float64[n], int64[n]."""
    bits = (values + 0.0).view(np.int64)
    words = np.where(bits < 0, bits ^ np.int64(_BITS), bits)
    words[np.isnan(values)] = _NAN_WORD
    return words


def words_float(words: Ints) -> npt.NDArray[np.float64]:
    """The floats of words, float64[n]."""
    return np.where(words < 0, words ^ np.int64(_BITS), words).view(np.float64)


def _numpy(column: Any, dtype: str) -> npt.NDArray[Any]:
    """The values of an Arrow array of fixed width, without a copy; of nulls anything."""
    _, data = column.buffers()
    if data is None or not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype)[column.offset : column.offset + len(column)]


def _cast(column: Any, kind: Any) -> Any:
    """To another unit of time; raises `DataError` where that has not all of the values."""
    import pyarrow as pa

    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(str(error)) from None


def _refuse_beyond(numbers: Any, first: int, last: int, unit: str) -> None:
    """Raise `DataError` for what Python's calendar has not; nulls are left out."""
    import pyarrow.compute as pc

    ends: Any = pc.min_max(numbers)
    for end in ends.as_py().values():
        if end is not None and not first <= end <= last:
            raise DataError(f"{end} {unit} since 1970-01-01 is beyond the years 1 to 9999")


def _column(values: npt.NDArray[Any], is_null: npt.NDArray[np.bool_] | None, kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(values, kind, mask=is_null)
