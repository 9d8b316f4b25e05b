"""Sources and sinks in dataflows: shares of workers, epochs, order, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.dataflow.connectors import SinkContext
from pointstamp.errors import (
    BuildError,
    CheckpointStructureError,
    PartitionLostError,
    SinkError,
    SourceError,
    UndeclaredStateError,
    UsageError,
    WorkerError,
)
from pointstamp.testing import ConnectorLawError, check_sink, check_source, collect


class Ranges:
    """A source of some numbers by partition; a position is how many were read."""

    def __init__(self, upto: dict[str, int], step: int = 1) -> None:
        self.upto = upto
        self.step = step
        self.opened: list[tuple[str, Any]] = []

    def partitions(self) -> Sequence[str]:
        return list(self.upto)

    def open(self, partition: str, position: Any) -> Iterator[Any]:
        self.opened.append((partition, position))
        for n in range(position or 0, self.upto[partition], self.step):
            yield [(partition, n)], n + self.step


def cause(error: pytest.ExceptionInfo[WorkerError]) -> list[type]:
    """The classes of all that an error came from."""
    found, at = [], error.value.__cause__
    while at is not None:
        found.append(type(at))
        at = at.__cause__
    return found


def test_each_partition_is_read_once_and_workers_have_as_many_each() -> None:
    source = Ranges({f"p{n}": 3 for n in range(6)})

    def build(scope: Any) -> Any:
        return scope.source(source).map(lambda record: (*record, scope.index))

    found = [record for _, record in collect(build, workers=3)]
    assert sorted(record[:2] for record in found) == [
        (f"p{n}", k) for n in range(6) for k in range(3)
    ]
    assert Counter(worker for *_, worker in found) == {0: 6, 1: 6, 2: 6}
    assert sorted(source.opened) == [(f"p{n}", None) for n in range(6)]


def test_partitions_are_read_in_turn_or_one_after_the_other() -> None:
    source: Any = Ranges({"a": 2, "b": 2})

    def order() -> list[Any]:
        seen: list[Any] = []

        def main(worker: Any) -> None:
            with worker.dataflow() as scope:
                scope.source(source).inspect(seen.append)

        ps.execute(main)
        return seen

    assert order() == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    source.at_once = 1
    assert order() == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_columns_stay_columns_and_tables_are_taken_apart() -> None:
    class Columns(Ranges):
        def open(self, partition: str, position: Any) -> Iterator[Any]:
            yield pa.table({"n": [1, 2]}), 1
            yield pa.RecordBatch.from_pydict({"n": pa.array([], pa.int64())}), 2
            yield None

    def build(scope: Any) -> Any:
        return scope.source(Columns({"a": 1})).map_batches(lambda batch: batch.column(0))

    seen: list[Any] = []

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.source(Columns({"a": 1})).inspect_batch(lambda _, batch: seen.append(batch))

    ps.execute(main)
    assert [batch.to_pydict() for batch in seen] == [{"n": [1, 2]}]


def test_outside_of_a_run_epochs_go_on_by_themselves() -> None:
    def main(worker: Any) -> list[int]:
        times: list[int] = []
        with worker.dataflow() as scope:
            stream = scope.source(Ranges({"a": 5}), epoch_s=0.0)
            stream.inspect_batch(lambda time, batch: times.append(time))
        worker.run()
        return times

    assert ps.execute(main) == [[0, 1, 2, 3, 4]]


class Growing(Ranges):
    """Each partition always has more, and a second one turns up when the first is read."""

    discover_s = 1e-9
    most = 2000

    def partitions(self) -> Sequence[str]:
        return ["a", "b"] if self.opened else ["a"]

    def open(self, partition: str, position: Any) -> Iterator[Any]:
        self.opened.append((partition, position))
        for n in range(self.most):
            yield [(partition, n)], n + 1
        raise AssertionError("no other partition was read")


class _Seen(Exception):
    """What was waited for has come."""


def _until_b(source: Any) -> None:
    def look(record: Any) -> None:
        if record[0] == "b":
            raise _Seen

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.source(source).inspect(look)

    with pytest.raises(WorkerError, match="_Seen"):
        ps.execute(main)


def test_partitions_that_turn_up_are_read_though_others_always_have_more() -> None:
    source = Growing({})
    _until_b(source)
    assert source.opened == [("a", None), ("b", None)]


def test_partitions_that_turn_up_may_be_read_from_a_position_of_their_own() -> None:
    source: Any = Growing({})
    source.start_of_new = "beginning"
    _until_b(source)
    assert source.opened == [("a", None), ("b", "beginning")]


def test_readers_are_closed_when_the_dataflow_fails() -> None:
    closed = []

    class Closing(Ranges):
        def open(self, partition: str, position: Any) -> Iterator[Any]:
            try:
                while True:
                    yield [1], 1
            finally:
                closed.append(partition)

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.source(Closing({"a": 1})).inspect(lambda record: 1 / 0)

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        ps.execute(main)
    assert closed == ["a"]


class Broken(Ranges):
    def __init__(self, items: Any, names: Any = ("a",)) -> None:
        self._items, self._names = items, names

    def partitions(self) -> Any:
        return self._names

    def open(self, partition: str, position: Any) -> Any:
        return iter(self._items) if isinstance(self._items, list) else self._items()


def _failing(position: int) -> Iterator[Any]:
    yield [1], position
    raise SourceError("the server is away")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (Broken([[1]]), r"partition 'a', after position None: a reader yields pairs .*; found \[1"),
        (Broken([([1], 7), 3]), "'a', after position 7: a reader yields pairs"),
        (Broken([("text", 1)]), "'a', after position 1: "),
        (Broken(lambda: 1 / 0), "'a', after position None: ZeroDivisionError"),
        (Broken(lambda: next(iter([]))), r"'a', after position None: StopIteration\(\)"),
        (Broken(lambda: _failing(3)), "'a', after position 3: the server is away"),
        (
            Broken(lambda: None),
            r"'a', after position None: open\(\) gives a reader, .*; found None",
        ),
        (Broken([], None), "a list of texts; found None"),
        (Broken([], "ab"), "a list of texts; found 'ab'"),
        (Broken([], [1]), r"a list of texts; found \[1\]"),
        (Broken([], ["b", "a", "b"]), r"gives \['b'\] more than once"),
    ],
)
def test_what_is_no_source_is_said(source: Any, says: str) -> None:
    with pytest.raises(WorkerError, match=f"source 'Mine'.*{says}") as error:
        collect(lambda scope: scope.source(source, "Mine"))
    assert SourceError in cause(error)


@pytest.mark.parametrize(
    ("attribute", "value", "says"),
    [
        ("at_once", 0, "at_once is an integer of at least 1, or None; found 0"),
        ("at_once", "2", "at_once is an integer of at least 1, or None; found '2'"),
        ("poll_s", -1, "poll_s is a number of seconds, 0 or more; found -1"),
        ("poll_s", None, "poll_s is a number of seconds, 0 or more; found None"),
        ("poll_s", float("inf"), "poll_s is a number of seconds, 0 or more; found inf"),
        ("discover_s", "1", "discover_s is a number of seconds, 0 or more; found '1'"),
    ],
)
def test_an_attribute_by_which_nothing_would_be_read_is_refused(
    attribute: str, value: Any, says: str
) -> None:
    source = Ranges({"a": 1})
    setattr(source, attribute, value)
    with pytest.raises(WorkerError, match=f"source 'Mine': {says}") as error:
        collect(lambda scope: scope.source(source, "Mine"))
    assert SourceError in cause(error)


def test_sources_and_sinks_are_refused_where_there_are_no_epochs_for_them() -> None:
    def inside(scope: Any) -> Any:
        with scope.iterative() as inner:
            return inner.source(Ranges({"a": 1})).leave()

    with pytest.raises(WorkerError, match=r"those of scope .*: read it outside, and enter"):
        collect(inside)

    def durable(build: Callable[[Any], Any]) -> None:
        def main(worker: Any) -> None:
            with worker.dataflow("f", durable=Durable(Checkpoint("nowhere"))) as scope:
                build(scope)

        ps.execute(main)

    for build in (
        lambda scope: scope.source(Ranges({"a": 1})),
        lambda scope: scope.empty().sink(Collected()),
    ):
        with pytest.raises(WorkerError, match=r"are those of a run; have `ps\.run") as error:
            durable(build)
        assert UndeclaredStateError in cause(error)
    with pytest.raises(WorkerError, match="a pact and a logic, or a sink"):
        collect(lambda scope: scope.empty().sink(ps.Pipeline()))
    with pytest.raises(WorkerError, match="the flow has no source") as error:
        ps.run(flow)
    assert BuildError in cause(error)
    with pytest.raises(UsageError, match="epoch_s seconds, 0 or more; found -1"):
        ps.run(flow, epoch_s=-1)
    with pytest.raises(UsageError, match="epoch_s seconds, 0 or more; found inf"):
        ps.run(flow, epoch_s=float("inf"))


def flow(scope: Any) -> None:
    scope.empty()


class Collected:
    """A sink that writes when it is flushed."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.events: list[Any] = []

    def open(self, context: SinkContext) -> Any:
        return Buffered(self)


