"""A sink that writes to a topic of Kafka: an epoch is seen, whole, when it counts.

Kafka's transactions cannot be prepared: one that is open when its producer ends is aborted by the
next producer of that name. So what an epoch has is kept in its token, which is part of the
snapshot, and written to Kafka when that counts, in one transaction with a record of it in a topic
of commits. A program that begins again finds that record, or not, and so knows whether the last
one came to it.

The transactional id is that of the worker whose output it is. To begin with it ends what
another process of that id has under way, so that a program that was lost, and still runs, commits
nothing behind the back of the next one.

Source: transactions and fencing as of KIP-98, by confluent-kafka; the topic of commits is the table
of a sink into a database (`sql_sink.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pointstamp.containers.registry import kind_of
from pointstamp.errors import SinkError, UsageError
from pointstamp.formats.connector_arguments import check_text
from pointstamp.formats.extras import require_extra
from pointstamp.formats.kafka_source import client_config, goes_on, new_client
from pointstamp.formats.sink_claims import claim, release

TIMEOUT_S = 60.0
"""How long Kafka may take to begin or to commit a transaction, or to read the commits."""

OPEN_S = 30.0
"""How long a broker may take to answer when the sink is opened."""

LARGEST = 1_000_000
"""What librdkafka takes of one message where `config` has no "message.max.bytes"."""

OVERHEAD = 64
"""Of that, bytes that are not for key and value: librdkafka counts 36."""

_OURS = frozenset(["bootstrap.servers", "transactional.id", "enable.idempotence"])

Token = dict[str, Any]
"""What is prepared: run, epoch and worker, and the records as (key, value)."""

_Commit = tuple[str, int]
"""The run and the epoch that a worker's output was last committed of."""


