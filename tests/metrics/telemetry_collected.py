"""OpenTelemetry's in-memory exporters, and what they were given."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pointstamp.observability import Telemetry

EPOCH, PART, SNAPSHOT = "pointstamp.epoch", "pointstamp.epoch.worker", "pointstamp.snapshot"


class Collected:
    """Providers that keep what they are given, and what that is."""

    def __init__(self, sampler: Any = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def telemetry(self, **options: Any) -> Telemetry:
        return Telemetry(self.tracer_provider, self.meter_provider, **options)

    def spans(self, name: str) -> list[ReadableSpan]:
        found = [each for each in self.exporter.get_finished_spans() if each.name == name]
        return sorted(found, key=lambda each: (each.start_time, each.end_time))

    def points(self, name: str) -> list[Any]:
        """The data points of a metric that are there now."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == f"pointstamp.{name}"
            for point in metric.data.data_points
        ]

    def names(self) -> set[str]:
        """Of the metrics that are there now."""
        data = self.reader.get_metrics_data()
        return {
            metric.name
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def sum(self, name: str, **attributes: str) -> float:
        found = [
            point.value
            for point in self.points(name)
            if attributes.items() <= dict(point.attributes).items()
        ]
        assert found, f"no {name} with {attributes}"
        return sum(found)
