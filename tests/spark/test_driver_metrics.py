"""Metrics of what runs on Spark: the driver serves them, and its tasks count."""

from __future__ import annotations

import atexit
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import pointstamp.spark
from pointstamp.errors import UsageError
from pointstamp.metrics.endpoint import MetricsEndpoint
from pointstamp.spark import driver_metrics
from tests.metrics.scraping import await_ready, get, say, scrape
from tests.spark.test_serve import serve
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

N = 1000


@pytest.fixture
def endpoint():
    """Where metrics are served, as often as it is said; nothing is served behind the test."""
    urls = []
    yield MetricsEndpoint(announce=urls.append), urls
    for served in driver_metrics._served.values():
        atexit.unregister(served.close)
        served.close()
    driver_metrics._served.clear()


def waits_for(done, name="Wait"):
    def build(scope, records):
        def wait(batch):
            while not done.exists():
                time.sleep(0.01)
            return batch

        return records.exchange("id").map_batches(wait, name=name)

    return build


def run(spark, build, workers=2, **options):
    records = spark.range(0, N, 1, workers)
    return pointstamp.spark.run(build, {"records": records}, "id long", workers, **options)


def test_the_driver_serves_what_the_tasks_of_a_run_count(spark, endpoint, tmp_path):
    place, urls = endpoint
    done = tmp_path / "done"
    frame = run(spark, waits_for(done), metrics=place)
    (url,) = urls
    assert get(f"{url}/health")[0] == 200
    assert get(f"{url}/ready")[0] == 503  # nothing computes yet
    before = scrape(url)
    assert (before.sum("workers"), before.sum("workers_answering")) == (2, 0)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(frame.toArrow)
        try:
            await_ready(url)
            sent = {"target": "Exchange"}
            # The input of each worker is one batch; that of one may wait behind the other's.
            wait_for(lambda: scrape(url).sum("stream_records_total", **sent) >= N / 2)
            found = scrape(url)
        finally:
            done.touch()
        assert running.result().num_rows == N
    assert found.sum("workers") == found.sum("workers_answering") == 2
    assert found.sum("stream_records_total", **sent) in (N / 2, N)
    for worker in "01":
        assert found.sum("worker_steps_total", worker=worker) > 0
    processes = {one.labels["process"] for one in found.all("process_resident_memory_bytes")}
    assert len(processes) == 2
    wait_for(lambda: scrape(url).sum("workers_answering") == 0)
    assert say(url, "health")["state"] == "running"


def test_runs_share_an_endpoint_which_has_that_which_computes(spark, endpoint, tmp_path):
    place, urls = endpoint
    goes = {name: tmp_path / name for name in ("First", "Second", "Other")}
    first, second = (
        run(spark, waits_for(goes[name], name), workers, metrics=place)
        for name, workers in (("First", 2), ("Second", 1))
    )
    other = run(spark, waits_for(goes["Other"], "Other"), 1)
    assert len(set(urls)) == 1 < len(urls)
    with ThreadPoolExecutor(3) as pool:
        try:
            # One that is not to be counted is not.
            pool.submit(other.count)
            for frame, name, n_workers in ((first, "First", 2), (second, "Second", 1)):
                running = pool.submit(frame.count)
                await_ready(urls[0])
                found = scrape(urls[0])
                assert found.sum("workers") == found.sum("workers_answering") == n_workers
                assert found.all("operator_activations_total", operator=name)
                assert not found.all("operator_activations_total", operator="Other")
                goes[name].touch()
                assert running.result() == N
                wait_for(lambda: scrape(urls[0]).sum("workers_answering") == 0)
        finally:
            for go in goes.values():
                go.touch()


def test_a_place_that_is_none_is_refused_before_anything_is_served(spark):
    with pytest.raises(UsageError, match="no place to serve them"):
        run(spark, lambda scope, records: records, metrics="here")
    assert not driver_metrics._served


def test_the_driver_serves_what_the_tasks_of_a_service_count(spark):
    with serve(spark, metrics=0) as service:
        url = service.metrics_url
        await_ready(url)
        service.input("numbers").send([{"n": n} for n in range(13)])
        service.input("numbers").advance_to(1)
        service.input("others").advance_to(1)
        service.output("all").collect(upto=0)
        found = scrape(url)
        assert found.sum("workers_answering") == 2
        assert found.sum("input_epoch", input="numbers", worker="0") == 1
        records = [
            one.value for one in found.all("stream_records_total", source="numbers") if one.value
        ]
        assert sum(records) % 13 == 0 < sum(records)
    with pytest.raises(OSError, match="refused"):
        get(f"{url}/health")
