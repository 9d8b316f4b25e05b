"""Kafka as a source and as a sink, with the cluster in memory that librdkafka brings."""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import PositionError, SinkError, SourceError, UsageError, WorkerError
from pointstamp.formats.kafka_sink import KafkaSink
from pointstamp.formats.kafka_source import KafkaSource
from pointstamp.testing import check_sink, check_source
from tests.connectors.crashing_flow import EndsAfterCommit, Fuse, outlived
from tests.connectors.crashing_flow import expected as totals
from tests.connectors.kafka_cluster import KafkaCluster, kafka_cluster

pytest.importorskip("confluent_kafka", reason="the extra kafka")


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with kafka_cluster() as found:
        yield found


@pytest.fixture
def topic() -> str:
    """A topic of its own."""
    return f"topic-{uuid.uuid4().hex[:8]}"


def numbers(cluster: KafkaCluster, topic: str, n: int) -> None:
    """Some messages in each of two partitions."""
    for partition in (0, 3):
        records = [(f"k{k % 3}", f"{partition}:{k}") for k in range(n)]
        cluster.send(topic, records, partition)


def read(source: KafkaSource, partition: str, position: Any = None) -> list[Any]:
    return [m for item in source.open(partition, position) if item for m in item[0]]


def test_each_partition_is_read_from_every_offset(cluster: KafkaCluster, topic: str) -> None:
    numbers(cluster, topic, 7)
    source = KafkaSource(cluster.servers, topic, follow=False)
    assert source.partitions() == [f"{topic}-{number}" for number in range(4)]
    found = read(pickle.loads(pickle.dumps(source)), f"{topic}-3", 2)
    assert [m.value for m in found] == [f"3:{k}".encode() for k in range(2, 7)]
    first = found[0]
    assert first[:5] == (b"k2", b"3:2", topic, 3, 2)
    assert first.time_ms is not None
    assert first.headers == ()
    check_source(source, idle_s=30.0)  # it ends before that


def test_a_message_without_a_time_has_none(cluster: KafkaCluster, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.servers, "log_level": 3})
    for time_ms in (-1, 7):
        producer.produce(topic, b"x", partition=0, timestamp=time_ms)
    assert producer.flush(30) == 0
    source = KafkaSource(cluster.servers, topic, follow=False)
    assert [message.time_ms for message in read(source, f"{topic}-0")] == [None, 7]


def test_one_that_follows_gives_what_comes_and_one_from_the_end_nothing_else(
    cluster: KafkaCluster, topic: str
) -> None:
    cluster.send(topic, [(None, "before")], 0)
    partition = f"{topic}-0"
    whole = KafkaSource(cluster.servers, topic).open(partition, None)
    latest = KafkaSource(cluster.servers, topic, start="latest").open(partition, None)
    assert next(latest) == ([], 1)
    assert next(item for item in whole if item)[0][0].value == b"before"
    assert next(whole) is None
    cluster.send(topic, [(None, "after")], 0)
    for reader in (whole, latest):
        messages, position = next(item for item in reader if item)
        assert ([m.value for m in messages], position) == ([b"after"], 2)
        reader.close()  # type: ignore[attr-defined]


def test_a_position_is_behind_the_end_of_a_transaction(cluster: KafkaCluster, topic: str) -> None:
    # Of a topic whose messages Kafka has dropped by now, a position before that would be lost.
    from confluent_kafka import Producer

    cluster.send(topic, [(None, "before")], 0)
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "within", partition=0)
    producer.commit_transaction(30)
    source = KafkaSource(cluster.servers, topic, follow=False)
    found = [item for item in source.open(f"{topic}-0", None) if item]
    assert [m.value for messages, _ in found for m in messages] == [b"before", b"within"]
    assert found[-1][1] == 3
    assert not read(source, f"{topic}-0", 3)


def test_a_partition_that_turns_up_is_read_from_its_beginning(
    cluster: KafkaCluster, topic: str
) -> None:
    cluster.send(topic, [(None, "first")], 0)
    source = KafkaSource(cluster.servers, topic, start="latest", discover_s=1.0)
    reader = source.open(f"{topic}-0", source.start_of_new)
    assert next(item for item in reader if item)[0][0].value == b"first"
    reader.close()  # type: ignore[attr-defined]


class _Message:
    """An event of the client itself, which is of no partition."""

    def __init__(self, code: int) -> None:
        self.code = code

    def topic(self) -> None:
        return None

    def partition(self) -> int:
        return -1

    def error(self) -> Any:
        from confluent_kafka import KafkaError

        return KafkaError(self.code, "FindCoordinator response error")


