"""A cluster of Kafka in memory: that of librdkafka, which each client can have, for all of them.

It is there as long as the client that has it. Topics are made with the first message, and have four
partitions. It knows transactions as far as a committed one is seen; an aborted one is seen as well,
and a producer does not end another one of its name. Brokers that know all of it are named by the
environment variable `POINTSTAMP_KAFKA`, "host:9092", which make topics of four partitions by
themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

LIBRARY = "confluent_kafka.libs/librdkafka-*.so*"


class KafkaCluster:
    """What tests ask of it.

    Attributes
    ----------
    servers : str
        Where it is, for clients of the library.
    fences : bool
        Whether a producer ends another one of its name.
    """

    def __init__(self) -> None:
        from confluent_kafka import Producer

        given = os.environ.get("POINTSTAMP_KAFKA")
        self.fences = given is not None
        config = {"bootstrap.servers": given} if given else {"test.mock.num.brokers": 1}
        self._producer = Producer({**config, "log_level": 3})
        brokers = self._producer.list_topics(timeout=30).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self.send("first", [(None, "and all connections that it needs are there")], 0)

    def send(self, topic: str, records: Sequence[tuple[str | None, str]], partition: int) -> None:
        """Append to a partition."""
        for key, value in records:
            self._producer.produce(topic, value, key, partition)
        assert self._producer.flush(30) == 0

    def seen(self, topic: str) -> list[tuple[str | None, str]]:
        """Keys and values of all that is committed, by partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        client = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "tests",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "isolation.level": "read_committed",
            }
        )
        found: list[tuple[str | None, str]] = []
        try:
            left = set(client.list_topics(topic, 30).topics[topic].partitions)
            client.assign([TopicPartition(topic, number, 0) for number in sorted(left)])
            while left:
                message: Any
                for message in client.consume(1000, 0.1):
                    error = message.error()
                    if error is None:
                        key = message.key()
                        found.append((key and key.decode(), message.value().decode()))
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        left.discard(message.partition())
        finally:
            client.close()
        return found

    def delete(self, topic: str) -> None:
        """Delete a topic, which of the cluster in memory only librdkafka itself can."""
        import confluent_kafka
        from confluent_kafka.admin import AdminClient

        if self.fences:
            AdminClient({"bootstrap.servers": self.servers}).delete_topics([topic])[topic].result()
            return
        found = next(iter(Path(confluent_kafka.__file__).parent.parent.glob(LIBRARY)), None)
        if found is None:
            pytest.skip("confluent-kafka has its librdkafka elsewhere")
        library = ctypes.CDLL(str(found))
        library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        library.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
        library.rd_kafka_mock_topic_delete.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        # The first that a client has is where librdkafka's is.
        client = ctypes.c_void_p.from_address(id(self._producer) + object.__basicsize__)
        cluster = library.rd_kafka_handle_mock_cluster(client)
        assert library.rd_kafka_mock_topic_delete(cluster, topic.encode()) == 0

    def close(self) -> None:
        """With the client it ends."""
        del self._producer


@contextlib.contextmanager
def kafka_cluster() -> Iterator[KafkaCluster]:
    """One for some tests."""
    cluster = KafkaCluster()
    try:
        yield cluster
    finally:
        cluster.close()
