"""Counts of one worker, for what shows how far a run is: records that its sources have read.

The engine counts what each operator sends anyway. What is kept here, in runs that are shown alone,
is which operators there are, how much their sources have to read where that is known, and the
sums of dataflows that are over. The thread of a control connection reads it while the worker goes
on: each count is a number of its own, and nothing needs two of them to fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any


@dataclass(frozen=True)
class SourceSize:
    """How much a source of this worker has to read, and has read.

    Attributes
    ----------
    n_total : int, optional
        In a unit of its own; None if it is not known.
    n_read : callable, optional
        Gives how much it has read, in that unit; the default is the records that it has sent.
    """

    n_total: int | None
    n_read: Callable[[], int] | None = None


class DataflowCounts:
    """The operators of one dataflow, as far as something is counted of them."""

    def __init__(self) -> None:
        self.has_epochs = True
        self.outputs: list[Any] = []
        """What each output of an operator sends by: it counts the records."""
        self.sources: dict[str, tuple[Any, list[Any], SourceSize]] = {}
        """By place: an operator that brings records in, its outputs, and how much that is."""
        self.sizes: dict[str, SourceSize] = {}
        """What sources have said, before they are added."""
        self.probes: list[Any] = []
        self.inputs: Sequence[Any] = ()
        """The handles of its inputs, which are there when it is built."""
        self._n_epochs = 0
        self._n_read: dict[str, int] = {}
        """By place: what was read last."""

    @property
    def n_sent(self) -> int:
        """Records that its operators have sent."""
        return _sent(self.outputs)

    @property
    def n_records(self) -> int:
        """Records that came in."""
        return sum(_sent(outputs) for _, outputs, _ in self.sources.values())

    def n_epochs(self) -> int:
        """Epochs that are complete: at its probes, or where it has none, that its inputs left."""
        if not self.has_epochs:
            return 0
        frontiers = [list(probe.frontiers[0].frontier) for probe in self.probes]
        # Those of probes in loops have rounds.
        found = [time for times in frontiers for time in times if type(time) is int]
        if not found:
            open_: list[Any] = []
            closed: list[Any] = []
            for handle in self.inputs:
                (closed if handle.is_closed else open_).append(getattr(handle, "time", None))
            found = open_ or [max(closed)] if _are_epochs([*open_, *closed]) else []
        if found:
            self._n_epochs = max(self._n_epochs, min(found))
        return self._n_epochs

    def extents(self) -> dict[str, tuple[int, int | None]]:
        """By place of a source that has not ended: (what it has read, of how much)."""
        found: dict[str, tuple[int, int | None]] = {}
        for place, (operator, outputs, size) in list(self.sources.items()):
            n_read = _sent(outputs)
            if size.n_read is not None and size.n_total is not None:
                with suppress(Exception):  # what shows a run must not end it; it goes on meanwhile
                    self._n_read[place] = size.n_read()
                n_read = self._n_read.get(place, 0)
            is_over = not any(counts.n_held for counts in operator.capabilities)
            if is_over and size.n_total is not None:
                n_read = size.n_total
            if not (is_over and size.n_total is None):
                found[place] = n_read, size.n_total
        return found


class SourceCounts:
    """What the dataflows of one worker have read and sent.

    Parameters
    ----------
    run : str
        Of which run: a process may have workers of several.
    """

    def __init__(self, run: str = "") -> None:
        self.run = run
        self._building = DataflowCounts()
        self._dataflows: list[DataflowCounts] = []
        self._n_records = self._n_sent = self._n_epochs = 0
        """Of dataflows that are over."""
        self._lock = Lock()

    # While a dataflow is built.

    def begin(self) -> None:
        """Count a new dataflow."""
        self._building = DataflowCounts()

    def add(self, scope: int, node: int, operator: Any) -> None:
        """Count an operator, by the number of its scope and its own."""
        dataflow = self._building
        # Not by the operator: one that is abandoned has none.
        outputs = [output._tee for output in operator._outputs]
        dataflow.outputs += outputs
        place = f"{scope}/{node}"
        if place in dataflow.sizes or not operator.inputs:
            size = dataflow.sizes.get(place, SourceSize(None))
            dataflow.sources[place] = operator, outputs, size
        if operator.role == "probe":
            dataflow.probes.append(operator)

    def set_size(self, stream: Any, size: SourceSize) -> None:
        """See `set_source_size`."""
        self._building.sizes[_place(stream)] = size

    def leave_out(self, stream: Any) -> None:
        """The input of this stream carries the epochs of a run, and no records.

        It has nothing to read; and its epochs are by the clock, and go on from one run to the next,
        so that they are not counted.
        """
        self._building.has_epochs = False
        del self._building.sources[_place(stream)]

    def end_building(self, inputs: Sequence[Any]) -> Callable[[], None]:
        """The dataflow is built, with these handles of inputs; what to call when it is over."""
        dataflow = self._building
        dataflow.inputs = tuple(inputs)  # the worker clears its list
        with self._lock:
            self._dataflows.append(dataflow)
        self.begin()
        return lambda: self._end(dataflow)

    def _end(self, dataflow: DataflowCounts) -> None:
        with self._lock:
            self._dataflows.remove(dataflow)
            self._n_records += dataflow.n_records
            self._n_sent += dataflow.n_sent
            self._n_epochs = max(self._n_epochs, dataflow.n_epochs())

    def read(self) -> dict[str, Any]:
        """The counts as they are now, as plain values.

        Returns
        -------
        dict
            "records" that came in, "sent" by all operators, "epochs" that are complete, and
            "sources", the extents of those that have not ended.

        >>> SourceCounts().read()
        {'records': 0, 'sent': 0, 'epochs': 0, 'sources': {}}
        """
        with self._lock:
            flows = self._dataflows
            sources: dict[str, tuple[int, int | None]] = {}
            for flow in flows:
                sources.update(flow.extents())
            return {
                "records": self._n_records + sum(flow.n_records for flow in flows),
                "sent": self._n_sent + sum(flow.n_sent for flow in flows),
                "epochs": max([self._n_epochs, *(flow.n_epochs() for flow in flows)]),
                "sources": sources,
            }


def _sent(outputs: Sequence[Any]) -> int:
    return sum(each.n_sent for each in outputs)


def _are_epochs(times: Sequence[Any]) -> bool:
    return bool(times) and all(type(time) is int for time in times)


def _place(stream: Any) -> str:
    return f"{stream.scope.number}/{stream.source[0]}"


def set_source_size(
    stream: Any, n_total: Callable[[], int | None], n_read: Callable[[], int] | None = None
) -> None:
    """Say how much a source has to read, before it is built; `stream` is its output.

    Parameters
    ----------
    stream : Stream
    n_total : callable
        What `SourceSize` has; not called where nothing shows it.
    n_read : callable, optional
        See `SourceSize`.
    """
    source_counts: SourceCounts | None = stream.scope.environment.source_counts
    if source_counts is not None:
        source_counts.set_size(stream, SourceSize(n_total(), n_read))
