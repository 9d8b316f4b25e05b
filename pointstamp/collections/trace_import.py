"""Imports of traces: batches of an arrangement on their way into another dataflow.

An import begins with what there is, as of the last time that each batch of it has; so what it
gives differs from the original at none of the times that the handle may be asked for. The spine
is the same: what reads the import reads what is there, and nothing is copied.

Where both dataflows are durable, one snapshot is of both. All that had come up to its epoch had
come through the import, too: what waits there holds back the frontier behind it, and so the
alignment of the operators that follow. When the program begins again with the snapshot, these
operators have what they made of it, and the spine has what they read; so an import that is in the
snapshot goes on with what comes after it. That it was there is in the snapshot as a table without
rows, whose kind says of which arrangement it is. An import that is new there begins with all that
is kept, at the first epoch that is new: behind all that other operators of its dataflow have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.spine import Spine, SpineReader
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import merge
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest

Wake = Callable[[], None]


def _asleep() -> None:
    """For an import that nothing has run yet, or that nothing runs any more."""


class TraceImport:
    """Batches on their way into another dataflow: those of a spine, and then what comes.

    A batch may be in the spine already, merged with others, that is still under way to the
    export. It is not to come again: its readers would not find it at the time that it comes at.

    Parameters
    ----------
    spine : Spine
    texts : tuple of int
        Which words of its rows are numbers of texts.
    first : optional
        The first time of the dataflow that it goes into; None: the least.

    Attributes
    ----------
    source : TraceExport
        What it follows: of the dataflow that the arrangement was made in.
    """

    source: Any

    def __init__(self, spine: Spine, texts: tuple[int, ...], first: Any = None) -> None:
        self._spine = spine
        self._texts = texts
        self.first = first
        self._goes_on = False
        self._newest: Any = None
        self._readers: list[SpineReader] = []
        self.upper: Any = spine.timestamp.minimum
        """All before it is in `batches`, or was; None where all is."""
        self.batches: deque[tuple[Any, Rows]] = deque()
        self.wake: Wake = _asleep

    def begin(self, upper: Any, *, goes_on: bool = False) -> None:
        """Take what there is.

        goes_on : whether what was before `first` came before, in another run
        """
        self._newest = self._spine.newest
        self._goes_on = goes_on
        for time, rows in self._spine.listed():
            if not (goes_on and self._is_early(time)):
                self._append(self._not_early(time), rows)
        self.upper = self._not_early(upper)

    def take(self, batches: list[tuple[Any, Rows]], upper: Any) -> None:
        """More batches, and how far all is there now."""
        for time, rows in batches:
            if self._newest is None or not self._spine.less_equal(time, self._newest):
                self._append(time, rows)
        self.upper = self._not_early(upper)
        self.wake()

    def reader(self) -> SpineReader:
        """A new reader of the spine, which sees batches at the times that they come at."""
        reader = self._spine.reader()
        if not self._goes_on:
            reader.first = self.first
        self._readers.append(reader)
        return reader

    def held(self) -> list[tuple[Rows, tuple[int, ...]]]:
        """What there is to be read, and what is still to come to the readers."""
        return [(rows, self._texts) for _, rows in (*self._spine.listed(), *self.batches)]

    def close(self) -> None:
        """The dataflow has ended or is dropped: nothing of it reads any more."""
        self.wake = _asleep
        self.batches.clear()
        while self._readers:
            self._readers.pop().close()

    def _append(self, time: Any, rows: Rows) -> None:
        """One more batch; readers get one of a time, be it that its spine has several."""
        if self.batches and self.batches[-1][0] == time:
            rows = merge(self.batches.pop()[1], rows)
        if len(rows):
            self.batches.append((time, rows))

    def _is_early(self, time: Any) -> bool:
        return self.first is not None and not self._spine.less_equal(self.first, time)

    def _not_early(self, time: Any) -> Any:
        """A time, or the first if it is before that; None is all times."""
        return self.first if time is not None and self._is_early(time) else time


@dataclass(frozen=True)
class ImportedArrangement(Arrangement):
    """An arrangement of another dataflow, and the stream of its batches in this one."""

    trace: TraceImport

    def reader(self) -> SpineReader:
        """See `Arrangement`."""
        return self.trace.reader()


def import_stream(scope: Any, found: TraceImport, name: str) -> StreamCore[Any]:
    """The batches that an import gets, at their times, without a note of it in snapshots."""
    builder: OperatorBuilder[Any] = OperatorBuilder(scope, name)
    stream: StreamCore[Any] = builder.new_output()

    def build(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        info.keeps_nothing()  # what waits is of times that are not complete here
        info.states.holds_texts(found.held)
        held: list[Capability] = [capabilities.pop()]
        if found.first is not None:
            held[0].downgrade(found.first)
        found.wake = info.activate

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            if not held:
                return
            while found.batches:
                time, rows = found.batches.popleft()
                with held[0].delayed(time) as later:
                    outputs[0].session(later).give(rows)
            if found.upper is None:
                held.pop().drop()
            elif held[0].time != found.upper:
                held[0].downgrade(found.upper)

        info.activate()
        return logic

    builder.build(build)
    return stream


def noted_import(
    stream: StreamCore[Any], arrangement: str, name: str
) -> tuple[StreamCore[Any], bool]:
    """The same batches, with a note in snapshots; whether the one that is begun with has it.

    arrangement : the name in snapshots of what is imported

    Raises
    ------
    CheckpointStructureError
        If the snapshot has a note of another arrangement, or does not have one and may not be
        without.
    """
    # Not above: few dataflows are durable.
    from pointstamp.checkpoint.keyed_state import KeyedRows

    found: list[bool] = []

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        table = KeyedRows()
        table.kind = f"a note that it is of {arrangement!r}"
        found.append(info.states.keep("imported", table))
        info.states.holds_no_texts()

        def logic(input_: Input, output: Output) -> None:
            for time, batch in input_:
                output.session(time).give_batch(batch)

        return logic

    noted: StreamCore[Any] = operator([stream], [PIPELINE], name, build, Interest.NEVER)
    return noted, found[0]
