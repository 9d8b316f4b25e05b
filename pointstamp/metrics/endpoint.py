"""Where metrics are served: what `metrics=` is given, checked before any worker starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointstamp.errors import UsageError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class MetricsEndpoint:
    """Configures the metrics endpoint: `metrics=ps.observability.MetricsEndpoint()`.

    Parameters
    ----------
    port : int
        0 takes a free one.
    host : str
        The address to listen at; of this machine alone, unless another is given.
    announce : callable, optional
        Called with the URL, "http://127.0.0.1:9464", when it is served.
    """

    port: int = 0
    host: str = LOOPBACK
    announce: Callable[[str], object] | None = None

    def __post_init__(self) -> None:
        if type(self.port) is not int or not 0 <= self.port < 1 << 16:
            raise UsageError(f"metrics are served at a port from 0 to 65535, not at {self.port!r}")


def endpoint_of(metrics: Any) -> MetricsEndpoint | None:
    """The endpoint that is meant by `metrics=`; None for none.

    Raises
    ------
    UsageError
        For what is no port, no "HOST:PORT" and no endpoint.
    MissingExtraError
        If prometheus_client is not installed.

    >>> endpoint_of(9464).host, endpoint_of("0.0.0.0:9464").port, endpoint_of(None)
    ('127.0.0.1', 9464, None)
    """
    if metrics is None:
        return None
    endpoint = metrics
    if type(metrics) is int:
        endpoint = MetricsEndpoint(metrics)
    elif isinstance(metrics, str):
        host, colon, port = metrics.strip().rpartition(":")
        if port.isdecimal() and bool(host) == bool(colon):
            endpoint = MetricsEndpoint(int(port), host.strip("[]") or LOOPBACK)
    if not isinstance(endpoint, MetricsEndpoint):
        raise UsageError(
            f"metrics={metrics!r} is no place to serve them: give a port, such as 9464 (0 takes a "
            "free one), 'HOST:PORT', or a MetricsEndpoint"
        )
    # Not above: what starts workers imports nothing that it does not need.
    from pointstamp.formats.extras import require_extra

    require_extra("prometheus_client", "metrics", "metrics are written by prometheus_client")
    return endpoint
