"""What workers tell of themselves: complete, typed, and nothing where nobody listens."""

from __future__ import annotations

import collections
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.dataflow.channels import Queue
from pointstamp.dataflow.operator import Operator
from pointstamp.errors import BuildError, FileFormatError, StalledError, UsageError, WorkerError
from pointstamp.formats.arrow_stream_file import StreamFile, schema_of
from pointstamp.observability import EVENTS, Log, LoggedRun, read
from pointstamp.observability.logged import LoggedOperator

RUNNERS = {
    "one": lambda main, log: ps.execute(main, log=log),
    "threads": lambda main, log: ps.execute(main, workers=2, threads=True, log=log),
    "processes": lambda main, log: ps.execute(main, workers=2, log=log),
    "four": lambda main, log: ps.execute(main, workers=4, threads=True, log=log),
    "simulated": lambda main, log: ps.simulate(main, workers=3, seed=5, log=log),
}
EPOCHS = 3
PER_EPOCH = 10


def rounds(worker: Any) -> int:
    """Ten numbers an epoch, exchanged and counted, three epochs; on every worker."""
    with worker.dataflow("rounds") as scope:
        input, stream = scope.new_input("numbers")
        probe = stream.exchange().map(lambda x: x + 1).count().probe()
    for epoch in range(EPOCHS):
        for x in range(PER_EPOCH):
            input.send(x)
        worker.log(f"epoch {epoch}")
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    input.close()
    worker.run()
    return int(worker.peers)


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.once] * (name == "processes")) for name in RUNNERS
    ],
    scope="module",
)
def logged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LoggedRun:
    path = tmp_path_factory.mktemp("log") / "run.log"
    RUNNERS[request.param](rounds, Log(path))
    return read(path)


def column(run: LoggedRun, events: str, name: str) -> list[Any]:
    """A column of all workers."""
    return [value for worker in run.workers for value in np.asarray(worker[events][name]).tolist()]


def rows(worker: Any, events: str, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(np.asarray(worker[events][name]).tolist() for name in names), strict=True))


def numbers_of(worker: Any) -> dict[str, int]:
    return {name: number for number, name in rows(worker, "operators", "operator", "name")}


def test_every_worker_writes_every_type_of_event_that_it_had(logged: LoggedRun) -> None:
    assert logged.missing == []
    for worker in logged.workers:
        for name, of in EVENTS.items():
            assert set(worker[name]) == set(of.columns)
        for name in ("operators", "channels", "schedules", "messages", "capabilities", "texts"):
            assert len(worker[name]["at"]), name
    n = len(logged.workers)
    assert bool(column(logged, "progress", "at")) == (n > 1)


def test_events_of_all_workers_are_tables(logged: LoggedRun) -> None:
    for name, of in EVENTS.items():
        table = logged.table(name)
        assert table.schema.names == ["worker", *of.columns]
        kinds = [kind.replace("float64", "double") for kind in of.columns.values()]
        assert [str(kind) for kind in table.schema.types] == ["int64", *kinds]
        for column_name in of.columns:
            assert table[column_name].to_pylist() == column(logged, name, column_name)
        counts = [len(worker[name]["at"]) for worker in logged.workers]
        owners = [
            worker.index for worker, n in zip(logged.workers, counts, strict=True) for _ in range(n)
        ]
        assert table["worker"].to_pylist() == owners
    with pytest.raises(UsageError, match="the log has no events 'message', only capabilities, ch"):
        logged.table("message")


def test_operators_and_channels_are_told_with_their_places(logged: LoggedRun) -> None:
    for worker in logged.workers:
        told = rows(worker, "operators", "kind", "name", "address")
        assert told == [
            ("dataflow", "rounds", "0"),
            ("operator", "numbers", "0/1"),
            ("operator", "Exchange", "0/2"),
            ("operator", "Map", "0/3"),
            ("operator", "Count", "0/4"),
            ("operator", "Probe", "0/5"),
        ]
        assert rows(worker, "channels", "source", "target", "pact") == [
            (1, 2, "exchange by None"),
            (2, 3, "pipeline"),
            (3, 4, "pipeline"),
            (4, 5, "pipeline"),
        ]


