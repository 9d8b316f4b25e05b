"""The life of a worker in a task, without Spark: its batches, its end, its failure."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pointstamp.communication import tcp, threads
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import ControlClient, WorkerConfig
from pointstamp.communication.job_control import JobControl
from pointstamp.communication.single import SingleCommunicator
from pointstamp.containers.arrays import Arrays
from pointstamp.errors import CommunicationError, RendezvousError, WorkerError
from pointstamp.spark import task
from pointstamp.spark.packed_batches import distribute, unpack
from pointstamp.spark.stage_attempts import AttemptCheck
from pointstamp.spark.task import Job, rendezvous, run_task

SCHEMA = pa.schema({"n": pa.int64()})
N_RECORDS = 1_000_000


def job(build, inputs=("records",)):
    return Job(build, inputs, True, SCHEMA, b"", 1)


def batches(n_records=N_RECORDS, size=50_000):
    whole = pa.RecordBatch.from_pydict({"n": pa.array(range(n_records), pa.int64())})
    return [whole.slice(start, size) for start in range(0, n_records, size)]


def results_alone(build, rows):
    return [packed.batch for packed in unpack(run_task(job(build), SingleCommunicator(), rows))]


def test_a_worker_alone_gives_back_what_it_gets():
    rows = list(distribute(batches(1000, 100), 0, 0, 1))
    results = results_alone(lambda scope, records: records, rows)
    assert pa.Table.from_batches(results).equals(pa.Table.from_batches(batches(1000, 100)))


def test_arrays_are_results_too():
    def doubled(scope, records):
        return records.map_batches(lambda batch: Arrays(n=batch.column("n").to_numpy() * 2))

    [result] = results_alone(doubled, distribute(batches(3, 3), 0, 0, 1))
    assert result.column("n").to_pylist() == [0, 2, 4]


def peak_bytes(build):
    """The most that Python's own objects took while a million records went through."""
    given = batches()
    rows = distribute(given, 0, 0, 1)
    tracemalloc.start()
    try:
        n = sum(batch.num_rows for batch in results_alone(build, rows))
        return n, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_record_becomes_a_python_object_on_the_way():
    peak_bytes(lambda scope, records: records)  # what is imported and cached the first time
    n, peak = peak_bytes(lambda scope, records: records)
    assert n == N_RECORDS
    assert peak < 200_000  # a list of one batch's records alone takes twice that

    def converted(batch):
        return pa.RecordBatch.from_pydict({"n": batch.column("n").to_pylist()})

    assert peak_bytes(lambda scope, records: records.map_batches(converted))[1] > 400_000


def two_workers(build, first):
    """Run `first` on worker 0's generator and worker 1 to its end; worker 1's error."""
    zero, one = threads.communicators(2)
    rows = [list(distribute(batches(200_000), 0, index, 2)) for index in range(2)]
    failed = []

    def other():
        try:
            for _ in run_task(job(build), one, rows[1]):
                pass
        except WorkerError as error:
            failed.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    first(run_task(job(build), zero, rows[0]))
    thread.join(60)
    assert not thread.is_alive()
    [error] = failed
    return error


def test_when_nobody_asks_for_the_rest_the_peers_stop():
    def take_one(generator):
        next(generator)
        generator.close()

    error = two_workers(lambda scope, records: records.exchange("n"), take_one)
    assert error.worker == 0 or "worker 0" in str(error)


def test_a_failure_comes_with_its_traceback_and_the_peers_raise_the_same():
    def fails(scope, records):
        index = scope.index

        def check(batch):
            if index == 0:
                raise ValueError("the very cause")
            return batch

        return records.exchange("n").map_batches(check)

    def run(generator):
        with pytest.raises(WorkerError, match="worker 0 failed: operator 'MapBatches'") as caught:
            list(generator)
        [note] = caught.value.__notes__
        assert 'raise ValueError("the very cause")' in note

    error = two_workers(fails, run)
    assert error.worker == 0
    assert str(error).startswith("worker 0 failed: operator 'MapBatches'")
    assert "the very cause" in str(error)


