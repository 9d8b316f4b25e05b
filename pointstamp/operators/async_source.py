"""A source whose code is an asynchronous generator.

What it yields is sent at the time to which it has advanced its handle; until it ends,
or advances, the worker holds the capability for that time. A worker that has nothing
else to do parks, and is woken by what is yielded.

Guarantees: what was yielded before the generator ended is sent, once, in order. After
a failure nothing is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.event_loop import (
    Advanced,
    AsyncInput,
    Ended,
    Generating,
    Outcomes,
    Yielded,
)
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.operator_error import raise_outside
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.errors import BuildError
from pointstamp.operators.user_code import check_takes

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


def async_source(
    scope: ScopeCore[Any],
    generate: Callable[[AsyncInput], AsyncIterator[Any]],
    *,
    batches: bool,
    buffer: int,
    name: str = "AsyncSource",
) -> Stream[Any]:
    """See `Scope.async_source`."""
    if not callable(generate):
        raise BuildError(
            f"source {name!r} needs an asynchronous generator function; found {generate!r:.200}"
        )
    if iscoroutinefunction(generate):
        raise BuildError(
            f"source {name!r} needs an asynchronous generator function, which yields records; "
            f"{generate!r} has no yield"
        )
    check_takes(generate, name, "input")
    if type(buffer) is not int or buffer < 1:
        raise BuildError(
            f"source {name!r}: buffer says how much may be yielded and not sent yet, 1 or more, "
            f"not {buffer!r}"
        )
    environment = scope.environment
    builder = OperatorBuilder(scope, name)
    builder.set_role("source")
    builder.states.refuse(NOT_REPLAYED)
    stream: Stream[Any] = builder.new_output()

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        outcomes = Outcomes(environment.call, info.activate)
        input_ = AsyncInput(name, scope.timestamp, info.index, info.peers, outcomes)
        generating = Generating(generate, input_, outcomes, buffer)
        logic = _Source(name, environment, capabilities.pop(), generating, outcomes, batches)
        environment.closers.callback(logic.cancel)
        return logic.run

    builder.build(make_logic)
    return stream


class _Source:
    """The logic: sends what the generator has yielded, and follows its time."""

    __slots__ = (
        "_capability",
        "_environment",
        "_generating",
        "_is_begun",
        "_name",
        "_outcomes",
        "_takes_batches",
    )

    def __init__(
        self,
        name: str,
        environment: Environment,
        capability: Capability,
        generating: Generating,
        outcomes: Outcomes,
        takes_batches: bool,
    ) -> None:
        self._name = name
        self._environment = environment
        self._capability = capability
        self._generating = generating
        self._outcomes = outcomes
        self._takes_batches = takes_batches
        self._is_begun = False

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation; the first begins the generator."""
        if not self._is_begun:
            self._is_begun = True
            self._environment.n_outside += 1
            self._environment.event_loop().call(self._generating.start)
            # What it yields asks for an activation; taken here, it would make room already.
            return
        n_given = sum(self._follow(outcome, outputs[0]) for outcome in self._outcomes.take())
        if n_given and self._capability.live:
            self._environment.event_loop().call(self._generating.make_room, n_given)

    def cancel(self) -> None:
        """End the generator: no operator waits for it any more."""
        self._outcomes.close()
        if self._is_begun and self._capability.live:
            self._environment.n_outside -= 1
            self._environment.event_loop().call(self._generating.cancel)

    def _follow(self, outcome: Yielded | Advanced | Ended, output: Output) -> int:
        """Do what the generator did; whether it gave something, 0 or 1."""
        if isinstance(outcome, Yielded):
            session = output.session(self._capability)
            (session.give_batch if self._takes_batches else session.give)(outcome.value)
            return 1
        output.flush()  # before the epoch is left, as an input does: what counts them sees it so
        if isinstance(outcome, Advanced):
            self._capability.downgrade(outcome.time)
        else:
            if outcome.error is not None:
                raise_outside(outcome.error, self._name, self._capability.time)
            self._environment.n_outside -= 1
            self._capability.drop()
        return 0