class Buffered:
    """What one worker writes to it with."""

    def __init__(self, sink: Collected) -> None:
        self._sink = sink
        self.buffer: list[Any] = []

    def write(self, batch: Any) -> None:
        self.buffer += batch

    def flush(self) -> None:
        self._sink.seen += self.buffer
        self.buffer = []
        self._sink.events.append("flush")

    def close(self) -> None:
        self._sink.events.append("close")


def test_a_sink_is_flushed_when_an_epoch_is_complete_and_closed_at_the_end() -> None:
    sink = Collected()

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.sink(sink)
        input.send(1)
        worker.step()
        assert sink.seen == []
        input.advance_to(1)
        worker.step_while(lambda: not sink.seen)
        input.send(2)

    ps.execute(main)
    assert (sink.seen, sink.events) == ([1, 2], ["flush", "flush", "close"])


class Transacted(Collected):
    """A sink whose batches are seen when they are committed."""

    def open(self, context: SinkContext) -> Any:
        return BufferedEpochs(self)

    def commit(self, tokens: Any) -> None:
        self.seen += [token for token in tokens if token not in self.seen]

    def abort(self, run: str) -> None:
        self.events.append("abort")


class BufferedEpochs(Buffered):
    """What one worker writes to it with."""

    def prepare(self, epoch: int) -> Any:
        token, self.buffer = (epoch, self.buffer), []
        return token if token[1] else None


