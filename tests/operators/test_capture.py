"""Capture and replay: what comes out again is what went in, at its times, never too early."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import EventError, TimestampError, TruncatedError, WorkerError
from pointstamp.formats.capture_files import CaptureFile
from pointstamp.testing import collect
from tests.simulation.moments import EventProcessing, Moment

COUNTS = [1, 2, 4]
EPOCHS = 5


def as_rows(values: list[int]) -> Any:
    return [(value, str(value)) for value in values]


def as_columns(values: list[int]) -> Any:
    return pa.RecordBatch.from_pydict({"x": pa.array(values, pa.int64()), "y": map(str, values)})


def as_arrays(values: list[int]) -> Any:
    return Arrays(x=np.array(values, np.int64), y=np.array([str(v) for v in values], "U2"))


CONTAINERS = [pytest.param(make, id=make.__name__) for make in (as_rows, as_columns, as_arrays)]


def captured(
    make: Callable[[list[int]], Any], to: Any, workers: int, epochs: int = EPOCHS
) -> list[Any]:
    """Capture epochs 0 to 4, of which worker w sends [10 * epoch + w] * 3; what each worker has."""

    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            kept = stream.capture(to)
            probe = stream.probe()
        for epoch in range(epochs):
            input.send_batch(make([10 * epoch + worker.index] * 3))
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        input.close()
        worker.run()
        return kept

    return ps.execute(main, workers=workers, threads=True)


def expected(workers: int) -> list[tuple[int, tuple[int, str]]]:
    values = [(e, 10 * e + w) for e in range(EPOCHS) for w in range(workers) for _ in range(3)]
    return [(epoch, (value, str(value))) for epoch, value in values]


@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("replaying", COUNTS)
@pytest.mark.parametrize("capturing", COUNTS)
def test_what_n_workers_captured_in_files_m_workers_replay(
    make: Any, capturing: int, replaying: int, tmp_path: Path
) -> None:
    captured(make, tmp_path, capturing)
    assert len(list(tmp_path.iterdir())) == capturing
    assert collect(lambda scope: scope.replay(tmp_path), replaying) == expected(capturing)


@pytest.mark.parametrize("make", CONTAINERS)
@pytest.mark.parametrize("replaying", COUNTS)
@pytest.mark.parametrize("capturing", COUNTS)
def test_what_n_workers_captured_in_memory_m_workers_replay(
    make: Any, capturing: int, replaying: int
) -> None:
    parts = captured(make, None, capturing)

    def build(scope: Any) -> Any:
        return scope.replay(parts[scope.index :: scope.peers])

    assert collect(build, replaying) == expected(capturing)
    assert collect(build, replaying) == expected(capturing)  # as often as one likes


def test_workers_in_processes_capture_and_replay(tmp_path: Path) -> None:
    def record(worker: Any, folder: Path) -> Any:
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(worker.index, 10, 2)).exchange(lambda x: x)
            stream.capture(folder)
            kept = stream.capture()
        worker.run()
        return kept

    parts = ps.execute(record, tmp_path, workers=2)
    assert all(part.is_complete for part in parts)
    assert collect(lambda scope: scope.replay(parts)) == [(0, x) for x in range(10)]
    assert collect(lambda scope: scope.replay(tmp_path)) == [(0, x) for x in range(10)]


@pytest.mark.parametrize("make", CONTAINERS)
def test_a_replayed_batch_is_the_batch_that_was_captured(make: Any, tmp_path: Path) -> None:
    batches: list[Any] = []
    captured(make, tmp_path, 1)
    collect(lambda scope: scope.replay(tmp_path).inspect_batch(lambda t, b: batches.append(b)))
    assert [kind_of(batch).length(batch) for batch in batches] == [3] * EPOCHS
    assert kind_of(batches[0]) is kind_of(make([1]))
    assert kind_of(batches[0]).schema(batches[0]) == kind_of(make([1])).schema(make([0] * 3))


def test_columns_in_a_file_are_what_any_arrow_reader_sees(tmp_path: Path) -> None:
    captured(as_columns, tmp_path, 1)
    with pa.ipc.open_stream(tmp_path / "part-00000-of-00001.arrows") as reader:
        table = reader.read_all()
    assert table.column_names == ["x", "y"]
    assert table.num_rows == 3 * EPOCHS


def test_metadata_and_dictionaries_of_columns_come_back(tmp_path: Path) -> None:
    schema = pa.schema(
        [pa.field("x", pa.dictionary(pa.int32(), pa.string()), metadata={"unit": "m"})],
        metadata={"whose": "mine"},
    )
    batches = [
        pa.RecordBatch.from_arrays([pa.array(values).dictionary_encode()], schema=schema)
        for values in (["a", "b"], ["c", "a"], ["c", "d"])
    ]
    seen: list[Any] = []

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(tmp_path)
        for epoch, batch in enumerate(batches):
            input.send_batch(batch)
            input.advance_to(epoch + 1)
            worker.step()

    ps.execute(main)
    collect(lambda scope: scope.replay(tmp_path).inspect_batch(lambda t, b: seen.append(b)))
    assert [batch.to_pydict() for batch in seen] == [batch.to_pydict() for batch in batches]
    assert seen[0].schema.equals(schema, check_metadata=True)


def test_no_time_is_complete_in_the_replay_before_it_was_in_the_capture() -> None:
    (first,) = captured(as_rows, None, 1)
    (again,) = ps.execute(lambda worker: _recaptured(worker, [first]))
    assert _is_told_no_more(ps.Int, again, first)
    assert not _is_told_no_more(ps.Int, [*list(first)[1:], first[0]], first)


def _is_told_no_more(timestamp: Any, again: Any, first: Any) -> bool:
    """The same batches; and when each comes, every time that may come by `first` may by `again`."""
    (told, batches), (known, expected) = (_told(timestamp, events) for events in (again, first))
    return batches == expected and all(
        any(timestamp.less_equal(a, b) for a in frontier)
        for frontier, at_first in zip(told, known, strict=True)
        for b in at_first
    )


def _told(timestamp: Any, events: Any) -> tuple[list[list[Any]], list[Any]]:
    """The frontier before each batch, and the batches."""
    counts = collections.Counter([timestamp.minimum])
    frontiers, batches = [], []
    for event in events:
        if isinstance(event, ps.Progress):
            for time, change in event.changes:
                counts[time] += change
        else:
            frontiers.append([time for time, count in counts.items() if count > 0])
            batches.append((event.time, list(kind_of(event.batch).records(event.batch))))
    return frontiers, batches


def _recaptured(worker: Any, sources: Any) -> Any:
    with worker.dataflow() as scope:
        again = scope.replay(sources).capture()
    worker.run()
    return again


def test_a_worker_without_parts_replays_none_and_holds_nobody_back() -> None:
    parts = captured(as_rows, None, 1)

    def build(scope: Any) -> Any:
        return scope.replay(parts if scope.index == 3 else []).count()

    assert collect(build, 4) == [(epoch, 3) for epoch in range(EPOCHS)]


def test_a_time_is_complete_when_it_is_so_in_all_parts() -> None:
    quick = [ps.Messages(0, ["a"]), ps.Progress([(0, -1)])]
    slow = ps.Events([ps.Progress([(3, 1), (0, -1)]), ps.Messages(4, ["b"])])

    def main(worker: Any) -> list[Any]:
        with worker.dataflow() as scope:
            probe = scope.replay([quick, slow]).probe()
        for _ in range(10):
            worker.step()
        assert (probe.less_than(3), probe.less_equal(3)) == (False, True)
        slow.push(ps.Progress([(3, -1)]))
        worker.run()
        return probe.elements

    assert ps.execute(main) == [[]]


def test_a_stream_is_replayed_while_it_is_captured() -> None:
    def main(worker: Any) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow("first") as scope:
            input, stream = scope.new_input()
            events = stream.capture()
        with worker.dataflow("second") as scope:
            probe = scope.replay(events).inspect(seen.append).probe()
        for epoch in range(3):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            assert seen == list(range(epoch + 1))
        return seen

    assert ps.execute(main, workers=2, threads=True) == [[0, 1, 2]] * 2


def test_captures_of_simulated_workers_replay_alike() -> None:
    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(worker.index, 20, worker.peers)).exchange(lambda x: x)
            kept = stream.capture()
        worker.run()
        return kept

    for seed in range(10):
        parts = ps.simulate(main, workers=3, seed=seed)
        assert collect(lambda scope, p=parts: scope.replay(p)) == [(0, x) for x in range(20)]


# Times.


def test_products_are_captured_inside_a_loop(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1, 2])
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=3)
                result = numbers.enter(inner).concat(again)
                result.capture(tmp_path)
                loop.connect(result.map(lambda x: 10 * x))

    ps.execute(main)
    found: list[Any] = []

    def again(worker: Any) -> None:
        with worker.dataflow(timestamp=ps.Product(ps.Int, ps.Int)) as scope:
            stream = scope.replay(tmp_path)
            stream.inspect_batch(lambda time, batch: found.append((time, sorted(batch))))

    ps.execute(again)
    assert found == [((0, 0), [1, 2]), ((0, 1), [10, 20]), ((0, 2), [100, 200])]


def test_times_of_a_users_own_type_are_captured(tmp_path: Path) -> None:
    times = [Moment(0, 0), Moment(2, 1), Moment(2, 5)]

    def main(worker: Any) -> Any:
        with worker.dataflow(timestamp=EventProcessing()) as scope:
            input, stream = scope.new_input()
            stream.capture(tmp_path)
            kept = stream.capture()
        for time in times:
            input.advance_to(time)
            input.send(time.event)
            worker.step()
        input.close()
        worker.run()
        return kept

    def again(worker: Any) -> Any:
        with worker.dataflow(timestamp=EventProcessing()) as scope:
            kept = scope.replay(tmp_path).capture()
        worker.run()
        return kept

    (first,), (second,) = ps.execute(main), ps.execute(again)
    assert [event.time for event in first if isinstance(event, ps.Messages)] == times
    assert _is_told_no_more(EventProcessing(), second, first)


def test_a_replay_with_times_of_another_type_is_refused(tmp_path: Path, first_cause: Any) -> None:
    captured(as_rows, tmp_path, 1)
    with pytest.raises(WorkerError, match=r"part-00000.*times of Int.*times of Unit") as raised:
        ps.execute(_replayed_as_unit, tmp_path)
    assert isinstance(first_cause(raised.value), TimestampError)


def _replayed_as_unit(worker: Any, path: Path) -> None:
    with worker.dataflow(timestamp=ps.Unit) as scope:
        scope.replay(path)
    worker.run()


# What is cut off or wrong.


@pytest.mark.parametrize("make", CONTAINERS)
def test_a_file_cut_off_at_any_byte_is_an_error_that_says_where(make: Any, tmp_path: Path) -> None:
    captured(make, tmp_path / "whole", 1, epochs=1)
    (whole,) = (tmp_path / "whole").iterdir()
    data = whole.read_bytes()
    part = tmp_path / "part.arrows"
    for n_bytes in range(len(data)):
        part.write_bytes(data[:n_bytes])
        reader = CaptureFile(part).reader("Int")
        with pytest.raises(TruncatedError, match=rf"part\.arrows: cut off at byte {n_bytes},"):
            _read_all(reader)
        reader.close()
    part.write_bytes(data)
    _read_all(CaptureFile(part).reader("Int"))


def _read_all(reader: Any) -> None:
    while reader.take() is not None:
        pass


def test_a_replay_of_a_file_that_was_cut_off_fails_and_names_it(
    tmp_path: Path, first_cause: Any
) -> None:
    captured(as_columns, tmp_path, 2)
    cut = tmp_path / "part-00001-of-00002.arrows"
    cut.write_bytes(cut.read_bytes()[:-200])
    with pytest.raises(
        WorkerError, match=r"Replay.*part-00001-of-00002\.arrows: cut off"
    ) as raised:
        collect(lambda scope: scope.replay(tmp_path), 2)
    assert isinstance(first_cause(raised.value), TruncatedError)


def test_of_what_was_cut_off_the_complete_times_can_be_taken(tmp_path: Path) -> None:
    """For every cut: of each time all or nothing, and never a later time without it."""
    captured(as_rows, tmp_path, 2)
    cut = tmp_path / "part-00001-of-00002.arrows"
    data = cut.read_bytes()
    whole = expected(2)
    found_times = set()
    for n_bytes in range(0, len(data), 97):
        cut.write_bytes(data[:n_bytes])
        found = collect(lambda scope: scope.replay(tmp_path, partial=True), 1)
        n_times = len({time for time, _ in found})
        assert found == [item for item in whole if item[0] < n_times]
        found_times.add(n_times)
    assert found_times == set(range(EPOCHS + 1))
    cut.write_bytes(data)
    assert collect(lambda scope: scope.replay(tmp_path, partial=True), 4) == whole


def test_a_capture_that_failed_is_cut_off_and_its_complete_times_are_there(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(tmp_path)
            stream.map(lambda x: 1 // (x - 2))
        for epoch in range(4):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step()

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        ps.execute(main)
    with pytest.raises(WorkerError, match="cut off at byte"):
        collect(lambda scope: scope.replay(tmp_path))
    found = collect(lambda scope: scope.replay(tmp_path, partial=True))
    assert found[:2] == [(0, 0), (1, 1)]
    assert len(found) <= 3


@pytest.mark.parametrize("data", [b"hello, world", b"\xff\xff\xff\xff" + b"\x10\0\0\0" + 20 * b"x"])
def test_a_file_that_is_no_capture_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(data)
    with pytest.raises(WorkerError, match="other: no capture"):
        collect(lambda scope: scope.replay(file))


def test_an_arrow_stream_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.arrows"
    with pa.ipc.new_stream(file, as_columns([1]).schema) as writer:
        writer.write_batch(as_columns([1]))
    with pytest.raises(WorkerError, match="an Arrow stream, but no capture"):
        collect(lambda scope: scope.replay(file))


def test_a_capture_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pointstamp.formats import event_streams

    with monkeypatch.context() as patched:
        patched.setattr(event_streams, "VERSION", 9)
        captured(as_rows, tmp_path, 1)
    with pytest.raises(WorkerError, match="a capture of version 9"):
        collect(lambda scope: scope.replay(tmp_path))


def test_bytes_after_the_end_are_refused(tmp_path: Path) -> None:
    captured(as_rows, tmp_path, 1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(WorkerError, match="more bytes come after the end"):
        collect(lambda scope: scope.replay(file))


def test_a_folder_must_have_the_parts_of_one_capture(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="one capture is needed, and there are none"):
        collect(lambda scope: scope.replay(tmp_path))
    captured(as_rows, tmp_path, 2)
    with pytest.raises(WorkerError, match="by another number of workers than 1"):
        captured(as_rows, tmp_path, 1)
    (tmp_path / "part-00001-of-00002.arrows").unlink()
    with pytest.raises(WorkerError, match="1 of the 2 parts of the capture are missing, part 1"):
        collect(lambda scope: scope.replay(tmp_path))
    with pytest.raises(WorkerError, match="cannot be read"):
        collect(lambda scope: scope.replay([tmp_path / "nothing"]))


def test_a_place_that_cannot_be_captured_to_is_an_error_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkerError, match="file: cannot be captured to"):
        captured(as_rows, tmp_path / "file", 1)
    with pytest.raises(WorkerError, match="captured to the path of a folder"):
        captured(as_rows, 7, 1)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([ps.Progress([(1, 1), (0, -1)]), ps.Messages(0, ["x"])], "something comes at 0"),
        ([ps.Progress([(1, 1), (0, -1)]), ps.Progress([(0, 1)])], "something comes at 0"),
        ([ps.Progress([(4, -1)])], "that is not there: 4"),
        ([ps.Progress([(0, -1)]), ps.Messages(0, ["x"])], "goes on after its frontier was empty"),
        ([(0, ["x"])], r"has \(0, \['x'\]\) \(tuple\) among its events"),
    ],
)
def test_events_that_contradict_each_other_are_refused(
    events: Any, message: str, first_cause: Any
) -> None:
    with pytest.raises(WorkerError, match=message) as raised:
        collect(lambda scope: scope.replay([events]))
    assert isinstance(first_cause(raised.value), EventError)


def test_events_that_do_not_end_are_an_error(first_cause: Any) -> None:
    with pytest.raises(WorkerError, match=r"frontier is still at \[5\]") as raised:
        collect(lambda scope: scope.replay([[ps.Progress([(5, 1), (0, -1)])]]))
    assert isinstance(first_cause(raised.value), TruncatedError)


def test_what_cannot_be_replayed_is_refused() -> None:
    for sources in (7, [7]):
        with pytest.raises(WorkerError, match="captured"):
            collect(lambda scope, s=sources: scope.replay(s))
    with pytest.raises(WorkerError, match="partial=True is for files"):
        collect(lambda scope: scope.replay([], partial=True))


def test_a_record_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    import threading

    with pytest.raises(WorkerError, match="record 0 of a batch of 1 cannot be pickled"):
        collect(lambda scope: _captured_too(scope.to_stream([threading.Lock()]), tmp_path))


def _captured_too(stream: Any, path: Path) -> Any:
    stream.capture(path)
    return stream


# Laws.

BATCHES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(-5, 5), min_size=1, max_size=4)), max_size=8
)


@given(BATCHES, st.sampled_from([as_rows, as_columns, as_arrays]))
def test_whatever_is_captured_in_a_file_is_replayed(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, list[int]]], make: Any
) -> None:
    folder = tmp_path_factory.mktemp("capture")

    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.capture(folder)
            kept = stream.capture()
        for step, values in batches:
            input.advance_to(input.time + step)
            input.send_batch(make(values))
            worker.step()
        input.close()
        worker.run()
        return kept

    (kept,) = ps.execute(main)
    (again,) = ps.execute(_recaptured, folder)
    assert again.is_complete
    assert _is_told_no_more(ps.Int, again, kept)
