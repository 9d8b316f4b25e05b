"""Capabilities: the right to send at a time or later.

As long as an operator holds a capability for a time, no operator downstream sees
that the time is complete. An operator gets one at the start (the least time),
retains them from the batches it receives, and makes new ones from those it has,
never for an earlier time. It should let go of each as soon as it can:

- `cap.drop()`, or `with cap:`, lets go at a place that one can see;
- `cap.downgrade(t)` keeps only the later part of it;
- a capability that is garbage collected is dropped. This is a safety net: a
  closure, a traceback or a loop variable may keep it alive, and everybody waits.

Source: timely-dataflow `dataflow/operators/capability.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pointstamp.compiled import build_info
from pointstamp.errors import CapabilityError, DroppedError
from pointstamp.progress.activation import NO_ACTIVATION, activation_of
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.timestamp import Int, Product, Timestamp

_IS_COMPILED = build_info() == "compiled"


def _ignore(counts: CapabilityCounts) -> None:
    """For counts that no worker looks after."""


class CapabilityCounts:
    """The capabilities that an operator holds at one of its outputs, counted."""

    __slots__ = (
        "_activation",
        "_collected",
        "_collected_first",
        "_is_int",
        "_is_pair",
        "_late",
        "changes",
        "is_dropped",
        "n_held",
        "operator",
        "output",
        "timestamp",
        "watcher",
    )

    def __init__(
        self,
        operator: str,
        output: int,
        timestamp: Timestamp,
        changed: Callable[[], None],
        late: Callable[[CapabilityCounts], None] = _ignore,
        watcher: Any = None,
    ) -> None:
        self.operator = operator
        self.output = output
        self.timestamp = timestamp
        self._is_int = timestamp is Int
        self._is_pair = type(timestamp) is Product and timestamp.pairs
        self._activation = activation_of(changed)
        self.watcher = watcher
        self.changes: ChangeBatch = ChangeBatch()
        """Not reported yet."""
        self.n_held = 0
        self.is_dropped = False
        """Whether the dataflow was dropped: nothing counts any more."""
        self._late = late
        self._collected: list[Any] = []
        """Times of capabilities that were garbage: noted by any thread, at any moment."""
        self._collected_first: Any = None
        """Compiled, the first of them: mostly it is the only one, and a list that is filled and
        emptied each time gives its memory back and asks for it again."""

    def add(self, time: Any) -> Capability:
        """One more, at `time`."""
        self.n_held += 1
        self.changes.update(time, +1)
        if not self._activation.is_at_work:
            self._activation.ask()
        return _counted(time, self)

    def remove(self, time: Any) -> None:
        """One less, at `time`."""
        self.n_held -= 1
        self.changes.update(time, -1)
        if not self._activation.is_at_work:
            self._activation.ask()

    def collected(self, time: Any) -> None:
        """One less, at `time`, as soon as the worker looks.

        The collector may run inside any other call here, and in any thread: so
        nothing is counted now.
        """
        # Compiled, nothing comes between the two: neither a thread nor the collector.
        if _IS_COMPILED and self._collected_first is None:
            self._collected_first = time
        else:
            self._collected.append(time)
        self._activation.has_collected = True
        # In any thread: an operator is set back before it settles, and so sees this one.
        if not self._activation.is_at_work:
            self._late(self)

    def settle(self) -> bool:
        """Count what the collector noted; whether there was anything."""
        first, collected = self._collected_first, self._collected
        if first is None and not collected:
            return False
        if first is not None:
            self._collected_first = None
            self.n_held -= 1
            self.changes.update(first, -1)
        while collected:
            self.n_held -= 1
            self.changes.update(collected.pop(), -1)
        return True

    def settle_late(self) -> None:
        """The same outside of an activation, which is then asked for."""
        if self.settle():
            self._activation.ask()

    def abandon(self) -> None:
        """Report no more of what is held: the dataflow was dropped."""
        self.is_dropped = True
        self._activation = NO_ACTIVATION
        self._late = _ignore

    def move(self, time: Any, new_time: Any) -> None:
        """One from `time` to `new_time`."""
        self.changes.update(new_time, +1)
        self.changes.update(time, -1)
        if not self._activation.is_at_work:
            self._activation.ask()

    def check_not_before(self, time: Any, new_time: Any, what: str) -> Any:
        """`new_time` as its type has it; raises unless it is at or after `time`."""
        if self._is_int and type(new_time) is int and new_time >= time:
            return new_time
        # What is no less than a time of the type is one of it.
        if self._is_pair and type(new_time) is tuple and len(new_time) == 2:
            outer, inner = new_time
            if type(outer) is int and type(inner) is int and outer >= time[0] and inner >= time[1]:
                return new_time
        new_time = self.timestamp.check(new_time)
        if not self.timestamp.less_equal(time, new_time):
            raise CapabilityError(
                f"operator {self.operator!r} cannot {what} its capability from {time} to "
                f"{new_time}: {new_time} is not at or after {time}; keep an earlier capability "
                "to send there"
            )
        return new_time


class SendRight:
    """What a session sends with: a capability, or what a received batch allows.

    A class and not a protocol, so that compiled code calls it directly, for each record.
    """

    __slots__ = ("time",)

    def check(self, what: str, counts: CapabilityCounts | None = None) -> None:
        """Raise unless it allows `what` now, and (if given) at the output of `counts`."""
        raise NotImplementedError


class Capability(SendRight):
    """The right to send from one output at `time` or later.

    Equal capabilities are for the same output and the same time, so that a dict
    can hold what is kept per time; the mapping then owns the one that is its key.
    """

    __slots__ = ("_counts", "live")

    def __init__(self, time: Any, counts: CapabilityCounts) -> None:
        self.live = False  # for `__del__`, of what was not counted yet
        watcher = counts.watcher
        self.time = time
        self._counts = counts
        self.live = True
        if watcher is not None:
            watcher.holds(self, time)

    def delayed(self, time: Any) -> Capability:
        """Another capability, for `time`, which must not be earlier."""
        self.check("delay")
        time = self._counts.check_not_before(self.time, time, "delay")
        return self._counts.add(time)

    def try_delayed(self, time: Any) -> Capability | None:
        """Another capability, for `time`; None if that is not at or after this one's time."""
        self.check("delay")
        return self._counts.add(time) if self._allows(time) else None

    def try_downgrade(self, time: Any) -> bool:
        """Downgrade where `time` is at or after this one's; whether it was. If not, it is kept."""
        self.check("downgrade")
        if not self._allows(time):
            return False
        self.downgrade(time)
        return True

    def _allows(self, time: Any) -> bool:
        timestamp = self._counts.timestamp
        return timestamp.less_equal(self.time, timestamp.check(time))

    def downgrade(self, time: Any) -> None:
        """Keep the right to send at `time` or later only.

        Changes what equals this capability: do not downgrade the key of a dict.
        """
        self.check("downgrade")
        if time == self.time:
            return
        time = self._counts.check_not_before(self.time, time, "downgrade")
        self._counts.move(self.time, time)
        self.time = time
        if self._counts.watcher is not None:
            self._counts.watcher.holds(self, time)

    def drop(self) -> None:
        """Let go. Dropping twice is once."""
        if self.live:
            self.live = False
            self._counts.remove(self.time)
            if self._counts.watcher is not None:
                self._counts.watcher.lets_go(self)

    def check(self, what: str, counts: CapabilityCounts | None = None) -> None:
        """Raise unless this is live, and (if given) one that `counts` has."""
        if not self.live:
            raise CapabilityError(
                f"operator {self._counts.operator!r} cannot {what} with its capability for "
                f"{self.time}: it was dropped; drop it after its last use"
            )
        if counts is not None and counts is not self._counts:
            if self._counts.is_dropped:
                raise DroppedError(
                    f"operator {self._counts.operator!r} cannot {what} at {self.time}: its "
                    "dataflow was dropped"
                )
            raise CapabilityError(
                f"operator {counts.operator!r} cannot {what} at output {counts.output} with a "
                f"capability for output {self._counts.output} of operator "
                f"{self._counts.operator!r}: retain one for the output to send from"
            )

    def __enter__(self) -> Capability:
        return self

    def __exit__(self, *exception: object) -> None:
        self.drop()

    def __del__(self) -> None:
        if self.live:
            self.live = False
            self._counts.collected(self.time)
            if self._counts.watcher is not None:
                self._counts.watcher.lets_go(self)

    def __copy__(self) -> Capability:
        return self.delayed(self.time)

    def __deepcopy__(self, memo: object) -> Capability:
        return self.delayed(self.time)

    def __reduce__(self) -> NoReturn:
        raise CapabilityError(
            f"{self!r} cannot be pickled: a capability counts on the worker that holds it; send "
            "its time, and have the receiver retain one of its own"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Capability):
            return NotImplemented
        return self.time == other.time and self._counts is other._counts

    def __hash__(self) -> int:
        return hash(self.time)

    def __repr__(self) -> str:
        state = "" if self.live else " (dropped)"
        return f"Capability({self.time!r} at {self._counts.operator!r}{state})"


