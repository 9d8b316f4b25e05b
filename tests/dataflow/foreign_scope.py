"""A dataflow of its own inside one operator: what a foreign runtime would do.

Everything that coordinates the inside is here, written against `Operate` and the
public parts of a scope alone: the times inside, the counts of what is unfinished,
what the instances on the workers tell each other, and when a round is complete.

Inside, numbers go around a loop of one step (Collatz: half of an even one, three times
an odd one and one more) until they are 1:

    input -> [step] -> output        ("steps", start, how many) for each number
              ^   |                  ("round", round, how many numbers) for each round,
              +---+ round + 1          on each worker, once the round is complete everywhere

A time inside is (time outside, round). A round is complete when no number can come to
the step in it any more, from any worker, from outside, or from what this scope itself
has sent out and what may come back.

With `local=False` numbers are exchanged inside, over a channel of the scope's own, and
so are all changes of the counts: each instance reports what all of them did. With
`local=True` each instance keeps its numbers and reports for itself alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pointstamp import Exchange, Pipeline
from pointstamp.dataflow.channels import Tee
from pointstamp.dataflow.environment import Environment
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Changes, Interest, ProgressReport, Summaries
from pointstamp.progress.timestamp import summary_less_equal

Inner = tuple[Any, int]
"""(time outside, round)."""

Number = tuple[int, int, int]
"""(start, where it is now, steps so far)."""


def foreign_scope(stream: Stream[int], *, local: bool, kind: Any = None) -> Stream[Any]:
    """Run `stream` through a foreign scope (of class `kind`)."""
    return (kind or ForeignScope)(stream, local=local).stream


class ForeignScope:
    """One worker's instance; speaks `Operate` with the scope around it."""

    name = "Foreign"
    inputs = 1
    outputs = 1
    complete = True

    def __init__(self, stream: Stream[int], *, local: bool) -> None:
        scope = stream.scope
        self.local = local
        # Alone, it is told the whole frontier; all together, only what is held outside, to
        # which it adds what its own numbers imply when they leave and come back.
        self.wants_outside = not local
        self.frontier_interest = [Interest.IF_CAPABILITY]
        self.timestamp = scope.timestamp
        self.index, self.peers = scope.index, scope.peers
        self._install(scope, stream)
        self._outside: Counter[Any] = Counter()
        self._ways_back: list[Any] = []
        """Summaries of the paths outside, from the output to the input."""
        self._counts: Counter[tuple[str, Inner]] = Counter()
        """Of all instances: numbers under way ("number"), and rounds to be told of ("held")."""
        self._here: deque[tuple[Inner, list[Number]]] = deque()
        self._asked: dict[Inner, int] = {}
        """Rounds in which this worker had numbers: how many."""
        self._told: set[Inner] = set()
        self._held: set[Any] = set()
        """The times outside for which a capability was reported."""
        self._news: list[tuple[str, Any, int]] = []
        self._internal: ChangeBatch = ChangeBatch()
        self._consumed: ChangeBatch = ChangeBatch()
        self._produced: ChangeBatch = ChangeBatch()

    def _install(self, scope: Scope, stream: Stream[int]) -> None:
        """Take a place in the scope: an input, an output, channels."""
        node = scope.reserve(self.name)
        self._taken: ChangeBatch = ChangeBatch()
        self._given: ChangeBatch = ChangeBatch()
        pact = Exchange(lambda number: number) if self.local else Pipeline()
        self._queue = scope.connect(stream, (node, 0), pact, self._taken)
        self._tee = Tee(self.name, self._given)
        self.stream = scope.new_stream((node, 0), self._tee)
        self._numbers: Any = None
        self._changes: Any = None
        if not self.local and self.peers > 1:
            self._numbers = scope.environment.channel(scope.activation(node))
            self._changes = scope.environment.channel(scope.activation(node))
        scope.install(node, self)

    # What the parent calls.

    @property
    def holds_capability(self) -> bool:
        """Whether a frontier that moves may complete a round that this worker asked about."""
        return bool(self._asked)

    def internal_summary(self) -> tuple[Summaries, Changes]:
        """What leaves does so at the time at which it came; nothing is held at the start."""
        stays = Antichain(summary_less_equal, [self.timestamp.identity])
        return [{0: stays}], [ChangeBatch()]

    def set_external_summary(self, summaries: Summaries, capabilities: Changes) -> None:
        """The ways back, and what may come at the start."""
        self._ways_back = list(summaries[0].get(0, ()))
        self.push_external_progress(capabilities)

    def push_external_progress(self, changes: Changes) -> None:
        """What may come from outside, now that our last report is counted."""
        for time, change in changes[0].drain():
            self._outside[time] += change
        if Environment.watcher is not None:
            Environment.watcher.notified(self)

    def pull_internal_progress(self) -> ProgressReport:
        """One visit.

        Rounds come first: they are judged by what was in the last report, for which the
        last push was the receipt. What is done and heard after that may have left already,
        with nobody outside having counted it yet.
        """
        self._answer_complete_rounds()
        self._take_input()
        self._step()
        has_news = bool(self._news)
        self._tell_peers()
        has_news = self._hear_peers() or has_news
        self._report_held()
        is_active = bool(self._here) or (has_news and bool(self._asked))
        return ProgressReport([self._internal], [self._consumed], [self._produced], is_active)

    # The work.

    def _answer_complete_rounds(self) -> None:
        complete = [time for time in self._asked if not self._may_come(time)]
        for time in complete:
            self._tee.push(time[0], [("round", time[1], self._asked.pop(time))])
            self._told.add(time)
            self._note("held", time, -1)
        self._note_given()

    def _take_input(self) -> None:
        while (item := self._queue.pull()) is not None:
            time, numbers = item
            self._send((time, 0), [(number, number, 0) for number in numbers])
        for time, count in self._taken.drain():
            self._note("consumed", time, count)

    def _step(self) -> None:
        """One step of all numbers that are here now; what comes of it waits for its turn."""
        for time, numbers in list(self._arrived()):
            assert time not in self._told, f"a number came at {time}, which was complete"
            if time not in self._asked:
                self._note("held", time, +1)
            self._note("number", time, -len(numbers))
            self._asked[time] = self._asked.get(time, 0) + len(numbers)
            outer, round_ = time
            arrived = [("steps", start, steps) for start, now, steps in numbers if now == 1]
            self._tee.push(outer, arrived)
            going = [
                (start, now * 3 + 1 if now % 2 else now // 2, steps + 1)
                for start, now, steps in numbers
                if now != 1
            ]
            self._send((outer, round_ + 1), going)
        self._note_given()

    def _arrived(self) -> Iterator[tuple[Inner, list[Number]]]:
        waiting, self._here = self._here, deque()
        yield from waiting
        while self._numbers is not None and (message := self._numbers.pull()) is not None:
            yield message.tag, message.batch

    def _send(self, time: Inner, numbers: list[Number]) -> None:
        """Send numbers into the loop, each to the worker that owns its value."""
        parts: dict[int, list[Number]] = {}
        for number in numbers:
            owner = self.index if self._numbers is None else number[1] % self.peers
            parts.setdefault(owner, []).append(number)
        for owner, part in parts.items():
            self._note("number", time, len(part))
            if owner == self.index:
                self._here.append((time, part))
            else:
                self._numbers.send(owner, time, part)

    # Counting: everything that an instance does passes `_note`, and reaches all in order.

    def _note(self, what: str, time: Any, change: int) -> None:
        self._apply(what, time, change)
        self._news.append((what, time, change))

    def _note_given(self) -> None:
        for time, count in self._given.drain():
            self._note("produced", time, count)

    def _apply(self, what: str, time: Any, change: int) -> None:
        if what == "consumed":
            self._consumed.update(time, change)
        elif what == "produced":
            self._produced.update(time, change)
        else:
            self._counts[what, time] += change
            if not self._counts[what, time]:
                del self._counts[what, time]

    def _tell_peers(self) -> None:
        """All of a visit in one message: no peer sees half of it."""
        news, self._news = self._news, []
        if news and self._changes is not None:
            for peer in range(self.peers):
                if peer != self.index:
                    self._changes.send(peer, "changes", news)

    def _hear_peers(self) -> bool:
        has_news = False
        while self._changes is not None and (message := self._changes.pull()) is not None:
            has_news = True
            for what, time, change in message.batch:
                self._apply(what, time, change)
        return has_news

    # What follows from the counts. A count below zero is a receipt that overtook its send;
    # it must not make up for another, so only what is positive counts, by itself.

    def _present(self) -> Iterator[tuple[str, Inner]]:
        return (place for place, count in self._counts.items() if count > 0)

    def _report_held(self) -> None:
        """Hold a capability for each time outside that something inside may leave at."""
        held = {time[0] for _, time in self._present()}
        for outer in held - self._held:
            self._internal.update(outer, +1)
        for outer in self._held - held:
            self._internal.update(outer, -1)
        self._held = held

    def _may_come(self, time: Inner) -> bool:
        """Whether a number may still come to the step at `time`, or before."""
        less_equal = self.timestamp.less_equal
        outer, round_ = time
        for what, (other, other_round) in self._present():
            if less_equal(other, outer) and other_round + (what == "held") <= round_:
                return True
        return any(less_equal(other, outer) for other in self._may_enter())

    def _may_enter(self) -> list[Any]:
        """The times that may come from outside: held there, or ours that come back."""
        back = (way.results_in(time) for way in self._ways_back for time in self._held)
        outside = (time for time, count in self._outside.items() if count > 0)
        return [*outside, *(time for time in back if time is not None)]

    # What the oracle asks for, beyond `Operate`; see `pointstamp.testing.oracle.Foreign`.

    @property
    def queues(self) -> list[Any]:
        """Where batches wait, per input."""
        return [self._queue]

    def believes(self) -> list[list[Any]]:
        """Per input: the times that may come, as far as this instance knows."""
        return [self._may_enter()]

    def holds(self) -> Iterator[tuple[int, Any]]:
        """(output, time) of everything that is here and may be sent."""
        for time, _ in self._here:
            yield 0, time[0]
        for time in self._asked:
            yield 0, time[0]

    def channels(self) -> Mapping[int, Callable[[Any], tuple[int, Any]]]:
        """By channel, where a message under way may leave: (output, time), given its tag."""
        return {} if self._numbers is None else {self._numbers.id: lambda tag: (0, tag[0])}
