"""Operators with code of the user's: one or two inputs, one output.

Six of a kind. `unary` and `binary` see records only; the `_frontier` kin also
see `input.frontier`, and run when it moves; the `_notify` kin are given a
notificator, which says once when a time that they asked for is complete.

`build(capability, info)` is called once on each worker, with the capability to
send at the least time or later, and returns the logic. State lives in between,
as local variables of `build`. The logic may return True to be called again soon.

Source: timely-dataflow `dataflow/operators/generic/operator.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pact
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import BuildError
from pointstamp.operators.user_code import check_callable, check_takes, refuse_deferred
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

Build = Callable[[Capability, OperatorInfo], Callable[..., Any]]
"""Of any of the six. What each of them takes:"""

Unary = Callable[[Capability, OperatorInfo], Callable[[Input, Output], object]]
UnaryNotify = Callable[[Capability, OperatorInfo], Callable[[Input, Output, Notificator], object]]
Binary = Callable[[Capability, OperatorInfo], Callable[[Input, Input, Output], object]]
BinaryNotify = Callable[
    [Capability, OperatorInfo], Callable[[Input, Input, Output, Notificator], object]
]


def _inputs(n_inputs: int) -> list[str]:
    """What the inputs of a logic are called in errors."""
    return ["input"] if n_inputs == 1 else [f"input{place}" for place in range(1, n_inputs + 1)]


class _Logic(BuiltInLogic):
    """Calls the user's logic with what it takes: inputs, the output, the notificator."""

    __slots__ = ("_handles", "_logic", "_notificator")

    def __init__(self, logic: Callable[..., Any], notificator: Notificator | None) -> None:
        self._logic = logic
        self._notificator = notificator
        self._handles: tuple[Any, ...] = ()

    def run(self, inputs: list[Input], outputs: list[Output]) -> Any:
        """One activation; True asks for another."""
        if not self._handles:
            more = () if self._notificator is None else (self._notificator,)
            self._handles = (*inputs, outputs[0], *more)
        return self._logic(*self._handles)


def operator(
    streams: Sequence[StreamCore[Any]],
    pacts: Sequence[Pact],
    name: str,
    build: Build,
    interest: Interest,
) -> Stream[Any]:
    """An operator whose logic is called with its inputs and its one output."""
    check_callable(build, name)
    check_takes(build, name, "capability", "info")
    builder = OperatorBuilder(streams[0].scope, name)
    for stream, pact in zip(streams, pacts, strict=True):
        builder.new_input(stream, pact, interest)
    result: Stream[Any] = builder.new_output()

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        given = (*_inputs(len(streams)), "output")
        logic = checked_logic(build(capabilities.pop(), info), build, name, *given)
        return logic if isinstance(logic, BuiltInLogic) else _Logic(logic, None)

    builder.build(make_logic, build)
    return result


def operator_notify(
    streams: Sequence[StreamCore[Any]],
    pacts: Sequence[Pact],
    name: str,
    build: Build,
    initial: Iterable[Any],
    *,
    early: bool = False,
) -> Stream[Any]:
    """The same with a notificator, which starts with the times of `initial`.

    With `early` it gives times out as soon as all before them are complete.
    """
    check_callable(build, name)
    check_takes(build, name, "capability", "info")
    builder = OperatorBuilder(streams[0].scope, name)
    for stream, pact in zip(streams, pacts, strict=True):
        builder.new_input(stream, pact, Interest.IF_CAPABILITY)
    result: Stream[Any] = builder.new_output()

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        notificator = info.notificator(early=early)
        capability = capabilities.pop()
        for time in initial:
            notificator.notify_at(capability.delayed(time))
        given = (*_inputs(len(streams)), "output", "notificator")
        logic = checked_logic(build(capability, info), build, name, *given)
        del capability

        return _Logic(logic, notificator)

    builder.build(make_logic, build)
    return result


def checked_logic(logic: Any, build: Build, name: str, *given: str) -> Any:
    """The logic that `build` gave, if it can be called with what is given, if that is said."""
    if not callable(logic):
        raise BuildError(
            f"operator {name!r}: {getattr(build, '__qualname__', build)} gave {logic!r:.200}, and "
            "is to give the logic of the operator: return a function, which is called with its "
            "inputs and its output"
        )
    refuse_deferred(logic, name)
    if given:
        check_takes(logic, name, *given)
    return logic


class GenericMethods(StreamCore[T]):
    """Operators with code of the user's. Methods of `Stream`."""

    def unary(self, pact: Pact, name: str, build: Unary) -> Stream[Any]:
        """A custom operator on this stream; `logic(input, output)`.

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
        return operator([self], [pact], name, build, Interest.NEVER)

    def unary_frontier(self, pact: Pact, name: str, build: Unary) -> Stream[Any]:
        """A custom operator that sees its frontier, `input.frontier`, and runs when it moves.

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
        return operator([self], [pact], name, build, Interest.ALWAYS)

    def unary_notify(
        self, pact: Pact, name: str, build: UnaryNotify, initial: Iterable[Any] = ()
    ) -> Stream[Any]:
        """A custom operator with notifications; `logic(input, output, notificator)`.

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
        return operator_notify([self], [pact], name, build, initial)

    def binary(
        self, other: StreamCore[Any], pact1: Pact, pact2: Pact, name: str, build: Binary
    ) -> Stream[Any]:
        """A custom operator with two inputs; `logic(input1, input2, output)`.

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
        return operator([self, other], [pact1, pact2], name, build, Interest.NEVER)

    def binary_frontier(
        self, other: StreamCore[Any], pact1: Pact, pact2: Pact, name: str, build: Binary
    ) -> Stream[Any]:
        """A custom operator with two inputs that sees their frontiers, and runs when they move.

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
        return operator([self, other], [pact1, pact2], name, build, Interest.ALWAYS)

    def binary_notify(
        self,
        other: StreamCore[Any],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: BinaryNotify,
        initial: Iterable[Any] = (),
    ) -> Stream[Any]:
        """A custom operator with notifications; `logic(input1, input2, output, notificator)`.

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
        return operator_notify([self, other], [pact1, pact2], name, build, initial)
