"""The metrics of a service: served from before its workers start until the service is over."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.metrics.endpoint import endpoint_of
from pointstamp.metrics.program import ENDED, RESTARTING, RUNNING, ProgramState
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.supervisor import Supervisor

if TYPE_CHECKING:
    from pointstamp.metrics.server import MetricsServer


class ServiceMetrics:
    """What serves the metrics of a service, if anything does.

    Parameters
    ----------
    metrics : int, str, MetricsEndpoint or None
        As `execute` takes it.
    n_workers : int
        How many workers there are.
    """

    def __init__(self, metrics: Any, n_workers: int) -> None:
        self._closers = contextlib.ExitStack()
        self._server: MetricsServer | None = None
        self._supervisor: Supervisor | None = None
        self._log: Any = None
        endpoint = endpoint_of(metrics)
        if endpoint is not None:
            # Not above: it needs prometheus_client, and few services have metrics.
            from pointstamp.metrics.server import serving

            serves = serving(endpoint, n_workers, None, self._state)
            self._server, self._log = self._closers.enter_context(serves)

    def count(self, spec: ServiceSpec) -> ServiceSpec:
        """The same service, whose workers count what they do."""
        if self._log is None:
            return spec
        return replace(spec, run_options={**spec.run_options, "log": self._log})

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers; closes the endpoint if they do not start."""
        self._supervisor = supervisor
        try:
            supervisor.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str | None:
        """Where they are, without the path; None if they are not served, or no more."""
        return None if self._server is None else self._server.url

    def close(self) -> None:
        """Serve them no more. Again does nothing."""
        self._server = None
        self._closers.close()

    def abandon(self) -> None:
        """Serve them no more, soon; called by the collector of garbage."""
        if self._server is not None:
            self._server.abandon()

    def _state(self) -> ProgramState:
        supervisor = self._supervisor
        if supervisor is None:
            return ProgramState()
        state = RESTARTING if supervisor.is_restarting else RUNNING
        error = ""
        if supervisor.termination.has_ended:
            state, error = ENDED, str(supervisor.termination.error or "it was stopped")
        return ProgramState(state, supervisor.n_restarts, error)
