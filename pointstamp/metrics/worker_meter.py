"""The counts of one worker: a `Logger` that counts, before another one if the worker has a log too.

What is built asks the worker's log for its classes (`dataflow.logging_protocol`); this one gives
such as count. So workers without metrics have the ordinary classes, and nothing is counted.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.communication.communicator import Channel, Communicator
from pointstamp.dataflow.backpressure import ThrottledTime
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.dataflow.channels import Queue, Tee
from pointstamp.dataflow.logging_protocol import Logger, LoggerFactory
from pointstamp.dataflow.operator import Operator
from pointstamp.dataflow.step_observer import StepObserver
from pointstamp.errors import UsageError
from pointstamp.metrics import sample_requests
from pointstamp.metrics.epoch_records import EpochPlace, EpochPusher, EpochRecorder
from pointstamp.metrics.metering import (
    MeteredCapabilities,
    MeteredChannel,
    MeteredOperator,
    MeteredQueue,
    metered,
)
from pointstamp.metrics.meters import (
    DataflowMeter,
    InputMeter,
    LeftEpoch,
    OperatorMeter,
    ProbeMeter,
    StreamMeter,
)
from pointstamp.metrics.tick_clock import now_ns, ticks
from pointstamp.progress.operate import CountObserver, Operate
from pointstamp.progress.topology import Port

if TYPE_CHECKING:
    from pointstamp.dataflow.scope_core import ScopeCore

INPUTS = ("input", "source")
"""What operators are for that send at epochs of their own."""

LOGGER = logging.getLogger("pointstamp.runtime")

MOST_DATAFLOWS = 64
"""So many dataflows that are complete are kept, for a scrape that comes after their end."""


@dataclass(frozen=True)
class Metered:
    """Has workers count what they do, whether or not they keep a log as well.

    Parameters
    ----------
    run : str
        Which run they are of: a process may have workers of several.
    log : LoggerFactory, optional
        The log.
    records_epochs : bool
        Whether each epoch is recorded, too, until it is asked for.
    """

    run: str
    log: LoggerFactory | None = None
    records_epochs: bool = False

    def prepare(self) -> None:
        """See `LoggerFactory`."""
        if self.log is not None:
            self.log.prepare()

    def simulated(self) -> Metered:
        """See `LoggerFactory`."""
        raise UsageError("a simulation has no clock, so nothing of it can be measured")

    def begin(self, communicator: Communicator) -> WorkerMeter:
        """See `LoggerFactory`."""
        log = None if self.log is None else self.log.begin(communicator)
        recorder = EpochRecorder() if self.records_epochs else None
        return WorkerMeter(self.run, communicator.index, communicator.peers, log, recorder)


class WorkerMeter(StepObserver):
    """What one worker counts; see `pointstamp.dataflow.logging_protocol.Logger`."""

    def __init__(
        self,
        run: str,
        index: int,
        peers: int,
        log: Logger | None,
        recorder: EpochRecorder | None = None,
    ) -> None:
        self.run = run
        self.recorder = recorder
        """Of its epochs, if they are recorded."""
        self.index = index
        self.peers = peers
        self.parks = 0
        self.parked_ns = 0
        self.began_ns = now_ns()
        self.dataflows: dict[int, DataflowMeter] = {}
        """By the number of the outermost scope."""
        self.worker: Callable[[], Any] = lambda: None
        """The worker, if it lives, and is there already."""
        self._log = log
        self._within: dict[int, tuple[DataflowMeter, str]] = {}
        """By scope: its dataflow, and its address."""
        self._names: dict[tuple[int, int], str] = {}
        """By scope and node: the name of the operator."""
        self._of_channels: dict[int, MeteredChannel] = {}
        self._began = 0
        """When the visit began that is under way."""
        self._visited_scope = -1
        self._visited: DataflowMeter | None = None
        """The dataflow that was visited last."""

    def watch(self, worker: Any) -> None:
        """See `Logger`."""
        self.worker = weakref.ref(worker)
        sample_requests.add(self)
        if self._log is not None:
            self._log.watch(worker)

    # While a dataflow is built.

    def crossing(self, scope: int, source: Port, target: Port, way: str) -> None:
        """What enters or leaves a scope is the log's alone: its stream is counted inside."""
        if self._log is not None:
            self._log.crossing(scope, source, target, way)

    def begin_scope(self, number: int, parent: int | None, node: int, name: str) -> None:
        """See `Logger`."""
        if parent is None:
            self._forget_complete()
            dataflow = self.dataflows[number] = DataflowMeter(number, name)
            dataflow.throttled = self._throttled_time()
            self._within[number] = dataflow, str(number)
        else:
            dataflow, address = self._within[parent]
            self._within[number] = dataflow, f"{address}/{node}"
            self._names[parent, node] = name
        if self._log is not None:
            self._log.begin_scope(number, parent, node, name)

    def _throttled_time(self) -> ThrottledTime | None:
        """Of the dataflow that is being built."""
        worker = self.worker()
        backpressure = None if worker is None else worker.environment.backpressure
        return None if backpressure is None else backpressure.throttled_time

    def _forget_complete(self) -> None:
        """Let go of the eldest dataflows that are complete, if there are many."""
        worker = self.worker()
        if worker is None or len(self.dataflows) < 2 * MOST_DATAFLOWS:
            return
        complete = [number for number in self.dataflows if number not in worker._subgraphs]
        gone = set(complete[:-MOST_DATAFLOWS])
        self.dataflows = {n: each for n, each in self.dataflows.items() if n not in gone}
        of_scopes = {
            scope: place
            for scope, place in self._within.items()
            if place[0].number in self.dataflows
        }
        self._within = of_scopes
        self._names = {at: name for at, name in self._names.items() if at[0] in of_scopes}

    def operator(self, scope: int, node: int, name: str) -> Callable[..., Operator]:
        """See `Logger`."""
        dataflow, address = self._within[scope]
        meter = OperatorMeter(name, f"{address}/{node}")
        dataflow.operators.append(meter)
        self._names[scope, node] = name
        make = MeteredOperator if self._log is None else self._log.operator(scope, node, name)
        return partial(metered, make, meter)

    def operate(self, scope: int, node: int, operator: Operate) -> Operate:
        """See `Logger`."""
        self._names.setdefault((scope, node), operator.name)
        return operator if self._log is None else self._log.operate(scope, node, operator)

    def capabilities(self, operator: Any) -> Callable[..., CapabilityCounts]:
        """See `Logger`."""
        if operator.role not in INPUTS:
            return CapabilityCounts if self._log is None else self._log.capabilities(operator)
        make = MeteredCapabilities if self._log is None else self._log.capabilities(operator)
        meter = operator.meter
        dataflow = self._dataflow_of(meter)
        input = InputMeter(meter.name, meter.address, dataflow.epochs)
        dataflow.epochs.inputs.append(input)
        return partial(metered, make, input)

    def output(self, operator: Any, tee: Tee) -> None:
        """See `Logger`."""
        if self.recorder is not None and operator.role in INPUTS:
            tee.pushers.append(EpochPusher(self._dataflow_of(operator.meter).epochs))
        if self._log is not None:
            self._log.output(operator, tee)

    def _dataflow_of(self, meter: OperatorMeter) -> DataflowMeter:
        return self.dataflows[int(meter.address.partition("/")[0])]

    def channel(self, channel: Channel) -> Channel:
        """See `Logger`."""
        counted = self._of_channels[channel.id] = MeteredChannel(channel)
        return counted if self._log is None else self._log.channel(counted)

    def queue(self) -> Callable[..., Queue]:
        """See `Logger`."""
        return MeteredQueue if self._log is None else self._log.queue()

    def connect(
        self, queue: Any, operator: Any, port: int, scope: int, source: Port, pact: str
    ) -> None:
        """See `Logger`."""
        dataflow, _ = self._within[scope]
        node, _ = source
        name = self._names.get((scope, node), "?") if node else "outside"
        target: OperatorMeter = operator.meter
        stream = StreamMeter(name, target.name, f"{target.address}.{port}", pact)
        dataflow.streams.append(stream)
        if isinstance(queue, MeteredQueue):
            queue.meter = stream
        if queue.channel is not None:
            channel = self._of_channels.pop(queue.channel.id, None)
            if channel is not None:
                channel.meter = stream
        if self._log is not None:
            self._log.connect(queue, operator, port, scope, source, pact)

    def summaries(self, operator: Any, table: Sequence[Mapping[int, Any]]) -> None:
        """See `Logger`."""
        if operator.role == "probe":
            meter: OperatorMeter = operator.meter
            (counts,) = operator.frontiers
            dataflow = self._dataflow_of(meter)
            epochs = dataflow.epochs
            where = EpochPlace(dataflow.name, meter.name, meter.address)
            is_noted = self.recorder is not None or LOGGER.isEnabledFor(logging.DEBUG)
            note = partial(self._note_epoch, where) if is_noted else None
            meter.probe = ProbeMeter(
                *(meter.name, meter.address, counts, operator.timestamp, epochs.left, note)
            )
            epochs.probes.append(meter.probe)
        if self._log is not None:
            self._log.summaries(operator, table)

    def _note_epoch(self, where: EpochPlace, left: LeftEpoch, now: int) -> None:
        if self.recorder is not None:
            self.recorder.note(where, left, now)
        if LOGGER.isEnabledFor(logging.DEBUG):
            what = "all epochs are" if left.is_end else f"epoch {left.until - 1} is"
            seconds = (now - left.left_ns) * 1e-9
            LOGGER.debug(
                "worker %d: %s complete at %r of dataflow %r, %.6f s after its inputs left it",
                *(self.index, what, where.probe, where.dataflow, seconds),
                extra={
                    "worker": self.index,
                    "dataflow": where.dataflow,
                    "probe": where.probe,
                    "epoch": None if left.is_end else left.until - 1,
                    "seconds": seconds,
                },
            )

    def observer(self, scope: int) -> CountObserver | None:
        """See `Logger`."""
        return None if self._log is None else self._log.observer(scope)

    def stream(self, scope: ScopeCore[Any], what: str, name: str = "") -> Any:
        """See `Logger`."""
        if self._log is None:
            raise UsageError(
                f"scope {scope.name!r} cannot read the log of worker {self.index}, which keeps "
                "none; start the workers with log=ps.Log(...)"
            )
        return self._log.stream(scope, what, name)

    # While it runs.

    def now(self) -> int:
        """See `Logger`."""
        self._began = ticks()
        return self._began if self._log is None else self._log.now()

    def visited(self, scope: int, began: int) -> None:
        """See `Logger`."""
        if scope != self._visited_scope:
            # Mostly it is the same: no look-up, which would make an object of the number.
            self._visited_scope, self._visited = scope, self.dataflows.get(scope)
        if self._visited is not None:
            self._visited.busy_ticks += ticks() - self._began
        if self._log is not None:
            self._log.visited(scope, began)

    def progress_sent(self, scope: int, n_updates: int) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.progress_sent(scope, n_updates)

    def progress_received(self, scope: int, sender: int, n_updates: int) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.progress_received(scope, sender, n_updates)

    def park(self, park: Callable[[float | None], None], timeout_s: float | None) -> None:
        """See `Logger`."""
        began = now_ns()
        if self._log is None:
            park(timeout_s)
        else:
            self._log.park(park, timeout_s)
        self.parks += 1
        self.parked_ns += now_ns() - began

    def text(self, text: str) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.text(text)

    def own(self, name: str, values: Mapping[str, Any]) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.own(name, values)

    def tick(self) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.tick()

    def end_streams(self) -> None:
        """See `Logger`."""
        if self._log is not None:
            self._log.end_streams()

    def close(self) -> None:
        """See `Logger`."""
        if self.recorder is not None:
            sample_requests.publish_last(self)
        sample_requests.remove(self)
        if self._log is not None:
            self._log.close()
