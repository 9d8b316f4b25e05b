"""Rounds: what the workers do with their parts of a graph, until all are halted.

    programs --> rounds --+--> the same programs, once all of their time are halted
                  ^       |
                  +-------+ messages, of the next round

A program is one worker's part of an algorithm. Each round it takes the messages that
the other parts sent it in the round before, works, and sends messages; it may also ask
for another round. A round begins at a worker when nothing of the round before is
under way any more to it, which the frontier of the messages says; a worker with neither
messages nor a wish is not visited. When no times of the loop are left, all are halted.

Knows nothing of graphs. Source: L. G. Valiant, "A bridging model for parallel
computation", 1990; a barrier per round is here two changes of progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pointstamp.containers import Arrays
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.notificator import Notificator
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pipeline
from pointstamp.operators.stream import Stream

TO = "to"
"""The column that has the number of the worker that a message is for."""

TO_WORKER = Exchange(to=TO)

END = 1 << 62
"""A round that is never reached."""

Sent = tuple[Iterable[Arrays], bool]


class VertexProgram(Protocol):
    """One worker's part of an algorithm that works in rounds."""

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Do the work of `round`.

        Parameters
        ----------
        round : int
            From 0; greater than that of the last call, and by more than one where
            there was nothing to do in between.
        messages : list of Arrays
            What arrived, in no particular order. Nothing in round 0.

        Returns
        -------
        (messages, again)
            Batches with a column `to`, the number of the worker that each record is
            for, all batches of all steps with the same columns; and whether the next
            round is wanted even if no messages comes.
        """


def run_supersteps(programs: Stream[Any], name: str) -> Stream[Any]:
    """Run the programs of each time, at most one at a worker, until all are halted.

    Parameters
    ----------
    programs : Stream of rows
        Lists of `VertexProgram`, which stay on their worker. They are changed.

    Returns
    -------
    Stream of rows
        The same programs, when all workers' of their time are halted.
    """
    with programs.scope.iterative(name=name) as inner:
        loop, messages = inner.feedback(1)
        sent, halted = _supersteps(programs.enter(inner), messages, name)
        loop.connect(sent)
        return halted.leave()


def _supersteps(
    programs: Stream[Any], messages: Stream[Any], name: str
) -> tuple[Stream[Arrays], Stream[Any]]:
    builder = programs.scope.operator(name)
    builder.new_input(programs, Pipeline())
    builder.new_input(messages, TO_WORKER)
    sent = builder.new_output(initial=False)
    halted = builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        rounds = _Supersteps(info.notificator())

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            rounds.take_programs(inputs[0])
            rounds.take_messages(inputs[1])
            rounds.advance(outputs[0])
            rounds.release(inputs[1], outputs[1])

        return logic

    builder.build(make_logic)
    return sent, halted


class _Supersteps:
    """The programs of one worker that are not halted yet, by their outer time."""

    def __init__(self, notificator: Notificator) -> None:
        self._notificator = notificator
        self._programs: dict[Any, tuple[Capability, VertexProgram]] = {}
        self._messages: dict[Any, list[Arrays]] = {}

    def take_programs(self, programs: Input) -> None:
        for time, (program,) in programs:
            self._programs[time.time[0]] = (time.retain(1), program)
            self._notificator.notify_at(time.retain(0))

    def take_messages(self, messages: Input) -> None:
        for time, batch in messages:
            if time.time not in self._messages:
                self._messages[time.time] = []
                self._notificator.notify_at(time.retain(0))
            self._messages[time.time].append(batch)

    def advance(self, sent: Output) -> None:
        """Do the rounds that are complete."""
        for capability in self._notificator:
            outer, round = capability.time
            arrived = self._messages.pop(capability.time, [])
            # A worker without a part of the graph may receive what is for all.
            if outer in self._programs:
                batches, again = self._programs[outer][1].step(round, arrived)
                for batch in batches:
                    sent.session(capability).give_batch(batch)
                if again:
                    self._notificator.notify_at(capability.delayed((outer, round + 1)))
            capability.drop()

    def release(self, messages: Input, halted: Output) -> None:
        """Send on the programs to which nothing comes any more."""
        for outer in [o for o in self._programs if not messages.frontier.less_equal((o, END))]:
            capability, program = self._programs.pop(outer)
            halted.session(capability).give(program)
            capability.drop()


def results(programs: Stream[Any], result: Callable[[Any], Any]) -> Stream[Any]:
    """The batch that `result` makes of each program, in pieces of the preferred size."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()

        def logic(input: Input, output: Output) -> None:
            for time, records in input:
                for program in records:
                    output.session(time).give_batch(result(program))

        return logic

    return programs.unary(Pipeline(), "Results", build)
