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
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.operator_error import blame
from pointstamp.dataflow.pact import Pact
from pointstamp.errors import OperatorError
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


class _Logic:
    """Calls the user's logic with what it takes: inputs, the output, the notificator."""

    __slots__ = ("_handles", "_logic", "_name", "_notificator")

    def __init__(
        self, name: str, logic: Callable[..., Any], notificator: Notificator | None
    ) -> None:
        self._name = name
        self._logic = logic
        self._notificator = notificator
        self._handles: tuple[Any, ...] = ()

    def run(self, inputs: list[Input], outputs: list[Output]) -> Any:
        """One activation; True asks for another."""
        notificator = self._notificator
        if not self._handles:
            told = () if notificator is None else (notificator,)
            self._handles = (*inputs, outputs[0], *told)
        try:
            again = self._logic(*self._handles)
        except OperatorError:
            raise
        except Exception as error:
            if notificator is None or notificator.last_time is None:
                raise
            # It was at work on that time, and not on that of a batch that it took before.
            raise blame(error, self._name, notificator.last_time) from error
        if notificator is None or again is True:
            return again
        return notificator.overlooked()


def operator(
    streams: Sequence[Stream[Any]],
    pacts: Sequence[Pact],
    name: str,
    build: Build,
    interest: Interest,
) -> Stream[Any]:
    """An operator whose logic is called with its inputs and its one output."""
    builder = OperatorBuilder(streams[0].scope, name)
    for stream, pact in zip(streams, pacts, strict=True):
        builder.new_input(stream, pact, interest)
    result = builder.new_output()

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        logic = build(capabilities.pop(), info)
        return _Logic(name, logic, None).run

    builder.build(make_logic, build)
    return result


def operator_notify(
    streams: Sequence[Stream[Any]],
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
    builder = OperatorBuilder(streams[0].scope, name)
    for stream, pact in zip(streams, pacts, strict=True):
        builder.new_input(stream, pact, Interest.IF_CAPABILITY)
    result = builder.new_output()
    frontiers = [Frontier(counts) for counts in builder.frontiers]
    notificator = Notificator(streams[0].scope.timestamp, frontiers, early=early)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., Any]:
        capability = capabilities.pop()
        for time in initial:
            notificator.notify_at(capability.delayed(time))
        logic = build(capability, info)
        del capability

        return _Logic(name, logic, notificator).run

    builder.build(make_logic, build)
    return result
