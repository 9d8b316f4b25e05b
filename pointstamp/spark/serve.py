"""`serve`: a resident service whose workers are the tasks of a Spark job that stays.

A barrier job runs on a thread of the driver, under a name by which it can be
cancelled. Its tasks connect to each other as those of `run` do, report at a desk of the
driver, and open their doors; other jobs of the session, and anybody with the token,
come by the doors. The job holds its slots until the service ends.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ServiceError, SparkSetupError, UsageError
from pointstamp.service.fate import Fate
from pointstamp.spark.jobs import JobName
from pointstamp.spark.run import LACKING
from pointstamp.spark.session import context_of, count_slots, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pointstamp.service.afar import Appointment
    from pointstamp.service.blueprint import Blueprint
    from pointstamp.service.door import Certificates
    from pointstamp.service.keeping import Keeping
    from pointstamp.service.link import Link
    from pointstamp.service.service import Service
    from pointstamp.service.staging import Staged
    from pointstamp.spark.access import Access

INTERRUPT_S = 0.2
"""How often Spark is told to cancel the job of a service that was aborted, until it has."""

CAUSE_S = 2.0
"""How long the workers may take to say why the job fails."""


def serve(
    build: Callable[..., Any],
    spark: SparkSession | None = None,
    workers: int = 1,
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    name: str | None = None,
    certificates: Certificates | None = None,
    checkpoint: Any = None,
    snapshot_every: int | None = None,
    allow_missing: Collection[str] = (),
    allow_new: Collection[str] = (),
) -> Service:
    """Run a dataflow that stays, on the tasks of a Spark job; what to drive it with.

    Returns when the workers are connected. In this session `format("pointstamp")` is then a
    sink and a source of streams, and a source of batches; see `docs/service.md`.

    Parameters
    ----------
    build : callable
        `build(scope, **inputs)` gets a stream of `pyarrow.RecordBatch` for each input, and
        returns a dict of streams, one for each output, or the stream itself where there
        is one output. Epochs are the times. It travels to the workers by cloudpickle.
    spark : SparkSession, optional
        The active one, or a new one with slots enough, if not given.
    workers : int
        How many tasks the job has. They hold as many slots for as long as the service runs;
        the jobs that feed and read it need others.
    inputs, outputs : mapping
        Of names to schemas: as Spark has them (`"src long, dst long"`, a StructType), or a
        `pyarrow.Schema`.
    name : str, optional
        By which `option("service", ...)` means it; one is made up if not given.
    certificates : Certificates, optional
        Have the doors of the workers encrypt.
    checkpoint : path, URI or Checkpoint, optional
        A folder that the driver and all executors reach; see `ps.serve`, as for what follows.
    snapshot_every : int, optional
    allow_missing, allow_new : collection of str

    Returns
    -------
    Service
        With `name`; its inputs take DataFrames, too.

    Raises
    ------
    SparkSetupError
        When slots are too few, or the session is one of Spark Connect.
    BuildError
        When `build` cannot be called with these inputs.
    WorkerError
        When a worker fails to start. Later, every method of the service raises it, with the
        first cause, when a worker has failed.

    Notes
    -----
    Without a checkpoint nothing outlasts the workers. A query that writes to a service which has
    ended fails, and is to be started again with the next one; with the checkpoint of the service
    and that of the query, each batch is in the dataflow once.

    Examples
    --------
    ::

        with serve(build, spark, workers=2, inputs={"edges": "src long, dst long"},
                   outputs={"counts": "src long, n long"}) as service:
            query = (edges.writeStream.format("pointstamp")
                     .option("service", service.name).option("input", "edges")
                     .option("checkpointLocation", folder).start())
    """
    from pointstamp.service.blueprint import blueprint
    from pointstamp.service.keeping import keeping
    from pointstamp.service.service import Service

    if workers < 1:
        raise UsageError(f"a service needs at least one worker; {workers} were asked for")
    spark = spark or session(workers=workers + 1)
    _check(spark, workers)
    plan = blueprint(build, _schemas(inputs), _schemas(outputs))
    kept = keeping(checkpoint, snapshot_every, allow_missing, allow_new)
    crew = Tasks(spark, plan, workers, certificates, kept)
    links = crew.start()
    service = Service(plan, links, crew, name or f"pointstamp-{uuid.uuid4().hex[:8]}")
    crew.register(service)
    return service


def _check(spark: SparkSession, workers: int) -> None:
    """Refuse a session that cannot have a resident job, or nothing besides it."""
    if context_of(spark) is None:
        raise SparkSetupError(
            "a service needs a session in the program that Spark's driver runs in, for its workers "
            "report to that; this session is one of Spark Connect: run a dataflow with "
            "pointstamp.spark.run, which works there, or serve from a program of the cluster"
        )
    slots = count_slots(spark)
    if slots is not None and slots <= workers:
        master = spark.conf.get("spark.master", None) or ""
        remedy = (
            f"set its master to local[{workers + 1}] or more"
            if master.startswith("local")
            else f"give it {workers + 1} or more: spark.executor.instances times "
            "spark.executor.cores"
        )
        fewer = f", or ask for at most {slots - 1} workers" if slots > 1 else ""
        raise SparkSetupError(
            f"the {workers} workers of a service hold {workers} slots for as long as it runs, and "
            f"the jobs that feed and read it need at least one more; the Spark session with master "
            f"{master} has {slots}: {remedy}{fewer}"
        )


def _schemas(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _schema(schema) for name, schema in given.items()}


def _schema(given: Any) -> Any:
    """The Arrow schema that Spark has for this one; what is none is left to be refused."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    from pyspark.sql.types import StructType

    if isinstance(given, str):
        given = StructType.fromDDL(given)
    elif isinstance(given, pa.Schema):
        given = from_arrow_schema(given)
    return to_arrow_schema(given, timezone="UTC") if isinstance(given, StructType) else given