def test_a_later_epoch_waits_until_the_one_before_is_prepared() -> None:
    sink = Transacted()

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            first, one = scope.new_input()
            second, two = scope.new_input()
            one.concat(two).sink(sink)
        second.advance_to(3)
        second.send("late")
        second.advance_to(4)
        for _ in range(5):
            worker.step()
        first.send("early")
        first.advance_to(1)
        worker.step_while(lambda: not sink.seen)
        first.advance_to(3)
        first.send("also late")
        assert sink.seen == [(0, ["early"])]

    ps.execute(main)
    assert [(epoch, sorted(batch)) for epoch, batch in sink.seen] == [
        (0, ["early"]),
        (3, ["also late", "late"]),
    ]


def test_a_sink_that_gives_no_writer_is_refused() -> None:
    class Nothing(Collected):
        def open(self, context: SinkContext) -> Any:
            return 3

    class Half(Transacted):
        def open(self, context: SinkContext) -> Any:
            return Buffered(self)

    for sink, says in (
        (Nothing(), "has write.batch. .*; found 3"),
        (Half(), "needs prepare.epoch"),
    ):
        with pytest.raises(WorkerError, match=f"sink 'Mine'.*{says}") as error:
            collect(lambda scope, sink=sink: scope.to_stream([1]).sink(sink, "Mine"))
        assert SinkError in cause(error)


def summed(source: Any, sink: Any) -> Callable[[Any], None]:
    def sums(scope: Any) -> None:
        scope.source(source).state_machine(
            lambda key, n, total: (total + n, [(key, total + n)]), default=0
        ).sink(sink)

    return sums


def test_a_run_goes_on_where_its_partitions_have_more_and_others_have_come(tmp_path: Path) -> None:
    source, sink = Ranges({"a": 3, "b": 2}), Transacted()
    ps.run(summed(source, sink), 2, threads=True, checkpoint=tmp_path)
    source.upto = {"a": 5, "b": 2, "c": 2}
    ps.run(summed(source, sink), 3, threads=True, checkpoint=tmp_path)
    assert sorted(record for _, batch in sink.seen for record in batch) == [
        *[("a", 0), ("a", 1), ("a", 3), ("a", 6), ("a", 10)],
        *[("b", 0), ("b", 1), ("c", 0), ("c", 1)],
    ]
    assert sorted(source.opened[2:]) == [("a", 3), ("b", 2), ("c", None)]


