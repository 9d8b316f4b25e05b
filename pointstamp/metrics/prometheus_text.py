"""The metrics of a program as OpenMetrics text, by prometheus_client.

`prometheus_client` writes what a collector gives it: here that is one sample, so that nothing is
kept between scrapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from pointstamp.metrics.families import (
    COUNTER,
    LATENCY,
    LATENCY_HELP,
    PROBE_LABELS,
    MetricFamily,
    ProgramFamilies,
    S,
)
from pointstamp.metrics.meters import LATENCY_BUCKETS_S
from pointstamp.metrics.program import ProgramSample

_BOUNDS = [*(repr(bound) for bound in LATENCY_BUCKETS_S), "+Inf"]


class PrometheusSample:
    """One scrape, as prometheus_client takes it: a collector of one sample."""

    def __init__(self, sample: ProgramSample, version: str) -> None:
        self._families = ProgramFamilies(sample)
        self._version = version

    def collect(self) -> Iterator[Metric]:
        """All metrics of which there are numbers."""
        info = InfoMetricFamily("pointstamp", "The version of Pointstamp.")
        info.add_metric([], {"version": self._version})
        yield info
        for family in self._families.all():
            if family.rows:
                yield _metric(family)
        latencies = HistogramMetricFamily(
            f"pointstamp_{LATENCY}", LATENCY_HELP, labels=PROBE_LABELS
        )
        for values, each in self._families.latencies():
            counts = zip(_BOUNDS, accumulate(each.buckets), strict=True)
            latencies.add_metric(values, list(counts), each.sum_ns * S)
        yield latencies


def _metric(family: MetricFamily) -> Metric:
    make = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
    found = make(f"pointstamp_{family.name}", family.what, labels=family.labels)
    for values, number in family.rows:
        found.add_metric(values, number)
    return found
