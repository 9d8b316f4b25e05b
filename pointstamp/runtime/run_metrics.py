"""What a run does with `metrics=` and `telemetry=`: it has its workers count, and shows that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.dataflow.logging_protocol import LoggerFactory


@contextmanager
def metered(
    metrics: Any, telemetry: Any, n_workers: int, log: LoggerFactory | None, name: str
) -> Iterator[LoggerFactory | None]:
    """Show what workers count during the block, if that is asked for; what they log to then.

    Raises
    ------
    UsageError
        If it cannot be served there, or is asked for in another way.
    MissingExtraError
        If prometheus_client is not installed, or the API of OpenTelemetry.
    """
    if metrics is None and (telemetry is None or telemetry is False):
        yield log
        return
    # Not above: few programs have any, and others need nothing that they are made of.
    from pointstamp.metrics.endpoint import endpoint_of
    from pointstamp.metrics.observed import observing
    from pointstamp.metrics.telemetry import telemetry_of

    places = endpoint_of(metrics), telemetry_of(telemetry)
    with observing(*places, n_workers, log, name=name) as observed:
        yield observed.log