def test_a_partition_that_was_read_in_part_must_be_there_when_a_run_goes_on(
    tmp_path: Path,
) -> None:
    class Dying(Ranges):
        def open(self, partition: str, position: Any) -> Iterator[Any]:
            yield [(partition, 1)], 1
            while len(sink.seen) < 1:
                yield None
            raise OSError("gone")

    sink = Transacted()
    with pytest.raises(WorkerError, match=r"'b', after position 1: OSError\('gone'\)"):
        ps.run(summed(Dying({"b": 1}), sink), checkpoint=tmp_path, epoch_s=0.0)
    with pytest.raises(WorkerError, match=r"positions in \['b'\].*no such .* but \['a'\]") as error:
        ps.run(summed(Ranges({"a": 1}), sink), checkpoint=tmp_path)
    assert PartitionLostError in cause(error)
    with pytest.raises(
        WorkerError, match=r"'flow/Sink' kept in 'tokens', 'flow/StateMachine' kept in 'states'"
    ) as error:
        ps.run(lambda scope: scope.source(Ranges({"b": 1})), checkpoint=tmp_path)
    assert CheckpointStructureError in cause(error)
    assert sink.events.count("abort") >= 1


class PlainSink:
    """A sink that is at least once: what it is given is there."""

    def __init__(self, given: list[Any]) -> None:
        self.given = given

    def open(self, context: SinkContext) -> PlainSink:
        return self

    def write(self, batch: Any) -> None:
        self.given += batch

    def close(self) -> None:
        pass


def test_windows_that_the_next_run_goes_on_with_are_not_sent_by_this_one(tmp_path: Path) -> None:
    def counted(upto: int, checkpoint: Path | None) -> list[tuple[int, int]]:
        given: list[Any] = []

        def flow(scope: Any) -> None:
            times = scope.source(Ranges({"p": upto})).map(lambda record: 5 * record[1])
            counts, _ = times.count_window(
                ps.Tumbling(10), lambda time: time, clock=ps.EventClock()
            )
            counts.sink(PlainSink(given))

        ps.run(flow, threads=True, checkpoint=checkpoint)
        return [(window.start, window.value) for window in given]

    assert counted(1, tmp_path) == []
    assert counted(2, tmp_path) == []
    assert counted(4, tmp_path) == [(0, 2)]
    assert counted(4, None) == [(0, 2), (10, 2)]


def test_records_that_are_delayed_beyond_the_last_epoch_come_out_at_the_end(
    tmp_path: Path,
) -> None:
    sink = Transacted()

    def delayed(scope: Any) -> None:
        scope.source(Ranges({"a": 2})).delay(lambda record, time: time + 1_000).sink(sink)

    ps.run(delayed, checkpoint=tmp_path)
    ps.run(delayed, checkpoint=tmp_path)
    assert sorted(record for _, batch in sink.seen for record in batch) == [("a", 0), ("a", 1)]


def test_a_run_without_a_checkpoint_commits_what_is_complete() -> None:
    sink = Transacted()
    ps.run(summed(Ranges({"a": 3}), sink), 2, threads=True)
    assert sorted(r for _, batch in sink.seen for r in batch) == [("a", 0), ("a", 1), ("a", 3)]


# The conformance suites.


