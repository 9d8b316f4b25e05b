"""Workers of a service as the tasks of a Spark job, and what brings DataFrames to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ServiceError, StoppedError
from pointstamp.service.protocol import StagingHandle
from pointstamp.service.worker_pools import RemoteWorkerPool
from pointstamp.spark.access import Access, check_columns, staging
from pointstamp.spark.driver_control import worker_config
from pointstamp.spark.jobs import INTERRUPT_S, JobName
from pointstamp.spark.run import LACKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pointstamp.communication.control import WorkerConfig
    from pointstamp.communication.tls import Certificates
    from pointstamp.service.checkpoint_config import CheckpointConfig
    from pointstamp.service.service import Service
    from pointstamp.service.spec import ServiceSpec
    from pointstamp.service.supervisor import Supervisor
    from pointstamp.service.worker_control import ServiceWorkerConfig
    from pointstamp.service.worker_handle import WorkerHandle

CAUSE_S = 2.0
"""How long the workers may take to say why the job fails."""


class SparkWorkerPool(RemoteWorkerPool):
    """Workers as the tasks of a barrier job, which runs on a thread of the driver."""

    def __init__(
        self,
        spark: SparkSession,
        spec: ServiceSpec,
        workers: int,
        certificates: Certificates | None,
        config: CheckpointConfig | None,
        secret: bytes,
        ports: tuple[int, ...] = (),
    ) -> None:
        # On one machine nothing has to be reachable from outside.
        is_local = (spark.conf.get("spark.master", None) or "").startswith("local")
        host = "127.0.0.1" if is_local else "0.0.0.0"
        driver = host if is_local else spark.conf.get("spark.driver.host", None)
        assert driver is not None  # Spark sets it
        super().__init__(
            spec, workers, certificates, config, secret, ports, listen=host, reached_at=driver
        )
        self._spark = spark
        self._is_aborted = False
        self._jobs = JobName(spark, "a service of pointstamp")

    def abort(self) -> None:
        """Close the connections, at which the workers end, and have Spark cancel the job."""
        self._is_aborted = True
        super().abort()

    def join(self, timeout_s: float) -> bool:
        """Wait until the job has ended; whether it has."""
        for _ in range(max(1, round(timeout_s / INTERRUPT_S))):
            if super().join(INTERRUPT_S):
                return True
            if self._is_aborted:
                # Again and again: it may not have begun the last time.
                self._jobs.interrupt()
        return False

    def _run(self) -> None:
        try:
            self._run_job()
        except Exception as cause:  # noqa: BLE001  (raised where the service is used)
            # What the workers say of it is better than what Spark does, but may come later.
            if not self.termination.wait(CAUSE_S):
                error = ServiceError(f"the Spark job of the service failed: {_cause_of(cause)}")
                error.__cause__ = cause
                self.termination.end(error)
        else:
            self.termination.end()

    def _run_job(self) -> None:
        self._jobs.give()
        task = _task(self._spec, self._config, worker_config(self._spark, self._certificates))
        # One partition for each task, and nothing in it that matters.
        rows = self._spark.range(0, self._n_workers, 1, self._n_workers)
        rows.mapInArrow(task, "worker long", barrier=True).collect()


def _cause_of(cause: Exception) -> str:
    r"""The last line of the Python traceback that Spark has for it, or the first that it says.

    >>> _cause_of(ValueError("a.B: no luck\n  File x\nKeyError: 'y'\n\n\tat c"))
    "KeyError: 'y'"
    >>> _cause_of(ValueError("ModuleNotFoundError: No module named 'pointstamp'"))[-54:]
    'brings Pointstamp to it, and says what else is missing'
    >>> _cause_of(ValueError("no slots"))
    'no slots'
    """
    text = str(cause)
    lacking = re.search(r"^ModuleNotFoundError: .*pointstamp.*", text, re.MULTILINE)
    if lacking is not None:
        return f"{lacking[0]}. {LACKING}"
    errors = re.findall(r"^\w+(?:Error|Exception): .+", text, re.MULTILINE)
    return str(errors[-1]) if errors else next(iter(text.splitlines()), type(cause).__name__)


class Registration:
    """A service in the session: `format("pointstamp")` knows it, and it takes DataFrames.

    Parameters
    ----------
    supervisor : Supervisor
        When it has started the workers again, the session knows where they are then.
    """

    def __init__(
        self,
        spark: SparkSession,
        supervisor: Supervisor,
        spec: ServiceSpec,
        name: str,
        token: str,
        roots: bytes | None,
    ) -> None:
        self._spark = spark
        self._supervisor = supervisor
        self._access = Access(name, (), token, roots, spec.inputs, spec.outputs)
        supervisor.announce = self.announce
        supervisor.retire = self.retire

    def announce(self, workers: Sequence[WorkerHandle]) -> None:
        """The workers are there."""
        from pointstamp.spark.source import register

        endpoints = tuple(worker.address for worker in workers if worker.address is not None)
        self._access = replace(self._access, endpoints=endpoints)
        register(self._spark, self._access, self._supervisor.termination)

    def retire(self) -> None:
        """The service has ended."""
        from pointstamp.spark.source import unregister

        unregister(self._access)

    def stage(
        self, service: Service, input: str, epoch: int, data: Any
    ) -> list[StagingHandle] | None:
        """Stage a DataFrame, by a job of its own; None for anything else."""
        if not hasattr(data, "mapInArrow"):
            return None
        check_columns(data.columns, f"input {input!r}", self._access.inputs[input].names)
        while True:
            life = self._supervisor.life()
            frame = data.mapInArrow(staging(self._access, input, epoch), "handle string")
            try:
                rows = frame.collect()
            except Exception as cause:
                # Its tasks may have failed because a worker of the service was lost.
                if not life.pool.termination.wait(CAUSE_S):
                    raise
                self._supervisor.lost(life, StoppedError(_cause_of(cause)))
            else:
                return [StagingHandle.from_json(json.loads(row.handle)) for row in rows]


def _task(
    spec: ServiceSpec, config: ServiceWorkerConfig, job: WorkerConfig
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: a worker until it is to stop."""

    def task(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from pointstamp.communication.communicator import Communicator
        from pointstamp.communication.target import run_target
        from pointstamp.runtime.introspection import registered
        from pointstamp.runtime.run_worker import run_worker
        from pointstamp.service.worker_control import run_service_worker
        from pointstamp.spark.task import controlled, hosts_of, rendezvous

        batches = list(rows)
        context = BarrierTaskContext.get()
        hosts, me = hosts_of(context), context.partitionId()
        mine = config
        if len(set(hosts)) > 1 or config.control.control[0] != "127.0.0.1":
            mine = replace(config, host="0.0.0.0", name=hosts[me])

        def work(communicator: Communicator) -> None:
            run_worker(communicator, run_service_worker, spec, mine, responder=registered)

        with controlled(job, me) as meeting:
            control = config.control
            communicator = rendezvous(context, control.secret, meeting, control.certificates)
        run_target(communicator, work)
        for batch in batches:
            yield batch.rename_columns(["worker"])

    return task
