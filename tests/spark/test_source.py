"""The sink of streams without Spark's scheduler: tries, doubles, repeats, and their order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import pointstamp as ps
from pointstamp.errors import EpochError, SchemaError, ServiceError, StoppedError, UsageError
from pointstamp.service.flight_client import RemoteWorker, Unanswered
from pointstamp.service.protocol import AwaitCompletion, AwaitEpoch
from pointstamp.service.worker_pools import Termination
from pointstamp.spark import access as access_module
from pointstamp.spark import source
from pointstamp.spark.access import Access

SCHEMA = pa.schema({"n": pa.int64()})


@pytest.fixture(scope="module")
def service():
    def build(scope, n, other):
        return {"n": n.exchange("n"), "all": n.concat(other)}

    with ps.serve(
        build, 2, inputs={"n": SCHEMA, "other": SCHEMA}, outputs={"n": SCHEMA, "all": SCHEMA}
    ) as running:
        running.output("n").collect()
        yield running


@pytest.fixture
def access(service):
    return Access(
        "s",
        tuple(service.endpoints),
        service.token,
        None,
        service.spec.inputs,
        service.spec.outputs,
    )


class Batch:
    """A batch of a stream, on which tasks work as Spark has them."""

    def __init__(self, monkeypatch, access, number, query="first"):
        self.patch, self.access, self.number = monkeypatch, access, number
        self.properties = {source.BATCH_ID: str(number), source.QUERY_ID: query}

    def task(self, partition, *numbers):
        """One try of one task; its message to the driver."""
        context = SimpleNamespace(
            partitionId=lambda: partition,
            getLocalProperty=self.properties.get,
        )
        self.patch.setattr(source.TaskContext, "get", lambda: context)
        batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})
        return self.writer().write(iter([batch] if numbers else []))

    def writer(self, **options):
        """Made anew each time, as Spark does."""
        settings = {"timeout_s": 5.0} | options
        return source.StreamWriter(self.access, "n", 0, **settings)

    def commit(self, *messages, **options):
        self.writer(**options).commit(list(messages), self.number)

    def abort(self, *messages):
        self.writer().abort(list(messages), self.number)


@pytest.fixture
def batch(monkeypatch, access, service):
    """The next batch of the stream."""
    return Batch(monkeypatch, access, service.input("n").time)


def out(service, batch):
    found = service.output("n").collect(upto=batch.number, after=batch.number - 1)
    return sorted(found["n"].to_pylist())


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("first_epoch", "-1", "an epoch, a whole number from 0, and is '-1'"),
        ("first_epoch", "1.5", "an epoch, a whole number from 0, and is '1.5'"),
        ("first_epoch", "inf", "an epoch, a whole number from 0, and is 'inf'"),
        ("timeout_s", "nan", "a number of seconds, and is 'nan'"),
        ("timeout_s", "-5", "a number of seconds, and is '-5'"),
        ("timeout_s", "soon", "a number of seconds, and is 'soon'"),
    ],
)
def test_an_option_that_is_no_number_of_its_kind_is_refused(access, option, given, said):
    """Of a batch before epoch 0 all records would be dropped in silence."""
    columns = StructType([StructField("n", LongType())])
    known = type("Known", (source.Pointstamp,), {"services": {"s": access}})
    with pytest.raises(UsageError, match=said):
        known({"input": "n", option: given}).streamWriter(columns, False)


def test_a_batch_is_not_written_but_sent(access):
    known = type("Known", (source.Pointstamp,), {"services": {"s": access}})
    with pytest.raises(UsageError, match=r"sent by service.input\(name\).send\(frame\)"):
        known({}).writer(StructType([StructField("n", LongType())]), False)
    columns = StructType([StructField("m", LongType())])
    with pytest.raises(SchemaError, match="input 'n' of service 's' has columns n, and what is"):
        known({"input": "n"}).streamWriter(columns, False)


def test_two_services_of_one_name_are_not_mixed_up(access):
    session = SimpleNamespace(dataSource=SimpleNamespace(register=lambda known: None))
    former, termination = replace(access, name="twin"), Termination()
    source.check_name("twin")
    source.register(session, former, termination)
    with pytest.raises(UsageError, match="there is a service 'twin' in this program already"):
        source.check_name("twin")
    termination.end()  # it failed, and nobody has stopped it
    source.check_name("twin")
    later = replace(access, name="twin")
    source.register(session, later, Termination())
    source.unregister(former)
    with pytest.raises(UsageError, match="there is a service 'twin'"):
        source.check_name("twin")
    source.unregister(later)
    for name in ("", 3):
        with pytest.raises(UsageError, match="is a text that is not empty"):
            source.check_name(name)


def test_a_task_that_is_tried_again_counts_once(service, batch):
    batch.task(0, 1, 2)  # it staged, and was lost before its message arrived
    again, other = batch.task(0, 1, 2), batch.task(1, 3)
    batch.commit(again, other)
    assert out(service, batch) == [1, 2, 3]


def test_a_call_that_is_lost_on_the_way_to_a_worker_is_made_again(
    service, access, batch, monkeypatch
):
    """As on a machine that is too busy to connect in time; what was staged by it does not count."""
    staging, asking, lost = RemoteWorker.stage, RemoteWorker.ask, []

    def lose(answer, what):
        if what not in lost:
            lost.append(what)
            raise Unanswered("connection attempt timed out")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(RemoteWorker, "stage", lambda *args: lose(staging(*args), "stage"))
        patch.setattr(RemoteWorker, "ask", lambda *args: lose(asking(*args), args[1]))
        batch.commit(batch.task(0, 1, 2))
        assert len(lost) == 3  # the staging, the commit, and waiting for it
        patch.setattr(RemoteWorker, "stage", lambda *args: lose(staging(*args), len(lost)))
        patch.setattr(access_module, "BUSY_S", 0.1)
        with pytest.raises(Unanswered, match="timed out"):
            Batch(patch, access, batch.number + 1).task(0, 1)
    assert out(service, batch) == [1, 2]


def test_of_two_tries_at_once_the_one_that_spark_names_counts(service, batch):
    quick, slow = batch.task(0, 1), batch.task(0, 1)
    batch.commit(slow)
    late = batch.task(0, 1)
    batch.commit(quick, late)
    assert out(service, batch) == [1]


def test_a_commit_that_is_repeated_changes_nothing(service, batch):
    messages = [batch.task(0, 1), batch.task(1, 2)]
    for _ in range(3):
        batch.commit(*messages)
    # Spark replays the whole batch, with other tries, when it did not hear of the commit.
    batch.commit(batch.task(0, 1, 2))
    assert out(service, batch) == [1, 2]


def test_a_batch_that_would_be_lost_is_refused(service, batch):
    """Of another query whose batch has the epoch, or where the program went past it."""
    batch.commit(batch.task(0, 1))
    other = Batch(batch.patch, batch.access, batch.number, "other")
    at = f"at epoch {batch.number + 1}, and the batch of query other for epoch {batch.number}"
    with pytest.raises(EpochError, match=rf"{at}, 2 records, is not in it: .*one query at a time"):
        other.commit(other.task(0, 2), other.task(1, 3))
    other.commit(other.task(0))  # nothing is lost
    batch.commit(batch.task(0, 1))  # Spark repeats it
    service.input("n").send([{"n": 4}])
    service.input("n").advance_to(batch.number + 2)
    late = Batch(batch.patch, batch.access, batch.number + 1)
    with pytest.raises(EpochError, match="another query, or the program, has committed"):
        late.commit(late.task(0, 5))
    assert out(service, batch) == [1]
    assert out(service, late) == [4]


def test_a_batch_for_an_input_that_is_closed_is_refused(monkeypatch):
    """Spark took it for committed, so that it was lost, also where the service begins again."""
    schemas = {"n": SCHEMA}
    with ps.serve(lambda scope, n: n, 1, inputs=schemas, outputs=schemas) as service:
        access = Access(
            *("s", tuple(service.endpoints), service.token, None),
            *(service.spec.inputs, service.spec.outputs),
        )
        before = Batch(monkeypatch, access, 0)
        before.commit(before.task(0, 1))
        service.input("n").close()
        before.commit(before.task(0, 1))  # Spark repeats it
        late = Batch(monkeypatch, access, 1)
        with pytest.raises(EpochError, match="'n' is closed and takes nothing more: the batch of"):
            late.commit(late.task(0, 2))
        late.commit(late.task(0))


def test_a_batch_that_was_aborted_is_run_again(service, batch):
    batch.abort(batch.task(0, 1), None)
    batch.commit(batch.task(0, 1), batch.task(1, 2))
    batch.abort(batch.task(0, 1))
    assert out(service, batch) == [1, 2]


def test_a_task_without_records_and_one_without_a_message_are_fine(service, batch):
    batch.commit(batch.task(0), None, batch.task(2, 5))
    assert out(service, batch) == [5]
    later = Batch(batch.patch, batch.access, batch.number + 1)
    later.commit()
    assert out(service, later) == []


def test_a_commit_returns_when_the_epoch_has_passed(service, batch):
    batch.commit(batch.task(0, 1))
    assert not service.output("n").probe.less_equal(batch.number)


def test_a_commit_that_never_passes_says_so(batch, monkeypatch):
    asking = RemoteWorker.ask

    def ask(worker, request):
        return False if isinstance(request, AwaitCompletion) else asking(worker, request)

    monkeypatch.setattr(RemoteWorker, "ask", ask)
    with pytest.raises(EpochError, match="is committed, and not complete after 0 s"):
        batch.commit(timeout_s=0)


def test_a_task_that_is_not_told_its_batch_is_an_error(batch, monkeypatch):
    context = SimpleNamespace(partitionId=lambda: 0, getLocalProperty=lambda name: None)
    monkeypatch.setattr(source.TaskContext, "get", lambda: context)
    with pytest.raises(ServiceError, match="does not say to this task which batch it is of"):
        batch.writer().write(iter([]))


def test_a_service_that_has_ended_is_said(access, monkeypatch):
    gone = Access("s", ("grpc://127.0.0.1:1",), "t", None, access.inputs, access.outputs)
    with pytest.raises(StoppedError, match=r"worker at grpc://127.0.0.1:1 does not answer"):
        Batch(monkeypatch, gone, 0).task(0, 1)


def test_a_stream_is_read_from_what_is_kept_to_what_is_complete(service, access, batch):
    batch.commit(batch.task(0, 1), batch.task(1, 2))
    reader = source.StreamReader(access, "n")
    start, end = reader.initialOffset(), reader.latestOffset({"epoch": 0}, None)
    assert end == {"epoch": batch.number + 1}
    assert reader.latestOffset(end, None) == end
    assert reader.partitions(end, end) == []
    before = {"epoch": batch.number}
    parts = reader.partitions(before, end)
    assert len(parts) == 2
    found = [n for part in parts for b in reader.read(part) for n in b.column("n").to_pylist()]
    assert sorted(found) == [1, 2]
    assert start["epoch"] <= batch.number
    reader.commit(end)
    assert reader.initialOffset() == end
    with pytest.raises(EpochError, match="is discarded"):
        list(reader.read(parts[0]))


def test_a_batch_that_spark_repeats_waits_for_a_service_that_has_begun_again(
    service, access, batch, monkeypatch
):
    """The epochs were complete, and the service is not where it was yet; that may take a while."""
    monkeypatch.setattr(source, "TICK_S", 0.01)
    asking, n_asked = RemoteWorker.ask, 0

    def ask(worker, request):
        nonlocal n_asked
        n_asked += isinstance(request, AwaitEpoch)
        if n_asked == 20 and isinstance(request, AwaitEpoch):
            batch.commit(batch.task(0, 7))
        return asking(worker, request)

    monkeypatch.setattr(RemoteWorker, "ask", ask)
    reader = source.StreamReader(access, "n")
    parts = reader.partitions({"epoch": batch.number}, {"epoch": batch.number + 1})
    found = [n for part in parts for b in reader.read(part) for n in b.column("n").to_pylist()]
    assert found == [7]
