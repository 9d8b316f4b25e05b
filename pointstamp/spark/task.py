"""What one task of the barrier stage does: it is a worker.

It finds its peers, proves to them that it belongs to the same job, builds the
dataflow, feeds it with the packed batches that Spark gives it, and gives the results
back as packed batches; or with records where it reads them itself, and as records where nothing is
shuffled behind it. Everything here runs on Spark's executors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from traceback import format_exception
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.communication import listening, tcp
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.control import ControlClient, WorkerConfig
from pointstamp.communication.failure import Failure, chain, dump, failure, load
from pointstamp.communication.job_control import FailureReport, JoinMesh, LeaveMesh
from pointstamp.communication.kept_memory import learn_large_blocks
from pointstamp.communication.publishing import set_own
from pointstamp.communication.tls import Certificates
from pointstamp.containers.conform import conform
from pointstamp.dataflow.logging_protocol import LoggerFactory
from pointstamp.errors import (
    CommunicationError,
    PeerFailedError,
    PeerLostError,
    RendezvousError,
    SparkInputError,
)
from pointstamp.operators.building import built
from pointstamp.operators.loop_rounds import LoopRounds
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.introspection import registered
from pointstamp.runtime.run_options import memory_budget
from pointstamp.runtime.worker import Worker
from pointstamp.spark import bridge, packed_batches
from pointstamp.spark.cancelled_tasks import ended_when_cancelled
from pointstamp.spark.daemon_restarts import outliving_restarts
from pointstamp.spark.dry_build import check_result
from pointstamp.spark.packed_batches import PackedBatch
from pointstamp.spark.parquet_files import ParquetScan
from pointstamp.spark.run_counts import Tally, WorkerCounts
from pointstamp.spark.stage_attempts import AttemptCheck

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

    from pointstamp.spark.pickled_job import PickledJob

FIRST_CAUSE_S = 3.0
"""How long a worker that fails waits for the driver to say what the first cause is."""

SPARK_FIRST_S = 0.5
"""How long a worker whose input broke off lets Spark end the stage, before it does."""

REACH_S = 3.0
"""How long a task tries to reach the driver, before it does without."""

MEET_S = 20.0
"""How long a task waits for its peers at the driver, before it asks Spark."""

GATHER_S = 600.0
"""How long it then waits for what Spark passes between them."""

CHECK_S = 1.0
"""How long it waits there before it asks the driver whether they can still come."""

ANSWER_S = 20.0
"""How long it waits for an answer of the driver."""

Rows = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Job:
    """What every task of one dataflow gets; travels in the task's closure."""

    build: Callable[..., Any]
    inputs: Sequence[str]
    by_name: bool
    schema: pa.Schema
    secret: bytes = field(repr=False)
    workers: int
    control: WorkerConfig | None = None
    """Where the workers report; None if they do not."""
    eager: bool = False
    """Whether workers send each other progress at once."""
    log: LoggerFactory | None = None
    records: Sequence[str] | None = None
    """The columns of the one input, where the rows that come are its records; else None, and they
    are packed batches."""
    scans: Mapping[int, ParquetScan] = field(default_factory=dict)
    """The inputs that workers read as files, by number."""
    fused: bool = False
    """Whether the one input comes as it is partitioned, so that no record is dealt."""
    gives_records: bool = False
    """Whether the rows that go are records of the result, and not packed batches: see `work`."""
    certificates: Certificates | None = None
    """What workers on different machines encrypt with; None if they do not."""
    accumulate: bool = False
    """Whether the workers of each machine add up their progress."""
    memory_limit: int | str | None = None
    """How much of what waits each worker keeps in memory."""
    spill_directory: str | None = None
    connections: str = tcp.PER_WORKER
    """What has a connection to each other one of its kind: "worker" or "machine"."""
    description: str = "pointstamp"

    def arrivals(self, rows: Rows, index: int, peers: int) -> Iterator[PackedBatch]:
        """What worker `index` gets: of the files that it reads, and of the rows of its task."""
        for number, scan in self.scans.items():
            yield from packed_batches.of_input(scan.batches(index, peers), index, number)
        if self.records is not None:
            # By position: Spark may have another name, as it finds columns by either case.
            named = (batch.rename_columns(list(self.records)) for batch in rows)
            yield from packed_batches.of_input(named, index, 0)
        elif len(self.scans) < len(self.inputs):
            yield from packed_batches.unpack(rows)
        else:
            deque(rows, maxlen=0)  # Spark gives no other task to a Python that leaves some

    def deals(self, number: int, peers: int) -> bool:
        """Whether workers are to deal what they have read of an input, as one may have all."""
        if self.fused:
            return False
        return (
            self.scans[number].is_uneven(peers)
            if number in self.scans
            else self.records is not None
        )


