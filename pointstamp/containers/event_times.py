"""Event times of a batch as integers, and the bounds of windows put to its records.

There are two *scales*. On the scale of integers an event time is an integer in a unit of the
program's; Arrow's times are integers in their unit there. On the scale of the calendar it is
a `datetime`, a `timedelta` or an Arrow time, counted in whole microseconds since 1970, as
Python counts them: nanoseconds are rounded down. Either way the engines below windows compute
with int64, exactly, so that it is certain in which window a record is.

One operator has event times of one kind: naive and aware datetimes, or datetimes and
timedeltas, are in no common order, so a mixture is refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.kind import Key
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ColumnError, DataError, SchemaError

Ints = npt.NDArray[np.int64]
TimeOf = Callable[[Any], Any] | str

MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH = _EPOCH_UTC.replace(tzinfo=None)
_UNITS_US = {"s": 1_000_000, "ms": 1000, "us": 1}
_PER_US = {"ns": 1000, "ps": 10**6, "fs": 10**9, "as": 10**12}
_DAY_US = 86_400 * 1_000_000

INTEGER, NAIVE, AWARE, DURATION = "integers", "datetimes", "datetimes with a zone", "timedeltas"
"""The kinds of event times that rows may have; those of columns are their types."""


def kind_of_time(value: Any) -> str | None:
    """The kind of an event time that is a Python value; None for what is no time.

    >>> kind_of_time(datetime.timedelta(1)), kind_of_time(3), kind_of_time("noon")
    ('timedeltas', 'integers', None)
    """
    if isinstance(value, (datetime.datetime, datetime.timedelta)):
        if value != value:
            return None  # NaT of pandas, which is of these classes
        if isinstance(value, datetime.timedelta):
            return DURATION
        return NAIVE if value.utcoffset() is None else AWARE
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return INTEGER if is_integer else None


def to_number(value: Any) -> int:
    """An event time as the engines count it.

    >>> to_number(datetime.datetime(1970, 1, 1, 0, 0, 1)), to_number(7)
    (1000000, 7)
    """
    if isinstance(value, datetime.datetime):
        return (value - (_EPOCH if value.utcoffset() is None else _EPOCH_UTC)) // MICROSECOND
    if isinstance(value, datetime.timedelta):
        return value // MICROSECOND
    return int(value)


def from_number(number: int, kind: Any) -> Any:
    """The event time of that kind; the inverse of `to_number`.

    >>> from_number(1_000_000, NAIVE)
    datetime.datetime(1970, 1, 1, 0, 0, 1)
    """
    if kind == NAIVE:
        return _EPOCH + number * MICROSECOND
    if kind == AWARE:
        return _EPOCH_UTC + number * MICROSECOND
    return number * MICROSECOND if kind == DURATION else number


_INT64 = (-(2**63), 2**63 - 1)


def _ends(kind: Any) -> tuple[int, int]:
    """The first and the last time of the calendar of a kind, as a number."""
    if kind in (NAIVE, AWARE):
        utc = datetime.UTC
        ends = datetime.datetime.min.replace(tzinfo=utc), datetime.datetime.max.replace(tzinfo=utc)
        return to_number(ends[0]), to_number(ends[1])
    unit = np.datetime_data(kind)[0] if isinstance(kind, np.dtype) else getattr(kind, "unit", None)
    if unit not in _PER_US:
        return _INT64
    return _INT64[0] // _PER_US[unit] + 1, _INT64[1] // _PER_US[unit]


def _kinds_of(values: list[Any]) -> tuple[set[str | None], Any]:
    """The kinds of event times, by their types where those say it; and since when they count.

    None: they have to be counted one by one.
    """
    types = set(map(type, values))
    if types == {int}:
        return {INTEGER}, None
    if types == {datetime.timedelta}:
        return {DURATION}, datetime.timedelta(0)
    if types == {datetime.datetime}:
        zones = {value.tzinfo for value in values}
        if zones == {None}:
            return {NAIVE}, _EPOCH
        if zones == {datetime.UTC}:
            return {AWARE}, _EPOCH_UTC
    return {kind_of_time(value) for value in values}, None


class EventTimes:
    """Reads the event times of the batches of one operator, all of one kind.

    Parameters
    ----------
    time : callable, str, pyarrow.compute.Expression or None
        Of rows a function of a record; else a column, or an expression (of record batches).
        None: the caller says what they are.
    operator : str
        For messages.
    is_calendar : bool
        Which scale.
    resolution : int
        What the bounds of windows are multiples of; on the calendar's scale.
    outermost : callable, optional
        Gives the first start and the last end of the windows of all times from one to another.

    >>> EventTimes(lambda record: record[1], "an example").read([("a", 3), ("b", 5)])
    array([3, 5])
    """

    def __init__(
        self,
        time: Any,
        operator: str,
        *,
        is_calendar: bool = False,
        resolution: int = 1,
        outermost: Callable[[int, int], tuple[int, int]] = lambda first, last: (first, last),
    ) -> None:
        self.time = time
        self.kind: Any = None
        """Of the event times that were read: one of the above, or the type of a column."""
        self._operator = operator
        self._is_calendar = is_calendar
        self._resolution = resolution
        self._outermost = outermost

    def read(self, batch: Any) -> Ints:
        """The event time of each record, int64[n].

        Raises
        ------
        DataError
            If they are null, or not of the scale, or of another kind than those before; or if
            their kind has no times for the bounds of their windows.
        """
        kind, numbers = self._read(batch)
        if len(numbers):
            self.expect(kind)
            self._check_bounds(int(numbers.min()), int(numbers.max()))
        return numbers

    def of_clock(self, kind: Any, number: int, n: int) -> Ints:
        """The event times of `n` records that are all at one, that of a clock, int64[n].

        Raises
        ------
        DataError
            As of `read`.
        """
        self.expect(kind)
        self._check_bounds(number, number)
        return np.full(n, number, np.int64)

    def expect(self, kind: Any) -> None:
        """Note the kind of event times.

        Raises
        ------
        DataError
            If others were of another kind.
        """
        if self.kind is None:
            self.kind = kind
        elif kind != self.kind:
            raise DataError(
                f"{self._operator} was given event times that are {self.kind}, and then such as "
                f"are {kind}: these are in no common order; make all of them one kind"
            )

    def value(self, number: int) -> Any:
        """An event time or a window's bound as a Python value.

        Of columns on the calendar's scale it is a `datetime` or a `timedelta` too, in the zone
        of the column, or a NumPy value in microseconds where it is too far away for those.
        """
        if not self._is_calendar or isinstance(self.kind, str):
            return from_number(number, self.kind)
        if isinstance(self.kind, np.dtype):
            is_span, zone = self.kind.kind == "m", None
        else:
            is_span, zone = _is_duration(self.kind), getattr(self.kind, "tz", None)
        try:
            if zone is None:
                return from_number(number, DURATION if is_span else NAIVE)
            return _in_zone(number, zone)
        except OverflowError:
            return np.timedelta64(number, "us") if is_span else np.datetime64(number, "us")

    def with_bounds(self, batch: Any, starts: Ints, ends: Ints) -> Any:
        """`batch` with the columns `window_start` and `window_end`, of the type of its times.

        starts, ends : int64[n]
        """
        bounds = {"window_start": starts, "window_end": ends}
        kind = kind_of(batch)
        of_kind = self._of_type if kind.name == "columns" else self._of_dtype
        return kind.with_columns(batch, {name: of_kind(bound) for name, bound in bounds.items()})

    def _check_bounds(self, first: int, last: int) -> None:
        least, most = _ends(self.kind) if self._is_calendar else _INT64
        start, end = self._outermost(first, last)
        if start < least or end > most:
            outside = last if end > most else first
            raise DataError(
                f"{self._operator} was given the event time {self.value(outside)!r}, whose windows "
                "begin or end where its kind has no times any more: drop such records first"
            )

    def _read(self, batch: Any) -> tuple[Any, Ints]:
        found = kind_of(batch).column(batch, self.time, self._operator)
        if type(found) is list:
            return self._of_values(found)
        if type(found).__module__.partition(".")[0] == "pyarrow":
            return self._of_column(found)
        return self._of_array(np.asarray(found))

    def _of_values(self, values: list[Any]) -> tuple[Any, Ints]:
        if not values:
            return None, np.empty(0, np.int64)
        kinds, since = _kinds_of(values)
        if len(kinds) > 1 and None not in kinds:
            raise DataError(
                f"{self._operator} needs event times of one kind, and was given "
                f"{' and '.join(sorted(map(str, kinds)))} in one batch: make all of them one kind"
            )
        kind = None if None in kinds else kinds.pop()
        if kind is None or (kind == INTEGER) == self._is_calendar:
            bad = next(v for v in values if kind_of_time(v) is None or kind is not None)
            raise self._no_time(type(bad).__name__, bad, kind)
        if kind == INTEGER and (found := np.asarray(values)).dtype.kind in "iu":
            return self._of_array(found)
        if since is None:
            counted = list(map(to_number, values))
        else:
            counted = [(value - since) // MICROSECOND for value in values]
        if not _INT64[0] <= min(counted) <= max(counted) <= _INT64[1]:
            unit = "" if kind == INTEGER else " in microseconds,"
            raise DataError(
                f"{self._operator} counts event times{unit} in 63 bits; some do not fit"
            )
        return kind, np.array(counted, np.int64)

    def _of_array(self, values: npt.NDArray[Any]) -> tuple[Any, Ints]:
        if values.dtype.kind in "mM":
            if np.isnat(values).any():
                n_nat = int(np.isnat(values).sum())
                raise DataError(
                    f"{self._operator} needs an event time for every record; {n_nat} of "
                    f"{len(values)} are not a time: drop those records first"
                )
            values = values.astype(values.dtype.newbyteorder("="), copy=False)
            in_unit = self._array_in_us(values) if self._is_calendar else values
            return values.dtype, in_unit.view(np.int64)
        if values.dtype.kind not in "iu" or self._is_calendar:
            first = values.ravel()[0].item() if values.size else None
            raise self._no_time(
                str(values.dtype), first, INTEGER if values.dtype.kind in "iu" else ""
            )
        if values.dtype == np.uint64 and len(values) and values.max() > np.iinfo(np.int64).max:
            raise DataError(
                f"{self._operator} needs event times below 2^63; the largest is {values.max()}"
            )
        return INTEGER, values.astype(np.int64, copy=False)

    def _of_column(self, column: Any) -> tuple[Any, Ints]:
        import pyarrow as pa

        from pointstamp.containers.convert import numbers

        kind = column.type
        if column.null_count:
            raise DataError(
                f"{self._operator} needs an event time for every record; {column.null_count} of "
                f"{len(column)} are null: drop those records first"
            )
        if pa.types.is_integer(kind):
            return self._of_array(numbers(column))
        is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
        if not is_time or (self._is_calendar and pa.types.is_time(kind)):
            raise DataError(
                f"{self._operator} needs integers or times as event times, not {kind}"
                + ("; a time of day has no date" if is_time else "")
                + ("; cast it to a timestamp before" if pa.types.is_string(kind) else "")
            )
        values = numbers(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
        values = values.astype(np.int64, copy=False)
        return kind, self._in_us(values, kind) if self._is_calendar else values

    def _array_in_us(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        is_coarse = np.datetime_data(values.dtype)[0] not in _PER_US
        try:
            in_us = values.astype(f"{values.dtype.kind}8[us]", copy=False)
        except OverflowError:
            raise self._too_far(values.dtype) from None
        # Before 2.5 NumPy had times that do not fit begin again at the other end.
        if is_coarse and (in_us.astype(values.dtype, copy=False) != values).any():
            raise self._too_far(values.dtype)
        return in_us

    def _in_us(self, values: Ints, kind: Any) -> Ints:
        factor = unit_us(kind)
        if factor is None:
            return values // 1000
        if len(values) and max(-int(values.min()), int(values.max())) > 2**62 // factor:
            raise self._too_far(kind)
        return values * factor

    def _too_far(self, kind: Any) -> DataError:
        return DataError(
            f"{self._operator} counts event times in microseconds, in 63 bits; some of type "
            f"{kind} do not fit"
        )

    def _of_type(self, bounds: Ints) -> Any:
        """Bounds as an Arrow column of the kind of the event times, where that can say them."""
        import pyarrow as pa

        from pointstamp.containers.convert import arrow_array

        kind = self.kind
        if not isinstance(kind, pa.DataType):
            return arrow_array(self._of_dtype(bounds))
        if self._is_calendar:
            factor = unit_us(kind)
            if factor is None:
                bounds = bounds * 1000
            elif self._resolution % (_DAY_US if pa.types.is_date(kind) else factor):
                kind = _with_us(kind)
            else:
                bounds = bounds // factor
        column = arrow_array(bounds)
        return column.cast(pa.int32()).view(kind) if kind.bit_width == 32 else column.view(kind)

    def _of_dtype(self, bounds: Ints) -> Any:
        kind = self.kind
        if not isinstance(kind, np.dtype):
            return bounds
        if not self._is_calendar:
            return bounds.view(kind)
        in_us = bounds.view(f"{kind.kind}8[us]")
        if np.datetime_data(kind)[0] in ("Y", "M"):
            return in_us  # they are of no length
        unit: Any = np.ones(1, f"m8{kind.str[3:]}")[0]
        is_coarse = unit > np.timedelta64(self._resolution, "us") or (
            np.timedelta64(self._resolution, "us") % unit != np.timedelta64(0, "us")
        )
        return in_us if is_coarse else in_us.astype(kind)

    def _no_time(self, type_name: str, value: Any, kind: str | None) -> DataError:
        if self._is_calendar:
            wanted = "datetimes or timedeltas (its windows are of timedelta)"
            advice = "give its sizes as integers" if kind == INTEGER else "make times of them"
        else:
            wanted = "integers"
            has_times = kind in (NAIVE, AWARE, DURATION)
            advice = (
                "give the sizes of its windows as timedelta"
                if has_times
                else "count in a unit that is small enough"
            )
        return DataError(
            f"{self._operator} needs {wanted} as event times, and was given {type_name}, such as "
            f"{value!r}; {advice}"
        )


def unit_us(kind: Any) -> int | None:
    """How many microseconds the unit of an Arrow time is; None for nanoseconds."""
    import pyarrow as pa

    if pa.types.is_date32(kind):
        return _DAY_US
    return 1000 if pa.types.is_date64(kind) else _UNITS_US.get(kind.unit)


def _is_duration(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_duration(kind))


def _in_zone(number: int, zone: str) -> Any:
    """A time in microseconds as a `datetime` in a zone of Arrow's."""
    import pyarrow as pa

    return pa.scalar(number, pa.timestamp("us", zone)).as_py()


