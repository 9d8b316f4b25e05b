"""One worker of a service: feeds the dataflow, keeps what comes out, obeys orders.

Other threads bring batches, read outputs and wait for epochs; the worker's own thread
runs the dataflow. What both touch is under one lock, whose condition is notified when
anything has changed that somebody may wait for.

*Who decides.* Worker 0 does: a commit names the attempts of an (input, epoch), the first
commit of it counts, and worker 0 then orders all workers to let theirs in. So it does
not matter where who commits fails: before the decision nothing happened, after it all
of it will.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from pointstamp.checkpoint.durable import Durable
from pointstamp.checkpoint.input_log import Staged
from pointstamp.communication.communicator import Message
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.conform import conform
from pointstamp.errors import (
    CheckpointStructureError,
    EpochError,
    ServiceError,
    StoppedError,
    UsageError,
)
from pointstamp.operators.probe import Probe
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.stream import Stream
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig, columns, told
from pointstamp.service.input_feeder import InputFeeder
from pointstamp.service.orders import (
    AbandonSnapshot,
    AdmitEpoch,
    DiscardOutput,
    DropAttempts,
    Order,
    StopWorkers,
    TakeSnapshot,
)
from pointstamp.service.output_buffer import OutputBuffer
from pointstamp.service.snapshotting import (
    SnapshotCoordinator,
    SnapshotReport,
    SnapshotWriter,
)
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.staging import Staging, StagingHandle
from pointstamp.service.status import NEVER, Status

ASKED_S = 30.0
"""How long workers may take to hear of a snapshot; an operator that is at work delays them."""


class ServiceWorker:
    """A worker of a service, which other threads may talk to.

    Parameters
    ----------
    worker : Worker
        Whose dataflow is built here, in its own thread.
    plan : ServiceSpec
    config : CheckpointConfig, optional
        What is staged and committed is written there first; worker 0 begins with having all let
        in what is there and not in the snapshot.
    secret : bytes
        Of the job, to know handles by.
    """

    address = None
    """It is in this process: no server has to be found."""

    def __init__(
        self,
        worker: Worker,
        plan: ServiceSpec,
        config: CheckpointConfig | None = None,
        secret: bytes = b"",
    ) -> None:
        self.index = worker.index
        self.thread = threading.current_thread()
        """The worker's own."""
        self.plan = plan
        self._worker = worker
        self._changed = threading.Condition()
        self._config = config
        self._checkpoint = checkpoint = None if config is None else config.checkpoint
        self._first = first = 0 if config is None else config.epoch + 1
        self._staging = Staging(worker.index, checkpoint, secret)
        self._secret = secret
        self._aborted: set[tuple[str, int, int, str]] = set()
        """Attempts that are dropped, of epochs that are not decided. Of worker 0 alone."""
        self._outputs = {name: OutputBuffer(name) for name in plan.outputs}
        # What is decided, which this worker's own inputs may be behind. Of worker 0 alone.
        self._positions: dict[str, int | None] = dict.fromkeys(plan.inputs, first)
        self._is_finishing = False
        self._deciding = threading.Lock()
        self._end = NEVER if checkpoint is None else first
        self._is_stopping = False
        self._has_ended = False
        self._orders = worker.environment.channel(self._hear)
        self._feeders, self._probes, self._leading = self._built()
        self._status = Status(
            dict.fromkeys(plan.inputs, first),
            dict.fromkeys(plan.outputs, first),
            dict.fromkeys(plan.outputs, -1),
        )
        self._snapshot_writer: SnapshotWriter | None = None
        self._snapshot_coordinator: SnapshotCoordinator | None = None
        if config is not None:
            self._begin_again(config)

    def _built(self) -> tuple[dict[str, InputFeeder], dict[str, Probe], dict[str, list[str]]]:
        """The inputs, a probe for each output, and the inputs that lead to each output."""
        sources, probes, streams = {}, {}, []
        with self._worker.dataflow("service", durable=self._durable()) as scope:
            for name in self.plan.inputs:
                made: tuple[InputHandle, Stream[Any]] = scope.new_input(name)
                sources[name] = InputFeeder(made[0])
                streams.append(made[1])
            results = self.plan.results(scope, streams)
            for name, stream in results.items():
                keep = partial(self._keep, self._outputs[name], self.plan.outputs[name])
                probes[name] = stream.inspect_batch(keep).probe()
        leading = {
            output: [
                input
                for input, stream in zip(self.plan.inputs, streams, strict=True)
                if scope.leads_to(stream, result)
            ]
            for output, result in results.items()
        }
        return sources, probes, leading

    def _durable(self) -> Durable | None:
        return None if self._config is None else self._config.durable

    def _begin_again(self, config: CheckpointConfig) -> None:
        """Take up what is kept."""
        if self.index == 0:
            config.check_columns(self.plan.inputs, self.plan.outputs)
        for name, buffer in self._outputs.items():
            buffer.discard(config.discarded(name))
            for number, kept in config.outputs(name):
                if number % self._worker.peers == self.index:
                    for epoch, batch in config.load(kept):
                        buffer.add(epoch, batch)
        if self.index == 0:
            self._replay(config)
        if config.every is not None:
            self._snapshot_writer = SnapshotWriter(
                self._worker, config, self._held, self._send_to_leader
            )
            if self.index == 0:
                self._snapshot_coordinator = SnapshotCoordinator(
                    self._worker.peers,
                    config,
                    list(self.plan.outputs),
                    self._snapshot_meta,
                    self._may_seal,
                    lambda epoch: self._order(AbandonSnapshot(epoch)),
                    self._ask_for_next,
                    self.fail,
                )
                self._ask_for_next(config.epoch)

    def _replay(self, config: CheckpointConfig) -> None:
        """Have all workers let in what the checkpoint has, dealt to as many as there are now."""
        checkpoint, gone = config.checkpoint, config.unknown(self.plan.inputs)
        if gone:
            raise CheckpointStructureError(
                f"{checkpoint} has records of input {', '.join(map(repr, gone))}, which this "
                f"service has not: its inputs are {', '.join(map(repr, self.plan.inputs))}; serve "
                "the dataflow that they were sent to, or with another folder"
            )
        for input in self.plan.inputs:
            for epoch, kept in checkpoint.committed(input, config.epoch):
                dealt = tuple(
                    StagingHandle(
                        input, epoch, one.name, n % self._worker.peers, one.rows, one.to_json()
                    )
                    for n, one in enumerate(kept)
                )
                self._positions[input] = epoch + 1
                self._order(AdmitEpoch(input, epoch, dealt, epoch + 1))
            # Who reads was told that nothing more comes before that, and may have acted on it.
            now, reached = self._positions[input], checkpoint.reached(input)
            config.check_reached(input, reached)
            assert now is not None  # none is closed yet
            if now < reached:
                self._positions[input] = reached
                self._order(AdmitEpoch(input, now, (), reached))

    # The worker's thread.

    def run(self) -> None:
        """Feed and step until the order to stop; whoever waits is woken when it ends."""
        try:
            while not self._is_stopping:
                for source in self._feeders.values():
                    source.feed()
                self._publish()
                if self._snapshot_writer is not None:
                    self._snapshot_writer.go_on()
                self._worker.step_or_park()
        finally:
            self.end()

    def end(self) -> None:
        """Have whoever waits here, or comes, hear that the worker has ended."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        for part in (self._snapshot_writer, self._snapshot_coordinator):
            if part is not None:
                part.close()

    def _publish(self) -> None:
        """Show the others how far we are, if it has changed."""
        status = Status(
            {name: source.time for name, source in self._feeders.items()},
            {name: self._frontier(probe) for name, probe in self._probes.items()},
            {name: buffer.discarded for name, buffer in self._outputs.items()},
            self._end,
        )
        if status != self._status:
            with self._changed:
                self._status = status
                self._changed.notify_all()

    def _frontier(self, probe: Probe) -> int | None:
        """The first epoch that is not complete there; what a snapshot has is, from the start."""
        least = min(probe.elements, default=None)
        return None if least is None else max(least, self._first)

    def _keep(self, buffer: OutputBuffer, schema: pa.Schema, epoch: int, batch: Any) -> None:
        fitting = conform(batch, schema, f"the records of output {buffer.name!r}", "the service")
        with self._changed:
            buffer.add(epoch, fitting)

    def _hear(self) -> None:
        while (message := self._orders.pull()) is not None:
            self._obey(message)

    def _obey(self, message: Message) -> None:
        (order,) = message.batch
        if isinstance(order, AdmitEpoch):
            with self._changed:
                batches = self._staging.take(order.attempts)
                self._staging.drop_upto(order.input, order.epoch)
            if self._checkpoint is not None:
                over = order.epoch + bool(order.attempts) if order.until is None else order.until
                self._end = max(self._end, over)
            self._feeders[order.input].release(order.epoch, batches, order.until)
        elif isinstance(order, TakeSnapshot):
            assert self._snapshot_writer is not None  # all workers have the same
            self._snapshot_writer.ask(order.epoch)
        elif isinstance(order, AbandonSnapshot):
            assert self._snapshot_writer is not None
            self._snapshot_writer.abandon(order.epoch)
        elif isinstance(order, SnapshotReport):
            assert self._snapshot_coordinator is not None  # we are worker 0
            self._snapshot_coordinator.receive(order)
            with self._changed:
                self._changed.notify_all()
        elif isinstance(order, DropAttempts):
            with self._changed:
                for staged in order.attempts:
                    self._staging.drop(staged)
        elif isinstance(order, DiscardOutput):
            with self._changed:
                self._outputs[order.output].discard(order.upto)
        else:
            self._is_stopping = True

    def _order(self, order: Order) -> None:
        """Have every worker obey; from any thread of worker 0."""
        self._check_alive()
        self._worker.environment.call(partial(self._send, order))

    def _send(self, order: Order) -> None:
        for peer in range(self._worker.peers):
            self._orders.send(peer, "order", [order])

    # Snapshots; see `cuts`.

    def _send_to_leader(self, said: SnapshotReport) -> None:
        self._orders.send(0, "order", [said])

    def _held(self, epoch: int) -> dict[str, Any] | None:
        """What the outputs have up to `epoch`; None if that is not complete at all of them."""
        with self._changed:
            if not self._status.is_complete(None, epoch):
                return None
            return {name: buffer.read(None, epoch) for name, buffer in self._outputs.items()}

    def _ask_for_next(self, last: int) -> None:
        """Plan the snapshot after that of epoch `last`, of an epoch that nobody is past."""
        assert self._config is not None
        assert self._config.every is not None
        assert self._snapshot_coordinator is not None
        with self._deciding:
            positions = self._open_positions()
            if positions:
                self._snapshot_coordinator.aim_at(
                    max(*positions, last + 1) - 1 + self._config.every
                )
                with contextlib.suppress(StoppedError):  # there is none to come, then
                    self._ask_in_time(max(positions))
        with self._changed:
            self._changed.notify_all()

    def _ask_in_time(self, position: int | None) -> None:
        """Ask all for the planned snapshot if an input is to go to its epoch, or to close."""
        coordinator = self._snapshot_coordinator
        if coordinator is not None and coordinator.is_due(position):
            assert coordinator.epoch is not None
            coordinator.is_asked = True
            self._order(TakeSnapshot(coordinator.epoch))

    def _open_positions(self) -> list[int]:
        return [time for time in self._positions.values() if time is not None]

    def _snapshot_meta(self, outputs: dict[int, Any]) -> dict[str, Any]:
        """What a snapshot says beside the state."""
        discarded = {name: buffer.discarded for name, buffer in self._outputs.items()}
        meta = told(outputs, discarded) | columns(self.plan.inputs, self.plan.outputs)
        with self._deciding:
            meta["reached"] = {
                name: position for name, position in self._positions.items() if position is not None
            }
        return meta

    def _may_seal(self, epoch: int) -> bool:
        """Whether an epoch is over for good, and not only because inputs are closed."""
        return not self._is_finishing and epoch < self._end

    def snapshot(self, soon: bool = False) -> dict[str, int | None]:
        """The epochs of the last snapshot that is sealed (-1: none), and of the next.

        Parameters
        ----------
        soon : bool
            Have the next be of the epoch that the inputs are at, unless it is asked for
            already: it is made when they all have gone on.

        Raises
        ------
        ServiceError
            If none are made.
        """
        coordinator = self._sealing()
        if soon:
            with self._deciding:
                positions = self._open_positions()
                if positions and coordinator.epoch is not None and not coordinator.is_asked:
                    coordinator.aim_at(max(positions))
                    self._ask_in_time(max(positions))
        return {"sealed": coordinator.last, "asked": coordinator.epoch}

    def await_snapshot(self, epoch: int, timeout_s: float) -> bool:
        """Wait until a snapshot of `epoch`, or of a later one, is sealed; whether it is."""
        coordinator = self._sealing()
        return self._wait(lambda: coordinator.last >= epoch, timeout_s)

    def _sealing(self) -> SnapshotCoordinator:
        self._check_leader()
        self._check_alive()
        if self._snapshot_coordinator is None:
            raise ServiceError(
                "this service makes no snapshots: serve with checkpoint= and snapshot_every="
            )
        return self._snapshot_coordinator

    # Other threads, at any worker.

    def status(self) -> Status:
        """How far the service is, as this worker knows it."""
        self._check_alive()
        return self._status

    def stage(
        self, input: str, epoch: int, batches: Iterable[Any], attempt: str | None = None
    ) -> StagingHandle:
        """Keep `batches` for a commit of (input, epoch); nothing enters the dataflow yet.

        Parameters
        ----------
        attempt : str, optional
            Its name, new for each try; one is made up if not given.

        Raises
        ------
        SchemaError, ContainerError
            If a batch does not fit the schema of the input.
        """
        schema = self._known(self.plan.inputs, input, "input")
        if not 0 <= epoch < NEVER:
            raise UsageError(
                f"nothing can be staged for epoch {epoch} of input {input!r}: "
                f"epochs are from 0 to {NEVER - 1}"
            )
        fitting = [
            part
            for batch in batches
            for part in _parts(conform(batch, schema, f"what is sent to {input!r}", "that input"))
        ]
        attempt, kept = attempt or uuid.uuid4().hex, None
        if self._checkpoint is not None:
            # Two workers may have something of one attempt.
            name = f"{attempt} at {self.index}"
            kept = self._checkpoint.stage(input, epoch, name, fitting).to_json()
        with self._changed:
            self._check_alive()
            return self._staging.stage(input, epoch, attempt, fitting, kept)

    def read(
        self, output: str, after: int | None, upto: int | None, timeout_s: float = 0.0
    ) -> list[tuple[int, pa.RecordBatch]]:
        """This worker's batches of the epochs in (after, upto], when they are complete.

        Parameters
        ----------
        after : int or None
            None for all that is not discarded.
        upto : int or None
            None for the last that is complete now.
        timeout_s : float
            How long to wait until they are complete here.

        Raises
        ------
        EpochError
            If they are not, or are discarded.
        """
        self._known(self.plan.outputs, output, "output")
        if upto is not None and not self.wait(output, upto, timeout_s):
            raise EpochError(self._why_incomplete(output, upto))
        with self._changed:
            frontier = self._status.outputs[output]
            if upto is None:
                upto = NEVER if frontier is None else frontier - 1
            return self._outputs[output].read(after, upto)

    def wait(self, output: str | None, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is complete at an output, or at all for None; whether it is."""
        if output is not None:
            self._known(self.plan.outputs, output, "output")
        return self._wait(lambda: self._status.is_complete(output, epoch), timeout_s)

    def _wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or condition(), timeout_s)
            if condition():
                return True
            self._check_alive()
            return False

    def _check_alive(self) -> None:
        if self._has_ended:
            raise StoppedError(f"worker {self.index} of the service has ended")

    def _known(self, named: Mapping[str, pa.Schema], name: str, what: str) -> pa.Schema:
        if name not in named:
            raise UsageError(
                f"the service has no {what} {name!r}; it has {', '.join(map(repr, named))}"
            )
        return named[name]

    def _why_incomplete(self, output: str, epoch: int) -> str:
        inputs = ", ".join(
            f"{name!r} is {'closed' if time is None else f'at epoch {time}'}"
            for name, time in self._status.inputs.items()
        )
        return (
            f"epoch {epoch} of output {output!r} is not complete: the first that is not is "
            f"{self._status.outputs[output]}; of the inputs, {inputs or 'there is none'}"
        )

    # Other threads, at worker 0.

    def commit(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> bool:
        """Let the attempts into the dataflow at `epoch`, and the input go on to `until`.

        Once it has returned, it happens, whatever becomes of the caller, and with a checkpoint
        whatever becomes of the workers: it is written. What else is staged for the input up to
        `epoch` is dropped.

        Parameters
        ----------
        until : int or None
            The input's next epoch, greater than `epoch`; None closes it.

        Returns
        -------
        bool
            False, and nothing is changed, if the input is past `epoch` already: it was
            committed before.
        """
        self._check_leader()
        self._known(self.plan.inputs, input, "input")
        if until is not None and until <= epoch:
            raise UsageError(
                f"input {input!r} cannot go on from epoch {epoch} to {until}: that is not later"
            )
        if until is not None and until > NEVER:
            raise UsageError(f"input {input!r} cannot go on to {until}: epochs end at {NEVER}")
        self._check_handles(input, epoch, attempts)
        with self._deciding:
            position = self._positions[input]
            if position is None or epoch < position:
                return False
            with self._changed:
                self._check_alive()
                self._check_usable(attempts)
                self._staging.take(attempts)  # raises for what is not here, before the decision
            self._ask_in_time(until)
            self._let_past_snapshot(until)
            attempts = list({(one.worker, one.attempt): one for one in attempts}.values())
            if attempts or until is not None:
                # A close with nothing is no epoch: who begins again may go on with it.
                self._write(input, epoch, attempts, until)
            self._positions[input] = until
            self._aborted = {key for key in self._aborted if key[0] != input or key[1] > epoch}
            self._order(AdmitEpoch(input, epoch, tuple(attempts), until))
        return True

    def _check_handles(self, input: str, epoch: int, attempts: Sequence[StagingHandle]) -> None:
        """Raise for what was staged for something else."""
        for staged in attempts:
            if (staged.input, staged.epoch) != (input, epoch):
                raise UsageError(
                    f"a commit of epoch {epoch} of input {input!r} names attempt "
                    f"{staged.attempt!r}, which was staged for epoch {staged.epoch} of "
                    f"{staged.input!r}"
                )

    def _check_usable(self, attempts: Sequence[StagingHandle]) -> None:
        for staged in attempts:
            self._check_genuine(staged)
            if _key(staged) in self._aborted:
                raise ServiceError(
                    f"attempt {staged.attempt!r} for epoch {staged.epoch} of input "
                    f"{staged.input!r} was aborted: stage it again"
                )

    def _check_genuine(self, staged: StagingHandle) -> None:
        if not staged.is_genuine(self._secret):
            raise UsageError(
                f"the handle of attempt {staged.attempt!r} is none of this service, or was "
                "changed: hand back what staging gave"
            )

    def _let_past_snapshot(self, until: int | None) -> None:
        """Let no input past the epoch of a snapshot before all workers are asked for that."""
        coordinator = self._snapshot_coordinator
        if coordinator is not None and not self._wait(
            lambda: coordinator.lets_past(until), ASKED_S
        ):
            raise ServiceError(
                f"not all workers have begun the snapshot of epoch {coordinator.epoch} in "
                f"{ASKED_S:g} s, and no input can go past it before; nothing is changed: try again"
            )

    def _write(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> None:
        """Make the decision outlast us, where there is a checkpoint."""
        if self._checkpoint is None:
            return
        kept = [Staged.from_json(staged.kept) for staged in attempts if staged.kept is not None]
        if not self._checkpoint.commit(input, epoch, kept, until):
            raise ServiceError(
                f"epoch {epoch} of input {input!r} is in {self._checkpoint} already, and not by "
                "this service: another one uses the folder; only one may, so end this one, or "
                "that, and serve again"
            )

    def abort(self, attempts: Sequence[StagingHandle]) -> None:
        """DropAttempts what is staged, except what a commit has named; again is no error."""
        self._check_leader()
        for staged in attempts:
            self._check_genuine(staged)
        with self._deciding:
            undecided = [staged for staged in attempts if not self._is_decided(staged)]
            for staged in undecided:
                if self._checkpoint is not None and staged.kept is not None:
                    kept = Staged.from_json(staged.kept)
                    self._checkpoint.abort(staged.input, staged.epoch, kept)
            self._aborted.update(map(_key, undecided))
            self._order(DropAttempts(tuple(undecided)))

    def _is_decided(self, staged: StagingHandle) -> bool:
        position = self._positions.get(staged.input)
        return position is None or staged.epoch < position

    def position(self, input: str) -> int | None:
        """The first epoch of an input that may still be committed; None if it is closed."""
        self._check_leader()
        self._known(self.plan.inputs, input, "input")
        self._check_alive()
        with self._deciding:
            return self._positions[input]

    def await_completion(self, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is as complete as inputs that are behind it allow; whether it is.

        An input that is behind holds back the outputs that it leads to, and no others.
        """
        self._check_leader()
        return self._wait(lambda: self._is_settled(epoch), timeout_s)

    def _is_settled(self, epoch: int) -> bool:
        return all(
            self._status.is_complete(output, self._reachable(epoch, inputs))
            for output, inputs in self._leading.items()
        )

    def _reachable(self, epoch: int, inputs: Iterable[str]) -> int:
        """The last epoch up to `epoch` that can be complete where these inputs lead to."""
        # By what is decided: the inputs themselves may not have heard of it yet.
        positions = [self._positions[input] for input in inputs]
        return min([epoch + 1, *(time for time in positions if time is not None)]) - 1

    def discard(self, output: str, upto: int) -> None:
        """Have all workers let go of an output's epochs up to this one, which is complete."""
        self._check_leader()
        self._known(self.plan.outputs, output, "output")
        if not self._status.is_complete(output, upto):
            raise EpochError(self._why_incomplete(output, upto))
        with self._changed:
            self._outputs[output].discard(upto)  # at once, so that who reads here next is told
        self._order(DiscardOutput(output, upto))

    def finish(self) -> None:
        """Seal no more snapshots: what closes from here on, goes on in the service's next life."""
        self._check_leader()
        with self._deciding:
            self._is_finishing = True
            if self._snapshot_coordinator is not None:
                self._snapshot_coordinator.ask_no_more()

    def stop(self) -> None:
        """Have all workers leave, as it is: `finish`, close the inputs before, and wait."""
        self._check_leader()
        self._order(StopWorkers())

    def fail(self, error: BaseException) -> None:
        """Have this worker, and with it all, fail of `error`."""
        self._worker.environment.fail(error)
        self._worker.communicator.unpark()

    def _check_leader(self) -> None:
        if self.index != 0:
            raise ServiceError(
                f"worker {self.index} only stages and reads: ask worker 0, which decides"
            )


def _key(staged: StagingHandle) -> tuple[str, int, int, str]:
    return staged.input, staged.epoch, staged.worker, staged.attempt


def _parts(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    """`batch` in pieces that are good to send, without a copy; none if it is empty."""
    for start in range(0, batch.num_rows, PREFERRED_RECORDS):
        yield batch.slice(start, PREFERRED_RECORDS)
