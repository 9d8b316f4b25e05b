"""What one task of the barrier stage does: it is a worker.

It finds its peers, proves to them that it belongs to the same job, builds the
dataflow, feeds it with the packed batches that Spark gives it, and gives the results
back as packed batches; or with records, and as records, where nothing is shuffled. Everything
here runs on Spark's executors.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.communication import tcp
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.failure import Failure, failure
from pointstamp.containers.conform import conform
from pointstamp.dataflow.logging_protocol import LoggerFactory
from pointstamp.errors import BuildError
from pointstamp.operators.building import built, name_of
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream
from pointstamp.runtime.worker import Worker
from pointstamp.spark import bridge, gathering, packed_batches
from pointstamp.spark.packed_batches import PackedBatch

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

FIRST_WORD_S = 0.8
"""How long a worker that fails because a peer did lets that peer report first.

Spark shows the failure that it hears of first, and ends the other tasks then."""

Rows = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Job:
    """What every task of one dataflow is told; travels in the task's closure."""

    build: Callable[..., Any]
    inputs: Sequence[str]
    by_name: bool
    schema: pa.Schema
    secret: bytes = field(repr=False)
    eager: bool = False
    """Whether workers tell each other of progress at once."""
    log: LoggerFactory | None = None
    fused: bool = False
    """Whether rows are records of the one input and of the result, and not packed batches."""


def work(job: Job) -> Callable[[Rows], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: rows in and out."""

    def task(rows: Rows) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        return run_task(job, rendezvous(BarrierTaskContext.get(), job.secret), rows)

    return task


def run_task(job: Job, communicator: Communicator, rows: Rows) -> Iterator[pa.RecordBatch]:
    """The life of a worker: its results in rows, and a goodbye, or the news that it failed.

    When nobody asks for the rest, and the generator is closed, the peers are told
    too: they could not end without this worker.
    """
    index = communicator.index
    arrivals = packed_batches.of_one(rows, index) if job.fused else packed_batches.unpack(rows)
    try:
        for batch in packed_batches.resized(run(job, communicator, arrivals)):
            yield batch if job.fused else packed_batches.pack(PackedBatch(index, 0, batch))
        communicator.close()
    except BaseException as cause:
        communicator.abort(cause)
        if not isinstance(cause, Exception):
            raise
        raise _explained(failure(communicator.index, cause, time.monotonic())) from cause


def _explained(found: Failure) -> Exception:
    """What Spark is told; it shows the message and the notes, and drops what caused it."""
    if found.secondary:
        time.sleep(FIRST_WORD_S)
    error = found.as_error()
    error.add_note(f"\nThe traceback of worker {found.worker}:\n\n{found.original}")
    return error


def hosts_of(context: BarrierTaskContext) -> list[str]:
    """The names by which Spark knows the machines of a stage's tasks, by task."""
    return [info.address.rpartition(":")[0].strip("[]") for info in context.getTaskInfos()]


def rendezvous(context: BarrierTaskContext, secret: bytes) -> Communicator:
    """Connect the tasks of a barrier stage.

    On several machines by the one message that Spark passes between them; on one machine,
    by a quicker way of ours (`gathering`).
    """
    hosts = hosts_of(context)
    me = context.partitionId()
    # On one machine nothing has to be reachable from outside; on several, the name by
    # which Spark knows a machine need not be one of the addresses that it can bind.
    is_local = len(set(hosts)) == 1
    with tcp.listen("127.0.0.1" if is_local else "0.0.0.0") as listener:
        host, port = "127.0.0.1" if is_local else hosts[me], listener.address[1]
        if is_local and gathering.is_possible():
            stage = context.stageId()
            ports = gathering.gather_ports(me, port, len(hosts), secret, stage)
            return tcp.connect(me, [(host, port) for port in ports], secret, listener=listener)
        gathered = [said.split() for said in context.allGather(f"{host} {port}")]
        addresses = [(host, int(port)) for host, port in gathered]
        return tcp.connect(me, addresses, secret, listener=listener)


def run(job: Job, communicator: Communicator, arrivals: Iterable[PackedBatch]) -> Iterator[Any]:
    """The results of the dataflow on this worker, as batches of the job's schema."""
    results: deque[Any] = deque()
    with ExitStack() as stack:
        log = None if job.log is None else stack.enter_context(closing(job.log.begin(communicator)))
        worker = stack.enter_context(closing(Worker(communicator, eager=job.eager, log=log)))
        with worker.dataflow("spark") as scope:
            inputs = [scope.new_input(name) for name in job.inputs]
            stream = _built(job, scope, [stream for _, stream in inputs])
            probe = stream.inspect_batch(lambda _, batch: results.append(batch)).probe()

        def feed(packed: PackedBatch) -> None:
            handle, _ = inputs[packed.input]
            handle.send_batch(packed.batch)

        for batch in bridge.run(worker, arrivals, feed, results, probe):
            yield conform(batch, job.schema)


def _built(job: Job, scope: Scope, streams: Sequence[Stream[Any]]) -> Stream[Any]:
    stream = built(job.build, scope, job.inputs, streams, job.by_name)
    if not isinstance(stream, Stream):
        raise BuildError(
            f"{name_of(job.build)} should return the stream of its results, and returned {stream!r}"
        )
    return stream
