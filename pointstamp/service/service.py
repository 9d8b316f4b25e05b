"""`Service`: what a program holds of a dataflow that stays.

It sends to inputs, advances them, and reads complete epochs of outputs, by way of the
workers' links. How the workers were started, and how they are made to end, is told to
it by who started them.

Rules
-----
1. What is sent is staged, and enters the dataflow when its epoch is over: `advance_to`
   commits it. So an epoch is in the dataflow whole, once, or not at all.
2. Whatever waits, waits for the service's termination too: no worker, no wait.
"""

from __future__ import annotations

import contextlib
import operator
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.errors import EpochError, SchemaError, ServiceError, StoppedError, UsageError
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.staging import StagingHandle
from pointstamp.service.status import NEVER, TICK_S, Status
from pointstamp.service.termination import Termination
from pointstamp.service.worker_handle import Link

Answer = TypeVar("Answer")

TIMEOUT_S = 60.0
"""How long to wait for an epoch to be complete where nothing else is said."""

END_S = 10.0
"""How long workers that were told to end may take."""


class WorkerPool(Protocol):
    """Whoever has started the workers."""

    termination: Termination
    token: str | None
    """What clients present at the endpoints; None if there are no endpoints."""

    def start(self) -> Sequence[Link]:
        """Start the workers; their links, by index, when all are ready."""

    def abort(self) -> None:
        """Make the workers end, whatever they do."""

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing of them is left; whether that is so."""

    def stage(
        self, service: Service, input: str, epoch: int, data: Any
    ) -> list[StagingHandle] | None:
        """Stage data of a kind that only it knows; None if it does not know it either."""


class Service:
    """A dataflow that stays: send to its inputs, read its outputs.

    `ps.serve` and `pointstamp.spark.serve` make one. As a context manager it stops at
    the end of the block, and aborts after an exception.

    Any thread may use it; who sends to one input from several threads sees to their order.
    """

    def __init__(
        self, plan: ServiceSpec, links: Sequence[Link], pool: WorkerPool, name: str = "service"
    ) -> None:
        self.plan = plan
        self.name = name
        self._links = list(links)
        self._pool = pool
        self._termination = pool.termination
        self._inputs = {name: ServiceInput(self, name) for name in plan.inputs}
        self._outputs = {name: ServiceOutput(self, name) for name in plan.outputs}
        self._is_over = False
        self._stopping = threading.Lock()

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._links)

    @property
    def token(self) -> str | None:
        """What clients present at the endpoints of the workers; None if there are no endpoints."""
        return self._pool.token

    @property
    def endpoints(self) -> list[str]:
        """The addresses of the workers' endpoints, by index; see `docs/service.md`."""
        return [link.address for link in self._links if link.address is not None]

    def input(self, name: str) -> ServiceInput:
        """The input of this name."""
        return _named(self._inputs, name, "input")

    def output(self, name: str) -> ServiceOutput:
        """The output of this name."""
        return _named(self._outputs, name, "output")

    @property
    def probe(self) -> ServiceProbe:
        """Tells whether epochs are complete at all outputs."""
        return ServiceProbe(self, None)

    def status(self) -> Status:
        """At which epochs the inputs are, and from which on the outputs are not complete."""
        return self.ask(lambda: self._links[0].status())

    def snapshot(self, *, soon: bool = False) -> dict[str, int | None]:
        """The epochs of the last snapshot that is there, and of the next.

        As `{"sealed": 19, "asked": 29}`; -1 if there is none yet, None while one is sealed.

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
        return self.ask(lambda: self._links[0].snapshot(soon))

    def await_snapshot(self, epoch: int, timeout_s: float | None = TIMEOUT_S) -> bool:
        """Wait until a snapshot of `epoch`, or of a later one, is there; whether it is."""
        upto = _epoch(epoch)
        return self._await(lambda seconds: self._links[0].await_snapshot(upto, seconds), timeout_s)

    def stop(self) -> None:
        """Commit what was sent, close the inputs, and end the workers when all is complete.

        What the outputs have and nobody has discarded is fetched before, so that they can
        be read afterwards. Stopping twice is stopping once.

        Raises
        ------
        WorkerError
            If a worker fails meanwhile, or has failed.
        """
        with self._stopping:  # who stops it as well waits until it is
            if not self._is_over:
                self._stop()

    def _stop(self) -> None:
        try:
            self.ask(self._links[0].finish)
            for input in self._inputs.values():
                input.close()
            self._await(lambda seconds: self._links[0].wait(None, NEVER, seconds), None)
            for output in self._outputs.values():
                output.fetch()
            self.ask(self._links[0].stop)
        except BaseException:
            self.abort()
            raise
        self._is_over = True
        if not self._pool.join(END_S):
            self._pool.abort()
            raise ServiceError(f"the workers did not end in {END_S:g} s, and were aborted")
        if self._termination.error is not None:
            self._termination.check()

    def abort(self) -> None:
        """End the workers as they are; what is not complete is lost. Again does nothing."""
        if not self._is_over:
            self._is_over = True
            self._termination.end(StoppedError("the service was aborted"))
            self._pool.abort()
            self._pool.join(END_S)

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.abort()

    # Asking workers.

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """What a link answers; if its worker is gone, the cause of that is raised."""
        self.check()
        try:
            return question()
        except StoppedError as refusal:
            cause = self._termination.explain(refusal)
            raise cause from cause.__cause__

    def check(self) -> None:
        """Raise if the service has ended, or was told to."""
        self._termination.check()
        if self._is_over:
            raise StoppedError("the service was stopped")

    def wait(self, output: str | None, epoch: int, timeout_s: float | None) -> bool:
        """See `ServiceProbe.wait`."""
        return self._await(lambda seconds: self._links[0].wait(output, epoch, seconds), timeout_s)

    def await_completion(self, epoch: int, timeout_s: float | None) -> bool:
        """Wait until `epoch` is as complete as inputs that are behind it allow."""
        return self._await(
            lambda seconds: self._links[0].await_completion(epoch, seconds), timeout_s
        )

    def _await(self, question: Callable[[float], bool], timeout_s: float | None) -> bool:
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = TICK_S if until is None else max(0.0, until - time.monotonic())
            if self.ask(partial(question, min(TICK_S, left_s))):
                return True
            if left_s <= 0:
                return False

    def stage(self, input: str, epoch: int, data: Any) -> list[StagingHandle]:
        """Stage `data`, dealt out to the workers."""
        staged = self._pool.stage(self, input, epoch, data)
        if staged is not None:
            return staged
        batches = _batches(data, input, self.plan.inputs[input])
        links = self._links
        shares = _dealt(batches, len(links))
        return [
            self.ask(partial(link.stage, input, epoch, share))
            for link, share in zip(links, shares, strict=True)
            if share
        ]

    def commit(
        self, input: str, epoch: int, attempts: Sequence[StagingHandle], until: int | None
    ) -> bool:
        """See `ServiceWorker.commit`."""
        return self.ask(lambda: self._links[0].commit(input, epoch, attempts, until))

    def position(self, input: str) -> int | None:
        """The first epoch of an input that may still be committed; None if it is closed."""
        return self.ask(lambda: self._links[0].position(input))

    def read(
        self, output: str, after: int | None, upto: int | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(epoch, batch) of a complete range, from all workers, ordered by epoch."""
        parts = [
            self.ask(partial(link.read, output, after, upto, TIMEOUT_S)) for link in self._links
        ]
        return iter(sorted((pair for part in parts for pair in part), key=lambda pair: pair[0]))

    def discard(self, output: str, upto: int) -> None:
        """See `ServiceWorker.discard`."""
        self.ask(lambda: self._links[0].discard(output, upto))


