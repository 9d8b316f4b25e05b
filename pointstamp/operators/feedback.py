"""Feedback: the stream that comes before what it is made of.

A loop is made in two steps: `scope.feedback` gives a stream to build on and a
handle; `handle.connect` says what flows around. On the way time advances by the
summary, which is what keeps a loop from waiting for itself.

What enters a loop may go through the operator that closes it (`Loop.admit`): it lets in the records
of a few epochs only, and of the next when the first of those has come to its end. Epochs that go
round together make updates at the times of any two of them, which come one epoch at a time are
those of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.several_streams import several
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, FeedbackError, LoopWarning
from pointstamp.operators.loop_rounds import LoopRounds
from pointstamp.progress.operate import Interest
from pointstamp.progress.step import Step
from pointstamp.progress.timestamp import Int, Product, Summary, Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

AHEAD = 4
"""How many epochs are in a loop at most, of those that are admitted one after the other."""

FAR = 2
"""A loop is far beyond what was expected when it has gone round so many times as often."""

UNNAMED = "Feedback"


class Loop:
    """The open end of a feedback, to be connected once."""

    def __init__(
        self, scope: ScopeCore[Any], summary: Summary, name: str, expect: int | None = None
    ) -> None:
        self.scope = scope
        self._expect = expect
        self.name = name
        self._summary = summary
        self._builder = OperatorBuilder(scope, name)
        self._builder.states.holds_no_texts()
        self.remedy = "call connect(stream) on its handle"
        """What to do where it was never connected."""
        self.connected = False
        self._n_admitted = 0
        self.stream: Stream[Any] = self._builder.new_output(initial=False)

    def admit(self, stream: StreamCore[Any]) -> Stream[Any]:
        """A stream of the loop's scope, of which later epochs wait for those under way.

        To be called before the loop is connected, of a loop whose times are pairs of an epoch, an
        integer, and a round.
        """
        builder = self._builder
        port = builder.new_input(stream, Pipeline(), Interest.NEVER, summaries={})
        admitted: Stream[Any] = builder.new_output(initial=False, summaries={})
        self._n_admitted += 1
        builder.connect(port, self._n_admitted)
        return admitted

    def connect(self, stream: StreamCore[Any]) -> None:
        """Let `stream` flow around, at later times."""
        if self.connected:
            raise FeedbackError(
                f"feedback {self.name!r} of {self.scope.path} is connected already; "
                "concat the streams and connect the result"
            )
        self.connected = True
        if self.scope.environment.durable_state is not None and self._changes_epoch():
            self._builder.states.refuse(
                "its loop carries records from one epoch into later ones, where a snapshot does "
                "not find them; put the loop into a scope of its own, scope.iterative()"
            )
        summary = self._summary
        watch = _watch(self.scope, self.name, summary, self._expect)
        has_rounds = _has_rounds(self.scope.timestamp)
        is_counted = has_rounds or self.scope.timestamp is Int
        interest = Interest.IF_CAPABILITY if self._n_admitted else Interest.NEVER
        port = self._builder.new_input(stream, Pipeline(), interest, summaries={})
        self._builder.connect(port, 0, summary)

        def build(capabilities: list[Capability], info: OperatorInfo) -> BuiltInLogic:
            go_round = _GoRound(summary, watch, has_rounds, is_counted)
            if is_counted:
                name = self.scope.name if self.name == UNNAMED else self.name
                LoopRounds.beside(self.scope).add(name, go_round)
            if not self._n_admitted:
                return go_round
            info.keeps_nothing()
            admit = _Admit(go_round, info.new_batches)
            info.states.waits_with(admit.waiting)
            return admit

        self._builder.build(build)

    def check_connected(self) -> None:
        """Raise unless it was connected."""
        if not self.connected:
            raise FeedbackError(
                f"feedback {self.name!r} of {self.scope.path} was never connected; {self.remedy} "
                "before the scope ends"
            )

    def _changes_epoch(self) -> bool:
        """Whether a time may come back at a later epoch."""
        first, epochs = self.scope.timestamp.minimum, self.scope.epochs()
        time = self._summary.results_in(first)
        return time is not None and epochs.of(time) != epochs.of(first)


class _GoRound(BuiltInLogic):
    """The logic of a loop: sends what has come on at later times."""

    __slots__ = ("_has_rounds", "_is_counted", "_step", "_watch", "n_rounds")

    def __init__(
        self, summary: Summary, watch: _Watch | None, has_rounds: bool, is_counted: bool
    ) -> None:
        self._step = Step(0, summary)
        self._watch = watch
        self._has_rounds = has_rounds
        self._is_counted = is_counted
        self.n_rounds: Any = 0
        """The latest round that began here, of any time outside."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> bool:
        input_, output = inputs[-1], outputs[0]
        # Records of a later round wait for those that are behind, and go on with
        # them: each round that is under way has to be counted by itself.
        has_later = self._has_rounds and input_.put_off_later_rounds()
        while (item := input_.pull()) is not None:
            time = self._step.arrives(item[0])
            if time is not None:
                if self._watch is not None:
                    self._watch.see(time)
                if self._is_counted:
                    number = time[1] if self._has_rounds else time
                    if number > self.n_rounds:
                        self.n_rounds = number
                output.push(time, item[1])
        return has_later


