"""What a program has around its workers where it is observed: an endpoint, telemetry, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from pointstamp.dataflow.logging_protocol import LoggerFactory
from pointstamp.metrics.endpoint import MetricsEndpoint
from pointstamp.metrics.program import MeteredProgram, ProgramState
from pointstamp.metrics.telemetry import Telemetry
from pointstamp.metrics.worker_meter import Metered

if TYPE_CHECKING:
    from pointstamp.metrics.exporting import TelemetryExport
    from pointstamp.metrics.server import MetricsServer


class ObservedProgram:
    """The endpoint and the telemetry of a program, and what its workers are to count in.

    Attributes
    ----------
    log : Metered
        What to give the workers as their log.
    server : MetricsServer, optional
    export : TelemetryExport, optional
    """

    def __init__(
        self,
        log: Metered,
        server: MetricsServer | None,
        export: TelemetryExport | None,
    ) -> None:
        self.log = log
        self.server = server
        self.export = export

    def abandon(self) -> None:
        """End both soon; takes no lock, so that the collector of garbage may call it."""
        for each in (self.server, self.export):
            if each is not None:
                each.abandon()


@contextmanager
def observing(
    endpoint: MetricsEndpoint | None,
    telemetry: Telemetry | None,
    n_workers: int,
    log: LoggerFactory | None,
    state: Callable[[], ProgramState] = ProgramState,
    name: str = "program",
) -> Iterator[ObservedProgram]:
    """Serve the metrics of workers during the block, and give them to OpenTelemetry.

    Each is imported where it is asked for: it is made of what an extra brings.
    """
    metered = Metered(uuid4().hex, log, telemetry is not None)
    program = MeteredProgram(metered.run, n_workers, state)
    server = export = None
    with ExitStack() as stack:
        if endpoint is not None:
            from pointstamp.metrics.server import MetricsServer

            server = stack.enter_context(closing(MetricsServer(endpoint, program)))
        if telemetry is not None:
            from pointstamp.metrics.exporting import TelemetryExport

            export = stack.enter_context(closing(TelemetryExport(telemetry, program, name)))
        yield ObservedProgram(metered, server, export)