class ServiceInput:
    """An input of a service, as its driver holds it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._sent: list[StagingHandle] = []
        self._lock = threading.Lock()

    @property
    def time(self) -> int | None:
        """The epoch at which records are sent now; None when it is closed."""
        return self._service.position(self.name)

    def send(self, data: Any) -> None:
        """Send records at the current epoch; `advance_to` lets them in.

        Parameters
        ----------
        data : pyarrow.Table, pyarrow.RecordBatch, Arrays, list of dict
            With the columns of the input's schema; on Spark a DataFrame as well. Dealt to
            the workers in large pieces, so exchange by key inside.

        Raises
        ------
        StoppedError
            If the input is closed, or the service has stopped.
        SchemaError
            If it does not fit the schema of the input.
        WorkerError
            If a worker has failed: the first cause.
        """
        with self._lock:
            self._sent += self._service.stage(self.name, self._now(), data)

    def advance_to(self, epoch: int) -> None:
        """Let in what was sent, and send at `epoch` from now on.

        Returns when that is decided; `probe.wait` waits until it is worked off.

        Raises
        ------
        UsageError
            If `epoch` is not after the current one.
        EpochError
            If somebody else has committed the current epoch: what was sent is not in it.
        ServiceError, CheckpointError
            If it cannot be decided now. What was sent is kept, and goes in when this succeeds.
        """
        until = _epoch(epoch)
        with self._lock:
            # Where what was sent is staged is where the input is, or was before somebody else.
            self._commit(self._sent[0].epoch if self._sent else self._now(), until)

    def close(self) -> None:
        """Let in what was sent, and promise to send no more. Again does nothing."""
        with self._lock:
            now = self._service.position(self.name)
            if now is not None:
                self._commit(now, None)

    def _now(self) -> int:
        now = self._service.position(self.name)
        if now is None:
            raise StoppedError(f"input {self.name!r} is closed and takes nothing more")
        return now

    def _commit(self, now: int, until: int | None) -> None:
        if until is not None and until <= now:
            raise UsageError(
                f"input {self.name!r} is at epoch {now} and can only advance to a later one, not "
                f"to {until}"
            )
        sent, epoch = self._sent, self._sent[0].epoch if self._sent else now
        is_mine = self._service.commit(self.name, epoch, sent, until)
        self._sent = []  # not before: who tries again after an error has it all
        if is_mine:
            return
        if sent:
            self._now()  # raises if it was closed meanwhile
            raise EpochError(
                f"epoch {epoch} of input {self.name!r} was committed by somebody else meanwhile; "
                f"what was sent here, {sum(s.rows for s in sent)} records, is not in it"
            )
        # Somebody else was quicker: go on from where that has left it.
        now_there = self._service.position(self.name)
        if now_there is not None and (until is None or now_there < until):
            self._commit(now_there, until)


class ServiceOutput:
    """An output of a service: what it has of complete epochs."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._fetched: list[tuple[int, pa.RecordBatch]] | None = None
        self._discarded = -1

    @property
    def schema(self) -> pa.Schema:
        """Of its records."""
        return self._service.plan.outputs[self.name]

    @property
    def probe(self) -> ServiceProbe:
        """Tells whether epochs are complete here."""
        return ServiceProbe(self._service, self.name)

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
        WorkerError
            If a worker has failed: the first cause.
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
        upto = None if upto is None else _epoch(upto)
        after = None if after is None else _epoch(after)
        if self._fetched is None:
            try:
                return self._asked(upto, after, timeout_s)
            except StoppedError:
                # Another thread may have stopped the service meanwhile, and fetched it all.
                if self._fetched is None:
                    raise
        first = -1 if after is None else after
        return [
            (epoch, batch)
            for epoch, batch in self._fetched
            if first < epoch and (upto is None or epoch <= upto)
        ]

    def _asked(
        self, upto: int | None, after: int | None, timeout_s: float | None
    ) -> list[tuple[int, pa.RecordBatch]]:
        """What the workers answer."""
        if upto is not None and not self._service.wait(self.name, upto, timeout_s):
            raise EpochError(
                f"epoch {upto} of output {self.name!r} is not complete after {timeout_s:g} s: "
                f"{_told(self._service.status())}"
            )
        if upto is None:
            # One worker says which is the last: the others may know less, or more.
            frontier = self._service.status().outputs[self.name]
            upto = NEVER if frontier is None else frontier - 1
        pairs = list(self._service.read(self.name, after, upto))
        if after is None:
            # Who else reads may have had the workers discard some, which not all have done yet.
            gone = max(self._discarded, self._service.status().discarded[self.name])
            pairs = [pair for pair in pairs if pair[0] > gone]
        return pairs

    def discard(self, upto: int) -> None:
        """Have the workers let go of the epochs up to this one, which is complete."""
        upto = _epoch(upto)
        if self._fetched is not None:
            self._fetched = [pair for pair in self._fetched if pair[0] > upto]
        else:
            self._service.discard(self.name, upto)
            self._discarded = max(upto, self._discarded)

    def fetch(self) -> None:
        """Take over what the workers have, which are about to end."""
        self._fetched = self.read()


