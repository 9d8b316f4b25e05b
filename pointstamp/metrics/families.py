"""The metrics of a program as families: names, labels and numbers, which every format has.

Counters are those of each worker, since a sum over workers hides the one that is slow; a query adds
up. Times of dataflows are numbers only where they are integers: a frontier of others is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pointstamp.metrics.program import ProgramSample
from pointstamp.metrics.samples import (
    DataflowSample,
    InputSample,
    OperatorSample,
    ProbeSample,
    WorkerSample,
)

S = 1e-9
"""Seconds of a nanosecond."""

COUNTER, GAUGE = "counter", "gauge"

Row = tuple[Sequence[str], float]
Part = TypeVar("Part", OperatorSample, InputSample, ProbeSample)

LATENCY = "epoch_latency_seconds"
LATENCY_HELP = "From when the last input of a worker leaves an epoch until its probe has passed it."
PROBE_LABELS = ("worker", "dataflow", "probe", "address")


@dataclass(frozen=True)
class MetricFamily:
    """The numbers of one name.

    Attributes
    ----------
    name : str
        Without what all names begin with, and without "_total".
    kind : str
        "counter" or "gauge".
    what : str
        What is counted.
    rows : list of (sequence of str, float)
        The values of the labels, and the number.
    labels : tuple of str
        The names of the labels.
    """

    name: str
    kind: str
    what: str
    rows: list[Row]
    labels: tuple[str, ...] = ()


class ProgramFamilies:
    """What one sample of a program comes to."""

    def __init__(self, sample: ProgramSample) -> None:
        self._sample = sample

    def all(self) -> Iterator[MetricFamily]:
        """All families, those without numbers as well."""
        yield from self._of_program()
        yield from self._of_processes()
        yield from self._of_checkpoints()
        yield from self._of_workers()
        yield from self._of_dataflows()
        yield from self._of_operators()
        yield from self._of_streams()
        yield from self._of_inputs()
        yield from self._of_probes()

    def latencies(self) -> list[tuple[list[str], ProbeSample]]:
        """What the histogram of epochs' latencies is made of, with its labels."""
        return self._named(lambda flow: flow.probes)

    def _of_program(self) -> Iterator[MetricFamily]:
        sample = self._sample
        yield _gauge("workers", "Workers that the program is to have.", [([], sample.n_workers)])
        yield _gauge("workers_answering", "Workers that answered.", [([], len(sample.workers))])
        yield _gauge("ready", "Whether /ready says so.", [([], float(sample.is_ready))])
        restarts = sample.state.restarts
        yield _counter(
            "restarts",
            "How often the workers were started again.",
            [] if restarts is None else [([], restarts)],
        )

    def _of_processes(self) -> Iterator[MetricFamily]:
        yield _gauge(
            "process_resident_memory_bytes",
            "Resident memory of a process with workers.",
            [
                ([each.machine, str(each.process)], each.resident_bytes)
                for each in self._sample.processes
                if each.resident_bytes is not None
            ],
            ["machine", "process"],
        )

    def _of_checkpoints(self) -> Iterator[MetricFamily]:
        found = [each for process in self._sample.processes for each in process.checkpoints]
        labels = ["checkpoint"]

        def rows(name: str) -> list[Row]:
            return [([each.place], getattr(each, name)) for each in found]

        yield _counter("checkpoint_snapshots", "Snapshots committed.", rows("snapshots"), labels)
        yield _gauge("checkpoint_epoch", "The epoch of the last snapshot.", rows("epoch"), labels)
        yield _gauge(
            "checkpoint_age_seconds", "Since when the last is committed.", rows("age_s"), labels
        )
        yield _gauge(
            "checkpoint_size_bytes", "What was written for the last.", rows("n_bytes"), labels
        )
        yield _gauge(
            "checkpoint_duration_seconds", "How long the last took.", rows("seconds"), labels
        )

    def _of_workers(self) -> Iterator[MetricFamily]:
        workers, labels = self._sample.workers, ["worker"]

        def rows(name: str, scale: float = 1) -> list[Row]:
            return [
                ([str(each.index)], getattr(each, name) * scale)
                for each in workers
                if getattr(each, name) is not None
            ]

        yield _counter("worker_steps", "Steps of a worker.", rows("steps"), labels)
        yield _counter("worker_parks", "How often it had nothing to do.", rows("parks"), labels)
        yield _counter(
            "worker_parked_seconds", "How long it had nothing to do.", rows("parked_ns", S), labels
        )
        yield _counter("worker_seconds", "Since when it runs.", rows("age_ns", S), labels)
        yield _gauge(
            "worker_held_bytes", "In memory, of its memory_limit=.", rows("held_bytes"), labels
        )
        yield _counter("worker_spilled_bytes", "Written to disk.", rows("spilled_bytes"), labels)
        yield _counter(
            "dropped_records",
            "Records on which an operator failed, and which on_error='drop' left out.",
            [
                ([str(each.index), operator], n)
                for each in workers
                for operator, n in each.dropped.items()
            ],
            ["worker", "operator"],
        )

    def _of_dataflows(self) -> Iterator[MetricFamily]:
        def rows(name: str, scale: float = 1) -> list[Row]:
            return [
                (_of_dataflow(worker, each), getattr(each, name) * scale)
                for worker, each in self._dataflows()
            ]

        labels = ["worker", "dataflow", "number"]
        yield _gauge(
            "dataflow_complete", "Whether it is complete on a worker.", rows("is_complete"), labels
        )
        yield _counter(
            "dataflow_seconds",
            "Time in a dataflow: in its operators, and tracking progress.",
            rows("busy_ns", S),
            labels,
        )
        yield _counter(
            "backpressure_seconds",
            "How long sources were held back, as too much was in flight.",
            rows("throttled_ns", S),
            labels,
        )

    def _of_operators(self) -> Iterator[MetricFamily]:
        found = self._named(lambda flow: flow.operators)

        def rows(name: str, scale: float = 1) -> list[Row]:
            return [(values, getattr(each, name) * scale) for values, each in found]

        labels = ["worker", "dataflow", "operator", "address"]
        yield _counter("operator_activations", "How often it ran.", rows("activations"), labels)
        yield _counter("operator_seconds", "For how long it ran.", rows("busy_ns", S), labels)

    def _of_streams(self) -> Iterator[MetricFamily]:
        def rows(name: str) -> list[Row]:
            return [
                (
                    [str(worker.index), flow.name, each.source, each.target, each.place],
                    getattr(each, name),
                )
                for worker, flow in self._dataflows()
                for each in flow.streams
            ]

        labels = ["worker", "dataflow", "source", "target", "address"]
        for name, attribute, what in (
            ("stream_records", "records", "Records that this worker sent, to any worker."),
            ("stream_batches", "batches", "The same, in batches."),
            ("stream_bytes", "n_bytes", "The same, in bytes; of rows about so many."),
            ("stream_taken_records", "taken_records", "Records that its operator has taken."),
            ("stream_taken_batches", "taken_batches", "The same, in batches."),
        ):
            yield _counter(name, what, rows(attribute), labels)

    def _of_inputs(self) -> Iterator[MetricFamily]:
        found = self._named(lambda flow: flow.inputs)
        labels = ["worker", "dataflow", "input", "address"]
        yield _gauge(
            "input_epoch",
            "The epoch at which an input sends; none when it is closed.",
            [(values, each.time) for values, each in found if each.time is not None],
            labels,
        )
        yield _gauge(
            "input_closed",
            "Whether it is closed.",
            [(values, float(each.is_closed)) for values, each in found],
            labels,
        )

    def _of_probes(self) -> Iterator[MetricFamily]:
        found = self._named(lambda flow: flow.probes)
        labels = ["worker", "dataflow", "probe", "address"]
        yield _gauge(
            "probe_frontier",
            "The least epoch that may still come; none when nothing may.",
            [(values, each.frontier) for values, each in found if each.frontier is not None],
            labels,
        )
        yield _gauge(
            "probe_done",
            "Whether nothing more comes.",
            [(values, float(each.is_done)) for values, each in found],
            labels,
        )
        yield _gauge(
            "probe_lag_epochs",
            "How far it is behind the least of the worker's inputs.",
            [(values, each.lag_epochs) for values, each in found if each.lag_epochs is not None],
            labels,
        )
        yield _gauge(
            "probe_lag_seconds",
            "Since when the eldest epoch is waited for that the worker's inputs have left.",
            [(values, each.lag_ns * S) for values, each in found],
            labels,
        )

    def _named(
        self, of: Callable[[DataflowSample], Sequence[Part]]
    ) -> list[tuple[list[str], Part]]:
        """Parts of all dataflows, each behind the values of its labels."""
        return [
            ([str(worker.index), flow.name, each.name, each.address], each)
            for worker, flow in self._dataflows()
            for each in of(flow)
        ]

    def _dataflows(self) -> Iterator[tuple[WorkerSample, DataflowSample]]:
        for worker in self._sample.workers:
            for dataflow in worker.dataflows:
                yield worker, dataflow


def _of_dataflow(worker: WorkerSample, dataflow: DataflowSample) -> list[str]:
    return [str(worker.index), dataflow.name, str(dataflow.number)]


def _counter(name: str, what: str, rows: list[Row], labels: Sequence[str] = ()) -> MetricFamily:
    return MetricFamily(name, COUNTER, what, rows, tuple(labels))


def _gauge(name: str, what: str, rows: list[Row], labels: Sequence[str] = ()) -> MetricFamily:
    return MetricFamily(name, GAUGE, what, rows, tuple(labels))
