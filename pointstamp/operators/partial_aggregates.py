"""Aggregates by name, in part: of what a worker has at hand, before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.containers.group_totals import GroupTotals
    from pointstamp.containers.named_aggregates import AggregatesByName

TOGETHER_RECORDS = 1 << 17
"""Of so many records at most a part is made: each costs a call of Arrow, and memory until then."""

KEPT_GROUPS = 1 << 18
"""A table of more groups is sent, although its time is not complete."""


def in_part(stream: StreamCore[Any], aggregates: AggregatesByName, name: str) -> StreamCore[Any]:
    """The parts of the batches, as few and as short as there is something to gain by it.

    Batches of one time that come together make one part, which is sent at once. Where more of
    the time comes, and that part was shorter than its batches, what comes is added up in a
    table until no more of the time can come, as nothing is answered before: each key is sent
    once in place of once a part.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.IF_CAPABILITY)
    parts: StreamCore[Any] = builder.new_output(initial=False)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Any:
        return _InPart(aggregates, info).run

    builder.build(make_logic)
    return parts


class _InPart:
    """The logic: takes what has come, and sends its parts."""

    __slots__ = (
        "_aggregates",
        "_batches",
        "_last",
        "_n_records",
        "_notificator",
        "_room",
        "_tables",
    )

    def __init__(self, aggregates: AggregatesByName, info: OperatorInfo) -> None:
        self._aggregates = aggregates
        self._notificator = info.notificator()
        self._batches: list[Any] = []
        self._n_records = 0
        self._room = TOGETHER_RECORDS if aggregates.is_sent else 1
        self._last: Any = None
        """The time of the last part that was sent at once."""
        self._tables: dict[Any, GroupTotals | None] = {}
        """By time for which a capability is held; None if what there was had to be sent."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Take all there is."""
        input_, output = inputs[0], outputs[0]
        last: Any = None
        while (item := input_.pull()) is not None:
            time, batch = item
            if self._batches and (time != last or self._n_records >= self._room):
                self._take(last, input_, output)
            last = time
            self._batches.append(batch)
            self._n_records += kind_of(batch).length(batch)
        if self._batches:
            self._take(last, input_, output)
        if self._tables:
            for capability in self._notificator:
                with capability:
                    self._send(self._tables.pop(capability.time), capability.time, output)

    def _take(self, time: Any, input_: Input, output: Output) -> None:
        batches, self._batches, self._n_records = self._batches, [], 0
        if (table := self._tables.get(time)) is not None:
            records = self._aggregates.records(batches)
            is_added = records is not None and table.add(records)
            if is_added and table.n <= KEPT_GROUPS:
                return
            self._tables[time] = None
            self._send(table, time, output)
            if is_added:
                return
        part = self._aggregates.part(batches)
        goes_on = time == self._last and self._aggregates.is_shorter
        if not (goes_on and self._keep(part, time, input_)):
            self._last = time
            output.push(time, part)

    def _keep(self, part: Any, time: Any, input_: Input) -> bool:
        """Begin a table of a time with a part, where there are tables for such."""
        table = self._aggregates.totals(part)
        if table is None or not table.add(part):
            return False
        if time not in self._tables:
            self._notificator.notify_at(InputCapability(time, input_).retain())
        self._tables[time] = table
        return True

    def _send(self, table: GroupTotals | None, time: Any, output: Output) -> None:
        if table is not None:
            output.push(time, table.batch())