def test_all_records_are_told_of_when_sent_and_when_taken(logged: LoggedRun) -> None:
    n = len(logged.workers)
    sums: dict[tuple[Any, ...], int] = collections.defaultdict(int)
    for worker in logged.workers:
        names = ("channel", "is_send", "source", "target", "time", "records")
        for *what, records in rows(worker, "messages", *names):
            sums[tuple(what)] += records
    for (channel, is_send, source, target, time), records in sums.items():
        assert sums[channel, not is_send, source, target, time] == records
    per_epoch: dict[tuple[int, str], int] = collections.defaultdict(int)
    for (channel, is_send, _, _, time), records in sums.items():
        per_epoch[channel, time] += records if is_send else 0
    counts = {per_epoch.pop((3, str(epoch))) for epoch in range(EPOCHS)}
    assert counts == {n}  # of workers that had any: with ten numbers, all
    assert per_epoch == {(c, str(e)): PER_EPOCH * n for c in range(3) for e in range(EPOCHS)}


def test_messages_to_other_workers_are_told_by_both(logged: LoggedRun) -> None:
    n = len(logged.workers)
    pairs = {
        (source, target)
        for worker in logged.workers
        for channel, source, target in rows(worker, "messages", "channel", "source", "target")
        if channel == 0
    }
    assert pairs == {(source, target) for source in range(n) for target in range(n)}


def test_capabilities_balance_and_are_those_of_the_input(logged: LoggedRun) -> None:
    for worker in logged.workers:
        input = numbers_of(worker)["numbers"]
        held: dict[tuple[int, str], int] = collections.defaultdict(int)
        for operator, time, change in rows(worker, "capabilities", "operator", "time", "change"):
            held[operator, time] += change
        assert set(held.values()) == {0}
        assert {time for operator, time in held if operator == input} == {"0", "1", "2", "3"}


def test_the_probe_was_told_of_each_epoch_in_turn(logged: LoggedRun) -> None:
    for worker in logged.workers:
        probe = numbers_of(worker)["Probe"]
        gone = [
            time
            for operator, time, change in rows(worker, "frontiers", "operator", "time", "change")
            if operator == probe and change < 0
        ]
        assert gone == ["0", "1", "2", "3"]


def test_progress_is_taken_as_it_was_sent(logged: LoggedRun) -> None:
    names = ("is_send", "scope", "source", "target", "updates")
    told = [row for worker in logged.workers for row in rows(worker, "progress", *names)]
    sent = collections.Counter(row[1:] for row in told if row[0])
    taken = collections.Counter(row[1:] for row in told if not row[0])
    assert not taken - sent  # the last may come when its dataflow is complete, or later


def test_activations_follow_each_other_inside_of_their_dataflow(logged: LoggedRun) -> None:
    for worker in logged.workers:
        told = rows(worker, "schedules", "began", "at", "operator")
        assert all(began <= at for began, at, _ in told)
        inner = [row for row in told if row[2] != 0]
        assert all(a[1] <= b[0] for a, b in pairwise(inner))
        outer = [row for row in told if row[2] == 0]
        for began, at, _ in inner:
            assert any(o[0] <= began and at <= o[1] for o in outer)


def test_the_texts_of_the_program_are_there(logged: LoggedRun) -> None:
    for worker in logged.workers:
        assert worker["texts"]["text"] == ["epoch 0", "epoch 1", "epoch 2"]


