"""Metrics of runs on Spark, which the driver serves: of the run whose workers are there.

A DataFrame of `run` may be computed at any time, and does not say when it will be no more. So what
serves its metrics begins with `run`, and stays until the program ends, as the control server does
over which the workers are asked. Runs that are given the same place share it; of two that compute
at once it has the one whose workers came last.
"""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Any

from pointstamp.communication import explanations
from pointstamp.metrics.endpoint import MetricsEndpoint, endpoint_of
from pointstamp.metrics.program import MeteredProgram, ProgramSample, ProgramState
from pointstamp.metrics.worker_meter import Metered

if TYPE_CHECKING:
    from pointstamp.communication.control import WorkerConfig
    from pointstamp.dataflow.logging_protocol import LoggerFactory

_lock = threading.Lock()
_served: dict[tuple[str, int], DriverMetrics] = {}
"""By the place that was asked for; port 0 is one, too."""


def metered_on_driver(
    metrics: Any, config: WorkerConfig, n_workers: int, log: LoggerFactory | None
) -> LoggerFactory:
    """Have the driver serve the metrics of a run; what its workers log to, so that they count.

    Raises
    ------
    UsageError
        If they cannot be served there.
    MissingExtraError
        If prometheus_client is not installed.
    """
    endpoint = endpoint_of(metrics)
    assert endpoint is not None  # as something was given
    place = endpoint.host, endpoint.port
    with _lock:
        served = _served.get(place)
        if served is None:
            served = _served[place] = DriverMetrics(endpoint)
            atexit.register(served.close)
        elif endpoint.announce is not None:
            endpoint.announce(served.url)
        served.add(config.group, n_workers)
    return Metered(config.group, log)


class DriverMetrics:
    """An endpoint for the metrics of runs on Spark; a `SampledProgram`.

    Parameters
    ----------
    endpoint : MetricsEndpoint
        Where.
    """

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        # Not above: it needs prometheus_client, of which the endpoint says where it is missing.
        from pointstamp.metrics.server import MetricsServer

        self._runs: dict[str, int] = {}
        """By the group of its workers, of how many a run is; that planned last is the last."""
        self._server = MetricsServer(endpoint, self)
        self.url = self._server.url

    def add(self, group: str, n_workers: int) -> None:
        """A run was planned."""
        self._runs[group] = n_workers

    def sample(self, timeout_s: float) -> ProgramSample:
        """What the workers of the run that computes have counted; without any, there is none."""
        group = self._computing()
        if group is None:
            n_workers = next(reversed(self._runs.values()), 0)
            return ProgramSample(n_workers, ProgramState(), ())
        return MeteredProgram(group, self._runs[group]).sample(timeout_s)

    def close(self) -> None:
        """Serve nothing more."""
        self._server.close()

    def _computing(self) -> str | None:
        """The run of the worker that connected last; None if none of ours is connected."""
        groups = [
            connection.group
            for server in explanations.servers()
            for connection in server.workers()
            if connection.group in self._runs
        ]
        return groups[-1] if groups else None
