"""Conformance suites of sources and sinks: whether they keep what `Source` and `Sink` promise.

A source that breaks a law does not fail: it loses records, or brings them twice, and only after a
crash. So `check_source` begins again at each position, and `check_sink` commits twice, by objects
that have been pickled, and leaves things uncommitted as a crash does.
"""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pointstamp.containers.keys import canonical_key
from pointstamp.containers.registry import batches_of, kind_of
from pointstamp.dataflow.connectors import SinkContext, Source, TransactionalSink
from pointstamp.errors import ContainerError, UsageError
from pointstamp.operators.partitioned_source import partitions_of

N_BATCHES = 20
"""How many batches of a partition are read, of one that may not end."""

N_POSITIONS = 10
"""At how many positions of a partition reading begins again."""

IDLE_S = 0.5
"""For how long a reader may have nothing before that counts as the end of what is there."""

_Item = tuple[list[Any], bytes]
"""The records of a batch, and its position as it is stored."""

_Read = Callable[..., list[_Item]]
"""`_read` of a source: by partition and position, all or so much."""


class ConnectorLawError(AssertionError):
    """A source or a sink breaks a law of sources and sinks.

    Attributes
    ----------
    law : str
        Which one.
    """

    def __init__(self, law: str, found: str) -> None:
        super().__init__(f"{law}; {found}")
        self.law = law


def check_source(
    source: Source,
    *,
    n_batches: int = N_BATCHES,
    n_positions: int = N_POSITIONS,
    idle_s: float = IDLE_S,
    seed: int = 0,
) -> None:
    """Check that a source can be resumed at each of its positions.

    Reads each partition from the beginning, twice, and from positions on the way, each as it is
    when it was pickled and back; and compares the records.

    Parameters
    ----------
    source : Source
        With at least one partition that has records. It may go on for ever; what it brings
        meanwhile must not change.
    n_batches : int
        How many batches to read of each partition, at most.
    n_positions : int
        At how many positions of each to begin again: drawn from `seed` where there are more.
    idle_s : float
        For how long a reader may have nothing before that counts as the end of what is there.

    Raises
    ------
    ConnectorLawError
        Naming the law that does not hold, the partition and the position.

    Examples
    --------
    >>> class Late:
    ...     def partitions(self):
    ...         return ["a"]
    ...     def open(self, partition, position):
    ...         for n in range(position or 0, 3):
    ...             yield [n], n  # and not n + 1: the record comes again
    >>> try:
    ...     check_source(Late())
    ... except ConnectorLawError as error:
    ...     print(error)
    from a position on comes what comes after it; partition 'a' has [1, 2] after position 0, and \
read from there on [0, 1, 2]
    """
    if not isinstance(source, Source):
        raise UsageError(
            f"a source has partitions() and open(partition, position), and {source!r:.200} has not"
        )
    names = partitions_of(source, type(source).__name__)
    again = partitions_of(source, type(source).__name__)
    if getattr(source, "discover_s", None) is None:
        _require(names == again, "partitions() gives the same each time", f"{names} and {again}")
    _require(bool(names), "a source to be checked has a partition", "found none")
    draw = random.Random(seed)
    read_items = partial(_read, source, idle_s)
    read = {name: read_items(name, None, n_batches) for name in names}
    _require(
        any(records for items in read.values() for records, _ in items),
        "a source to be checked has records",
        f"found none in {names}",
    )
    _check_sizes(source, names, read)
    for name, items in read.items():
        _check_again(read_items, name, items, n_batches)
        places: Sequence[int] = range(len(items))
        if len(items) > n_positions:
            places = sorted(draw.sample(places, n_positions))
        for place in places:
            _check_resumed(read_items, name, items, place, n_batches)


def _check_sizes(source: Source, names: list[str], read: dict[str, list[_Item]]) -> None:
    if not callable(getattr(source, "sizes", None)):
        return
    sizes = source.sizes()  # type: ignore[attr-defined]  # a source may have it
    _require(set(names) <= set(sizes), "sizes() has each partition", f"found {sizes}")
    law = "what comes before a position is an integer, grows with it, and is at most the size"
    for name, items in read.items():
        positions = [pickle.loads(stored) for _, stored in items]
        n_before = getattr(source, "n_before", lambda partition, position: position)
        found = [n_before(name, position) for position in positions]
        _require(
            all(type(n) is int and 0 <= n <= sizes[name] for n in found) and found == sorted(found),
            law,
            f"partition {name!r} of size {sizes[name]} has {found} before {positions}",
        )


