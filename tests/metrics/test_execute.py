"""Scrapes of programs: all that is counted, on one worker, threads and processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import pointstamp as ps
from tests.metrics.scraping import await_ready, executing, scrape, wait_for

N_EPOCHS, N_EACH = 5, 100


def rounds(worker: ps.Worker, folder: Path) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.map(lambda x: x + 1).exchange().probe()
    for epoch in range(N_EPOCHS):
        for x in range(N_EACH):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    (folder / f"worked-{worker.index}").touch()
    wait_for(worker, folder / "go on")


CARRIERS = {
    "one": {"workers": 1},
    "threads": {"workers": 2, "threads": True},
    "processes": {"workers": 2},
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_is_scraped_agrees_with_what_was_sent(carrier: str, tmp_path: Path) -> None:
    options = CARRIERS[carrier]
    n_workers = options["workers"]
    with executing(rounds, tmp_path, **options) as url:
        try:
            await_ready(url)
            while len(list(tmp_path.glob("worked-*"))) < n_workers:
                pass
            found = scrape(url)
        finally:
            (tmp_path / "go on").touch()
    n_records = N_EPOCHS * N_EACH * n_workers
    for source, target in (("numbers", "Map"), ("Map", "Exchange"), ("Exchange", "Probe")):
        labels = {"source": source, "target": target, "dataflow": "rounds"}
        assert found.sum("stream_records_total", **labels) == n_records
        assert found.sum("stream_taken_records_total", **labels) == n_records
        assert found.sum("stream_batches_total", **labels) >= N_EPOCHS * n_workers
        assert found.sum("stream_bytes_total", **labels) > 8 * n_records
    assert len(found.all("operator_activations_total")) == 4 * n_workers
    assert found.sum("operator_activations_total", operator="Map") >= N_EPOCHS * n_workers
    assert found.sum("operator_seconds_total", operator="Map") > 0
    for worker in map(str, range(n_workers)):
        assert found.sum("input_epoch", input="numbers", worker=worker) == N_EPOCHS
        assert found.sum("probe_frontier", probe="Probe", worker=worker) == N_EPOCHS
        assert found.sum("probe_lag_epochs", probe="Probe", worker=worker) == 0
        assert found.sum("epoch_latency_seconds_count", worker=worker) == N_EPOCHS
        assert found.sum("epoch_latency_seconds_bucket", worker=worker, le="+Inf") == N_EPOCHS
        assert found.sum("worker_steps_total", worker=worker) > 0
    assert found.sum("workers") == found.sum("workers_answering") == n_workers
    assert found.sum("process_resident_memory_bytes") > 1e6
