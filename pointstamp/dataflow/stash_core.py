"""The part of a stash that compiled operators use: what has come of each time, and its end.

`Stash` is this with types and with iteration; an operator of this library takes what is complete
without a generator in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input

if TYPE_CHECKING:
    from pointstamp.dataflow.operator import OperatorInfo


_NOTHING = object()


class StashCore:
    """Values by time, each held until no input of the operator can bring more of its time.

    What its arguments are is said of `Stash`. It is used so:

        stash.take_from(inputs[0])
        while (held := stash.next_complete()) is not None:
            batches = stash.value
            ...
            held.drop()
    """

    __slots__ = (
        "_by_input",
        "_make",
        "_more",
        "_notificator",
        "_outputs",
        "_values",
        "value",
    )

    def __init__(
        self,
        info: OperatorInfo,
        make: Callable[[], Any] | None = None,
        *,
        n_outputs: int = 1,
        early: bool = False,
    ) -> None:
        self._notificator = info.notificator(early=early)
        n_inputs = len(info.frontiers)
        self._by_input = n_inputs > 1
        new_batches = info.new_batches
        if make is None and self._by_input:
            make = _two_lists
            if n_inputs > 2 or info.environment.memory is not None:
                make = partial(_of_each, new_batches, n_inputs)
        elif make is None and info.environment.memory is not None:
            make = new_batches
        self._make = make
        """None of an empty list."""
        self._outputs = range(1, n_outputs) if n_outputs > 1 else None
        self._values: dict[Any, Any] = {}
        self._more: dict[Any, list[Capability]] = {}
        """By time: the capabilities for the outputs after the first."""
        texts_held = info.environment.texts_held
        if texts_held is not None:
            texts_held.waiting_with.append((info.name, self.values))
        self.value: Any = None
        """That of the time which `next_complete` gave."""

    def at(self, held: InputCapability | Capability, time: Any = None) -> Any:
        """The value of the time of what was received, or of a later `time`."""
        time = held.time if time is None else time
        value = self._values.get(time, _NOTHING)
        return self._begin(held, time) if value is _NOTHING else value

    def add(self, held: InputCapability | Capability, batch: Any, time: Any = None) -> None:
        """Append a batch to the value of its time, where that is a list."""
        self.at(held, time).append(batch)

    def take_from(self, input_: Input, number: int = 0) -> None:
        """Append all that has come at an input, where values are lists (of all inputs)."""
        received = input_.next()
        while received is not None:
            held, batch = received
            value = self.at(held)
            if self._by_input:
                value = value[number]
            value.append(batch)
            received = input_.next()

    def take(self, *inputs: Input) -> None:
        """Append all that has come at the inputs, where values are lists (of all inputs)."""
        for number, input_ in enumerate(inputs):
            self.take_from(input_, number)

    def times(self) -> list[Any]:
        """Those of which something is held."""
        return list(self._values)

    def values(self) -> list[Any]:
        """Those of all times of which something is held."""
        return list(self._values.values())

    def items(self) -> Iterator[tuple[Any, Any]]:
        """(time, value) of all that is held."""
        return iter(self._values.items())

    def next_complete(self) -> Capability | None:
        """The least time that is complete now; its value is `value`, and no longer held here.

        The capability is the caller's, to be dropped.
        """
        held = self._notificator.next_complete()
        self.value = None if held is None else self._values.pop(held.time)
        return held

    def by_output(self) -> Iterator[tuple[list[Capability], Any]]:
        """(a capability for each output, value) of each time that is complete now, least first."""
        while (held := self.next_complete()) is not None:
            capabilities = [held, *self._more.pop(held.time, ())]
            try:
                yield capabilities, self.value
            finally:
                for capability in capabilities:
                    capability.drop()

    def __len__(self) -> int:
        """How many times are held."""
        return len(self._values)

    def _begin(self, held: Any, time: Any) -> Any:
        """A new value, and what keeps its time."""
        if isinstance(held, InputCapability):
            received = held
            self._notificator.notify_at(received.delayed(time))
        else:
            kept: Capability = held
            self._notificator.notify_at(kept.delayed(time))
        if self._outputs is not None:
            assert isinstance(held, InputCapability)
            self._more[time] = [held.delayed(time, output) for output in self._outputs]
        make = self._make
        value = [] if make is None else make()
        self._values[time] = value
        return value


def _two_lists() -> list[Any]:
    return [[], []]


def _of_each(new_batches: Callable[[], Any], n_inputs: int) -> list[Any]:
    """A list for each input."""
    return [new_batches() for _ in range(n_inputs)]
