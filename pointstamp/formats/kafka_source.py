"""A source of Kafka's topics: partitions are Kafka's, positions are offsets, kept in snapshots.

No consumer group is joined, and no offset is committed to Kafka: which worker reads a partition is
the dataflow's to say, and how far it came is part of its snapshot, or the two would disagree after
a crash. Each worker has one client, whose messages are handed out to the readers of its
partitions: a client for each would have a thread and a connection for each broker and partition.

Source: the client is librdkafka's, by confluent-kafka.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pointstamp.errors import PositionError, SourceError, UsageError
from pointstamp.formats.connector_arguments import check_seconds, check_text
from pointstamp.formats.extras import require_extra

N_MESSAGES = 10_000
"""How many messages are taken from the client at a time, at most."""

TIMEOUT_S = 30.0
"""How long a broker may take to say what there is."""

DISCOVER_S = 2.0
"""The same of new partitions, for which a worker that reads others would wait."""

LOOK_S = 30.0
"""How often it is looked whether the topics that are read are there: the client waits in silence
for one that was deleted."""

POLL_S = 0.01

BEGINNING = -2
"""The offset by which Kafka calls the first message that it has."""

NO_TIME = -1
"""The time by which Kafka says that a message has none."""

_Place = tuple[str, int]
"""A topic, and the number of a partition of it."""

_OURS = frozenset(
    ["bootstrap.servers", "enable.auto.commit", "enable.partition.eof", "auto.offset.reset"]
)


class KafkaMessage(NamedTuple):
    """A Kafka message, as read by `KafkaSource`.

    Attributes
    ----------
    key, value : bytes or None
    topic : str
    partition, offset : int
        Where it is in the topic.
    time_ms : int or None
        When it was made, or appended, as the topic has it: milliseconds since 1970.
    headers : tuple of (str, bytes or None)
    """

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    time_ms: int | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KafkaSource:
    """Reads Kafka topics, as `KafkaMessage`; a `Source`.

    Needs the extra `kafka`.

    Parameters
    ----------
    servers : str
        Brokers to begin with, as "host:9092,other:9092".
    topics : str or sequence of str
    start : str
        Where a partition begins that there is no position of: "earliest", or "latest", which is
        behind what it has when it is first read. Partitions that turn up while it runs are read
        from their beginning.
    follow : bool
        Whether to wait for more at the end of a partition. Otherwise that is the end of it.
    discover_s : float, optional
        Look for new partitions every so many seconds.
    config : mapping, optional
        Of librdkafka's client, such as `{"security.protocol": "SASL_SSL", ...}`.

    Raises
    ------
    SourceError
        While it runs, if a topic is not there, or not any more, or cannot be read.
    PositionError
        If a partition does not have the position any more: it is older than what Kafka keeps, or
        the topic was made anew.
    UsageError
        When it is built into a dataflow, if `config` is not as librdkafka has it.
    MissingExtraError
        If confluent-kafka is not installed.

    Notes
    -----
    Guarantees: each message of each partition once, in its order, from any offset that Kafka still
    has. What a transaction has not committed is not read (`isolation.level`). A broker that is
    away is waited for.

    Examples
    --------
    >>> KafkaSource("localhost:9092", ["orders", "returns"], follow=False)
    KafkaSource('localhost:9092', ['orders', 'returns'])
    """

    def __init__(
        self,
        servers: str,
        topics: str | Sequence[str],
        *,
        start: str = "earliest",
        follow: bool = True,
        discover_s: float | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        require_extra("confluent_kafka", "kafka", "Kafka is read by confluent-kafka")
        names = [topics] if isinstance(topics, str) else topics
        if not isinstance(names, Sequence | Set) or not names:
            raise UsageError(f"topics is a text, or several in a list; found {topics!r}")
        for topic in names:
            check_text("a topic", topic, "'orders'")
        check_seconds("discover_s", discover_s)
        if start not in ("earliest", "latest"):
            raise UsageError(f"start={start!r} is neither 'earliest' nor 'latest'")
        if discover_s is not None and not follow:
            raise UsageError("with follow=False partitions end, and discover_s= finds none later")
        self._servers = servers
        self._topics = list(names)
        self._start = start
        self._follow = follow
        self._config = client_config(servers, config, _OURS, "KafkaSource")
        self._of_thread = threading.local()
        self.discover_s = discover_s
        self.start_of_new = BEGINNING
        self.poll_s = POLL_S

    def partitions(self) -> Sequence[str]:
        """As `topic-0` and so on."""
        known = None if self.discover_s is None else getattr(self._of_thread, "listed", None)
        reading: _SharedConsumer | None = getattr(self._of_thread, "client", None)
        is_open = reading is not None and not reading.is_closed
        client = reading.client if reading is not None and is_open else self._new_client()
        timeout_s = TIMEOUT_S if known is None else DISCOVER_S
        try:
            self._of_thread.listed = [
                f"{topic}-{number}"
                for topic in self._topics
                for number in _partitions_of(client, self._servers, topic, timeout_s)
            ]
        except SourceError as error:
            # While brokers are away a worker goes on with the partitions that it knows.
            if known is None or error.__cause__ is None or not goes_on(error.__cause__.args[0]):
                raise
        finally:
            if not is_open:
                client.close()
        return list(self._of_thread.listed)

    def open(
        self, partition: str, position: int | None
    ) -> Iterator[tuple[list[KafkaMessage], int] | None]:
        """The messages from an offset on; see `Source`."""
        if position is not None and (
            type(position) is not int or (position < 0 and position != BEGINNING)
        ):
            raise PositionError(f"an offset is an integer of at least 0; found {position!r}")
        topic, _, number = partition.rpartition("-")
        place = topic, int(number)
        client = self._client()
        try:
            if position is not None or self._start == "earliest":
                client.begin(place, BEGINNING if position is None else position)
            else:
                position = client.end_of(place)
                client.begin(place, position)
                yield [], position  # a program that ends now begins there again
            while True:
                messages, after, is_end = client.take(place, position)
                if after is not None and after != position:
                    position = after
                    yield messages, position
                elif self._follow or not is_end:
                    yield None
                if is_end and not self._follow:
                    return
        finally:
            client.end(place)

    def _new_client(self) -> Any:
        from confluent_kafka import Consumer

        config = {
            "group.id": "pointstamp",  # which it needs, and does not join
            "fetch.wait.max.ms": 100,  # before which no new partition is asked for
            **self._config,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        return new_client(Consumer, config, "KafkaSource")

    def _client(self) -> _SharedConsumer:
        """That of this worker, which is a thread at least."""
        client: _SharedConsumer | None = getattr(self._of_thread, "client", None)
        if client is None or client.is_closed:
            client = self._of_thread.client = _SharedConsumer(self._new_client(), self._servers)
        return client

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_of_thread"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._of_thread = threading.local()

    def __repr__(self) -> str:
        return f"KafkaSource({self._servers!r}, {self._topics!r})"


def client_config(
    servers: str, config: Mapping[str, Any] | None, ours: frozenset[str], whose: str
) -> dict[str, Any]:
    """The configuration of a client, without what a source or a sink sets itself.

    Raises
    ------
    UsageError
        If it has some of that; if it is no mapping, or there are no servers.

    >>> client_config("a:1", {"client.id": "x"}, frozenset(["acks"]), "KafkaSink")
    {'client.id': 'x', 'bootstrap.servers': 'a:1'}
    """
    check_text("servers", servers, "'host:9092,other:9092'")
    if config is not None and not isinstance(config, Mapping):
        raise UsageError(
            f"config is a mapping, such as {{'security.protocol': 'SASL_SSL'}}; found {config!r}"
        )
    given = dict(config or {})
    if other := [name for name in given if not isinstance(name, str)]:
        raise UsageError(f"config={{...}} has properties by their names, as texts; found {other}")
    if taken := sorted(ours & given.keys()):
        raise UsageError(f"config={{...}} has {taken}, which {whose} sets itself: leave that out")
    return {**given, "bootstrap.servers": servers}


def new_client(kind: Callable[[dict[str, Any]], Any], config: dict[str, Any], whose: str) -> Any:
    """A client of librdkafka, which looks at its configuration, and connects later.

    Raises
    ------
    UsageError
        If the configuration is wrong.
    """
    from confluent_kafka import KafkaException

    try:
        return kind(config)
    except (KafkaException, TypeError, ValueError) as error:
        cause = error.args[0].str() if isinstance(error, KafkaException) else error
        raise UsageError(
            f"{whose}: Kafka's client refuses its configuration: {cause}; see config={{...}}"
        ) from error


def goes_on(error: Any) -> bool:
    """Whether a client that reads goes on by itself after an error.

    It does when brokers come back, and without the group that it has to name and is never in.
    """
    from confluent_kafka import KafkaError

    return error.code() in (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )


def _partitions_of(client: Any, servers: str, topic: str, timeout_s: float) -> list[int]:
    from confluent_kafka import KafkaException

    try:
        found = client.list_topics(topic, timeout_s).topics[topic]
    except KafkaException as error:
        raise SourceError(f"Kafka at {servers}: {error.args[0].str()}") from error
    if found.error is not None:
        raise SourceError(f"Kafka at {servers}: topic {topic!r}: {found.error.str()}")
    return sorted(found.partitions)


class _SharedConsumer:
    """One client, whose messages are handed out by partition."""

    def __init__(self, client: Any, servers: str) -> None:
        from confluent_kafka import KafkaError

        self.client = client
        self._servers = servers
        self._waiting: dict[_Place, deque[Any]] = {}
        """By partition that is read: messages, and events, that were not asked for yet."""
        self._known: set[str] = set()
        """The topics of which the client knows where their partitions are."""
        self._looked_at = time.monotonic()
        self._end = KafkaError._PARTITION_EOF
        self._lost = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
        self.is_closed = False

    def end_of(self, place: _Place) -> int:
        """The offset behind the last message of a partition."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            _, end = self.client.get_watermark_offsets(TopicPartition(*place), TIMEOUT_S)
        except KafkaException as error:
            raise SourceError(f"Kafka at {self._servers}: {error.args[0].str()}") from error
        return int(end)

    def begin(self, place: _Place, offset: int) -> None:
        """Have a partition be read from an offset on."""
        from confluent_kafka import TopicPartition

        if place[0] not in self._known:
            # Else the client looks for the leader of a partition when it has missed it, half a
            # second later.
            _partitions_of(self.client, self._servers, place[0], TIMEOUT_S)
            self._known.add(place[0])
        self._waiting[place] = deque()
        self.client.incremental_assign([TopicPartition(*place, offset)])

    def take(
        self, place: _Place, position: int | None
    ) -> tuple[list[KafkaMessage], int | None, bool]:
        """What is at hand of a partition, the position after it, and whether it ends there.

        At the end that is behind what is no message as well, such as the end of a transaction:
        Kafka keeps that no longer than the messages, and would not have the position before it.
        """
        waiting = self._waiting[place]
        if not waiting:
            if time.monotonic() - self._looked_at >= LOOK_S:
                self._look()
            for message in self.client.consume(N_MESSAGES, 0.0):
                self._hand_out(message)
        found: list[KafkaMessage] = []
        is_end = False
        while waiting:
            message = waiting.popleft()
            error = message.error()
            if error is None:
                found.append(_as_record(message))
                position = message.offset() + 1
            elif error.code() == self._end:
                is_end = True
                if message.offset() >= 0:
                    position = max(message.offset(), position or 0)
            elif error.code() in self._lost:
                raise PositionError(
                    f"Kafka at {self._servers}: partition {place[1]} of {place[0]!r} does not have "
                    f"offset {position} any more ({error.str()}): it keeps messages for a time; "
                    "read again from a checkpoint of its own, or with start='latest'"
                )
            elif not goes_on(error):
                raise SourceError(f"Kafka at {self._servers}: {error.str()}")
        return found, position, is_end

    def _look(self) -> None:
        """Raise if a partition that is read is not there any more."""
        for topic in sorted({topic for topic, _ in self._waiting}):
            try:
                there = _partitions_of(self.client, self._servers, topic, DISCOVER_S)
            except SourceError as error:
                if error.__cause__ is None or not goes_on(error.__cause__.args[0]):
                    raise
                break  # brokers are away
            for number in sorted(number for other, number in self._waiting if other == topic):
                if number not in there:
                    raise SourceError(
                        f"Kafka at {self._servers}: topic {topic!r} does not have partition "
                        f"{number} any more, which was read: the topic was deleted, or made anew"
                    )
        self._looked_at = time.monotonic()

    def _hand_out(self, message: Any) -> None:
        waiting = self._waiting.get((message.topic(), message.partition()))
        if waiting is not None:
            waiting.append(message)
            return
        error = message.error()
        # Of a partition that is read no more; of none, it is of the client.
        if error is not None and error.code() != self._end and not goes_on(error):
            raise SourceError(f"Kafka at {self._servers}: {error.str()}")

    def end(self, place: _Place) -> None:
        """Read a partition no more; with the last, the client is closed."""
        from confluent_kafka import TopicPartition

        if self._waiting.pop(place, None) is not None and self._waiting:
            self.client.incremental_unassign([TopicPartition(*place)])
        if not self._waiting and not self.is_closed:
            self.is_closed = True
            self.client.close()


def _as_record(message: Any) -> KafkaMessage:
    kind, time_ms = message.timestamp()
    return KafkaMessage(
        message.key(),
        message.value(),
        message.topic(),
        message.partition(),
        message.offset(),
        # 0 is TIMESTAMP_NOT_AVAILABLE, and -1 Kafka's own for a message without one.
        time_ms if kind and time_ms != NO_TIME else None,
        tuple(message.headers() or ()),
    )