class KafkaSink:
    """Writes records to a Kafka topic; a `TransactionalSink`.

    A record is a value, or a pair of a key and a value: each bytes, text or None. Records of one
    key come to one partition, those of one worker in their order. Needs the extra `kafka`.

    Parameters
    ----------
    servers : str
        Brokers to begin with, as "host:9092,other:9092".
    topic : str
    name : str
        Of this sink, the same each time the program begins, and of no other: by it Kafka knows
        its transactions (`<name>-<worker>`).
    commits : str, optional
        The topic that has a record of each commit; `<topic>.commits`, if not given. Where Kafka
        does not make topics by itself, it has to be there. It should be compacted
        (`cleanup.policy=compact`), as it is read as a whole when a program begins; several sinks
        may share it.
    config : mapping, optional
        Of librdkafka's client, such as `{"compression.type": "zstd"}`.

    Raises
    ------
    SinkError
        When the dataflow is built, if no broker answers, or the topic may not be written to;
        later, if a record is none of these; if Kafka does not take one; if another program has
        begun to write under this name, or another sink of the run has it.
    UsageError
        When the dataflow is built, if `config` is not as librdkafka has it.
    MissingExtraError
        If confluent-kafka is not installed.

    Notes
    -----
    Guarantees: with a checkpoint exactly once, for readers with `isolation.level=read_committed`:
    an epoch's records are seen, all of a worker at once, when it counts. Until then they are in
    memory, and in the snapshot. Without a checkpoint they are seen when the epoch is complete.

    `config`, the brokers and the topic are looked at when the dataflow is built. What brokers
    refuse later is seen when a snapshot counts already: a transactional id that it may not
    have, or a message beyond the topic's `max.message.bytes`. Then the program goes on once they
    take it.

    Examples
    --------
    >>> KafkaSink("localhost:9092", "totals", name="totals of shops")
    KafkaSink('localhost:9092', 'totals', name='totals of shops')
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        name: str,
        commits: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        require_extra("confluent_kafka", "kafka", "Kafka is written to by confluent-kafka")
        check_text("topic", topic, "'totals'")
        check_text("name", name, "'totals of shops'")
        if commits is not None:
            check_text("commits", commits, "'totals.commits'")
        self._servers = servers
        self._topic = topic
        self._name = name
        self._commits = f"{topic}.commits" if commits is None else commits
        self._config = client_config(servers, config, _OURS, "KafkaSink")
        self.largest = _number(self._config, "message.max.bytes", LARGEST) - OVERHEAD
        """How many bytes of key and value a record may have."""
        self._producers: dict[int, Any] = {}
        """By worker whose output is committed here."""
        self._last: dict[int, _Commit] = {}
        """By worker: the last commit."""

    def open(self, context: Any) -> KafkaSinkWriter:
        """The writer of a worker; see `Sink`."""
        self._check(context.index)
        writer = KafkaSinkWriter(self, context.index, context.run)
        claim(
            writer,
            context,
            ("messages", self._servers, self._commits, self._name),
            f"{self}: two sinks of this run have this name, by which Kafka knows what is "
            "committed: give each its own",
        )
        return writer

    def _check(self, worker: int) -> None:
        """Raise if Kafka would take nothing: later the snapshot that has it would count."""
        from confluent_kafka import KafkaError, KafkaException

        # It begins no transactions, which would end those of worker 0: that commits for all now.
        client = self._new_client(worker)
        made_later = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
        for topic in (self._topic, self._commits):
            try:
                error = client.list_topics(topic, OPEN_S).topics[topic].error
            except KafkaException as cause:
                raise self._refusal("cannot be opened", cause) from cause
            if error is not None and error.code() not in made_later:
                raise self._refusal(f"topic {topic!r}", KafkaException(error))

    def commit(self, tokens: Sequence[Token]) -> None:
        """Write what is prepared, unless it was written; see `TransactionalSink`."""
        by_worker: dict[int, list[Token]] = {}
        for token in tokens:
            by_worker.setdefault(token["worker"], []).append(token)
        if new := [worker for worker in by_worker if worker not in self._producers]:
            # First: from here on no other process commits anything of theirs.
            producers = {worker: self._new_producer(worker) for worker in new}
            found = self._read_commits()
            self._producers.update(producers)
            self._last.update({worker: found[worker] for worker in new if worker in found})
        for worker, prepared in by_worker.items():
            run, epoch = self._last.get(worker, ("", -1))
            fresh = [each for each in prepared if each["run"] != run or each["epoch"] > epoch]
            if fresh:
                self._write(worker, fresh)

    def abort(self, run: str) -> None:
        """Nothing is prepared but in tokens; see `TransactionalSink`."""
        # The producers of other workers were for what those of a former run have prepared.
        self._producers.clear()
        self._last.clear()

    def _new_client(self, worker: int) -> Any:
        from confluent_kafka import Producer

        config = {**self._config, "transactional.id": f"{self._name}-{worker}"}
        return new_client(Producer, config, "KafkaSink")

    def _new_producer(self, worker: int) -> Any:
        from confluent_kafka import KafkaException

        producer = self._new_client(worker)
        try:
            producer.init_transactions(TIMEOUT_S)
        except KafkaException as error:
            raise self._refusal("cannot begin transactions", error) from error
        return producer

    def _write(self, worker: int, tokens: list[Token]) -> None:
        """One transaction: the records of some epochs, and that they are written."""
        from confluent_kafka import KafkaException

        producer = self._producers[worker]
        last = tokens[-1]["run"], tokens[-1]["epoch"]
        try:
            producer.begin_transaction()
            for token in tokens:
                for key, value in token["records"]:
                    _produce(producer, self._topic, key, value)
            _produce(producer, self._commits, self._key(worker), json.dumps(last))
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            del self._producers[worker]  # the next one aborts what is under way
            raise self._refusal(f"cannot commit epoch {last[1]}", error) from error
        self._last[worker] = last

    def _key(self, worker: int) -> str:
        return json.dumps([self._name, worker])

    def _read_commits(self) -> dict[int, _Commit]:
        """By worker, the last commit that the topic has."""
        from confluent_kafka import Consumer, KafkaException

        client = Consumer(
            {
                "group.id": "pointstamp",  # which it needs, and does not join
                "fetch.wait.max.ms": 10,  # before which no end is reported
                **self._config,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        found: dict[int, _Commit] = {}
        try:
            for key, value in self._records_of(client):
                worker = self._worker_of(key)
                if worker is None:
                    continue
                if value is None:  # it was deleted
                    found.pop(worker, None)
                else:
                    run, epoch = json.loads(value)
                    found[worker] = run, epoch
        except KafkaException as error:
            raise self._refusal(f"cannot read {self._commits!r}", error) from error
        finally:
            client.close()
        return found

    def _worker_of(self, key: bytes | None) -> int | None:
        """Of a record in the topic of commits, whose it is; None if it is of another sink."""
        try:
            name, worker = json.loads(key or b"")
        except (TypeError, ValueError) as error:
            raise SinkError(
                f"{self}: {self._commits!r} has a record that is no commit, of the key {key!r}: "
                "give a topic that has nothing else as commits="
            ) from error
        return int(worker) if name == self._name else None

    def _records_of(self, client: Any) -> Iterator[tuple[bytes | None, bytes | None]]:
        """The keys and values of the topic of commits; of a key, in their order."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

        topic = client.list_topics(self._commits, TIMEOUT_S).topics[self._commits]
        if topic.error is not None:
            if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return  # the first commit is to make it
            raise KafkaException(topic.error)
        left = set(topic.partitions)
        client.assign([TopicPartition(self._commits, n, OFFSET_BEGINNING) for n in left])
        deadline = time.monotonic() + TIMEOUT_S
        while left:
            for message in client.consume(10_000, 0.1):
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + TIMEOUT_S
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    deadline = time.monotonic() + TIMEOUT_S
                    left.discard(message.partition())
                elif not goes_on(error):
                    raise KafkaException(error)
            if time.monotonic() > deadline:
                raise SinkError(
                    f"{self}: partitions {sorted(left)} of {self._commits!r} were not read to "
                    f"their ends within {TIMEOUT_S:g} s"
                )

    def _refusal(self, what: str, error: Any) -> SinkError:
        from confluent_kafka import KafkaError

        cause = error.args[0]
        fenced = (
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
        )
        if cause.code() in fenced:
            return SinkError(
                f"{self}: {what}: another program has begun to write under this name "
                f"({cause.str()})"
            )
        return SinkError(f"{self}: {what}: {cause.name()}: {cause.str()}")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_producers": {}, "_last": {}}

    def __repr__(self) -> str:
        return f"KafkaSink({self._servers!r}, {self._topic!r}, name={self._name!r})"