class Stage:
    """A barrier stage of tasks that are threads here: what `rendezvous` asks a context for."""

    def __init__(self, n_tasks):
        self._said = [""] * n_tasks
        self._barrier = threading.Barrier(n_tasks)

    def context(self, index):
        stage = self

        class Context:
            def getTaskInfos(self):  # noqa: N802  (Spark's name)
                return [SimpleNamespace(address="127.0.0.1:0") for _ in stage._said]

            def partitionId(self):  # noqa: N802
                return index

            def stageId(self):  # noqa: N802
                return 0

            def allGather(self, said):  # noqa: N802
                stage._said[index] = said
                stage._barrier.wait(10)
                return list(stage._said)

        return Context()


def met(certificates):
    """What each of two tasks got from `rendezvous`, given its certificates."""
    stage, found = Stage(2), [None, None]

    def task(index):
        try:
            with closing(rendezvous(stage.context(index), 2, b"s" * 32, None, certificates[index])):
                found[index] = "connected"
        except CommunicationError as error:
            found[index] = error

    tasks = [threading.Thread(target=task, args=(index,)) for index in range(2)]
    for each in tasks:
        each.start()
    for each in tasks:
        each.join()
    return found


def test_a_part_of_the_workers_is_refused():
    with pytest.raises(RendezvousError, match="runs 1 tasks in place of 2 workers"):
        rendezvous(Stage(1).context(0), 2, b"s" * 32)


@pytest.fixture
def waits() -> Iterator[Any]:
    """The context of a task whose peers never come, so that Spark's message does not either."""
    context: Any = Stage(2).context(0)
    ended = threading.Event()
    context.taskAttemptId = lambda: 7
    context.allGather = lambda _: ended.wait(60)
    yield context
    ended.set()


@contextmanager
def asked_driver(answers: list[bool]) -> Iterator[ControlClient]:
    """The connection of a task to a driver that gives these answers in turn, to one task."""

    def answer(_: Any, message: AttemptCheck) -> bool:
        assert message == AttemptCheck(0, 7)
        return answers.pop(0)

    secret = new_secret()
    with JobControl(secret).server as server:
        server.handle(AttemptCheck, answer)
        config = WorkerConfig(server.address, secret, group="job")
        with ControlClient.connect(config, 0, timeout_s=10) as control:
            yield control


def test_peers_that_cannot_come_any_more_are_not_waited_for(
    waits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "MEET_S", 0.05)
    monkeypatch.setattr(task, "CHECK_S", 0.01)
    answers = [True, True, False]
    ended = pytest.raises(RendezvousError, match="of this attempt of the stage have ended before")
    with asked_driver(answers) as control, ended:
        rendezvous(waits, 2, b"s" * 32, control)
    assert not answers


def test_peers_are_not_waited_for_without_end_where_no_driver_is_asked(
    waits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "CHECK_S", 0.01)
    monkeypatch.setattr(task, "GATHER_S", 0.05)
    with pytest.raises(RendezvousError, match="did not begin within 20 s"):
        rendezvous(waits, 2, b"s" * 32)


def test_what_spark_raises_in_place_of_its_message_is_raised(waits: Any) -> None:
    def refuse(_: str) -> list[str]:
        raise ValueError("no message")

    waits.allGather = refuse
    with pytest.raises(ValueError, match="no message"):
        rendezvous(waits, 2, b"s" * 32)


def test_tasks_with_certificates_meet(certificates):
    assert met([certificates, certificates]) == ["connected", "connected"]


@pytest.mark.parametrize("has_other", [False, True], ids=["none", "of another authority"])
def test_a_task_does_not_meet_one_that_has_other_certificates(
    certificates, request, has_other, monkeypatch
):
    monkeypatch.setattr(tcp, "connect", partial(tcp.connect, timeout_s=2.0))
    other = request.getfixturevalue("other_certificates") if has_other else None
    found = met([certificates, other])
    assert all(isinstance(each, CommunicationError) for each in found), found
