"""Scrapes of services: their epochs, their checkpoints and their restarts."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import CommunicationError, UsageError
from tests.metrics.scraping import PATIENCE_S, await_ready, await_sums, get, say, scrape

N_EPOCHS, N_EACH = 4, 50


def sums(scope: ps.Scope, numbers: Any) -> Any:
    return numbers.group_by("key").agg(total=ps.sum("x"))


def pairs(scope: ps.Scope, numbers: Any) -> Any:
    return numbers.exchange("key").map_batches(lambda batch: batch)


def send(service: ps.Service) -> None:
    for epoch in range(N_EPOCHS):
        service.input("numbers").send([{"key": i, "x": epoch} for i in range(N_EACH)])
        service.input("numbers").advance_to(epoch + 1)
    service.probe.wait(N_EPOCHS - 1, PATIENCE_S)


SCHEMA = {"key": pa.int64(), "x": pa.int64()}


@pytest.mark.parametrize("options", [{"workers": 2}, {"workers": 2, "threads": True}])
def test_a_service_counts_what_it_was_sent(options: Any) -> None:
    with ps.serve(
        pairs, inputs={"numbers": SCHEMA}, outputs={"result": SCHEMA}, metrics=0, **options
    ) as service:
        url = service.metrics_url
        assert url is not None
        await_ready(url)
        send(service)
        # Worker 0 has seen the last epoch pass; the other hears of it later.
        found = await_sums(url, "epoch_latency_seconds_count", {"0": N_EPOCHS, "1": N_EPOCHS})
        assert say(url, "health")["state"] == "running"
    n_records = N_EPOCHS * N_EACH
    assert found.sum("stream_records_total", source="numbers") == n_records
    # Two columns of 64 bits.
    assert found.sum("stream_bytes_total", source="numbers") == n_records * 16
    for worker in "01":
        assert found.sum("input_epoch", worker=worker) == N_EPOCHS
        assert found.sum("probe_frontier", worker=worker) == N_EPOCHS
        assert found.sum("epoch_latency_seconds_count", worker=worker) == N_EPOCHS
    assert found.sum("restarts_total") == 0
    assert service.metrics_url is None
    with pytest.raises(OSError, match="refused"):
        get(f"{url}/health")


def test_snapshots_and_restarts_are_counted(tmp_path: Path) -> None:
    with ps.serve(
        sums,
        2,
        collections={"numbers": "key long, x long"},
        checkpoint=tmp_path,
        snapshot_every=2,
        restart=ps.RestartPolicy(delay_s=0.5),
        metrics=0,
    ) as service:
        url = service.metrics_url
        assert url is not None
        await_ready(url)
        for epoch in range(N_EPOCHS):
            service.input("numbers").insert([(i, epoch) for i in range(N_EACH)])
            service.advance()
        assert service.await_snapshot(1, PATIENCE_S)
        found = scrape(url)
        assert found.sum("checkpoint_snapshots_total") >= 1
        assert found.sum("checkpoint_epoch") >= 1
        assert found.sum("checkpoint_size_bytes") > 0
        assert 0 < found.sum("checkpoint_duration_seconds") < PATIENCE_S
        assert 0 <= found.sum("checkpoint_age_seconds") < PATIENCE_S
        (process, *_) = {
            int(sample.labels["process"]) for sample in found.all("process_resident_memory_bytes")
        }
        os.kill(process, signal.SIGKILL)
        until = time.monotonic() + PATIENCE_S
        while get(f"{url}/ready")[0] == 200:
            assert time.monotonic() < until
        assert get(f"{url}/health")[0] == 200
        await_ready(url)
        assert scrape(url).sum("restarts_total") == 1
        assert say(url, "ready")["restarts"] == 1
        service.input("numbers").insert([(0, 1)])
        service.output("result").snapshot(service.advance())


def test_a_service_that_has_failed_is_not_healthy() -> None:
    service = ps.serve(pairs, 2, inputs={"numbers": SCHEMA}, outputs={"result": SCHEMA}, metrics=0)
    try:
        url = service.metrics_url
        assert url is not None
        await_ready(url)
        process = scrape(url).all("process_resident_memory_bytes")[0].labels["process"]
        os.kill(int(process), signal.SIGKILL)
        until = time.monotonic() + PATIENCE_S
        while get(f"{url}/health")[0] == 200:
            assert time.monotonic() < until
        assert "killed" in say(url, "health")["error"]
        with pytest.raises(ps.errors.WorkerError, match="killed"):
            service.status()
    finally:
        service.abort()
    with pytest.raises(OSError, match="refused"):
        get(f"{url}/health")


def test_a_service_that_does_not_start_serves_no_metrics() -> None:
    options: Any = {"inputs": {"numbers": SCHEMA}, "outputs": {"result": SCHEMA}, "metrics": 0}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = ps.Dashboard(port=taken.getsockname()[1])
        for wrong in ({"snapshot_every": 5}, {"dashboard": page}):
            with pytest.raises((UsageError, CommunicationError)):
                ps.serve(pairs, threads=True, **options, **wrong)
            assert not [t for t in threading.enumerate() if t.name == "pointstamp-metrics"]


def test_an_abandoned_service_serves_no_metrics() -> None:
    service = ps.serve(
        pairs, threads=True, inputs={"numbers": SCHEMA}, outputs={"result": SCHEMA}, metrics=0
    )
    url = service.metrics_url
    with pytest.warns(ResourceWarning, match="never stopped"):  # noqa: PT031
        del service
        gc.collect()
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            get(f"{url}/health")
        except (OSError, HTTPException):  # it may end in the middle of an answer
            break
        assert time.monotonic() < until
