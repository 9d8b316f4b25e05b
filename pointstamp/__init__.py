"""Timely dataflow for Python, with its data pipeline on Apache Spark.

The names below are the public API. Each is imported when it is first used, so
`import pointstamp` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointstamp import compiled
from pointstamp.compiled import build_info as build_info

compiled.choose()

if TYPE_CHECKING:
    from pointstamp import checkpoint as checkpoint
    from pointstamp import errors as errors
    from pointstamp import graph as graph
    from pointstamp import observability as observability
    from pointstamp import spark as spark
    from pointstamp import testing as testing
    from pointstamp.collections.aggregates import avg as avg
    from pointstamp.collections.aggregates import bool_and as bool_and
    from pointstamp.collections.aggregates import bool_or as bool_or
    from pointstamp.collections.aggregates import count as count
    from pointstamp.collections.aggregates import count_distinct as count_distinct
    from pointstamp.collections.aggregates import max as max  # noqa: A004
    from pointstamp.collections.aggregates import min as min  # noqa: A004
    from pointstamp.collections.aggregates import stddev as stddev
    from pointstamp.collections.aggregates import sum as sum  # noqa: A004
    from pointstamp.collections.aggregates import var as var
    from pointstamp.collections.arranged import ArrangedCollection as ArrangedCollection
    from pointstamp.collections.changes import Changes as Changes
    from pointstamp.collections.changes import CollectionSnapshot as CollectionSnapshot
    from pointstamp.collections.changing_motifs import motifs as motifs
    from pointstamp.collections.clock_input import Clock as Clock
    from pointstamp.collections.clock_input import ClockHandle as ClockHandle
    from pointstamp.collections.clock_input import ClockInput as ClockInput
    from pointstamp.collections.collection import Collection as Collection
    from pointstamp.collections.collection import WindowedCollection as WindowedCollection
    from pointstamp.collections.delta_join import delta_join as delta_join
    from pointstamp.collections.delta_join import generic_join as generic_join
    from pointstamp.collections.exported_trace import TraceAsOf as TraceAsOf
    from pointstamp.collections.exported_trace import TraceHandle as TraceHandle
    from pointstamp.collections.expression import coalesce as coalesce
    from pointstamp.collections.expression import col as col
    from pointstamp.collections.expression import lit as lit
    from pointstamp.collections.expression import when as when
    from pointstamp.collections.inputs import AppendInput as AppendInput
    from pointstamp.collections.inputs import CollectionInput as CollectionInput
    from pointstamp.collections.linear_aggregates import linear_aggregate as linear_aggregate
    from pointstamp.collections.ordered_aggregates import collect_list as collect_list
    from pointstamp.collections.ordered_aggregates import collect_set as collect_set
    from pointstamp.collections.ordered_aggregates import first as first
    from pointstamp.collections.ordered_aggregates import last as last
    from pointstamp.collections.ordered_aggregates import max_by as max_by
    from pointstamp.collections.ordered_aggregates import median as median
    from pointstamp.collections.ordered_aggregates import min_by as min_by
    from pointstamp.collections.ordered_aggregates import mode as mode
    from pointstamp.collections.ordered_aggregates import product as product
    from pointstamp.collections.ordered_aggregates import quantile as quantile
    from pointstamp.collections.over import dense_rank as dense_rank
    from pointstamp.collections.over import lag as lag
    from pointstamp.collections.over import lead as lead
    from pointstamp.collections.over import rank as rank
    from pointstamp.collections.over import rolling as rolling
    from pointstamp.collections.over import row_number as row_number
    from pointstamp.collections.records import RecordCollection as RecordCollection
    from pointstamp.collections.upserts import UpsertHandle as UpsertHandle
    from pointstamp.collections.upserts import UpsertInput as UpsertInput
    from pointstamp.collections.view import View as View
    from pointstamp.communication.communicator import Communicator as Communicator
    from pointstamp.communication.event_sockets import Accept as Accept
    from pointstamp.communication.event_sockets import Connect as Connect
    from pointstamp.dataflow.capability import Capability as Capability
    from pointstamp.dataflow.capability_set import CapabilitySet as CapabilitySet
    from pointstamp.dataflow.connectors import Sink as Sink
    from pointstamp.dataflow.connectors import SinkContext as SinkContext
    from pointstamp.dataflow.connectors import Source as Source
    from pointstamp.dataflow.connectors import TransactionalSink as TransactionalSink
    from pointstamp.dataflow.error_policy import Failed as Failed
    from pointstamp.dataflow.event_loop import AsyncInput as AsyncInput
    from pointstamp.dataflow.handles import Input as Input
    from pointstamp.dataflow.handles import Output as Output
    from pointstamp.dataflow.notificator import Notificator as Notificator
    from pointstamp.dataflow.operator import OperatorInfo as OperatorInfo
    from pointstamp.dataflow.pact import Broadcast as Broadcast
    from pointstamp.dataflow.pact import Distribute as Distribute
    from pointstamp.dataflow.pact import Exchange as Exchange
    from pointstamp.dataflow.pact import Pipeline as Pipeline
    from pointstamp.dataflow.results import Err as Err
    from pointstamp.dataflow.results import Ok as Ok
    from pointstamp.dataflow.stash import Stash as Stash
    from pointstamp.formats.events import Events as Events
    from pointstamp.formats.events import Messages as Messages
    from pointstamp.formats.events import Progress as Progress
    from pointstamp.formats.file_sink import FileSink as FileSink
    from pointstamp.formats.file_source import FileSource as FileSource
    from pointstamp.formats.flight_source import FlightSource as FlightSource
    from pointstamp.formats.http_events import ServerSentEvent as ServerSentEvent
    from pointstamp.formats.http_events import ServerSentEventSource as ServerSentEventSource
    from pointstamp.formats.kafka_sink import KafkaSink as KafkaSink
    from pointstamp.formats.kafka_source import KafkaMessage as KafkaMessage
    from pointstamp.formats.kafka_source import KafkaSource as KafkaSource
    from pointstamp.formats.sql_sink import SqlSink as SqlSink
    from pointstamp.formats.sql_source import SqlSource as SqlSource
    from pointstamp.formats.webhooks import WebhookCall as WebhookCall
    from pointstamp.formats.webhooks import WebhookSource as WebhookSource
    from pointstamp.observability.dataflow_drawing import DataflowDrawing as DataflowDrawing
    from pointstamp.observability.log import Log as Log
    from pointstamp.operators.event_clock import EventClock as EventClock
    from pointstamp.operators.event_clock import TimestampClock as TimestampClock
    from pointstamp.operators.flow_control import Reading as Reading
    from pointstamp.operators.probe import Probe as Probe
    from pointstamp.operators.scope import Scope as Scope
    from pointstamp.operators.shared_input import SharedInput as SharedInput
    from pointstamp.operators.stream import Stream as Stream
    from pointstamp.operators.window_assigners import Sessions as Sessions
    from pointstamp.operators.window_assigners import Sliding as Sliding
    from pointstamp.operators.window_assigners import Tumbling as Tumbling
    from pointstamp.operators.window_assigners import Window as Window
    from pointstamp.operators.window_assigners import WindowResult as WindowResult
    from pointstamp.progress.line_timestamps import DateTime as DateTime
    from pointstamp.progress.line_timestamps import DateTimeUTC as DateTimeUTC
    from pointstamp.progress.line_timestamps import Duration as Duration
    from pointstamp.progress.line_timestamps import SignedInt as SignedInt
    from pointstamp.progress.timestamp import Int as Int
    from pointstamp.progress.timestamp import Product as Product
    from pointstamp.progress.timestamp import Timestamp as Timestamp
    from pointstamp.progress.timestamp import Unit as Unit
    from pointstamp.runtime.barrier import Barrier as Barrier
    from pointstamp.runtime.dashboards import Dashboard as Dashboard
    from pointstamp.runtime.execute import execute as execute
    from pointstamp.runtime.run_flow import run as run
    from pointstamp.runtime.run_results import RunResults as RunResults
    from pointstamp.runtime.run_worker import run_worker as run_worker
    from pointstamp.runtime.sequencer import Sequencer as Sequencer
    from pointstamp.runtime.simulate import simulate as simulate
    from pointstamp.runtime.worker import Worker as Worker
    from pointstamp.service.embedded import serve as serve
    from pointstamp.service.restart_policy import RestartPolicy as RestartPolicy
    from pointstamp.service.service import Service as Service

__version__ = "0.1.0"

_HOMES = {
    "View": "pointstamp.collections.view",
    "Clock": "pointstamp.collections.clock_input",
    "ClockHandle": "pointstamp.collections.clock_input",
    "AppendInput": "pointstamp.collections.inputs",
    "ClockInput": "pointstamp.collections.clock_input",
    "Collection": "pointstamp.collections.collection",
    "WindowedCollection": "pointstamp.collections.collection",
    "RecordCollection": "pointstamp.collections.records",
    "UpsertHandle": "pointstamp.collections.upserts",
    "UpsertInput": "pointstamp.collections.upserts",
    "CollectionInput": "pointstamp.collections.inputs",
    "ArrangedCollection": "pointstamp.collections.arranged",
    "TraceAsOf": "pointstamp.collections.exported_trace",
    "TraceHandle": "pointstamp.collections.exported_trace",
    "Changes": "pointstamp.collections.changes",
    "CollectionSnapshot": "pointstamp.collections.changes",
    "motifs": "pointstamp.collections.changing_motifs",
    "delta_join": "pointstamp.collections.delta_join",
    "generic_join": "pointstamp.collections.delta_join",
    "coalesce": "pointstamp.collections.expression",
    "col": "pointstamp.collections.expression",
    "lit": "pointstamp.collections.expression",
    "when": "pointstamp.collections.expression",
    "bool_and": "pointstamp.collections.aggregates",
    "bool_or": "pointstamp.collections.aggregates",
    "count": "pointstamp.collections.aggregates",
    "count_distinct": "pointstamp.collections.aggregates",
    "stddev": "pointstamp.collections.aggregates",
    "var": "pointstamp.collections.aggregates",
    "sum": "pointstamp.collections.aggregates",
    "avg": "pointstamp.collections.aggregates",
    "linear_aggregate": "pointstamp.collections.linear_aggregates",
    "min": "pointstamp.collections.aggregates",
    "max": "pointstamp.collections.aggregates",
    "collect_list": "pointstamp.collections.ordered_aggregates",
    "collect_set": "pointstamp.collections.ordered_aggregates",
    "first": "pointstamp.collections.ordered_aggregates",
    "last": "pointstamp.collections.ordered_aggregates",
    "max_by": "pointstamp.collections.ordered_aggregates",
    "median": "pointstamp.collections.ordered_aggregates",
    "min_by": "pointstamp.collections.ordered_aggregates",
    "mode": "pointstamp.collections.ordered_aggregates",
    "product": "pointstamp.collections.ordered_aggregates",
    "quantile": "pointstamp.collections.ordered_aggregates",
    "dense_rank": "pointstamp.collections.over",
    "lag": "pointstamp.collections.over",
    "lead": "pointstamp.collections.over",
    "rank": "pointstamp.collections.over",
    "rolling": "pointstamp.collections.over",
    "row_number": "pointstamp.collections.over",
    "AsyncInput": "pointstamp.dataflow.event_loop",
    "Barrier": "pointstamp.runtime.barrier",
    "Broadcast": "pointstamp.dataflow.pact",
    "Capability": "pointstamp.dataflow.capability",
    "CapabilitySet": "pointstamp.dataflow.capability_set",
    "EventClock": "pointstamp.operators.event_clock",
    "TimestampClock": "pointstamp.operators.event_clock",
    "Communicator": "pointstamp.communication.communicator",
    "Connect": "pointstamp.communication.event_sockets",
    "Dashboard": "pointstamp.runtime.dashboards",
    "DataflowDrawing": "pointstamp.observability.dataflow_drawing",
    "DateTime": "pointstamp.progress.line_timestamps",
    "DateTimeUTC": "pointstamp.progress.line_timestamps",
    "Distribute": "pointstamp.dataflow.pact",
    "Duration": "pointstamp.progress.line_timestamps",
    "Err": "pointstamp.dataflow.results",
    "Events": "pointstamp.formats.events",
    "Exchange": "pointstamp.dataflow.pact",
    "Failed": "pointstamp.dataflow.error_policy",
    "FileSink": "pointstamp.formats.file_sink",
    "FileSource": "pointstamp.formats.file_source",
    "FlightSource": "pointstamp.formats.flight_source",
    "KafkaMessage": "pointstamp.formats.kafka_source",
    "KafkaSink": "pointstamp.formats.kafka_sink",
    "KafkaSource": "pointstamp.formats.kafka_source",
    "ServerSentEvent": "pointstamp.formats.http_events",
    "ServerSentEventSource": "pointstamp.formats.http_events",
    "SqlSink": "pointstamp.formats.sql_sink",
    "SqlSource": "pointstamp.formats.sql_source",
    "WebhookCall": "pointstamp.formats.webhooks",
    "WebhookSource": "pointstamp.formats.webhooks",
    "Input": "pointstamp.dataflow.handles",
    "Int": "pointstamp.progress.timestamp",
    "Accept": "pointstamp.communication.event_sockets",
    "Log": "pointstamp.observability.log",
    "Messages": "pointstamp.formats.events",
    "Notificator": "pointstamp.dataflow.notificator",
    "Ok": "pointstamp.dataflow.results",
    "OperatorInfo": "pointstamp.dataflow.operator",
    "Output": "pointstamp.dataflow.handles",
    "Pipeline": "pointstamp.dataflow.pact",
    "Probe": "pointstamp.operators.probe",
    "Product": "pointstamp.progress.timestamp",
    "Progress": "pointstamp.formats.events",
    "Reading": "pointstamp.operators.flow_control",
    "Scope": "pointstamp.operators.scope",
    "Sequencer": "pointstamp.runtime.sequencer",
    "RunResults": "pointstamp.runtime.run_results",
    "RestartPolicy": "pointstamp.service.restart_policy",
    "Service": "pointstamp.service.service",
    "Sessions": "pointstamp.operators.window_assigners",
    "SharedInput": "pointstamp.operators.shared_input",
    "SignedInt": "pointstamp.progress.line_timestamps",
    "Sink": "pointstamp.dataflow.connectors",
    "SinkContext": "pointstamp.dataflow.connectors",
    "Sliding": "pointstamp.operators.window_assigners",
    "Source": "pointstamp.dataflow.connectors",
    "Stash": "pointstamp.dataflow.stash",
    "Stream": "pointstamp.operators.stream",
    "Timestamp": "pointstamp.progress.timestamp",
    "TransactionalSink": "pointstamp.dataflow.connectors",
    "Tumbling": "pointstamp.operators.window_assigners",
    "Unit": "pointstamp.progress.timestamp",
    "Window": "pointstamp.operators.window_assigners",
    "WindowResult": "pointstamp.operators.window_assigners",
    "Worker": "pointstamp.runtime.worker",
    "execute": "pointstamp.runtime.execute",
    "run": "pointstamp.runtime.run_flow",
    "run_worker": "pointstamp.runtime.run_worker",
    "serve": "pointstamp.service.embedded",
    "simulate": "pointstamp.runtime.simulate",
}
_MODULES = ("checkpoint", "errors", "graph", "observability", "spark", "testing")

__all__ = [*sorted(_HOMES), *_MODULES, "build_info"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"pointstamp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'pointstamp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
