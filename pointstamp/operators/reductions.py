"""Reductions per time: one record for each key, or the k largest of them.

Both work on part of the records first, each worker on its own before they are exchanged, so
that what travels is as many records as there are keys (times k), and not all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Unpack, overload

from pointstamp.containers import kind_of
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.containers.largest import largest
from pointstamp.containers.registry import one_key
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.error_policy import Failed, OnError, Routed, Unrouted
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pact
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.folds import FoldMethods, is_of_columns
from pointstamp.operators.names_elsewhere import of_other_words
from pointstamp.operators.row_folds import Nothing, reduce_rows, reduction
from pointstamp.operators.transform import rows, transform
from pointstamp.operators.user_code import check_callable, check_takes, refuse_deferred_of
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

K = TypeVar("K")
V = TypeVar("V")

Named: TypeAlias = Literal["sum", "product", "min", "max", "any", "all"]
NAMED = ("sum", "product", "min", "max", "any", "all")
"""Functions of two values that are associative and commutative, as Arrow calls them."""


class ReduceMethods(FoldMethods[T]):
    """Reductions. Methods of `Stream`."""

    @overload
    def reduce(
        self: StreamCore[tuple[K, V]],
        function: Callable[[V, V], V],
        key: None = None,
        **options: Unpack[Unrouted],
    ) -> Stream[tuple[K, V]]: ...

    @overload
    def reduce(
        self, function: Callable[[T, T], T], key: Callable[[T], K], **options: Unpack[Unrouted]
    ) -> Stream[tuple[K, T]]: ...

    @overload
    def reduce(
        self,
        function: Callable[[Any, Any], Any],
        key: Callable[[T], K] | None = None,
        **options: Unpack[Routed],
    ) -> tuple[Stream[tuple[Any, Any]], Stream[Failed[Any]]]: ...

    @overload
    def reduce(
        self, function: Named, key: str | Sequence[str], *, name: str = "Reduce"
    ) -> Stream[T]: ...

    def reduce(
        self, function: Any, key: Any = None, *, on_error: OnError = "raise", name: str = "Reduce"
    ) -> Any:
        """Reduce the records of each key and time to one; emitted when the time is complete.

        Parameters
        ----------
        function : callable or str
            `function(value, value)` gives a value, and is associative and commutative. Without
            a `key` records are pairs (key, value). On columns a name: "sum", "product", "min",
            "max", "any" or "all", of each column that is not of the key. What of integers goes
            beyond 64 bits wraps around, as in `aggregate`.
        key : callable, str, or sequence of str, optional
            On rows a function of the record, of which all are reduced then; on columns a
            column's name, or several.
        on_error : {"raise", "route", "drop"}
            As for `aggregate`.
        name : str
            Of the operator.

        Returns
        -------
        Stream
            Of rows, pairs of the key and what its values come to; of columns, batches of the
            same columns, with those of the key first.

        Notes
        -----
        Each batch is reduced before it is exchanged; with "route" and "drop" it is not.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([("a", 3), ("b", 5), ("a", 4)]).reduce(max)
        >>> ps.testing.collect(build)
        [(0, ('a', 4)), (0, ('b', 5))]
        >>> import pyarrow as pa
        >>> def build(scope):
        ...     batch = pa.record_batch({"user": [7, 9, 7], "spent": [1, 2, 3]})
        ...     return scope.batches_to_stream([batch]).reduce("sum", key="user")
        >>> ps.testing.collect(build)
        [(0, (7, 4)), (0, (9, 2))]
        """
        refuse_deferred_of(name, function, key)
        check_takes(function, name, "value", "other")
        check_key(key, name)
        if isinstance(function, str):
            return _reduce_columns(self, function, key, name)
        if is_of_columns(key) or not callable(function):
            raise BuildError(
                f"operator {name!r} reduces columns by name, one of {list(NAMED)}, and rows by a "
                f"function of two values and a key that is a function; found {function!r} and "
                f"{key!r}"
            )

        fold = reduction(function)
        if on_error != "raise":
            return self.aggregate(fold, None, key, Nothing, on_error=on_error, name=name)
        parts = transform(
            self,
            f"{name}Batch",
            lambda time, batch: reduce_rows(rows(batch, name), key, function, name),
        )
        return parts.aggregate(fold, default=Nothing, name=name)

    @of_other_words(
        "streams",
        dict.fromkeys(
            ("descending", "ascending", "reverse"), "by= (what is negative gives the least)"
        ),
    )
    def top_k(self, k: int, by: Any = None, key: Key = None, *, name: str = "TopK") -> Stream[T]:
        """The `k` largest records of each time, and key; emitted when the time is complete.

        Parameters
        ----------
        k : int
            How many, at least 1.
        by : callable or str, optional
            What they are compared by: on rows a function of the record (the default: the record
            itself), on columns a column's name. Nulls (None in rows) and NaNs are left out.
        key : callable, str, or sequence of str, optional
            The k largest of each key; without one, of all, which are on one worker then.
        name : str
            Of the operator.

        Returns
        -------
        Stream
            The records as they came. Of those that are equal by `by` where not all are among
            the k, the ones with the least stable hashes, whatever the number of workers.
            Unspecified is which it is of records that hash alike, as 0.0 and -0.0 do, or 1 and
            True in rows, and of objects that cannot be keys (dicts, lists and sets can be here).

        >>> import pointstamp as ps
        >>> ps.testing.collect(lambda scope: scope.to_stream([3, 9, 4, 1]).top_k(2))
        [(0, 4), (0, 9)]
        >>> import pyarrow as pa
        >>> def build(scope):
        ...     batch = pa.record_batch({"user": [7, 9, 7], "spent": [1, 2, 3]})
        ...     return scope.batches_to_stream([batch]).top_k(1, by="spent", key="user")
        >>> ps.testing.collect(build)
        [(0, (7, 3)), (0, (9, 2))]
        """
        refuse_deferred_of(name, by, key)
        check_key(key, name)
        if type(k) is not int or k < 1:
            raise BuildError(f"operator {name!r}: k is an integer from 1 on, not {k!r}")
        if by is not None and not isinstance(by, str):
            if is_expression(by):
                raise BuildError(
                    f"operator {name!r} cannot compare by the expression {by}: name a column; what "
                    "is to be computed of columns, map_batches can add as a column"
                )
            check_callable(by, name)

        def chosen(batch: Any, *, exactly: bool) -> Any:
            return largest(batch, k, by, key, name, exactly=exactly)

        parts = transform(self, f"{name}Batch", lambda time, batch: chosen(batch, exactly=False))
        pact = Exchange(one_key if key is None else key)
        return _per_time(parts, pact, name, lambda batch: chosen(batch, exactly=True), k=k)


def _per_time(
    stream: StreamCore[Any],
    pact: Pact,
    name: str,
    answer: Callable[[Any], Any],
    **parameters: Any,
) -> Stream[Any]:
    """What `answer` makes of all records of a time, one container, when it is complete."""
    builder = OperatorBuilder(stream.scope, name)
    builder.declare(**parameters)
    builder.new_input(stream, pact, Interest.IF_CAPABILITY)
    result: Stream[Any] = builder.new_output(initial=False)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        stash: Stash[list[Any]] = Stash(info)

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            for time, batch in inputs[0]:
                stash.add(time, batch)
            for capability, batches in stash:
                whole = kind_of(batches[0]).concat(batches)
                outputs[0].session(capability).give_batch(answer(whole))

        return logic

    builder.build(make_logic)
    return result


def _reduce_columns(stream: StreamCore[Any], function: str, key: Key, name: str) -> Stream[Any]:
    if function not in NAMED or not is_of_columns(key):
        raise BuildError(
            f"operator {name!r} reduces columns by one of {list(NAMED)} and by named columns of a "
            f"key; found {function!r} and {key!r}"
        )

    def reduced(batch: Any) -> Any:
        from pointstamp.containers.named_aggregates import aggregate_batch

        names = kind_of(batch).names(batch)
        of = [key] if isinstance(key, str) else list(key)  # type: ignore[arg-type]  # it names columns
        others = [name for name in names if name not in of]
        answer = aggregate_batch(batch, key, [(other, function) for other in others], name)
        return answer.rename_columns([*of, *others])

    parts = transform(stream, f"{name}Batch", lambda time, batch: reduced(batch))
    return _per_time(parts, Exchange(key), name, reduced, function=function)
