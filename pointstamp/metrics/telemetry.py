"""What `telemetry=` is given: OpenTelemetry for a program, checked before any worker starts.

Everything goes through the API of OpenTelemetry, to the providers of the program that asks for it.
What is exported, how and to where is theirs; nothing here opens a socket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pointstamp.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


@dataclass(frozen=True)
class Telemetry:
    """Configures OpenTelemetry traces and metrics: `telemetry=ps.observability.Telemetry()`.

    Parameters
    ----------
    tracer_provider : TracerProvider, optional
        What gives spans; the global one if not given.
    meter_provider : MeterProvider, optional
        What gives instruments; likewise.
    name : str, optional
        The program, as an attribute of all spans and metrics; what it runs if not given.
    interval_s : float
        How often the workers are asked what they have counted, and which epochs have ended.
    most_epochs : int
        Of the epochs that have ended in an interval, the slowest so many have spans.
    """

    tracer_provider: TracerProvider | None = field(default=None, repr=False)
    meter_provider: MeterProvider | None = field(default=None, repr=False)
    name: str | None = None
    interval_s: float = 1.0
    most_epochs: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.interval_s, (int, float)) or not self.interval_s > 0:
            raise UsageError(
                f"telemetry asks the workers every interval_s seconds, not every "
                f"{self.interval_s!r}: give a number above 0"
            )
        if type(self.most_epochs) is not int or self.most_epochs < 0:
            raise UsageError(
                f"most_epochs is how many epochs of an interval have spans, 0 or more, not "
                f"{self.most_epochs!r}"
            )
        if self.name is not None and (type(self.name) is not str or not self.name):
            raise UsageError(f"telemetry has the name of a program, a text, not {self.name!r}")


def telemetry_of(telemetry: Any) -> Telemetry | None:
    """What is meant by `telemetry=`; None for none.

    Raises
    ------
    UsageError
        For what is neither a bool nor a `Telemetry`.
    MissingExtraError
        If the API of OpenTelemetry is not installed.

    >>> telemetry_of(False), telemetry_of(True).interval_s, telemetry_of(Telemetry(name="a")).name
    (None, 1.0, 'a')
    """
    if telemetry is None or telemetry is False:
        return None
    found = Telemetry() if telemetry is True else telemetry
    if not isinstance(found, Telemetry):
        raise UsageError(
            f"telemetry={telemetry!r} is none: give True, or ps.observability.Telemetry(...)"
        )
    # Not above: what starts workers imports nothing that it does not need.
    from pointstamp.formats.extras import require_extra

    require_extra(
        "opentelemetry.metrics", "telemetry", "telemetry goes through the API of OpenTelemetry"
    )
    return found
