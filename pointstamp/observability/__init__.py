"""Event logs of workers, summaries and traces of them, metrics and telemetry.

With `ps.execute(main, log=ps.Log("run.log"))` every worker logs what it does, as
streams of typed events (`event_types.py`): `pointstamp log run.log` summarizes them, `read`
returns them as columns, and a dataflow on the same worker can read them as they happen
(`Scope.log_stream`).
"""

from pointstamp.metrics.endpoint import MetricsEndpoint as MetricsEndpoint
from pointstamp.metrics.telemetry import Telemetry as Telemetry
from pointstamp.observability.event_types import EVENTS as EVENTS
from pointstamp.observability.event_types import EventType as EventType
from pointstamp.observability.json_format import JsonFormatter as JsonFormatter
from pointstamp.observability.log import Log as Log
from pointstamp.observability.reading import LoggedRun as LoggedRun
from pointstamp.observability.reading import read as read
from pointstamp.observability.summary import summarize as summarize

__all__ = [
    "EVENTS",
    "EventType",
    "JsonFormatter",
    "Log",
    "LoggedRun",
    "MetricsEndpoint",
    "Telemetry",
    "read",
    "summarize",
]
