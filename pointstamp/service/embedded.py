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

    Returns when the workers are ready. Leaving a `with` block over the service stops it
    when all that was sent is complete; after an exception it aborts. So does letting go of a
    service that was not stopped, with a `ResourceWarning`.

    Parameters
    ----------
    build : callable
        `build(scope, **inputs)` gets a stream of `pyarrow.RecordBatch` for each input, and
        returns a dict of streams, one for each output, or the stream itself where there
        is one output. Epochs are the times. It travels to the workers by cloudpickle.
    workers : int
        How many, each in a process of its own.
    inputs, outputs : mapping
        Of names to schemas: a `pyarrow.Schema`, or a dict of column names to types. Of streams.
    collections : mapping, optional
        Of names to schemas: inputs that are collections, as of `View`; or to a `ClockInput`, which
        may go by itself, with `every=`. `build` is given a `Collection` for each, or a `Clock`, and
        what it returns as collections are outputs, too, without being declared; a single one is
        called "result". `service.input(name)` has `insert`, `delete` and
        `update`, or `upsert` and `remove` where it is declared as an `UpsertInput`;
        `service.advance()` commits an epoch, and `service.output(name)` has `changes` and
        `snapshot`.
    threads : bool
        Run the workers as threads of this process instead, which share an interpreter, and
        have no Flight servers for other programs.
    certificates : Certificates, optional
        Have the Flight servers of the workers encrypt, and demand of every client a certificate
        of the same roots, besides the token (mutual TLS).
    checkpoint : path, URI or Checkpoint, optional
        A folder that commits are written to before they count. A service that begins with one
        admits again what was committed, with any number of workers, and its inputs go on
        where they were. One service at a time may use it.
    snapshot_every : int, optional
        After how many epochs to make a snapshot of the operators' state in the checkpoint, so
        that beginning again takes up that, and what was committed since. All operators with
        state must declare it; see `docs/state.md`. Without it, all epochs are worked off again.
    allow_missing, allow_new : collection of str
        Operators of the snapshot that the dataflow has no more, and such that it has anew.
    restart : RestartPolicy, optional
        With a checkpoint: how often the workers are started again when one is lost. Requests
        wait meanwhile, and the service goes on as if nothing had happened. None: it ends.
    memory_limit, spill_directory : optional
        How much of what waits each worker keeps in memory, in front of operators and of what is
        sent, and where the rest goes; see `execute`.
    dashboard : bool or Dashboard
        Serve a live page of the service to this machine for as long as it stays; see `execute`.
    metrics : int, str or MetricsEndpoint, optional
        Serve metrics for Prometheus at `/metrics` of a port, and `/health` and `/ready`; see
        `execute`. `service.metrics_url` is where.
    telemetry : bool or Telemetry
        Give traces and metrics to OpenTelemetry; see `execute`.

    Returns
    -------
    Service

    Raises
    ------
    BuildError
        If `build` cannot be called with these inputs.
    WorkerError
        If a worker fails to start, for one because `build` returns other outputs. Later,
        every method of the service raises it, with the first cause, when a worker has failed
        and is not started again.

    Notes
    -----
    An epoch's records enter whole, at `advance_to`. The workers keep the output until `discard`;
    without a checkpoint nothing outlasts them. `docs/service.md` says what lasts with one.

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
        config = checkpoint_config(place, snapshot_every, allow_missing, allow_new)
        return WorkerPool(spec, workers, config, flight and flight.at_ports_of(former))

    with contextlib.ExitStack() as on_error:
        on_error.callback(endpoint.close)
        supervisor = Supervisor(make_pool, None if place is None else restart)
        on_error.callback(supervisor.abort)
        endpoint.start(supervisor)
        server = open_dashboard(page)
        on_error.pop_all()
    token = None if flight is None else token_of(flight.secret)
    return Service(spec, supervisor, token=token, checkpoint=place, page=server, metrics=endpoint)