def test_a_simulation_tells_the_same_each_time(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        ps.simulate(rounds, workers=2, seed=9, log=Log(tmp_path / name))
        runs.append(read(tmp_path / name))
    assert runs[0].unit == "ticks"
    for first, second in zip(runs[0].workers, runs[1].workers, strict=True):
        for name in EVENTS:
            names = EVENTS[name].columns
            assert rows(first, name, *names) == rows(second, name, *names)


def test_moments_of_a_simulation_are_those_of_one_sequence(tmp_path: Path) -> None:
    ps.simulate(rounds, workers=3, seed=1, log=Log(tmp_path))
    texts = column(read(tmp_path), "texts", "at")
    assert len(set(texts)) == 3 * EPOCHS
    assert 0 < min(texts) < max(texts) < 100_000


def test_files_are_arrow_streams_with_the_columns_and_the_version(tmp_path: Path) -> None:
    ps.execute(rounds, log=Log(tmp_path))
    for name in ("messages", "schedules"):
        with pa.ipc.open_stream(pa.OSFile(str(tmp_path / "worker-0" / f"{name}.arrows"))) as file:
            assert file.schema.metadata[b"version"] == b"1"
            assert [(f.name, str(f.type)) for f in file.schema] == list(
                EVENTS[name].columns.items()
            )


def nested(worker: Any) -> None:
    """A loop in a scope of its own."""
    with worker.dataflow("outer") as scope:
        numbers = scope.to_stream([5] if worker.index == 0 else [])
        with scope.iterative(name="loop") as inner:
            loop, again = inner.feedback(1)
            done, rest = numbers.enter(inner).concat(again).exchange().branch(lambda x: x > 1)
            loop.connect(rest.map(lambda x: x - 1))
            done.leave().probe()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_scopes_in_scopes_are_told_with_their_own_times(tmp_path: Path, workers: int) -> None:
    ps.execute(nested, workers=workers, threads=True, log=Log(tmp_path))
    run = read(tmp_path)
    assert len(run.workers) == workers
    assert run.missing == []
    scope = numbers_of(run.workers[0])["loop"]
    inside = [
        name
        for name, around in rows(run.workers[0], "operators", "name", "scope")
        if around == scope
    ]
    assert inside == ["Feedback", "Concatenate", "Exchange", "Branch", "Map"]
    assert set(rows(run.workers[0], "operators", "dataflow")) == {(0,)}
    times = set(column(run, "messages", "time"))
    assert {"0", "(0, 0)", "(0, 1)", "(0, 4)"} <= times
    assert "(0, 5)" not in times
    assert scope in column(run, "schedules", "operator")


# Off.


def built(worker: Any) -> set[type]:
    """The classes of all operators, and of what they hold, that there are now."""
    with worker.dataflow() as scope:
        stream = scope.to_stream([1]).exchange().count()
        found = {type(child) for child in scope._children.values()}
        found |= {type(h) for child in scope._children.values() for h in child.capabilities}
        found |= {type(q._queue) for child in scope._children.values() for q in child._inputs}
        stream.probe()
    return found


def test_without_a_log_the_ordinary_classes_are_made() -> None:
    for workers in (1, 2):
        for found in ps.execute(built, workers=workers, threads=True):
            assert found == {Operator, CapabilityCounts, Queue}


def test_with_a_log_others_are(tmp_path: Path) -> None:
    (found,) = ps.execute(built, log=Log(tmp_path))
    assert found.isdisjoint({Operator, CapabilityCounts, Queue})
    assert LoggedOperator in found


def test_what_is_not_logged_is_made_of_the_ordinary_classes(tmp_path: Path) -> None:
    def main(worker: Any) -> set[type]:
        with worker.dataflow("quiet", logged=False) as scope:
            scope.to_stream([1]).exchange().probe()
            return {type(child) for child in scope._children.values()}

    assert ps.execute(main, workers=2, threads=True, log=Log(tmp_path)) == [{Operator}] * 2
    run = read(tmp_path)
    assert [column(run, name, "at") for name in EVENTS if name != "parks"] == [[]] * 10


def test_a_line_for_a_worker_without_a_log_is_dropped() -> None:
    assert ps.execute(lambda worker: worker.log("nobody")) == [None]


# Failures.


def test_what_was_told_until_a_failure_is_on_disk(tmp_path: Path) -> None:
    def fails(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([3, 0]).map(lambda x: 1 // x)
        worker.log("before")
        worker.run()

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        ps.execute(fails, workers=2, threads=True, log=Log(tmp_path))
    run = read(tmp_path)
    assert run.missing == []
    assert column(run, "texts", "text") == ["before"] * 2
    for worker in run.workers:
        names = dict(rows(worker, "operators", "operator", "name"))
        if "Map" in {names[number] for (number,) in rows(worker, "schedules", "operator")}:
            break
    else:
        pytest.fail("the activation that failed is not told of")


def test_what_a_worker_that_dies_had_told_is_on_disk(tmp_path: Path) -> None:
    def dies(worker: Any) -> None:
        rounds(worker)
        for _ in range(5_000):
            worker.log("x")
        if worker.index == 1:
            import os

            os._exit(3)
        with worker.dataflow() as scope:
            scope.new_input()[1].probe()
        worker.step_while(lambda: True)

    with pytest.raises(WorkerError):
        ps.execute(dies, workers=2, log=Log(tmp_path))
    run = read(tmp_path)
    assert any(
        "worker-1/texts.arrows ends without its end mark: the worker was stopped" in what
        for what in run.missing
    )
    assert run.is_over
    assert len(run.workers[1]["texts"]["at"]) >= 4096  # a full batch


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A log with several batches of messages, which it writes when they are full."""

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.map(lambda x: x).probe()
        for epoch in range(4_000):
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step()
        input.close()

    ps.execute(main, log=Log(tmp_path / "run.log", ticks=partial(next, count())))
    return tmp_path / "run.log"


def test_a_truncated_file_is_read_up_to_the_last_whole_batch(whole: Path) -> None:
    path = whole / "worker-0" / "messages.arrows"
    data = path.read_bytes()
    everything = read(whole).workers[0]["messages"]["at"]
    assert len(everything) == 4 * 4_000
    seen = set()
    for n_bytes in range(0, len(data), 9_999):
        path.write_bytes(data[:n_bytes])
        run = read(whole)
        n = len(run.workers[0]["messages"]["at"])
        assert np.array_equal(run.workers[0]["messages"]["at"], everything[:n])
        (what,) = run.missing
        assert "worker-0/messages.arrows ends without its end mark" in what
        assert f"the {n} events of whole batches are here" in what
        seen.add(n)
    assert seen == {0, 4096, 8192, 12288}
    path.write_bytes(data)
    assert read(whole).missing == []


def test_a_cut_off_end_mark_is_noticed(whole: Path) -> None:
    path = whole / "worker-0" / "texts.arrows"
    assert not path.exists()
    path = whole / "worker-0" / "schedules.arrows"
    data = path.read_bytes()
    for cut in (1, 4, 7, 8):
        path.write_bytes(data[:-cut])
        assert len(read(whole).missing) == 1


def test_a_damaged_file_is_named(whole: Path) -> None:
    # Where Arrow would look at what it says, it looks beyond the end of what there is.
    path = whole / "worker-0" / "operators.arrows"
    data = bytearray(path.read_bytes())
    reader = pa.ipc.open_stream(bytes(data))
    ends = reader.read_next_batch().column("name").buffers()[1].to_pybytes()
    at = bytes(data).index(ends[:16])
    data[at + 6] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"operators\.arrows: batch 0 is damaged"):
        read(whole)


@pytest.mark.parametrize("found", ["float64", "int32"])
def test_columns_of_other_types_are_named(whole: Path, found: str) -> None:
    path = whole / "worker-0" / "parks.arrows"
    schema = pa.schema([("at", pa.int64()), ("began", pa.type_for_alias(found))])
    with pa.ipc.new_stream(path, schema) as writer:
        writer.write_batch(pa.record_batch([[1], [1]], schema=schema))
    with pytest.raises(FileFormatError, match=r"should have the columns at \(int64\), .*began"):
        read(whole)


def test_what_is_no_log_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="this is no log: there is no such folder"):
        read(tmp_path / "absent")
    with pytest.raises(FileFormatError, match="this is no log: it holds no worker-0"):
        read(whole.parent)
    path = whole / "worker-0" / "messages.arrows"
    with pytest.raises(FileFormatError, match="this is no log: it is a file, and no folder"):
        read(path)
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(FileFormatError, match=r"messages\.arrows: this is no Arrow stream"):
        read(whole)


def test_a_missing_worker_is_said(tmp_path: Path) -> None:
    import shutil

    ps.execute(rounds, workers=2, threads=True, log=Log(tmp_path))
    shutil.rmtree(tmp_path / "worker-1")
    assert read(tmp_path).missing == ["worker 1 has written nothing"]


def test_a_second_log_takes_the_place_of_the_first(tmp_path: Path) -> None:
    ps.execute(rounds, workers=2, threads=True, log=Log(tmp_path))
    ps.execute(rounds, log=Log(tmp_path))
    run = read(tmp_path)
    assert [worker.index for worker in run.workers] == [0]
    assert run.missing == []


@pytest.mark.parametrize("name", ["thesis.txt", "worker-0/thesis.txt"])
def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("years of work")
    with pytest.raises(UsageError, match="which is of no log"):
        ps.execute(rounds, log=Log(tmp_path))
    assert file.read_text() == "years of work"


def test_a_place_that_cannot_be_written_is_refused_before_any_worker_begins(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFormatError, match="a log cannot be written there"):
        ps.execute(rounds, log=Log(tmp_path / "file" / "log"))
    with pytest.raises(UsageError, match="a log is written to a folder, a path or a text, not 5"):
        ps.execute(rounds, log=Log(5))  # type: ignore[arg-type]  # as is to be seen


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_disk_that_is_full_at_the_end_is_an_error_that_names_the_file() -> None:
    file = StreamFile(Path("/dev/full"), schema_of({"n": "int64"}), {})
    with pytest.raises(FileFormatError, match=r"^/dev/full: cannot be written: .*No space left"):
        file.close()
    file.close()


# Live.


def live_counts(worker: Any) -> tuple[int, int, int]:
    """Records sent by the logged dataflow, as another one of the same workers counts them."""
    seen: dict[str, int] = collections.defaultdict(int)
    with worker.dataflow("watch", logged=False) as scope:

        def note(time: int, batch: pa.RecordBatch) -> None:
            for row in batch.to_pylist():
                assert row["at"] >= time
                seen["sent" if row["is_send"] else "taken"] += row["records"]

        scope.log_stream("messages").inspect_batch(note)
        scope.log_stream("operators").inspect_batch(
            lambda time, batch: seen.update(n=seen["n"] + batch.num_rows)
        )
    rounds(worker)
    return seen["sent"], seen["taken"], seen["n"]


@pytest.mark.parametrize("run", list(RUNNERS.values()), ids=list(RUNNERS))
def test_a_dataflow_of_the_same_worker_reads_what_is_told(run: Callable[..., Any]) -> None:
    found = run(live_counts, Log())
    n = len(found)
    records = 3 * EPOCHS * PER_EPOCH * n + EPOCHS * n
    assert sum(sent for sent, _, _ in found) == records
    assert sum(taken for _, taken, _ in found) == records
    assert [n_operators for _, _, n_operators in found] == [6] * n


def test_a_live_stream_may_be_exchanged_and_does_not_feed_itself(tmp_path: Path) -> None:
    """Whoever reads the log is in no log; workers that tell each other of it come to rest."""

    def main(worker: Any) -> int:
        counts: list[int] = []
        with worker.dataflow("watch", logged=False) as scope:
            told = scope.log_stream("schedules").exchange("at")
            told.inspect_batch(lambda time, batch: counts.append(batch.num_rows))
        rounds(worker)
        return sum(counts)

    found = ps.execute(main, workers=2, threads=True, log=Log(tmp_path))
    run = read(tmp_path)
    assert sum(found) == len(column(run, "schedules", "at"))
    assert set(column(run, "operators", "name")) == {
        "rounds", "numbers", "Exchange", "Map", "Count", "Probe",
    }  # fmt: skip


def test_workers_that_read_of_their_parks_come_to_rest() -> None:
    """Else each would wake the other, to be told that it had been parked."""

    def main(worker: Any) -> None:
        with worker.dataflow("watch", logged=False) as scope:
            for what in ("parks", "schedules", "progress"):
                scope.log_stream(what).exchange("at").probe()
        with worker.dataflow("watched") as scope:
            scope.new_input()[1].exchange().probe()
        worker.step_while(lambda: True)

    with pytest.raises(StalledError, match="no worker can go on"):
        ps.simulate(main, workers=3, seed=2, log=Log())


def test_the_frontier_of_a_live_stream_says_what_has_come(tmp_path: Path) -> None:
    """All events before the frontier were seen; it moves while the logged dataflow runs."""

    def main(worker: Any) -> tuple[bool, bool, bool]:
        seen: list[int] = []
        with worker.dataflow("watch", logged=False) as scope:
            texts = scope.log_stream("texts")
            probe = texts.inspect_batch(
                lambda time, batch: seen.extend(batch.column("at").to_pylist())
            ).probe()
        with worker.dataflow("watched") as scope:
            input, stream = scope.new_input()
            stream.probe()
        worker.log("one")
        worker.step_while(lambda: not seen)
        worker.step_while(lambda: probe.less_equal(seen[0]))
        moved = not probe.less_equal(seen[0])
        worker.log("two")
        worker.step_while(lambda: len(seen) < 2)
        input.close()
        before = probe.done
        worker.run()
        return moved, before, probe.done

    assert ps.execute(main, log=Log(tmp_path)) == [(True, False, True)]


def test_earlier_operators_are_told_to_who_listens_later() -> None:
    def main(worker: Any) -> list[str]:
        names: list[str] = []
        with worker.dataflow("first") as scope:
            scope.to_stream([1]).probe()
        with worker.dataflow("watch", logged=False) as scope:
            scope.log_stream("operators").inspect_batch(
                lambda time, batch: names.extend(batch.column("name").to_pylist())
            )
        worker.run()
        return names

    assert ps.execute(main, log=Log()) == [["first", "ToStream", "Probe"]]


def test_reading_the_log_where_it_would_feed_itself_is_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("self") as scope:
            scope.log_stream("messages")

    with pytest.raises(WorkerError, match="it would feed itself") as caught:
        ps.execute(main, log=Log())
    assert isinstance(caught.value.__cause__, BuildError)


def test_reading_a_log_that_is_not_kept_is_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("self", logged=False) as scope:
            scope.log_stream("messages")

    with pytest.raises(WorkerError, match="which keeps none; start the workers with log="):
        ps.execute(main)


def test_events_that_there_are_not_are_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("self", logged=False) as scope:
            scope.log_stream("gossip")

    with pytest.raises(WorkerError, match="asks for 'gossip'; the events of a log are operators,"):
        ps.execute(main, log=Log())


def test_a_dataflow_that_reads_the_log_may_be_dropped() -> None:
    """Nobody tells it of anything after that, and the worker runs to its end."""

    def main(worker: Any) -> tuple[int, int]:
        seen: list[int] = []
        with worker.dataflow("watch", logged=False) as scope:
            scope.log_stream("texts").inspect_batch(lambda time, batch: seen.append(batch.num_rows))
        worker.log("one")
        worker.step_while(lambda: not seen)
        worker.drop_dataflow("watch")
        worker.log("two")
        rounds(worker)
        return sum(seen), sum(map(len, worker.environment.worker_log._sources.values()))

    assert ps.execute(main, workers=2, threads=True, log=Log()) == [(1, 0)] * 2


REQUESTS = {"url": "string", "latency_ms": "float64", "n": "int64", "is_new": "bool"}


def test_events_of_a_programs_own_types_are_written_and_streamed(tmp_path: Path) -> None:
    def main(worker: Any) -> Any:
        seen: list[Any] = []
        with worker.dataflow("watch", logged=False) as scope:
            requests = scope.log_stream("requests")
            requests.inspect_batch(lambda time, batch: seen.extend(batch.to_pylist()))
        with worker.dataflow() as scope:
            scope.to_stream([1]).probe()
        worker.log("requests", n=worker.index, latency_ms=0.5, url="/a", is_new=True)
        worker.log("plain")
        worker.run()
        return [(row["url"], row["n"]) for row in seen]

    log = Log(tmp_path, events={"requests": REQUESTS})
    found = ps.execute(main, workers=2, threads=True, log=log)
    assert found == [[("/a", 0)], [("/a", 1)]]
    for _ in range(2):  # another log may replace it
        run = read(tmp_path)
        assert [rows(w, "requests", *REQUESTS) for w in run.workers] == [
            [("/a", 0.5, 0, True)],
            [("/a", 0.5, 1, True)],
        ]
        assert run.table("requests").drop_columns("at").to_pylist() == [
            {"worker": worker, "url": "/a", "latency_ms": 0.5, "n": worker, "is_new": True}
            for worker in range(2)
        ]
        ps.execute(main, workers=2, threads=True, log=log)


def test_events_that_are_of_no_declared_type_are_refused(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        for name, values in (("requests", {"url": "/"}), ("others", {"x": 1}), ("parks", {"x": 1})):
            with pytest.raises(UsageError, match=r"the types of events of this log.*'requests'"):
                worker.log(name, **values)

    ps.execute(main, log=Log(tmp_path, events={"requests": REQUESTS}))
    for events in ({"parks": {}}, {"a/b": {}}, {"x": {"at": "int64"}}, {"x": {"y": "list"}}):
        with pytest.raises(UsageError, match="cannot be logged"):
            ps.execute(main, log=Log(events=events))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"latency_ms": None}, "None as 'latency_ms', which is of type float64"),
        ({"latency_ms": 10**400}, "as 'latency_ms', which is of type float64"),
        ({"n": 2**63}, "9223372036854775808 as 'n', which is of type int64"),
        ({"n": 2.5}, "2.5 as 'n', which is of type int64"),
    ],
)
def test_a_value_that_is_not_of_its_column_is_named(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = {"url": "/", "latency_ms": 0.5, "n": 1, "is_new": True}

    def main(worker: Any) -> None:
        worker.log("requests", **good)
        with pytest.raises(UsageError, match=message):
            worker.log("requests", **{**good, **wrong})

    ps.execute(main, log=Log(tmp_path, events={"requests": REQUESTS}))
    assert read(tmp_path).table("requests").num_rows == 1


def test_texts_that_utf_8_does_not_have_are_logged_with_escapes(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        worker.log("a\udcff.csv")  # as the name of a file may be
        worker.log("requests", url="/\udcff", latency_ms=0.5, n=1, is_new=True)

    ps.execute(main, log=Log(tmp_path, events={"requests": REQUESTS}))
    (worker,) = read(tmp_path).workers
    assert worker["texts"]["text"] == ["a\\udcff.csv"]
    assert worker["requests"]["url"] == ["/\\udcff"]


@pytest.mark.parametrize("n_logging", [0, 1])
def test_events_of_which_a_worker_has_none_are_an_empty_table(
    n_logging: int, tmp_path: Path
) -> None:
    def main(worker: Any) -> None:
        if worker.index < n_logging:
            worker.log("requests", url="/", latency_ms=0.5, n=1, is_new=True)

    ps.execute(main, workers=2, threads=True, log=Log(tmp_path, events={"requests": REQUESTS}))
    run = read(tmp_path)
    assert [len(w["requests"]["url"]) for w in run.workers] == [n_logging, 0]
    assert run.table("requests").num_rows == n_logging
    assert {*run.table("requests").column_names} == {"worker", "at", *REQUESTS}


def test_summaries_and_counts_of_scopes_are_logged(tmp_path: Path) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            loop, again = scope.feedback(2, limit=4)
            loop.connect(scope.to_stream([1]).concat(again).map(lambda x: x))

    ps.execute(main, log=Log(tmp_path))
    (worker,) = read(tmp_path).workers
    numbers = numbers_of(worker)
    summaries = {row[0]: row for row in rows(worker, "summaries", "operator", "input", "output")}
    assert summaries[numbers["Map"]] == (numbers["Map"], 0, 0)
    texts = dict(rows(worker, "summaries", "operator", "summary"))
    assert texts[numbers["Feedback"]] == "Advance(by=2, limit=4)"
    counts: Counter[Any] = Counter()
    names = "operator", "port", "is_input", "time", "change"
    for *place, change in rows(worker, "reachability", *names):
        counts[tuple(place)] += change
    assert counts[numbers["Map"], 0, True, "2"] == 0
    assert (numbers["Map"], 0, True, "2") in counts  # it came and was taken
    assert not +counts
