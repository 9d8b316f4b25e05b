"""`Service`: what a program holds of a dataflow that stays.

It sends to inputs, advances them, and reads complete epochs of outputs, by requests to the
workers. A `Supervisor` starts the workers, and starts them again.

Rules
-----
1. What is sent is staged, and enters the dataflow when its epoch is over: `advance_to`
   commits it. So an epoch is in the dataflow whole, once, or not at all.
2. What waits, waits for the end of the service too: no worker, no wait.
3. A request whose worker is lost is sent again to the workers that are started then. Requests
   may be repeated: a commit counts once, and staging again is another attempt.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.collections.schema import Schema
from pointstamp.errors import EpochError, ServiceError, StoppedError, UsageError
from pointstamp.service import protocol
from pointstamp.service.collection_handles import (
    CollectionFeed,
    CollectionFeeds,
    CollectionOutput,
    NewFeed,
    NewUpserts,
)
from pointstamp.service.conversions import check_staged, distributed, epoch_of, to_batches
from pointstamp.service.in_notebook import shown_in_cell
from pointstamp.service.output_handle import TIMEOUT_S, OutputHandle
from pointstamp.service.protocol import NEVER, TICK_S, StagingHandle, Status, Verb, WorkerHandle
from pointstamp.service.service_metrics import ServiceMetrics
from pointstamp.service.service_probe import ServiceProbe
from pointstamp.service.spec import RESULT, ServiceSpec, known
from pointstamp.service.staging_room import StagingRoom
from pointstamp.service.supervisor import END_S, Reached, Restarting, Supervisor, abandoned
from pointstamp.service.upsert_feed import UpsertFeed

Answer = TypeVar("Answer")

Stager = Callable[[str, int, Any], list[StagingHandle] | None]
"""Stages data of a kind that the service does not know; None if it does not know it either."""

LOGGER = logging.getLogger("pointstamp.service")

NewOutput = Callable[["Service", str, Schema], CollectionOutput]
"""Makes what a program holds of an output that is a collection."""


class Service(contextlib.AbstractContextManager["Service"]):
    """A long-running dataflow: clients send to its inputs and read its outputs.

    `ps.serve` and `pointstamp.spark.serve` make one. As a context manager it stops at
    the end of the block, and aborts after an exception.

    Any thread may use it; sending to one input from several threads needs an order of theirs.
    When a worker has failed, and is not started again, every method raises the first cause, as
    a `WorkerError`; when the service has stopped, a `StoppedError`, but for what outputs and
    probes answer then: everything is complete.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        supervisor: Supervisor,
        *,
        name: str = "service",
        token: str | None = None,
        checkpoint: Checkpoint | None = None,
        stager: Stager | None = None,
        before_end: Callable[[], object] = lambda: None,
        new_feed: NewFeed = CollectionFeed,
        new_upserts: NewUpserts = UpsertFeed,
        new_output: NewOutput = CollectionOutput,
        page: Any = None,
        metrics: ServiceMetrics | None = None,
    ) -> None:
        self.spec = spec
        self.name = name
        self.token = token
        """What clients present to the Flight servers of the workers; None if there are none."""
        self._supervisor = supervisor
        self._page = page
        """The server of its live page, if it has one."""
        self._checkpoint = checkpoint
        self._stager = stager
        self._before_end = before_end
        """Ends what feeds and reads the service, before it stops or is aborted."""
        self._metrics = metrics or ServiceMetrics(None, 0)
        self._feeds = CollectionFeeds(self, spec, new_feed, new_upserts)
        self._inputs = {
            name: ServiceInput(self, name) for name in spec.inputs if name not in spec.collections
        }
        self._outputs: dict[str, ServiceOutput | CollectionOutput] = {
            name: new_output(self, name, spec.maintained[name])
            if name in spec.maintained
            else ServiceOutput(self, name)
            for name in spec.outputs
        }
        self._is_over = False
        self._last_status: Status | None = None
        """Once it was stopped, and all that it was sent is complete."""
        self._stopping = threading.Lock()
        weakref.finalize(self, abandoned, supervisor, page, self._metrics).atexit = False
        self._feeds.ticker.start()

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self._supervisor.workers)

    @property
    def endpoints(self) -> list[str]:
        """The addresses of the workers' Flight servers, by index; see `docs/service.md`."""
        addresses = [worker.address for worker in self._supervisor.workers]
        return [address for address in addresses if address is not None]

    @property
    def metrics_url(self) -> str | None:
        """The URL of `/metrics`, `/health` and `/ready`; None if they are not served."""
        return self._metrics.url

    @property
    def dashboard_url(self) -> str | None:
        """The URL of the live page, with its token; None if it is not served."""
        if self._page is None or self._page.is_closed:
            return None
        url: str = self._page.url
        return url

    def input(self, name: str) -> Any:
        """The input of this name: a `ServiceInput`, or the feed of a collection or a clock."""
        return known({**self._inputs, **self._feeds.by_name}, name, "input")

    def output(self, name: str = RESULT) -> Any:
        """The output of this name: a `ServiceOutput`, or a `CollectionOutput` of a collection.

        A collection that is the only one is called "result".
        """
        return known(self._outputs, name, "output")

    def advance(
        self, *, max_staged_bytes: int | None = None, timeout_s: float | None = None
    ) -> int:
        """Commit all changes since the last call as one epoch; returns its number.

        All collections go on together, those of which nothing was changed, too. Returns when it
        is decided; `output(name).changes(epoch)` waits until it is worked off.

        Parameters
        ----------
        max_staged_bytes : int, optional
            Wait until this epoch and all else that was sent to the collections, by any client,
            and has not entered the dataflow, is no more than so many bytes.
        timeout_s : float, optional
            How long to wait for that; 0 not at all, None as long as it takes.

        Raises
        ------
        UsageError
            If the service has no collections.
        StoppedError
            If they are closed.
        StagingError
            If there is not enough room in time; at once, if the epoch itself is larger. What was
            inserted stays for the next call.
        ServiceError, CheckpointError
            If it cannot be decided now. What was sent is kept, and goes in when this succeeds.
        """
        return self._feeds.advance(max_staged_bytes, timeout_s)

    @property
    def probe(self) -> ServiceProbe:
        """Whether epochs are complete at all outputs."""
        return ServiceProbe(self, None)

    def status(self) -> Status:
        """The current epochs of inputs, and the first incomplete epochs of outputs.

        Of a service that was stopped: all inputs are closed, and all outputs complete.
        """
        try:
            status = self.ask(protocol.GetStatus())
        except StoppedError:
            if self._last_status is None:
                raise
            last, later = self._last_status, self.reached.discarded
            gone = {name: max(upto, later.get(name, -1)) for name, upto in last.discarded.items()}
            return replace(last, discarded=gone)
        self.reached.note(status)
        return status

    def snapshot(self, *, soon: bool = False) -> dict[str, int | None]:
        """The epochs of the last committed snapshot, and of the next one.

        As `{"committed": 19, "asked": 29}`; -1 if there is none yet, None while one is committed.

        Parameters
        ----------
        soon : bool
            Have the next be of the epoch that the inputs are at, rather than the planned
            one; it is made when they all have gone on. One that the workers are at already
            stays the next.

        Raises
        ------
        ServiceError
            If the service makes none.
        """
        return self.ask(protocol.RequestSnapshot(soon))

    def await_snapshot(self, epoch: int, timeout_s: float | None = TIMEOUT_S) -> bool:
        """Wait for a snapshot of `epoch` or a later one; returns whether there is one."""
        return self.wait(protocol.AwaitSnapshot(epoch_of(epoch)), timeout_s)

    def stop(self) -> None:
        """Commit what was sent, close the inputs, and end the workers when everything is complete.

        What the outputs have and was not discarded is fetched before, so that it can
        be read afterwards. Stopping twice is stopping once. If another program has closed an input
        to which something was sent that is in no epoch, it raises `StoppedError` in the end.
        """
        with self._stopping:  # a second caller waits until it is stopped
            if not self._is_over:
                self._supervisor.check_process()
                self._stop(self._supervisor)

    def _stop(self, supervisor: Supervisor) -> None:
        try:
            self._before_end()
            supervisor.reached.is_finishing = True
            self.ask(protocol.Finish())
            refused: list[StoppedError] = []
            for close in (*(input.close for input in self._inputs.values()), self._feeds.close):
                try:
                    close()
                except StoppedError as error:  # by another program; what is in is still answered
                    refused.append(error)
            self.wait(protocol.AwaitEpoch(NEVER), None)
            for output in self._outputs.values():
                output.fetch()
            self._last_status = self.status()
            supervisor.end()
            self.ask(protocol.Stop())
        except BaseException:
            self.abort()
            raise
        self._is_over = True
        self._feeds.end()
        self._close_page()
        LOGGER.info("service %r has stopped: all that it was sent is complete", self.name)
        try:
            have_ended = supervisor.join(END_S)
        finally:
            self._metrics.close()  # with what the workers have counted until their ends
        if not have_ended:
            supervisor.abort()
            raise ServiceError(f"the workers did not end in {END_S:g} s, and were aborted")
        if supervisor.termination.error is not None:
            supervisor.termination.check()
        if refused:
            raise refused[0]

    def abort(self) -> None:
        """End the workers at once; incomplete epochs are lost. Can be repeated.

        In a process that was forked off that of the service it does nothing.
        """
        if not self._is_over and self._supervisor.is_here:
            self._is_over = True
            self._close_page()
            LOGGER.info("service %r is aborted: what is not complete is lost", self.name)
            self._before_end()
            self._supervisor.abort()
            self._supervisor.join(END_S)
            self._feeds.end()
            self._metrics.close()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows: the live page, if it is served, in a frame."""
        return shown_in_cell(repr(self), self.dashboard_url)

    def __repr__(self) -> str:
        state = "stopped" if self._is_over else f"{self.workers} workers"
        return f"Service({self.name!r}, {state}, outputs={list(self._outputs)})"

    def _close_page(self) -> None:
        if self._page is not None:
            self._page.close()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.abort()

    @property
    def is_over(self) -> bool:
        """Whether the service was stopped or aborted."""
        return self._is_over

    def probe_of(self, output: str) -> ServiceProbe:
        """Whether epochs are complete at one output."""
        return ServiceProbe(self, output)

    # For inputs, outputs and probes.

    @property
    def is_complete(self) -> bool:
        """Whether it was stopped, and all that it was sent is complete."""
        return self._last_status is not None

    def position_of(self, input: str) -> int | None:
        """The epoch that an input is at; None when closed, as all of a stopped service are."""
        try:
            return self.ask(protocol.GetPosition(input))
        except StoppedError:
            if not self.is_complete:
                raise
            return None

    @property
    def reached(self) -> Reached:
        """What is so again when the workers have started again."""
        return self._supervisor.reached

    def stage_at(
        self, worker: int, input: str, epoch: int, batches: Iterable[pa.RecordBatch]
    ) -> StagingHandle:
        """Stage batches at a worker; those of a new one are iterated over again."""
        request = protocol.StageBatches(input, epoch, uuid.uuid4().hex)
        return self._supervisor.ask(lambda workers: workers[worker].stage(request, batches))

    def note_closed(self, inputs: Iterable[str]) -> None:
        """These inputs are closed."""
        self._supervisor.reached.closed.update(inputs)

    def last_complete(self, output: str) -> int:
        """The last complete epoch of an output."""
        return self.status().last_complete(output)

    def discarded_of(self, output: str) -> int:
        """The last discarded epoch of an output."""
        known_here = self._supervisor.reached.discarded.get(output, -1)
        return max(known_here, self.status().discarded[output])

    def read_all(self, request: protocol.ReadEpochs) -> list[tuple[int, pa.RecordBatch]]:
        """The batches of all workers, in the order of epochs."""
        parts = self._supervisor.ask(lambda ws: [worker.read(request) for worker in ws])
        return sorted((pair for part in parts for pair in part), key=lambda pair: pair[0])

    def read_of(
        self, output: str, upto: int | None, after: int | None, timeout_s: float | None
    ) -> list[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of complete epochs of an output."""
        if upto is None:
            # One worker says which is the last: the others may know less, or more.
            upto = self.last_complete(output)
        else:
            self.probe_of(output).wait(upto, timeout_s)
        pairs = self.read_all(protocol.ReadEpochs(output, after, upto, TIMEOUT_S))
        if after is None:
            # Another reader may have had the workers discard some, which not all have done yet.
            gone = self.discarded_of(output)
            pairs = [pair for pair in pairs if pair[0] > gone]
        return pairs

    # Asking workers.

    def ask(self, request: Verb[Answer], worker: int = 0, until: float | None = None) -> Answer:
        """A worker's answer to a request; raises the cause if a worker is lost for good."""
        return self._supervisor.ask(lambda workers: workers[worker].ask(request), until)

    def wait(
        self, request: protocol.AwaitEpoch | protocol.AwaitSnapshot, timeout_s: float | None
    ) -> bool:
        """Whether what is waited for is so in time; None is as long as it takes."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = TICK_S if until is None else max(0.0, until - time.monotonic())
            asked = replace(request, wait_s=min(TICK_S, left_s))
            try:
                if self.ask(asked, until=until):
                    return True
            except Restarting:
                return False
            if left_s <= 0:
                return False


class ServiceInput:
    """An input of a service, as its driver holds it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._sent: list[StagingHandle] = []
        self._sent_bytes = 0
        """Of those, what was counted."""
        self._lock = threading.Lock()

    @property
    def time(self) -> int | None:
        """The epoch at which records are sent now; None when it is closed."""
        return self._service.position_of(self.name)

    def send(
        self,
        data: Any,
        *,
        max_staged_bytes: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Send records at the current epoch; `advance_to` admits them.

        Parameters
        ----------
        data : pyarrow.Table, pyarrow.RecordBatch, data frame, list of dict
            With the columns of the input's schema; on Spark a DataFrame as well. Distributed to
            the workers in large pieces, so exchange by key inside.
        max_staged_bytes : int, optional
            Wait until this and all else that was sent to the input, by any client, and has
            not entered the dataflow, is no more than so many bytes. Of a Spark DataFrame
            it is not known before how many it has: what else waits must not be more.
        timeout_s : float, optional
            How long to wait for that; 0 not at all, None as long as it takes.

        Raises
        ------
        StoppedError
            If the input is closed.
        SchemaError
            If it does not fit the schema of the input.
        StagingError
            If there is not enough room in time; at once, where there will be none however long
            one waits, since this client has sent too much in this epoch. Nothing is sent.

        Notes
        -----
        The bytes are those that the columns have in Arrow.
        """
        n_bytes = 0
        if max_staged_bytes is not None:
            check_staged(max_staged_bytes)
            if not hasattr(data, "mapInArrow"):
                batches = to_batches(data, self.name, self._service.spec.inputs[self.name])
                n_bytes = sum(batch.nbytes for batch in batches)
                data = pa.Table.from_batches(batches) if batches else data
            # Without the lock: another thread may have to advance the input meanwhile.
            self._await_room(n_bytes, max_staged_bytes, timeout_s)
        with self._lock:
            self._sent += self.stage(self._now(), data)
            self._sent_bytes += n_bytes

    def advance_to(self, epoch: int) -> None:
        """Admit what was sent, and send at `epoch` from now on.

        Returns when that is decided; `probe.wait` waits until it is worked off.

        Raises
        ------
        UsageError
            If `epoch` is not after the current one.
        EpochError
            If another client has committed the current epoch: what was sent is not in it.
        ServiceError, CheckpointError
            If it cannot be decided now. What was sent is kept, and goes in when this succeeds.
        """
        until = epoch_of(epoch)
        with self._lock:
            # Where what was sent is staged is where the input is, or was before another commit.
            self._commit(self._sent[0].epoch if self._sent else self._now(), until)

    def close(self) -> None:
        """Admit what was sent, and promise to send no more. Again does nothing."""
        with self._lock:
            now = self._sent[0].epoch if self._sent else self.time
            if now is not None:
                self._commit(now, None)

    def _await_room(self, n_bytes: int, limit: int, timeout_s: float | None) -> None:
        """Wait until `n_bytes` more make no more than `limit`."""
        room = StagingRoom(self._service.ask, [self.name], f"input {self.name!r}")

        def check() -> None:
            if n_bytes + self._sent_bytes > limit:
                room.never(
                    n_bytes,
                    limit,
                    f"{self._sent_bytes} were sent here in this epoch, and wait for it to end: "
                    "call advance_to(), send less at a time, or allow more",
                )

        room.wait(n_bytes, limit, self._service.workers, timeout_s, check)

    def stage(self, epoch: int, data: Any) -> list[StagingHandle]:
        """Stage `data` for `commit`, distributed to the workers."""
        service, input = self._service, self.name
        handles = None if service._stager is None else service._stager(input, epoch, data)
        if handles is not None:
            return handles
        shares = distributed(to_batches(data, input, service.spec.inputs[input]), service.workers)

        return [
            service.stage_at(index, input, epoch, share)
            for index, share in enumerate(shares)
            if share
        ]

    def commit(self, epoch: int, handles: Sequence[StagingHandle], until: int | None) -> bool:
        """See `Coordinator.commit`; None for `until` closes the input.

        A commit whose answer is lost with its worker may have happened: then the log says so.
        """
        service = self._service
        request = protocol.Commit(self.name, epoch, tuple(handles), until, until is None)
        n_tries = 0

        def commit(workers: Sequence[WorkerHandle]) -> bool:
            nonlocal n_tries
            n_tries += 1
            return workers[0].ask(request)

        is_mine = service._supervisor.ask(commit)
        if not is_mine and n_tries > 1 and self._is_logged(request):
            is_mine = True
            if until is None and (position := self.time) is not None:
                # Which the log does not keep.
                service.ask(protocol.Commit(self.name, position, close=True))
        if until is None and (is_mine or self.time is None):
            service.note_closed([self.name])
        return is_mine

    def _is_logged(self, request: protocol.Commit) -> bool:
        """Whether the log has a commit of this epoch that names these attempts."""
        assert self._service._checkpoint is not None  # without one nothing is tried twice
        for found, attempts in self._service._checkpoint.committed(self.name, request.epoch - 1):
            names = {one.stored.name for one in request.attempts if one.stored is not None}
            return found == request.epoch and {attempt.name for attempt in attempts} == names
        return False

    def _now(self) -> int:
        now = self.time
        if now is None:
            why = ": the service has stopped" if self._service.is_complete else ""
            raise StoppedError(f"input {self.name!r} is closed and takes nothing more{why}")
        return now

    def _commit(self, now: int, until: int | None) -> None:
        if until is not None and until <= now:
            raise UsageError(
                f"input {self.name!r} is at epoch {now} and can only advance to a later one, not "
                f"to {until}"
            )
        sent, epoch = self._sent, self._sent[0].epoch if self._sent else now
        is_mine = all(one.epoch == epoch for one in sent) and self.commit(epoch, sent, until)
        self._sent = []  # not before: to try again after an error takes all of it
        self._sent_bytes = 0
        if is_mine:
            return
        if sent:
            lost = f"what was sent here, {sum(one.rows for one in sent)} records, is not in it"
            if self.time is None:
                raise StoppedError(f"input {self.name!r} is closed, by another client; {lost}")
            raise EpochError(
                f"epoch {epoch} of input {self.name!r} was committed by another client; {lost}"
            )
        # Another client was quicker: go on from where that has left it.
        now_there = self.time
        if now_there is not None and (until is None or now_there < until):
            self._commit(now_there, until)


class ServiceOutput(OutputHandle):
    """An output of a service: what it has of complete epochs."""

    @property
    def schema(self) -> pa.Schema:
        """Of its records."""
        return self._service.spec.outputs[self.name]

    def collect(
        self,
        upto: int | None = None,
        *,
        after: int | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> pa.Table:
        """The records of complete epochs, in the order of the epochs.

        Parameters
        ----------
        upto : int, optional
            The last epoch, which is waited for; the last that is complete, if not given.
        after : int, optional
            The epoch before the first; all that is not discarded, if not given.
        timeout_s : float, optional
            How long to wait; None as long as it takes.

        Raises
        ------
        EpochError
            If `upto` is not complete in time, or something of it is discarded.
        """
        batches = [batch for _, batch in self.read(upto, after=after, timeout_s=timeout_s)]
        return pa.Table.from_batches(batches, self.schema)

    def read(
        self,
        upto: int | None = None,
        *,
        after: int | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> list[tuple[int, pa.RecordBatch]]:
        """The same, as (epoch, batch)."""
        upto = None if upto is None else epoch_of(upto)
        return self._pairs(upto, None if after is None else epoch_of(after), timeout_s)
