"""What a run does with `metrics=`: it serves them, and has its workers count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.dataflow.logging_protocol import LoggerFactory


@contextmanager
def metered(
    metrics: Any, n_workers: int, log: LoggerFactory | None
) -> Iterator[LoggerFactory | None]:
    """Serve metrics during the block, if they are asked for; what the workers log to then.

    Raises
    ------
    UsageError
        If they cannot be served there.
    MissingExtraError
        If prometheus_client is not installed.
    """
    if metrics is None:
        yield log
        return
    # Not above: few programs have metrics, and others need nothing that they are made of.
    from pointstamp.metrics.endpoint import endpoint_of

    endpoint = endpoint_of(metrics)
    assert endpoint is not None  # as something was given
    from pointstamp.metrics.server import serving

    with serving(endpoint, n_workers, log) as (_, counted):
        yield counted