class Late(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        for n in range(position or 0, 5):
            yield [n], n + 2


class Changing(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        self.step += 1
        yield [self.step], 1


class Unpicklable(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        yield [1], lambda: 1


class Sized(Ranges):
    def __init__(self, upto: dict[str, int], sizes: dict[str, int], factor: int = 1) -> None:
        super().__init__(upto)
        self.sizes = lambda: sizes
        self.n_before = lambda partition, position: factor * position


def test_a_source_that_knows_how_much_it_has_is_checked() -> None:
    check_source(Sized({"a": 5, "b": 2}, {"a": 10, "b": 4}, 2))


class NotNumbers(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        for n in range(int(position[0]) if position else 0, 3):
            yield [(n, [float("nan")], {"x": float("nan")})], (n + 1, float("nan"))


class EndsWithNaN(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        if position is None:
            yield [1], float("nan")


def test_a_nan_that_is_read_again_is_the_same_record() -> None:
    check_source(NotNumbers({"a": 3}))
    check_source(EndsWithNaN({"a": 1}))


@pytest.mark.parametrize(
    ("source", "law"),
    [
        (Late({"a": 5}), "from a position on comes what comes after it"),
        (Changing({"a": 5}), "a partition gives the same records each time"),
        (Unpicklable({"a": 5}), "a position is a plain value"),
        (Broken([3]), r"a reader yields \(batch, position\), or None"),
        (Broken([(3, 3)]), r"a reader yields \(batch, position\), or None"),
        (Ranges({}), "a source to be checked has a partition"),
        (Ranges({"a": 0}), "a source to be checked has records"),
        (Sized({"a": 5}, {}), r"sizes\(\) has each partition"),
        (Sized({"a": 5}, {"a": 4}), "before a position is an integer.*at most the size"),
        (Sized({"a": 5}, {"a": 4}, -1), "before a position is an integer, grows"),
    ],
)
def test_a_source_that_breaks_a_law_is_found(source: Any, law: str) -> None:
    with pytest.raises(ConnectorLawError, match=law):
        check_source(source)


def test_a_source_that_goes_on_for_ever_is_checked_as_far_as_it_is_read() -> None:
    check_source(Ranges({"a": 1 << 40, "b": 1 << 40}), n_batches=5)
    with pytest.raises(ConnectorLawError, match="from a position on"):
        check_source(LateForever({"a": 1}), n_batches=5)


class LateForever(Ranges):
    def open(self, partition: str, position: Any) -> Iterator[Any]:
        n = position or 0
        while True:
            yield [n], n
            n += 1


SHARED: dict[str, Any] = {}
"""What a sink in memory has, under its name, as the pickled copies of it are to have the same."""


class InMemory:
    """A transactional sink with a mistake, or none."""

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        SHARED[mistake] = {"staged": {}, "seen": []}
        self._buffer: list[Any] = []
        self._run = ""

    def open(self, context: SinkContext) -> InMemory:
        made = InMemory.__new__(InMemory)
        made.mistake, made._buffer, made._run = self.mistake, [], context.run
        return made

    @property
    def shared(self) -> Any:
        return SHARED[self.mistake]

    def write(self, batch: Any) -> None:
        if self.mistake == "written at once":
            self.shared["seen"] += batch
        self._buffer += batch

    def prepare(self, epoch: int) -> Any:
        if not self._buffer and self.mistake != "token of nothing":
            return None
        token = f"{self._run} {id(self)} {epoch}"
        self.shared["staged"][token], self._buffer = self._buffer, []
        return (lambda: token) if self.mistake == "no plain token" else token

    def commit(self, tokens: Any) -> None:
        for token in tokens:
            staged = self.shared["staged"].get(token, [])
            if self.mistake != "twice":
                self.shared["staged"].pop(token, None)
            if self.mistake != "never":
                self.shared["seen"] += staged

    def abort(self, run: str) -> None:
        for token in list(self.shared["staged"]):
            if not token.startswith(run) or self.mistake == "aborts all":
                if self.mistake == "aborts late":
                    self.shared["seen"] += self.shared["staged"][token]
                del self.shared["staged"][token]

    def close(self) -> None:
        if self.mistake == "seen at the end":
            self.shared["seen"].append(1)


@pytest.mark.parametrize(
    ("mistake", "law"),
    [
        ("written at once", "nothing is seen before it is committed"),
        ("token of nothing", "prepare gives None if nothing was written"),
        ("no plain token", "a token is a plain value"),
        ("twice", "what is committed is seen, by whichever process"),
        ("never", "what is committed is seen"),
        ("aborts all", "an epoch that was aborted is written again"),
        ("aborts late", "to abort leaves what is committed, and nothing else"),
        ("seen at the end", "to close changes nothing"),
    ],
)
def test_a_transactional_sink_that_breaks_a_law_is_found(mistake: str, law: str) -> None:
    with pytest.raises(ConnectorLawError, match=law):
        check_sink(InMemory(mistake), [[1, 2], [3]], lambda: SHARED[mistake]["seen"])


def test_sinks_that_keep_the_laws_pass() -> None:
    check_sink(InMemory(), [[1, 2], [3]], lambda: SHARED[""]["seen"])
    sink = Collected()
    check_sink(sink, [[1, 2], [3]], lambda: sink.seen)
    with pytest.raises(ConnectorLawError, match="what is written and flushed is seen"):
        check_sink(Collected(), [[1, 2], [3]], list)


def test_an_option_that_a_run_does_not_take_is_one_of_the_run() -> None:
    with pytest.raises(TypeError, match=r"^run\(\) got .* 'checkpoint_dir'; did you mean 'checkp"):
        ps.run(lambda scope: None, checkpoint_dir="somewhere")
