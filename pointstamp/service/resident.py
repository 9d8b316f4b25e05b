"""One worker of a service: feeds the dataflow, keeps what comes out, obeys orders.

Other threads bring batches, read outputs and wait for epochs; the worker's own thread
runs the dataflow. What both touch is under one lock, whose condition is notified when
anything has changed that somebody may wait for.

*Who decides.* Worker 0 does: a commit names the winners of an (input, epoch), the first
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
from pointstamp.checkpoint.input_log import Staged as Kept
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
from pointstamp.service.blueprint import Blueprint
from pointstamp.service.cuts import Asked, Cutter, Sealer, Written
from pointstamp.service.keeping import Keeping
from pointstamp.service.orders import Cut, Drop, Forget, Order, Release, Stop
from pointstamp.service.outlet import Outlet
from pointstamp.service.source import Source
from pointstamp.service.staging import Staged, Staging
from pointstamp.service.status import NEVER, Status

ASKED_S = 30.0
"""How long workers may take to hear of a snapshot; an operator that is at work delays them."""


class Resident:
    """A worker of a service, which other threads may talk to.

    Parameters
    ----------
    worker : Worker
        Whose dataflow is built here, in its own thread.
    plan : Blueprint
    keeping : Keeping, optional
        What is staged and committed is written there first; worker 0 begins with having all let
        in what is there and not in the snapshot.
    secret : bytes
        Of the job, to know receipts by.
    """

    address = None
    """It is in this process: no door has to be found."""

    def __init__(
        self,
        worker: Worker,
        plan: Blueprint,
        keeping: Keeping | None = None,
        secret: bytes = b"",
    ) -> None:
        self.index = worker.index
        self.thread = threading.current_thread()
        """The worker's own."""
        self.plan = plan
        self._worker = worker
        self._changed = threading.Condition()
        self._keeping = keeping
        self._checkpoint = checkpoint = None if keeping is None else keeping.checkpoint
        self._first = first = 0 if keeping is None else keeping.epoch + 1
        self._staging = Staging(worker.index, checkpoint, secret)
        self._secret = secret
        self._aborted: set[tuple[str, int, int, str]] = set()
        """Attempts that are dropped, of epochs that are not decided. Of worker 0 alone."""
        self._outlets = {name: Outlet(name) for name in plan.outputs}
        # What is decided, which this worker's own inputs may be behind. Of worker 0 alone.
        self._positions: dict[str, int | None] = dict.fromkeys(plan.inputs, first)
        self._is_finishing = False
        self._deciding = threading.Lock()
        self._end = NEVER if checkpoint is None else first
        self._is_stopping = False
        self._has_ended = False
        self._orders = worker.environment.channel(self._hear)
        self._sources, self._probes, self._leading = self._built()
        self._status = Status(
            dict.fromkeys(plan.inputs, first),
            dict.fromkeys(plan.outputs, first),
            dict.fromkeys(plan.outputs, -1),
        )
        self._cutter: Cutter | None = None
        self._sealer: Sealer | None = None
        if keeping is not None:
            self._begin_again(keeping)

    def _built(self) -> tuple[dict[str, Source], dict[str, Probe], dict[str, list[str]]]:
        """The inputs, a probe for each output, and the inputs that lead to each output."""
        sources, probes, streams = {}, {}, []
        with self._worker.dataflow("service", durable=self._durable()) as scope:
            for name in self.plan.inputs:
                made: tuple[InputHandle, Stream[Any]] = scope.new_input(name)
                sources[name] = Source(made[0])
                streams.append(made[1])
            results = self.plan.results(scope, streams)
            for name, stream in results.items():
                keep = partial(self._keep, self._outlets[name], self.plan.outputs[name])
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
        return None if self._keeping is None else self._keeping.durable

    def _begin_again(self, keeping: Keeping) -> None:
        """Take up what is kept."""
        if self.index == 0:
            keeping.check_columns(self.plan.inputs, self.plan.outputs)
        for name, outlet in self._outlets.items():
            outlet.forget(keeping.forgotten(name))
            for number, kept in keeping.outputs(name):
                if number % self._worker.peers == self.index:
                    for epoch, batch in keeping.load(kept):
                        outlet.add(epoch, batch)
        if self.index == 0:
            self._replay(keeping)
        if keeping.every is not None:
            self._cutter = Cutter(self._worker, keeping, self._held, self._tell_chief)
            if self.index == 0:
                self._sealer = Sealer(
                    self._worker.peers,
                    keeping,
                    self.plan,
                    lambda: {name: outlet.forgotten for name, outlet in self._outlets.items()},
                    self._may_seal,
                    self._ask_for_next,
                    self.fail,
                )
                self._ask_for_next(keeping.epoch)

    def _replay(self, keeping: Keeping) -> None:
        """Have all workers let in what the checkpoint has, dealt to as many as there are now."""
        checkpoint, gone = keeping.checkpoint, keeping.unknown(self.plan.inputs)
        if gone:
            raise CheckpointStructureError(
                f"{checkpoint} has records of input {', '.join(map(repr, gone))}, which this "
                f"service has not: its inputs are {', '.join(map(repr, self.plan.inputs))}; serve "
                "the dataflow that they were sent to, or with another folder"
            )
        for input in self.plan.inputs:
            for epoch, kept in checkpoint.committed(input, keeping.epoch):
                dealt = tuple(
                    Staged(input, epoch, one.name, n % self._worker.peers, one.rows, one.to_json())
                    for n, one in enumerate(kept)
                )
                self._positions[input] = epoch + 1
                self._order(Release(input, epoch, dealt, epoch + 1))
            # Who reads was told that nothing more comes before that, and may have acted on it.
            now, reached = self._positions[input], checkpoint.reached(input)
            assert now is not None  # none is closed yet
            if now < reached:
                self._positions[input] = reached
                self._order(Release(input, now, (), reached))

    # The worker's thread.

    def run(self) -> None:
        """Feed and step until the order to stop; whoever waits is woken when it ends."""
        try:
            while not self._is_stopping:
                for source in self._sources.values():
                    source.feed()
                self._publish()
                if self._cutter is not None:
                    self._cutter.go_on()
                self._worker.step_or_park()
        finally:
            self.end()

    def end(self) -> None:
        """Have whoever waits here, or comes, hear that the worker has ended."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        for part in (self._cutter, self._sealer):
            if part is not None:
                part.close()

    def _publish(self) -> None:
        """Show the others how far we are, if it has changed."""
        status = Status(
            {name: source.time for name, source in self._sources.items()},
            {name: self._frontier(probe) for name, probe in self._probes.items()},
            {name: outlet.forgotten for name, outlet in self._outlets.items()},
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

    def _keep(self, outlet: Outlet, schema: pa.Schema, epoch: int, batch: Any) -> None:
        fitting = conform(batch, schema, f"the records of output {outlet.name!r}", "the service")
        with self._changed:
            outlet.add(epoch, fitting)

    def _hear(self) -> None:
        while (message := self._orders.pull()) is not None:
            self._obey(message)

    def _obey(self, message: Message) -> None:
        (order,) = message.batch
        if isinstance(order, Release):
            with self._changed:
                batches = self._staging.take(order.winners)
                self._staging.drop_upto(order.input, order.epoch)
            if self._checkpoint is not None:
                over = order.epoch + bool(order.winners) if order.until is None else order.until
                self._end = max(self._end, over)
            self._sources[order.input].release(order.epoch, batches, order.until)
        elif isinstance(order, Cut):
            assert self._cutter is not None  # all workers have the same
            self._cutter.ask(order.epoch)
        elif isinstance(order, Asked | Written):
            assert self._sealer is not None  # we are worker 0
            self._sealer.hear(order)
            with self._changed:
                self._changed.notify_all()
        elif isinstance(order, Drop):
            with self._changed:
                for staged in order.losers:
                    self._staging.drop(staged)
        elif isinstance(order, Forget):
            with self._changed:
                self._outlets[order.output].forget(order.upto)
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

    def _tell_chief(self, said: Asked | Written) -> None:
        self._orders.send(0, "order", [said])

    def _held(self, epoch: int) -> dict[str, Any] | None:
        """What the outputs have up to `epoch`; None if that is not complete at all of them."""
        with self._changed:
            if not self._status.is_complete(None, epoch):
                return None
            return {name: outlet.read(None, epoch) for name, outlet in self._outlets.items()}

    def _ask_for_next(self, last: int) -> None:
        """Plan the snapshot after that of epoch `last`, of an epoch that nobody is past."""
        assert self._keeping is not None
        assert self._keeping.every is not None
        assert self._sealer is not None
        with self._deciding:
            positions = self._open_positions()
            if positions:
                self._sealer.aim_at(max(*positions, last + 1) - 1 + self._keeping.every)
                with contextlib.suppress(StoppedError):  # there is none to come, then
                    self._ask_in_time(max(positions))
        with self._changed:
            self._changed.notify_all()

    def _ask_in_time(self, position: int | None) -> None:
        """Ask all for the planned snapshot if an input is to go to its epoch, or to close."""
        sealer = self._sealer
        if sealer is not None and sealer.is_due(position):
            assert sealer.epoch is not None
            sealer.is_asked = True
            self._order(Cut(sealer.epoch))

    def _open_positions(self) -> list[int]:
        return [time for time in self._positions.values() if time is not None]

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
        sealer = self._sealing()
        if soon:
            with self._deciding:
                positions = self._open_positions()
                if positions and sealer.epoch is not None and not sealer.is_asked:
                    sealer.aim_at(max(positions))
                    self._ask_in_time(max(positions))
        return {"sealed": sealer.last, "asked": sealer.epoch}

    def await_snapshot(self, epoch: int, timeout_s: float) -> bool:
        """Wait until a snapshot of `epoch`, or of a later one, is sealed; whether it is."""
        sealer = self._sealing()
        return self._wait(lambda: sealer.last >= epoch, timeout_s)

    def _sealing(self) -> Sealer:
        self._check_chief()
        self._check_alive()
        if self._sealer is None:
            raise ServiceError(
                "this service makes no snapshots: serve with checkpoint= and snapshot_every="
            )
        return self._sealer

    # Other threads, at any worker.

    def status(self) -> Status:
        """How far the service is, as this worker knows it."""
        self._check_alive()
        return self._status

    def stage(
        self, input: str, epoch: int, batches: Iterable[Any], attempt: str | None = None
    ) -> Staged:
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
            None for all that is not forgotten.
        upto : int or None
            None for the last that is complete now.
        timeout_s : float
            How long to wait until they are complete here.

        Raises
        ------
        EpochError
            If they are not, or are forgotten.
        """
        self._known(self.plan.outputs, output, "output")
        if upto is not None and not self.wait(output, upto, timeout_s):
            raise EpochError(self._why_incomplete(output, upto))
        with self._changed:
            frontier = self._status.outputs[output]
            if upto is None:
                upto = NEVER if frontier is None else frontier - 1
            return self._outlets[output].read(after, upto)

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

    def commit(self, input: str, epoch: int, winners: Sequence[Staged], until: int | None) -> bool:
        """Let the winners into the dataflow at `epoch`, and the input go on to `until`.

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
        self._check_chief()
        self._known(self.plan.inputs, input, "input")
        if until is not None and until <= epoch:
            raise UsageError(
                f"input {input!r} cannot go on from epoch {epoch} to {until}: that is not later"
            )
        if until is not None and until > NEVER:
            raise UsageError(f"input {input!r} cannot go on to {until}: epochs end at {NEVER}")
        self._check_receipts(input, epoch, winners)
        with self._deciding:
            position = self._positions[input]
            if position is None or epoch < position:
                return False
            with self._changed:
                self._check_alive()
                self._check_usable(winners)
                self._staging.take(winners)  # raises for what is not here, before the decision
            self._ask_in_time(until)
            self._let_past_snapshot(until)
            winners = list({(one.worker, one.attempt): one for one in winners}.values())
            if winners or until is not None:
                # A close with nothing is no epoch: who begins again may go on with it.
                self._write(input, epoch, winners, until)
            self._positions[input] = until
            self._aborted = {key for key in self._aborted if key[0] != input or key[1] > epoch}
            self._order(Release(input, epoch, tuple(winners), until))
        return True

    def _check_receipts(self, input: str, epoch: int, winners: Sequence[Staged]) -> None:
        """Raise for what was staged for something else."""
        for staged in winners:
            if (staged.input, staged.epoch) != (input, epoch):
                raise UsageError(
                    f"a commit of epoch {epoch} of input {input!r} names attempt "
                    f"{staged.attempt!r}, which was staged for epoch {staged.epoch} of "
                    f"{staged.input!r}"
                )

    def _check_usable(self, winners: Sequence[Staged]) -> None:
        for staged in winners:
            self._check_genuine(staged)
            if _key(staged) in self._aborted:
                raise ServiceError(
                    f"attempt {staged.attempt!r} for epoch {staged.epoch} of input "
                    f"{staged.input!r} was aborted: stage it again"
                )

    def _check_genuine(self, staged: Staged) -> None:
        if not staged.is_genuine(self._secret):
            raise UsageError(
                f"the receipt of attempt {staged.attempt!r} is none of this service, or was "
                "changed: hand back what staging gave"
            )

    def _let_past_snapshot(self, until: int | None) -> None:
        """Let no input past the epoch of a snapshot before all workers are asked for that."""
        sealer = self._sealer
        if sealer is not None and not self._wait(lambda: sealer.lets_past(until), ASKED_S):
            raise ServiceError(
                f"not all workers have begun the snapshot of epoch {sealer.epoch} in "
                f"{ASKED_S:g} s, and no input can go past it before; nothing is changed: try again"
            )

    def _write(self, input: str, epoch: int, winners: Sequence[Staged], until: int | None) -> None:
        """Make the decision outlast us, where there is a checkpoint."""
        if self._checkpoint is None:
            return
        kept = [Kept.from_json(staged.kept) for staged in winners if staged.kept is not None]
        if not self._checkpoint.commit(input, epoch, kept, until):
            raise ServiceError(
                f"epoch {epoch} of input {input!r} is in {self._checkpoint} already, and not by "
                "this service: another one uses the folder; only one may, so end this one, or "
                "that, and serve again"
            )

    def abort(self, losers: Sequence[Staged]) -> None:
        """Drop what is staged, except what a commit has named; again is no error."""
        self._check_chief()
        for staged in losers:
            self._check_genuine(staged)
        with self._deciding:
            undecided = [staged for staged in losers if not self._is_decided(staged)]
            for staged in undecided:
                if self._checkpoint is not None and staged.kept is not None:
                    kept = Kept.from_json(staged.kept)
                    self._checkpoint.abort(staged.input, staged.epoch, kept)
            self._aborted.update(map(_key, undecided))
            self._order(Drop(tuple(undecided)))

    def _is_decided(self, staged: Staged) -> bool:
        position = self._positions.get(staged.input)
        return position is None or staged.epoch < position

    def position(self, input: str) -> int | None:
        """The first epoch of an input that may still be committed; None if it is closed."""
        self._check_chief()
        self._known(self.plan.inputs, input, "input")
        self._check_alive()
        with self._deciding:
            return self._positions[input]

    def settle(self, epoch: int, timeout_s: float) -> bool:
        """Wait until `epoch` is as complete as inputs that are behind it allow; whether it is.

        An input that is behind holds back the outputs that it leads to, and no others.
        """
        self._check_chief()
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

    def forget(self, output: str, upto: int) -> None:
        """Have all workers let go of an output's epochs up to this one, which is complete."""
        self._check_chief()
        self._known(self.plan.outputs, output, "output")
        if not self._status.is_complete(output, upto):
            raise EpochError(self._why_incomplete(output, upto))
        with self._changed:
            self._outlets[output].forget(upto)  # at once, so that who reads here next is told
        self._order(Forget(output, upto))

    def finish(self) -> None:
        """Seal no more snapshots: what closes from here on, goes on in the service's next life."""
        self._check_chief()
        with self._deciding:
            self._is_finishing = True
            if self._sealer is not None:
                self._sealer.give_up()

    def stop(self) -> None:
        """Have all workers leave, as it is: `finish`, close the inputs before, and wait."""
        self._check_chief()
        self._order(Stop())

    def fail(self, error: BaseException) -> None:
        """Have this worker, and with it all, fail of `error`."""
        self._worker.environment.fail(error)
        self._worker.communicator.unpark()

    def _check_chief(self) -> None:
        if self.index != 0:
            raise ServiceError(
                f"worker {self.index} only stages and reads: ask worker 0, which decides"
            )


def _key(staged: Staged) -> tuple[str, int, int, str]:
    return staged.input, staged.epoch, staged.worker, staged.attempt


def _parts(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    """`batch` in pieces that are good to send, without a copy; none if it is empty."""
    for start in range(0, batch.num_rows, PREFERRED_RECORDS):
        yield batch.slice(start, PREFERRED_RECORDS)