class Tasks:
    """Workers as the tasks of a barrier job, which runs on a thread of the driver."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Blueprint,
        workers: int,
        certificates: Certificates | None,
        keeping: Keeping | None,
    ) -> None:
        from pointstamp.communication.authentication import new_secret
        from pointstamp.service.afar import Appointment, Reception
        from pointstamp.service.door import token_of

        self.fate = Fate()
        self._spark = spark
        self._plan = plan
        self._n_workers = workers
        self._roots = None if certificates is None else certificates.roots
        self._is_aborted = False
        self._access: Access | None = None
        self._jobs = JobName(spark, "a service of pointstamp")
        secret = new_secret()
        self.token: str | None = token_of(secret)
        # On one machine nothing has to be reachable from outside.
        is_local = (spark.conf.get("spark.master", None) or "").startswith("local")
        host = "127.0.0.1" if is_local else "0.0.0.0"
        self._reception = Reception(workers, secret, self.fate, host, certificates)
        driver = "127.0.0.1" if is_local else spark.conf.get("spark.driver.host", None)
        assert driver is not None  # Spark sets it
        desk = (driver, self._reception.address[1])
        self._appointment = Appointment(desk, secret, certificates=certificates, keeping=keeping)
        self._thread = threading.Thread(target=self._run, name="pointstamp-service", daemon=True)

    def start(self) -> Sequence[Link]:
        """Start the job; the links to its workers, when all have reported."""
        self._thread.start()
        try:
            return self._reception.meet()
        except BaseException:
            self.abort()
            self.join(INTERRUPT_S)
            self._thread.join()
            raise

    def register(self, service: Service) -> None:
        """Have `format("pointstamp")` of the session know the service."""
        from pointstamp.spark.access import Access
        from pointstamp.spark.source import register

        assert self.token is not None
        doors = tuple(service.doors)
        plan = self._plan
        self._access = Access(
            service.name, doors, self.token, self._roots, plan.inputs, plan.outputs
        )
        register(self._spark, self._access)

    def abort(self) -> None:
        """Hang up, at which the workers end, and have Spark cancel the job."""
        self._is_aborted = True
        self._reception.hang_up()

    def join(self, timeout_s: float) -> bool:
        """Wait until the job has ended; whether it has."""
        for _ in range(max(1, round(timeout_s / INTERRUPT_S))):
            self._thread.join(INTERRUPT_S)
            if not self._thread.is_alive():
                self._reception.hang_up()
                self._unregister()
                return True
            if self._is_aborted:
                # Again and again: it may not have begun the last time.
                self._jobs.interrupt()
        return False

    def _unregister(self) -> None:
        if self._access is not None:
            from pointstamp.spark.source import forget

            forget(self._access.name)

    def stage(self, service: Service, input: str, epoch: int, data: Any) -> list[Staged] | None:
        """Stage a DataFrame, by a job of its own."""
        from pointstamp.service.staging import Staged
        from pointstamp.spark.access import staging

        if not hasattr(data, "mapInArrow"):
            return None
        assert self._access is not None  # it was registered before anybody had the service
        receipts = data.mapInArrow(staging(self._access, input, epoch), "receipt string")
        return [Staged.from_json(json.loads(row.receipt)) for row in receipts.collect()]

    def _run(self) -> None:
        try:
            self._run_job()
        except Exception as cause:  # noqa: BLE001  (raised to whoever uses the service)
            # What the workers say of it is better than what Spark does, but may come later.
            if not self.fate.wait(CAUSE_S):
                error = ServiceError(f"the Spark job of the service failed: {_said(cause)}")
                error.__cause__ = cause
                self.fate.end(error)
        else:
            self.fate.end()

    def _run_job(self) -> None:
        self._jobs.give()
        resident = _resident(self._plan, self._appointment)
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
    plan: Blueprint, appointment: Appointment
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow(..., barrier=True)`: a worker until it is told to stop."""

    def task(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from pointstamp.communication.attend import attend
        from pointstamp.communication.communicator import Communicator
        from pointstamp.runtime.worker import live
        from pointstamp.service.afar import reside_afar
        from pointstamp.spark.task import hosts_of, rendezvous

        batches = list(rows)
        context = BarrierTaskContext.get()
        hosts, me = hosts_of(context), context.partitionId()
        mine = appointment
        if len(set(hosts)) > 1 or appointment.desk[0] != "127.0.0.1":
            mine = replace(appointment, host="0.0.0.0", name=hosts[me])

        def work(communicator: Communicator) -> None:
            live(communicator, reside_afar, plan, mine)

        attend(rendezvous(context, appointment.secret), work)
        for batch in batches:
            yield batch.rename_columns(["worker"])

    return task
