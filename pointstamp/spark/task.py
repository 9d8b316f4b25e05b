"""What one task of the barrier stage does: it is a worker.

It finds its peers, proves to them that it belongs to the same job, builds the
dataflow, feeds it with the parcels that Spark gives it, and gives the results
back as parcels. Everything here runs on Spark's executors.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.communication import tcp
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.failure import Failure, failure
from pointstamp.containers.arrays import Arrays
from pointstamp.dataflow.scope import Scope
from pointstamp.dataflow.stream import Stream
from pointstamp.errors import BuildError, ContainerError, SchemaError
from pointstamp.runtime.worker import Worker
from pointstamp.spark import bridge, gathering, parcels
from pointstamp.spark.parcels import Parcel

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
    secret: bytes


def work(job: Job) -> Callable[[Rows], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: rows of parcels in and out."""

    def task(rows: Rows) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        return attend(job, rendezvous(BarrierTaskContext.get(), job.secret), rows)

    return task


def attend(job: Job, communicator: Communicator, rows: Rows) -> Iterator[pa.RecordBatch]:
    """The life of a worker: its results in rows, and a goodbye, or the news that it failed.

    When nobody asks for the rest, and the generator is closed, the peers are told
    too: they could not end without this worker.
    """
    try:
        for batch in parcels.resized(run(job, communicator, parcels.unpack(rows))):
            yield parcels.pack(Parcel(communicator.index, 0, batch))
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


def rendezvous(context: BarrierTaskContext, secret: bytes) -> Communicator:
    """Connect the tasks of a barrier stage.

    On several machines by the one message that Spark passes between them; on one machine,
    by a quicker way of ours (`gathering`).
    """
    hosts = [info.address.rpartition(":")[0].strip("[]") for info in context.getTaskInfos()]
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


def run(job: Job, communicator: Communicator, arrivals: Iterable[Parcel]) -> Iterator[Any]:
    """The results of the dataflow on this worker, as batches of the job's schema."""
    results: deque[Any] = deque()
    with closing(Worker(communicator)) as worker:
        with worker.dataflow("spark") as scope:
            inputs = [scope.new_input(name) for name in job.inputs]
            stream = _built(job, scope, [stream for _, stream in inputs])
            probe = stream.inspect_batch(lambda _, batch: results.append(batch)).probe()

        def feed(parcel: Parcel) -> None:
            handle, _ = inputs[parcel.input]
            handle.send_batch(parcel.batch)

        for batch in bridge.pump(worker, arrivals, feed, results, probe):
            yield conform(batch, job.schema)


def _built(job: Job, scope: Scope, streams: Sequence[Stream[Any]]) -> Stream[Any]:
    if job.by_name:
        stream = job.build(scope, **dict(zip(job.inputs, streams, strict=True)))
    else:
        stream = job.build(scope, *streams)
    if not isinstance(stream, Stream):
        raise BuildError(
            f"{_name(job.build)} should return the stream of its results, and returned {stream!r}"
        )
    return stream


def conform(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` with the columns and types of `schema`, without a copy where it has them.

    Columns go by name, so their order does not matter. Types are cast where no
    value changes by it: a dictionary to its values, int64 to int32 if all fit.

    Raises
    ------
    ContainerError
        If `batch` has no columns.
    SchemaError
        If columns are missing or too many, or a value does not fit its type.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"b": [1], "a": ["x"]})
    >>> conform(batch, pa.schema([("a", pa.string()), ("b", pa.int32())])).to_pydict()
    {'a': ['x'], 'b': [1]}
    """
    columns = _columns(batch)
    if columns.schema.equals(schema):
        return columns
    if sorted(columns.schema.names) != sorted(schema.names):
        raise SchemaError(
            f"the results have columns {', '.join(columns.schema.names)}, and the schema of "
            f"the DataFrame has {', '.join(schema.names)}: give the results these names, or run "
            f"with their schema"
        )
    try:
        return columns.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as cause:
        raise SchemaError(
            f"the results do not fit the schema of the DataFrame: {cause}; expected:\n{schema}\n"
            f"found:\n{columns.schema}"
        ) from cause


def _columns(batch: Any) -> pa.RecordBatch:
    if isinstance(batch, pa.RecordBatch):
        return batch
    if isinstance(batch, Arrays):
        return pa.RecordBatch.from_pydict(dict(batch.items()))
    raise ContainerError(
        f"the results for Spark should be columns (pyarrow.RecordBatch), and are "
        f"{type(batch).__name__}: make columns of them with map_batches"
    )


def _name(build: Callable[..., Any]) -> str:
    return getattr(build, "__qualname__", repr(build))
