"""Operators that turn each record, or batch, into others at once: map, filter and their kin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, Unpack, overload

from pointstamp.containers.registry import n_records, parts_of
from pointstamp.dataflow.error_policy import FAILED, ErrorPolicy, Failed, OnError, Routed, Unrouted
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.operators.transform import (
    each_batch,
    each_record,
    is_of_columns,
    kept,
    rows,
    transform,
    try_transform,
)
from pointstamp.operators.user_code import (
    check_callable,
    check_function,
    check_iterable,
    check_takes,
    is_async,
    refuse_generator,
)
from pointstamp.operators.validation import guarded_columns

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream
    from pointstamp.operators.transform import Predicate


U = TypeVar("U")


class Awaited(Unrouted, total=False):
    """What operators take by name whose code may be `async def`, in types."""

    concurrency: int | None


class AwaitedRouted(Routed):
    """The same where failures are a stream."""

    concurrency: NotRequired[int | None]


class MapMethods(StreamCore[T]):
    """Operators that turn each record, or each batch, into others at once. Methods of `Stream`."""

    @overload
    def map(
        self, function: Callable[[T], Coroutine[Any, Any, U]], **options: Unpack[AwaitedRouted]
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def map(
        self, function: Callable[[T], Coroutine[Any, Any, U]], **options: Unpack[Awaited]
    ) -> Stream[U]: ...

    @overload
    def map(
        self, function: Callable[[T], U], **options: Unpack[Routed]
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def map(self, function: Callable[[T], U], **options: Unpack[Unrouted]) -> Stream[U]: ...

    def map(
        self,
        function: Callable[[T], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
        name: str = "Map",
    ) -> Any:
        """Replace each record by `function(record)`.

        Parameters
        ----------
        function : callable
            Of a record. With an `async def` many records wait at the same time, in the
            worker's event loop, while the worker goes on; in which order, within a time,
            results are sent is then up to it. When the dataflow ends early it is cancelled.
        on_error : {"raise", "route", "drop"}
            Where `function` raises: stop everything (`OperatorError`); send the record and
            the error on a second stream, as a `Failed`; or leave the record out, and count
            it in `Worker.dropped`. `KeyboardInterrupt` and `SystemExit` always stop.
        concurrency : int, optional
            How many calls of an `async def` may be under way on each worker (64). With it,
            `function` may be anything that returns what can be awaited.
        name : str
            Of the operator: in errors, logs, explanations and checkpoints. All have it.

        Returns
        -------
        Stream, or a pair of streams
            With "route", (results, failures).

        Examples
        --------
        >>> import pointstamp as ps
        >>> seen = ps.testing.collect(lambda scope: scope.to_stream([1, 2]).map(lambda x: x + 1))
        >>> seen
        [(0, 2), (0, 3)]
        >>> def failures(scope):
        ...     numbers, failed = scope.to_stream(["1", "one"]).map(int, on_error="route")
        ...     return failed.map(lambda f: (f.record, f.operator, type(f.error).__name__))
        >>> ps.testing.collect(failures)
        [(0, ('one', 'Map', 'ValueError'))]
        >>> async def double(x):
        ...     return 2 * x
        >>> ps.testing.collect(lambda scope: scope.to_stream([1, 2]).map(double, concurrency=2))
        [(0, 2), (0, 4)]
        """
        check_callable(function, name)
        check_takes(function, name, "record")
        refuse_generator(function, name, "flat_map sends each of what it yields")
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        if concurrency is not None or is_async(function):
            # Not at the top: it imports asyncio.
            from pointstamp.operators import asynchronous as awaited

            return awaited.transform(self, name, function, awaited.BY_RECORD, policy, concurrency)
        if policy.raises:
            return each_record(self, name, function)
        attempt = policy.guard(function)
        return try_transform(
            self, name, lambda time, batch: _good(map(attempt, rows(batch, name))), policy
        )

    @overload
    def flat_map(
        self,
        function: Callable[[T], Iterable[U] | Coroutine[Any, Any, Iterable[U]] | AsyncIterator[U]],
        **options: Unpack[AwaitedRouted],
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[T], Iterable[U] | Coroutine[Any, Any, Iterable[U]] | AsyncIterator[U]],
        **options: Unpack[Awaited],
    ) -> Stream[U]: ...

    def flat_map(
        self,
        function: Callable[[T], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
        name: str = "FlatMap",
    ) -> Any:
        """Replace each record by the records of `function(record)`.

        The parameters are those of `map`. An `async def` may return an iterable or be an
        asynchronous generator. A record gives all of its results, or none if that fails.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([2, 0, 1]).flat_map(range))
        [(0, 0), (0, 0), (0, 1)]
        >>> async def countdown(n):
        ...     for i in range(n, 0, -1):
        ...         yield i
        >>> ps.testing.collect(lambda scope: scope.to_stream([2]).flat_map(countdown))
        [(0, 1), (0, 2)]
        """
        check_callable(function, name)
        check_takes(function, name, "record")
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        if concurrency is not None or is_async(function):
            # Not at the top: it imports asyncio.
            from pointstamp.operators import asynchronous as awaited

            return awaited.transform(
                self, name, function, awaited.BY_RECORD_TO_MANY, policy, concurrency
            )
        if policy.raises:
            return transform(self, name, lambda time, batch: _all_of(function, rows(batch, name)))
        # A list first: what an iterator gave before it failed must not be among the results.
        attempt = policy.guard(lambda record: _all_of(function, (record,)))
        return try_transform(
            self,
            name,
            lambda time, batch: list(chain.from_iterable(_good(map(attempt, rows(batch, name))))),
            policy,
        )

    @overload
    def filter(
        self, predicate: Predicate[T], **options: Unpack[Routed]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def filter(self, predicate: Predicate[T], **options: Unpack[Unrouted]) -> Stream[T]: ...

    def filter(self, predicate: Any, *, on_error: OnError = "raise", name: str = "Filter") -> Any:
        """Keep the records for which `predicate` is true.

        Parameters
        ----------
        predicate : callable, str or pyarrow.compute.Expression
            On rows a function of the record; on columns the name of a column of
            booleans, or an expression (of record batches). Records for which it is
            null are not kept.
        on_error : {"raise", "route", "drop"}
            As for `map`; an expression fails for the whole batch.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([1, 2, 3]).filter(lambda x: x > 1))
        [(0, 2), (0, 3)]
        """
        check_function(predicate, name, or_columns=True)
        check_takes(predicate, name, "record")
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        if is_of_columns(predicate):
            keep = guarded_columns(policy, lambda batch: kept(batch, predicate, name), predicate)
            return try_transform(self, name, lambda time, batch: keep(batch), policy)
        if policy.raises:
            return transform(
                self, name, lambda time, batch: [x for x in rows(batch, name) if predicate(x)]
            )
        attempt = policy.guard(lambda record: bool(predicate(record)))
        return try_transform(
            self,
            name,
            lambda time, batch: [x for x in rows(batch, name) if attempt(x) is True],
            policy,
        )

    @overload
    def map_batches(
        self, function: Callable[[Any], Any], **options: Unpack[AwaitedRouted]
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def map_batches(
        self, function: Callable[[Any], Any], **options: Unpack[Awaited]
    ) -> Stream[Any]: ...

    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
        name: str = "MapBatches",
    ) -> Any:
        """Replace each batch by `function(batch)`; drop it if that is None.

        The function gives a container (a list, a record batch), a `pyarrow.Table` or a data frame
        of pandas or polars. The parameters are those of `map`; what fails is a batch, as the
        one record of a `Failed`, and "drop" counts its records.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([3, 1]).map_batches(sorted))
        [(0, 1), (0, 3)]
        """
        check_callable(function, name)
        check_takes(function, name, "batch")
        policy = ErrorPolicy(self.scope.environment, name, on_error)
        if concurrency is not None or is_async(function):
            # Not at the top: it imports asyncio.
            from pointstamp.operators import asynchronous as awaited

            return awaited.transform(self, name, function, awaited.BY_BATCH, policy, concurrency)
        if policy.raises:
            return each_batch(self, name, function)
        attempt = policy.guard(lambda batch: parts_of(function(batch)), n_records=n_records)
        return try_transform(
            self, name, lambda time, batch: attempt(batch), policy, gives_parts=True
        )


def _all_of(function: Callable[[Any], Any], records: Iterable[Any]) -> list[Any]:
    """What the function gives of each record, one after the other."""
    found: list[Any] = []
    for record in records:
        made = function(record)
        try:
            found.extend(made)  # and not `+=`, which is an addition to what is an array
        except TypeError:
            check_iterable(made, function, record)
            raise
    return found


def _good(results: Iterable[Any]) -> list[Any]:
    """Those that did not fail."""
    return [result for result in results if result is not FAILED]
