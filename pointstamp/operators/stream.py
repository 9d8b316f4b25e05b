"""Streams: what flows from one operator's output to the inputs of others.

A stream belongs to a scope and has no data of its own; its methods add operators
that read it. Each is a call of a function in `operators`, and can be done by
other code in the same way.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from importlib import import_module
from operator import add
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.error_policy import Failed, OnError
from pointstamp.dataflow.handles import Input
from pointstamp.dataflow.pact import Broadcast, Distribute, Exchange, Pact
from pointstamp.formats.events import Events
from pointstamp.operators import capture as capturing
from pointstamp.operators import command as commands
from pointstamp.operators import (
    counting,
    delays,
    errors_as_data,
    errors_in_state,
    generic,
    grouping,
    routing,
    split_merge,
    stateless,
    stream_joins,
)
from pointstamp.operators import iterate as iterates
from pointstamp.operators import probe as probes
from pointstamp.operators import sink as sinks
from pointstamp.operators import windows as windowing
from pointstamp.operators.event_clock import EventClock, TimestampClock
from pointstamp.operators.generic import Binary, BinaryNotify, Unary, UnaryNotify
from pointstamp.operators.iterate import Round
from pointstamp.operators.probe import Probe
from pointstamp.operators.user_code import (
    check_callable,
    check_function,
    is_async,
    refuse_async,
    refuse_async_of,
)
from pointstamp.operators.window_assigners import Sessions, Sliding
from pointstamp.progress.operate import Interest
from pointstamp.progress.topology import Port

T = TypeVar("T")
U = TypeVar("U")

if TYPE_CHECKING:
    from pointstamp.containers.expressions import Expression
    from pointstamp.operators.scope import Scope

    Predicate: TypeAlias = Callable[[T], object] | str | Expression
    KeyOf: TypeAlias = Callable[[T], object] | str | Sequence[str] | Expression | None


class Stream(Generic[T]):
    """Batches of records of type `T`, each batch with its time.

    Attributes
    ----------
    scope : Scope
        Where it flows.
    source : tuple of int
        (operator, output) that it comes from.
    """

    def __init__(self, scope: Scope, source: Port, tee: Tee) -> None:
        self.scope = scope
        self.source = source
        self.tee = tee

    # Record by record, or batch by batch.

    @overload
    def map(
        self,
        function: Callable[[T], Coroutine[Any, Any, U]],
        *,
        on_error: Literal["route"],
        concurrency: int | None = None,
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def map(
        self,
        function: Callable[[T], Coroutine[Any, Any, U]],
        *,
        on_error: Literal["raise", "drop"] = "raise",
        concurrency: int | None = None,
    ) -> Stream[U]: ...

    @overload
    def map(
        self, function: Callable[[T], U], *, on_error: Literal["route"]
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def map(
        self, function: Callable[[T], U], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[U]: ...

    def map(
        self,
        function: Callable[[T], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
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
        check_callable(function, "Map")
        if concurrency is not None or is_async(function):
            from pointstamp.operators import asynchronous

            return asynchronous.map_(self, function, on_error, concurrency)
        if on_error != "raise":
            return errors_as_data.map_(self, function, on_error)
        return stateless.map_(self, function)

    @overload
    def flat_map(
        self,
        function: Callable[[T], Coroutine[Any, Any, Iterable[U]]],
        *,
        on_error: Literal["route"],
        concurrency: int | None = None,
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[T], Coroutine[Any, Any, Iterable[U]]],
        *,
        on_error: Literal["raise", "drop"] = "raise",
        concurrency: int | None = None,
    ) -> Stream[U]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[T], AsyncIterator[U]],
        *,
        on_error: Literal["route"],
        concurrency: int | None = None,
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[T], AsyncIterator[U]],
        *,
        on_error: Literal["raise", "drop"] = "raise",
        concurrency: int | None = None,
    ) -> Stream[U]: ...

    @overload
    def flat_map(
        self, function: Callable[[T], Iterable[U]], *, on_error: Literal["route"]
    ) -> tuple[Stream[U], Stream[Failed[T]]]: ...

    @overload
    def flat_map(
        self, function: Callable[[T], Iterable[U]], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[U]: ...

    def flat_map(
        self,
        function: Callable[[T], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
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
        check_callable(function, "FlatMap")
        if concurrency is not None or is_async(function):
            from pointstamp.operators import asynchronous

            return asynchronous.flat_map(self, function, on_error, concurrency)
        if on_error != "raise":
            return errors_as_data.flat_map(self, function, on_error)
        return stateless.flat_map(self, function)

    @overload
    def filter(
        self, predicate: Predicate[T], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def filter(
        self, predicate: Predicate[T], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def filter(self, predicate: Predicate[T], *, on_error: OnError = "raise") -> Any:
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
        check_function(predicate, "Filter", or_columns=True)
        if on_error != "raise":
            return errors_as_data.filter_(self, predicate, on_error)
        return stateless.filter_(self, predicate)

    @overload
    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        on_error: Literal["route"],
        concurrency: int | None = None,
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        on_error: Literal["raise", "drop"] = "raise",
        concurrency: int | None = None,
    ) -> Stream[Any]: ...

    def map_batches(
        self,
        function: Callable[[Any], Any],
        *,
        on_error: OnError = "raise",
        concurrency: int | None = None,
    ) -> Any:
        """Replace each batch by `function(batch)`, a container, or None for nothing.

        The parameters are those of `map`; what fails is a batch, as the one record of a
        `Failed`, and "drop" counts its records.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([3, 1]).map_batches(sorted))
        [(0, 1), (0, 3)]
        """
        check_callable(function, "MapBatches")
        if concurrency is not None or is_async(function):
            from pointstamp.operators import asynchronous

            return asynchronous.map_batches(self, function, on_error, concurrency)
        if on_error != "raise":
            return errors_as_data.map_batches(self, function, on_error)
        return stateless.map_batches(self, function)

    @overload
    def inspect(
        self, function: Callable[[T], object], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def inspect(
        self, function: Callable[[T], object], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def inspect(self, function: Callable[[T], object], *, on_error: OnError = "raise") -> Any:
        """Call `function(record)` for each record, and pass the record on.

        `on_error` is as for `map`: a record on which `function` fails is not passed on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect(print))
        hi
        [(0, 'hi')]
        """
        check_function(function, "Inspect")
        if on_error != "raise":
            return errors_as_data.inspect(self, function, on_error)
        return stateless.inspect(self, function)

    @overload
    def inspect_batch(
        self, function: Callable[[Any, Any], object], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[Any]]]: ...

    @overload
    def inspect_batch(
        self,
        function: Callable[[Any, Any], object],
        *,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Stream[T]: ...

    def inspect_batch(
        self, function: Callable[[Any, Any], object], *, on_error: OnError = "raise"
    ) -> Any:
        """Call `function(time, batch)` for each batch, and pass the batch on.

        `on_error` is as for `map_batches`: a batch on which `function` fails is not passed on.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream(["hi"]).inspect_batch(print))
        0 ['hi']
        [(0, 'hi')]
        """
        check_function(function, "InspectBatch")
        if on_error != "raise":
            return errors_as_data.inspect_batch(self, function, on_error)
        return stateless.inspect_batch(self, function)

    def count(self) -> Stream[int]:
        """The number of records of each time, when it is complete, on each worker.

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream("abc").count())
        [(0, 3)]
        """
        return counting.count(self)

    # To other workers.

    @overload
    def exchange(
        self, key: KeyOf[T] = None, *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def exchange(
        self, key: KeyOf[T] = None, *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def exchange(self, key: Any = None, *, on_error: OnError = "raise") -> Any:
        """Send records of equal key to the same worker.

        Parameters
        ----------
        key : callable, str, sequence of str or pyarrow.compute.Expression, optional
            On rows a function of the record (the default: the record itself); on
            columns a column's name, or several, or an expression (of record batches).
        on_error : {"raise", "route", "drop"}
            As for `map`, for a key that fails or cannot be hashed; on columns that is
            the batch's. Other than with "raise" each key is computed twice.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream(range(4) if scope.index == 0 else [])
        ...     return numbers.exchange(lambda x: x)
        >>> ps.testing.collect(build, workers=2)
        [(0, 0), (0, 1), (0, 2), (0, 3)]
        """
        refuse_async(key, "Exchange")
        if on_error != "raise":
            return errors_as_data.exchange(self, key, on_error)
        return stateless.pass_on(self, "Exchange", Exchange(key))

    def broadcast(self) -> Stream[T]:
        """Send every record to every worker.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream(["hi"] if scope.index == 0 else []).broadcast()
        >>> ps.testing.collect(build, workers=2)
        [(0, 'hi'), (0, 'hi')]
        """
        return stateless.pass_on(self, "Broadcast", Broadcast())

    @overload
    def distribute(
        self, route: Callable[[Any, Any], int], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[Any]]]: ...

    @overload
    def distribute(
        self, route: Callable[[Any, Any], int], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def distribute(self, route: Callable[[Any, Any], int], *, on_error: OnError = "raise") -> Any:
        """Send each batch whole to the worker `route(time, batch)`.

        `on_error` is as for `map_batches`: a batch for which `route` fails, or names no worker,
        is not sent. Other than with "raise" the route is asked twice.

        Raises
        ------
        RouteError
            While it runs, for an index that no worker has.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     letters = scope.to_stream("ab" if scope.index == 0 else "c")
        ...     return letters.distribute(lambda time, batch: 1).map(lambda x: (scope.index, x))
        >>> ps.testing.collect(build, workers=2)
        [(0, (1, 'a')), (0, (1, 'b')), (0, (1, 'c'))]
        """
        check_function(route, "Distribute")
        if on_error != "raise":
            return errors_as_data.distribute(self, route, on_error)
        return stateless.pass_on(self, "Distribute", Distribute(route))

    # Streams from streams.

    def concat(self, *others: Stream[T]) -> Stream[T]:
        """The records of this stream and of `others`.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([1]).concat(scope.to_stream([2]))
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        return split_merge.concatenate([self, *others])

    @overload
    def branch(
        self, predicate: Predicate[T], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[T], Stream[Failed[T]]]: ...

    @overload
    def branch(
        self, predicate: Predicate[T], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> tuple[Stream[T], Stream[T]]: ...

    def branch(self, predicate: Predicate[T], *, on_error: OnError = "raise") -> Any:
        """The records for which `predicate` is false, and those for which it is true.

        Parameters
        ----------
        predicate : callable, str or pyarrow.compute.Expression
            As for `filter`; null counts as false.
        on_error : {"raise", "route", "drop"}
            As for `filter`; with "route" a third stream has the failures.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     odd, even = scope.to_stream(range(4)).branch(lambda x: x % 2 == 0)
        ...     return odd.map(lambda x: ("odd", x)).concat(even.map(lambda x: ("even", x)))
        >>> ps.testing.collect(build)
        [(0, ('even', 0)), (0, ('even', 2)), (0, ('odd', 1)), (0, ('odd', 3))]
        """
        check_function(predicate, "Branch", or_columns=True)
        if on_error != "raise":
            return errors_as_data.branch(self, predicate, on_error)
        return split_merge.branch(self, predicate)

    @overload
    def partition(
        self, n: int, route: Any, *, on_error: Literal["route"]
    ) -> tuple[list[Stream[T]], Stream[Failed[T]]]: ...

    @overload
    def partition(
        self, n: int, route: Any, *, on_error: Literal["raise", "drop"] = "raise"
    ) -> list[Stream[T]]: ...

    def partition(self, n: int, route: Any, *, on_error: OnError = "raise") -> Any:
        """`n` streams; `route` says to which of them each record goes.

        Parameters
        ----------
        n : int
            How many.
        route : callable, str or pyarrow.compute.Expression
            On rows a function of the record that gives an index, from 0 on; on columns
            the name of a column of indices, or an expression (of record batches).
        on_error : {"raise", "route", "drop"}
            As for `filter`, for a route that fails or is no index below `n`; with "route" the
            result is the pair of the list and the stream of the failures.

        Raises
        ------
        RouteError
            While it runs, for an index that is not below `n`.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     even, odd = scope.to_stream(range(4)).partition(2, lambda x: x % 2)
        ...     return odd
        >>> ps.testing.collect(build)
        [(0, 1), (0, 3)]
        """
        check_function(route, "Partition", or_columns=True)
        if on_error != "raise":
            return errors_as_data.partition(self, n, route, on_error)
        return routing.partition(self, n, route)

    @overload
    def branch_when(
        self, predicate: Callable[[Any], Any], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[T], Stream[Failed[Any]]]: ...

    @overload
    def branch_when(
        self, predicate: Callable[[Any], Any], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> tuple[Stream[T], Stream[T]]: ...

    def branch_when(self, predicate: Callable[[Any], Any], *, on_error: OnError = "raise") -> Any:
        """The batches at whose time `predicate(time)` is false, and those where it is true.

        `on_error` is as for `map_batches`; with "route" a third stream has the failures.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     letters = scope.to_stream("ab").delay(lambda letter, time: time + ord(letter))
        ...     before, after = letters.branch_when(lambda time: time > ord("a"))
        ...     return after
        >>> ps.testing.collect(build)
        [(98, 'b')]
        """
        check_function(predicate, "BranchWhen")
        if on_error != "raise":
            return errors_as_data.branch_when(self, predicate, on_error)
        return routing.branch_when(self, predicate)

    @overload
    def ok_err(
        self, function: Any, *, on_error: Literal["route"]
    ) -> tuple[Stream[Any], Stream[Any], Stream[Failed[T]]]: ...

    @overload
    def ok_err(
        self, function: Any, *, on_error: Literal["raise", "drop"] = "raise"
    ) -> tuple[Stream[Any], Stream[Any]]: ...

    def ok_err(self, function: Any, *, on_error: OnError = "raise") -> Any:
        """The values that `function` gives as `Ok`, and those that it gives as `Err`.

        Parameters
        ----------
        function : callable, str or pyarrow.compute.Expression
            On rows a function of the record that gives `ps.Ok(value)` or
            `ps.Err(value)`; on columns the name of a column of booleans, or an
            expression, which is true for the records of the first stream. The others,
            null among them, are the second.
        on_error : {"raise", "route", "drop"}
            As for `filter`, where the function raises or gives anything else; with "route" a
            third stream has the failures.

        Raises
        ------
        RouteError
            While it runs, if the function gives anything else.

        >>> import pointstamp as ps
        >>> def read(text):
        ...     return ps.Ok(int(text)) if text.isdigit() else ps.Err(text)
        >>> def build(scope):
        ...     numbers, others = scope.to_stream(["1", "x"]).ok_err(read)
        ...     return numbers.map(lambda n: n + 1).concat(others.map(len))
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        check_function(function, "OkErr", or_columns=True)
        if on_error != "raise":
            return errors_as_data.ok_err(self, function, on_error)
        return routing.ok_err(self, function)

    # To later times.

    @overload
    def delay(
        self, function: Any, *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def delay(
        self, function: Any, *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def delay(self, function: Any, *, on_error: OnError = "raise") -> Any:
        """Move each record to a later time, and send it when that is complete.

        Parameters
        ----------
        function : callable, str or pyarrow.compute.Expression
            On rows `function(record, time)` gives the new time; on columns the name
            of a column of integer times, or an expression (of record batches).
        on_error : {"raise", "route", "drop"}
            As for `filter`, for a function that fails or gives no time at or after the old one;
            on columns that is the batch's. Failures leave at once, at the old time.

        Raises
        ------
        CapabilityError
            While it runs, for a new time that is not at or after the old one.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([7, 5]).delay(lambda record, time: time + record)
        >>> ps.testing.collect(build)
        [(5, 5), (7, 7)]
        """
        check_function(function, "Delay", or_columns=True)
        if on_error != "raise":
            return errors_in_state.delay(self, function, on_error)
        return delays.delay(self, function)

    @overload
    def delay_total(
        self, function: Any, *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[T]]]: ...

    @overload
    def delay_total(
        self, function: Any, *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def delay_total(self, function: Any, *, on_error: OnError = "raise") -> Any:
        """`delay`, in a scope in which any two times are ordered.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([7, 5]).delay_total(lambda record, time: time + record)
        >>> ps.testing.collect(build)
        [(5, 5), (7, 7)]
        """
        check_function(function, "DelayTotal", or_columns=True)
        if on_error != "raise":
            return errors_in_state.delay_total(self, function, on_error)
        return delays.delay_total(self, function)

    @overload
    def delay_batch(
        self, function: Callable[[Any], Any], *, on_error: Literal["route"]
    ) -> tuple[Stream[T], Stream[Failed[Any]]]: ...

    @overload
    def delay_batch(
        self, function: Callable[[Any], Any], *, on_error: Literal["raise", "drop"] = "raise"
    ) -> Stream[T]: ...

    def delay_batch(self, function: Callable[[Any], Any], *, on_error: OnError = "raise") -> Any:
        """Move whole batches to the time `function(time)`, and send them when that is complete.

        `on_error` is as for `delay`, of batches.

        Raises
        ------
        CapabilityError
            While it runs, for a new time that is not at or after the old one.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream("ab").delay_batch(lambda time: time + 3)
        >>> ps.testing.collect(build)
        [(3, 'a'), (3, 'b')]
        """
        check_function(function, "DelayBatch")
        if on_error != "raise":
            return errors_in_state.delay_batch(self, function, on_error)
        return delays.delay_batch(self, function)

    def reclock(self, clock: Stream[Any]) -> Stream[T]:
        """Move each record to the next time of `clock`, and send it when that is complete.

        The times of the clock are those of its records, whatever they are, on this
        worker. A record waits for the first of them that is at or after its own time;
        if none ever is, the record is not sent.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     clock = scope.to_stream([5, 10]).delay(lambda record, time: record)
        ...     return scope.to_stream([3, 8, 11]).delay(lambda record, time: record).reclock(clock)
        >>> ps.testing.collect(build)
        [(5, 3), (10, 8)]
        """
        return delays.reclock(self, clock)

    # What the records of a time, or of a key, come to.

    @overload
    def accumulate(
        self, default: U, logic: Callable[[U, Any], U], *, on_error: Literal["route"]
    ) -> tuple[Stream[U], Stream[Failed[Any]]]: ...

    @overload
    def accumulate(
        self,
        default: U,
        logic: Callable[[U, Any], U],
        *,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Stream[U]: ...

    def accumulate(
        self, default: U, logic: Callable[[U, Any], U], *, on_error: OnError = "raise"
    ) -> Any:
        """One value for each time, when it is complete, on each worker that has records of it.

        Parameters
        ----------
        default
            What each time starts from; a copy of it.
        logic : callable
            `logic(value, batch)` gives the new value. `batch` is a container.
        on_error : {"raise", "route", "drop"}
            As for `map_batches`: the value stays as it was before a batch on which `logic`
            fails (unless it was changed in place). Without any other there is no value.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([1, 2, 3]).accumulate(0, lambda value, b: value + sum(b))
        >>> ps.testing.collect(build)
        [(0, 6)]
        """
        check_function(logic, "Accumulate")
        if on_error != "raise":
            return errors_in_state.accumulate(self, default, logic, on_error)
        return grouping.accumulate(self, default, logic)

    @overload
    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        *,
        on_error: Literal["route"],
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        *,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Stream[Any]: ...

    def aggregate(
        self,
        fold: Any,
        emit: Callable[..., Any] | None = None,
        key: Key = None,
        default: Any = None,
        *,
        on_error: OnError = "raise",
    ) -> Any:
        """One record for each key and time, when the time is complete.

        Parameters
        ----------
        fold : callable, or sequence of (column, function)
            `fold(key, record, aggregate)` gives the new aggregate. Without a `key`
            records are pairs (key, value), and it is given the value. On columns it
            is called once for each key, with all its records as a batch.

            On columns it may also be a list of aggregates by name, as for
            `pyarrow.TableGroupBy.aggregate`: the answer is a batch with the columns
            of the key, then `{column}_{function}` for each.
        emit : callable, optional
            `emit(key, aggregate)` gives the record to send, by default the pair of
            them; for aggregates by name, `emit(batch)` gives the batch to send.
        key : callable, str, or sequence of str, optional
            On rows a function of the record; on columns a column's name, or several
            (keys are tuples then). Records of equal key meet on one worker.
        default
            What each aggregate starts from; a copy of it.
        on_error : {"raise", "route", "drop"}
            As for `map`, where `key`, `fold` or `emit` fails. The aggregate stays as it was
            before a record on which `fold` fails (unless it was changed in place); of those
            alone nothing is sent. What `emit` fails on is a pair (key, aggregate), or the
            batch of aggregates by name. Keys are computed more than once then.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["a", "bb", "c"])
        ...     return words.aggregate(lambda key, word, n: n + 1, key=len, default=0)
        >>> ps.testing.collect(build)
        [(0, (1, 2)), (0, (2, 1))]

        >>> def build(scope):
        ...     batch = ps.Arrays(user=[7, 9, 7], spent=[1, 2, 3])
        ...     return scope.batches_to_stream([batch]).aggregate([("spent", "sum")], key="user")
        >>> ps.testing.collect(build)
        [(0, (7, 4)), (0, (9, 2))]
        """
        refuse_async_of("Aggregate", fold, emit, key)
        check_key(key, "Aggregate")
        if on_error != "raise":
            return errors_in_state.aggregate(self, fold, emit, key, default, on_error)
        return grouping.aggregate(self, fold, emit, key, default)

    @overload
    def state_machine(
        self, fold: Any, key: Key = None, default: Any = None, *, on_error: Literal["route"]
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def state_machine(
        self,
        fold: Any,
        key: Key = None,
        default: Any = None,
        *,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Stream[Any]: ...

    def state_machine(
        self, fold: Any, key: Key = None, default: Any = None, *, on_error: OnError = "raise"
    ) -> Any:
        """Change a state for each key by its records, in the order of their times.

        Records of a later time wait until the earlier ones are complete; those of one
        time come in any order.

        Parameters
        ----------
        fold : callable
            `fold(key, record, state)` gives the new state, or None to forget the key,
            and an iterable of records to send at the time of this one. Without a `key`
            records are pairs (key, value), and it is given the value. On columns it is
            called once for each key and complete time, with all its records as a batch,
            and gives the new state, and a container to send or None.
        key : callable, str, or sequence of str, optional
            As for `aggregate`.
        default
            The state of a key that has none; a copy of it.
        on_error : {"raise", "route", "drop"}
            As for `aggregate`: a record on which `fold` fails sends nothing, and leaves the
            state as it was.

        >>> import pointstamp as ps
        >>> def total(key, value, state):
        ...     return state + value, [(key, state + value)]
        >>> def build(scope):
        ...     return scope.to_stream([("a", 1), ("a", 2)]).state_machine(total, default=0)
        >>> ps.testing.collect(build)
        [(0, ('a', 1)), (0, ('a', 3))]
        """
        refuse_async_of("StateMachine", fold, key)
        check_key(key, "StateMachine")
        if on_error != "raise":
            return errors_in_state.state_machine(self, fold, key, default, on_error)
        return grouping.state_machine(self, fold, key, default)

    # With another stream.

    @overload
    def join(
        self,
        other: Stream[U],
        key: Key = None,
        other_key: Key = None,
        *,
        retain: bool = False,
        on_error: Literal["route"],
    ) -> tuple[Stream[Any], Stream[Failed[Any]]]: ...

    @overload
    def join(
        self,
        other: Stream[U],
        key: Key = None,
        other_key: Key = None,
        *,
        retain: bool = False,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Stream[Any]: ...

    def join(
        self,
        other: Stream[U],
        key: Key = None,
        other_key: Key = None,
        *,
        retain: bool = False,
        on_error: OnError = "raise",
    ) -> Any:
        """Pairs of a record of this stream and one of `other`, of equal key.

        It is an inner join: what has no partner is not sent. Each pair leaves as soon as both
        of its records are there. Both streams are exchanged by key, and carry one kind of
        container. In columns a null is no key, and a NaN is none anywhere.

        Parameters
        ----------
        key : callable, str, or sequence of str, optional
            On rows a function of the record (the default: the record itself); on
            columns a column's name, or several.
        other_key : optional
            The same for `other`; the default is `key`.
        retain : bool
            False: records of equal time meet, and what has come is forgotten when
            its time is complete. True: records of all times meet, each pair at the
            least time at or after both, and all that has come is kept until the other
            stream ends; times of a type of your own need a `join` method.
        on_error : {"raise", "route", "drop"}
            As for `exchange`, for the keys; with "route" a second stream has the failures of
            both streams, whose operators are "JoinLeft" and "JoinRight".

        Returns
        -------
        Stream
            Of rows, pairs of records; of columns, the columns of this stream and then
            those of `other` without its key, with "_right" after names that are taken.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     ages = scope.to_stream([("ann", 40), ("bob", 50)])
        ...     towns = scope.to_stream([("bob", "Rome"), ("eve", "Oslo")])
        ...     return ages.join(towns, lambda person: person[0])
        >>> ps.testing.collect(build)
        [(0, (('bob', 50), ('bob', 'Rome')))]
        """
        keys = (key, key if other_key is None else other_key)
        refuse_async_of("Join", *keys)
        check_key(keys[0], "Join")
        check_key(keys[1], "Join")
        if on_error != "raise":
            return errors_in_state.join(self, other, keys, retain=retain, on_error=on_error)
        return stream_joins.join(self, other, keys, retain=retain)

    # Windows of event time.

    @overload
    def window(
        self,
        windows: Sliding | Sessions,
        time: Any = None,
        key: Key = None,
        lateness: Any = 0,
        clock: TimestampClock | EventClock | None = None,
        *,
        on_error: Literal["route"],
    ) -> tuple[Stream[Any], Stream[T], Stream[Failed[T]]]: ...

    @overload
    def window(
        self,
        windows: Sliding | Sessions,
        time: Any = None,
        key: Key = None,
        lateness: Any = 0,
        clock: TimestampClock | EventClock | None = None,
        *,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> tuple[Stream[Any], Stream[T]]: ...

    def window(
        self,
        windows: Sliding | Sessions,
        time: Any = None,
        key: Key = None,
        lateness: Any = 0,
        clock: TimestampClock | EventClock | None = None,
        *,
        on_error: OnError = "raise",
    ) -> Any:
        """The records in windows of event time, each window when it is complete; and late ones.

        Timestamps and event times are integers, or a `clock` says how timestamps map to them;
        timestamps that are not in one line, as in a loop, are refused.

        The stream's timestamps say how far event time has come: a record may lie up to
        `lateness` behind its timestamp. Those that lie further behind are late, and are
        in no window. A window `[start, end)` is complete, and released, at the
        timestamp `end + lateness`; all that are open, at the end of the input.

        Parameters
        ----------
        windows : Tumbling, Sliding or Sessions
            `pointstamp.Tumbling(size)`, for one.
        time : callable or str, optional
            Event times, which are integers: on rows a function of the record, on columns a
            column's name (of integers or Arrow times, in their unit), or an expression (of
            record batches). The default is the timestamp.
        key : callable, str, or sequence of str, optional
            Windows are of records of equal key, as for `exchange`; without one, all
            records are together, on one worker.
        lateness : int
            How far a record may lie behind its timestamp, in event time.
        clock : EventClock, optional
            How timestamps map to event times; the default is that they are the same.
        on_error : {"raise", "route", "drop"}
            As for `exchange`, where `time` or `key` fails or does not fit; with "route" a third
            stream has the failures.

        Returns
        -------
        (Stream, Stream)
            Of rows, a stream of `Window(key, start, end, records)`. Of columns, one of
            the records with the columns `window_start` and `window_end`, in which all
            windows that are released together are one batch (with each key's records
            anywhere in it). And the late records as they came.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     done, late = scope.to_stream([3, 12, 14]).window(ps.Tumbling(10), time=lambda x: x)
        ...     return done
        >>> for time, window in ps.testing.collect(build):
        ...     print(time, window)
        10 Window(key=None, start=0, end=10, records=[3])
        20 Window(key=None, start=10, end=20, records=[12, 14])
        """
        refuse_async_of("Window", time, key)
        check_key(key, "Window")
        if on_error != "raise":
            return errors_in_state.window(self, windows, time, key, lateness, clock, on_error)
        return windowing.window(self, windows, time, key, lateness, clock)

    # Written down.

    @overload
    def capture(self) -> Events: ...

    @overload
    def capture(self, to: U) -> U: ...

    def capture(self, to: Any = None) -> Any:
        """Write down what this stream does: its batches at their times, and its progress.

        `Scope.replay` makes the stream again from it. Each worker captures its part.

        Parameters
        ----------
        to : path, Events, Connect or Accept, optional
            A path names a folder, for a file of each worker: an Arrow IPC stream, whose
            end is the end of the capture, so that a file that was cut off is known by
            it. `Connect` and `Accept` send the part to another computation. The default is
            new `Events`, in memory.

        Returns
        -------
        what was given as `to`, or the new Events

        >>> import pointstamp as ps
        >>> def record(worker):
        ...     with worker.dataflow() as scope:
        ...         events = scope.to_stream(["a", "b"]).capture()
        ...     worker.run()
        ...     return events
        >>> [events] = ps.execute(record)
        >>> for event in events:
        ...     print(event)
        Messages(time=0, batch=['a', 'b'])
        Progress(changes=[(0, -1)])
        >>> ps.testing.collect(lambda scope: scope.replay(events))
        [(0, 'a'), (0, 'b')]
        """
        to = Events() if to is None else to
        capturing.capture(self, to)
        return to

    # Across scopes.

    def enter(self, inner: Scope) -> Stream[T]:
        """This stream inside `inner`, a scope of this one.

        Raises
        ------
        BuildError
            If `inner` is not directly in this stream's scope.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         inside = scope.to_stream([1]).enter(inner)
        ...         times = inside.inspect_batch(lambda time, batch: print("inside", time))
        ...         return times.leave()
        >>> ps.testing.collect(build)
        inside (0, 0)
        [(0, 1)]
        """
        return inner.enter(self)

    def leave(self) -> Stream[T]:
        """This stream in the scope around its own, at the times without their inner part.

        Raises
        ------
        BuildError
            If it is of the outermost scope.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative() as inner:
        ...         loop, again = inner.feedback(1, limit=3)
        ...         numbers = scope.to_stream([1]).enter(inner).concat(again)
        ...         loop.connect(numbers.map(lambda x: 2 * x))
        ...         return numbers.leave()
        >>> ps.testing.collect(build)  # rounds 0, 1 and 2, all of time 0
        [(0, 1), (0, 2), (0, 4)]
        """
        return self.scope.leave(self)

    # Loops.

    def iterate(
        self,
        body: Callable[[Stream[T]], Stream[T]],
        until: Any = None,
        limit: int | None = None,
        *,
        measure: Callable[[Any], Any] | None = None,
        combine: Callable[[Any, Any], Any] = add,
        expect: int | None = None,
        report: Callable[[Round], Any] | None = None,
        name: str = "Iterate",
    ) -> Stream[T]:
        """Apply `body` to all records, again and again, until a condition holds for them.

        The records of a time are round 0, and what the body makes of a round is the next.
        The loop of a time stops at the first round for which the condition holds, round 0
        included: its records, on all workers, are the result, at that time. A round
        without records is the last, too. All workers agree on each round; loops of
        different times do not wait for each other.

        Parameters
        ----------
        body : callable
            Gets a stream, of a scope of its own, and gives one made of it.
        until : callable, str or pyarrow.compute.Expression, optional
            The round is the last if this is true of each of its records: on rows a function of
            the record, on columns the name of a column of booleans, or an expression. With
            `measure`, a function of what all its records were measured to be. Without
            `until`, the loop stops when a round has the same records as the one before, in any
            order (told by hashes of 64 bits, so records must be hashable as for `exchange`).
        limit : int, optional
            The body is applied at most so many times; what there is then is the result.
        measure : callable, optional
            The value of a batch, as in `measure=sum`.
        combine : callable, optional
            The value of two batches together; their order must not matter. It adds.
        expect : int, optional
            Warn (`LoopWarning`) after twice as many rounds, and each time that they double.
        report : callable, optional
            Called on every worker, for each round, with a `Round`: the `time`, the `round`,
            of all workers the number of records `n_records` and their `value`, and whether
            it `is_last`.
        name : str
            For messages to people.

        Raises
        ------
        BuildError
            If the body gives something else, or there can be no such condition. When built.

        Notes
        -----
        A round costs a small message from each worker with records to each other, beside
        what the body does, and one exchange of progress. Records that are not done wait on
        their worker until the round is complete on all.

        Examples
        --------
        Until nothing changes:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers = scope.to_stream([6, 40] if scope.index == 0 else [])
        ...     return numbers.iterate(lambda again: again.map(lambda x: x // 2 if x > 3 else x))
        >>> ps.testing.collect(build, workers=2)
        [(0, 2), (0, 3)]

        Until the sum is below 12; it is 46, then 23, then 11:

        >>> def build(scope):
        ...     numbers = scope.to_stream([6, 40] if scope.index == 0 else [])
        ...     half = lambda again: again.exchange().map(lambda x: x // 2)
        ...     return numbers.iterate(half, measure=sum, until=lambda total: total < 12)
        >>> ps.testing.collect(build, workers=2)
        [(0, 1), (0, 10)]
        """
        return iterates.iterate(
            self,
            body,
            until,
            limit,
            measure=measure,
            combine=combine,
            expect=expect,
            report=report,
            name=name,
        )

    # Through other programs.

    def command(
        self,
        command: Sequence[str],
        *,
        form: str = "text",
        marker: str | None = None,
        ok: Collection[int] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        name: str = "Command",
    ) -> Stream[Any]:
        """Run the records through an external program, one on each worker.

        Its standard input gets the records of this worker, and what it writes to its
        standard output are the results, at the same time. A time at which there are no
        records is not asked for. The worker does not wait for it. It is killed when the
        dataflow goes: when a worker fails, or the dataflow is dropped.

        Parameters
        ----------
        command : sequence of str
            The program, looked for on the path, and its arguments. No shell is involved.
        form : str
            How records travel. `"text"`: each is a `str`, and a line in UTF-8. `"bytes"`:
            each is a `bytes`, and a line. `"arrow"`: batches of columns, as an Arrow IPC
            stream in either direction.
        marker : str, optional
            Without it a process is started for each time, and told by the end of its
            input that the time is complete. With it one process is asked for all times, one
            after the other: after the last record of each it gets a mark, and it must send
            the mark back when it has answered, and flushed, everything before it. In lines
            the mark is the line `marker`. In Arrow it is a batch without records whose
            custom metadata has `marker` under the key `"pointstamp"`.
        ok : collection of int
            The exit statuses that are no failure: `(0, 1)` for grep, which exits with 1
            where nothing matches.
        env : mapping, optional
            Its environment variables, if not this process's.
        cwd : str, optional
            The folder that it runs in, if not this process's.
        name : str
            Of the operator.

        Raises
        ------
        BuildError
            If there is no such program. The other errors come while it runs:
        CommandError
            If it exits with another status, or does not answer as it should. The error
            has the status, the last lines of its standard error, and the time. What it
            writes there is shown nowhere else.
        ContainerError, DataError
            If a record is not of the form, or would not be one line.

        Notes
        -----
        A process costs some milliseconds at each time; with a marker, only the first. Most
        programs keep what they write until it is 4 KiB, or their input ends: with a marker
        they must be told to flush lines (`sed -u`, `grep --line-buffered`), or nobody gets on.
        Nothing bounds what waits to be written to a program that is slow.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["plum", "apple", "pear"])
        ...     return words.command(["grep", "pl"], ok=(0, 1))
        >>> ps.testing.collect(build)
        [(0, 'apple'), (0, 'plum')]
        """
        return commands.command(
            self, command, form=form, marker=marker, ok=ok, env=env, cwd=cwd, name=name
        )

    def spark(
        self, function: Callable[[Any], Any], *, schema: Any = None, name: str = "Spark"
    ) -> Stream[Any]:
        """Run a Spark job on the records of each time, once it is complete.

        See `pointstamp.spark.operator.spark`, which says where it runs and what it needs.
        """
        # By name: what imports PySpark is below this layer.
        operator = import_module("pointstamp.spark.operator")
        result: Stream[Any] = operator.spark(self, function, schema=schema, name=name)
        return result

    # Watching.

    def probe(self) -> Probe:
        """A handle that tells whether times are still possible at the end of this stream.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         input, stream = scope.new_input()
        ...         probe = stream.probe()
        ...     input.advance_to(3)
        ...     worker.step_while(lambda: probe.less_than(3))
        ...     return probe.less_than(3), probe.less_equal(3), probe.elements
        >>> ps.execute(main)
        [(False, True, [3])]
        """
        probe = Probe()
        probes.probe_with(self, probe)
        return probe

    def probe_with(self, probe: Probe) -> Stream[T]:
        """Let an existing `probe` watch this stream too; gives the stream back.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     probe = ps.Probe()
        ...     with worker.dataflow() as scope:
        ...         slow, first = scope.new_input()
        ...         fast, second = scope.new_input()
        ...         first.probe_with(probe)
        ...         second.probe_with(probe)
        ...     fast.advance_to(9)
        ...     slow.advance_to(2)
        ...     worker.step_while(lambda: probe.less_than(2))
        ...     return probe.less_than(3)
        >>> ps.execute(main)
        [True]
        """
        probes.probe_with(self, probe)
        return self

    # Operators with code of one's own.

    def unary(self, pact: Pact, name: str, build: Unary) -> Stream[Any]:
        """An operator that reads this stream; `logic(input, output)`.

        `build(capability, info)` is called once on each worker, with the right to send at the
        least time or later, and gives the logic; see `pointstamp.operators.generic`.

        >>> import pointstamp as ps
        >>> def double(capability, info):
        ...     def logic(input, output):
        ...         for time, batch in input:
        ...             output.session(time).give_batch([2 * x for x in batch])
        ...     return logic
        >>> ps.testing.collect(lambda s: s.to_stream([1, 2]).unary(ps.Pipeline(), "Double", double))
        [(0, 2), (0, 4)]
        """
        return generic.operator([self], [pact], name, build, Interest.NEVER)

    def unary_frontier(self, pact: Pact, name: str, build: Unary) -> Stream[Any]:
        """The same; `input.frontier` says what may still come, and moves are a reason to run.

        >>> import pointstamp as ps
        >>> def last(capability, info):
        ...     kept = []  # the last of all records, and the right to send it
        ...     def logic(input, output):
        ...         for time, batch in input:
        ...             kept[:] = [(time.retain(), batch[-1])]
        ...         if kept and input.frontier.is_empty():
        ...             [(capability, record)] = kept
        ...             with capability:
        ...                 output.session(capability).give(record)
        ...             kept.clear()
        ...     return logic
        >>> def build(scope):
        ...     return scope.to_stream([1, 2]).unary_frontier(ps.Pipeline(), "Last", last)
        >>> ps.testing.collect(build)
        [(0, 2)]
        """
        return generic.operator([self], [pact], name, build, Interest.ALWAYS)

    def unary_notify(
        self, pact: Pact, name: str, build: UnaryNotify, initial: Iterable[Any] = ()
    ) -> Stream[Any]:
        """The same with notifications; `logic(input, output, notificator)`.

        `initial` are times to be notified of without asking.

        >>> import pointstamp as ps
        >>> def total(capability, info):
        ...     sums = {}
        ...     def logic(input, output, notificator):
        ...         for time, batch in input:
        ...             sums[time.time] = sums.get(time.time, 0) + sum(batch)
        ...             notificator.notify_at(time.retain())
        ...         for capability in notificator:
        ...             with capability:
        ...                 output.session(capability).give(sums.pop(capability.time))
        ...     return logic
        >>> def build(scope):
        ...     numbers = scope.to_stream([1, 2, 3]).delay(lambda x, time: x // 2)
        ...     return numbers.unary_notify(ps.Pipeline(), "Total", total)
        >>> ps.testing.collect(build)
        [(0, 1), (1, 5)]
        """
        return generic.operator_notify([self], [pact], name, build, initial)

    def sink(self, pact: Pact, name: str, logic: Callable[[Input], Any]) -> None:
        """An operator that reads this stream and sends nothing; `logic(input)`.

        `input.frontier` says what may still come, and its moves are a reason to run.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     events = []
        ...     def logic(input):
        ...         for time, batch in input:
        ...             events.append((time.time, batch))
        ...         if input.frontier.is_empty():
        ...             events.append("end")
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).sink(ps.Pipeline(), "Events", logic)
        ...     worker.run()
        ...     return events
        >>> ps.execute(main)
        [[(0, [1, 2]), 'end']]
        """
        sinks.sink(self, pact, name, logic)

    def binary(
        self, other: Stream[Any], pact1: Pact, pact2: Pact, name: str, build: Binary
    ) -> Stream[Any]:
        """An operator that reads two streams; `logic(input1, input2, output)`.

        >>> import pointstamp as ps
        >>> def tagged(capability, info):
        ...     def logic(left, right, output):
        ...         for tag, input in (("left", left), ("right", right)):
        ...             for time, batch in input:
        ...                 output.session(time).give_many((tag, x) for x in batch)
        ...     return logic
        >>> def build(scope):
        ...     one, two, here = scope.to_stream([1]), scope.to_stream([2]), ps.Pipeline()
        ...     return one.binary(two, here, here, "Tagged", tagged)
        >>> ps.testing.collect(build)
        [(0, ('left', 1)), (0, ('right', 2))]
        """
        return generic.operator([self, other], [pact1, pact2], name, build, Interest.NEVER)

    def binary_frontier(
        self, other: Stream[Any], pact1: Pact, pact2: Pact, name: str, build: Binary
    ) -> Stream[Any]:
        """The same; both inputs' frontiers are seen, and moves are a reason to run.

        >>> import pointstamp as ps
        >>> def first_then_second(capability, info):
        ...     waiting = []
        ...     def logic(first, second, output):
        ...         for time, batch in first:
        ...             output.session(time).give_batch(batch)
        ...         for time, batch in second:
        ...             waiting.append((time.retain(), batch))
        ...         while waiting and first.frontier.is_empty():
        ...             capability, batch = waiting.pop()
        ...             with capability:
        ...                 output.session(capability).give_batch(batch)
        ...     return logic
        >>> def build(scope):
        ...     one, two, here = scope.to_stream([1]), scope.to_stream([2]), ps.Pipeline()
        ...     return one.binary_frontier(two, here, here, "InTurn", first_then_second)
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        return generic.operator([self, other], [pact1, pact2], name, build, Interest.ALWAYS)

    def binary_notify(
        self,
        other: Stream[Any],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: BinaryNotify,
        initial: Iterable[Any] = (),
    ) -> Stream[Any]:
        """The same with notifications; `logic(input1, input2, output, notificator)`.

        A time is complete when nothing at or before it can come at either input.

        >>> import pointstamp as ps
        >>> def sizes(capability, info):
        ...     counts = {}
        ...     def logic(left, right, output, notificator):
        ...         for side, input in enumerate((left, right)):
        ...             for time, batch in input:
        ...                 counts.setdefault(time.time, [0, 0])[side] += len(batch)
        ...                 notificator.notify_at(time.retain())
        ...         for capability in notificator:
        ...             with capability:
        ...                 output.session(capability).give(tuple(counts.pop(capability.time)))
        ...     return logic
        >>> def build(scope):
        ...     one, two, here = scope.to_stream("ab"), scope.to_stream("c"), ps.Pipeline()
        ...     return one.binary_notify(two, here, here, "Sizes", sizes)
        >>> ps.testing.collect(build)
        [(0, (2, 1))]
        """
        return generic.operator_notify([self, other], [pact1, pact2], name, build, initial)

    def __repr__(self) -> str:
        return f"Stream({self.source} of scope {self.scope.name!r})"