class ServiceProbe:
    """Tells whether epochs are complete, at one output or at all of them."""

    def __init__(self, service: Service, output: str | None) -> None:
        self._service = service
        self._output = output

    def less_than(self, epoch: int) -> bool:
        """Whether an epoch before `epoch` is not complete."""
        return self.less_equal(_epoch(epoch) - 1)

    def less_equal(self, epoch: int) -> bool:
        """Whether `epoch`, or one before it, is not complete."""
        return not self._service.status().is_complete(self._output, _epoch(epoch))

    @property
    def done(self) -> bool:
        """Whether nothing more comes."""
        return not self.less_equal(NEVER)

    def wait(self, epoch: int, timeout_s: float | None = TIMEOUT_S) -> None:
        """Wait until `epoch` is complete.

        Raises
        ------
        EpochError
            If it is not in time; None is as long as it takes.
        WorkerError
            If a worker has failed: the first cause.
        """
        if not self._service.wait(self._output, _epoch(epoch), timeout_s):
            where = "" if self._output is None else f" of output {self._output!r}"
            raise EpochError(
                f"epoch {epoch}{where} is not complete after {timeout_s:g} s: "
                f"{_told(self._service.status())}"
            )


def _told(status: Status) -> str:
    inputs = (
        f"input {name!r} is {'closed' if time is None else f'at epoch {time}'}"
        for name, time in status.inputs.items()
    )
    outputs = (
        f"output {name!r} is complete {'for ever' if time is None else f'before epoch {time}'}"
        for name, time in status.outputs.items()
    )
    return ", ".join([*inputs, *outputs])


