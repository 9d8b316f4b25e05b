"""What an operator's code holds: its inputs, its outputs, sessions, frontiers.

An input is iterated: `for time, batch in input`. An output is written to in
sessions: `with output.session(cap) as session: session.give(record)`. What was
given is sent when a batch is full, when the time changes, and at the latest when
the operator returns, so nothing waits for time to advance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pointstamp.containers.builder import Builder
from pointstamp.dataflow.capability import (
    Capability,
    CapabilityCounts,
    InputCapability,
    ReceivingPort,
    SendRight,
    received,
)
from pointstamp.dataflow.channels import Queue, Tee
from pointstamp.errors import CapabilityError
from pointstamp.progress.activation import NO_ACTIVATION
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.input_frontier import InputFrontier


def _nowhere(batch: Any) -> None:
    """Takes what is sent from an output that was abandoned."""


class Frontier:
    """The times that may still come at a place; changes as the computation goes on."""

    __slots__ = ("_counts",)

    def __init__(self, counts: InputFrontier) -> None:
        self._counts = counts

    @property
    def elements(self) -> list[Any]:
        """The minimal times that may still come; empty when none will."""
        return self._counts.elements()

    def less_equal(self, time: Any) -> bool:
        """Whether `time`, or one before it, may still come."""
        return self._counts.less_equal(time)

    def less_than(self, time: Any) -> bool:
        """Whether a time strictly before `time` may still come."""
        return self._counts.less_than(time)

    def is_empty(self) -> bool:
        """Whether nothing more comes."""
        return self._counts.is_empty()

    def __repr__(self) -> str:
        return f"Frontier({self._counts.frontier})"


class Input(ReceivingPort):
    """One input of an operator."""

    __slots__ = ("_queue", "frontier")

    def __init__(
        self,
        name: str,
        port: int,
        queue: Queue,
        counts: InputFrontier,
        capabilities: list[CapabilityCounts],
        summaries: Mapping[int, Antichain],
        stays: set[int],
    ) -> None:
        super().__init__(name, port, capabilities, summaries, stays)
        self._queue = queue
        self.frontier = Frontier(counts)

    @property
    def last_time(self) -> Any:
        """The time of what was received last in this activation, or None."""
        return self._queue.last_time

    def end_round(self) -> bool:
        """What was received is consumed now; whether there may be more, for the next turn."""
        self.round += 1
        self._queue.last_time = None
        return self._queue.renew()

    def abandon(self) -> None:
        """Throw away what waits here: the dataflow was dropped."""
        self._queue.abandon()

    def __iter__(self) -> Input:
        """(time, batch) of all that has arrived. `time.time` is the plain time."""
        return self

    def __next__(self) -> tuple[InputCapability, Any]:
        item = self._queue.pull()
        if item is None:
            raise StopIteration
        return received(item[0], self), item[1]

    def waiting(self) -> list[tuple[Any, int]]:
        """(time, number of records) of each batch that has arrived and was not taken."""
        return self._queue.waiting()

    def held(self) -> list[Any]:
        """Those batches; see `Queue.held`."""
        return self._queue.held()

    def pull(self) -> tuple[Any, Any] | None:
        """The next (plain time, batch), or None; for operators that only pass times on."""
        return self._queue.pull()

    def put_off_later_rounds(self) -> bool:
        """Leave to the next activation what is of a later round than others that wait."""
        return self._queue.put_off_later_rounds()

    def next(self) -> tuple[InputCapability, Any] | None:
        """The next (time, batch), or None; for operators that take one at a time."""
        item = self._queue.pull()
        return None if item is None else (received(item[0], self), item[1])


class Output:
    """One output of an operator."""

    __slots__ = ("_builder", "_tee", "_time", "capabilities")

    def __init__(self, tee: Tee, capabilities: CapabilityCounts) -> None:
        self._tee = tee
        self._builder: Builder | None = None
        """Made when it is needed: what sends batches as they are collects no records."""
        self._time: Any = None
        self.capabilities = capabilities

    def session(self, capability: Capability | InputCapability) -> Session:
        """Send at the time of `capability` (which must be live, and of this output)."""
        given: Any = capability  # of any type, until it is looked at
        # Without calls of Python: most operators have a session for each batch.
        if isinstance(given, SendRight):
            right = given
            right.check("send", self.capabilities)
        else:
            raise CapabilityError(
                f"operator {self.capabilities.operator!r} sends with a capability, and was given "
                f"{given!r:.200} ({type(given).__name__}); give what came with the batch, or what "
                "was retained from it"
            )
        made = Session.__new__(Session)
        made._output = self
        made._capability = capability
        return made

    def push(self, time: Any, batch: Any) -> None:
        """Send `batch` as it is: for operators that consumed something of `time` just now."""
        if self._builder is not None and not self._builder.is_empty():
            self._builder.flush()
        self._tee.push(time, batch)

    def at(self, time: Any) -> Builder:
        """What collects records at `time`; what it had of another time is sent."""
        builder = self._builder
        if builder is None:
            self._builder = builder = Builder(self._send)
        if time is not self._time and time != self._time:
            builder.flush()
            self._time = time
        return builder

    def flush(self) -> None:
        """Send what was collected."""
        if self._builder is not None and not self._builder.is_empty():
            self._builder.flush()

    def n_collected(self) -> int:
        """How many records were given and not sent yet."""
        return 0 if self._builder is None else len(self._builder)

    def held(self) -> list[Any]:
        """The containers that are collected; see `Builder.held`."""
        return [] if self._builder is None else self._builder.held()

    def abandon(self) -> None:
        """Throw away what was collected, and send nothing more: the dataflow was dropped."""
        self._tee.pushers.clear()
        self._builder = Builder(_nowhere)
        # Of no operator, so that no capability fits: a send all the same is an error.
        self.capabilities = CapabilityCounts(
            self.capabilities.operator,
            self.capabilities.output,
            self.capabilities.timestamp,
            NO_ACTIVATION,
        )

    def _send(self, batch: Any) -> None:
        self._tee.push(self._time, batch)


class BuiltInLogic:
    """The logic of an operator of this library, which compiled code calls without Python."""

    __slots__ = ()

    def run(self, inputs: list[Input], outputs: list[Output]) -> Any:
        """One activation; see `OperatorBuilder`."""
        raise NotImplementedError

    def __call__(self, inputs: list[Input], outputs: list[Output]) -> Any:
        """The same, where it is called as any other logic is."""
        return self.run(inputs, outputs)


class Session:
    """Sends records and batches at one time."""

    __slots__ = ("_capability", "_output")

    def __init__(self, output: Output, capability: Capability | InputCapability) -> None:
        self._output = output
        self._capability = capability

    def give(self, record: Any) -> None:
        """Send one record, as part of a list."""
        self._builder().give(record)

    def give_many(self, records: Iterable[Any]) -> None:
        """Send each of `records`, as parts of lists."""
        builder = self._builder()
        for record in records:
            builder.give(record)

    def give_batch(self, batch: Any) -> None:
        """Send a container: small ones together, a large one in pieces."""
        self._builder().give_batch(batch)

    def _builder(self) -> Builder:
        # At each call: the capability may have been dropped, or downgraded, since.
        self._capability.check("send", self._output.capabilities)
        return self._output.at(self._capability.time)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to do: what was given is sent when the operator returns."""
