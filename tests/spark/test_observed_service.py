"""What the driver shows of a service on Spark: metrics and telemetry of workers that are tasks."""

from __future__ import annotations

import time
from typing import Any

import pytest

import pointstamp as ps
import pointstamp.spark
from tests.metrics.scraping import PATIENCE_S, await_ready, get, scrape
from tests.metrics.telemetry_collected import EPOCH, PART, Collected

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def totals(scope: Any, sales: Any) -> Any:
    return sales.group_by("shop").agg(n=ps.count())


def test_the_driver_shows_what_the_tasks_count(spark: Any) -> None:
    collected = Collected()
    with pointstamp.spark.serve(
        totals,
        spark,
        2,
        collections={"sales": "shop long"},
        name="observed",
        metrics=0,
        telemetry=collected.telemetry(interval_s=0.05),
    ) as service:
        url = service.metrics_url
        assert url is not None
        await_ready(url)
        for epoch in range(3):
            service.input("sales").insert([(shop,) for shop in range(10 * (epoch + 1))])
            service.advance()
        service.output("result").snapshot(2)
        until = time.monotonic() + PATIENCE_S
        while scrape(url).sum("epoch_latency_seconds_count") < 6:
            assert time.monotonic() < until
        found = scrape(url)
        assert found.sum("stream_records_total", source="sales") == 60
        assert found.sum("workers_answering") == 2
        assert get(f"{url}/health")[0] == 200
    epochs = collected.spans(EPOCH)
    assert [each.attributes["pointstamp.epoch"] for each in epochs] == [0, 1, 2]
    assert [each.attributes["pointstamp.records"] for each in epochs] == [10, 20, 30]
    assert {each.attributes["pointstamp.program"] for each in epochs} == {"observed"}
    workers = [each.attributes["pointstamp.worker"] for each in collected.spans(PART)]
    assert sorted(workers) == [0, 0, 0, 1, 1, 1]
    assert collected.sum("stream_records", source="sales") == 60
    collected.tracer_provider.shutdown()
    collected.meter_provider.shutdown()
