"""Windows of event time: the records, counts, folds and joins of each window.

All of them have the same parameters and answer alike: the results of windows, then the records
that were late, as they came. When a window is complete is said in `event_clock.py`, which records
are in it in `window_assigners.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, overload

from pointstamp.containers import kind_of
from pointstamp.containers.batch_join import How, check_how, check_join_keys
from pointstamp.containers.event_times import EventTimes
from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.dataflow.error_policy import ErrorPolicy, Failed, OnError, Routed, Unrouted
from pointstamp.dataflow.several_streams import several
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.event_clock import EventClock, TimestampClock
from pointstamp.operators.row_folds import Nothing
from pointstamp.operators.split_merge import concatenate
from pointstamp.operators.user_code import check_function, check_takes, refuse_deferred_of
from pointstamp.operators.validation import validated
from pointstamp.operators.window_assigners import (
    Sessions,
    Sliding,
    Span,
    Window,
    WindowResult,
)
from pointstamp.operators.window_functions import (
    AggregatedColumns,
    AggregatedRows,
    Collect,
    Combined,
    CountColumns,
    Fold,
    Join,
    RowsOnly,
    refuse_rows,
)
from pointstamp.operators.window_operator import Side, check_windows, windowed

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

K = TypeVar("K")
U = TypeVar("U")
V = TypeVar("V")

Windows: TypeAlias = Sliding | Sessions
AnyClock: TypeAlias = TimestampClock | EventClock
KeyOf: TypeAlias = Callable[[T], K]


class WindowMethods(StreamCore[T]):
    """Windows of event time. Methods of `Stream`."""

    @overload
    def window(
        self,
        windows: Windows,
        time: Any,
        key: KeyOf[T, K],
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[Window[K, T]], Stream[T]]: ...

    @overload
    def window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[Any], Stream[T], Stream[Failed[T]]]: ...

    @overload
    def window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[Any], Stream[T]]: ...

    def window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        on_error: OnError = "raise",
        name: str = "Window",
    ) -> Any:
        """Assign records to event-time windows; complete windows, and a stream of late records.

        Event times are integers, or, where the sizes of windows are timedeltas, times of the
        calendar. An event clock says how far event time has come. A record that lies more than
        `lateness` behind it is late, and is in no window. A window `[start, end)` is complete,
        and released, when the clock is at `end + lateness`; all that are open are at the end of
        the input. Timestamps that are not in one line, as in a loop, are refused.

        Parameters
        ----------
        windows : Tumbling, Sliding or Sessions
            `pointstamp.Tumbling(size)`, for one; sizes are integers or timedeltas.
        time : callable, str or pyarrow.compute.Expression, optional
            Event times: on rows a function of the record, on columns a column's name, or an
            expression (of record batches). They are integers (Arrow times count as integers in
            their unit), or for windows of timedelta a `datetime` or `timedelta`, or Arrow
            timestamps, dates or durations, counted in microseconds. The default is the
            timestamp.
        key : callable, str, or sequence of str, optional
            Windows are of records of equal key, as for `exchange`; without one, all
            records are together, on one worker.
        lateness : int or datetime.timedelta
            How far a record may lie behind the clock.
        clock : TimestampClock or EventClock, optional
            What advances event time. For windows of integers the default is that timestamps are
            event times, and a window is released at the timestamp `end + lateness`; for
            windows of timedelta it is `EventClock()`: the records advance it.
        on_error : {"raise", "route", "drop"}
            As for `map`, where `time` or `key` fails or does not fit; with "route" a third
            stream has the failures.
        name : str
            Of the operator.

        Returns
        -------
        (Stream, Stream)
            Of rows, a stream of `Window(key, start, end, records)`. Of columns, one of
            the records with the columns `window_start` and `window_end`, in which all
            windows that are released together are one batch (with each key's records
            anywhere in it). And the late records as they came.

        Examples
        --------
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     done, late = scope.to_stream([3, 12, 14]).window(ps.Tumbling(10), time=lambda x: x)
        ...     return done
        >>> for time, window in ps.testing.collect(build):
        ...     print(time, window)
        10 Window(key=None, start=0, end=10, records=[3])
        20 Window(key=None, start=10, end=20, records=[12, 14])

        Times of the calendar; the records advance the clock:

        >>> from datetime import datetime, timedelta
        >>> def build(scope):
        ...     clicks = scope.to_stream([("ann", datetime(2026, 1, 1, 9, 30))])
        ...     return clicks.window(ps.Tumbling(timedelta(hours=1)), time=lambda c: c[1])[0]
        >>> [(_, window)] = ps.testing.collect(build)
        >>> print(window.start, window.end)
        2026-01-01 09:00:00 2026-01-01 10:00:00
        """
        made = _Made(windows, lateness, clock, on_error, name)
        good = made.side(self, time, key)
        return made.of([good], Collect(key))

    @overload
    def count_window(
        self,
        windows: Windows,
        time: Any,
        key: KeyOf[T, K],
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[WindowResult[K, int]], Stream[T]]: ...

    @overload
    def count_window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[Any], Stream[T], Stream[Failed[T]]]: ...

    @overload
    def count_window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[Any], Stream[T]]: ...

    def count_window(
        self,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        on_error: OnError = "raise",
        name: str = "CountWindow",
    ) -> Any:
        """Count the records of each event-time window, and key, if there is one.

        The parameters, and the stream of late records, are those of `window`. Of a window only
        the counts are kept.

        Returns
        -------
        (Stream, Stream)
            Of rows, a stream of `WindowResult(key, start, end, value)`. Of columns, one of the
            columns of the key, `count`, `window_start` and `window_end`. And the late records.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream([("a", 1), ("b", 2), ("a", 3)])
        ...     return words.count_window(ps.Tumbling(10), lambda w: w[1], lambda w: w[0])[0]
        >>> for time, (key, start, end, count) in ps.testing.collect(build):
        ...     print(time, key, start, end, count)
        10 a 0 10 2
        10 b 0 10 1
        """
        made = _Made(windows, lateness, clock, on_error, name)
        good = made.side(self, time, key)
        rows = AggregatedRows(key, lambda record: 1, add)
        return made.of([good], Combined(rows, CountColumns(key, name), "counts"))

    @overload
    def fold_window(
        self,
        fold: Callable[[K, T, V], V],
        windows: Windows,
        time: Any,
        key: KeyOf[T, K],
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        default: V,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[WindowResult[K, V]], Stream[T]]: ...

    @overload
    def fold_window(
        self,
        fold: Any,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        default: Any = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[Any], Stream[T], Stream[Failed[Any]]]: ...

    @overload
    def fold_window(
        self,
        fold: Any,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        default: Any = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[Any], Stream[T]]: ...

    def fold_window(
        self,
        fold: Any,
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        default: Any = None,
        on_error: OnError = "raise",
        name: str = "FoldWindow",
    ) -> Any:
        """Fold the records of each event-time window, and key, if there is one.

        The other parameters, and the stream of late records, are those of `window`.

        Parameters
        ----------
        fold : callable, or sequence of (column, function)
            `fold(key, record, value)` gives the new value. The records of a window come in the
            order of their event times. On columns it is called once for each key and window,
            with all its records as a batch, in that order; there it may also be a list of
            aggregates by name, as for `aggregate`.
        default
            What each value starts from; a copy of it.
        on_error : {"raise", "route", "drop"}
            As for `window`, and where `fold` fails: the value stays as it was before that
            record (unless it was changed in place); of those alone nothing is sent.

        Returns
        -------
        (Stream, Stream)
            A stream of `WindowResult(key, start, end, value)`; of aggregates by name, one of the
            columns of the key, `{column}_{function}` for each, `window_start` and `window_end`.
            And the late records.

        Notes
        -----
        Records are kept until their window is complete, but for aggregates by name of which
        parts can be combined, as sums can. Where a fold needs no order, `reduce_window` keeps
        less.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream([("c", 7), ("a", 1), ("b", 12)])
        ...     text = lambda key, word, text: text + word[0]
        ...     return words.fold_window(text, ps.Tumbling(10), lambda w: w[1], default="")[0]
        >>> for time, window in ps.testing.collect(build):
        ...     print(time, window.start, window.value)
        10 0 ac
        20 10 b
        """
        refuse_deferred_of(name, fold)
        check_takes(fold, name, "key", "record", "value")
        made = _Made(windows, lateness, clock, on_error, name)
        good = made.side(self, time, key)
        if not callable(fold):
            from pointstamp.containers.arrow_groups import check_aggregates

            check_aggregates(fold, name)
            if callable(key):
                raise BuildError(
                    f"{name}: named aggregates {fold!r} are of columns; name those of the key "
                    f"instead of {key!r}, or give a function fold(key, record, value)"
                )
            by_name = AggregatedColumns(key, list(fold), name)
            no_rows = refuse_rows(name)
            rows = AggregatedRows(key, no_rows, no_rows)
            return made.of([good], Combined(rows, by_name, by_name.stored))
        return made.of_fold([good], key, fold, default)

    @overload
    def reduce_window(
        self,
        function: Callable[[T, T], T],
        windows: Windows,
        time: Any,
        key: KeyOf[T, K],
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[WindowResult[K, T]], Stream[T]]: ...

    @overload
    def reduce_window(
        self,
        function: Callable[[T, T], T],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[WindowResult[Any, T]], Stream[T], Stream[Failed[T]]]: ...

    @overload
    def reduce_window(
        self,
        function: Callable[[T, T], T],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[WindowResult[Any, T]], Stream[T]]: ...

    def reduce_window(
        self,
        function: Callable[[T, T], T],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        on_error: OnError = "raise",
        name: str = "ReduceWindow",
    ) -> Any:
        """Reduce the records of each event-time window, and key, by `function(record, record)`.

        `function` is associative and commutative: records come in any order, and of a window
        only what they come to is kept. The other parameters, and the stream of late records, are
        those of `window`. For columns there is `fold_window` with aggregates by name.

        Parameters
        ----------
        on_error : {"raise", "route", "drop"}
            As for `fold_window`; other than with "raise" the records are kept.

        Returns
        -------
        (Stream, Stream)
            A stream of `WindowResult(key, start, end, value)`, and the late records.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream([3, 12, 14])
        ...     return numbers.reduce_window(max, ps.Tumbling(10), lambda x: x)[0]
        >>> [(window.start, window.value) for _, window in ps.testing.collect(build)]
        [(0, 3), (10, 14)]
        """
        refuse_deferred_of(name, function)
        check_takes(function, name, "value", "record")
        made = _Made(windows, lateness, clock, on_error, name)
        good = made.side(self, time, key)
        if on_error != "raise":

            def fold(of: Any, record: T, value: Any) -> T:
                return record if value is Nothing else function(value, record)

            return made.of_fold([good], key, fold, Nothing)
        columns = RowsOnly(name, "use fold_window, with aggregates by name")
        rows = AggregatedRows(key, lambda record: record, function)
        return made.of([good], Combined(rows, columns, "values"))

    @overload
    def join_window(
        self,
        other: Stream[U],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        other_time: Any = None,
        other_key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        how: How = "inner",
        schemas: tuple[Any, Any] = (None, None),
        **options: Unpack[Routed],
    ) -> tuple[Stream[Any], Stream[T], Stream[U], Stream[Failed[Any]]]: ...

    @overload
    def join_window(
        self,
        other: Stream[U],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        other_time: Any = None,
        other_key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        how: How = "inner",
        schemas: tuple[Any, Any] = (None, None),
        **options: Unpack[Unrouted],
    ) -> tuple[Stream[Any], Stream[T], Stream[U]]: ...

    def join_window(
        self,
        other: Stream[U],
        windows: Windows,
        time: Any = None,
        key: Key = None,
        other_time: Any = None,
        other_key: Key = None,
        lateness: Span = 0,
        clock: AnyClock | None = None,
        *,
        how: How = "inner",
        schemas: tuple[Any, Any] = (None, None),
        on_error: OnError = "raise",
        name: str = "JoinWindow",
    ) -> Any:
        """Join with `other` on equal keys within the same event-time window.

        A session is of the records of both streams. The other parameters are those of `window`.

        Parameters
        ----------
        key : callable, str, or sequence of str, optional
            As for `join`: without one, rows join where they are equal as a whole, and columns
            are refused. A session without a key is of all records.
        other_time, other_key : optional
            Of the other stream; the default is what is given for this one.
        how : {"inner", "left", "right", "full", "semi", "anti"}
            As for `join`.
        schemas : tuple of (pyarrow.Schema or None), optional
            As for `join`.

        Raises
        ------
        BuildError
            As for `join`.
        ColumnError, SchemaError
            With the first batch that cannot be joined: of columns, and the key names none; of
            rows, and the other stream of columns; or with keys of another type.

        Returns
        -------
        (Stream, Stream, Stream)
            Of rows, a stream of `WindowResult(key, start, end, pair)` (of "semi" and "anti" the
            record of this stream in place of the pair); of columns, one of the columns that
            `join` gives, `window_start` and `window_end`. The late records of this stream,
            and those of the other one.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     ads = scope.to_stream([("ann", 1), ("bob", 2), ("ann", 15)])
        ...     clicks = scope.to_stream([("ann", 4), ("bob", 17)])
        ...     time, user = lambda record: record[1], lambda record: record[0]
        ...     return ads.join_window(clicks, ps.Tumbling(10), time, user)[0]
        >>> [(window.start, window.value) for _, window in ps.testing.collect(build)]
        [(0, (('ann', 1), ('ann', 4)))]
        """
        check_how(how, name)
        made = _Made(windows, lateness, clock, on_error, name)
        keys = (key, key if other_key is None else other_key)
        refuse_deferred_of(name, *keys)
        check_join_keys(keys, schemas, name)
        left = made.side(self, time, keys[0])
        right = made.side(other, time if other_time is None else other_time, keys[1])
        return made.of([left, right], Join(keys, how, schemas))


_FOLD = "of the records of each window fold_window makes aggregates, in place of window"
_OF_EACH_WINDOW = {
    "count": "count_window counts the records of each window, in place of window",
    "aggregate": _FOLD,
    "agg": _FOLD,
    "fold": _FOLD,
    "sum": _FOLD,
    "reduce": "reduce_window reduces the records of each window, in place of window",
    "join": "join_window joins those of each window, in place of window",
}
"""What is called in place of `window` and then a method that would be of a window's records."""