def _check_again(read: _Read, name: str, items: list[_Item], n_batches: int) -> None:
    once = _records(items)
    twice = _records(read(name, None, n_batches))
    _require(
        _comparable(once) == _comparable(twice),
        "a partition gives the same records each time",
        f"partition {name!r} has {once} and {twice}",
    )


def _check_resumed(read: _Read, name: str, items: list[_Item], place: int, n_batches: int) -> None:
    position = pickle.loads(items[place][1])
    expected = _records(items[place + 1 :])
    is_open = len(items) == n_batches  # there may be more, and batches have other borders now
    found = _records(read(name, position, None, len(expected) if is_open else None))
    _require(
        _comparable(expected) == _comparable(found[: len(expected)] if is_open else found),
        "from a position on comes what comes after it",
        f"partition {name!r} has {expected} after position {position!r}, and read from there on "
        f"{found}",
    )


def _read(
    source: Source,
    idle_s: float,
    name: str,
    position: Any,
    n_batches: int | None,
    n_records: int | None = None,
) -> list[_Item]:
    """What a reader gives, each position as it is at that moment: all, or so much."""
    law = "a reader yields (batch, position), or None"
    items: list[_Item] = []
    n_found = 0
    idle_since: float | None = None
    reader = iter(source.open(name, position))
    for item in reader:
        if item is None:
            now = time.monotonic()
            idle_since = now if idle_since is None else idle_since
            if now - idle_since >= idle_s:
                break
            time.sleep(0.001)
            continue
        idle_since = None
        _require(type(item) is tuple and len(item) == 2, law, f"partition {name!r}: {item!r}")
        items.append((_records_of(item[0], law, name), _pickled(item[1], name)))
        n_found += len(items[-1][0])
        if len(items) == n_batches or (n_records is not None and n_found >= n_records):
            break
    close = getattr(reader, "close", None)
    if close is not None:
        close()
    return items


def _records_of(data: Any, law: str, name: str) -> list[Any]:
    try:
        found = batches_of(data)
        return [
            record
            for batch in ([data] if found is None else found)
            for record in kind_of(batch).records(batch)
        ]
    except ContainerError as error:
        raise ConnectorLawError(law, f"partition {name!r}: {error}") from error


def _pickled(position: Any, name: str) -> bytes:
    law = "a position is a plain value, which pickling does not change"
    try:
        stored = pickle.dumps(position)
        is_same = _comparable([pickle.loads(stored)]) == _comparable([position])
    except Exception as error:
        raise ConnectorLawError(law, f"partition {name!r}: {position!r}: {error!r}") from error
    _require(is_same, law, f"partition {name!r}: {position!r} is {pickle.loads(stored)!r} then")
    return stored


def _records(items: Sequence[_Item]) -> list[Any]:
    return [record for records, _ in items for record in records]


def _comparable(value: Any) -> Any:
    """The value, with what stands for all NaNs in place of each: one that is read again is another.

    >>> _comparable([(1, float("nan"))]) == _comparable([(1, float("nan"))])
    True
    """
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value), *map(_comparable, value)
    return canonical_key(value)


def check_sink(
    sink: Any, batches: Sequence[Any], read: Callable[[], Sequence[Any]], *, workers: int = 2
) -> None:
    """Check that a sink writes each record, and a transactional sink exactly once.

    Writes `batches` in epochs, by several writers; a transactional sink is committed twice, and
    by a copy that was pickled. Some of what is prepared is left as a crash leaves it.

    Parameters
    ----------
    sink : Sink or TransactionalSink
        That has nothing yet.
    batches : sequence
        At least two, to write; the sink may take each several times.
    read : callable
        All records that can be seen of the sink, in any order.
    workers : int
        How many writers there are.

    Raises
    ------
    ConnectorLawError
        Naming the law that does not hold.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> import pointstamp as ps
    >>> batches = [pa.RecordBatch.from_pydict({"n": [n, n + 1]}) for n in (0, 10)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     def read():
    ...         return pq.read_table(folder, ignore_prefixes=["."]).to_pylist()
    ...     check_sink(ps.FileSink(folder), batches, read)
    """
    if not hasattr(sink, "open"):
        raise UsageError(f"a sink has open(context), and {sink!r:.200} has not")
    _require(len(batches) > 1, "a sink is checked with two batches at least", f"found {batches}")
    check = _check_transactions if isinstance(sink, TransactionalSink) else _check_written
    check(sink, batches, read, workers)


