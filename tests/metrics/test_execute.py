"""Scrapes of programs: all that is counted, on one worker, threads and processes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.communication.single import SingleCommunicator
from pointstamp.metrics.worker_meter import MOST_DATAFLOWS
from pointstamp.observability import MetricsEndpoint
from tests.metrics.scraping import await_files, await_ready, executing, get, say, scrape, wait_for

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


CARRIERS: dict[str, Any] = {
    "one": {"workers": 1},
    "threads": {"workers": 2, "threads": True},
    "processes": {"workers": 2},
}

EACH = ["one", "threads", pytest.param("processes", marks=pytest.mark.once)]


@pytest.mark.parametrize("carrier", EACH)
def test_what_is_scraped_agrees_with_what_was_sent(carrier: str, tmp_path: Path) -> None:
    options = CARRIERS[carrier]
    n_workers = options["workers"]
    with executing(rounds, tmp_path, **options) as url:
        try:
            await_ready(url)
            await_files(tmp_path, "worked-*", n_workers)
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


@pytest.mark.parametrize("carrier", EACH)
def test_it_is_ready_when_all_workers_are_and_not_before(carrier: str, tmp_path: Path) -> None:
    options = CARRIERS[carrier]
    n_workers = options["workers"]
    early: list[tuple[int, str, str]] = []

    def build_late(worker: ps.Worker, folder: Path) -> None:
        # The last worker builds nothing before it may.
        if worker.index == worker.peers - 1:
            wait_for(worker, folder / "build")
        with worker.dataflow("late") as scope:
            scope.to_stream([1]).exchange().probe()
        wait_for(worker, folder / "go on")

    # When the endpoint is announced, no worker has been started.
    early_announce = lambda url: early.append(get(f"{url}/ready"))  # noqa: E731
    with executing(build_late, tmp_path, before=early_announce, **options) as url:
        try:
            status, _, text = early[0]
            assert status == 503
            assert json.loads(text)["answering"] == []
            while len(say(url, "ready")["answering"]) < n_workers:
                pass
            for _ in range(3):
                assert get(f"{url}/ready")[0] == 503
                assert get(f"{url}/health")[0] == 200
            assert scrape(url).sum("ready") == 0
            (tmp_path / "build").touch()
            await_ready(url)
            found = scrape(url)
            assert found.sum("ready") == 1
            assert say(url, "ready")["answering"] == list(range(n_workers))
        finally:
            (tmp_path / "build").touch()
            (tmp_path / "go on").touch()


def test_a_worker_may_keep_a_log_as_well(tmp_path: Path) -> None:
    log = ps.Log(tmp_path / "run.log")
    with executing(rounds, tmp_path, workers=2, log=log) as url:
        try:
            await_ready(url)
            await_files(tmp_path, "worked-*", 2)
            found = scrape(url)
        finally:
            (tmp_path / "go on").touch()
    summary = ps.observability.summarize(ps.observability.read(tmp_path / "run.log"))
    logged = {(each.source, each.target): each for each in summary.channels}
    for (source, target), channel in logged.items():
        labels = {"source": source, "target": target}
        assert found.sum("stream_records_total", **labels) == channel.records
        assert found.sum("stream_batches_total", **labels) == channel.batches
        assert found.sum("stream_taken_records_total", **labels) == channel.received
    operators = {each.name: each for each in summary.operators if each.kind == "operator"}
    for name in ("numbers", "Map", "Exchange", "Probe"):
        n = found.sum("operator_activations_total", operator=name)
        # Some more since, as inputs were closed.
        assert 0 < n <= operators[name].activations


@pytest.mark.once
def test_columns_broadcasts_and_what_is_dropped_are_counted(tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow("columns") as scope:
            batch = pa.RecordBatch.from_pydict({"x": pa.array(range(1000), pa.int64())})
            scope.batches_to_stream([batch]).broadcast(name="All").probe(name="End")
            scope.to_stream(["1", "one", "2"]).map(int, on_error="drop", name="Parse")
        worker.step_while(lambda: worker.has_dataflows)
        (folder / f"worked-{worker.index}").touch()
        wait_for(worker, folder / "go on")

    with executing(build, tmp_path, workers=2) as url:
        try:
            await_ready(url)
            await_files(tmp_path, "worked-*", 2)
            found = scrape(url)
        finally:
            (tmp_path / "go on").touch()
    # Each of two workers sends its 1000 to both.
    assert found.sum("stream_records_total", target="All") == 4000
    assert found.sum("stream_bytes_total", target="All") == 4000 * 8
    assert found.sum("stream_taken_records_total", target="End") == 4000
    assert found.sum("dropped_records_total", operator="Parse") == 2
    assert found.sum("dataflow_complete", dataflow="columns") == 2
    assert found.sum("probe_done", probe="End") == 2


def test_an_input_ahead_of_a_probe_is_its_lag(tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path) -> None:
        held: list[Any] = []

        def keep(capability: Any, info: Any) -> Any:
            capability.drop()

            def logic(input: Any, output: Any) -> None:
                for at, _ in input:
                    if at.time == 2:
                        held.append(at.retain())

            return logic

        with worker.dataflow("held") as scope:
            input, stream = scope.new_input("numbers")
            stream.unary_frontier(ps.Pipeline(), "Keep", keep).probe(name="End")
        for epoch in range(5):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step()
        while worker.has_work:
            worker.step()
        (folder / "worked").touch()
        wait_for(worker, folder / "go on")
        held.pop().drop()

    with executing(build, tmp_path) as url:
        try:
            await_files(tmp_path, "worked", 1)
            first = scrape(url)
            assert first.sum("input_epoch") == 5
            assert first.sum("probe_frontier", probe="End") == 2
            assert first.sum("probe_lag_epochs", probe="End") == 3
            assert first.sum("epoch_latency_seconds_count") == 2
            assert scrape(url).sum("probe_lag_seconds") > first.sum("probe_lag_seconds") > 0
        finally:
            (tmp_path / "go on").touch()


@pytest.mark.once
def test_sources_that_are_held_back_are_timed(tmp_path: Path) -> None:
    """Also those of a dataflow that has begun and ended since the last scrape."""

    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow("slow") as scope:
            stream = scope.batches_to_stream([["x" * 1000] * 1000] * 12)
            slowly = stream.exchange(to=lambda _: 1).inspect_batch(lambda *_: time.sleep(0.002))
            slowly.probe()
        worker.run()
        (folder / f"worked-{worker.index}").touch()
        wait_for(worker, folder / "go on")

    with executing(build, tmp_path, workers=2, in_flight_bytes=100_000) as url:
        try:
            await_files(tmp_path, "worked-*", 2)
            found = scrape(url)
            assert found.sum("backpressure_seconds_total", worker="0") > 0
        finally:
            (tmp_path / "go on").touch()


def test_what_a_budget_holds_and_spills_is_there(tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).probe()
        wait_for(worker, folder / "go on")

    with executing(build, tmp_path, memory_limit="1MB") as url:
        try:
            await_ready(url)
            found = scrape(url)
            assert found.sum("worker_held_bytes") >= 0
            assert found.sum("worker_spilled_bytes_total") == 0
        finally:
            (tmp_path / "go on").touch()


def test_the_eldest_of_many_complete_dataflows_are_let_go_of(tmp_path: Path) -> None:
    n = 3 * MOST_DATAFLOWS

    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow("stays") as scope:
            input, _ = scope.new_input()
        for number in range(n):
            with worker.dataflow(f"short {number}") as scope:
                scope.to_stream([1]).exchange().probe()
            worker.run(scope)
        (folder / "worked").touch()
        wait_for(worker, folder / "go on")
        input.close()

    with executing(build, tmp_path) as url:
        try:
            await_files(tmp_path, "worked", 1)
            found = scrape(url)
        finally:
            (tmp_path / "go on").touch()
    names = [sample.labels["dataflow"] for sample in found.all("dataflow_complete")]
    assert MOST_DATAFLOWS < len(names) <= 2 * MOST_DATAFLOWS + 1
    assert {"stays", f"short {n - 1}"} <= {*names}
    assert "short 0" not in names


def test_two_programs_of_a_process_are_told_apart(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    with (
        executing(rounds, tmp_path, workers=2, threads=True) as first,
        executing(rounds, others) as second,
    ):
        try:
            await_ready(first)
            await_ready(second)
            assert scrape(first).sum("workers_answering") == 2
            assert scrape(second).sum("workers_answering") == 1
        finally:
            (tmp_path / "go on").touch()
            (others / "go on").touch()


def test_a_worker_of_its_own_serves_its_metrics(tmp_path: Path) -> None:
    urls: list[str] = []
    found: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("alone") as scope:
            scope.to_stream([1, 2]).probe()
        worker.run()
        found.append(scrape(urls[0]))

    ps.run_worker(SingleCommunicator(), main, metrics=MetricsEndpoint(announce=urls.append))
    assert found[0].sum("stream_records_total", dataflow="alone") == 2


def test_scopes_in_scopes_have_addresses_of_their_own(tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow("collatz") as scope:
            numbers = scope.to_stream([6]).exchange()
            with scope.iterative(name="loop") as inner:
                loop, again = inner.feedback(1)
                done, rest = numbers.enter(inner).concat(again).branch(lambda x: x != 1)
                loop.connect(rest.map(lambda x: x // 2 if x % 2 == 0 else 3 * x + 1, name="Step"))
                ended = done.leave()
            ended.probe(name="End")
        worker.step_while(lambda: worker.has_dataflows)
        (folder / f"worked-{worker.index}").touch()
        wait_for(worker, folder / "go on")

    with executing(build, tmp_path, workers=2) as url:
        try:
            await_files(tmp_path, "worked-*", 2)
            found = scrape(url)
        finally:
            (tmp_path / "go on").touch()
    # 6, 3, 10, 5, 16, 8, 4, 2, 1: eight steps, of each of two workers.
    assert found.sum("stream_taken_records_total", target="Step") == 16
    assert found.sum("stream_records_total", target="End") == 2
    (address,) = {
        each.labels["address"] for each in found.all("operator_seconds_total", operator="Step")
    }
    assert address.count("/") == 2
    # Rounds are no epochs: the probe outside has one, that of the only time.
    assert found.sum("probe_done", probe="End") == 2
