"""An input that is open at many times at once, each held by a capability.

An `InputHandle` has one time and moves on. Where records come in no order of time
(replies to requests, late events), each time that may still come is a capability
in the hands of the program: it sends with any of them, makes later ones with
`delayed`, and lets go of each when nothing more comes at its time.

Source: timely-dataflow `dataflow/operators/core/unordered_input.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import Input, Output, Session
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.scope_core import ScopeCore

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


class UnorderedInput:
    """Sends at the times of capabilities; it holds none itself."""

    def __init__(self, name: str, output: Output, activate: Callable[[], None]) -> None:
        self.name = name
        self._output = output
        self._activate = activate

    def session(self, capability: Capability) -> UnorderedSession:
        """Send at the time of `capability`, which must be live and of this input.

        Raises
        ------
        CapabilityError
            If it is not.
        DroppedError
            If the dataflow was dropped.
        """
        return UnorderedSession(self._output.session(capability), self._activate)

    def send(self, capability: Capability, record: Any) -> None:
        """Send one record at the time of `capability`."""
        self.session(capability).give(record)

    def send_batch(self, capability: Capability, batch: Any) -> None:
        """Send a container at the time of `capability`; it must not change afterwards."""
        self.session(capability).give_batch(batch)

    def __repr__(self) -> str:
        return f"UnorderedInput({self.name!r})"


class UnorderedSession:
    """Sends records and batches at one time, with the next step of the worker."""

    __slots__ = ("_activate", "_session")

    def __init__(self, session: Session, activate: Callable[[], None]) -> None:
        self._session = session
        self._activate = activate

    def give(self, record: Any) -> None:
        """Send one record, as part of a list."""
        self._session.give(record)
        self._activate()

    def give_many(self, records: Iterable[Any]) -> None:
        """Send each of `records`, as parts of lists."""
        self._session.give_many(records)
        self._activate()

    def give_batch(self, batch: Any) -> None:
        """Send a container: small ones together, a large one in pieces."""
        self._session.give_batch(batch)
        self._activate()

    def __enter__(self) -> UnorderedSession:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to do: what was given is sent with the next step."""


class UnorderedInputMethods(ScopeCore["Stream[Any]"]):
    """Inputs that are open at many times. Methods of `Scope`."""

    def unordered_input(
        self, name: str = "UnorderedInput"
    ) -> tuple[tuple[UnorderedInput, Capability], Stream[Any]]:
        """An input that is open at several times at once, each held by a capability.

        Gives `(handle, capability), stream`. What may still be sent is what there are
        capabilities for: the first, at the least time, and those made from it. They
        are the caller's, which drops each when nothing more comes at its time; the
        dataflow is not complete before, and nothing else closes this input.

        >>> import pointstamp as ps
        >>> def main(worker):
        ...     seen = []
        ...     with worker.dataflow() as scope:
        ...         (input, first), stream = scope.unordered_input()
        ...         stream.inspect_batch(lambda time, batch: seen.append((time, batch)))
        ...     with first.delayed(5) as later, first:
        ...         input.send(later, "b")
        ...         input.send(first, "a")
        ...     worker.run()
        ...     return seen
        >>> ps.execute(main)
        [[(5, ['b']), (0, ['a'])]]
        """
        builder = OperatorBuilder(self, name)
        builder.states.refuse(NOT_REPLAYED)
        stream = builder.new_output()
        made: list[tuple[UnorderedInput, Capability]] = []

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], None]:
            (output,) = builder.output_handles
            made.append((UnorderedInput(name, output, info.activate), capabilities.pop()))
            # What was given is flushed after this, as for any operator.
            return lambda inputs, outputs: None

        builder.build(make_logic)
        return made.pop(), stream
