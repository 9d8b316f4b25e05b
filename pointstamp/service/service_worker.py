"""One worker of a service: feeds the dataflow, keeps what comes out, handles requests.

Other threads bring batches, read outputs and wait for epochs; the worker's own thread
runs the dataflow. What both touch is under one lock, whose condition is notified when
anything has changed that a request may wait for. What worker 0 alone decides is with its
`Coordinator`. Its decisions are *orders*, which go over a channel of the workers' own: all
workers carry them out in the same order, and an order reaches all, or the workers end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from pointstamp.checkpoint.staged import Staged
from pointstamp.collections.collection import Collection
from pointstamp.collections.inputs import check_insertions
from pointstamp.collections.schema import Schema
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.conform import conform
from pointstamp.containers.text_sweep import SWEEPS, Held
from pointstamp.containers.updates import Updates
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import EpochError, ServiceError, StoppedError, UsageError
from pointstamp.operators.probe import Probe
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.stream import Stream
from pointstamp.runtime.run_options import memory_bytes
from pointstamp.runtime.worker import Worker
from pointstamp.service import protocol
from pointstamp.service.changes_columns import check_nulls, to_columns, to_updates
from pointstamp.service.checkpoint_config import CheckpointConfig
from pointstamp.service.coordinator import Coordinator
from pointstamp.service.event_columns import to_events
from pointstamp.service.protocol import NEVER, PROTOCOL, StagingHandle, Status, Verb
from pointstamp.service.snapshotting import SnapshotReport, SnapshotWriter, TakeSnapshot
from pointstamp.service.spec import ServiceSpec, known
from pointstamp.service.worker_buffers import (
    CollectionBuffer,
    InputFeeder,
    OutputBuffer,
    StagingArea,
)

LOGGER = logging.getLogger("pointstamp.service")

Answer = TypeVar("Answer")

Order = protocol.Commit | protocol.Abort | protocol.Discard | protocol.Stop | TakeSnapshot
"""What worker 0 has all workers do: what it was asked for and has decided, or a snapshot."""


class ServiceWorker:
    """A worker of a service, which other threads may talk to; made in its own thread.

    With a `config`, what is staged and committed is written there first, and worker 0 begins with
    having admitted what is there and not in the snapshot. Staging handles are signed by `secret`.
    """

    address = None
    """It is in this process: no endpoint has to be found."""

    def __init__(
        self,
        worker: Worker,
        spec: ServiceSpec,
        config: CheckpointConfig | None = None,
        secret: bytes = b"",
    ) -> None:
        self.index = worker.index
        self.peers = worker.peers
        self.thread = threading.current_thread()
        """The worker's own."""
        self.spec = spec
        self.endpoints: list[str] = []
        """The addresses of the Flight servers of all workers, by index."""
        self.changed = threading.Condition()
        self.checkpoint = None if config is None else config.checkpoint
        self.first = first = 0 if config is None else config.epoch + 1
        self.end_epoch = NEVER if config is None else first
        self.staging = StagingArea(worker.index, self.checkpoint, secret)
        self.outputs = {
            name: CollectionBuffer(name, spec.maintained[name])
            if name in spec.maintained
            else OutputBuffer(name)
            for name in spec.outputs
        }
        self.now = Status(
            dict.fromkeys(spec.inputs, first),
            dict.fromkeys(spec.outputs, first),
            dict.fromkeys(spec.outputs, -1),
            self.end_epoch,
        )
        """How far it is."""
        self._worker = worker
        self._limit_bytes = memory_bytes(spec.run_options.get("memory_limit"))
        self._whole_epochs = set(spec.collections)
        """Of which no epoch was larger than that yet."""
        self._is_stopping = False
        self._n_awaiting_room = 0
        self._has_ended = False
        self._orders = worker.environment.channel(self._receive)
        self._feeders: dict[str, InputFeeder] = {}
        self._probes: dict[str, Probe] = {}
        self._ends = Probe()
        """Where else the dataflow ends, if snapshots are made of it."""
        leading = self._build(config)
        if worker.texts is not None:
            worker.texts.also_holds(self._held_texts)
        self.coordinator = Coordinator(self, leading, secret) if self.index == 0 else None
        self._snapshots: SnapshotWriter | None = None
        if config is not None:
            self._begin_again(config)

    def _build(self, config: CheckpointConfig | None) -> dict[str, list[str]]:
        """Build the dataflow; the inputs that lead to each output."""
        given: dict[str, Any] = {}
        begins: dict[str, Stream[Any]] = {}
        ends: dict[str, StreamCore[Any]] = {}
        durable = None if config is None or config.every is None else config
        with self._worker.dataflow("service", durable=durable) as scope:
            for name in self.spec.inputs:
                begins[name] = self._new_input(scope, name)
                given[name] = self.spec.given(name, begins[name])
            results = self.spec.results(scope, list(given.values()))
            if durable is not None:
                # An input may lead to no output, and a snapshot is of what all have brought.
                given_out = [_stream_of(result).source for result in results.values()]
                for end in scope.ends():
                    if end.source not in given_out:
                        end.probe_with(self._ends, name="End")
            for name, result in results.items():
                self._probes[name], ends[name] = self._new_output(name, result)
        return {
            output: [input for input, begin in begins.items() if scope.leads_to(begin, end)]
            for output, end in ends.items()
        }

    def _new_input(self, scope: Scope, name: str) -> Stream[Any]:
        made: tuple[InputHandle, Stream[Any]] = scope.new_input(name)
        handle, stream = made
        schema = self.spec.collections.get(name)
        if schema is None:
            self._feeders[name] = InputFeeder(handle)
            return stream
        where, form = f"the input {name!r}", self.spec.upserts.get(name)
        self._feeders[name] = InputFeeder(
            handle,
            lambda batch: (
                to_updates(schema, batch, where) if form is None else to_events(form, batch, where)
            ),
        )
        return stream

    def _new_output(
        self, name: str, result: Stream[Any] | Collection
    ) -> tuple[Probe, StreamCore[Any]]:
        """Keep what comes; the probe of it, and the stream where it ends."""
        buffer = self.outputs[name]
        if isinstance(result, Collection):
            # So that of an epoch no record has two changes, on whichever workers they came to be.
            changes = result.consolidate(name="Output")
            probe = Probe()
            changes.watched_by(probe, partial(self._keep_changes, buffer, result.schema))
            return probe, changes.stream
        keep = partial(self._keep, buffer, self.spec.outputs[name])
        return result.inspect_batch(keep).probe(), result

    def _begin_again(self, config: CheckpointConfig) -> None:
        """Take up what the checkpoint has."""
        if self.index == 0:
            config.check(self.spec)
        for name, buffer in self.outputs.items():
            buffer.discard(config.discarded(name))
            for number, stored in enumerate(config.outputs(name)):
                if number % self.peers == self.index:
                    for epoch, batch in config.load(stored):
                        buffer.add(epoch, batch)
        if config.every is not None:
            self._snapshots = SnapshotWriter(self._worker, config, self._held, self._report)
        if self.coordinator is not None:
            self.coordinator.begin_again(config)

    # The worker's thread.

    def run(self) -> None:
        """Feed and step until the order to stop."""
        while not self._is_stopping:
            for feeder in self._feeders.values():
                feeder.feed()
            self._publish()
            if self._n_awaiting_room:
                self.notify()
            if self._snapshots is not None:
                self._snapshots.go_on()
            self._worker.step_or_park()

    def end(self) -> None:
        """Refuse requests, those that wait as well: the worker has ended."""
        self._has_ended = True
        self.notify()
        if self._snapshots is not None:
            self._snapshots.close()
        if self.coordinator is not None and self.coordinator.snapshots is not None:
            self.coordinator.snapshots.close()

    def _publish(self) -> None:
        """Show other threads how far we are, if it has changed."""
        now = Status(
            {name: feeder.time for name, feeder in self._feeders.items()},
            {name: self._frontier(probe) for name, probe in self._probes.items()},
            self._discarded(),
            self.end_epoch,
        )
        if now != self.now:
            self.now = now
            self.notify()

    def _discarded(self) -> dict[str, int]:
        return {name: buffer.discarded for name, buffer in self.outputs.items()}

    def _frontier(self, probe: Probe) -> int | None:
        """The first epoch that is not complete there; what a snapshot has is, from the start."""
        least = min(probe.elements, default=None)
        return None if least is None else max(least, self.first)

    def _keep(self, buffer: OutputBuffer, schema: pa.Schema, epoch: int, batch: Any) -> None:
        fitting = conform(batch, schema, f"the records of output {buffer.name!r}", "the service")
        with self.changed:
            buffer.add(epoch, fitting)

    def _keep_changes(
        self, buffer: OutputBuffer, schema: Schema, epoch: int, batch: Updates
    ) -> None:
        columns = to_columns(schema, batch.rows)
        with self.changed:
            buffer.add(epoch, columns)

    def _held(self, epoch: int) -> dict[str, Any] | None:
        """What the outputs have up to `epoch`; None if that is not complete at all ends."""
        with self.changed:
            if self._ends.less_equal(epoch) or not self.now.is_complete(None, epoch):
                return None
            held = {name: buffer.all(epoch) for name, buffer in self.outputs.items()}
            self._hold_at(None)
            return held

    def _held_texts(self) -> list[Held]:
        collections = [one for one in self.outputs.values() if isinstance(one, CollectionBuffer)]
        return [held for buffer in collections for held in buffer.held_texts()]

    def _hold_at(self, epoch: int | None) -> None:
        """Have collections added up as of an epoch at most, until a snapshot of it has them."""
        for buffer in self.outputs.values():
            if isinstance(buffer, CollectionBuffer):
                buffer.hold_at(epoch)

    def _report(self, report: SnapshotReport) -> None:
        self._orders.send(0, "order", [report])

    def _receive(self) -> None:
        while (message := self._orders.pull()) is not None:
            self._obey(*message.batch)

    def _obey(self, order: Order | SnapshotReport) -> None:
        match order:
            case SnapshotReport():
                assert self.coordinator is not None  # we are worker 0
                assert self.coordinator.snapshots is not None
                self.coordinator.snapshots.receive(order)
            case TakeSnapshot():
                assert self._snapshots is not None  # all workers have the same configuration
                with self.changed:
                    self._hold_at(None if order.is_abandoned else order.epoch)
                self._snapshots.obey(order)
            case protocol.Commit():
                self._admit(order)
            case protocol.Discard():
                with self.changed:
                    self.outputs[order.output].discard(order.upto)
            case protocol.Abort():
                with self.changed:
                    for handle in order.attempts:
                        self.staging.drop(handle)
                    if order.job:
                        self.staging.drop_job(order.job)
            case protocol.Stop():
                self._is_stopping = True

    def _admit(self, order: protocol.Commit) -> None:
        until = order.next_epoch
        with self.changed:
            n_bytes = self.staging.taken_bytes(order.attempts)
            batches = self.staging.take(order.attempts)
            if order.input in self.spec.collections:
                # What else is staged may be for a later epoch: those are numbered as they come.
                for handle in order.attempts:
                    self.staging.drop(handle)
            else:
                self.staging.drop_upto(order.input, order.epoch)
            # Under the lock, so that of what is staged nothing is ever counted as gone before.
            self._feeders[order.input].admit(order.epoch, batches, until, n_bytes)
        self._warn_if_large(order, n_bytes)
        if self.checkpoint is not None:
            over = order.epoch + bool(order.attempts) if until is None else until
            self.end_epoch = max(self.end_epoch, over)

    def _warn_if_large(self, order: protocol.Commit, n_bytes: int) -> None:
        """Say that an epoch of a collection takes more than the limit is, once for each input.

        What waits is on disk beyond the limit; but operators of collections put together what an
        epoch brings, and no row of it counts before all of them are there.
        """
        limit = self._limit_bytes
        if limit is None or n_bytes <= limit or order.input not in self._whole_epochs:
            return
        self._whole_epochs.remove(order.input)
        LOGGER.warning(
            "epoch %d of the collection %r has %d bytes at worker %d, which are put together in "
            "memory, whatever memory_limit=%d is: load or insert less before each advance",
            *(order.epoch, order.input, n_bytes, self.index, limit),
        )

    # Any thread.

    def order(self, order: Order) -> None:
        """Have every worker obey; of worker 0."""
        self.check_alive()

        def send() -> None:
            for peer in range(self.peers):
                self._orders.send(peer, "order", [order])

        self._worker.environment.call(send)

    def notify(self) -> None:
        """Have those that wait for something look again."""
        with self.changed:
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Have this worker, and with it all, fail of `error`, if it has not ended."""
        if not self._has_ended:
            self._worker.environment.fail(error)
            self._worker.communicator.unpark()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds; whether it does."""
        with self.changed:
            self.changed.wait_for(lambda: self._has_ended or condition(), timeout_s)
            if condition():
                return True
            self.check_alive()
            return False

    def check_alive(self) -> None:
        """Raise `StoppedError` if the worker has ended."""
        if self._has_ended:
            raise StoppedError(f"worker {self.index} of the service has ended")

    def incomplete(self, output: str, epoch: int) -> EpochError:
        """The error that says what holds an epoch back."""
        return EpochError(f"epoch {epoch} of output {output!r} is not complete: {self.now}")

    # Requests; each is handled by the method of its verb.

    def ask(self, request: Verb[Answer]) -> Answer:
        """Handle a request; see `protocol`."""
        handlers = self.coordinator if request.of_leader else self
        if handlers is None:
            raise ServiceError(
                f"worker {self.index} only stages and reads: ask worker 0, which decides"
            )
        answer: Answer = getattr(handlers, request.verb)(request)
        return answer

    def describe(self, request: protocol.Describe) -> dict[str, Any]:
        """The workers, inputs and outputs."""
        return {
            "protocol": PROTOCOL,
            "worker": self.index,
            "endpoints": self.endpoints,
            "inputs": {name: _columns(schema) for name, schema in self.spec.inputs.items()},
            "outputs": {name: _columns(schema) for name, schema in self.spec.outputs.items()},
        }

    def status(self, request: protocol.GetStatus) -> Status:
        """How far it is; what `discard` took away shows at once, and not after the next step."""
        self.check_alive()
        with self.changed:
            return replace(self.now, discarded=self._discarded())

    def probe(self, request: protocol.AwaitEpoch) -> bool:
        """Whether an epoch is complete at an output, or at all for None."""
        if request.output is not None:
            known(self.spec.outputs, request.output, "output")
        return self.wait_for(
            lambda: self.now.is_complete(request.output, request.epoch), request.wait_s
        )

    def await_staged(self, request: protocol.AwaitStaged) -> int:
        """How many bytes of an input are staged here, once they are fewer, or in any case soon."""
        known(self.spec.inputs, request.input, "input")
        feeder = self._feeders[request.input]

        def staged() -> int:
            return self.staging.n_bytes(request.input) + feeder.n_bytes

        with self.changed:
            self._n_awaiting_room += 1
        try:
            self.wait_for(lambda: staged() < request.below, request.wait_s)
        finally:
            with self.changed:
                self._n_awaiting_room -= 1
        return staged()

    def stage(self, request: protocol.StageBatches, batches: Iterable[Any]) -> StagingHandle:
        """Keep `batches` for a commit of (input, epoch); nothing enters the dataflow yet.

        Raises `SchemaError` or `ContainerError` if a batch does not fit the schema of the input,
        and `DataError` if a value does not.
        """
        input, epoch = request.input, request.epoch
        schema = known(self.spec.inputs, input, "input")
        if not 0 <= epoch < NEVER:
            raise UsageError(
                f"nothing can be staged for epoch {epoch} of input {input!r}: "
                f"epochs are from 0 to {NEVER - 1}"
            )
        memory = self._worker.environment.memory
        fitting: Any = [] if memory is None else memory.list()
        n_rows = n_bytes = 0
        for batch in batches:
            whole = conform(batch, schema, f"the records sent to {input!r}", "that input")
            for start in range(0, whole.num_rows, PREFERRED_RECORDS):
                part = whole.slice(start, PREFERRED_RECORDS)
                self._check_values(input, part)
                fitting.append(part)
                n_rows += part.num_rows
                n_bytes += part.nbytes
        stored: Staged | None = None
        if self.checkpoint is not None:
            if input in self.spec.collections:
                # It may be committed at a later epoch; what the log has of earlier ones is pruned.
                epoch = max(epoch, self._feeders[input].time or epoch)
            # Two workers may have something of one attempt.
            name = f"{request.attempt} at {self.index}"
            stored = self.checkpoint.stage(input, epoch, name, fitting)
        with self.changed:
            self.check_alive()
            return self.staging.stage(request, fitting, stored, (n_rows, n_bytes))

    def _check_values(self, input: str, batch: pa.RecordBatch) -> None:
        """Raise `DataError` for what the dataflow could not take, once it is committed."""
        where = f"the input {input!r}"
        if input in self.spec.upserts:
            with SWEEPS.held_back():
                to_events(self.spec.upserts[input], batch, where)
        elif input in self.spec.collections:
            check_nulls(batch, where)
            if input in self.spec.append_only:
                schema = self.spec.collections[input]
                with SWEEPS.held_back():
                    check_insertions(schema, to_updates(schema, batch, where), where)

    def read(self, request: protocol.ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """This worker's batches of a range of epochs, for which it waits to be complete.

        Raises `EpochError` if they are not, or are discarded.
        """
        output, upto = request.output, request.upto
        known(self.spec.outputs, output, "output")
        if upto is not None and not self.probe(protocol.AwaitEpoch(upto, output, request.wait_s)):
            raise self.incomplete(output, upto)
        with self.changed:
            upto = self.now.last_complete(output) if upto is None else upto
            buffer = self.outputs[output]
            match request.form:
                case "changes":
                    return buffer.read(request.after, upto)
                case "snapshot":
                    return buffer.snapshot(upto)
                case "all":
                    return buffer.all(upto)
        raise UsageError(
            f"output {output!r} is asked for in the form {request.form!r}, and there are "
            "'changes', 'snapshot' and 'all'"
        )


def _columns(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def _stream_of(result: Stream[Any] | Collection) -> StreamCore[Any]:
    return result.stream if isinstance(result, Collection) else result