def _with_us(kind: Any) -> Any:
    """The type of such times in microseconds."""
    import pyarrow as pa

    if _is_duration(kind):
        return pa.duration("us")
    return pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None)


def group_numbers(batch: Any, key: Key, operator: str) -> Ints:
    """A number for each record, int64[n]: equal if and only if the keys are."""
    kind = kind_of(batch)
    n_records = kind.length(batch)
    if key is None:
        return np.zeros(n_records, np.int64)
    if callable(key):
        if kind.has_columns:
            raise ColumnError(
                f"{operator} is given the function {key!r} as a key, and the stream carries "
                f"{kind.called()}: name a column, or several"
            )
        known: dict[Any, int] = {}
        keys = kind.keys(batch, key, operator)
        return np.array([known.setdefault(of, len(known)) for of in keys], np.int64)
    groups = np.zeros(n_records, np.int64)
    for name in [key] if isinstance(key, str) else key:
        numbers = _numbered(kind.column(batch, name, operator), name, operator)
        if groups.any():
            # Dense again after each column, or the products would not fit.
            numbers += groups * (int(numbers.max()) + 1)
            numbers = np.unique(numbers, return_inverse=True)[1]
        groups = numbers.astype(np.int64, copy=False)
    return groups


def _numbered(column: Any, name: str, operator: str) -> Ints:
    """The values of a column by number; a null is a value."""
    if type(column) is list:
        column = np.array(column)
    if isinstance(column, np.ndarray):
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    import pyarrow as pa

    from pointstamp.containers.convert import numbers, one_zero

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        indices = one_zero(column).dictionary_encode(null_encoding="encode").indices
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(
            f"{operator} cannot group by the column {name!r} of type {column.type}; make numbers, "
            "texts or times of it"
        ) from error
    return numbers(indices).astype(np.int64)


def keys_of(batch: Any, key: Key) -> list[Any]:
    """The key of each record: None without one, a tuple where it has several columns."""
    kind = kind_of(batch)
    return [None] * kind.length(batch) if key is None else kind.keys(batch, key, "a key")
