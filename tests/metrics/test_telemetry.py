"""Traces and metrics by OpenTelemetry, as its in-memory exporters get them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import pointstamp as ps
from pointstamp.communication.single import SingleCommunicator
from pointstamp.errors import MissingExtraError, UsageError
from pointstamp.formats import extras
from pointstamp.observability import Telemetry
from tests.metrics.scraping import PATIENCE_S, await_files, executing, scrape, wait_for
from tests.metrics.telemetry_collected import EPOCH, PART, SNAPSHOT, Collected

N_EPOCHS, N_EACH = 5, 100


@pytest.fixture
def collected() -> Any:
    found = Collected()
    yield found
    found.tracer_provider.shutdown()
    found.meter_provider.shutdown()


def rounds(worker: ps.Worker) -> None:
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.map(lambda x: x + 1).exchange().probe()
    for epoch in range(N_EPOCHS):
        for x in range(N_EACH * (worker.index + 1)):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


CARRIERS: dict[str, Any] = {
    "one": {"workers": 1},
    "threads": {"workers": 2, "threads": True},
    "processes": {"workers": 2},
}


@pytest.mark.parametrize("interval_s", [60.0, 0.005])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_each_epoch_is_a_trace_with_a_span_for_each_worker(
    collected: Collected, carrier: str, interval_s: float
) -> None:
    options = CARRIERS[carrier]
    n_workers = options["workers"]
    began_ns = time.time_ns()
    ps.execute(rounds, telemetry=collected.telemetry(interval_s=interval_s), **options)
    ended_ns = time.time_ns()
    epochs = collected.spans(EPOCH)
    assert [each.attributes["pointstamp.epoch"] for each in epochs] == [*range(N_EPOCHS)]
    parts = defaultdict(list)
    for part in collected.spans(PART):
        parts[part.parent.span_id].append(part)
    assert len({each.context.trace_id for each in epochs}) == N_EPOCHS
    assert parts.keys() == {each.context.span_id for each in epochs}
    for each in epochs:
        assert each.parent is None
        assert began_ns <= each.start_time < each.end_time <= ended_ns
        assert each.attributes["pointstamp.dataflow"] == "rounds"
        assert each.attributes["pointstamp.probe"] == "Probe"
        assert each.attributes["pointstamp.program"] == "rounds"
        assert each.attributes["pointstamp.workers"] == n_workers
        own = parts[each.context.span_id]
        by_worker = {part.attributes["pointstamp.worker"]: part for part in own}
        assert by_worker.keys() == {*range(n_workers)}
        records = {index: N_EACH * (index + 1) for index in by_worker}
        assert {i: p.attributes["pointstamp.records"] for i, p in by_worker.items()} == records
        assert each.attributes["pointstamp.records"] == sum(records.values())
        assert each.start_time == min(part.start_time for part in own)
        assert each.end_time == max(part.end_time for part in own)
        for part in own:
            assert part.context.trace_id == each.context.trace_id
            assert part.attributes["pointstamp.epoch"] == each.attributes["pointstamp.epoch"]
            (left,) = part.events
            assert part.start_time <= left.timestamp <= part.end_time


@pytest.mark.parametrize("carrier", CARRIERS)
def test_metrics_have_the_numbers_of_the_end(collected: Collected, carrier: str) -> None:
    options = CARRIERS[carrier]
    n_workers = options["workers"]
    ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0), **options)
    n_records = N_EPOCHS * N_EACH * sum(range(1, n_workers + 1))
    for source, target in (("numbers", "Map"), ("Map", "Exchange"), ("Exchange", "Probe")):
        where = {"source": source, "target": target, "dataflow": "rounds", "program": "rounds"}
        assert collected.sum("stream_records", **where) == n_records
        assert collected.sum("stream_taken_records", **where) == n_records
    assert collected.sum("operator_activations", operator="Map") >= N_EPOCHS
    assert collected.sum("operator_seconds", operator="Map") > 0
    assert collected.sum("workers") == collected.sum("workers_answering") == n_workers
    latencies = collected.points("epoch_latency_seconds")
    assert {point.attributes["worker"] for point in latencies} == {*map(str, range(n_workers))}
    for point in latencies:
        assert point.count == N_EPOCHS
        assert 0 < point.sum < PATIENCE_S
        assert 0.0001 in point.explicit_bounds


def test_metrics_are_those_of_the_endpoint(collected: Collected, tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path) -> None:
        with worker.dataflow("both") as scope:
            input, stream = scope.new_input("numbers")
            probe = stream.exchange().probe()
        input.send_batch([1] * 10)
        input.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))  # so long may something come from the other
        (folder / f"worked-{worker.index}").touch()
        wait_for(worker, folder / "go on")

    options = {"workers": 2, "telemetry": collected.telemetry(interval_s=0.02)}
    with executing(build, tmp_path, **options) as url:
        try:
            await_files(tmp_path, "worked-*", 2)
            scraped = scrape(url)
            of_endpoint = {
                each.name.removesuffix("_total").removesuffix("_bucket").removesuffix("_count")
                for each in scraped.samples
            }
            exported = {name.replace("pointstamp_", "pointstamp.", 1) for name in of_endpoint}
            exported -= {"pointstamp.info", "pointstamp.epoch_latency_seconds_sum"}
            until = time.monotonic() + PATIENCE_S
            while True:
                found = {
                    (point.attributes["source"], point.attributes["worker"]): point.value
                    for point in collected.points("stream_records")
                }
                wanted = {
                    (each.labels["source"], each.labels["worker"]): each.value
                    for each in scraped.all("stream_records_total")
                }
                names = collected.names()  # each is there when it was first observed
                if found == wanted and exported <= names:
                    break
                assert time.monotonic() < until, (found, wanted, exported - names)
            assert collected.sum("input_epoch") == scraped.sum("input_epoch") == 6
        finally:
            (tmp_path / "go on").touch()


def test_epochs_of_sources_are_counted(collected: Collected) -> None:
    class Numbers:
        def partitions(self) -> list[str]:
            return ["a", "b", "c"]

        def open(self, partition: str, position: int | None) -> Any:
            for n in range(position or 0, 20):
                yield [n] * 5, n + 1

    def build(scope: ps.Scope) -> None:
        scope.source(Numbers()).exchange().probe(name="End")

    given = collected.telemetry(interval_s=60.0, name="flow")
    ps.run(build, 2, threads=True, epoch_s=0.0, telemetry=given)
    epochs = [s for s in collected.spans(EPOCH) if s.attributes["pointstamp.probe"] == "End"]
    assert sum(each.attributes["pointstamp.records"] for each in epochs) == 3 * 20 * 5
    assert {each.attributes["pointstamp.program"] for each in epochs} == {"flow"}


def test_epochs_of_asynchronous_sources_are_counted(collected: Collected) -> None:
    async def ticks(input: Any) -> Any:
        for epoch in range(3):
            for _ in range(epoch + 1):
                yield "tick"
            input.advance_to(epoch + 1)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("ticks") as scope:
            scope.async_source(ticks).probe()

    ps.execute(main, telemetry=collected.telemetry(interval_s=60.0))
    found = [
        (each.attributes["pointstamp.epoch"], each.attributes["pointstamp.records"])
        for each in collected.spans(EPOCH)
    ]
    assert found == [(0, 1), (1, 2), (2, 3)]


def test_what_is_sent_ahead_counts_for_its_epoch(collected: Collected) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("two inputs") as scope:
            first, of_first = scope.new_input("first")
            second, of_second = scope.new_input("second")
            of_first.concat(of_second).probe()
        for epoch in range(3):
            first.send_batch([0] * (epoch + 1))
            first.advance_to(epoch + 1)
        second.send_batch([0] * 10)
        second.advance_to(2)
        second.send_batch([0] * 100)
        worker.step()

    ps.execute(main, telemetry=collected.telemetry(interval_s=60.0))
    found = [
        (each.attributes["pointstamp.epoch"], each.attributes["pointstamp.records"])
        for each in collected.spans(EPOCH)
    ]
    # The second input leaves 0 for 2, and is closed at 2 with 100 records; the first had 1, 2, 3.
    assert found == [(0, 13), (2, 103)]


def test_of_many_epochs_the_slowest_have_spans(collected: Collected) -> None:
    took_s: dict[int, float] = {}

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("many") as scope:
            input, stream = scope.new_input()
            probe = stream.probe()
        for epoch in range(50):
            began = time.monotonic()
            input.send(epoch)
            if epoch in (7, 30):
                worker.step()
                time.sleep(0.05)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            took_s[epoch] = time.monotonic() - began

    ps.execute(main, telemetry=collected.telemetry(interval_s=60.0, most_epochs=2))
    epochs = [each.attributes["pointstamp.epoch"] for each in collected.spans(EPOCH)]
    # 7 and 30, unless the machine stood still in another one.
    assert epochs == sorted(sorted(took_s, key=took_s.__getitem__)[-2:])
    (latencies,) = collected.points("epoch_latency_seconds")
    assert latencies.count == 50


SCHEMA = {"key": pa.int64(), "x": pa.int64()}


def sums(scope: ps.Scope, numbers: Any) -> Any:
    return numbers.group_by("key").agg(total=ps.sum("x"))


def test_snapshots_are_spans_and_restarts_are_counted(collected: Collected, tmp_path: Path) -> None:
    began_ns = time.time_ns()
    with ps.serve(
        sums,
        2,
        collections={"numbers": "key long, x long"},
        checkpoint=tmp_path,
        snapshot_every=2,
        metrics=0,
        telemetry=collected.telemetry(interval_s=0.02, name="sums"),
    ) as service:
        for epoch in range(4):
            service.input("numbers").insert([(i, epoch) for i in range(50)])
            service.advance()
        assert service.await_snapshot(1, PATIENCE_S)
        url = service.metrics_url
        assert url is not None
        until = time.monotonic() + PATIENCE_S
        while not collected.points("checkpoint_snapshots"):
            assert time.monotonic() < until
        assert collected.sum("checkpoint_epoch") >= 1
        process = scrape(url).all("process_resident_memory_bytes")[0].labels["process"]
        os.kill(int(process), signal.SIGKILL)
        service.input("numbers").insert([(0, 1)])
        service.output("result").snapshot(service.advance())
    snapshots = collected.spans(SNAPSHOT)
    numbers = [each.attributes["pointstamp.epoch"] for each in snapshots]
    assert numbers[-1] >= 1
    assert len(numbers) == len({*numbers})
    for each in snapshots:
        assert began_ns <= each.start_time <= each.end_time <= time.time_ns()
        assert each.attributes["pointstamp.bytes"] > 0
        assert each.attributes["pointstamp.program"] == "sums"
        assert str(tmp_path) in each.attributes["pointstamp.checkpoint"]
    assert collected.sum("restarts") == 1
    records = Counter[int]()
    for each in collected.spans(EPOCH):
        records[each.attributes["pointstamp.epoch"]] += each.attributes["pointstamp.records"]
    assert records[4] == 1


def test_a_program_that_is_started_in_a_span_has_links_to_it(collected: Collected) -> None:
    tracer = collected.tracer_provider.get_tracer("a program")
    with tracer.start_as_current_span("nightly") as around:
        ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0))
    for each in collected.spans(EPOCH):
        assert each.parent is None
        assert [link.context.span_id for link in each.links] == [around.get_span_context().span_id]


def test_what_is_not_sampled_has_no_parts() -> None:
    collected = Collected(sampler=ALWAYS_OFF)
    ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0))
    assert collected.exporter.get_finished_spans() == ()
    assert collected.sum("stream_records", target="Map") == N_EPOCHS * N_EACH
    collected.meter_provider.shutdown()


def test_two_programs_at_once_are_told_apart_by_name(collected: Collected, tmp_path: Path) -> None:
    def build(worker: ps.Worker, folder: Path, n: int) -> None:
        with worker.dataflow("one of two") as scope:
            scope.to_stream([0] * n).probe()
        worker.step_while(lambda: worker.has_dataflows)
        (folder / f"worked-{n}").touch()
        wait_for(worker, folder / "go on")

    given = {"telemetry": collected.telemetry(interval_s=0.02, name="same")}
    with executing(build, tmp_path, 3, **given), executing(build, tmp_path, 4, **given):
        await_files(tmp_path, "worked-*", 2)
        (tmp_path / "go on").touch()
    found = {
        point.attributes["program"]: point.value for point in collected.points("stream_records")
    }
    assert found.keys() == {"same", "same-2"}
    assert sorted(found.values()) == [3, 4]


def test_numbers_of_a_program_of_the_same_name_begin_anew(collected: Collected) -> None:
    for _ in range(2):
        ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0))
        assert collected.sum("stream_records", target="Map") == N_EPOCHS * N_EACH


def test_an_exporter_that_fails_does_not_fail_the_program(
    collected: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(SpanExporter):
        def export(self, spans: Any) -> Any:
            raise ValueError("no way out")

        def shutdown(self) -> None:
            pass

    collected.tracer_provider.add_span_processor(SimpleSpanProcessor(Failing()))
    ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0))
    assert len(collected.spans(EPOCH)) == N_EPOCHS
    assert "no way out" in caplog.text


def test_an_exporter_that_hangs_does_not_hold_the_end_of_a_program(
    collected: Collected, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    goes_on = threading.Event()

    class Hanging(SpanExporter):
        def export(self, spans: Any) -> Any:
            goes_on.wait()

        def shutdown(self) -> None:
            pass

    monkeypatch.setattr("pointstamp.metrics.exporting.CLOSE_S", 0.01)
    collected.tracer_provider.add_span_processor(SimpleSpanProcessor(Hanging()))
    try:
        ps.execute(rounds, telemetry=collected.telemetry(interval_s=60.0))
        assert "was not taken by its providers within 0.01 s" in caplog.text
    finally:
        goes_on.set()
        for thread in threading.enumerate():
            if thread.name == "pointstamp-telemetry":
                thread.join()


def test_the_epochs_of_a_program_that_fails_are_there(collected: Collected) -> None:
    def failing(worker: ps.Worker) -> None:
        rounds(worker)
        raise ValueError("after all epochs")

    with pytest.raises(ps.errors.WorkerError, match="after all epochs"):
        ps.execute(failing, workers=2, telemetry=collected.telemetry(interval_s=60.0))
    assert len(collected.spans(EPOCH)) == N_EPOCHS


def test_a_worker_of_its_own_has_its_part(collected: Collected) -> None:
    ps.run_worker(SingleCommunicator(), rounds, telemetry=collected.telemetry(interval_s=60.0))
    assert len(collected.spans(EPOCH)) == len(collected.spans(PART)) == N_EPOCHS


def test_an_abandoned_service_leaves_no_thread(collected: Collected) -> None:
    def pairs(scope: ps.Scope, numbers: Any) -> Any:
        return numbers.map_batches(lambda batch: batch)

    given = collected.telemetry(interval_s=0.02)
    inputs, outputs = {"numbers": SCHEMA}, {"result": SCHEMA}
    service = ps.serve(pairs, threads=True, inputs=inputs, outputs=outputs, telemetry=given)
    with pytest.warns(ResourceWarning, match="never stopped"):  # noqa: PT031
        del service
        gc.collect()
    until = time.monotonic() + PATIENCE_S
    while any(each.name == "pointstamp-telemetry" for each in threading.enumerate()):
        assert time.monotonic() < until


def test_without_the_extra_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pointstamp\[telemetry\]'"):
        ps.execute(lambda worker: pytest.fail("it ran"), telemetry=True)

    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(extras, "find_spec", absent)
    with pytest.raises(MissingExtraError):
        ps.serve(lambda scope, a: a, inputs={"a": SCHEMA}, outputs={"a": SCHEMA}, telemetry=True)


@pytest.mark.parametrize("wrong", ["yes", 1, object()])
def test_what_is_no_telemetry_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="telemetry"):
        ps.execute(lambda worker: pytest.fail("it ran"), telemetry=wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"interval_s": 0},
        {"interval_s": "1"},
        {"most_epochs": -1},
        {"most_epochs": 1.5},
        {"name": ""},
    ],
)
def test_options_that_mean_nothing_are_refused(options: Any) -> None:
    with pytest.raises(UsageError):
        Telemetry(**options)


def test_what_has_no_telemetry_imports_nothing_of_it() -> None:
    program = (
        "import sys, pointstamp as ps\n"
        "ps.execute(lambda worker: None)\n"
        "ps.execute(lambda worker: None, metrics=0)\n"
        "found = [m for m in sys.modules if m.startswith('opentelemetry')]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_global_providers_are_taken_where_none_is_given() -> None:
    program = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import pointstamp as ps

def main(worker):
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        stream.probe()
    input.send(1)

ps.execute(main, telemetry=True)  # with none set, it goes nowhere
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
metrics.set_meter_provider(MeterProvider([reader]))
ps.execute(main, telemetry=True)
print(sorted(each.name for each in exporter.get_finished_spans()))
scopes = reader.get_metrics_data().resource_metrics[0].scope_metrics
(metric,) = [m for s in scopes for m in s.metrics if m.name == "pointstamp.stream_records"]
print([point.value for point in metric.data.data_points])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == f"{[EPOCH, PART]}\n[1]\n", ran.stderr
