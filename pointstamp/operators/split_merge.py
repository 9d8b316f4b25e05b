"""Operators that make two streams of one, or one of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.several_streams import several
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.transform import is_of_columns, rows
from pointstamp.operators.user_code import check_function
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream
    from pointstamp.operators.transform import Predicate


def concatenate(streams: Sequence[StreamCore[Any]], name: str = "Concatenate") -> Stream[Any]:
    """See `Scope.concatenate`."""
    builder = OperatorBuilder(streams[0].scope, name)
    builder.states.holds_no_texts()
    for stream in streams:
        builder.new_input(stream, Pipeline(), Interest.NEVER)
    result: Stream[Any] = builder.new_output(initial=False)

    builder.build(lambda capabilities, info: _Concatenate())
    return result


def union(streams: Sequence[StreamCore[Any]]) -> Stream[Any]:
    """All that comes in some streams, one at least; of one no operator is made."""
    only: Any = streams[0]
    return concatenate(streams) if len(streams) > 1 else only


class _Concatenate(BuiltInLogic):
    """The logic: sends what has come, of one input after the other."""

    __slots__ = ()

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        output = outputs[0]
        for input_ in inputs:
            while (item := input_.pull()) is not None:
                output.push(item[0], item[1])


def divide(
    stream: StreamCore[Any], name: str, n: int, function: Callable[[Any, Any], Sequence[Any]]
) -> list[Stream[Any]]:
    """`n` streams, to which the parts go that `function(time, batch)` makes of each batch.

    A part is a container, which may be empty, or None for nothing.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.NEVER)
    results = [builder.new_output(initial=False) for _ in range(n)]

    builder.build(lambda capabilities, info: _Divide(function))
    return results


class _Divide(BuiltInLogic):
    """The logic: sends the parts of each batch."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any, Any], Sequence[Any]]) -> None:
        self._function = function

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_ = inputs[0]
        while (item := input_.pull()) is not None:
            for output, part in zip(outputs, self._function(item[0], item[1]), strict=True):
                if part is not None:
                    output.push(item[0], part)


def divide_whole(
    stream: StreamCore[Any], name: str, predicate: Callable[[Any], Any]
) -> list[Stream[Any]]:
    """Two streams: to the second go the batches at whose time `predicate(time)` is true."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.NEVER)
    results = [builder.new_output(initial=False) for _ in range(2)]

    builder.build(lambda capabilities, info: _DivideWhole(predicate))
    return results


class _DivideWhole(BuiltInLogic):
    """The logic: sends each batch one way or the other."""

    __slots__ = ("_predicate",)

    def __init__(self, predicate: Callable[[Any], Any]) -> None:
        self._predicate = predicate

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_ = inputs[0]
        while (item := input_.pull()) is not None:
            output = outputs[1] if self._predicate(item[0]) else outputs[0]
            output.push(item[0], item[1])


def divider(predicate: Any) -> Callable[[Any, Any, str], Sequence[Any]]:
    """What divides a batch in two by such a predicate: (batch, predicate, name)."""
    return _divide_columns if is_of_columns(predicate) else _divide_rows


def _divide_rows(batch: Any, predicate: Any, name: str) -> tuple[list[Any], list[Any]]:
    parts: tuple[list[Any], list[Any]] = ([], [])
    for record in rows(batch, name):
        parts[bool(predicate(record))].append(record)
    return parts


def _divide_columns(batch: Any, predicate: Any, name: str) -> tuple[Any, Any]:
    # Where the predicate is null the record is not "true": it goes to the first.
    kind = kind_of(batch)
    return kind.filter(batch, predicate, name, keep=False), kind.filter(batch, predicate, name)


class SplitMergeMethods(StreamCore[T]):
    """Operators that merge streams, or split one by a predicate. Methods of `Stream`."""

    def concat(self, *others: Stream[T], name: str = "Concatenate") -> Stream[T]:
        """Merge this stream with `others` (a union).

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.to_stream([1]).concat(scope.to_stream([2]))
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2)]
        """
        return concatenate([self, *others], name)

    def branch(
        self, predicate: Predicate[T], *, name: str = "Branch"
    ) -> tuple[Stream[T], Stream[T]]:
        """Two streams: the records for which `predicate` is false, and those for which it is true.

        Parameters
        ----------
        predicate : callable, str or pyarrow.compute.Expression
            As for `filter`; null counts as false.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     odd, even = scope.to_stream(range(4)).branch(lambda x: x % 2 == 0)
        ...     return odd.map(lambda x: ("odd", x)).concat(even.map(lambda x: ("even", x)))
        >>> ps.testing.collect(build)
        [(0, ('even', 0)), (0, ('even', 2)), (0, ('odd', 1)), (0, ('odd', 3))]
        """
        check_function(predicate, name, or_columns=True)
        parts = divider(predicate)
        where_false, where_true = divide(
            self, name, 2, lambda time, batch: parts(batch, predicate, name)
        )
        return several((where_false, where_true), ["where_false", "where_true"], main=1)


class ConcatenateMethods(ScopeCore["Stream[Any]"]):
    """Merging streams. Methods of `Scope`."""

    def concatenate(self, streams: Iterable[Stream[T]], *, name: str = "Concatenate") -> Stream[T]:
        """All records of all `streams` (at least one).

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     return scope.concatenate([scope.to_stream([1]), scope.to_stream([3, 2])])
        >>> ps.testing.collect(build)
        [(0, 1), (0, 2), (0, 3)]
        """
        given: Any = streams  # of any type, until it is looked at
        found = list(given) if isinstance(given, Iterable) else [given]
        if not found:
            raise BuildError(f"scope {self.name!r}: concatenate needs at least one stream")
        for stream in found:
            if not isinstance(stream, StreamCore):
                raise BuildError(
                    f"operator {name!r} of scope {self.name!r} needs a list of streams, and "
                    f"{stream!r:.200} is none"
                )
        return concatenate(found, name)
