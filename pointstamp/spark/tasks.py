"""Workers of a service as the tasks of a Spark job, with what the driver knows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.communication import control as channel
from pointstamp.errors import ServiceError
from pointstamp.service.remote_pool import RemoteWorkerPool, WorkerConfig, run_service_worker
from pointstamp.service.staging import StagingHandle
from pointstamp.spark.access import Access, check_columns, staging
from pointstamp.spark.driver_control import worker_config
from pointstamp.spark.jobs import INTERRUPT_S, JobName
from pointstamp.spark.run import LACKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pointstamp.communication.tls import Certificates
    from pointstamp.service.checkpoint_config import CheckpointConfig
    from pointstamp.service.service import Service
    from pointstamp.service.spec import ServiceSpec

CAUSE_S = 2.0
"""How long the workers may take to say why the job fails."""


class Tasks(RemoteWorkerPool):
    """Workers as the tasks of a barrier job, which runs on a thread of the driver."""

    def __init__(
        self,
        spark: SparkSession,
        plan: ServiceSpec,
        workers: int,
        certificates: Certificates | None,
        config: CheckpointConfig | None,
    ) -> None:
        # On one machine nothing has to be reachable from outside.
        is_local = (spark.conf.get("spark.master", None) or "").startswith("local")
        host = "127.0.0.1" if is_local else "0.0.0.0"
        driver = host if is_local else spark.conf.get("spark.driver.host", None)
        assert driver is not None  # Spark sets it
        super().__init__(plan, workers, certificates, config, listen=host, desk=driver)
        self._spark = spark
        self._roots = None if certificates is None else certificates.roots
        self._is_aborted = False
        self._access: Access | None = None
        self._jobs = JobName(spark, "a service of pointstamp")

    def register(self, service: Service) -> None:
        """Have `format("pointstamp")` of the session know the service."""
        from pointstamp.spark.source import register

        assert self.token is not None
        endpoints = tuple(service.endpoints)
        plan = self._plan
        self._access = Access(
            service.name, endpoints, self.token, self._roots, plan.inputs, plan.outputs
        )
        register(self._spark, self._access, self.termination)

    def abort(self) -> None:
        """Hang up, at which the workers end, and have Spark cancel the job."""
        self._is_aborted = True
        super().abort()

    def join(self, timeout_s: float) -> bool:
        """Wait until the job has ended; whether it has."""
        for _ in range(max(1, round(timeout_s / INTERRUPT_S))):
            if super().join(INTERRUPT_S):
                self._unregister()
                return True
            if self._is_aborted:
                # Again and again: it may not have begun the last time.
                self._jobs.interrupt()
        return False

    def _unregister(self) -> None:
        if self._access is not None:
            from pointstamp.spark.source import unregister

            unregister(self._access)

    def stage(
        self, service: Service, input: str, epoch: int, data: Any
    ) -> list[StagingHandle] | None:
        """Stage a DataFrame, by a job of its own."""
        if not hasattr(data, "mapInArrow"):
            return None
        assert self._access is not None  # it was registered before anybody had the service
        check_columns(data.columns, f"input {input!r}", self._plan.inputs[input].names)
        handles = data.mapInArrow(staging(self._access, input, epoch), "handle string")
        return [StagingHandle.from_json(json.loads(row.handle)) for row in handles.collect()]

    def _run(self) -> None:
        try:
            self._run_job()
        except Exception as cause:  # noqa: BLE001  (raised to whoever uses the service)
            # What the workers say of it is better than what Spark does, but may come later.
            if not self.termination.wait(CAUSE_S):
                error = ServiceError(f"the Spark job of the service failed: {_said(cause)}")
                error.__cause__ = cause
                self.termination.end(error)
        else:
            self.termination.end()

    def _run_job(self) -> None:
        self._jobs.give()
        resident = _resident(self._plan, self._appointment, worker_config(self._spark))
        # One partition for each task, and nothing in it that matters.
        rows = self._spark.range(0, self._n_workers, 1, self._n_workers)
        rows.mapInArrow(resident, "worker long", barrier=True).collect()


def _said(cause: Exception) -> str:
    r"""The last line of the Python traceback that Spark has for it, or the first that it says.

    >>> _said(ValueError("a.B: no luck\n  File x\nKeyError: 'y'\n\n\tat c"))
    "KeyError: 'y'"
    >>> _said(ValueError("ModuleNotFoundError: No module named 'pointstamp'"))[-54:]
    'brings Pointstamp to it, and says what else is missing'
    >>> _said(ValueError("no slots"))
    'no slots'
    """
    text = str(cause)
    lacking = re.search(r"^ModuleNotFoundError: .*pointstamp.*", text, re.MULTILINE)
    if lacking is not None:
        return f"{lacking[0]}. {LACKING}"
    errors = re.findall(r"^\w+(?:Error|Exception): .+", text, re.MULTILINE)
    return str(errors[-1]) if errors else next(iter(text.splitlines()), type(cause).__name__)


def _resident(
    plan: ServiceSpec, appointment: WorkerConfig, control: channel.WorkerConfig
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: a worker until it is told to stop."""

    def task(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from pointstamp.communication.communicator import Communicator
        from pointstamp.communication.target import run_target
        from pointstamp.runtime.run_worker import run_worker
        from pointstamp.spark.task import controlled, hosts_of, rendezvous

        batches = list(rows)
        context = BarrierTaskContext.get()
        hosts, me = hosts_of(context), context.partitionId()
        mine = appointment
        if len(set(hosts)) > 1 or appointment.desk[0] != "127.0.0.1":
            mine = replace(appointment, host="0.0.0.0", name=hosts[me])

        def work(communicator: Communicator) -> None:
            run_worker(communicator, run_service_worker, plan, mine, responder=nullcontext)

        with controlled(control, me) as client:
            communicator = rendezvous(context, appointment.secret, client)
        run_target(communicator, work)
        for batch in batches:
            yield batch.rename_columns(["worker"])

    return task