Named = TypeVar("Named")


def _named(named: dict[str, Named], name: str, what: str) -> Named:
    if name not in named:
        raise UsageError(
            f"the service has no {what} {name!r}; it has {', '.join(map(repr, named)) or 'none'}"
        )
    return named[name]


def _epoch(given: Any) -> int:
    """`given` as an epoch, which any kind of whole number is, and True is not.

    >>> import numpy as np
    >>> _epoch(np.int32(7))
    7
    """
    if not isinstance(given, bool):
        with contextlib.suppress(TypeError):
            return operator.index(given)
    raise UsageError(f"an epoch is a whole number, and not {given!r} ({type(given).__name__})")


def _batches(data: Any, input: str, schema: pa.Schema) -> list[Any]:
    """Tables, batches and records as a list of batches."""
    if isinstance(data, pa.Table):
        return list(data.to_batches())
    if isinstance(data, Arrays):
        return [to_arrow(data)]
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, list) and all(isinstance(record, dict) for record in data):
        return [_of_records(data, input, schema)] if data else []
    raise UsageError(
        f"a service is sent a pyarrow.Table, a RecordBatch, Arrays or a list of dicts, and not "
        f"{type(data).__name__}"
    )


def _of_records(records: list[dict[str, Any]], input: str, schema: pa.Schema) -> pa.RecordBatch:
    """Records as a batch, of the types that their values have where those are of one type."""
    columns = set(schema.names)
    for number, record in enumerate(records):
        if record.keys() != columns:
            raise SchemaError(
                f"record {number} of what is sent to {input!r} has columns "
                f"{', '.join(map(str, record)) or '(none)'}, and that input has "
                f"{', '.join(schema.names)}: give each record these, None for no value"
            )
    # What Arrow makes of the values is cast later, if nothing changes by it. What it can make
    # nothing of, such as entries of a map, may be clear by the schema.
    with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.RecordBatch.from_pylist(records)
    try:
        return pa.RecordBatch.from_pylist(records, schema=schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as cause:
        raise SchemaError(
            f"the records that are sent to {input!r} do not fit its schema: {cause}; expected:\n"
            f"{schema}"
        ) from cause


SHARE_RECORDS = 4096
"""Fewer than this go to one worker: dealing them out costs more than it gives."""


def _dealt(batches: Iterable[Any], n: int) -> list[list[Any]]:
    """The batches cut and dealt to `n` workers, about equally many records for each."""
    shares: list[list[Any]] = [[] for _ in range(n)]
    turn = 0
    for batch in batches:
        size = max(SHARE_RECORDS, -(-len(batch) // n))
        for start in range(0, len(batch), size):
            whole = start == 0 and size >= len(batch)
            shares[turn % n].append(batch if whole else batch.slice(start, size))
            turn += 1
    return shares