def work(
    of_task: Job | PickledJob, *, gives_records: bool
) -> Callable[[Rows], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: rows in and out."""
    given: Any = of_task  # a job, in the task

    def task(rows: Rows) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        job = replace(given, gives_records=gives_records)
        context = BarrierTaskContext.get()
        with (
            outliving_restarts(),
            controlled(job.control, context.partitionId()) as control,
            ended_when_cancelled(context, control),
        ):
            communicator = rendezvous(
                context, job.workers, job.secret, control, job.certificates, job.connections
            )
            tally = Tally()
            yield from run_task(job, communicator, rows, control, tally)
            if control is not None:
                control.send(
                    WorkerCounts(
                        *(
                            job.description,
                            context.stageId(),
                            context.taskAttemptId(),
                            communicator.peers,
                        ),
                        *(tally.records_in, tally.records_out, tally.steps, tally.sent_bytes),
                        tally.rounds,
                    )
                )

    return task


@contextmanager
def controlled(
    config: WorkerConfig | None, worker: int, *, required: bool = False
) -> Iterator[ControlClient | None]:
    """The control connection of a task; None where the driver cannot be reached."""
    control = None
    if config is not None:
        # The driver may be a client behind a wall: what fails here fails no job that can do
        # without.
        with nullcontext() if required else suppress(CommunicationError):
            control = ControlClient.connect(config, worker, timeout_s=REACH_S)
    try:
        set_own(control)
        yield control
    finally:
        set_own(None)
        if control is not None:
            control.end()


def run_task(
    job: Job,
    communicator: Communicator,
    rows: Rows,
    control: ControlClient | None = None,
    tally: Tally | None = None,
) -> Iterator[pa.RecordBatch]:
    """The life of a worker: its results in rows, and a goodbye, or why it failed.

    What it counts is in `tally` at the end.

    When the rest is not asked for, and the generator is closed, the peers end too: they could
    not without this worker.
    """
    index = communicator.index
    read = job.arrivals(_unbroken(rows), index, communicator.peers)
    with reporting(communicator, control):
        for batch in packed_batches.resized(run(job, communicator, read, tally or Tally())):
            yield batch if job.gives_records else packed_batches.pack(PackedBatch(index, 0, batch))


def _unbroken(rows: Rows) -> Iterator[pa.RecordBatch]:
    """The rows that Spark gives, which break off without a reason where it cannot compute them."""
    try:
        yield from rows
    except Exception as error:  # noqa: BLE001  (whatever a reader makes of half a message)
        # This task of Spark's fails now, and has the reason. Peers that we had fail would, too, and
        # Spark says of one task alone what it failed of.
        time.sleep(SPARK_FIRST_S)
        raise SparkInputError(
            f"its input breaks off, as Spark failed to compute it ({error}): the error of Spark "
            "says of what"
        ) from None  # what is read here is of no use to a reader, and would be the first cause


@contextmanager
def reporting(communicator: Communicator, control: ControlClient | None) -> Iterator[None]:
    """End the work of a worker with a goodbye, or report why it failed: raises the first cause."""
    try:
        yield
        communicator.close()
    except BaseException as cause:
        if not isinstance(cause, Exception | SystemExit):
            communicator.abort(cause)
            raise
        found = failure(communicator.index, cause, time.monotonic())
        # The driver first: ending the links to the peers may take a moment.
        answer = None if control is None else control.request(FailureReport(dump(found)))
        communicator.abort(cause)
        if answer is not None:
            with suppress(CommunicationError, TimeoutError):
                found = load(answer.result(FIRST_CAUSE_S))
        explained = _explained(found, cause)
        raise explained from (cause if _is_utf8("".join(format_exception(cause))) else None)


def _explained(found: Failure, cause: BaseException) -> Exception:
    """What Spark gets; it shows the message and the notes, and drops what caused it.

    Every task raises the first cause, so that it does not matter which of them Spark shows.
    """
    if found.secondary:
        # The driver was not reached, or has no cause either: what the peers said of it.
        for error in chain(cause):
            if isinstance(error, PeerFailedError | PeerLostError) and error.peer is not None:
                said = str(error).removeprefix(f"worker {error.peer} ")
                found = replace(found, worker=error.peer, what=said)
    # Spark encodes it as UTF-8, and where it cannot, the job waits for ever.
    found = replace(found, what=_as_utf8(found.what), original=_as_utf8(found.original))
    explained = found.as_error()
    if not hasattr(explained, "__notes__"):  # of a cause that was sent it has one
        explained.add_note(f"\nThe traceback of worker {found.worker}:\n\n{found.original}")
    return explained


def _is_utf8(text: str) -> bool:
    """Whether a text has no halves of surrogate pairs, as names of files have that are no text."""
    return _as_utf8(text) == text


def _as_utf8(text: str) -> str:
    r"""A text in which what cannot be encoded is escaped.

    >>> print(_as_utf8("a \udcff b"))
    a \udcff b
    """
    return text.encode(errors="backslashreplace").decode()


def hosts_of(context: BarrierTaskContext) -> list[str]:
    """The names by which Spark knows the machines of a stage's tasks, by task."""
    return [info.address.rpartition(":")[0].strip("[]") for info in context.getTaskInfos()]


def rendezvous(
    context: BarrierTaskContext,
    workers: int,
    secret: bytes,
    control: ControlClient | None = None,
    certificates: Certificates | None = None,
    connections: str = tcp.PER_WORKER,
) -> Communicator:
    """Connect the tasks of a barrier stage.

    They find each other at the driver, or, where that cannot be reached, by the one message
    that Spark passes between them, which takes a second.

    Raises `RendezvousError` where the stage has another number of tasks than the job has workers.
    Of a stage that had ended, or whose last tasks end while an executor is lost, Spark runs only
    the tasks again whose output is lost: they would be a dataflow of their own, of a part of the
    input. Since a barrier stage that has failed is run again whole, all run after this. Likewise
    where peers of this attempt of the stage cannot come any more.
    """
    hosts = hosts_of(context)
    if len(hosts) != workers:
        raise RendezvousError(
            f"Spark runs {len(hosts)} tasks in place of {workers} workers, as it does for the "
            "output of an executor that is lost; no worker can run without the others, and Spark "
            "runs all again where spark.stage.maxConsecutiveAttempts allows it"
        )
    me = context.partitionId()
    # On one machine nothing has to be reachable from outside; on several, the name by
    # which Spark knows a machine need not be one of the addresses that it can bind.
    is_local = len(set(hosts)) == 1
    with listening.listen("127.0.0.1" if is_local else "0.0.0.0") as listener:
        address = "127.0.0.1" if is_local else hosts[me], listener.address[1]
        addresses = _meet(control, context.stageId(), len(hosts), address)
        if addresses is None:
            gathered = [said.split() for said in _gather(context, control, address)]
            addresses = [(host, int(port)) for host, port in gathered]
        return tcp.connect(
            me,
            addresses,
            secret,
            listener=listener,
            certificates=certificates,
            connections=connections,
        )


def _meet(
    control: ControlClient | None, attempt: int, workers: int, address: listening.Address
) -> list[listening.Address] | None:
    """The addresses of all workers, from the driver; None if some did not get there."""
    if workers == 1:
        return [address]
    if control is None:
        return None
    found: list[listening.Address] | None = None
    try:
        found = control.ask(JoinMesh(attempt, workers, address), MEET_S)
    except CommunicationError:
        with suppress(CommunicationError):
            # It may be complete since: then the others rely on us.
            found = control.ask(LeaveMesh(attempt), MEET_S)
    return found


def _gather(
    context: BarrierTaskContext, control: ControlClient | None, address: listening.Address
) -> list[str]:
    """What all workers say, by Spark; it does not say of itself that some cannot come any more."""
    answer: Future[list[str]] = Future()

    def gather() -> None:
        try:
            answer.set_result(context.allGather(f"{address[0]} {address[1]}"))
        except Exception as error:  # noqa: BLE001  (whatever Spark makes of it)
            answer.set_exception(error)

    # Where it waits for ever, it ends with this process, which Spark uses for no other task then.
    threading.Thread(target=gather, name="gathers-addresses", daemon=True).start()
    until = time.monotonic() + GATHER_S
    while not wait([answer], CHECK_S).done:
        if not _can_meet(context, control):
            raise RendezvousError(
                "other tasks of this attempt of the stage have ended before all workers were "
                "connected, as where Spark lost what they were to read; Spark runs all again "
                "where spark.stage.maxConsecutiveAttempts allows it"
            )
        if time.monotonic() > until:
            raise RendezvousError(
                f"other tasks of this stage did not begin within {MEET_S + GATHER_S:.0f} s"
            )
    return answer.result()


def _can_meet(context: BarrierTaskContext, control: ControlClient | None) -> bool:
    """Whether all tasks of this attempt of the stage may still come, as far as the driver knows."""
    if control is None:
        return True
    try:
        found = control.ask(AttemptCheck(context.stageId(), context.taskAttemptId()), ANSWER_S)
    except CommunicationError:
        return True
    return bool(found)


def run(
    job: Job, communicator: Communicator, arrivals: Iterable[PackedBatch], tally: Tally
) -> Iterator[Any]:
    """The results of the dataflow on this worker, as batches of the job's schema."""
    results: deque[Any] = deque()
    learn_large_blocks()
    with ExitStack() as stack:
        log = None if job.log is None else stack.enter_context(closing(job.log.begin(communicator)))
        memory = stack.enter_context(memory_budget(job.memory_limit, job.spill_directory))
        worker = stack.enter_context(
            closing(Worker(communicator, eager=job.eager, accumulate=job.accumulate, log=log))
        )
        if log is not None:
            log.watch(worker)
        if memory is not None:
            worker.environment.limit_memory(memory)
        stack.enter_context(registered(worker))
        with worker.dataflow("spark") as scope:
            inputs = [scope.new_input(name) for name in job.inputs]
            stream = _built(job, scope, _dealt(job, scope, [stream for _, stream in inputs]))
            probe = stream.inspect_batch(lambda _, batch: results.append(batch)).probe()

        def feed(packed: PackedBatch) -> None:
            handle, _ = inputs[packed.input]
            tally.arrived(job.inputs[packed.input], packed.batch.num_rows)
            handle.send_batch(packed.batch)

        for batch in bridge.run(worker, arrivals, feed, results, probe):
            conforming = conform(batch, job.schema)
            tally.records_out += conforming.num_rows
            yield conforming
        tally.steps = worker.n_steps
        tally.rounds = LoopRounds.beside(scope).most()
        tally.sent_bytes = getattr(communicator, "n_sent_bytes", 0)


def _dealt(job: Job, scope: Scope, streams: Sequence[Stream[Any]]) -> list[Stream[Any]]:
    """The records that this worker is to have of each input."""
    return [
        _in_turns(scope, stream) if job.deals(number, scope.peers) else stream
        for number, stream in enumerate(streams)
    ]


def _in_turns(scope: Scope, stream: Stream[Any]) -> Stream[Any]:
    # One partition of a scan may have all records, where a file cannot be cut.
    turns = count(scope.index)
    return stream.distribute(lambda time, batch: next(turns) % scope.peers, name="Deal")


def _built(job: Job, scope: Scope, streams: Sequence[Stream[Any]]) -> Stream[Any]:
    stream = built(job.build, scope, job.inputs, streams, job.by_name)
    check_result(job.build, stream)
    found: Stream[Any] = stream
    return found
