"""Writing a stream down: what its frontier does, and its batches, as they come.

Each worker captures its own part. Its frontier is that of the stream on all workers, so
each part has the whole truth about its times, and parts can be replayed apart.

The operator has an output without readers, only to hold a capability for it: so the
dataflow is not complete before the end of the capture is where it should be.

Source: timely-dataflow `dataflow/operators/core/capture/capture.rs`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore, T
from pointstamp.errors import UsageError
from pointstamp.formats.events import CapturedPart, Events, EventTarget, Messages, Progress
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    pass


U = TypeVar("U")


def capture(stream: StreamCore[Any], to: Any, name: str = "Capture") -> None:
    """See `Stream.capture`."""
    scope = stream.scope
    target = _target(to)
    builder = OperatorBuilder(scope, name)
    builder.states.refuse("its capture begins anew when the program does")
    builder.new_input(stream, Pipeline(), Interest.ALWAYS)
    builder.new_output()

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        environment = scope.environment
        part = CapturedPart(info.index, info.peers, scope.timestamp.name)
        writer = target.writer(part, partial(environment.call, info.activate))
        environment.closers.callback(writer.close)
        capability = capabilities.pop()
        frontier = [scope.timestamp.minimum]

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            nonlocal frontier
            if not capability.live:
                return
            (input_,) = inputs
            now = input_.frontier.elements
            if now != frontier:
                # Before the batches that are here already: those hold the frontier back.
                writer.push(Progress(_changes(frontier, now)))
                frontier = now
            while writer.has_room():
                item = input_.pull()
                if item is None:
                    break
                writer.push(Messages(*item))
            if writer.is_finished():
                capability.drop()
                writer.close()

        return logic

    builder.build(make_logic)


def _changes(before: list[Any], now: list[Any]) -> list[tuple[Any, int]]:
    """What came to a frontier, then what left it."""
    came = [(time, +1) for time in now if time not in before]
    return came + [(time, -1) for time in before if time not in now]


def _target(to: Any) -> EventTarget:
    if isinstance(to, (str, os.PathLike)):
        from pointstamp.formats.capture_files import CaptureFolder

        return CaptureFolder(to)
    if hasattr(to, "writer"):
        target: EventTarget = to
        return target
    raise UsageError(
        f"a stream can be captured to the path of a folder, to Events, Accept or Connect; "
        f"found {to!r}"
    )


class CaptureMethods(StreamCore[T]):
    """Capturing. Methods of `Stream`."""

    @overload
    def capture(self, *, name: str = "Capture") -> Events: ...

    @overload
    def capture(self, to: U, *, name: str = "Capture") -> U: ...

    def capture(self, to: Any = None, *, name: str = "Capture") -> Any:
        """Record this stream: its batches at their times, and its progress.

        `Scope.replay` makes the stream again from it. Each worker captures its part.

        Parameters
        ----------
        to : path, Events, Connect or Accept, optional
            A path names a folder, for a file of each worker: an Arrow IPC stream, whose
            end is the end of the capture, so that a file that was cut off is known by
            it. `Connect` and `Accept` send the part to another computation. The default is
            new `Events`, in memory.

        Returns
        -------
        what was given as `to`, or the new Events

        >>> import pointstamp as ps
        >>> def record(worker):
        ...     with worker.dataflow() as scope:
        ...         events = scope.to_stream(["a", "b"]).capture()
        ...     worker.run()
        ...     return events
        >>> [events] = ps.execute(record)
        >>> for event in events:
        ...     print(event)
        Messages(time=0, batch=['a', 'b'])
        Progress(changes=[(0, -1)])
        >>> ps.testing.collect(lambda scope: scope.replay(events))
        [(0, 'a'), (0, 'b')]
        """
        to = Events() if to is None else to
        capture(self, to, name)
        return to
