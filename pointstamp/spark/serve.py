"""`serve`: a service whose workers are the tasks of a Spark job that stays.

A barrier job runs on a thread of the driver, under a name by which it can be
cancelled. Its tasks connect to each other and to the driver as those of `run` do, and open
their endpoints; other jobs of the session, and anybody with the token,
come by the endpoints. The job holds its slots until the service ends.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from pointstamp.errors import SparkSetupError, UsageError
from pointstamp.service.restart_policy import DEFAULT_RESTART, RestartPolicy, check_restart
from pointstamp.spark.arrow_schemas import arrow_schema_of
from pointstamp.spark.held_slots import held_by_services, hold
from pointstamp.spark.installation import check_executors
from pointstamp.spark.session import (
    check_allocation,
    check_running,
    count_slots,
    said_of_free,
    session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.communication.tls import Certificates
    from pointstamp.metrics.telemetry import Telemetry
    from pointstamp.runtime.dashboards import Dashboard
    from pointstamp.service.protocol import WorkerHandle
    from pointstamp.service.service import Service

LOGGER = logging.getLogger("pointstamp.spark")


def serve(
    build: Callable[..., Any],
    spark: SparkSession | None = None,
    workers: int = 1,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    collections: Mapping[str, Any] | None = None,
    name: str | None = None,
    certificates: Certificates | None = None,
    checkpoint: Any = None,
    snapshot_every: int | None = None,
    allow_missing: Collection[str] = (),
    allow_new: Collection[str] = (),
    restart: RestartPolicy | None = DEFAULT_RESTART,
    memory_limit: int | str | None = None,
    spill_directory: str | PathLike[str] | None = None,
    dashboard: bool | Dashboard = False,
    metrics: Any = None,
    telemetry: bool | Telemetry = False,
) -> Service:
    """Start a long-running dataflow in the tasks of a Spark job; returns its service.

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
        `pyarrow.Schema`. Of streams.
    collections : mapping, optional
        Of names to schemas: inputs that are collections; see `ps.serve`. A StructType, a
        `pyarrow.Schema`, or a text as of `View`, in which `?` makes a column nullable.
    name : str, optional
        By which `option("service", ...)` means it; one is made up if not given.
    certificates : Certificates, optional
        Have all connections of the workers encrypt: those to each other, to the driver, and of
        clients, of which each has to present a certificate of the same roots (mutual TLS), as
        Spark's tasks do. These get them as they get the token, over Spark's own channels.
    checkpoint : path, URI or Checkpoint, optional
        A folder that the driver and all executors reach; see `ps.serve`, as for what follows.
    snapshot_every : int, optional
    allow_missing, allow_new : collection of str
    restart : RestartPolicy, optional
    memory_limit, spill_directory : optional
        The directory is one of the executors' machines.
    dashboard : bool or Dashboard
        The driver serves the page; see `ps.execute`.
    metrics : int, str or MetricsEndpoint, optional
        Served by the driver; see `ps.serve`.
    telemetry : bool or Telemetry
        Given by the driver; see `ps.serve`.

    Returns
    -------
    Service
        With `name`; its inputs take DataFrames, too, and its outputs that are collections give
        them: `to_spark`, `change_feed`, `upserts` and `merge_into`.

    Raises
    ------
    SparkSetupError
        When slots are too few, or other services hold too many.
    SchemaError
        When a collection is given no schema, or a type that it cannot have.
    BuildError
        When `build` cannot be called with these inputs.
    CheckpointInUseError
        When another program or service of this machine uses the folder.
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
    from pointstamp.communication.authentication import new_secret
    from pointstamp.communication.target import check_workers
    from pointstamp.runtime.dashboards import dashboard_options, open_dashboard
    from pointstamp.service.checkpoint_config import checkpoint_config, checkpoint_of
    from pointstamp.service.protocol import token_of
    from pointstamp.service.service import Service
    from pointstamp.service.service_metrics import ServiceMetrics
    from pointstamp.service.spec import FlightConfig, service_spec
    from pointstamp.service.supervisor import Supervisor
    from pointstamp.spark.call_sites import call_site
    from pointstamp.spark.collection_outputs import SparkOutput
    from pointstamp.spark.collection_service import SparkSide
    from pointstamp.spark.feeds import SparkFeed, SparkUpsertFeed
    from pointstamp.spark.service_pool import Registration, SparkWorkerPool
    from pointstamp.spark.source import check_name

    check_workers(workers)
    check_restart(restart)
    page = dashboard_options(dashboard)
    spark = spark or session(workers=workers + 1)
    _check(spark, workers)
    name = f"pointstamp-{uuid.uuid4().hex[:8]}" if name is None else name
    check_name(name)
    options = {"memory_limit": memory_limit, "spill_directory": spill_directory}
    if collections is None and inputs is None:
        raise UsageError("serve is given no inputs: give inputs= of streams, or collections=")
    streams = (
        _schemas({} if inputs is None else inputs),
        _schemas({} if outputs is None else outputs),
    )
    spec = service_spec(build, *streams, options, collections)
    spec = replace(spec, notes_lines=page is not None)
    place = checkpoint_of(checkpoint)
    flight = FlightConfig(new_secret(), certificates)
    # Behind all checks: it listens from here on.
    endpoint = ServiceMetrics(metrics, workers, telemetry, name)
    spec = endpoint.count(spec)
    asked_at = call_site("serve")

    def make_pool(former: Sequence[WorkerHandle]) -> SparkWorkerPool:
        config = checkpoint_config(place, snapshot_every, allow_missing, allow_new, claim)
        return SparkWorkerPool(spark, spec, workers, config, flight.at_ports_of(former), asked_at)

    with contextlib.ExitStack() as on_error:
        on_error.callback(endpoint.close)
        held = on_error.enter_context(contextlib.ExitStack())
        # Before anything of it is read.
        claim = None if place is None else held.enter_context(place.locked())
        identity = ""
        if spec.maintained:  # whose epochs nothing else numbers
            identity = uuid.uuid4().hex if place is None else place.identity()
        supervisor = Supervisor(make_pool, None if place is None else restart, held.close)
        on_error.callback(supervisor.abort)
        registration = Registration(spark, supervisor, spec, name, flight, identity)
        endpoint.start(supervisor)
        registration.announce(supervisor.workers)
        hold(spark, name, workers, lambda: supervisor.termination.has_ended)
        server = open_dashboard(page)
        on_error.pop_all()
    LOGGER.info(
        "service %r is there for format('pointstamp'), on %d tasks",
        name,
        workers,
        extra={"service": name, "workers": workers},
    )
    side = SparkSide(spark, registration, place)
    return Service(
        spec,
        supervisor,
        name=name,
        token=token_of(flight.secret),
        checkpoint=place,
        page=server,
        stager=registration.stage,
        before_end=side.stop_queries,
        new_feed=partial(SparkFeed, side),
        new_upserts=partial(SparkUpsertFeed, side),
        new_output=partial(SparkOutput, side),
        metrics=endpoint,
    )


def _check(spark: SparkSession, workers: int) -> None:
    """Refuse a session that cannot have a resident job, or nothing besides it."""
    check_running(spark)
    check_allocation(spark)
    slots = count_slots(spark)
    master = spark.conf.get("spark.master", None) or ""
    if slots is not None and slots <= workers:
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
    held = held_by_services(spark)
    n_held = sum(held.values())
    if slots is not None and slots <= workers + n_held:
        raise SparkSetupError(
            f"the {workers} workers of a service hold {workers} slots for as long as it runs, and "
            "the jobs that feed and read it need at least one more; "
            f"{said_of_free(slots, master, held)}: stop what is not needed, or start the "
            f"session with {workers + n_held + 1} slots"
        )
    check_executors(spark)


def _schemas(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given  # which is refused where all are
    return {name: _schema(name, schema) for name, schema in given.items()}


def _schema(name: str, given: Any) -> Any:
    """The Arrow schema that Spark has for this one; what is none is left to be refused."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    from pointstamp.spark.known_schemas import struct_of

    if isinstance(given, str):
        given = struct_of(given)
    elif isinstance(given, pa.Schema):
        given = from_arrow_schema(given)
    return arrow_schema_of(given, repr(name)) if isinstance(given, StructType) else given