class _Client:
    """A client that has met an error."""

    is_away = False

    def __init__(self, client: Any, code: int) -> None:
        self.client = client
        self.events = [_Message(code)]

    def consume(self, n: int, timeout_s: float) -> list[Any]:
        found, self.events = self.events, []
        return found or self.client.consume(n, timeout_s)  # type: ignore[no-any-return]

    def list_topics(self, *arguments: Any) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return self.client.list_topics(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def _have_clients(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Have the clients of all sources be such."""
    new_client = KafkaSource._new_client
    monkeypatch.setattr(KafkaSource, "_new_client", lambda self: _Client(new_client(self), code))


def test_no_rights_to_a_group_are_needed(
    cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import KafkaError

    cluster.send(topic, [(None, "first")], 0)
    source = KafkaSource(cluster.servers, topic, follow=False)
    _have_clients(monkeypatch, KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert [m.value for m in read(source, f"{topic}-0")] == [b"first"]
    _have_clients(monkeypatch, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(SourceError, match="FindCoordinator response error"):
        read(source, f"{topic}-0")


def test_while_brokers_are_away_no_partitions_turn_up(
    cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import KafkaError

    cluster.send(topic, [(None, "first")], 0)
    source = KafkaSource(cluster.servers, topic, discover_s=1.0)
    _have_clients(monkeypatch, KafkaError._TRANSPORT)
    names = source.partitions()
    reader = source.open(names[0], None)
    assert next(item for item in reader if item)[1] == 1
    monkeypatch.setattr(_Client, "is_away", True)
    assert source.partitions() == names
    reader.close()  # type: ignore[attr-defined]
    assert source.partitions() == names  # of a worker that reads none
    with pytest.raises(SourceError, match="Broker transport failure"):
        pickle.loads(pickle.dumps(source)).partitions()


def test_a_topic_that_is_deleted_is_said(
    cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import KafkaError

    cluster.send(topic, [(None, "first")], 0)
    source = KafkaSource(cluster.servers, topic)
    _have_clients(monkeypatch, KafkaError._TRANSPORT)
    reader = source.open(f"{topic}-0", None)
    assert next(item for item in reader if item)[1] == 1
    monkeypatch.setattr("pointstamp.formats.kafka_source.LOOK_S", 0.0)
    assert [next(reader) for _ in range(3)] == [None] * 3  # it is there
    cluster.delete(topic)
    monkeypatch.setattr(_Client, "is_away", True)
    assert next(reader) is None
    monkeypatch.setattr(_Client, "is_away", False)
    with pytest.raises(SourceError, match=f"{topic}.*(Unknown topic|does not have partition 0)"):
        outlast(reader)


def outlast(reader: Iterator[Any]) -> None:
    """Read until it is over; brokers may say late that a topic is deleted."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        next(reader)


def test_what_cannot_be_read_is_said(cluster: KafkaCluster, topic: str) -> None:
    numbers(cluster, topic, 2)
    source = KafkaSource(cluster.servers, topic, follow=False)
    with pytest.raises(PositionError, match=r"partition 0 of 'topic-.*' does not have offset 9"):
        read(source, f"{topic}-0", 9)
    with pytest.raises(PositionError, match="an offset is an integer of at least 0; found '1'"):
        read(source, f"{topic}-0", "1")
    with pytest.raises(UsageError, match="start='middle' is neither 'earliest' nor 'latest'"):
        KafkaSource(cluster.servers, topic, start="middle")
    with pytest.raises(UsageError, match=r"has \['auto.offset.reset'\], which KafkaSource sets"):
        KafkaSource(cluster.servers, topic, config={"auto.offset.reset": "latest"})
    with pytest.raises(UsageError, match="discover_s= finds none later"):
        KafkaSource(cluster.servers, topic, follow=False, discover_s=1.0)


@pytest.mark.parametrize(
    ("name", "value", "refusal"),
    [
        ("servers", "", "servers is a text, such as 'host:9092,other:9092'; found ''"),
        ("servers", ["a:9092"], r"servers is a text, .*; found \['a:9092'\]"),
        ("topics", 5, "topics is a text, or several in a list; found 5"),
        ("topics", [], r"topics is a text, or several in a list; found \[\]"),
        ("topics", ["a", 5], "a topic is a text, such as 'orders'; found 5"),
        ("discover_s", "x", "discover_s is a number of seconds above 0; found 'x'"),
        ("config", 5, "config is a mapping, such as .*; found 5"),
        ("config", {5: "x"}, r"properties by their names, as texts; found \[5\]"),
    ],
)
def test_an_argument_of_another_type_is_refused_at_once(
    name: str, value: Any, refusal: str
) -> None:
    with pytest.raises(UsageError, match=refusal):
        KafkaSource(**{"servers": "127.0.0.1:1", "topics": "topic", name: value})
    if name in ("servers", "config"):
        with pytest.raises(UsageError, match=refusal):
            KafkaSink(**{"servers": "127.0.0.1:1", "topic": "topic", "name": "x", name: value})


@pytest.mark.parametrize(
    ("config", "refusal"),
    [
        ({"nonsense": 1}, 'No such configuration property: "nonsense"'),
        ({"acks": 1}, "`acks` must be set to `all`"),
        ({"stats_cb": 1}, "stats_cb"),
    ],
)
def test_a_configuration_that_the_client_refuses_is_said_when_a_dataflow_is_built(
    cluster: KafkaCluster, topic: str, config: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(UsageError, match=f"KafkaSink: Kafka's client refuses .*{refusal}"):
        KafkaSink(cluster.servers, topic, name=topic, config=config).open(ps.SinkContext())
    if "acks" not in config:
        with pytest.raises(UsageError, match=f"KafkaSource: Kafka's client refuses .*{refusal}"):
            KafkaSource(cluster.servers, topic, config=config).partitions()
    with pytest.raises(UsageError, match=r"message\.max\.bytes is an integer; found 'x'"):
        KafkaSink(cluster.servers, topic, name=topic, config={"message.max.bytes": "x"})


def test_brokers_that_are_not_there_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.formats.kafka_source.TIMEOUT_S", 0.2)
    source = KafkaSource("127.0.0.1:1", "topic", config={"log_level": 0})
    with pytest.raises(SourceError, match=r"Kafka at 127\.0\.0\.1:1: "):
        source.partitions()
    monkeypatch.setattr("pointstamp.formats.kafka_sink.OPEN_S", 0.2)
    sink = KafkaSink("127.0.0.1:1", "topic", name="topic", config={"log_level": 0})
    with pytest.raises(SinkError, match=r"KafkaSink\('127\.0\.0\.1:1', .*: cannot be opened: "):
        sink.open(ps.SinkContext())


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.formats.extras.find_spec", lambda name: None)
    with pytest.raises(ps.errors.MissingExtraError, match=r"pip install 'pointstamp\[kafka\]'"):
        KafkaSource("127.0.0.1:1", "topic")


def test_a_topic_keeps_the_laws_of_a_transactional_sink(cluster: KafkaCluster, topic: str) -> None:
    # What is read is of a topic that is there.
    cluster.send(topic, [(None, "first")], 0)
    sink = KafkaSink(cluster.servers, topic, name=topic)
    batches = [[("a", "1"), b"2"], [(None, b"3")], ["4"]]
    check_sink(sink, batches, lambda: cluster.seen(topic)[1:])


def test_records_of_one_key_stay_in_order(cluster: KafkaCluster, topic: str) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            records = [(f"k{n % 2}", str(n)) for n in range(100)]
            scope.to_stream(records).sink(KafkaSink(cluster.servers, topic, name=topic))

    ps.execute(main)
    seen = cluster.seen(topic)
    for key in ("k0", "k1"):
        assert [int(v) for k, v in seen if k == key] == list(range(int(key[1]), 100, 2))


def test_two_sinks_of_one_name_are_refused(cluster: KafkaCluster, topic: str) -> None:
    # The second one would find its epochs committed, and its messages would be lost.
    sink = KafkaSink(cluster.servers, topic, name=topic)

    def flow(scope: Any) -> None:
        messages = scope.source(KafkaSource(cluster.servers, topic, follow=False))
        messages.map(lambda m: m.value).sink(sink)
        messages.map(lambda m: m.key).sink(sink)

    cluster.send(topic, [("key", "value")], 0)
    with pytest.raises(WorkerError, match="two sinks of this run have this name"):
        ps.run(flow, threads=True)


def test_what_is_no_record_is_refused(cluster: KafkaCluster, topic: str) -> None:
    writer = KafkaSink(cluster.servers, topic, name=topic).open(ps.SinkContext())
    for record in (7, ("key", "value", "more"), ("key", 7)):
        with pytest.raises(SinkError, match=r"a record is a value or a pair .*; found .*7|more"):
            writer.write([record])
    with pytest.raises(SinkError, match=r"a record is no text: .* surrogates not"):
        writer.write(["\ud800"])
    assert writer.prepare(1) is None
    writer.close()


@pytest.mark.parametrize(
    ("config", "largest"), [({}, 1_000_000), ({"message.max.bytes": 2000}, 2000)]
)
def test_a_record_that_kafka_would_not_take_is_refused_before_a_snapshot_has_it(
    cluster: KafkaCluster, topic: str, config: dict[str, int], largest: int
) -> None:
    sink = KafkaSink(cluster.servers, topic, name=topic, config=config)
    writer = sink.open(ps.SinkContext())
    fits = largest - 64
    with pytest.raises(
        SinkError, match=f"a record of {fits + 1} bytes is larger than .* {largest},"
    ):
        writer.write([("k", b"x" * fits)])
    writer.write([("k", b"x" * (fits - 1))])
    sink.commit([writer.prepare(1)])
    assert [len(value) for _, value in cluster.seen(topic)] == [fits - 1]


def test_a_program_of_the_same_name_commits_what_is_left_and_ends_the_one_before(
    cluster: KafkaCluster, topic: str
) -> None:
    first = KafkaSink(cluster.servers, topic, name=topic)
    writer = first.open(ps.SinkContext())
    tokens = []
    for epoch in (1, 2):
        writer.write([str(epoch)])
        tokens.append(writer.prepare(epoch))
    first.commit(tokens[:1])
    KafkaSink(cluster.servers, topic, name=topic).commit(tokens)
    if cluster.fences:
        with pytest.raises(SinkError, match="another program has begun to write under this"):
            first.commit(tokens[1:])
    assert sorted(value for _, value in cluster.seen(topic)) == ["1", "2"]
    writer.close()


def test_a_commit_that_was_deleted_is_none(cluster: KafkaCluster, topic: str) -> None:
    from confluent_kafka import Producer

    def committed() -> list[str]:
        sink = KafkaSink(cluster.servers, topic, name=topic)
        sink.commit([{"run": "a", "epoch": 1, "worker": 0, "records": [(None, b"x")]}])
        return [value for _, value in cluster.seen(topic)]

    assert [committed(), committed()] == [["x"], ["x"]]
    producer = Producer({"bootstrap.servers": cluster.servers, "log_level": 3})
    producer.produce(f"{topic}.commits", None, json.dumps([topic, 0]))
    assert producer.flush(30) == 0
    assert committed() == ["x", "x"]


@pytest.mark.parametrize("key", [None, "", "a", "7", "[1]"])
def test_a_topic_of_commits_that_has_something_else_is_refused(
    cluster: KafkaCluster, topic: str, key: str | None
) -> None:
    cluster.send(f"{topic}.commits", [(key, "x")], 0)
    sink = KafkaSink(cluster.servers, topic, name=topic)
    with pytest.raises(SinkError, match=r"'topic-.*\.commits' has a record that is no commit, of"):
        sink.commit([{"run": "a", "epoch": 1, "worker": 0, "records": []}])


class LostAnswer(EndsAfterCommit, KafkaSink):
    """Such a sink."""


def test_a_run_from_topic_to_topic_that_ends_after_a_commit_goes_on_exactly_once(
    cluster: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    numbers(cluster, topic, 50)
    output = f"{topic}-sums"
    LostAnswer.n_left = 1

    def counted(key: str, one: int, n: int) -> Any:
        return n + one, [(key, json.dumps(n + one))]

    def flow(scope: Any) -> None:
        messages = scope.source(KafkaSource(cluster.servers, topic, follow=False))
        keys = messages.map(lambda message: (f"{message.partition} {message.key}", 1))
        sums = keys.state_machine(counted, default=0)
        sums.sink(LostAnswer(cluster.servers, output, name=output))

    def run(workers: int) -> None:
        ps.run(flow, workers, threads=True, checkpoint=tmp_path, epoch_s=0.01)

    with pytest.raises(WorkerError, match="the program ends here"):
        run(2)
    assert cluster.seen(output)  # some of it is committed
    run(1)
    cluster.send(topic, [("k0", "late")], 0)
    run(2)
    keys = Counter(
        f"{partition} {f'k{k % 3}'.encode()!r}" for partition in (0, 3) for k in range(50)
    )
    keys["0 b'k0'"] += 1
    expected = sorted((key, str(n + 1)) for key, count in keys.items() for n in range(count))
    assert sorted(cluster.seen(output)) == expected


class FusedKafka(KafkaSink):
    """A topic that outlives the workers, and crash points around its commits."""

    def __init__(self, fuse: Fuse, cluster: KafkaCluster, topic: str) -> None:
        super().__init__(cluster.servers, topic, name=topic)
        self._fuse = fuse
        self._cluster = cluster

    def open(self, context: Any) -> Any:
        writer: Any = super().open(context)
        write = writer.write
        writer.write = lambda batch: write([(key, str(total)) for key, total in batch])
        return writer

    def commit(self, tokens: Any) -> None:
        for token in tokens:  # one by one, so that the program can end between two
            self._fuse.burn()
            super().commit([token])
        self._fuse.burn()
        self.abort("")  # as by another process, the next time

    def seen(self) -> Counter[Any]:
        return Counter((key, int(total)) for key, total in self._cluster.seen(self._topic))


@pytest.mark.parametrize("seed", range(4))
def test_a_flow_that_crashes_anywhere_has_its_messages_exactly_once(
    cluster: KafkaCluster, topic: str, seed: int
) -> None:
    def make(fuse: Fuse) -> FusedKafka:
        return FusedKafka(fuse, cluster, topic)

    assert outlived(seed, make_store=make) == totals()
