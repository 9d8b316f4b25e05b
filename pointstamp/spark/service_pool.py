"""Workers of a service as the tasks of a Spark job, and what brings DataFrames to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.errors import ServiceError
from pointstamp.service.protocol import StagingHandle, decode, token_of
from pointstamp.service.supervisor import CAUSE_S
from pointstamp.service.worker_pools import WorkerPool
from pointstamp.spark.access import RESTART_S, Access, check_columns, staging
from pointstamp.spark.awaited_slots import await_slots
from pointstamp.spark.call_sites import CallSite, call_site, called_at
from pointstamp.spark.driver_control import LOOPBACK, control_of, worker_config
from pointstamp.spark.jobs import INTERRUPT_S, JobName
from pointstamp.spark.mapped_columns import mapped_in_arrow
from pointstamp.spark.run import LACKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pointstamp.communication.control import WorkerConfig
    from pointstamp.communication.failure import Failure
    from pointstamp.service.checkpoint_config import CheckpointConfig
    from pointstamp.service.protocol import WorkerHandle
    from pointstamp.service.spec import FlightConfig, ServiceSpec
    from pointstamp.service.supervisor import Supervisor

Answer = TypeVar("Answer")

REPORT_S = 2.0
"""How long the workers may take to report why the job fails."""


class SparkWorkerPool(WorkerPool):
    """Workers as the tasks of a barrier job, which runs on a thread of the driver."""

    def __init__(
        self,
        spark: SparkSession,
        spec: ServiceSpec,
        workers: int,
        config: CheckpointConfig | None,
        flight: FlightConfig,
        asked_at: CallSite,
    ) -> None:
        super().__init__(spec, workers, config, flight)
        self._spark = spark
        self._asked_at = asked_at
        self._jobs = JobName(spark, "a service of pointstamp")

    def join(self, timeout_s: float) -> bool:
        """Wait until the job has ended; whether it has."""
        for _ in range(max(1, round(timeout_s / INTERRUPT_S))):
            if self._is_aborted and self._thread.is_alive():
                # Again and again: it may not have begun the last time.
                self._jobs.interrupt()
            if super().join(INTERRUPT_S):
                return True
        return False

    def _run(self) -> None:
        assert self._flight is not None
        job = worker_config(self._spark, self._flight.certificates)
        control = control_of(job)
        assert control is not None  # which this program has
        task = _task(self._spec, self._n_workers, self._config, self._flight, job)
        with control.watching(job.group, self.handlers, self._fail):
            try:
                await_slots(self._spark, self._n_workers, self.termination.wait)
                if self.termination.has_ended:
                    return  # aborted meanwhile
                self._jobs.give()
                # One partition for each task, and nothing in it that matters.
                rows = self._spark.range(0, self._n_workers, 1, self._n_workers)
                with called_at(self._spark, self._asked_at):
                    rows.mapInArrow(task, "worker long", barrier=True).collect()
            except Exception as cause:
                # What the workers report is better than what Spark says, but may come later.
                if self.termination.wait(REPORT_S):
                    return
                found = control.first_cause(job.group)
                if found is not None:
                    raise found.as_error() from found.cause
                host, port = job.control
                raise ServiceError(
                    "the Spark job of the service failed, and none of its workers reported why to "
                    f"this program, which they have to reach at {host}:{port}: Spark's exception, "
                    "of which this one was raised, has what it knows. If that is a module that is "
                    f"missing: {LACKING}"
                ) from cause

    def _fail(self, found: Failure) -> None:
        """A worker has reported of what the job fails, or is lost."""
        error = found.as_error()
        error.__cause__ = found.cause
        self.termination.end(error)


class Registration:
    """A service in the session: `format("pointstamp")` knows it, and it takes DataFrames.

    When the supervisor has started the workers again, the session knows where they are then.
    """

    def __init__(
        self,
        spark: SparkSession,
        supervisor: Supervisor,
        spec: ServiceSpec,
        name: str,
        flight: FlightConfig,
        identity: str = "",
    ) -> None:
        self._spark = spark
        self._supervisor = supervisor
        token = token_of(flight.secret)
        self._access = Access(
            *(name, (), token, flight.certificates, spec.inputs, spec.outputs),
            collections=frozenset(spec.collections),
            maintained=frozenset(spec.maintained),
            identity=identity,
        )
        self._registered = self._access
        supervisor.announce = self.announce
        supervisor.retire = self.retire

    @property
    def access(self) -> Access:
        """How the workers are reached now."""
        return self._access

    def announce(self, workers: Sequence[WorkerHandle]) -> None:
        """The workers are there."""
        from pointstamp.spark.source import register

        endpoints = tuple(worker.address for worker in workers if worker.address is not None)
        if endpoints == self._access.endpoints:
            return  # started again, where they were
        self._access = replace(self._access, endpoints=endpoints)
        # What a query runs is not repeated by us, as the jobs are that we run: it tries by itself.
        patience_s = RESTART_S if self._supervisor.may_restart else 0.0
        self._registered = replace(self._access, patience_s=patience_s)
        register(self._spark, self._registered, self._supervisor.termination)

    def retire(self) -> None:
        """The service has ended."""
        from pointstamp.spark.source import unregister

        unregister(self._registered)

    def stage(self, input: str, epoch: int, data: Any) -> list[StagingHandle] | None:
        """Stage a DataFrame, by a job of its own; None for anything else."""
        if not hasattr(data, "mapInArrow"):
            return None
        check_columns(data.columns, f"input {input!r}", self._access.inputs[input].names)

        def job() -> Sequence[Any]:
            task = staging(self._access, input, epoch)
            return mapped_in_arrow(data, task, "handle string").collect()

        with called_at(self._spark, call_site("send")):
            rows = self.repeated(job)
        return [decode(StagingHandle, row.handle) for row in rows]

    def repeated(self, job: Callable[[], Answer]) -> Answer:
        """What a job gives whose tasks come to the workers; again, where one of these was lost."""
        while True:
            pool = self._supervisor.pool()
            try:
                return job()
            except Exception:
                # Its tasks may have failed because a worker of the service was lost, or fails; else
                # of their rows, which the caller is not to wait for long to hear of.
                if not pool.termination.wait(REPORT_S if self._access.all_listen() else CAUSE_S):
                    raise


def _task(
    spec: ServiceSpec,
    workers: int,
    config: CheckpointConfig | None,
    flight: FlightConfig,
    job: WorkerConfig,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: a worker until it is to stop."""

    def task(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from pointstamp.communication.publishing import request
        from pointstamp.runtime.introspection import registered
        from pointstamp.runtime.run_worker import run_worker
        from pointstamp.service.worker_pools import run_service_worker
        from pointstamp.spark.daemon_restarts import outliving_restarts
        from pointstamp.spark.task import controlled, hosts_of, rendezvous, reporting

        batches = list(rows)
        context = BarrierTaskContext.get()
        hosts, me = hosts_of(context), context.partitionId()
        mine = flight
        if len(set(hosts)) > 1 or job.control[0] != LOOPBACK:
            mine = replace(flight, host="0.0.0.0", name=hosts[me])
        with outliving_restarts(), controlled(job, me, required=True) as control:
            communicator = rendezvous(context, workers, flight.secret, control, job.certificates)
            main, args = run_service_worker, (spec, config, mine, request)
            with reporting(communicator, control):
                run_worker(communicator, main, *args, responder=registered, **spec.run_options)
        yield from (batch.rename_columns(["worker"]) for batch in batches)

    return task