class _Made:
    """What all kinds of windows have in common: their parameters, and where failures go."""

    def __init__(
        self,
        windows: Windows,
        lateness: Span,
        clock: AnyClock | None,
        on_error: OnError,
        name: str,
    ) -> None:
        check_windows(windows, name)
        self._windows = windows
        self._lateness = lateness
        self._clock = clock
        self._on_error = on_error
        self._name = name
        self._failed: list[Stream[Any]] = []

    def side(self, stream: StreamCore[Any], time: Any, key: Key) -> Side:
        """The records of a stream that have an event time and a key."""
        name, windows = self._name, self._windows
        if time is not None:
            check_function(time, name, or_columns=True)
        refuse_deferred_of(name, key)
        check_key(key, name)

        def check(batch: Any) -> None:
            if time is not None:
                EventTimes(
                    time, name, is_calendar=windows.is_calendar, outermost=windows.outermost
                ).read(batch)
            if key is not None:
                kind_of(batch).hashes(batch, key)

        good, *failed = validated(stream, name, check, self._on_error, chosen=[time, key])
        self._failed += failed
        return Side(good, time, key)

    def of(self, sides: list[Side], function: Any) -> Any:
        """The results, the late records of each side, and what failed if it is routed."""
        results, late = windowed(
            sides, self._windows, self._lateness, self._clock, function, self._name
        )
        return self._with_failed(results, late)

    def of_fold(self, sides: list[Side], key: Any, fold: Any, default: Any) -> Any:
        """The same of a fold, which may fail for a record."""
        policy = ErrorPolicy(sides[0].stream.scope.environment, self._name, self._on_error)
        if policy.raises:
            return self.of(sides, Fold(key, fold, default, self._name))
        function = Fold(key, fold, default, self._name, policy)
        results, late = windowed(
            sides, self._windows, self._lateness, self._clock, function, self._name
        )
        if policy.routes:
            results, failed = results.branch(_is_failed)
            self._failed.append(failed)
        return self._with_failed(results, late)

    def _with_failed(self, results: Any, late: Sequence[Any]) -> Any:
        names = ["windows", *("late", "late_of_other")[: len(late)]]
        if not self._failed:
            return several((results, *late), names, instead=_OF_EACH_WINDOW)
        failed = self._failed
        all_failed = failed[0] if len(failed) == 1 else concatenate(failed)
        made = (results, *late, all_failed)
        return several(made, [*names, "failed"], instead=_OF_EACH_WINDOW)


def _is_failed(record: Any) -> bool:
    return isinstance(record, Failed)
