"""The metrics of a service: shown from before its workers start until the service is over."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.metrics.endpoint import endpoint_of
from pointstamp.metrics.program import ENDED, RESTARTING, RUNNING, ProgramState
from pointstamp.metrics.telemetry import telemetry_of
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.supervisor import Supervisor

if TYPE_CHECKING:
    from pointstamp.metrics.observed import ObservedProgram


class ServiceMetrics:
    """What shows what the workers of a service count, if anything does.

    Parameters
    ----------
    metrics : int, str, MetricsEndpoint or None
        As `execute` takes it.
    n_workers : int
        How many workers there are.
    telemetry : bool or Telemetry
        As `execute` takes it.
    name : str
        What the program is called.
    """

    def __init__(
        self, metrics: Any, n_workers: int, telemetry: Any = None, name: str = "service"
    ) -> None:
        self._closers = contextlib.ExitStack()
        self._observed: ObservedProgram | None = None
        self._supervisor: Supervisor | None = None
        places = endpoint_of(metrics), telemetry_of(telemetry)
        if any(place is not None for place in places):
            # Not above: it needs what extras bring, and few services have metrics.
            from pointstamp.metrics.observed import observing

            shows = observing(*places, n_workers, None, self._state, name)
            self._observed = self._closers.enter_context(shows)

    def count(self, spec: ServiceSpec) -> ServiceSpec:
        """The same service, whose workers count what they do."""
        if self._observed is None:
            return spec
        return replace(spec, run_options={**spec.run_options, "log": self._observed.log})

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers, whose state is shown from here on."""
        self._supervisor = supervisor
        supervisor.start()

    @property
    def url(self) -> str | None:
        """Where they are, without the path; None if they are not served, or no more."""
        server = None if self._observed is None else self._observed.server
        return None if server is None else server.url

    def close(self) -> None:
        """Show them no more. Again does nothing."""
        self._observed = None
        self._closers.close()

    def abandon(self) -> None:
        """Show them no more, soon; called by the collector of garbage."""
        if self._observed is not None:
            self._observed.abandon()

    def _state(self) -> ProgramState:
        supervisor = self._supervisor
        if supervisor is None:
            return ProgramState()
        state = RESTARTING if supervisor.is_restarting else RUNNING
        error = ""
        if supervisor.termination.has_ended:
            state, error = ENDED, str(supervisor.termination.error or "it was stopped")
        return ProgramState(state, supervisor.n_restarts, error)
