"""Operators that turn each batch into another at once, and what map, filter and others are made of.

They hold no capability and care for no frontier, so progress never visits them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pointstamp.containers import kind_of
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.registry import parts_of
from pointstamp.dataflow.error_policy import FAILED, ErrorPolicy, streams
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder
from pointstamp.dataflow.pact import Pact, Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.containers.expressions import Expression
    from pointstamp.operators.stream import Stream

    Predicate: TypeAlias = Callable[[T], object] | str | Expression
    """Of a record; or the name of a column of booleans, or an expression, of columns."""

PIPELINE = Pipeline()


def transform(
    stream: StreamCore[Any],
    name: str,
    function: Callable[[Any, Any], Any],
    pact: Pact = PIPELINE,
    *,
    of_updates: bool = False,
) -> Stream[Any]:
    """Replace every batch by `function(time, batch)`, or by nothing where it is None.

    of_updates : whether the function is one of collections, which keep nothing of a batch
    """
    return built_in(stream, name, _Transform(function), pact, of_updates=of_updates)


def each_batch(stream: StreamCore[Any], name: str, function: Callable[[Any], Any]) -> Stream[Any]:
    """The same by `function(batch)`, where that is the user's own."""
    return built_in(stream, name, _EachBatch(function))


def look_at_batches(
    stream: StreamCore[Any], name: str, function: Callable[[Any, Any], object]
) -> Stream[Any]:
    """Call `function(time, batch)` with every batch, and hand it on."""
    return built_in(stream, name, _LookAt(function))


def each_record(stream: StreamCore[Any], name: str, function: Callable[[Any], Any]) -> Stream[Any]:
    """Replace every record of every list by `function(record)`."""
    return built_in(stream, name, _EachRecord(function, name))


def built_in(
    stream: StreamCore[Any],
    name: str,
    logic: BuiltInLogic,
    pact: Pact = PIPELINE,
    *,
    of_updates: bool = False,
) -> Stream[Any]:
    """An operator of one input and one output, with this logic, that holds no capability."""
    builder = OperatorBuilder(stream.scope, name)
    if of_updates:
        builder.states.holds_no_texts()
    builder.new_input(stream, pact, Interest.NEVER)
    result: Stream[Any] = builder.new_output(initial=False)

    builder.build(lambda capabilities, info: logic)
    return result


def try_transform(
    stream: StreamCore[Any],
    name: str,
    function: Callable[[Any, Any], Any],
    policy: ErrorPolicy,
    *,
    of_updates: bool = False,
    gives_parts: bool = False,
) -> Any:
    """The same where `function` is guarded by `policy`; what failed may be another stream.

    gives_parts : whether the function gives a sequence of batches
    """
    if policy.raises:
        assert not gives_parts
        return transform(stream, name, function, of_updates=of_updates)
    builder = OperatorBuilder(stream.scope, name)
    if of_updates:
        builder.states.holds_no_texts()
    builder.new_input(stream, PIPELINE, Interest.NEVER)
    result = builder.new_output(initial=False)
    failed = policy.new_output(builder)

    builder.build(lambda capabilities, info: _TryTransform(function, policy, gives_parts))
    return streams(result, *failed)


class _Transform(BuiltInLogic):
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


class _EachBatch(BuiltInLogic):
    """The same without the time: a function around the user's would be a call of Python more."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_, output = inputs[0], outputs[0]
        while (item := input_.pull()) is not None:
            changed = self._function(item[1])
            if changed is not None:
                for part in parts_of(changed):
                    output.push(item[0], part)


class _LookAt(BuiltInLogic):
    """The logic of what only looks at batches: hands them on, whatever the function gives."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any, Any], object]) -> None:
        self._function = function

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_, output = inputs[0], outputs[0]
        while (item := input_.pull()) is not None:
            self._function(item[0], item[1])
            output.push(item[0], item[1])


class _EachRecord(BuiltInLogic):
    """The logic of a map: as `_Transform`, without a function around the user's."""

    __slots__ = ("_function", "_name")

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self._function = function
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        input_, output = inputs[0], outputs[0]
        function = self._function
        while (item := input_.pull()) is not None:
            output.push(item[0], [function(record) for record in rows(item[1], self._name)])


class _TryTransform(BuiltInLogic):
    """The same, and then what `function` failed on."""

    __slots__ = ("_function", "_gives_parts", "_policy")

    def __init__(
        self, function: Callable[[Any, Any], Any], policy: ErrorPolicy, gives_parts: bool
    ) -> None:
        self._function = function
        self._policy = policy
        self._gives_parts = gives_parts

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        while (item := inputs[0].pull()) is not None:
            time, batch = item
            changed = self._function(time, batch)
            if changed is not None and changed is not FAILED:
                for part in changed if self._gives_parts else (changed,):
                    outputs[0].push(time, part)
            self._policy.push(outputs[-1], time)


def rows(batch: Any, operator: str) -> list[Any]:
    """The records as a list; of columns an error that says what to use instead."""
    if type(batch) is list:  # what the kind says, too, at a third of the time
        return batch
    return kind_of(batch).listed(batch, operator)


def is_of_columns(chosen: Any) -> bool:
    """Whether it is a column's name or an expression, rather than a function of a record."""
    return isinstance(chosen, str) or is_expression(chosen)


def kept(batch: Any, predicate: Any, name: str) -> Any:
    """The records of a batch of columns for which a column, or an expression, is true."""
    return kind_of(batch).filter(batch, predicate, name)


def pass_on(stream: StreamCore[Any], name: str, pact: Pact) -> Stream[Any]:
    """Hand batches on as they are; what matters is the pact."""
    return transform(stream, name, lambda time, batch: batch, pact)
