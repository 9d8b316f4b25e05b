"""Operators that turn each batch into another at once: map, filter and their kin.

They hold no capability and care for no frontier, so progress never visits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.containers.expressions import filter_batch, is_expression
from pointstamp.containers.flags import split_by_flag
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.pact import Pact, Pipeline
from pointstamp.errors import ContainerError
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

PIPELINE = Pipeline()


def transform(
    stream: Stream[Any], name: str, function: Callable[[Any, Any], Any], pact: Pact = PIPELINE
) -> Stream[Any]:
    """Replace every batch by `function(time, batch)`, or by nothing where it is None."""
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, pact, Interest.NEVER)
    result = builder.new_output(initial=False)

    builder.build(lambda capabilities, info: _Transform(function).run)
    return result


class _Transform:
    """The logic: takes what has come, and sends what `function` makes of it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_, output = inputs[0], outputs[0]
        while (item := input_.pull()) is not None:
            changed = self._function(item[0], item[1])
            if changed is not None:
                output.push(item[0], changed)


def rows(batch: Any, operator: str) -> list[Any]:
    """`batch` if it is a list, else an error that says what to use instead."""
    if type(batch) is list:
        return batch
    raise ContainerError(
        f"{operator} takes one record at a time, and this stream carries batches of "
        f"{kind_of(batch).name} ({type(batch).__name__}); use map_batches, or name a column, "
        "or of record batches give an expression, where the operator takes one"
    )


def map_(stream: Stream[Any], function: Callable[[Any], Any], name: str = "Map") -> Stream[Any]:
    """See `Stream.map`."""
    return transform(stream, name, lambda time, batch: [function(x) for x in rows(batch, name)])


def flat_map(
    stream: Stream[Any], function: Callable[[Any], Iterable[Any]], name: str = "FlatMap"
) -> Stream[Any]:
    """See `Stream.flat_map`."""
    return transform(
        stream,
        name,
        lambda time, batch: list(chain.from_iterable(map(function, rows(batch, name)))),
    )


def filter_(stream: Stream[Any], predicate: Any, name: str = "Filter") -> Stream[Any]:
    """See `Stream.filter`."""
    if is_of_columns(predicate):
        return transform(stream, name, lambda time, batch: kept(batch, predicate, name))
    return transform(
        stream, name, lambda time, batch: [x for x in rows(batch, name) if predicate(x)]
    )


def is_of_columns(chosen: Any) -> bool:
    """Whether it is a column's name or an expression, rather than a function of a record."""
    return isinstance(chosen, str) or is_expression(chosen)


def kept(batch: Any, predicate: Any, name: str) -> Any:
    """The records of a batch of columns for which a column, or an expression, is true."""
    if isinstance(predicate, str):
        return split_by_flag(batch, predicate, name)[1]
    return filter_batch(batch, predicate)


def map_batches(
    stream: Stream[Any], function: Callable[[Any], Any], name: str = "MapBatches"
) -> Stream[Any]:
    """See `Stream.map_batches`."""
    return transform(stream, name, lambda time, batch: function(batch))


def inspect(
    stream: Stream[Any], function: Callable[[Any], Any], name: str = "Inspect"
) -> Stream[Any]:
    """See `Stream.inspect`."""

    def look(time: Any, batch: Any) -> Any:
        for record in kind_of(batch).records(batch):
            function(record)
        return batch

    return transform(stream, name, look)


def inspect_batch(
    stream: Stream[Any], function: Callable[[Any, Any], Any], name: str = "InspectBatch"
) -> Stream[Any]:
    """See `Stream.inspect_batch`."""

    def look(time: Any, batch: Any) -> Any:
        function(time, batch)
        return batch

    return transform(stream, name, look)


def pass_on(stream: Stream[Any], name: str, pact: Pact) -> Stream[Any]:
    """Hand batches on as they are; what matters is the pact."""
    return transform(stream, name, lambda time, batch: batch, pact)
