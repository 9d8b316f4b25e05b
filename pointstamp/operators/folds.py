"""Folds: one value for each time or key, or a state for each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.dataflow.error_policy import Failed, OnError
from pointstamp.operators import errors_in_state, grouping
from pointstamp.operators.user_code import check_function, refuse_async_of

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

from pointstamp.dataflow.stream_core import StreamCore, T

U = TypeVar("U")


class FoldMethods(StreamCore[T]):
    """Operators that fold the records of a time, or of a key. Methods of `Stream`."""

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
