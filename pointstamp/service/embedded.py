"""`serve`: a service on workers of this machine, without Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from pointstamp.communication.authentication import new_secret
from pointstamp.communication.target import check_workers
from pointstamp.errors import UsageError
from pointstamp.metrics.telemetry import Telemetry
from pointstamp.runtime.dashboards import Dashboard, dashboard_options, open_dashboard
from pointstamp.service.checkpoint_config import checkpoint_config, checkpoint_of
from pointstamp.service.protocol import WorkerHandle, token_of
from pointstamp.service.restart_policy import DEFAULT_RESTART, RestartPolicy, check_restart
from pointstamp.service.service import Service
from pointstamp.service.service_metrics import ServiceMetrics
from pointstamp.service.spec import FlightConfig, service_spec
from pointstamp.service.supervisor import Supervisor
from pointstamp.service.worker_pools import WorkerPool


def serve(
    build: Callable[..., Any],
    workers: int = 1,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    collections: Mapping[str, Any] | None = None,
    threads: bool = False,
    certificates: Any = None,
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
    """Start a long-running dataflow on workers of this machine; returns its `Service`.

    Returns when the workers are ready. A `with` block over the service stops it at its end,
    when everything that was sent is complete, or aborts it after an exception. A service that is
    garbage collected without `stop()` is aborted, with a `ResourceWarning`.

    Parameters
    ----------
    build : callable
        `build(scope, **inputs)` gets a stream of `pyarrow.RecordBatch` for each input, and
        returns a dict of streams, one for each output, or the stream itself if there
        is only one. Times are epochs. It is sent to the workers by cloudpickle.
    workers : int
        The number of workers, each in a process of its own.
    inputs, outputs : mapping
        Of names of streams to schemas: a `pyarrow.Schema`, or a dict of column names to types.
    collections : mapping, optional
        Of names to schemas, for inputs that are collections, as for `View`; or to a `ClockInput`,
        which advances by itself with `every=`. `build` gets a `Collection` for each, or a `Clock`.
        Collections that it returns are outputs, too, and need no declaration; a single one is
        called "result". `service.input(name)` has `insert`, `delete` and
        `update`, or, if declared as an `UpsertInput`, `upsert` and `remove`;
        `service.advance()` commits an epoch, and `service.output(name)` has `changes` and
        `snapshot`.
    threads : bool
        Run the workers as threads of this process instead, which share an interpreter, and
        have no Flight servers for other programs.
    certificates : Certificates, optional
        Have the workers' Flight servers use mutual TLS: clients need a certificate
        of the same roots, in addition to the token.
    checkpoint : path, URI or Checkpoint, optional
        A folder that commits are written to before they count. A service that starts with one
        replays what was committed, with any number of workers, and its inputs resume
        where they were. Only one service at a time may use it.
    snapshot_every : int, optional
        Take a snapshot of the operators' state every so many epochs, so that a restart restores
        the last one, and replays what was committed since. All stateful operators
        must declare their state; see `docs/state.md`. Without it, all epochs are replayed.
    allow_missing, allow_new : collection of str
        Operators with state, or outputs, that may be in the snapshot only, and in the dataflow
        only.
    restart : RestartPolicy, optional
        With a checkpoint: how often the workers are restarted when one is lost. Requests
        block meanwhile, and then the service continues. None: the service ends.
    memory_limit, spill_directory : optional
        A limit on queued and staged batches in memory, per worker, and where to spill the
        rest; see `execute`.
    dashboard : bool or Dashboard
        Serve a live page on this machine while the service runs; see `execute`.
    metrics : int, str or MetricsEndpoint, optional
        Serve Prometheus metrics at `/metrics` of a port, and `/health` and `/ready`; see
        `execute`. `service.metrics_url` is the address.
    telemetry : bool or Telemetry
        Report traces and metrics to OpenTelemetry; see `execute`.

    Returns
    -------
    Service

    Raises
    ------
    BuildError
        If `build` cannot be called with these inputs.
    CheckpointInUseError
        If another program or service of this machine uses the folder.
    WorkerError
        If a worker fails to start, for example because `build` returns other outputs. Later,
        every method of the service raises it, with the first cause, when a worker has failed
        and is not restarted.

    Notes
    -----
    Epochs enter the dataflow atomically, at `advance_to`. The workers keep output until `discard`;
    without a checkpoint no state survives them (`docs/service.md`).

    Examples
    --------
    >>> import pointstamp as ps
    >>> import pyarrow as pa
    >>> def build(scope, words):
    ...     return words.exchange("word").map_batches(
    ...         lambda batch: batch.append_column("n", pa.array([1] * len(batch))))
    >>> with ps.serve(
    ...     build, workers=2, threads=True,
    ...     inputs={"words": {"word": pa.string()}},
    ...     outputs={"ones": {"word": pa.string(), "n": pa.int64()}},
    ... ) as service:
    ...     service.input("words").send([{"word": "a"}, {"word": "a"}])
    ...     service.input("words").advance_to(1)
    ...     service.output("ones").collect(upto=0).to_pylist()
    [{'word': 'a', 'n': 1}, {'word': 'a', 'n': 1}]

    >>> def report(scope, sales):
    ...     return sales.group_by("shop").agg(n=ps.count(), cents=ps.sum("cents"))
    >>> with ps.serve(report, 2, threads=True, collections={"sales": "shop long, cents long"}) as s:
    ...     s.input("sales").insert([(1, 30), (2, 10), (1, 20)])
    ...     print(s.advance(), s.output("result").changes(0))
    ...     s.input("sales").delete([(2, 10)])
    ...     print(s.advance(), s.output("result").changes(1), s.output("result").snapshot(1))
    0 [((1, 2, 50), 1), ((2, 1, 10), 1)]
    1 [((2, 1, 10), -1)] [(1, 2, 50)]
    """
    check_workers(workers)
    check_restart(restart)
    page = dashboard_options(dashboard)
    if threads and certificates is not None:
        raise UsageError("threads have no Flight servers, so nothing to encrypt: leave one out")
    options = {"memory_limit": memory_limit, "spill_directory": spill_directory}
    streams = {} if inputs is None else inputs, {} if outputs is None else outputs
    if collections is None and inputs is None:
        raise UsageError("serve is given no inputs: give inputs= of streams, or collections=")
    spec = service_spec(build, *streams, options, collections)
    spec = replace(spec, notes_lines=page is not None)
    place = checkpoint_of(checkpoint)
    flight = None if threads else FlightConfig(new_secret(), certificates)
    # Behind all checks: it listens from here on.
    name = getattr(build, "__qualname__", "service")
    endpoint = ServiceMetrics(metrics, workers, telemetry, name)
    spec = endpoint.count(spec)

    def make_pool(former: Sequence[WorkerHandle]) -> WorkerPool:
        config = checkpoint_config(place, snapshot_every, allow_missing, allow_new, claim)
        return WorkerPool(spec, workers, config, flight and flight.at_ports_of(former))

    with contextlib.ExitStack() as on_error:
        on_error.callback(endpoint.close)
        held = on_error.enter_context(contextlib.ExitStack())
        # Before anything of it is read.
        claim = None if place is None else held.enter_context(place.locked())
        supervisor = Supervisor(make_pool, None if place is None else restart, held.close)
        on_error.callback(supervisor.abort)
        endpoint.start(supervisor)
        server = open_dashboard(page)
        on_error.pop_all()
    token = None if flight is None else token_of(flight.secret)
    return Service(spec, supervisor, token=token, checkpoint=place, page=server, metrics=endpoint)