class ReceivingPort:
    """What `InputCapability` asks of an operator's input: whose it is, and where it leads."""

    __slots__ = ("capabilities", "name", "port", "round", "sends_to", "stays", "summaries")

    def __init__(
        self,
        name: str,
        port: int,
        capabilities: list[CapabilityCounts],
        summaries: Mapping[int, Antichain],
        stays: set[int],
    ) -> None:
        self.name = name
        self.port = port
        self.capabilities = capabilities
        """Of each of the operator's outputs."""
        self.summaries = summaries
        self.stays = stays
        """The outputs at which times arrive as they are."""
        self.sends_to: CapabilityCounts | None = None
        """That of those which was asked for last, as it is for each batch."""
        self.round = 0
        """Counts the operator's activations; what was received lasts for one."""


class InputCapability(SendRight):
    """What a received batch allows, until the operator returns.

    The batch counts as consumed when the operator returns; what is retained of
    its time until then takes its place.
    """

    __slots__ = ("_input", "_round", "_sends_to")

    def __init__(self, time: Any, input_: ReceivingPort) -> None:
        self.time = time
        self._input = input_
        self._round = input_.round
        self._sends_to: CapabilityCounts | None = None
        """An output at which its time arrives as it is: that is asked for each record, and stays
        so as long as the operator runs."""

    def retain(self, output: int = 0) -> Capability:
        """A capability for the time of the batch, at one of the outputs."""
        return self._counts("retain", output).add(self._arrives(output))

    def delayed(self, time: Any, output: int = 0) -> Capability:
        """A capability for a later time, at one of the outputs."""
        counts = self._counts("delay", output)
        time = counts.check_not_before(self._arrives(output, time), time, "delay")
        return counts.add(time)

    def check(self, what: str, counts: CapabilityCounts | None = None) -> None:
        """Raise unless the operator is still at work on the batch."""
        if self._round != self._input.round:
            raise CapabilityError(
                f"operator {self._input.name!r} cannot {what} at {self.time} any more: the batch "
                "of that time was consumed when the operator returned; retain() a capability "
                "while it runs"
            )
        if counts is None or counts is self._sends_to or counts is self._input.sends_to:
            return
        self._counts(what, counts.output, counts)
        if counts.output in self._input.stays:
            self._input.sends_to = counts
            return
        if self._arrives(counts.output, self.time) != self.time:
            raise CapabilityError(
                f"operator {self._input.name!r} cannot {what} at {self.time}: its input leads "
                f"to output {counts.output} at {self._arrives(counts.output)}"
            )
        self._sends_to = counts

    def _counts(
        self, what: str, output: int, wanted: CapabilityCounts | None = None
    ) -> CapabilityCounts:
        self.check(what)
        outputs = self._input.capabilities
        is_own = 0 <= output < len(outputs)
        if not is_own or (wanted is not None and outputs[output] is not wanted):
            raise CapabilityError(
                f"operator {self._input.name!r} cannot {what} at {self.time} at output {output}"
                f"{f' of {wanted.operator!r}' if wanted is not None else ''}: it has "
                f"{len(outputs)} outputs of its own, numbered from 0"
            )
        return outputs[output]

    def _arrives(self, output: int, wanted: Any = None) -> Any:
        """A least time at which the batch allows to send at `output`.

        Where paths lead to several of them, one at or before `wanted` if there is one.
        """
        if output in self._input.stays:
            return self.time
        timestamp = self._input.capabilities[output].timestamp
        first = None
        for summary in self._input.summaries.get(output, ()):
            time = summary.results_in(self.time)
            if time is None:
                continue
            if wanted is None or timestamp.less_equal(time, timestamp.check(wanted)):
                return time
            first = time if first is None else first
        if first is not None:
            return first
        raise CapabilityError(
            f"input {self._input.port} of operator {self._input.name!r} does not lead to output "
            f"{output} at {self.time}"
        )

    def __repr__(self) -> str:
        return f"InputCapability({self.time!r} at {self._input.name!r})"


# The same without a call of Python, where what is given is known to be of its type.


def _counted(time: Any, counts: CapabilityCounts) -> Capability:
    """A capability that was counted."""
    made = Capability.__new__(Capability)
    made.time = time
    made._counts = counts
    made.live = True
    if counts.watcher is not None:
        counts.watcher.holds(made, time)
    return made


def received(time: Any, input_: ReceivingPort) -> InputCapability:
    """What a batch allows that was just taken from an input."""
    made = InputCapability.__new__(InputCapability)
    made.time = time
    made._input = input_
    made._round = input_.round
    made._sends_to = None
    return made