class KafkaSinkWriter:
    """What one worker writes with: keeps an epoch's records until it is complete."""

    def __init__(self, sink: KafkaSink, index: int, run: str) -> None:
        self._sink = sink
        self._index = index
        self._run = run
        self._records: list[tuple[bytes | None, bytes | None]] = []

    def write(self, batch: Any) -> None:
        """Take a batch of values, or of pairs of a key and a value."""
        for record in kind_of(batch).records(batch):
            pair = record if type(record) is tuple else (None, record)
            if len(pair) != 2 or not all(isinstance(x, bytes | str | None) for x in pair):
                raise SinkError(
                    f"{self._sink}: a record is a value or a pair of a key and a value, each "
                    f"bytes, text or None; found {record!r}"
                )
            try:
                key, value = _as_bytes(pair[0]), _as_bytes(pair[1])
            except UnicodeEncodeError as error:
                raise SinkError(f"{self._sink}: a record is no text: {error}") from error
            # Here, and not when the snapshot that has it counts: no program could begin again.
            n_bytes = len(key or b"") + len(value or b"")
            if n_bytes > self._sink.largest:
                raise SinkError(
                    f"{self._sink}: a record of {n_bytes} bytes is larger than message.max.bytes "
                    f"allows, which is {self._sink.largest + OVERHEAD}, and has {OVERHEAD} beside "
                    "the record: config= may set it, and the broker its own"
                )
            self._records.append((key, value))

    def prepare(self, epoch: int) -> Token | None:
        """All records of the epoch are the token; see `TransactionalWriter`."""
        if not self._records:
            return None
        records, self._records = self._records, []
        return {"run": self._run, "epoch": epoch, "worker": self._index, "records": records}

    def close(self) -> None:
        """Give up what is not prepared."""
        release(self)
        self._records = []


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    """A property that is a number.

    >>> _number({"message.max.bytes": "2000"}, "message.max.bytes", 5)
    2000
    """
    found = config.get(name, default)
    try:
        return int(found)
    except (TypeError, ValueError) as error:
        raise UsageError(f"config={{...}}: {name} is an integer; found {found!r}") from error


def _as_bytes(found: bytes | str | None) -> bytes | None:
    return found.encode() if isinstance(found, str) else found


def _produce(producer: Any, topic: str, key: Any, value: Any) -> None:
    """Give a record to the client, which has room for so many."""
    while True:
        try:
            producer.produce(topic, value, key)
            producer.poll(0)
            return
        except BufferError as error:
            if not len(producer):
                raise SinkError(
                    f"a record of topic {topic!r} is larger than the client keeps: config= has "
                    "queue.buffering.max.kbytes"
                ) from error
            producer.poll(0.1)