class _Admit(BuiltInLogic):
    """The logic of a loop that what enters goes through; the last input is what goes round.

    new_batches : makes a list of what waits, of which what does not fit into memory is on disk
    """

    __slots__ = ("_go_round", "_new_batches", "_waiting")

    def __init__(self, go_round: _GoRound, new_batches: Callable[[], Any]) -> None:
        self._go_round = go_round
        self._new_batches = new_batches
        self._waiting: dict[tuple[Any, int], tuple[Capability, Any]] = {}
        """By time and output: with a capability for both."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> bool:
        has_later = self._go_round.run(inputs, outputs)
        # What waits holds its own times back: the least of them is among those that go round.
        until = _first_epoch(inputs[-1].frontier.elements)
        if self._waiting:
            self._let_in(until, outputs)
        for port in range(1, len(inputs)):
            input_, output = inputs[port - 1], outputs[port]
            while (received := input_.next()) is not None:
                held, batch = received
                if until is None or held.time[0] < until + AHEAD:
                    output.push(held.time, batch)
                else:
                    self._wait(held, port, batch)
        return has_later

    def waiting(self) -> list[Any]:
        """The batches that wait."""
        return [batches for _, batches in self._waiting.values()]

    def _wait(self, held: Any, port: int, batch: Any) -> None:
        place = (held.time, port)
        if place not in self._waiting:
            self._waiting[place] = (held.retain(port), self._new_batches())
        self._waiting[place][1].append(batch)

    def _let_in(self, until: Any, outputs: list[Output]) -> None:
        """Send what waited and may enter now."""
        for place in list(self._waiting):
            (epoch, _), port = place
            if until is None or epoch < until + AHEAD:
                capability, batches = self._waiting.pop(place)
                with capability:
                    session = outputs[port].session(capability)
                    for batch in batches:
                        session.give_batch(batch)
                batches.clear()


def _first_epoch(times: list[Any]) -> Any:
    """That of pairs of an epoch and a round; None of no times."""
    least = None
    for epoch, _ in times:
        if least is None or epoch < least:
            least = epoch
    return least


def _has_rounds(timestamp: Timestamp) -> bool:
    """Whether times are pairs of a time outside and a number of rounds."""
    return isinstance(timestamp, Product) and timestamp.inner is Int


def _watch(scope: ScopeCore[Any], name: str, summary: Summary, expect: int | None) -> _Watch | None:
    """What warns of too many rounds, where a number is expected."""
    if expect is None:
        return None
    if type(expect) is not int or expect < 1:
        raise FeedbackError(
            f"feedback {name!r} of {scope.path} cannot expect {expect!r} rounds: it is an "
            "integer, and 1 is the least"
        )
    return _Watch(f"feedback {name!r} of {scope.path}", scope.timestamp, expect)


class _Watch:
    """Warns when times come that only a loop far beyond its expected rounds has.

    It says so at twice as many rounds as expected, and each time that they double.
    """

    def __init__(self, where: str, timestamp: Timestamp, expect: int) -> None:
        self._where = where
        self._timestamp = timestamp
        self._expect = expect
        self._far = 0
        self._within: Any = None
        self._move(FAR * expect)

    def see(self, time: Any) -> None:
        """Look at a time that goes round."""
        while self._within.results_in(time) is None:
            warnings.warn(
                f"{self._where} was expected to go round {self._expect} times, and goes on after "
                f"{self._far}, at time {time}; give the loop a limit, or see why it does not end",
                LoopWarning,
                stacklevel=2,
            )
            self._move(2 * self._far)

    def _move(self, far: int) -> None:
        self._far = far
        # Times with a round of `far` or later do not pass it.
        self._within = self._timestamp.bounded(self._timestamp.identity, far + 1)


class FeedbackMethods(ScopeCore["Stream[Any]"]):
    """Loops. Methods of `Scope`."""

    def feedback(
        self,
        summary: Any,
        limit: int | None = None,
        name: str = UNNAMED,
        *,
        expect: int | None = None,
    ) -> tuple[Loop, Stream[Any]]:
        """The two ends of a loop: `connect` one, and build on the stream of the other.

        Parameters
        ----------
        summary
            How time advances around the loop: an int advances an integer time, or
            the inner coordinate of a product.
        limit : int, optional
            Times whose (inner) coordinate would reach it never arrive.
        expect : int, optional
            Warn (`LoopWarning`) when times come whose (inner) coordinate is beyond twice
            as much, and each time that it doubles.

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     loop, again = scope.feedback(1, limit=3)
        ...     result = scope.to_stream([10]).concat(again)
        ...     loop.connect(result.map(lambda x: x + 1))
        ...     return result
        >>> ps.testing.collect(build)
        [(0, 10), (1, 11), (2, 12)]
        """
        advance = self.timestamp.summary(summary)
        if limit is not None:
            if type(limit) is not int or limit < 0:
                raise BuildError(
                    f"feedback {name!r} of {self.path} cannot have a limit of {limit!r}: it is an "
                    "integer, and 0 is the least"
                )
            advance = self.timestamp.bounded(advance, limit)
        loop = Loop(self, advance, name, expect)
        self.checks.append(loop.check_connected)
        return several((loop, loop.stream), ["loop", "stream"], main=1)
