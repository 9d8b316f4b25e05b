"""Operators that make two streams of one, or one of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.scope_core import ScopeCore
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
    for stream in streams:
        builder.new_input(stream, Pipeline(), Interest.NEVER)
    result: Stream[Any] = builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            push = outputs[0].push
            for input_ in inputs:
                while (item := input_.pull()) is not None:
                    push(*item)

        return logic

    builder.build(make_logic)
    return result


def divide(
    stream: StreamCore[Any], name: str, n: int, function: Callable[[Any, Any], Sequence[Any]]
) -> list[Stream[Any]]:
    """`n` streams, to which the parts go that `function(time, batch)` makes of each batch.

    A part is a container, which may be empty, or None for nothing.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.NEVER)
    results = [builder.new_output(initial=False) for _ in range(n)]

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            while (item := inputs[0].pull()) is not None:
                time, batch = item
                for output, part in zip(outputs, function(time, batch), strict=True):
                    if part is not None:
                        output.push(time, part)

        return logic

    builder.build(make_logic)
    return results


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
        """The records of this stream and of `others`.

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
        """The records for which `predicate` is false, and those for which it is true.

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
        return where_false, where_true


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
        streams = list(streams)
        if not streams:
            raise BuildError(f"scope {self.name!r}: concatenate needs at least one stream")
        return concatenate(streams, name)