def _check_written(
    sink: Any, batches: Sequence[Any], read: Callable[[], Sequence[Any]], workers: int
) -> None:
    expected: list[Any] = []
    for index in range(workers):
        writer = sink.open(SinkContext(index, workers, "run", is_new=index == 0))
        for batch in batches:
            writer.write(batch)
            expected += kind_of(batch).records(batch)
        if callable(getattr(writer, "flush", None)):
            writer.flush()
            _require_seen("what is written and flushed is seen", len(expected), read)
        writer.close()
    _require_seen("what is written is seen when the writer is closed", len(expected), read)


def _check_transactions(
    sink: Any, batches: Sequence[Any], read: Callable[[], Sequence[Any]], workers: int
) -> None:
    law = "nothing is seen before it is committed"
    n_each = sum(kind_of(batch).length(batch) for batch in batches)
    n_seen = len(_seen(read))
    _require(n_seen == 0, "a sink to be checked has nothing yet", f"found {n_seen} records")
    writers = [sink.open(SinkContext(index, workers, "first")) for index in range(workers)]
    _require(
        writers[0].prepare(0) is None, "prepare gives None if nothing was written", "found a token"
    )
    tokens = []
    for epoch in (1, 2):
        for writer in writers:
            for batch in batches:
                writer.write(batch)
            token = writer.prepare(epoch)
            _require(token is not None, "prepare gives a token of what was written", "found None")
            tokens.append(_pickled_token(token))
            _require_seen(law, 0, read)
    n_all = 2 * workers * n_each
    # As by a program that died when half of it was done, and the one that begins again.
    sink.commit(pickle.loads(pickle.dumps(tokens[:workers])))
    _require_seen("what is committed is seen", n_all // 2, read)
    copy = _copied(sink)
    copy.commit(tokens)
    _require_seen("what is committed is seen, by whichever process", n_all, read)
    copy.commit(tokens)
    _require_seen("to commit again changes nothing", n_all, read)
    writers[0].write(batches[0])
    writers[0].prepare(3)
    writers[-1].write(batches[0])
    copy.abort("second")
    _require_seen("to abort leaves what is committed, and nothing else", n_all, read)
    writer = copy.open(SinkContext(0, workers, "second", is_new=False))
    writer.write(batches[0])
    token = writer.prepare(3)
    copy.abort("second")
    copy.commit([token])
    n_last = n_all + kind_of(batches[0]).length(batches[0])
    _require_seen("an epoch that was aborted is written again, by another run", n_last, read)
    for each in [*writers, writer]:
        each.close()
    _require_seen("to close changes nothing", n_last, read)


def _pickled_token(token: Any) -> Any:
    law = "a token is a plain value, which pickling does not change"
    try:
        return pickle.loads(pickle.dumps(token))
    except Exception as error:
        raise ConnectorLawError(law, f"{token!r}: {error!r}") from error


def _copied(sink: Any) -> Any:
    # A sink travels to the workers with the program, which cloudpickle carries.
    import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

    try:
        return pickle.loads(cloudpickle.dumps(sink))
    except Exception as error:
        raise ConnectorLawError("a sink can be sent to the workers", repr(error)) from error


def _seen(read: Callable[[], Sequence[Any]]) -> list[Any]:
    return list(read())


def _require_seen(law: str, n_expected: int, read: Callable[[], Sequence[Any]]) -> None:
    n_found = len(_seen(read))
    _require(n_found == n_expected, law, f"{n_expected} records are due, and {n_found} are seen")


def _require(condition: bool, law: str, found: str) -> None:
    if not condition:
        raise ConnectorLawError(law, found)
